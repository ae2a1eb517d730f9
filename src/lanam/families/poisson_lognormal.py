"""Poisson-lognormal distributions: what a Gaussian of the log rate ``f`` says about a count.

Pure functions of arrays: mean and variance of ``f`` in, moments, densities and quantiles of ``y`` out.

A count is ``y ~ Poisson(e exp(f))`` with exposure ``e`` and ``f ~ N(m, v)``: a Poisson-lognormal
mixture. Its integrals have no closed form, but every integrand below has the shape

    exp(-a (exp(d) - 1 - d) - d^2 / (2 v))

around its mode, a Gaussian with one tail cut short, and falls off on both sides. On such functions the
trapezoidal rule converges faster than any power of its step, so a lattice of some 30 points is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln, logsumexp, ndtr, ndtri, wrightomega

from lanam.core.arrays import Array, IntArray
from lanam.core.model.distributions import Discrete, smallest

#: The largest logarithm of a moment: more would be infinite.
_LARGEST_LOG = 700.0

#: Integrands are followed until they have fallen by ``exp`` of this.
_FALL = 30.0
#: Lattice steps in standard deviations, and at most: ``exp(-2 pi^2 / step^2)`` of the integral is
#: lost with a Gaussian of half the variance, ``exp(-pi^2 / step)`` with ``exp(-exp(d))``.
_STEP = 0.6
_LARGEST_STEP = 0.4
_MOST_POINTS = 1 << 14
#: A rate that is known exactly is the limit of a small variance, and this is small enough.
_LEAST_VARIANCE = 1e-100
#: Rows times points that are held at once.
_CHUNK_VALUES = 1 << 20

#: Beyond this a count's own noise is a millionth of it: its quantiles are those of its rate.
_LARGEST_COUNT = 1e12
_LARGEST_LOG_COUNT = math.log(_LARGEST_COUNT)


def dispersed(
    mean: Array, variance: Array, exposure: Array, dispersion: float
) -> tuple[Array, Array, Array]:
    """Mean and variance of a log rate that makes the variance of a count ``dispersion`` times its mean.

    What a count varies beyond a Poisson distribution is taken as a variation of its rate: lognormal,
    with mean one and the variance ``(phi - 1) / mean`` that it takes.

    Examples
    --------
    >>> import numpy as np
    >>> more = dispersed(np.log([5.0]), np.zeros(1), np.ones(1), 3.0)
    >>> poisson_mean(*more).round(6), poisson_variance(*more).round(6)
    (array([5.]), array([15.]))
    """
    more = np.log1p((dispersion - 1.0) * np.exp(-(np.log(exposure) + mean + 0.5 * variance)))
    return mean - 0.5 * more, variance + more, exposure


def poisson_mean(mean: Array, variance: Array | float, exposure: Array) -> Array:
    """Mean of a count: that of the lognormal rate, ``e exp(m + v / 2)``."""
    return _exp(np.log(exposure) + mean + 0.5 * variance)


def poisson_variance(mean: Array, variance: Array, exposure: Array) -> Array:
    """Variance of a count: its mean for the Poisson noise, and the variance of its rate.

    Examples
    --------
    >>> import numpy as np
    >>> poisson_variance(np.log([5.0, 5.0]), np.array([0.0, 0.1]), np.ones(2)).round(2)
    array([5.  , 8.16])
    """
    log_mean = np.log(exposure) + mean + 0.5 * variance
    with np.errstate(divide="ignore", over="ignore"):
        log_relative = np.log(np.expm1(variance))  # of Var(rate) / E(rate)^2
    return _exp(log_mean) + _exp(2.0 * log_mean + log_relative)


def _exp(log_value: Array) -> Array:
    return np.asarray(np.exp(np.minimum(log_value, _LARGEST_LOG)))


def poisson_log_density(y: Array, mean: Array, variance: Array, exposure: Array) -> Array:
    """Log-probability of counts: the logarithm of the integral of ``Poisson(y | e exp(f)) N(f | m, v)``.

    Parameters
    ----------
    y, mean, variance, exposure : ndarray of shape (n,)

    Returns
    -------
    log_density : ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(2)
    >>> poisson_log_density(3.0 * one, 0.0 * one, np.array([0.0, 1.0]), one).round(3)
    array([-2.792, -2.517])
    """
    y, mean, variance, exposure = _rows(y, mean, variance, exposure)
    variance = np.maximum(variance, _LEAST_VARIANCE)
    # The integrand's mode solves  y - a = (f - m) / v  for a = e exp(f). With t = a v that is
    # t + log t = log(v e) + m + v y, whose solution is Wright's omega.
    ahead = np.log(exposure) + mean + variance * y
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


def poisson_cdf(count: Array, mean: Array, variance: Array, exposure: Array) -> Array:
    """Probability of at most so many counts, which may be -1.

    A count is at most ``k`` when the time ``G ~ Gamma(k + 1)`` of event ``k + 1`` lies beyond ``e exp(f)``.
    So there are two ways to write the probability: the mean over ``f`` of ``P(G > e exp(f))``, and the
    mean over ``G`` of ``P(f < log(G / e))``. The narrower of the two distributions is summed over its
    lattice, on which the other's function is smooth.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(3)
    >>> poisson_cdf(np.array([-1.0, 0.0, 5.0]), one, 0.1 * one, one).round(3)
    array([0.   , 0.08 , 0.906])
    """
    count, mean, variance, exposure = _rows(count, mean, variance, exposure)
    variance = np.maximum(variance, _LEAST_VARIANCE)
    shape = np.maximum(count + 1.0, 1.0)
    log_rate = np.log(exposure) + mean
    result = np.empty(len(count))
    over_rates = variance * shape < 1.0

    def mean_over_rates(rows: IntArray, d: Array, weight: Array) -> Array:
        rate = np.exp(np.minimum(log_rate[rows, None] + d, _LARGEST_LOG))
        return np.asarray((weight * gammaincc(shape[rows, None], rate)).sum(axis=1))

    def mean_over_times(rows: IntArray, d: Array, weight: Array) -> Array:
        # The logarithm of a Gamma(k) variable has its mode at log k.
        excess = (np.log(shape[rows]) - log_rate[rows])[:, None] + d
        deviation = np.sqrt(variance[rows, None])
        return np.asarray((weight * ndtr(excess / deviation)).sum(axis=1))

    rows = np.flatnonzero(over_rates)
    nothing = np.zeros(len(rows))
    result[rows] = _means(mean_over_rates, rows, nothing, variance[rows])
    rows = np.flatnonzero(~over_rates)
    endless = np.full(len(rows), np.inf)
    result[rows] = _means(mean_over_times, rows, shape[rows], endless)
    return np.where(count < 0.0, 0.0, result)


def poisson_quantile(probability: float, mean: Array, variance: Array, exposure: Array) -> Array:
    """The smallest count that is not exceeded with at least this probability.

    Parameters
    ----------
    probability : float
        Between 0 and 1.
    mean, variance, exposure : ndarray of shape (n,)

    Returns
    -------
    quantile : ndarray of shape (n,)
        Whole numbers. Beyond 10^12, quantiles of the rate.

    Examples
    --------
    >>> import numpy as np
    >>> mean, variance = np.log([0.1, 3.0, 3.0, 1e6]), np.array([0.01, 0.0, 1.0, 1e-4])
    >>> poisson_quantile(0.9, mean, variance, np.ones(4))
    array([0.000000e+00, 5.000000e+00, 1.100000e+01, 1.012962e+06])
    """
    mean, variance, exposure = _rows(mean, variance, exposure)
    z = float(ndtri(probability))
    log_rate = np.log(exposure) + mean + z * np.sqrt(variance)
    result = np.ceil(_exp(log_rate))
    rows = np.flatnonzero(result < _LARGEST_COUNT)

    def reaches(count: Array, index: IntArray) -> NDArray[np.bool_]:
        at = rows[index]
        return poisson_cdf(count, mean[at], variance[at], exposure[at]) >= probability

    guess, step = _guess(z, mean[rows], variance[rows], exposure[rows])
    result[rows] = smallest(reaches, guess, step)
    return result


def _guess(z: float, mean: Array, variance: Array, exposure: Array) -> tuple[Array, Array]:
    """About where a count's quantile is, and how far off that may be."""
    log_rate = np.log(exposure) + mean
    rate = np.exp(log_rate + z * np.sqrt(variance))
    # Of a rate that is known well, the quantile by Cornish and Fisher from mean, variance and skewness.
    known = np.minimum(variance, 1.0)
    centre = np.exp(np.clip(log_rate + 0.5 * known, -_LARGEST_LOG_COUNT, _LARGEST_LOG_COUNT))
    relative = np.expm1(known)
    square = centre + centre**2 * relative
    third = centre + 3.0 * centre**2 * relative + centre**3 * relative**2 * (relative + 3.0)
    spread = np.sqrt(square)
    near = centre + z * spread + (z**2 - 1.0) / 6.0 * third / square - 0.5
    # Of one that is not, the rate's own quantile with the noise on top.
    far = rate + z * np.sqrt(rate)
    guess = np.where(variance < 0.3, near, far)
    return np.maximum(np.ceil(guess), 0.0), np.ceil(0.02 * spread)


@dataclass(frozen=True)
class PoissonLognormal(Discrete):
    """Counts whose log rates are ``N(log_mean, log_variance)``, over an exposure (n,)."""

    log_mean: Array
    log_variance: Array
    exposure: Array

    @property
    def _moments(self) -> tuple[Array, Array, Array]:
        return self.log_mean, self.log_variance, self.exposure

    @property
    def mean(self) -> Array:
        return poisson_mean(*self._moments)

    @property
    def std(self) -> Array:
        return np.asarray(np.sqrt(poisson_variance(*self._moments)))

    def cdf(self, y: Array) -> Array:
        return poisson_cdf(np.floor(y), *self._moments)

    def ppf(self, probability: float) -> Array:
        return poisson_quantile(probability, *self._moments)

    def log_prob(self, y: Array) -> Array:
        """Log-probability of counts."""
        return poisson_log_density(y, *self._moments)

    def sample(self, n_samples: int, rng: np.random.Generator) -> Array:
        normal = rng.standard_normal((n_samples, len(self.log_mean)))
        rate = poisson_mean(self.log_mean + np.sqrt(self.log_variance) * normal, 0.0, self.exposure)
        return rng.poisson(np.minimum(rate, 1e18)).astype(np.float64)


# the lattice of exp(-shape (exp(d) - 1 - d) - d^2 / (2 variance))


def _means(
    function: Callable[[IntArray, Array, Array], Array],
    rows: IntArray,
    shape: Array,
    variance: Array,
) -> Array:
    """Means of a function of ``d`` over the density of each of the rows."""
    result = np.empty(len(rows))
    deviation = _deviation(shape, variance)
    for part, n_points in _batches(shape, variance):
        x, exponent = _lattice(shape[part], variance[part], n_points)
        weight = np.exp(exponent)
        weight /= weight.sum(axis=1, keepdims=True)
        result[part] = function(rows[part], deviation[part, None] * x, weight)
    return result


def _batches(shape: Array, variance: Array) -> Iterator[tuple[IntArray, int]]:
    """Rows that need about as many points, in parts that fit into memory."""
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


def _rows(*arrays: Array) -> list[Array]:
    """The arrays as vectors of the same length."""
    return [np.asarray(a, dtype=np.float64) for a in np.broadcast_arrays(*arrays)]
