"""Positive amounts whose standard deviation is proportional to their mean: Gamma, with a learned shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood, bounded_exp
from lanam.core.model.fitted import FittedModel
from lanam.families.amounts import AMOUNT, Amount
from lanam.families.base import Family, NewRows
from lanam.families.checks import require_positive
from lanam.families.links import LOG
from lanam.families.over_link import PositiveOverLink


@dataclass(frozen=True)
class Gamma(Amount):
    """``y`` has the mean ``exp(f)`` and the variance ``exp(2 f) / shape``; its curvature is expected."""

    shape: float = 1.0

    name = "gamma"
    learned = MappingProxyType({"shape": (1e-3, 1e8)})

    def log_prob(self, y: Array, f: Array) -> Array:
        scaled = np.log(self.shape) + np.log(y) - f
        density = self.shape * scaled - bounded_exp(scaled) - gammaln(self.shape) - np.log(y)
        return np.asarray(density)

    def deviance(self, y: Array, f: Array) -> Array:
        excess = np.log(y) - f
        return np.asarray(2.0 * (np.expm1(np.minimum(excess, 300.0)) - excess))

    def pearson(self, y: Array, f: Array) -> Array:
        return np.asarray(self.shape * np.square(np.expm1(np.minimum(np.log(y) - f, 150.0))))

    def with_variance(self, ratio: float) -> Gamma:
        return replace(self, shape=self.shape / ratio)

    def gradient(self, y: Array, f: Array) -> Array:
        return np.asarray(self.shape * np.expm1(np.minimum(np.log(y) - f, 300.0)))

    def curvature(self, f: Array) -> Array:
        return np.full_like(f, self.shape)

    def fit_intercept_only(self, y: Array, weight: Array) -> float:
        return float(np.log(weight @ y / weight.sum()))


@dataclass(frozen=True)
class GammaOverLink(PositiveOverLink):
    """Gamma distributions whose log means are normal.

    Examples
    --------
    >>> import numpy as np
    >>> rows = GammaOverLink(np.zeros(1), np.zeros(1), 1.0)  # exponential
    >>> rows.mean.round(6), rows.std.round(6), rows.ppf(0.5).round(6)  # log 2
    (array([1.]), array([1.]), array([0.693147]))
    """

    shape: float

    def width(self) -> Array:
        return np.full(len(self.link_mean), self.shape**-0.5)

    def mean_at(self, link: Array) -> Array:
        return LOG.inverse(link)

    def variance_at(self, link: Array) -> Array:
        return LOG.inverse(2.0 * link) / self.shape

    def log_prob_at(self, y: Array, link: Array) -> Array:
        return Gamma(self.shape).log_prob(y, link)

    def tails_at(self, y: Array, link: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            scaled = self.shape * LOG.inverse(np.log(np.maximum(y, 0.0)) - link)
        return gammainc(self.shape, scaled), gammaincc(self.shape, scaled)

    def draw(self, link: Array, rng: np.random.Generator) -> Array:
        return LOG.inverse(link) * rng.standard_gamma(self.shape, link.shape) / self.shape


class GammaFamily(Family):
    """Positive amounts."""

    name = Gamma.name
    link = LOG
    words = AMOUNT
    positive = True

    def check(self, y: Array) -> Array:
        return require_positive(y, self.name)

    def likelihood(self, n_classes: int = 0) -> Likelihood:
        return Gamma()

    def mean(self, mean: Array, variance: Array) -> Array:
        return self.link.inverse(mean + 0.5 * variance)

    def predict(self, model: FittedModel, rows: NewRows) -> Array:
        return self.mean(*rows.moments(model))

    def predictive(self, model: FittedModel, rows: NewRows) -> GammaOverLink:
        return GammaOverLink(*rows.moments(model), model.parameters[0])

    def finished(self, model: FittedModel) -> FittedModel:
        """The model with its dispersion."""
        return replace(model, noise_variance=1.0 / model.parameters[0])

    def dispersion(self, model: FittedModel) -> float:
        """The squared coefficient of variation."""
        return model.noise_variance
