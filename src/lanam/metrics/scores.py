"""Scores of predicted numbers: densities, errors, intervals."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from lanam.core.model.mixtures import gaussian_log_density
from lanam.metrics.checks import Weights, read_ends, read_gaussian, read_vector, weighted_mean


def gaussian_nll(
    y: ArrayLike, mean: ArrayLike, std: ArrayLike, *, sample_weight: Weights = None
) -> float:
    """Mean negative log density of y under N(mean, std^2), in nats and in y's own unit.

    Examples
    --------
    >>> round(gaussian_nll([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]), 3)
    1.169
    """
    target, mean, std = read_gaussian(y, mean, std)
    return -weighted_mean(gaussian_log_density(target, mean, std**2), sample_weight)


def rmse(y: ArrayLike, mean: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Root mean squared error.

    Examples
    --------
    >>> rmse([0.0, 3.0], [0.0, -1.0], sample_weight=[3, 1])
    2.0
    """
    target = read_vector("y", y)
    return math.sqrt(
        weighted_mean((target - read_vector("mean", mean, len(target))) ** 2, sample_weight)
    )


def crps_gaussian(
    y: ArrayLike, mean: ArrayLike, std: ArrayLike, *, sample_weight: Weights = None
) -> float:
    """Mean continuous ranked probability score of N(mean, std^2), in y's unit: the lower the better.

    The integral of ``(F(t) - 1{y <= t})^2`` over t, in closed form (Gneiting and Raftery 2007). Of a
    forecast without spread it is the absolute error.

    Examples
    --------
    >>> round(crps_gaussian([0.0], [0.0], [1.0]), 4)
    0.2337
    """
    target, mean, std = read_gaussian(y, mean, std)
    z = (target - mean) / std
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    scores = std * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / math.sqrt(math.pi))
    return weighted_mean(scores, sample_weight)


def crps_sample(y: ArrayLike, draws: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Mean continuous ranked probability score of forecasts given as draws (n_draws, n).

    That of the draws' own step function: ``E|X - y| - E|X - X'| / 2`` with X and X' any of the draws.
    Draws are of y, with its noise: those of :meth:`lanam.LANAMRegressor.sample` are of the mean.

    Examples
    --------
    >>> crps_sample([0.0], [[-1.0], [1.0]])
    0.5
    """
    target = read_vector("y", y)
    table = np.asarray(draws, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(target) or not len(table):
        raise ValueError(
            f"draws must have a column for each of the {len(target)} rows of y, as (n_draws, n), and "
            f"have the shape {table.shape}"
        )
    if not np.isfinite(table).all():
        raise ValueError("draws have values that are not finite numbers")
    table = np.sort(table, axis=0)
    n_draws = len(table)
    # Of sorted draws, each is added for those below it and subtracted for those above.
    sign = 2.0 * np.arange(1, n_draws + 1) - n_draws - 1.0
    spread = sign @ table / n_draws**2
    return weighted_mean(np.abs(table - target).mean(axis=0) - spread, sample_weight)


def interval_coverage(
    y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, sample_weight: Weights = None
) -> float:
    """Share of y inside [lower, upper], ends included.

    Examples
    --------
    >>> interval_coverage([1.0, 2.0, 3.0, 4.0], 1.0, 3.0)
    0.75
    """
    target = read_vector("y", y)
    lower, upper = read_ends(lower, upper, len(target))
    return weighted_mean(((lower <= target) & (target <= upper)).astype(np.float64), sample_weight)


def interval_width(lower: ArrayLike, upper: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Mean width of intervals.

    Examples
    --------
    >>> interval_width([0.0, 0.0], [1.0, 3.0])
    2.0
    """
    lower, upper = read_ends(lower, upper)
    return weighted_mean(upper - lower, sample_weight)
