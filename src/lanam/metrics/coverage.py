"""Calibration of a fitted model on held-out rows: nominal against observed coverage."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from lanam.conformal import Calibration, warn_of_weights
from lanam.core.arrays import Array, sum_by
from lanam.data import NewValuesWarning
from lanam.explain import require_coverage
from lanam.metrics.checks import (
    Weights,
    class_numbers,
    read_groups,
    read_vector,
    read_weights,
    weighted_mean,
)
from lanam.metrics.classes import (
    bernoulli_nll,
    categorical_nll,
    reliability_curve,
    root_brier_score,
    uniform_bins,
)
from lanam.metrics.curves import (
    binomial_p_value,
    calibrated_range,
    given_options,
    retention_curve,
)
from lanam.metrics.influence import mean_of
from lanam.metrics.kernel import skce, skce_limit
from lanam.metrics.performance import (
    classification_performance,
    count_performance,
    regression_performance,
)
from lanam.metrics.report import CoverageReport, Record
from lanam.metrics.scores import quantile_calibration_curve, quantile_error_limit, rmse

#: Probability of the ranges and limits under calibration.
_RANGE_COVERAGE = 0.95

#: Bins of the table of probabilities, and simulated data sets of a calibrated model.
_N_BINS = 10
_N_DRAWS = 4000

#: With more rows than this the kernel error compares pairs within blocks.
_KERNEL_BLOCK = 2000

#: Which intervals or sets contain the target, their sizes, and their predicted coverage.
_Covered: TypeAlias = tuple[NDArray[np.bool_], Array, float | Array]


def coverage_report(
    model: Any,
    X: object,
    y: ArrayLike,
    *,
    levels: float | Sequence[float] = (0.5, 0.8, 0.9, 0.95, 0.99),
    exposure: ArrayLike | None = None,
    trials: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    sample_weight: Weights = None,
    groups: ArrayLike | None = None,
) -> CoverageReport:
    """Predictive performance, and nominal against observed coverage, of a fitted model on held-out rows.

    The performance is AUROC, AUPRC, Brier score, log loss, accuracy, calibration slope and intercept for
    two classes, R2, RMSE and MAE for numbers, A/E and deviance for counts, each with a 95% confidence
    interval (:class:`lanam.metrics.Performance`).

    Parameters
    ----------
    model : fitted LANAMRegressor or LANAMClassifier
        Only its public methods are used.
    X : frame or array-like of shape (n, n_features)
        Rows that were used neither for fitting nor for calibration.
    y : array-like of shape (n,)
        Their targets.
    levels : float or sequence of float, default=(0.5, 0.8, 0.9, 0.95, 0.99)
        Nominal coverages of the prediction intervals or sets.
    exposure : float or array-like of shape (n,), default=None
        For counts; required if the model was fitted with an exposure.
    trials, offset : float or array-like of shape (n,), default=None
        As in the model's ``predict``; required if the model was fitted with some.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: ranges under calibration are those of as many rows as their sum.
    groups : array-like of shape (n,), default=None
        The group of each row (patient, hospital, site), if rows of one group are not independent. Ranges
        under calibration are then those of as many independent rows as vary as much, by the variance
        between groups of whether intervals contain the target, and confidence intervals those of
        independent groups. Groups should be new to the model, as those of its predictions will be.

    Returns
    -------
    report : CoverageReport
        Print it, or take it as data.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from lanam import LANAMClassifier, coverage_report
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LANAMClassifier(random_state=0).fit(X[:400, :5], y[:400])
    >>> report = coverage_report(model, X[400:, :5], y[400:])
    >>> report.kind, bool(report.scores["accuracy"] > 0.9)
    ('classes', True)
    """
    levels = tuple(require_coverage(level) for level in np.ravel(levels).tolist())
    if not levels:
        raise ValueError("levels is empty: pass at least one, for example (0.9, 0.95)")
    classes = is_classifier(model)
    extra = given_options(model, exposure, trials, offset, classes=classes)
    predicted = (
        model.predict_proba(X, **extra) if classes else model.predict(X, return_std=True, **extra)
    )
    with warnings.catch_warnings():  # the first prediction has reported unseen values
        warnings.simplefilter("ignore", NewValuesWarning)
        if classes:
            given = np.asarray(predicted), levels, sample_weight, groups, extra
            return _report_of_classes(model, X, y, *given)
        return _report_of_intervals(model, X, y, predicted, levels, sample_weight, groups, extra)


def _report_of_intervals(
    model: Any,
    X: object,
    y: ArrayLike,
    moments: tuple[Array, Array],
    levels: Sequence[float],
    sample_weight: Weights,
    groups: ArrayLike | None,
    extra: dict[str, ArrayLike],
) -> CoverageReport:
    mean, std = moments
    target = read_vector("y", y, len(mean))
    weight = read_weights(sample_weight, len(mean))
    warn_of_weights(weight)
    counts = model.family_.discrete

    @cache
    def covered(level: float, calibrated: bool) -> _Covered:
        lower, upper = model.predict_interval(X, coverage=level, calibrated=calibrated, **extra).T
        expected: float | Array = level
        if counts:  # intervals of a discrete distribution exceed their nominal coverage
            below, upto = (model.predict_cdf(X, end, **extra) for end in (lower - 1.0, upper))
            expected = upto - below
        return (lower <= target) & (target <= upper), upper - lower, expected

    rows = _Independent.of(groups, weight, [covered(level, False)[0] for level in levels])
    scores = {
        "nll": -model.log_likelihood(X, target, sample_weight=sample_weight, **extra),
        "rmse": rmse(target, mean, sample_weight=weight),
    }
    if not counts:
        scores["crps"] = model.crps(X, target, sample_weight=sample_weight, **extra)
    curve = quantile_calibration_curve(
        model.predict_cdf(X, target, **extra),
        below=model.predict_cdf(X, target - 1.0, **extra) if counts else None,
        sample_weight=rows.weight,
    )
    scores["quantile_calibration_error"] = curve.error
    scores["quantile_calibration_error_by_chance"] = quantile_error_limit(
        rows.weight.sum(), probability=_RANGE_COVERAGE
    )
    if not counts and rows.weight.sum() > 1.0:
        block = _KERNEL_BLOCK if len(target) > _KERNEL_BLOCK else None
        for name, error in (("skce", skce), ("skce_by_chance", skce_limit)):
            scores[name] = error(target, mean, std, block_size=block, sample_weight=rows.weight)
    return CoverageReport(
        kind="intervals",
        performance=(
            count_performance(
                target,
                mean,
                exposure=extra.get("exposure", extra.get("trials")),
                sample_weight=weight,
                groups=groups,
            )
            if counts
            else regression_performance(target, mean, sample_weight=weight, groups=groups)
        ),
        rows=tuple(_record(model, level, covered, rows.weight) for level in levels),
        sets=(),
        scores=scores,
        curve=curve,
        retention=retention_curve(
            (target - mean) ** 2, std, name="rmse", root=True, sample_weight=weight
        ),
        n_rows=int((weight > 0.0).sum()),
        estimator=type(model).__name__,
        n_groups=rows.n_groups,
        n_effective=None if groups is None else float(rows.weight.sum()),
    )


def _report_of_classes(
    model: Any,
    X: object,
    y: ArrayLike,
    probabilities: Array,
    levels: Sequence[float],
    sample_weight: Weights,
    groups: ArrayLike | None,
    extra: dict[str, ArrayLike],
) -> CoverageReport:
    numbers = class_numbers(y, model.classes_)
    index = np.arange(len(probabilities))
    if len(numbers) != len(index):
        raise ValueError(f"X has {len(index)} rows and y has {len(numbers)} values")
    weight = read_weights(sample_weight, len(index))
    warn_of_weights(weight)
    right = probabilities.argmax(axis=1) == numbers
    confidence = probabilities.max(axis=1)
    if probabilities.shape[1] == 2:
        truth, probability = numbers == 1, probabilities[:, 1]
        nll = bernoulli_nll(truth, probability, sample_weight=weight)
        root_brier = root_brier_score(truth, probability, sample_weight=weight)
    else:
        truth, probability = right, confidence
        nll = categorical_nll(numbers, probabilities, sample_weight=weight)
        root_brier = root_brier_score(numbers, probabilities, sample_weight=weight)

    @cache
    def covered(level: float, calibrated: bool) -> _Covered:
        sets = model.predict_set(X, coverage=level, calibrated=calibrated, **extra)
        return sets[index, numbers], sets.sum(axis=1), (sets * probabilities).sum(axis=1)

    residuals = np.asarray(truth, dtype=np.float64) - probability
    inside = [covered(level, False)[0] for level in levels]
    rows = _Independent.of(groups, weight, [*inside, residuals])
    curve = reliability_curve(truth, probability, _N_BINS, sample_weight=rows.weight)

    return CoverageReport(
        kind="classes",
        performance=classification_performance(
            numbers, probabilities, sample_weight=weight, groups=groups
        ),
        rows=tuple(
            {
                "from": bin_ / _N_BINS,
                "to": (bin_ + 1) / _N_BINS,
                "probability": float(curve.expected[k]),
                "observed": float(curve.observed[k]),
                "lowest": float(curve.lower[k]),
                "highest": float(curve.upper[k]),
                "n_rows": float(curve.share[k] * weight.sum()),
            }
            for k, bin_ in enumerate(
                np.unique(uniform_bins(probability[weight > 0.0], _N_BINS)).tolist()
            )
        ),
        sets=tuple(_record(model, level, covered, rows.weight) for level in levels),
        scores={
            "nll": nll,
            "accuracy": weighted_mean(right, weight),
            "root_brier_score": root_brier,
            "calibration_error": curve.error,
            "calibration_error_by_chance": _calibration_error_limit(probability, rows.weight),
        },
        curve=curve,
        retention=retention_curve(right, 1.0 - confidence, sample_weight=weight),
        n_rows=int((weight > 0.0).sum()),
        estimator=type(model).__name__,
        n_groups=rows.n_groups,
        n_effective=None if groups is None else float(rows.weight.sum()),
    )


@dataclass(frozen=True)
class _Independent:
    """Weights of rows whose sum is the number of independent rows that they count as."""

    weight: Array
    n_groups: int | None = None

    @classmethod
    def of(
        cls, groups: ArrayLike | None, weight: Array, figures: Sequence[NDArray[Any]]
    ) -> _Independent:
        """Rows of groups count less by the design effect on the means of some figures.

        This is the mean ratio of their variance with independent groups to that with independent rows: at
        least one, and at most the mean size of a group.
        """
        group = read_groups(groups, len(weight))
        if group is None:
            return cls(weight)
        effects, n_groups = [], int(group.max()) + 1
        for figure in figures:
            estimate = mean_of(np.asarray(figure, dtype=np.float64), weight)
            by_row = estimate.std_error(weight)
            if by_row > 0.0 and n_groups > 1:
                effects.append((estimate.std_error(weight, group) / by_row) ** 2)
        most = float(weight.sum()) / n_groups
        effect = float(np.mean(effects)) if effects else most
        return cls(weight / min(max(effect, 1.0), max(most, 1.0)), n_groups)


def _record(
    model: Any,
    level: float,
    covered: Callable[[float, bool], _Covered],
    weight: Array,
) -> Record:
    """Coverage and size of intervals or sets at one level, without and with conformal calibration."""
    inside, size, probability = covered(level, False)
    expected = float(np.average(np.broadcast_to(probability, weight.shape), weights=weight))
    lowest, highest = calibrated_range(expected, weight.sum(), _RANGE_COVERAGE)
    observed = weighted_mean(inside, weight)
    record: Record = {
        "level": level,
        "expected": expected,
        "observed": observed,
        "lowest": float(lowest),
        "highest": float(highest),
        "chance": binomial_p_value(observed, expected, weight.sum()),
        "size": weighted_mean(size, weight),
    }
    calibration: Calibration | None = getattr(model, "calibration_", None)
    if calibration is None:
        return record
    values: Sequence[float | None] = [None] * 4
    if level <= calibration.most_coverage:
        inside, size, _ = covered(level, True)
        ends = calibration.by_chance(level, weight.sum(), _RANGE_COVERAGE)
        values = (weighted_mean(inside, weight), *ends, weighted_mean(size, weight))
    names = ("observed", "lowest", "highest", "size")
    calibrated = {f"calibrated_{name}": value for name, value in zip(names, values, strict=True)}
    return record | cast(Record, calibrated)


def _calibration_error_limit(probability: Array, weight: Array) -> float:
    """The 95th percentile of the expected calibration error under calibration.

    The number of ones in a bin is approximately Gaussian, with the summed variance of its rows.
    """
    bins = uniform_bins(probability, _N_BINS)
    variance = sum_by(bins, weight * probability * (1.0 - probability), _N_BINS)
    normal = np.random.default_rng(0).standard_normal((_N_DRAWS, _N_BINS))
    errors = np.abs(normal) @ np.sqrt(variance) / weight.sum()
    return float(np.quantile(errors, _RANGE_COVERAGE))
