"""Numbers with heavy-tailed noise: Student's t, whose degrees of freedom are learned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from scipy.special import gammaln

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.core.model.fitted import FittedModel
from lanam.core.model.mixtures import NoiseShape
from lanam.families.gaussian import GaussianFamily

#: The lattice of the logarithm of the precision, in its standard deviations, up to where the density has
#: fallen by ``exp`` of this.
_STEP, _FALL = 0.5, 18.0
#: Newton's steps to the location of a sample.
_STEPS = 50


@dataclass(frozen=True)
class StudentT(Likelihood):
    """``y = f + scale * e`` with Student's t for ``e``. Its curvature is the expected one."""

    scale: float = 0.5
    degrees_of_freedom: float = 5.0

    name = "student"
    standardised = True
    # The variance of the noise is finite.
    learned = MappingProxyType({"scale": (1e-4, 10.0), "degrees_of_freedom": (2.05, 1000.0)})

    def log_prob(self, y: Array, f: Array) -> Array:
        df = self.degrees_of_freedom
        constant = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * np.log(df * np.pi)
        return np.asarray(constant - np.log(self.scale) - 0.5 * self.deviance(y, f))

    def deviance(self, y: Array, f: Array) -> Array:
        df = self.degrees_of_freedom
        return np.asarray((df + 1.0) * np.log1p(np.square((y - f) / self.scale) / df))

    def gradient(self, y: Array, f: Array) -> Array:
        df = self.degrees_of_freedom
        return np.asarray((df + 1.0) * (y - f) / (df * self.scale**2 + np.square(y - f)))

    def curvature(self, f: Array) -> Array:
        df = self.degrees_of_freedom
        return np.full_like(f, (df + 1.0) / ((df + 3.0) * self.scale**2))

    def fit_intercept_only(self, y: Array, weight: Array) -> float:
        order = np.argsort(y)
        half = np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum())
        location = float(y[order[half]])
        for _ in range(_STEPS):
            f = np.full_like(y, location)
            total = float(weight @ self.curvature(f))
            location += float(weight @ self.gradient(y, f)) / total
        return location

    def in_unit(self, scale: float) -> StudentT:
        return replace(self, scale=self.scale * scale)


@lru_cache(maxsize=64)
def as_mixture(degrees_of_freedom: float) -> tuple[float, NoiseShape]:
    """Student's t as a mixture of Gaussians over its precision: its variance, and shape at variance one.

    The logarithm of the precision has a smooth density, on which a lattice is exact to rounding but for the
    tail that it leaves out.

    Examples
    --------
    >>> variance, shape = as_mixture(8.0)
    >>> round(variance, 4), round(shape.excess_kurtosis, 2)  # 8 / (8 - 2), 6 / (8 - 4)
    (1.3333, 1.5)
    """
    half = 0.5 * degrees_of_freedom
    logs = np.arange(
        -_FALL / min(half, 1.0), np.log1p(_FALL) + _STEP, _STEP / np.sqrt(max(half, 1.0))
    )
    exponent = half * (logs - np.exp(logs) + 1.0)
    logs, exponent = logs[exponent > -_FALL], exponent[exponent > -_FALL]
    weights, variances = np.exp(exponent) / np.exp(exponent).sum(), np.exp(-logs)
    variance = float(weights @ variances)
    return variance, NoiseShape(weights, np.zeros(len(logs)), np.sqrt(variances / variance))


class StudentFamily(GaussianFamily):
    """Numbers with heavy-tailed additive noise."""

    name = StudentT.name

    def likelihood(self, n_classes: int = 0) -> Likelihood:
        return StudentT()

    def bounds_of(self, n_parameters: int) -> Sequence[tuple[float, float]]:
        """The scale is in the unit of y."""
        return (0.0, math.inf), StudentT.learned["degrees_of_freedom"]

    def shown_parameters(self, model: FittedModel) -> dict[str, float]:
        return {"degrees of freedom": model.parameters[1]}

    def finished(self, model: FittedModel) -> FittedModel:
        """The model with the variance and the distribution of its noise."""
        scale, df = model.parameters
        variance, shape = as_mixture(df)
        return replace(model, noise_variance=scale**2 * variance, shape=shape)
