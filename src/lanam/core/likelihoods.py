"""Likelihoods ``p(y | f)`` of the link-scale prediction: one small class each.

Each gives the log-density, its slope and its curvature in ``f`` (``gamma`` of the paper's eq. for
``Sigma_d``), all per row and without weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln, log_expit, xlogy

from lanam.core.arrays import Array

#: Rates up to ``exp`` of this can be multiplied by weights, squared and summed.
_LARGEST_LOG_RATE = 300.0


@dataclass(frozen=True)
class Gaussian:
    """``y = f + noise``. Slope and curvature are those of unit noise; the noise scales both."""

    name = "gaussian"
    learns_noise = True

    def log_prob(self, y: Array, f: Array) -> Array:
        """Unit noise, without the constant ``-log(2 pi) / 2``."""
        return -0.5 * (y - f) ** 2

    def slope(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""
        return y - f

    def curvature(self, f: Array) -> Array:
        """Minus its second derivative."""
        return np.ones_like(f)

    def start(self, mean: float) -> float:
        """The intercept of the best constant model."""
        return mean


@dataclass(frozen=True)
class Bernoulli:
    """``y`` is 0 or 1 and ``f`` the log-odds."""

    name = "bernoulli"
    learns_noise = False

    def log_prob(self, y: Array, f: Array) -> Array:
        """Log-density."""
        return np.asarray(y * f + log_expit(-f))

    def slope(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""
        return np.asarray(y - expit(f))

    def curvature(self, f: Array) -> Array:
        """Minus its second derivative."""
        p = expit(f)
        return np.asarray(p * (1.0 - p))

    def start(self, mean: float) -> float:
        """The intercept of the best constant model."""
        return math.log(mean / (1.0 - mean))


@dataclass(frozen=True)
class Poisson:
    """``y`` is a count, or a count per unit of exposure, and ``f`` the logarithm of its rate.

    A count ``y`` with exposure ``e`` and weight ``w`` is the response ``y / e`` with weight ``w e``:
    ``w log p = w e ((y / e) f - exp(f)) + w (y log e - log y!)``, and :meth:`constant` is the rest,
    which ``f`` has no part in.
    """

    name = "poisson"
    learns_noise = False

    def log_prob(self, y: Array, f: Array) -> Array:
        """Log-density, without what depends on the count and its exposure alone."""
        return np.asarray(y * f - _rate(f))

    def slope(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""
        return np.asarray(y - _rate(f))

    def curvature(self, f: Array) -> Array:
        """Minus its second derivative."""
        return _rate(f)

    def start(self, mean: float) -> float:
        """The intercept of the best constant model."""
        return math.log(mean)

    def constant(self, counts: Array, exposure: Array, weight: Array) -> float:
        """What :meth:`log_prob` leaves out, summed over rows: the evidence of the counts has it."""
        return float(weight @ (xlogy(counts, exposure) - gammaln(counts + 1.0)))


def _rate(f: Array) -> Array:
    # A step that goes too far must find a bad value there, not infinity less infinity.
    return np.asarray(np.exp(np.minimum(f, _LARGEST_LOG_RATE)))


Likelihood = Gaussian | Bernoulli | Poisson

LIKELIHOODS: dict[str, Likelihood] = {
    known.name: known for known in (Gaussian(), Bernoulli(), Poisson())
}
