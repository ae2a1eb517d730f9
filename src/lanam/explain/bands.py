"""Credible bands: pointwise from standard deviations, simultaneous from posterior draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

from lanam.core.arrays import Array, Intercept
from lanam.core.model.draws import joint_root
from lanam.core.model.fitted import FittedModel, FittedTerm

#: A function is certain where its standard deviation is below this fraction of the largest one.
_CERTAIN = 1e-6

#: Decimals of the largest deviations.
_DECIMALS = 4

#: Draws of a function: 95% quantiles of its largest deviation are known to one or two per cent.
_MOST_DRAWS = 1000

#: Very large tables get fewer draws, within this total number of values, but not below the minimum.
_MOST_VALUES = 1 << 22
_LEAST_DRAWS = 256

#: Independent directions of a dropped column's function: it is smooth, or it would not have been dropped.
_DROPPED_DIRECTIONS = 3


def require_coverage(coverage: float) -> float:
    """Refuse a coverage that is not between 0 and 1."""
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage={coverage!r} must lie between 0 and 1, for example 0.95")
    return float(coverage)


def half_width(coverage: float) -> float:
    """Half-width of a normal interval with this coverage, in standard deviations.

    Examples
    --------
    >>> round(half_width(0.95), 2)
    1.96
    """
    return float(ndtri(0.5 + 0.5 * require_coverage(coverage)))


def sorted_deviations(largest_deviations: Array) -> Array:
    """Draws of a function's largest deviation, sorted (separately for each class) and rounded."""
    return np.sort(largest_deviations, axis=0).round(_DECIMALS)


def uncertain(std: Array) -> NDArray[np.bool_]:
    """Where a function (B,) or (B, C) has a standard deviation beyond rounding."""
    return np.asarray(std > _CERTAIN * std.max(axis=0))


def inverse_std(std: Array, within: NDArray[np.bool_] | bool = True) -> Array:
    """``1 / std`` by class (C, B) of a function (B,) or (B, C); zero where certain or not ``within``."""
    spread = std.reshape(len(std), -1)
    counts = np.reshape(within, (-1, 1)) & uncertain(spread)
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=counts).T


def around(mean: Any, std: Any, half: Any) -> tuple[Any, Any]:
    """The ends of an interval of ``half`` standard deviations to either side of the mean."""
    return mean - half * std, mean + half * std


def intervals(mean: Array, std: Array, coverage: float) -> Array:
    """Lower and upper ends of pointwise intervals, as an additional last axis."""
    return np.stack(around(mean, std, half_width(coverage)), axis=-1)


class Banded:
    """A tabulated function with its posterior uncertainty."""

    mean: Array
    std: Array
    largest_deviations: Array

    def half_width(self, coverage: float = 0.95, simultaneous: bool = False) -> Intercept:
        """Half-width of a credible band, in standard deviations.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability of the band.
        simultaneous : bool, default=False
            Whether the band covers the whole function, or each value separately.

        Returns
        -------
        half_width : float
            For a simultaneous band with more than two classes, (n_classes,).
        """
        pointwise = half_width(coverage)
        if not simultaneous or not len(self.largest_deviations):
            return pointwise
        # A simultaneous band is never narrower; Monte Carlo error could make it so.
        whole: Intercept = np.quantile(self.largest_deviations, coverage, axis=0)
        return np.maximum(whole, pointwise)

    def band(self, coverage: float = 0.95, simultaneous: bool = False) -> tuple[Array, Array]:
        """Credible band of the function.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability.
        simultaneous : bool, default=False
            False: the band is pointwise. True: it contains the whole function with this probability,
            wherever it is ``inside``, and the effect of missing values if the training data had any. Use
            it for statements about the whole curve, such as "it is increasing". With more than two
            classes each class has its own band.

        Returns
        -------
        lower, upper : ndarray
            In the shape of ``mean``.
        """
        return around(self.mean, self.std, self.half_width(coverage, simultaneous))


def draw_count(n_values: int) -> int:
    """Number of draws of a function that is tabulated at ``n_values`` points.

    Examples
    --------
    >>> draw_count(250), draw_count(100_000)
    (1000, 256)
    """
    return int(np.clip(_MOST_VALUES // n_values, _LEAST_DRAWS, _MOST_DRAWS))


def importance_std(model: FittedModel, index: int) -> float:
    """Posterior standard deviation of a term's importance, from draws of its function."""
    term = model.terms[index]
    if not term.active:
        return 0.0
    chunks = joint_root(model, index).free.in_chunks(draw_count(len(term.mean)))
    parts = (_importances(term, part, draws) for part, draws in chunks)
    return _deviation(term, sum(parts, np.zeros(1)))


def _largest_of_dropped(term: FittedTerm, std: Array) -> Array:
    """Largest deviations of a dropped column's function, as if it had few independent directions."""
    if term.dropped_variance is None:
        return np.empty((0, *std.shape[1:]))
    places = (np.arange(_MOST_DRAWS) + 0.5) / _MOST_DRAWS
    lengths = np.sqrt(2.0 * gammaincinv(0.5 * _DROPPED_DIRECTIONS, places))
    return np.asarray(np.multiply.outer(lengths, np.ones(std.shape[1:])).round(_DECIMALS))


def importance_and_largest_deviations(
    model: FittedModel, index: int, std: Array, within: NDArray[np.bool_]
) -> tuple[float, Array]:
    """:func:`importance_std`, and the largest deviation from the mean of each of the same draws.

    The deviations (n_draws,) or (n_draws, C) are in units of ``std``, over the entries ``within``, and
    ascending for each class; empty for an inactive term without a band.
    """
    term = model.terms[index]
    if not term.active:
        return 0.0, _largest_of_dropped(term, std)
    precision = inverse_std(std, within)
    importances, largest = np.zeros(1), np.zeros(1)
    for part, draws in joint_root(model, index).free.in_chunks(draw_count(len(std))):
        importances = importances + _importances(term, part, draws)
        standard = np.abs(draws, out=draws)
        standard *= precision[:, part, None]
        largest = np.maximum(largest, standard.max(axis=1))
    by_draw = largest.T.reshape(-1, *std.shape[1:])
    return _deviation(term, importances), sorted_deviations(by_draw)


def _importances(term: FittedTerm, part: slice, draws: Array) -> Array:
    """Contribution of a slice of the entries to the importance, for every draw."""
    mean = term.mean[part].reshape(draws.shape[1], -1).T
    return np.asarray((term.data_mass[part] @ np.abs(mean[:, :, None] + draws)).mean(axis=0))


def _deviation(term: FittedTerm, importances: Array) -> float:
    # The importance is a mean over rows, these are means over entries: rescale.
    means = term.mean.reshape(len(term.mean), -1)
    at_entries = float((term.data_mass @ np.abs(means)).mean())
    ratio = term.importance / at_entries if at_entries > 0.0 else 1.0
    return ratio * float(np.std(importances))
