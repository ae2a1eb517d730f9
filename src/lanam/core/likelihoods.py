"""Likelihoods ``p(y | f)`` of the link-scale prediction: one small class each.

Each gives the log-density, its slope and its curvature in ``f`` (``gamma`` of the paper's eq. for
``Sigma_d``), all per row and without weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from lanam.core.arrays import Array


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


Likelihood = Gaussian | Bernoulli

LIKELIHOODS: dict[str, Likelihood] = {"gaussian": Gaussian(), "bernoulli": Bernoulli()}


def gaussian_log_density(y: Array, mean: Array, variance: Array) -> Array:
    """Log-density of the Gaussian predictive distribution."""
    return -0.5 * ((y - mean) ** 2 / variance + np.log(2.0 * math.pi * variance))


def moderated_log_odds(mean: Array, variance: Array) -> Array:
    """Log-odds of ``E[sigmoid(f)]`` for Gaussian ``f``, by MacKay's probit approximation."""
    return mean / np.sqrt(1.0 + math.pi / 8.0 * variance)
