"""Scores of predictions; every function takes plain arrays and returns a float."""

from __future__ import annotations

import numpy as np
from scipy.stats import nbinom, norm, poisson
from sklearn.metrics import average_precision_score, mean_poisson_deviance, roc_auc_score

Array = np.ndarray


def gaussian_nll(y: Array, mean: Array, std: Array) -> float:
    """Mean negative log density of ``y`` under N(mean, std^2), in y's own units."""
    return float(-norm.logpdf(y, mean, std).mean())


def bernoulli_nll(y: Array, probability: Array) -> float:
    """Mean negative log probability of 0/1 labels; probabilities are kept off 0 and 1 by 1e-12."""
    probability = np.clip(probability, 1e-12, 1 - 1e-12)
    return float(-np.mean(y * np.log(probability) + (1 - y) * np.log1p(-probability)))


def count_distribution(mean: Array, dispersion: float):  # a frozen distribution of scipy's
    """Counts whose variance is ``dispersion`` times their mean: Poisson at one, else negative binomial.

    A mean of 0 counts as 1e-12.
    """
    mean = np.maximum(mean, 1e-12)
    if dispersion <= 1:
        return poisson(mean)
    return nbinom(mean / (dispersion - 1), 1 / dispersion)


def count_nll(y: Array, mean: Array, dispersion: float) -> float:
    """Mean negative log probability of counts; see ``count_distribution``."""
    return float(-count_distribution(mean, dispersion).logpmf(y).mean())


def residual_dispersion(y: Array, mean: Array) -> float:
    """Pearson's dispersion of counts around ``mean``; not below one, which is Poisson's."""
    mean = np.maximum(mean, 1e-12)
    return max(1.0, float(np.mean((y - mean) ** 2 / mean)))


def poisson_deviance(y: Array, mean: Array) -> float:
    """Mean deviance of counts: twice the log likelihood that a perfect mean would have gained."""
    return float(mean_poisson_deviance(y, np.maximum(mean, 1e-12)))


def categorical_nll(y: Array, probabilities: Array) -> float:
    """Mean negative log probability of classes 0 .. C-1; probabilities are kept off 0 by 1e-12."""
    given = np.asarray(probabilities)[np.arange(len(y)), y]
    return float(-np.log(np.clip(given, 1e-12, 1)).mean())


def accuracy(y: Array, probabilities: Array) -> float:
    """Share of rows whose most probable class is theirs."""
    return float(np.mean(np.argmax(probabilities, axis=1) == y))


def rmse(y: Array, mean: Array) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((y - mean) ** 2)))


def auroc(y: Array, probability: Array) -> float:
    """Area under the ROC curve; NaN where only one class is present."""
    if len(np.unique(y)) < 2:
        return float("nan")
    return float(roc_auc_score(y, probability))


def auprc(y: Array, probability: Array) -> float:
    """Average precision, the area under the precision-recall curve; NaN where no one is positive."""
    if not np.any(y):
        return float("nan")
    return float(average_precision_score(y, probability))


def count_interval(mean: Array, dispersion: float, level: float) -> tuple[Array, Array]:
    """Interval between quantiles of counts; they are whole, so it holds ``level`` or more."""
    tail = (1 - level) / 2
    counts = count_distribution(mean, dispersion)
    return counts.ppf(tail), counts.ppf(1 - tail)


def gaussian_interval(mean: Array, std: Array, level: float) -> tuple[Array, Array]:
    """Central interval of N(mean, std^2) holding ``level`` of its mass."""
    half_width = norm.ppf(0.5 + level / 2) * std
    return mean - half_width, mean + half_width


def interval_coverage(y: Array, lower: Array, upper: Array) -> float:
    """Share of ``y`` inside [lower, upper]."""
    return float(np.mean((lower <= y) & (y <= upper)))


def interval_width(lower: Array, upper: Array) -> float:
    """Mean width."""
    return float(np.mean(upper - lower))


def expected_calibration_error(y: Array, probability: Array, n_bins: int = 10) -> float:
    """Mean |share of ones - mean probability| over equal-width bins, weighted by their counts."""
    bins = np.minimum((np.asarray(probability) * n_bins).astype(int), n_bins - 1)
    surplus = np.bincount(bins, weights=np.asarray(y) - probability, minlength=n_bins)
    return float(np.abs(surplus).sum() / len(bins))


def top_label_calibration_error(y: Array, probabilities: Array, n_bins: int = 10) -> float:
    """Calibration error of the probability of each row's most probable class."""
    top = np.argmax(probabilities, axis=1)
    return expected_calibration_error(top == y, np.max(probabilities, axis=1), n_bins)


def residual_std(y: Array, mean: Array) -> float:
    """Maximum-likelihood Gaussian noise of residuals around ``mean`` (no degrees of freedom)."""
    return float(np.sqrt(np.mean((y - mean) ** 2)))


def standard_error(values: Array) -> float:
    """Standard error of the mean; NaN for fewer than two values."""
    values = np.asarray(values, float)
    if len(values) < 2:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def geometric_mean(values: Array) -> float:
    """Geometric mean of positive values."""
    return float(np.exp(np.mean(np.log(values))))


def log_log_slope(x: Array, y: Array) -> float:
    """Least-squares slope of log y on log x: 1 means y grows linearly in x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
