"""Predictive distributions: what a Gaussian of the link-scale prediction ``f`` says about ``y``.

Pure functions of arrays: mean and variance of ``f`` in, moments, densities and quantiles of ``y`` out.
"""

from __future__ import annotations

import math

import numpy as np

from lanam.core.arrays import Array


def gaussian_log_density(y: Array, mean: Array, variance: Array) -> Array:
    """Log-density of the Gaussian predictive distribution."""
    return -0.5 * ((y - mean) ** 2 / variance + np.log(2.0 * math.pi * variance))


def moderated_log_odds(mean: Array, variance: Array) -> Array:
    """Log-odds of ``E[sigmoid(f)]`` for Gaussian ``f``, by MacKay's probit approximation."""
    return mean / np.sqrt(1.0 + math.pi / 8.0 * variance)
