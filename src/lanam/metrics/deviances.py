"""Deviances of counts, amounts and proportions: twice the log-likelihood that perfect means would gain."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from lanam.core.arrays import Array
from lanam.errors import InputError
from lanam.metrics.checks import Weights, read_positive, weighted_mean


def tweedie_deviance(
    y: ArrayLike, mean: ArrayLike, power: float, *, sample_weight: Weights = None
) -> float:
    """Mean Tweedie deviance; lower is better.

    The power of the mean to which the variance is proportional: 1 is Poisson's deviance, 2 Gamma's, between
    them that of amounts that can be zero. For rates pass the exposures as weights.

    Examples
    --------
    >>> round(tweedie_deviance([0.0, 2.0], [1.0, 1.0], 1), 3)
    1.386
    >>> round(tweedie_deviance([1.0, 2.0], [1.0, 1.0], 2), 3)
    0.307
    """
    target = read_positive("y", y, zero=power < 2.0)
    centre = read_positive("mean", mean, len(target))
    if not 1.0 <= power <= 2.0:
        problem, remedy = "{given} is none of a Tweedie deviance", "use a number from 1 to 2"
        raise InputError(problem, remedy, argument="power", value=power)
    return weighted_mean(_tweedie(target, centre, float(power)), sample_weight)


def _tweedie(y: Array, mean: Array, p: float) -> Array:
    if p == 1.0:
        return np.asarray(2.0 * (xlogy(y, y / mean) - y + mean))
    if p == 2.0:
        return np.asarray(2.0 * (y / mean - 1.0 - np.log(y / mean)))
    best = y ** (2.0 - p) / ((1.0 - p) * (2.0 - p))
    slope = y * mean ** (1.0 - p) / (1.0 - p)
    return np.asarray(2.0 * (best - slope + mean ** (2.0 - p) / (2.0 - p)))


def negative_binomial_deviance(
    y: ArrayLike, mean: ArrayLike, dispersion: float, *, sample_weight: Weights = None
) -> float:
    """Mean deviance of counts with the variance ``mean + dispersion mean^2``; lower is better.

    Examples
    --------
    >>> round(negative_binomial_deviance([0.0, 2.0], [1.0, 1.0], 0.5), 3)
    1.046
    """
    target = read_positive("y", y, zero=True)
    centre = read_positive("mean", mean, len(target))
    if not dispersion > 0.0:
        raise InputError("{given} must be positive", argument="dispersion", value=dispersion)
    logs = np.log1p(dispersion * target) - np.log1p(dispersion * centre)
    ratio = xlogy(target, target / centre)
    return weighted_mean(2.0 * (ratio - (target + 1.0 / dispersion) * logs), sample_weight)


def binomial_deviance(
    y: ArrayLike, mean: ArrayLike, trials: ArrayLike, *, sample_weight: Weights = None
) -> float:
    """Mean deviance of successes among trials, by their expected number; lower is better.

    Examples
    --------
    >>> round(binomial_deviance([1.0, 4.0], [2.0, 3.0], [5.0, 5.0]), 3)
    0.915
    """
    target = read_positive("y", y, zero=True)
    centre = read_positive("mean", mean, len(target))
    number = read_positive("trials", trials, len(target))
    if (bad := (target > number) | (centre >= number)).any():
        row = int(np.argmax(bad))
        problem = "y and mean must not exceed {argument}, and they do in row {row}"
        raise InputError(problem, argument="trials", row=row)
    failures = xlogy(number - target, (number - target) / (number - centre))
    return weighted_mean(2.0 * (xlogy(target, target / centre) + failures), sample_weight)
