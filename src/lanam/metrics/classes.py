"""Scores of predicted probabilities of classes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from lanam.core.arrays import Array, IntArray, sum_by
from lanam.explain import require_coverage
from lanam.metrics.checks import (
    Weights,
    read_binary,
    read_classes,
    read_count,
    read_weights,
    weighted_mean,
)
from lanam.metrics.curves import CalibrationCurve, calibrated_range

#: Probabilities are clipped here, so that no single row has an infinite loss.
_LEAST_PROBABILITY = 1e-12

_STRATEGIES = ("uniform", "quantile")


def bernoulli_nll(y: ArrayLike, probability: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Mean negative log-likelihood of zeros and ones, given the probability of a one.

    Probabilities are clipped to [1e-12, 1 - 1e-12].

    Examples
    --------
    >>> round(bernoulli_nll([1, 0], [0.5, 0.5]), 4)
    0.6931
    """
    truth, probability = read_binary(y, probability)
    predicted = np.where(truth == 1.0, probability, 1.0 - probability)
    return -weighted_mean(np.log(np.maximum(predicted, _LEAST_PROBABILITY)), sample_weight)


def categorical_nll(
    y: ArrayLike, probabilities: ArrayLike, *, sample_weight: Weights = None
) -> float:
    """Mean negative log-likelihood of class indices, given the class probabilities (n, C).

    Probabilities are clipped at 1e-12.

    Examples
    --------
    >>> round(categorical_nll([2, 0], [[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]), 4)
    0.6931
    """
    numbers, table = read_classes(y, probabilities)
    predicted = table[np.arange(len(numbers)), numbers]
    return -weighted_mean(np.log(np.maximum(predicted, _LEAST_PROBABILITY)), sample_weight)


def accuracy(y: ArrayLike, probabilities: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Fraction of rows whose most probable class is correct; y are class indices.

    Examples
    --------
    >>> accuracy([0, 1], [[0.9, 0.1], [0.8, 0.2]])
    0.5
    """
    return weighted_mean(_top(y, probabilities)[0], sample_weight)


def brier_score(y: ArrayLike, probability: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Mean squared error of predicted probabilities.

    For the probability of a one (n,), the mean of ``(p - y)^2``. For probabilities of all classes (n, C)
    and class indices, Brier's sum over classes, ``sum_c (p_c - 1{y = c})^2``: with two classes it is twice
    the former.

    Examples
    --------
    >>> round(brier_score([1, 0], [0.9, 0.2]), 4)
    0.025
    >>> round(brier_score([1, 0], [[0.1, 0.9], [0.8, 0.2]]), 4)
    0.05
    """
    if np.ndim(probability) == 2:
        numbers, table = read_classes(y, probability)
        truth: Array = np.eye(table.shape[1])[numbers]
        return weighted_mean(((table - truth) ** 2).sum(axis=1), sample_weight)
    truth, probability = read_binary(y, probability)
    return weighted_mean((probability - truth) ** 2, sample_weight)


def root_brier_score(
    y: ArrayLike, probability: ArrayLike, *, sample_weight: Weights = None
) -> float:
    """Square root of the Brier score, an upper bound of every proper calibration error.

    Unlike these it can be estimated without binning (Gruber and Buettner 2022). The paper's tables have
    the one of a single probability per row; see :func:`brier_score` for the difference.

    Examples
    --------
    >>> round(root_brier_score([1, 0], [0.9, 0.2]), 4)
    0.1581
    """
    return math.sqrt(brier_score(y, probability, sample_weight=sample_weight))


def expected_calibration_error(
    y: ArrayLike,
    probability: ArrayLike,
    n_bins: int = 10,
    *,
    sample_weight: Weights = None,
) -> float:
    """Mean |fraction of ones - mean probability| over bins of equal width, weighted by their rows.

    Its expectation is positive even under calibration: with few rows compare it with the 95th percentile
    under calibration, which :func:`coverage_report` gives.

    Parameters
    ----------
    y : array-like of shape (n,)
        Zeros and ones.
    probability : array-like of shape (n,)
        Of a one.
    n_bins : int, default=10
        Bins [0, 1/n_bins), ..., the last one closed.
    sample_weight : array-like of shape (n,), default=None

    Examples
    --------
    >>> round(expected_calibration_error([0, 0, 1, 1], [0.2, 0.2, 0.9, 0.9]), 3)
    0.15
    """
    return reliability_curve(y, probability, n_bins, sample_weight=sample_weight).error


def top_label_calibration_error(
    y: ArrayLike,
    probabilities: ArrayLike,
    n_bins: int = 10,
    *,
    sample_weight: Weights = None,
) -> float:
    """Expected calibration error of the most probable class (Guo et al. 2017).

    Examples
    --------
    >>> round(top_label_calibration_error([0, 1], [[0.9, 0.1], [0.9, 0.1]]), 3)
    0.4
    """
    right, confidence = _top(y, probabilities)
    return expected_calibration_error(right, confidence, n_bins, sample_weight=sample_weight)


def reliability_curve(
    y: ArrayLike,
    probability: ArrayLike,
    n_bins: int = 10,
    *,
    strategy: str = "uniform",
    coverage: float = 0.95,
    sample_weight: Weights = None,
) -> CalibrationCurve:
    """Fraction of ones by binned predicted probability.

    Parameters
    ----------
    y : array-like of shape (n,)
        Zeros and ones.
    probability : array-like of shape (n,)
        Of a one.
    n_bins : int, default=10
        Number of bins; empty ones are left out.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or with about equal numbers of rows; ties share a bin.
    coverage : float, default=0.95
        Of the range under calibration.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights.

    Returns
    -------
    curve : CalibrationCurve
        Its ``error`` is the expected calibration error in these bins.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=10_000)
    >>> curve = reliability_curve(rng.uniform(size=10_000) < p, p, n_bins=5)
    >>> curve.observed.round(1)
    array([0.1, 0.3, 0.5, 0.7, 0.9])
    """
    truth, probability = read_binary(y, probability)
    n_bins = read_count("n_bins", n_bins)
    coverage = require_coverage(coverage)
    if strategy not in _STRATEGIES:
        raise ValueError(f"strategy={strategy!r} is not known: choose one of {_STRATEGIES}")
    weight = read_weights(sample_weight, len(truth))
    if strategy == "uniform":
        bins = uniform_bins(probability, n_bins)
    else:
        bins = _quantile_bins(probability, weight, n_bins)
    size = sum_by(bins, weight, n_bins)
    held = size > 0.0
    size = size[held]
    expected = sum_by(bins, weight * probability, n_bins)[held] / size
    observed = sum_by(bins, weight * truth, n_bins)[held] / size
    lower, upper = calibrated_range(expected, size, coverage)
    share = size / size.sum()
    return CalibrationCurve(
        kind="reliability",
        expected=expected,
        observed=observed,
        lower=lower,
        upper=upper,
        share=share,
        error=float(share @ np.abs(observed - expected)),
        coverage=coverage,
        n_rows=len(truth),
    )


def uniform_bins(probability: Array, n_bins: int) -> IntArray:
    """The bin of each probability, of ``n_bins`` with equal width."""
    return np.minimum((probability * n_bins).astype(np.intp), n_bins - 1)


def _quantile_bins(probability: Array, weight: Array, n_bins: int) -> IntArray:
    """The bin of each probability, of ``n_bins`` with about equal weight."""
    values, group = np.unique(probability, return_inverse=True)
    mass = sum_by(group, weight, len(values))
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    return uniform_bins(middle, n_bins)[group]


def _top(y: ArrayLike, probabilities: ArrayLike) -> tuple[Array, Array]:
    """Whether the most probable class is correct, and its probability."""
    numbers, table = read_classes(y, probabilities)
    return (table.argmax(axis=1) == numbers).astype(np.float64), table.max(axis=1)
