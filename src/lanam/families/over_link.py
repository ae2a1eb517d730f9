"""Predictive distributions ``p(y) = E[p(y | f)]`` with ``f ~ N(m, v)`` whose integrals have no closed form.

A family gives its distribution at a value of the link; means, quantiles, probabilities and the CRPS of
the mixture follow. ``f`` is integrated by a Gauss-Hermite rule where its standard deviation is small for
the distribution, and else on a lattice, on which the trapezoidal rule converges faster than any power of
its step.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from scipy.special import logsumexp, ndtri

from lanam.core.arrays import Array, IntArray
from lanam.core.model.distributions import FARTHEST, Continuous, Discrete, Predictive

#: Below this standard deviation of ``f``, in widths of the distribution, a rule of few nodes is exact to
#: 1e-9.
_SMALL = 0.25
_FEW_NODES = 8
#: The reach of the lattice in standard deviations, its step in units of the narrower width, and the largest
#: number of nodes.
_REACH = 8.0
_STEP = 0.5
_MOST_NODES = 1024
#: Rows times nodes in memory at once.
_CHUNK_VALUES = 1 << 20

#: Steps to a quantile, and its relative precision.
_MOST_STEPS = 200
_PRECISION = 1e-9
#: Points of the integrals of the CRPS on either side of the observation, and the tail they leave out.
_CRPS_POINTS = 48
_CRPS_TAIL = 1e-7


@dataclass(frozen=True)
class OverLink(Predictive):
    """The distributions of ``n`` rows whose links are normal."""

    link_mean: Array
    link_variance: Array

    # of the family: at links (n, K), for the given rows

    @abstractmethod
    def width(self) -> Array:
        """How far the link must move (n,) for another distribution, about: its curvature's inverse root."""

    @abstractmethod
    def mean_at(self, link: Array) -> Array:
        """Means."""

    @abstractmethod
    def variance_at(self, link: Array) -> Array:
        """Variances."""

    @abstractmethod
    def log_prob_at(self, y: Array, link: Array) -> Array:
        """Log-densities, or log-probabilities, at observations (n, 1)."""

    @abstractmethod
    def tails_at(self, y: Array, link: Array) -> tuple[Array, Array]:
        """Probabilities of at most ``y`` (n, 1), and of more."""

    @abstractmethod
    def draw(self, link: Array, rng: np.random.Generator) -> Array:
        """One draw for each link (n_samples, n)."""

    # the mixture

    @property
    def mean(self) -> Array:
        return self._average(lambda rows, link: rows.mean_at(link))

    @property
    def std(self) -> Array:
        squares = self._average(lambda rows, link: rows.variance_at(link) + rows.mean_at(link) ** 2)
        return np.asarray(np.sqrt(np.maximum(squares - self.mean**2, 0.0)))

    def log_prob(self, y: Array) -> Array:
        result = np.empty(len(y))
        for index, rows, link, log_weights in self._batches():
            values = rows.log_prob_at(y[index, None], link) + log_weights
            result[index] = logsumexp(values, axis=1)
        return result

    def tails(self, y: Array) -> tuple[Array, Array]:
        """The probability of at most ``y``, and that of more, each to its own digits."""
        below, above = np.empty(len(y)), np.empty(len(y))
        for index, rows, link, log_weights in self._batches():
            lower, upper = rows.tails_at(y[index, None], link)
            weights = np.exp(log_weights)
            below[index], above[index] = lower @ weights, upper @ weights
        return np.minimum(below, 1.0), np.minimum(above, 1.0)

    def cdf(self, y: Array) -> Array:
        return self.tails(y)[0]

    def sample(self, n_samples: int, rng: np.random.Generator) -> Array:
        normal = rng.standard_normal((n_samples, len(self.link_mean)))
        return self.draw(self.link_mean + np.sqrt(self.link_variance) * normal, rng)

    def _average(self, of: Callable[[OverLink, Array], Array]) -> Array:
        result = np.empty(len(self.link_mean))
        for index, rows, link, log_weights in self._batches():
            result[index] = of(rows, link) @ np.exp(log_weights)
        return result

    def _batches(self) -> Iterator[tuple[IntArray, OverLink, Array, Array]]:
        """Rows with as many nodes: their indices, they themselves, nodes (n, K) and log weights (K,)."""
        std = np.sqrt(self.link_variance)
        ratio = std / np.maximum(self.width(), np.finfo(float).tiny)
        needed = np.where(ratio < _SMALL, 0.0, np.log2(np.maximum(ratio, 1.0)))
        doublings = np.where(ratio < _SMALL, -1, np.ceil(needed)).astype(np.intp)
        for number in np.unique(doublings):
            nodes, log_weights = _nodes(int(number))
            index = np.flatnonzero(doublings == number)
            size = max(_CHUNK_VALUES // len(nodes), 1)
            for start in range(0, len(index), size):
                part = index[start : start + size]
                link = self.link_mean[part, None] + std[part, None] * nodes
                yield part, self.part(part), link, log_weights


def _nodes(doublings: int) -> tuple[Array, Array]:
    """Nodes and log weights of a standard normal average; -1 doublings of the lattice are a Gauss rule."""
    if doublings < 0:
        nodes, weights = hermegauss(_FEW_NODES)
    else:
        n_nodes = min(int(2.0 * _REACH / _STEP) * 2**doublings, _MOST_NODES) + 1
        nodes = np.linspace(-_REACH, _REACH, n_nodes)
        weights = np.exp(-0.5 * nodes**2)
    return nodes, np.asarray(np.log(weights / weights.sum()))


class CountsOverLink(OverLink, Discrete):
    """Distributions of counts."""


class PositiveOverLink(OverLink, Continuous):
    """Distributions of positive numbers."""

    @property
    def tolerance(self) -> float:
        """The largest error of :meth:`at_score`."""
        return _PRECISION

    def normal_score(self, y: Array) -> Array:
        below, above = self.tails(y)
        tiny = np.finfo(np.float64).tiny
        lower, upper = ndtri(np.maximum(below, tiny)), -ndtri(np.maximum(above, tiny))
        return np.asarray(np.where(below < above, lower, upper))

    def at_score(self, score: float) -> Array:
        """By the secant rule in the logarithm within a bracket, from the lognormal quantile.

        Beyond six standard deviations, where probabilities round, straight on in the logarithm.
        """
        if abs(score) > FARTHEST:
            end, inner = (self.at_score(np.sign(score) * at) for at in (FARTHEST, FARTHEST - 1.0))
            slope = np.log(end) - np.log(inner)
            return np.asarray(np.exp(np.log(end) + (abs(score) - FARTHEST) * slope))
        return quantile(self, score)

    def crps(self, y: Array) -> Array:
        return crps_of(self, y)


def quantile(rows: PositiveOverLink, score: float) -> Array:
    """The observations with a normal score: bracketed in the logarithm, then by regula falsi (Illinois)."""
    mean, std = rows.mean, rows.std
    spread = np.sqrt(np.log1p(np.square(std / mean)))
    at = np.log(mean) - 0.5 * spread**2 + score * spread
    step = np.maximum(0.1 * spread, 1e-3)
    low, high = at - step, at + step
    below, above = (rows.normal_score(np.exp(end)) - score for end in (low, high))
    for _ in range(_MOST_STEPS):
        out, over = below > 0.0, above < 0.0
        if not (out.any() or over.any()):
            break
        step = 2.0 * step
        low, high = np.where(out, low - step, low), np.where(over, high + step, high)
        if out.any():
            below[out] = rows.part(np.flatnonzero(out)).normal_score(np.exp(low[out])) - score
        if over.any():
            above[over] = rows.part(np.flatnonzero(over)).normal_score(np.exp(high[over])) - score
    left: IntArray = np.arange(len(at))
    result = 0.5 * (low + high)
    side = np.zeros(len(at))
    for _ in range(_MOST_STEPS):
        a, b, fa, fb = low[left], high[left], below[left], above[left]
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = (a * fb - b * fa) / (fb - fa)
        middle = np.where(np.isfinite(middle), np.clip(middle, a, b), 0.5 * (a + b))
        value = rows.part(left).normal_score(np.exp(middle)) - score
        result[left] = middle
        upper = value > 0.0
        high[left], low[left] = np.where(upper, middle, b), np.where(upper, a, middle)
        # A bound that stays twice counts for half, so that both move.
        above[left] = np.where(upper, value, np.where(side[left] < 0.0, 0.5 * fb, fb))
        below[left] = np.where(upper, np.where(side[left] > 0.0, 0.5 * fa, fa), value)
        side[left] = np.where(upper, 1.0, -1.0)
        done = (np.abs(value) < _PRECISION) | (high[left] - low[left] < 1e-14)
        left = left[~done]
        if not len(left):
            break
    return np.asarray(np.exp(result))


def crps_of(rows: PositiveOverLink, y: Array) -> Array:
    """The integrals of ``F^2`` below the observation and of ``(1 - F)^2`` above it."""
    points, weights = leggauss(_CRPS_POINTS)
    points, weights = 0.5 * (points + 1.0), 0.5 * weights
    farthest = np.maximum(rows.ppf(1.0 - _CRPS_TAIL), y)
    result = np.zeros(len(y))
    for point, weight in zip(points, weights, strict=True):
        result += weight * y * np.square(rows.tails(y * point)[0])
        # Cubed, so that most points are near the observation.
        at = y + (farthest - y) * point**3
        result += 3.0 * weight * point**2 * (farthest - y) * np.square(rows.tails(at)[1])
    return result
