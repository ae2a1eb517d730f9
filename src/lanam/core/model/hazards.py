"""Survival curves of fitted log hazards, with their uncertainty (method.md, survival).

A hazard is constant within the intervals of a timeline: with ``h_j`` in interval ``j`` and the time ``d_j``
spent there until ``t``, the cumulative hazard is ``H(t) = sum_j h_j d_j``. Everything predicted is a
function of the log hazards ``f_j`` of one or more causes, whose posterior is Gaussian; variances are those
of the function linearised at the posterior mean (the delta method), where it is nearly linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.core.rows.follow_up import Timeline

#: Rows whose curves are computed at a time.
_ROWS = 256

_TINY = 1e-300
#: Hazards are finite.
_LARGEST_LOG = 300.0


@dataclass(frozen=True)
class Curve:
    """A function of time for each row, ``value`` (n, T), and what its bands are made of.

    On a scale on which it is close to normal: ``mean``, standard deviation ``std``, and ``to_value`` back.
    """

    value: Array
    mean: Array
    std: Array
    to_value: Callable[[Array], Array]

    def interval(self, score: float) -> Array:
        """Ends (n, T, 2) at this many standard deviations."""
        ends = [self.to_value(self.mean + side * score * self.std) for side in (-1.0, 1.0)]
        return np.sort(np.stack(ends, axis=-1), axis=-1)


@dataclass(frozen=True)
class Hazards:
    """The hazards of some rows by every cause: a model each, on one timeline."""

    models: Sequence[FittedModel]
    timeline: Timeline

    def log_hazards(self, columns: Array) -> Array:
        """Posterior mean log hazards (causes, n, J) in the intervals."""
        rows, shape = self.rows(columns), (len(columns), len(self.timeline))
        return np.stack([scoring.link_mean(model, rows).reshape(shape) for model in self.models])

    def rows(self, columns: Array) -> Array:
        """Each row in each interval, one after the other, with the time as the last column."""
        middles, n_rows = self.timeline.middles, len(columns)
        repeated = np.repeat(columns, len(middles), axis=0)
        return np.asfortranarray(np.column_stack([repeated, np.tile(middles, n_rows)]))

    def time_spent(self, times: Array) -> Array:
        """Time (T, J) in the intervals until each of some times."""
        return self.timeline.at_risk(np.full(len(times), self.timeline.edges[0]), times)

    def curve(
        self, function: Function, columns: Array, times: Array, *, std: bool = False
    ) -> Curve:
        """A function of the log hazards at some times; without ``std`` its bands are missing."""
        parts = [
            self._part(function, columns[start : start + _ROWS], times, std)
            for start in range(0, len(columns), _ROWS)
        ]
        none = np.empty((0, len(times)))
        value, mean, spread = map(
            np.concatenate, zip(*(parts or [(none, none, none)]), strict=True)
        )
        return Curve(value, mean, spread, function.to_value)

    def _part(
        self, function: Function, columns: Array, times: Array, std: bool
    ) -> tuple[Array, Array, Array]:
        hazards = np.exp(np.minimum(self.log_hazards(columns), _LARGEST_LOG))
        spent, edges = self.time_spent(times), self.timeline.edges
        value, slopes = function.linearised(hazards, spent, np.diff(edges))
        with np.errstate(divide="ignore"):
            mean = function.to_scale(value)
        variance = np.zeros(value.shape)
        if std:
            rows = self.rows(columns)
            for model, slope in zip(self.models, slopes, strict=True):
                variance += scoring.grouped_variances(model, rows, slope)
        return value, mean, np.sqrt(variance)


class Function:
    """A function of hazards ``h`` (causes, n, J), given the time ``d`` (T, J) spent in the intervals."""

    def linearised(self, hazards: Array, spent: Array, lengths: Array) -> tuple[Array, Array]:
        """Its value (n, T), and derivatives (causes, n, T, J) of ``to_scale`` of it in the log hazards."""
        raise NotImplementedError

    def to_scale(self, value: Array) -> Array:
        """The scale of the bands."""
        return value

    def to_value(self, scaled: Array) -> Array:
        """Its inverse."""
        return scaled


class CumulativeHazard(Function):
    """``H`` of all causes, or of the one with this index; its scale is the logarithm."""

    def __init__(self, cause: int | None = None) -> None:
        self._cause = cause

    def linearised(self, hazards: Array, spent: Array, lengths: Array) -> tuple[Array, Array]:
        parts = hazards[:, :, None, :] * spent
        if self._cause is not None:
            parts = np.where(np.arange(len(parts))[:, None, None, None] == self._cause, parts, 0.0)
        total = parts.sum(axis=(0, 3))
        return total, parts / np.maximum(total, _TINY)[..., None]

    def to_scale(self, value: Array) -> Array:
        return np.log(value)

    def to_value(self, scaled: Array) -> Array:
        return np.exp(scaled)


class Survival(CumulativeHazard):
    """``S = exp(-H)``; its scale is that of ``log H``."""

    def linearised(self, hazards: Array, spent: Array, lengths: Array) -> tuple[Array, Array]:
        total, slopes = super().linearised(hazards, spent, lengths)
        return np.exp(-total), slopes

    def to_scale(self, value: Array) -> Array:
        return np.log(-np.log(value))

    def to_value(self, scaled: Array) -> Array:
        return np.exp(-np.exp(scaled))


class Incidence(Function):
    """The cumulative incidence ``F`` of the cause with this index; its scale is ``log(-log(1 - F))``.

    In interval ``i`` it gains ``q_i = p_i (S_{i-1} - S_i)`` with the cause's share ``p_i`` of all hazards.
    """

    def __init__(self, cause: int) -> None:
        self._cause = cause

    def linearised(self, hazards: Array, spent: Array, lengths: Array) -> tuple[Array, Array]:
        whole = hazards.sum(axis=0)
        share = hazards / whole
        risk = whole[:, None, :] * spent
        after = np.exp(-np.cumsum(risk, axis=2))
        before = np.concatenate([np.ones_like(after[..., :1]), after[..., :-1]], axis=2)
        leaving = before - after
        own = share[self._cause][:, None, :]
        gained = own * leaving
        value = gained.sum(axis=2)
        later = value[..., None] - np.cumsum(gained, axis=2)
        slopes = np.stack(
            [
                own * (float(m == self._cause) - share[m][:, None, :]) * leaving
                + hazards[m][:, None, :] * spent * (own * after - later)
                for m in range(len(hazards))
            ]
        )
        left = np.maximum(1.0 - value, _TINY)
        return value, slopes / np.maximum(-left * np.log(left), _TINY)[..., None]

    def to_scale(self, value: Array) -> Array:
        return np.log(-np.log1p(-value))

    def to_value(self, scaled: Array) -> Array:
        return -np.expm1(-np.exp(scaled))


class RestrictedMean(Function):
    """Mean time until the event or each of some horizons; its scale is its own."""

    def linearised(self, hazards: Array, spent: Array, lengths: Array) -> tuple[Array, Array]:
        whole = hazards.sum(axis=0)[:, None, :]
        risk = whole * spent
        after = np.exp(-np.cumsum(risk, axis=2))
        before = np.concatenate([np.ones_like(after[..., :1]), after[..., :-1]], axis=2)
        # The integral of exp(-h t) over an interval, also where h is tiny.
        mean_time = spent * np.where(risk > 1e-8, -np.expm1(-risk) / np.maximum(risk, 1e-8), 1.0)
        areas = before * mean_time
        value = areas.sum(axis=2)
        later = value[..., None] - np.cumsum(areas, axis=2)
        slope = before * (spent * np.exp(-risk) - mean_time) - risk * later
        return value, (hazards / hazards.sum(axis=0))[:, :, None, :] * slope


def inverted(levels: Array, times: Array, cumulative: Array) -> Array:
    """The time at which each row's cumulative hazard (n, T) reaches each level (L), or infinity.

    It is linear between the times.
    """
    result = np.full((len(cumulative), len(levels)), np.inf)
    for row, values in enumerate(cumulative):
        rising = np.maximum.accumulate(values)
        result[row] = np.interp(levels, rising, times, right=np.inf)
        result[row, levels > rising[-1]] = np.inf
    return result
