"""Numeric targets with Gaussian noise, homoscedastic or heteroscedastic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.core.model import scoring
from lanam.core.model.distributions import Predictive
from lanam.core.model.fitted import FittedModel
from lanam.core.noise.residuals import LogVariance
from lanam.families.base import Family, NewRows
from lanam.families.links import Link, Words


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """``y = f + noise``. Slope and curvature are those of unit noise; the noise scales both."""

    name = "gaussian"
    quadratic = True
    standardised = True
    #: in units of the response's variance
    noise_bounds = (1e-6, 4.0)
    heteroscedastic = True

    def log_prob(self, y: Array, f: Array) -> Array:
        """Unit noise, without the constant ``-log(2 pi) / 2``."""
        return -0.5 * (y - f) ** 2

    def gradient(self, y: Array, f: Array) -> Array:
        return y - f

    def curvature(self, f: Array) -> Array:
        return np.ones_like(f)

    def fit_intercept_only(self, y: Array, weight: Array) -> float:
        return float(weight @ y / weight.sum())


class GaussianFamily(Family):
    """Numeric targets with additive noise."""

    name = Gaussian.name
    words = Words(adds="in the target's unit")
    has_noise = True
    least_noise = 1e-300

    def likelihood(self, n_classes: int = 0) -> Likelihood:
        return Gaussian()

    def mean(self, mean: Array, variance: Array) -> Array:
        return mean

    def predict(self, model: FittedModel, rows: NewRows) -> Array:
        """Means alone are cheaper than distributions."""
        return rows.mean(model)

    def predictive(self, model: FittedModel, rows: NewRows) -> Predictive:
        """Mixtures of Gaussians, scaled by each row's noise."""
        return scoring.predictive(model, rows.columns, rows.offset)

    def noise_std(self, model: FittedModel) -> float:
        return float(np.sqrt(model.noise_variance))


class AnyFamily(GaussianFamily):
    """Before the family is chosen: takes exposures and trials, which decide what suits."""

    takes_exposure = True
    takes_trials = True


class NoiseFamily(Family):
    """The log variance of heteroscedastic noise, so that its model can be explained."""

    name = LogVariance.name
    link = Link("log-variance")
    words = Words(
        total="log noise variance",
        unit="log noise variance",
        scale="the logarithm of the noise's variance",
        ratio="variance ratio",
    )

    def likelihood(self, n_classes: int = 0) -> Likelihood:
        return LogVariance()

    def mean(self, mean: Array, variance: Array) -> Array:
        return mean
