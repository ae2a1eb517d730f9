"""Scores of predictions; every function takes plain arrays and returns a float.

Those of one model are lanam's own; here are those that need what peers do not say, and of results.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import nbinom, norm, poisson
from sklearn.metrics import average_precision_score, mean_poisson_deviance, roc_auc_score

from lanam.metrics import (
    accuracy,
    bernoulli_nll,
    categorical_nll,
    expected_calibration_error,
    gaussian_nll,
    gaussian_pit,
    interval_coverage,
    interval_width,
    quantile_calibration_error,
    rmse,
    root_brier_score,
    skce,
    top_label_calibration_error,
)

__all__ = [
    "accuracy",
    "auprc",
    "auroc",
    "bernoulli_nll",
    "categorical_nll",
    "count_distribution",
    "count_interval",
    "count_nll",
    "ece_by_chance",
    "expected_calibration_error",
    "gaussian_calibration",
    "gaussian_interval",
    "gaussian_nll",
    "geometric_mean",
    "interval_coverage",
    "interval_width",
    "log_log_slope",
    "poisson_deviance",
    "residual_dispersion",
    "residual_std",
    "rmse",
    "root_brier_score",
    "standard_error",
    "top_label_calibration_error",
]

Array = np.ndarray


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


def ece_by_chance(probability: Array, n_draws: int = 200) -> float:
    """The mean calibration error of a model that is right: of classes drawn by its own probabilities.

    With few rows it is far above zero, and it is smaller the surer the model is of them.
    """
    rng = np.random.default_rng(0)
    drawn = rng.random((n_draws, len(probability))) < probability
    return float(np.mean([expected_calibration_error(y, probability) for y in drawn]))


def gaussian_calibration(y: Array, mean: Array, std: Array) -> dict[str, float]:
    """Quantile calibration and the squared kernel calibration error of N(mean, std^2).

    The kernels have bandwidths that every model shares, or figures would not compare: the
    median distance between two of y (``skce``), and one in the unit of y (``skce_unit``). The paper does
    not give its own; its figures are as small as those of the second where y varies little (1e-9 to 1e-8
    on naval, whose y has a standard deviation of 0.015). Of many rows only those in blocks of a thousand
    are compared.
    """
    scale = float(np.median(pdist(y[:1000, None])))
    errors = {"qce": quantile_calibration_error(gaussian_pit(y, mean, std))}
    for name, bandwidth in (("skce", scale or 1.0), ("skce_unit", 1.0)):
        errors[name] = skce(
            y,
            mean,
            std,
            prediction_bandwidth=bandwidth,
            target_bandwidth=bandwidth,
            block_size=1000,
        )
    return errors


def residual_std(y: Array, mean: Array) -> float:
    """Maximum-likelihood Gaussian noise of residuals around ``mean`` (no degrees of freedom)."""
    return rmse(y, mean)


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
