"""Scores of predictions, and how well they are calibrated.

Functions take arrays and return a number, a curve or a report. ``sample_weight`` are frequency weights.
:func:`coverage_report` evaluates a fitted model.
"""

from lanam.metrics.adequacy import Adequacy, Missed
from lanam.metrics.classes import (
    accuracy,
    bernoulli_nll,
    brier_score,
    categorical_nll,
    expected_calibration_error,
    reliability_curve,
    root_brier_score,
    top_label_calibration_error,
)
from lanam.metrics.coverage import coverage_report
from lanam.metrics.curves import (
    CalibrationCurve,
    RetentionCurve,
    retention_curve,
    retention_of,
)
from lanam.metrics.deviances import (
    binomial_deviance,
    negative_binomial_deviance,
    tweedie_deviance,
)
from lanam.metrics.kernel import skce
from lanam.metrics.performance import (
    Figure,
    Performance,
    classification_performance,
    count_performance,
    regression_performance,
)
from lanam.metrics.report import CoverageReport
from lanam.metrics.scores import (
    crps_gaussian,
    crps_sample,
    gaussian_nll,
    gaussian_pit,
    interval_coverage,
    interval_width,
    quantile_calibration_curve,
    quantile_calibration_error,
    rmse,
)
from lanam.metrics.survival import (
    DCalibration,
    d_calibration,
    harrell_c,
    integrated_brier_score,
    survival_brier_score,
    time_dependent_auc,
    uno_c,
)

__all__ = [
    "Adequacy",
    "CalibrationCurve",
    "CoverageReport",
    "DCalibration",
    "Figure",
    "Missed",
    "Performance",
    "RetentionCurve",
    "accuracy",
    "bernoulli_nll",
    "binomial_deviance",
    "brier_score",
    "categorical_nll",
    "classification_performance",
    "count_performance",
    "coverage_report",
    "crps_gaussian",
    "crps_sample",
    "d_calibration",
    "expected_calibration_error",
    "gaussian_nll",
    "gaussian_pit",
    "harrell_c",
    "integrated_brier_score",
    "interval_coverage",
    "interval_width",
    "negative_binomial_deviance",
    "quantile_calibration_curve",
    "quantile_calibration_error",
    "regression_performance",
    "reliability_curve",
    "retention_curve",
    "retention_of",
    "rmse",
    "root_brier_score",
    "skce",
    "survival_brier_score",
    "time_dependent_auc",
    "top_label_calibration_error",
    "tweedie_deviance",
    "uno_c",
]
