"""Residual distributions: mixtures of Gaussians with mean zero and variance one.

``y = f + s e`` with ``f ~ N(m, v)``, noise of standard deviation ``s`` and ``e`` from the mixture is a
mixture with the same weights: component ``k`` is ``N(m + s c_k, v + s^2 d_k^2)``. So mean and variance are
those of Gaussian noise, ``m`` and ``v + s^2``, and densities and probabilities are sums.

The *normal score* ``u`` of ``y`` is the standard normal quantile of its probability, ``Phi(u) = F(y)``. For
a Gaussian it is ``(y - mean) / std``; otherwise it is nearly linear in ``y`` even far out in the tails,
where probabilities round to zero and one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri_exp, roots_genlaguerre

from lanam.core.arrays import Array
from lanam.core.model.distributions import Continuous

#: Newton's steps in normal scores, which are nearly linear; bisection where they are not.
_MOST_STEPS = 100
_PRECISION = 1e-11
_LOG_TWO_PI = math.log(2.0 * math.pi)
#: Points of the curves of quantiles, at first and at most, and the tolerance in between.
_POINTS, _MOST_POINTS = 33, 4097
_TOLERANCE = 1e-9
#: With fewer rows, quantiles are computed one by one.
_FEW_ROWS = 256
#: From these degrees of freedom on, the noise counts as known: quantiles change by half a per cent.
CERTAIN_DF = 200.0
#: Points of quadrature over an uncertain noise variance: of Gaussian noise, and of mixtures, which are
#: only learned from so many rows that few are enough.
_NODES, _FEW_NODES = 7, 3
#: Rows times pairs of components that are held in memory at once.
_CHUNK_VALUES = 1 << 20


@dataclass(frozen=True)
class NoiseShape:
    """The residual distribution: a mixture of Gaussians with mean zero and variance one.

    Attributes
    ----------
    weights, means, stds : ndarray of shape (K,)
        Of the components, in units of the noise's standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> shape = standardised(np.array([0.9, 0.1]), np.zeros(2), np.array([1.0, 3.0]))
    >>> round(float(shape.weights @ (shape.means**2 + shape.stds**2)), 6)
    1.0
    >>> shape.density([0.0, 3.0]).round(3)
    array([0.5  , 0.007])
    >>> round(shape.skewness, 6), round(shape.excess_kurtosis, 2)  # 0 and 0 of a Gaussian
    (0.0, 5.33)
    """

    weights: Array
    means: Array
    stds: Array

    def as_lists(self) -> dict[str, list[float]]:
        """The components as lists."""
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}

    def density(self, values: Array) -> Array:
        """Density at residuals in units of the noise's standard deviation."""
        distance = (np.asarray(values, dtype=np.float64)[..., None] - self.means) / self.stds
        parts = np.exp(-0.5 * (np.square(distance) + _LOG_TWO_PI)) / self.stds
        return np.asarray(parts @ self.weights)

    @property
    def skewness(self) -> float:
        """Third moment: positive if the right tail is longer."""
        return float(self.weights @ (self.means**3 + 3.0 * self.means * self.stds**2))

    @property
    def excess_kurtosis(self) -> float:
        """Fourth moment less that of a Gaussian: positive for heavy tails."""
        squares = self.means**2 * self.stds**2
        return float(self.weights @ (self.means**4 + 6.0 * squares + 3.0 * self.stds**4)) - 3.0


def standardised(weights: Array, means: Array, stds: Array) -> NoiseShape:
    """A mixture scaled to mean zero and variance one."""
    weights = weights / weights.sum()
    mean = weights @ means
    std = math.sqrt(weights @ (np.square(means - mean) + np.square(stds)))
    return NoiseShape(weights, (means - mean) / std, stds / std)


def integrated_noise(shape: NoiseShape, noise_df: float) -> tuple[float, NoiseShape]:
    """The factor of the noise variance and the residual distribution if the variance is uncertain.

    The precision is Gamma distributed with ``noise_df / 2`` as shape and rate, so that Gaussian noise
    becomes Student's t: a mixture over the precision, by Gauss-Laguerre quadrature.

    Examples
    --------
    >>> factor, student = integrated_noise(GAUSSIAN, 15.0)
    >>> round(factor, 2)  # 15 / (15 - 2)
    1.15
    >>> rows = Mixture(np.zeros(1), np.zeros(1), np.full(1, factor), student)
    >>> rows.ppf(0.975).round(2)  # as Student's t; 1.96 of a Gaussian
    array([2.13])
    """
    if noise_df >= CERTAIN_DF:
        return 1.0, shape
    n_nodes = _NODES if len(shape.weights) == 1 else _FEW_NODES
    nodes, weights = roots_genlaguerre(n_nodes, 0.5 * noise_df - 1.0)
    weights, variances = weights / weights.sum(), 0.5 * noise_df / nodes
    factor = float(weights @ variances)
    stds = np.sqrt(variances / factor)
    return factor, NoiseShape(
        np.outer(weights, shape.weights).ravel(),
        np.outer(stds, shape.means).ravel(),
        np.outer(stds, shape.stds).ravel(),
    )


GAUSSIAN = NoiseShape(np.ones(1), np.zeros(1), np.ones(1))


@dataclass(frozen=True)
class Mixture(Continuous):
    """Predictive distributions of rows, by mean and variance of ``f``, noise variance and shape.

    Examples
    --------
    >>> import numpy as np
    >>> shape = standardised(np.array([0.9, 0.1]), np.zeros(2), np.array([1.0, 3.0]))
    >>> rows = Mixture(np.array([5.0]), np.array([0.1]), np.array([1.0]), shape)
    >>> rows.normal_score(np.array([5.0])).round(6) + 0.0
    array([0.])
    >>> upper = rows.at_score(1.645)
    >>> rows.normal_score(upper).round(6)
    array([1.645])
    """

    centre: Array
    variance: Array
    noise_variance: Array
    shape: NoiseShape

    @property
    def mean(self) -> Array:
        return self.centre

    @property
    def std(self) -> Array:
        return np.asarray(np.sqrt(self.variance + self.noise_variance))

    @property
    def tolerance(self) -> float:
        return _TOLERANCE if len(self.shape.weights) > 1 else 0.0

    def log_prob(self, y: Array) -> Array:
        return self._by_parts(_log_density, y)

    def normal_score(self, y: Array) -> Array:
        return self._by_parts(_scores, y)

    def at_score(self, score: float) -> Array:
        """The observation of each row with this normal score.

        In units of the row's standard deviation it depends only on the proportion of the variance that is
        not noise, so that of many rows is interpolated on a curve over these.
        """
        std = self.std
        if len(self.shape.weights) == 1:
            return self.mean + score * std
        roots = np.sqrt(self.variance) / std
        if len(roots) <= _FEW_ROWS:
            relative = _at_scores(_unit_rows(self.shape, roots), score)
        else:
            relative = _curve(self.shape, score, roots.min(), roots.max())(roots)
        return self.mean + std * relative

    def crps(self, y: Array) -> Array:
        return self._by_parts(_crps, y)

    def sample(self, n_samples: int, rng: np.random.Generator) -> Array:
        size = (n_samples, len(self.centre))
        component = rng.choice(len(self.shape.weights), size, p=self.shape.weights)
        noise = self.shape.means[component] + self.shape.stds[component] * rng.standard_normal(size)
        mean = self.centre + np.sqrt(self.variance) * rng.standard_normal(size)
        return np.asarray(mean + np.sqrt(self.noise_variance) * noise)

    def _by_parts(self, of: Callable[[_Components, Array], Array], values: Array) -> Array:
        result = np.empty(len(self.mean))
        n_rows = max(1, _CHUNK_VALUES // len(self.shape.weights) ** 2)
        for start in range(0, len(result), n_rows):
            part = slice(start, start + n_rows)
            result[part] = of(self._components(part), values[part])
        return result

    def _components(self, part: slice) -> _Components:
        noise = np.sqrt(self.noise_variance[part])[:, None]
        means = self.mean[part, None] + noise * self.shape.means
        variances = self.variance[part, None] + np.square(noise * self.shape.stds)
        return _Components(np.log(self.shape.weights), means, np.sqrt(variances))


def gaussian_log_density(y: Array, mean: Array, variance: Array) -> Array:
    """Log-density of the Gaussian predictive distribution."""
    return -0.5 * ((y - mean) ** 2 / variance + np.log(2.0 * math.pi * variance))


class _Components(NamedTuple):
    """Log weights (K,), means and standard deviations (n, K) of rows' components."""

    log_weights: Array
    means: Array
    stds: Array


def _log_density(rows: _Components, y: Array) -> Array:
    exponents = -0.5 * np.square((y[:, None] - rows.means) / rows.stds) - np.log(rows.stds)
    return np.asarray(logsumexp(exponents + rows.log_weights, axis=1) - 0.5 * _LOG_TWO_PI)


def _scores(rows: _Components, y: Array) -> Array:
    distance = (y[:, None] - rows.means) / rows.stds
    if len(rows.log_weights) == 1:
        return np.asarray(distance[:, 0])
    below = logsumexp(rows.log_weights + log_ndtr(distance), axis=1)
    above = logsumexp(rows.log_weights + log_ndtr(-distance), axis=1)
    # From the smaller tail: the other rounds to one.
    return np.where(below < above, _score_of(below), -_score_of(above))


def _curve(shape: NoiseShape, score: float, low: float, high: float) -> CubicSpline:
    """The standardised value at a normal score, by the standard deviation that is not noise."""
    n_points, high = _POINTS, max(high, low + 1e-6)
    while True:
        points = np.linspace(low, high, n_points)
        curve = CubicSpline(points, _at_scores(_unit_rows(shape, points), score))
        between = 0.5 * (points[:-1] + points[1:])
        error = _scores(_unit_rows(shape, between), curve(between)) - score
        if np.abs(error).max() <= _TOLERANCE or n_points >= _MOST_POINTS:
            return curve
        n_points = 2 * n_points - 1


def _unit_rows(shape: NoiseShape, roots: Array) -> _Components:
    """Rows of mean zero and variance one, with squares of ``roots`` that are not noise."""
    variance = np.minimum(np.square(roots), 1.0)
    return Mixture(np.zeros(len(roots)), variance, 1.0 - variance, shape)._components(slice(None))


def _at_scores(rows: _Components, score: float) -> Array:
    """By Newton's method within the bracket of the components' own values."""
    ends = rows.means + rows.stds * score
    low, high = ends.min(axis=1), ends.max(axis=1)
    y = np.clip(score, low, high)
    for _ in range(_MOST_STEPS):
        scores = _scores(rows, y)
        excess = scores - score
        high, low = np.where(excess > 0.0, y, high), np.where(excess < 0.0, y, low)
        # du/dy = p(y) / phi(u)
        log_slope = _log_density(rows, y) + 0.5 * (np.square(scores) + _LOG_TWO_PI)
        following = y - excess * np.exp(np.clip(-log_slope, -300.0, 300.0))
        inside = (following > low) & (following < high)
        following = np.where(inside, following, 0.5 * (low + high))
        before, y = y, np.where(excess == 0.0, y, following)
        if np.all(np.abs(y - before) <= _PRECISION):
            break
    return np.asarray(y)


def _crps(rows: _Components, y: Array) -> Array:
    """Mean distance from the observation less half of that between two draws."""
    weights = np.exp(rows.log_weights)
    result = _mean_distance(y[:, None] - rows.means, rows.stds) @ weights
    between = rows.means[:, :, None] - rows.means[:, None, :]
    both = np.hypot(rows.stds[:, :, None], rows.stds[:, None, :])
    return np.asarray(result - 0.5 * ((_mean_distance(between, both) @ weights) @ weights))


def _mean_distance(mean: Array, std: Array) -> Array:
    """Mean of the absolute value of a Gaussian."""
    ratio = mean / std
    density = np.exp(-0.5 * (np.square(ratio) + _LOG_TWO_PI))
    return np.asarray(2.0 * std * density + mean * (2.0 * ndtr(ratio) - 1.0))


def _score_of(log_probability: Array) -> Array:
    return np.asarray(ndtri_exp(np.minimum(log_probability, 0.0)))
