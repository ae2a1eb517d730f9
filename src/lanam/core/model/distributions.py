"""Predictive distributions of rows, with one interface for all families.

Each object holds the distributions of ``n`` rows; observations are vectors (n,). The *score* of an
observation is the absolute normal quantile of its tail probability. The observations with at most some
score form the central interval: score and interval are inverses of each other, up to rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri

from lanam.core.arrays import Array, IntArray

#: Relative widening of intervals, because scores of the same row may differ by rounding.
_ROUNDING = 1e-9
#: The same for tail probabilities, whose difference to one is rounded.
_TAIL_ROUNDING = 1e-6

#: The score from which on probabilities of counts round to zero and one.
FARTHEST = 6.0

#: The largest number of terms in the sum of the CRPS on either side, and its negligible tails.
_CRPS_POINTS = 256
_CRPS_TAIL = 1e-6
_CHUNK_VALUES = 1 << 20


class Predictive(ABC):
    """The predictive distributions of ``n`` rows."""

    @property
    @abstractmethod
    def mean(self) -> Array:
        """Means (n,)."""

    @property
    @abstractmethod
    def std(self) -> Array:
        """Standard deviations (n,)."""

    @abstractmethod
    def cdf(self, y: Array) -> Array:
        """Probability of at most ``y``."""

    @abstractmethod
    def ppf(self, probability: float) -> Array:
        """Quantiles (n,)."""

    @abstractmethod
    def log_prob(self, y: Array) -> Array:
        """Log-density, or log-probability of counts."""

    @abstractmethod
    def crps(self, y: Array) -> Array:
        """Continuous ranked probability score; lower is better."""

    @abstractmethod
    def sample(self, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws (n_samples, n)."""

    @abstractmethod
    def score(self, y: Array) -> Array:
        """Absolute normal quantiles of the observations' tail probabilities."""

    @abstractmethod
    def interval(self, score: float) -> Array:
        """Ends (n, 2) of the intervals of observations with at most this score."""

    def part(self, rows: IntArray) -> Self:
        """The distributions of some rows, with repeats."""
        fields = vars(self).items()
        return type(self)(**{k: v[rows] if isinstance(v, np.ndarray) else v for k, v in fields})


def tail_beyond(score: float) -> float:
    """The probability on either side of the interval of counts with at most this score."""
    return float(ndtr(-score)) * (1.0 - _TAIL_ROUNDING)


class Continuous(Predictive):
    """Distributions of numbers, by their normal scores (``Phi(u) = F(y)``)."""

    @property
    def tolerance(self) -> float:
        """The largest error of :meth:`at_score`."""
        return 0.0

    @abstractmethod
    def normal_score(self, y: Array) -> Array:
        """The standard normal quantile of each observation's cumulative probability."""

    @abstractmethod
    def at_score(self, score: float) -> Array:
        """The observation of each row with this normal score."""

    def cdf(self, y: Array) -> Array:
        return np.asarray(ndtr(self.normal_score(y)))

    def ppf(self, probability: float) -> Array:
        return self.at_score(float(ndtri(probability)))

    def score(self, y: Array) -> Array:
        return np.abs(self.normal_score(y))

    def interval(self, score: float) -> Array:
        farthest = score * (1.0 + _ROUNDING) + self.tolerance
        return np.column_stack([self.at_score(-farthest), self.at_score(farthest)])


class Discrete(Predictive):
    """Distributions of counts, by their distribution functions."""

    def ppf(self, probability: float) -> Array:
        """The smallest count with at least this cumulative probability, by bracketing and bisection."""
        trial, step = self._guess(float(ndtri(probability)))
        below, above = np.full(len(trial), -1.0), np.full(len(trial), np.inf)
        rows: IntArray = np.arange(len(trial))  # without their quantile so far
        while len(rows):
            now = trial[rows]
            reached = self.part(rows).cdf(now) >= probability
            above[rows[reached]] = now[reached]
            below[rows[~reached]] = now[~reached]
            rows = rows[above[rows] - below[rows] > 1.0]
            lower, upper, stride = below[rows], above[rows], step[rows]
            outward = np.where(
                np.isinf(upper), lower + stride, np.maximum(upper - stride, lower + 1.0)
            )
            # Bisection within a bracket; while its lower end is only assumed (-1), steps down to it.
            stepping = np.isinf(upper) | ((lower < 0.0) & (upper - stride > 0.0))
            trial[rows] = np.where(stepping, outward, np.floor(0.5 * (lower + upper)))
            step[rows] = 4.0 * stride
        return above

    def _guess(self, z: float) -> tuple[Array, Array]:
        """Counts near the quantiles with normal score ``z``, and the first steps away from them."""
        guess = np.maximum(np.ceil(self.mean + z * self.std), 0.0)
        return guess, np.maximum(np.ceil(0.1 * self.std), 1.0)

    def score(self, y: Array) -> Array:
        """The normal quantile of the smaller of ``P(Y <= y)`` and ``P(Y >= y)``, and 0 in the middle.

        So a count lies in the central interval with tails ``t`` if neither probability is below ``t``.
        Beyond 6, where probabilities round to zero and one, scores are extrapolated linearly.
        """
        tail = np.clip(np.minimum(self.cdf(y), 1.0 - self.cdf(y - 1.0)), 0.0, 0.5)
        score = -ndtri(np.maximum(tail, np.finfo(np.float64).tiny))
        far = np.flatnonzero(tail < ndtr(-FARTHEST))
        if len(far):
            (lower, upper), (below, above) = self.part(far)._farthest()
            beyond = np.maximum((lower - y[far]) / below, (y[far] - upper) / above)
            score[far] = FARTHEST * (1.0 + np.maximum(beyond, 0.0))
        return np.asarray(score) + 0.0  # no -0

    def interval(self, score: float) -> Array:
        """Central intervals, both ends included."""
        if score > FARTHEST:
            (lower, upper), (below, above) = self._farthest()
            beyond = score * (1.0 + _ROUNDING) / FARTHEST - 1.0
            lower = np.maximum(np.ceil(lower - beyond * below), 0.0)
            return np.column_stack([lower, np.floor(upper + beyond * above)])
        tail = tail_beyond(score)
        return np.column_stack([self.ppf(tail), self.ppf(1.0 - tail)])

    def _farthest(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Ends of the intervals at the largest exact score, and their distances from the median."""
        tail = tail_beyond(FARTHEST)
        lower, middle, upper = (self.ppf(at) for at in (tail, 0.5, 1.0 - tail))
        return (lower, upper), (np.maximum(middle - lower, 1.0), np.maximum(upper - middle, 1.0))

    def crps(self, y: Array) -> Array:
        """Sum of ``F(k)^2`` over counts below ``y`` and of ``(1 - F(k))^2`` from ``y`` on."""
        low = np.minimum(self.ppf(_CRPS_TAIL), np.floor(y))
        high = np.maximum(self.ppf(1.0 - _CRPS_TAIL), np.ceil(y))
        middle = np.ceil(y)
        return self._squares(low, middle, 0.0) + self._squares(middle, high + 1.0, 1.0)

    def _squares(self, low: Array, high: Array, target: float) -> Array:
        """Sum of ``(F(k) - target)^2`` over ``low <= k < high``, thinned if these are many."""
        n_points = int(np.clip((high - low).max(initial=0.0), 1.0, _CRPS_POINTS))
        result = np.empty(len(low))
        size = max(_CHUNK_VALUES // n_points, 1)
        for start in range(0, len(low), size):
            rows = np.arange(start, min(start + size, len(low)))
            span = (high - low)[rows, None]
            # The middle of each step represents its counts; shorter rows have none at the end.
            step = np.maximum(np.ceil(span / n_points), 1.0)
            at = step * np.arange(float(n_points))
            n_counts = np.clip(span - at, 0.0, step)
            points = low[rows, None] + at + np.floor(0.5 * np.maximum(n_counts - 1.0, 0.0))
            below = self.part(np.repeat(rows, n_points)).cdf(np.ravel(points))
            squares = np.square(below.reshape(points.shape) - target)
            result[rows] = (n_counts * squares).sum(axis=1)
        return result
