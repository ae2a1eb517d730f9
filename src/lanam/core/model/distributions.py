"""Predictive distributions of rows: one interface, whatever the response.

Each object holds the distributions of ``n`` rows; observations are vectors of as many values. A *score*
says how far in the tails of its own distribution an observation lies, in standard deviations of a normal
one: intervals of all observations with at most some score are the central intervals, and both
are each other's inverse, also up to rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from lanam.core.arrays import Array, IntArray

#: Intervals are wider than scores by this, relatively: a row scored again may differ by rounding.
_ROUNDING = 1e-9
#: The same of tail probabilities, whose difference to one is rounded.
_TAIL_ROUNDING = 1e-6

#: Beyond so many standard deviations probabilities of counts are no longer told from zero and one.
FARTHEST = 6.0

#: The score of counts is summed over so many steps at most on either side, and but for these tails, whose
#: squares are nothing.
_CRPS_POINTS = 256
_CRPS_TAIL = 1e-6
_CHUNK_VALUES = 1 << 20


class Predictive(ABC):
    """The distributions of new observations of ``n`` rows."""

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
        """The smallest values that are not exceeded with at least this probability."""

    @abstractmethod
    def log_prob(self, y: Array) -> Array:
        """Log-density, or log-probability of whole numbers."""

    @abstractmethod
    def crps(self, y: Array) -> Array:
        """Continuous ranked probability score: the lower the better."""

    @abstractmethod
    def sample(self, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws (n_samples, n)."""

    @abstractmethod
    def score(self, y: Array) -> Array:
        """How far observations are from the middle of their distributions, as normal deviations."""

    @abstractmethod
    def interval(self, score: float) -> Array:
        """Ends (n, 2) of the intervals of all observations with at most this score."""

    def part(self, rows: IntArray) -> Self:
        """The distributions of some of the rows, any of them more than once."""
        own = vars(self).items()
        return type(self)(**{k: of[rows] if isinstance(of, np.ndarray) else of for k, of in own})


def tail_beyond(score: float) -> float:
    """The probability on either side of the interval of all counts with at most this score."""
    return float(ndtr(-score)) * (1.0 - _TAIL_ROUNDING)


class Continuous(Predictive):
    """Distributions of numbers, by their normal scores (``Phi(u) = F(y)``)."""

    @property
    def tolerance(self) -> float:
        """By how much :meth:`at_score` may be wrong."""
        return 0.0

    @abstractmethod
    def normal_score(self, y: Array) -> Array:
        """The standard normal number with as much below it as an observation of every row has."""

    @abstractmethod
    def at_score(self, score: float) -> Array:
        """The observation of every row that has this normal score."""

    def cdf(self, y: Array) -> Array:
        """Probability of at most ``y``."""
        return np.asarray(ndtr(self.normal_score(y)))

    def ppf(self, probability: float) -> Array:
        """Quantiles."""
        return self.at_score(float(ndtri(probability)))

    def score(self, y: Array) -> Array:
        """Absolute normal scores."""
        return np.abs(self.normal_score(y))

    def interval(self, score: float) -> Array:
        """Central intervals."""
        farthest = score * (1.0 + _ROUNDING) + self.tolerance
        return np.column_stack([self.at_score(-farthest), self.at_score(farthest)])


class Discrete(Predictive):
    """Distributions of whole numbers of at least 0, by their distribution functions."""

    def ppf(self, probability: float) -> Array:
        """The smallest count that is not exceeded with at least this probability."""
        guess = np.maximum(np.ceil(self.mean + float(ndtri(probability)) * self.std), 0.0)
        everyone = np.arange(len(guess))

        def reaches(count: Array, index: IntArray) -> NDArray[np.bool_]:
            return self.part(everyone[index]).cdf(count) >= probability

        return smallest(reaches, guess, np.maximum(np.ceil(0.1 * self.std), 1.0))

    def score(self, y: Array) -> Array:
        """How far counts are from the middle of their distributions, as normal deviations.

        A count lies in the central interval that leaves a probability t on either side if neither that of
        at most so many nor that of at least so many is below t: the score is the normal quantile of the
        smaller of the two, and 0 in the middle. Beyond 6, where probabilities are no longer told from
        zero and one, an end of the interval goes on as far per deviation as it came until there.
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
        """Central intervals, both of whose ends belong to them."""
        if score > FARTHEST:
            (lower, upper), (below, above) = self._farthest()
            beyond = score * (1.0 + _ROUNDING) / FARTHEST - 1.0
            lower = np.maximum(np.ceil(lower - beyond * below), 0.0)
            return np.column_stack([lower, np.floor(upper + beyond * above)])
        tail = tail_beyond(score)
        return np.column_stack([self.ppf(tail), self.ppf(1.0 - tail)])

    def _farthest(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Ends of the widest intervals by probability, and how far these are from the median."""
        tail = tail_beyond(FARTHEST)
        lower, middle, upper = (self.ppf(at) for at in (tail, 0.5, 1.0 - tail))
        return (lower, upper), (np.maximum(middle - lower, 1.0), np.maximum(upper - middle, 1.0))

    def crps(self, y: Array) -> Array:
        """Sum of ``F(k)^2`` over counts below ``y`` and of ``(1 - F(k))^2`` from there on."""
        low = np.minimum(self.ppf(_CRPS_TAIL), np.floor(y))
        high = np.maximum(self.ppf(1.0 - _CRPS_TAIL), np.ceil(y))
        middle = np.ceil(y)
        return self._squares(low, middle, 0.0) + self._squares(middle, high + 1.0, 1.0)

    def _squares(self, low: Array, high: Array, target: float) -> Array:
        """Sum of ``(F(k) - target)^2`` over ``low <= k < high``, in steps where these are many."""
        n_points = int(np.clip((high - low).max(initial=0.0), 1.0, _CRPS_POINTS))
        result = np.empty(len(low))
        size = max(_CHUNK_VALUES // n_points, 1)
        for start in range(0, len(low), size):
            rows = np.arange(start, min(start + size, len(low)))
            span = (high - low)[rows, None]
            # The middle of every step stands for all of its counts; shorter rows have none at the end.
            step = np.maximum(np.ceil(span / n_points), 1.0)
            at = step * np.arange(float(n_points))
            n_counts = np.clip(span - at, 0.0, step)
            points = low[rows, None] + at + np.floor(0.5 * np.maximum(n_counts - 1.0, 0.0))
            below = self.part(np.repeat(rows, n_points)).cdf(np.ravel(points))
            squares = np.square(below.reshape(points.shape) - target)
            result[rows] = (n_counts * squares).sum(axis=1)
        return result


def smallest(
    reaches: Callable[[Array, IntArray], NDArray[np.bool_]], guess: Array, step: Array
) -> Array:
    """The smallest whole numbers of at least 0 that reach: steps out from a guess, then bisection."""
    below, above = np.full(len(guess), -1.0), np.full(len(guess), np.inf)
    step, trial = step.copy(), guess.copy()
    open_rows: IntArray = np.arange(len(guess))
    while len(open_rows):
        now = trial[open_rows]
        reached = reaches(now, open_rows)
        above[open_rows[reached]] = now[reached]
        below[open_rows[~reached]] = now[~reached]
        open_rows = open_rows[above[open_rows] - below[open_rows] > 1.0]
        lower, upper, stride = below[open_rows], above[open_rows], step[open_rows]
        middle = np.floor(0.5 * (lower + upper))
        outward = np.where(np.isinf(upper), lower + stride, np.maximum(upper - stride, lower + 1.0))
        # Between both ends known, halves; with the lower end only assumed (-1), steps down to it.
        trial[open_rows] = np.where(
            np.isinf(upper) | ((lower < 0.0) & (upper - stride > 0.0)), outward, middle
        )
        step[open_rows] = 4.0 * stride
    return above
