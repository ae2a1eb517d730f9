"""Poisson-lognormal counts: ``y ~ Poisson(e exp(f))`` with exposure ``e`` and ``f ~ N(m, v)``.

The integrals over ``f`` have no closed form, but every integrand below has the shape

    exp(-a (exp(d) - 1 - d) - d^2 / (2 v))

around its mode: a Gaussian with one shorter tail. On such functions the trapezoidal rule converges faster
than any power of its step, so a lattice of about 30 points is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaincc, gammaln, logsumexp, ndtr, ndtri, wrightomega

from lanam.core.arrays import Array, IntArray
from lanam.core.model.distributions import Discrete
from lanam.families.links import LARGEST_LOG

#: Integrands are followed until they have fallen by ``exp`` of this.
_FALL = 30.0
#: Lattice steps in standard deviations, and at most: ``exp(-2 pi^2 / step^2)`` of the integral is
#: lost with a Gaussian of half the variance, ``exp(-pi^2 / step)`` with ``exp(-exp(d))``.
_STEP = 0.6
_LARGEST_STEP = 0.4
_MOST_POINTS = 1 << 14
#: The variance of a known rate: the limit zero would divide by zero.
_LEAST_VARIANCE = 1e-100
#: Rows times points that are held in memory at once.
_CHUNK_VALUES = 1 << 20

#: Above this count the Poisson noise is a millionth of it, and quantiles are those of the rate.
_LARGEST_COUNT = 1e12
_LARGEST_LOG_COUNT = math.log(_LARGEST_COUNT)


@dataclass(frozen=True)
class PoissonLognormal(Discrete):
    """Counts whose log rates are ``N(log_mean, log_variance)``, over an exposure (n,).

    Examples
    --------
    >>> import numpy as np
    >>> counts = PoissonLognormal(np.log([0.1, 3.0, 1e6]), np.array([0.0, 1.0, 1e-4]), np.ones(3))
    >>> counts.ppf(0.9)
    array([0.000000e+00, 1.100000e+01, 1.012962e+06])
    >>> counts.log_prob(np.array([0.0, 3.0, 1e6])).round(3)
    array([ -0.1  ,  -2.184, -10.134])
    """

    log_mean: Array
    log_variance: Array
    exposure: Array

    @classmethod
    def dispersed(
        cls, log_mean: Array, log_variance: Array, exposure: Array, dispersion: float
    ) -> Self:
        """Counts whose variance is ``dispersion`` times their mean, which stays what it was.

        Overdispersion is variation of the rate: a lognormal factor of mean one and variance
        ``(phi - 1) / mean``.

        Examples
        --------
        >>> import numpy as np
        >>> counts = PoissonLognormal.dispersed(np.log([5.0]), np.zeros(1), np.ones(1), 3.0)
        >>> counts.mean.round(6), counts.variance.round(6)
        (array([5.]), array([15.]))
        """
        log_count = np.log(exposure) + log_mean + 0.5 * log_variance
        log_excess = math.log(dispersion - 1.0) if dispersion > 1.0 else -math.inf
        more = np.logaddexp(
            0.0, log_excess - log_count
        )  # of 1 + (phi - 1) / mean, without overflow
        return cls(log_mean - 0.5 * more, log_variance + more, exposure)

    @property
    def _log_rate(self) -> Array:
        return np.asarray(np.log(self.exposure) + self.log_mean)

    @property
    def mean(self) -> Array:
        """That of the lognormal rate, ``e exp(m + v / 2)``."""
        return _exp(self._log_rate + 0.5 * self.log_variance)

    @property
    def variance(self) -> Array:
        """The mean for the Poisson noise, and the variance of the rate."""
        log_mean = self._log_rate + 0.5 * self.log_variance
        with np.errstate(divide="ignore"):  # of Var(rate) / E(rate)^2 = exp(v) - 1
            log_relative = self.log_variance + np.log(-np.expm1(-self.log_variance))
        return _exp(log_mean) + _exp(2.0 * log_mean + log_relative)

    @property
    def std(self) -> Array:
        return np.asarray(np.sqrt(self.variance))

    def log_prob(self, y: Array) -> Array:
        """The logarithm of the integral of ``Poisson(y | e exp(f)) N(f | m, v)`` over ``f``."""
        variance = np.maximum(self.log_variance, _LEAST_VARIANCE)
        # The integrand's mode solves  y - a = (f - m) / v  for a = e exp(f). With t = a v that is
        # t + log t = log(v e) + m + v y, whose solution is Wright's omega.
        ahead = self._log_rate + variance * y
        t = wrightomega(np.log(variance) + ahead)
        # log t = ahead + log v - t, whichever side loses fewer digits.
        log_rate = np.where(t > 1.0, np.log(np.maximum(t, 1.0)) - np.log(variance), ahead - t)
        rate = _exp(log_rate)
        # There the prior's exponent is (f - m)^2 / (2 v) = v (y - a)^2 / 2, and beyond it the integrand is
        # exp(-a (exp(d) - 1 - d) - d^2 / (2 v)). Its integral is set against sqrt(2 pi v), the prior's own.
        peak = y * log_rate - rate - gammaln(y + 1.0) - 0.5 * variance * (y - rate) ** 2
        result = np.empty(len(y))
        for part, n_points in _batches(rate, variance):
            lattice, exponent = _lattice(rate[part], variance[part], n_points)
            step = lattice[:, 1] - lattice[:, 0]
            # The lattice counts in standard deviations s, and s^2 / v = 1 / (1 + t).
            scale = np.log(step) - 0.5 * np.log(2.0 * math.pi * (1.0 + t[part]))
            result[part] = peak[part] + scale + logsumexp(exponent, axis=1)
        return result

    def cdf(self, y: Array) -> Array:
        """Probability of at most ``y`` events, which may be -1.

        A count is at most ``k`` when the time ``G ~ Gamma(k + 1)`` of event ``k + 1`` lies beyond
        ``e exp(f)``: the mean over ``f`` of ``P(G > e exp(f))``, or the mean over ``G`` of
        ``P(f < log(G / e))``. The narrower of the two distributions is integrated on its lattice, where
        the other's function is smooth.
        """
        variance = np.maximum(self.log_variance, _LEAST_VARIANCE)
        shape, log_rate = np.maximum(np.floor(y) + 1.0, 1.0), self._log_rate

        def beyond_rate(rows: IntArray, d: Array) -> Array:
            rate = np.exp(np.minimum(log_rate[rows, None] + d, LARGEST_LOG))
            return np.asarray(gammaincc(shape[rows, None], rate))

        def below_time(rows: IntArray, d: Array) -> Array:
            # The logarithm of a Gamma(k) variable has its mode at log k.
            excess = (np.log(shape[rows]) - log_rate[rows])[:, None] + d
            return np.asarray(ndtr(excess / np.sqrt(variance[rows, None])))

        result, over_rates = np.empty(len(y)), variance * shape < 1.0
        rows = np.flatnonzero(over_rates)
        result[rows] = _means(beyond_rate, rows, np.zeros(len(rows)), variance[rows])
        rows = np.flatnonzero(~over_rates)
        result[rows] = _means(below_time, rows, shape[rows], np.full(len(rows), np.inf))
        return np.where(y < 0.0, 0.0, result)

    def ppf(self, probability: float) -> Array:
        """The smallest count with at least this cumulative probability; above 10^12, of the rate."""
        z = float(ndtri(probability))
        result = np.ceil(_exp(self._log_rate + z * np.sqrt(self.log_variance)))
        rows = np.flatnonzero(result < _LARGEST_COUNT)
        result[rows] = Discrete.ppf(self.part(rows), probability)
        return result

    def _guess(self, z: float) -> tuple[Array, Array]:
        log_rate, variance = self._log_rate, self.log_variance
        rate = _exp(log_rate + z * np.sqrt(variance))
        # For a rate of small variance, the Cornish-Fisher quantile by mean, variance and skewness.
        bounded = np.minimum(variance, 1.0)
        log_centre = np.clip(log_rate + 0.5 * bounded, -_LARGEST_LOG_COUNT, _LARGEST_LOG_COUNT)
        centre, relative = np.exp(log_centre), np.expm1(bounded)
        square = centre + centre**2 * relative
        third = centre + 3.0 * centre**2 * relative + centre**3 * relative**2 * (relative + 3.0)
        spread = np.sqrt(square)
        near = centre + z * spread + (z**2 - 1.0) / 6.0 * third / square - 0.5
        # Otherwise the rate's own quantile with Poisson noise on top.
        guess = np.where(variance < 0.3, near, rate + z * np.sqrt(rate))
        return np.maximum(np.ceil(guess), 0.0), np.ceil(0.02 * spread)

    def sample(self, n_samples: int, rng: np.random.Generator) -> Array:
        normal = rng.standard_normal((n_samples, len(self.log_mean)))
        rate = _exp(np.log(self.exposure) + (self.log_mean + np.sqrt(self.log_variance) * normal))
        return rng.poisson(np.minimum(rate, 1e18)).astype(np.float64)


def _exp(log_value: Array) -> Array:
    return np.asarray(np.exp(np.minimum(log_value, LARGEST_LOG)))


# the lattice of exp(-shape (exp(d) - 1 - d) - d^2 / (2 variance))


def _means(
    function: Callable[[IntArray, Array], Array], rows: IntArray, shape: Array, variance: Array
) -> Array:
    """Means of a function of ``d`` over the density of each of the rows."""
    result = np.empty(len(rows))
    deviation = _deviation(shape, variance)
    for part, n_points in _batches(shape, variance):
        x, exponent = _lattice(shape[part], variance[part], n_points)
        weight = np.exp(exponent)
        weight /= weight.sum(axis=1, keepdims=True)
        result[part] = (weight * function(rows[part], deviation[part, None] * x)).sum(axis=1)
    return result


def _batches(shape: Array, variance: Array) -> Iterator[tuple[IntArray, int]]:
    """Rows that need about the same number of lattice points, in batches of bounded memory."""
    left, right = _reach(shape, variance)
    deviation = _deviation(shape, variance)
    needed = (left + right) * np.maximum(1.0 / _STEP, deviation / _LARGEST_STEP)
    # In sixteens, so that there are few different numbers.
    sixteens = np.minimum(np.ceil((needed + 1.0) / 16.0), _MOST_POINTS / 16).astype(np.intp)
    for number in np.unique(sixteens):
        rows = np.flatnonzero(sixteens == number)
        n_points = 16 * int(number)
        size = max(_CHUNK_VALUES // n_points, 1)
        for start in range(0, len(rows), size):
            yield rows[start : start + size], n_points


def _lattice(shape: Array, variance: Array, n_points: int) -> tuple[Array, Array]:
    """Points ``x = d / deviation`` (n, n_points), and the logarithm of the density there."""
    left, right = _reach(shape, variance)
    x = -left[:, None] + (left + right)[:, None] * np.linspace(0.0, 1.0, n_points)
    d = _deviation(shape, variance)[:, None] * x
    gaussian = 0.5 * x**2 / (1.0 + shape * variance)[:, None]
    return x, -shape[:, None] * (np.expm1(d) - d) - gaussian


def _deviation(shape: Array, variance: Array) -> Array:
    """Standard deviation by the curvature at the mode."""
    return np.asarray(1.0 / np.sqrt(shape + 1.0 / variance))


def _reach(shape: Array, variance: Array) -> tuple[Array, Array]:
    """How many deviations left and right of its mode the density has fallen by ``exp(-_FALL)``.

    From ``exp(-u) - 1 + u >= u^2 / (2 + u)`` on the left, ``exp(u) - 1 - u >= u^2 / 2`` and
    ``exp(u) - 1 - u >= _FALL / shape`` from ``u = log(2 + 2 _FALL / shape)`` on the right.
    """
    deviation = _deviation(shape, variance)
    with np.errstate(divide="ignore", over="ignore"):
        slow = (_FALL + np.sqrt(_FALL**2 + 8.0 * shape * _FALL)) / (2.0 * shape * deviation)
        steep = np.log(2.0 + 2.0 * _FALL / shape) / deviation
    left = np.minimum(np.sqrt(2.0 * _FALL * (1.0 + shape * variance)), slow)
    right = np.minimum(math.sqrt(2.0 * _FALL), steep)
    return left, right
