"""Positive numbers whose logarithms have additive noise: the Gaussian model of ``log y``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.core.model import scoring
from lanam.core.model.distributions import Continuous
from lanam.core.model.fitted import FittedModel
from lanam.core.model.mixtures import GAUSSIAN, Mixture, integrated_noise
from lanam.families.base import Encoding, NewRows, Statistics
from lanam.families.checks import require_positive
from lanam.families.gaussian import Gaussian, GaussianFamily
from lanam.families.links import LARGEST_LOG, LOG, Words

#: Rows times pairs of components that are held in memory at once.
_CHUNK_VALUES = 1 << 20


@dataclass(frozen=True)
class Lognormal(Gaussian):
    """The Gaussian likelihood of ``log y``; the Jacobian is a constant of the encoding."""

    name = "lognormal"


@dataclass(frozen=True)
class LogMixture(Continuous):
    """Exponentials of mixtures of Gaussians.

    Examples
    --------
    >>> import numpy as np
    >>> rows = LogMixture(Mixture(np.zeros(1), np.zeros(1), np.ones(1), GAUSSIAN))
    >>> rows.mean.round(4), rows.ppf(0.5).round(4)  # exp(1/2), exp(0)
    (array([1.6487]), array([1.]))
    """

    log: Mixture

    @property
    def mean(self) -> Array:
        return self._moment(1.0)

    @property
    def std(self) -> Array:
        mean, square = self.mean, self._moment(2.0)
        return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))

    @property
    def tolerance(self) -> float:
        """The largest error of :meth:`at_score`."""
        return self.log.tolerance

    def _moment(self, order: float) -> Array:
        means, stds = self._components(slice(None))
        logs = np.minimum(order * means + 0.5 * (order * stds) ** 2, LARGEST_LOG)
        return np.asarray(np.exp(logs) @ self.log.shape.weights)

    def _components(self, rows: slice) -> tuple[Array, Array]:
        """Means and standard deviations (n, K) of the components of ``log y``."""
        noise, shape = np.sqrt(self.log.noise_variance[rows])[:, None], self.log.shape
        means = self.log.centre[rows, None] + noise * shape.means
        return means, np.sqrt(self.log.variance[rows, None] + np.square(noise * shape.stds))

    def log_prob(self, y: Array) -> Array:
        return self.log.log_prob(np.log(y)) - np.log(y)

    def normal_score(self, y: Array) -> Array:
        with np.errstate(divide="ignore"):
            return self.log.normal_score(np.log(np.maximum(y, 0.0)))

    def at_score(self, score: float) -> Array:
        return np.asarray(np.exp(np.minimum(self.log.at_score(score), LARGEST_LOG)))

    def sample(self, n_samples: int, rng: np.random.Generator) -> Array:
        return np.asarray(np.exp(np.minimum(self.log.sample(n_samples, rng), LARGEST_LOG)))

    def crps(self, y: Array) -> Array:
        """Mean distance from the observation less half of that between two draws, in closed form."""
        result, weights = np.empty(len(y)), self.log.shape.weights
        size = max(_CHUNK_VALUES // len(weights) ** 2, 1)
        for start in range(0, len(y), size):
            rows = slice(start, start + size)
            m, s = self._components(rows)
            mean = np.exp(np.minimum(m + 0.5 * s**2, LARGEST_LOG))
            at, log_y = y[rows, None], np.log(y[rows])[:, None]
            below, upper = ndtr((log_y - m) / s), ndtr((log_y - m) / s - s)
            result[rows] = (at * (2.0 * below - 1.0) + mean * (1.0 - 2.0 * upper)) @ weights
            # E |X - X'| of two lognormal variables, as the value of exchanging one for the other.
            both = np.hypot(s[:, :, None], s[:, None, :])
            between = m[:, :, None] - m[:, None, :]
            first = mean[:, :, None] * (2.0 * ndtr((between + s[:, :, None] ** 2) / both) - 1.0)
            second = mean[:, None, :] * (2.0 * ndtr((between - s[:, None, :] ** 2) / both) - 1.0)
            result[rows] -= 0.5 * (((first - second) @ weights) @ weights)
        return result

    def part(self, rows: Any) -> LogMixture:
        """The distributions of some rows, with repeats."""
        return LogMixture(self.log.part(rows))


class LognormalFamily(GaussianFamily):
    """Positive numbers with multiplicative noise, perhaps heteroscedastic, or not lognormal."""

    name = Lognormal.name
    link = LOG
    words = Words(
        response="median",
        total="log median",
        unit="log median",
        scale="the logarithm of the median",
        ratio="ratio",
        factor="relativity",
        reading=(
            "The logarithm of the median is the intercept plus the contributions of all terms: a "
            "contribution of 0.1 makes y about a tenth larger, whatever the other terms. Each curve below "
            "is one term with its 95% credible band, which is wide where there is little data."
        ),
    )
    positive = True
    needs_statistics = True  # the Jacobian of the logarithm is part of the evidence

    def check(self, y: Array) -> Array:
        return require_positive(y, self.name)

    def statistics(self, target: NDArray[Any], weight: Array, exposure: Array) -> Statistics:
        sums = super().statistics(target, weight, exposure)
        return replace(sums, constant=-float(weight @ np.log(target)))

    def encoding(self, statistics: Statistics) -> Encoding:
        return Encoding(self, constant=statistics.constant)

    def respond(
        self, encoding: Encoding, target: NDArray[Any], weight: Array, exposure: Array
    ) -> tuple[Array, Array]:
        return np.log(target), weight

    def likelihood(self, n_classes: int = 0) -> Likelihood:
        return Lognormal()

    def mean(self, mean: Array, variance: Array) -> Array:
        """The median of y."""
        return self.link.inverse(mean)

    def predict(self, model: FittedModel, rows: NewRows) -> Array:
        return self.predictive(model, rows).mean

    def predictive(self, model: FittedModel, rows: NewRows) -> LogMixture:
        return LogMixture(scoring.predictive(model, rows.columns, rows.offset))

    def expected(self, model: FittedModel, rows: NewRows, link: Array) -> Array:
        """Means of y: medians times the mean of the noise in each row."""
        factor, shape = integrated_noise(model.shape or GAUSSIAN, model.noise_df)
        noise = factor * scoring.noise_variances(model, rows.columns)
        nothing = np.zeros(len(noise))
        return self.link.inverse(link) * LogMixture(Mixture(nothing, nothing, noise, shape)).mean
