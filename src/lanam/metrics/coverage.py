"""Whether a model keeps its promises: nominal against observed, on rows it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from lanam.conformal import Calibration, warn_of_weights
from lanam.core.arrays import Array, sum_by
from lanam.data import NewValuesWarning
from lanam.explain import require_coverage
from lanam.metrics.checks import Weights, class_numbers, read_vector, read_weights, weighted_mean
from lanam.metrics.classes import (
    bernoulli_nll,
    categorical_nll,
    reliability_curve,
    root_brier_score,
    uniform_bins,
)
from lanam.metrics.curves import by_chance, probability_of
from lanam.metrics.kernel import skce, skce_by_chance
from lanam.metrics.quantiles import quantile_calibration_curve, quantile_error_by_chance
from lanam.metrics.report import CoverageReport, Record
from lanam.metrics.retention import exposure_option, refuse_exposure, retention_curve
from lanam.metrics.scores import rmse

#: How probable the ranges are that chance allows.
_BY_CHANCE = 0.95

#: Bins of the table of probabilities, and calibrated models that are drawn to compare with.
_N_BINS = 10
_N_DRAWS = 4000

#: Of more rows than this the kernel error is that of pairs within blocks.
_KERNEL_BLOCK = 2000

#: Which rows are held, how large each interval or set is, and how probable it is to be held.
_Held: TypeAlias = tuple[NDArray[np.bool_], Array, float | Array]


def coverage_report(
    model: Any,
    X: object,
    y: ArrayLike,
    *,
    levels: float | Sequence[float] = (0.5, 0.8, 0.9, 0.95, 0.99),
    exposure: ArrayLike | None = None,
    sample_weight: Weights = None,
) -> CoverageReport:
    """How well a fitted model is calibrated: nominal against observed, on rows it has not seen.

    Parameters
    ----------
    model : fitted LANAMRegressor or LANAMClassifier
        Only its public methods are used.
    X : frame or array-like of shape (n, n_features)
        Rows that the model was neither fitted nor calibrated with.
    y : array-like of shape (n,)
        Their targets.
    levels : float or sequence of float, default=(0.5, 0.8, 0.9, 0.95, 0.99)
        Of which intervals, or sets of classes, the coverage is counted.
    exposure : float or array-like of shape (n,), default=None
        For counts, what they were counted over; a model that was fitted with one needs it here.
    sample_weight : array-like of shape (n,), default=None
        How often each row counts: ranges of chance are those of as many rows as the weights' sum.

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
        raise ValueError("levels is empty: pass one at least, for example (0.9, 0.95)")
    if is_classifier(model):
        refuse_exposure(exposure)
        probabilities = np.asarray(model.predict_proba(X))
        with _said_once():
            return _report_of_classes(model, X, y, probabilities, levels, sample_weight)
    extra = exposure_option(model, exposure)
    moments = model.predict(X, return_std=True, **extra)
    with _said_once():
        return _report_of_intervals(model, X, y, moments, levels, sample_weight, extra)


@contextmanager
def _said_once() -> Iterator[None]:
    """What is new in the rows was said when they were predicted first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewValuesWarning)
        yield


def _report_of_intervals(
    model: Any,
    X: object,
    y: ArrayLike,
    moments: tuple[Array, Array],
    levels: Sequence[float],
    sample_weight: Weights,
    extra: dict[str, ArrayLike],
) -> CoverageReport:
    mean, std = moments
    target = read_vector("y", y, len(mean))
    weight = read_weights(sample_weight, len(mean))
    warn_of_weights(weight)
    counts = model.family_.discrete

    def held(level: float, calibrated: bool) -> _Held:
        lower, upper = model.predict_interval(X, coverage=level, calibrated=calibrated, **extra).T
        expected: float | Array = level
        if counts:  # intervals of whole numbers hold more than they are asked to
            expected = model.predict_cdf(X, upper, **extra) - model.predict_cdf(
                X, lower - 1.0, **extra
            )
        return (lower <= target) & (target <= upper), upper - lower, expected

    scores = {
        "nll": -model.log_likelihood(X, target, sample_weight=sample_weight, **extra),
        "rmse": rmse(target, mean, sample_weight=weight),
    }
    if not counts:
        scores["crps"] = model.crps(X, target, sample_weight=sample_weight)
    curve = quantile_calibration_curve(
        model.predict_cdf(X, target, **extra),
        below=model.predict_cdf(X, target - 1.0, **extra) if counts else None,
        sample_weight=weight,
    )
    scores["quantile_calibration_error"] = curve.error
    scores["quantile_calibration_error_by_chance"] = quantile_error_by_chance(
        weight.sum(), share=_BY_CHANCE
    )
    if not counts and weight.sum() > 1.0:
        block = _KERNEL_BLOCK if len(target) > _KERNEL_BLOCK else None
        for name, error in (("skce", skce), ("skce_by_chance", skce_by_chance)):
            scores[name] = error(target, mean, std, block_size=block, sample_weight=weight)
    return CoverageReport(
        kind="intervals",
        rows=tuple(_record(model, level, held, weight) for level in levels),
        sets=(),
        scores=scores,
        curve=curve,
        retention=retention_curve(
            (target - mean) ** 2, std, name="rmse", root=True, sample_weight=weight
        ),
        n_rows=int((weight > 0.0).sum()),
        estimator=type(model).__name__,
    )


def _report_of_classes(
    model: Any,
    X: object,
    y: ArrayLike,
    probabilities: Array,
    levels: Sequence[float],
    sample_weight: Weights,
) -> CoverageReport:
    numbers = class_numbers(y, model.classes_)
    each = np.arange(len(probabilities))
    if len(numbers) != len(each):
        raise ValueError(f"X has {len(each)} rows and y has {len(numbers)} values")
    weight = read_weights(sample_weight, len(each))
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
    curve = reliability_curve(truth, probability, _N_BINS, sample_weight=weight)

    def held(level: float, calibrated: bool) -> _Held:
        sets = model.predict_set(X, coverage=level, calibrated=calibrated)
        return sets[each, numbers], sets.sum(axis=1), (sets * probabilities).sum(axis=1)

    return CoverageReport(
        kind="classes",
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
        sets=tuple(_record(model, level, held, weight) for level in levels),
        scores={
            "nll": nll,
            "accuracy": weighted_mean(right, weight),
            "root_brier_score": root_brier,
            "calibration_error": curve.error,
            "calibration_error_by_chance": _error_by_chance(probability, weight),
        },
        curve=curve,
        retention=retention_curve(right, 1.0 - confidence, sample_weight=weight),
        n_rows=int((weight > 0.0).sum()),
        estimator=type(model).__name__,
    )


def _record(
    model: Any,
    level: float,
    held: Callable[[float, bool], _Held],
    weight: Array,
) -> Record:
    """What a level's intervals or sets hold: the model's own, and calibrated ones if there are."""
    inside, size, probability = held(level, False)
    expected = float(np.average(np.broadcast_to(probability, weight.shape), weights=weight))
    lowest, highest = by_chance(expected, weight.sum(), _BY_CHANCE)
    observed = weighted_mean(inside, weight)
    record: Record = {
        "level": level,
        "expected": expected,
        "observed": observed,
        "lowest": float(lowest),
        "highest": float(highest),
        "chance": probability_of(observed, expected, weight.sum()),
        "size": weighted_mean(size, weight),
    }
    calibration: Calibration | None = getattr(model, "calibration_", None)
    if calibration is None:
        return record
    values: Sequence[float | None] = [None] * 4
    if level <= calibration.most_coverage:
        inside, size, _ = held(level, True)
        ends = calibration.by_chance(level, weight.sum(), _BY_CHANCE)
        values = (weighted_mean(inside, weight), *ends, weighted_mean(size, weight))
    names = ("observed", "lowest", "highest", "size")
    calibrated = {f"calibrated_{name}": value for name, value in zip(names, values, strict=True)}
    return record | cast(Record, calibrated)


def _error_by_chance(probability: Array, weight: Array) -> float:
    """What the calibration error of a calibrated model rarely exceeds, by chance alone.

    In a bin, the share of ones varies around the mean probability with the summed variance of its rows;
    of sums that is Gaussian enough.
    """
    bins = uniform_bins(probability, _N_BINS)
    variance = sum_by(bins, weight * probability * (1.0 - probability), _N_BINS)
    normal = np.random.default_rng(0).standard_normal((_N_DRAWS, _N_BINS))
    errors = np.abs(normal) @ np.sqrt(variance) / weight.sum()
    return float(np.quantile(errors, _BY_CHANCE))
