"""Predictive performance: the figures of classes, numbers and counts, each with a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit, ndtri, xlogy

from lanam.core.arrays import Array
from lanam.data import make_frame
from lanam.explain import require_coverage
from lanam.explain.values import PlainData
from lanam.metrics import influence
from lanam.metrics.checks import (
    Weights,
    read_classes,
    read_groups,
    read_positive,
    read_vector,
    read_weights,
)
from lanam.metrics.influence import Estimate, mean_of
from lanam.text import aligned, html_table, number_format

#: Probabilities are at least this far from 0 and 1 where their logarithm is taken.
_LEAST_PROBABILITY = 1e-12

#: Printed names of the figures, and their references: what a reader compares a figure with.
_LABELS = {
    "auroc": "AUROC",
    "macro_auroc": "AUROC (one-vs-rest, macro)",
    "auprc": "AUPRC",
    "brier_score": "Brier score",
    "log_loss": "log loss",
    "accuracy": "accuracy",
    "calibration_slope": "calibration slope",
    "calibration_intercept": "calibration intercept",
    "r2": "R2",
    "rmse": "RMSE",
    "mae": "MAE",
    "actual_over_expected": "A/E (actual over expected)",
    "deviance": "mean Poisson deviance",
    "deviance_explained": "deviance explained",
}

#: Figures that are printed with as many digits as they need; all others have three decimals.
_SCALED = ("rmse", "mae", "deviance", "log_loss", "brier_score")


@dataclass(frozen=True)
class Figure(PlainData):
    """One figure of predictive performance.

    Attributes
    ----------
    name
        As a key: ``"auroc"``, ``"rmse"``, ...
    value
        The figure; NaN if the rows do not determine it, for example without rows of both classes.
    lower, upper
        Its confidence interval.
    reference, reference_name
        What to compare it with, and what that is: the same figure of a prediction that ignores all
        columns, or of a calibrated model.

    Examples
    --------
    >>> from lanam.metrics import regression_performance
    >>> figure = regression_performance([1.0, 2.0, 4.0], [1.0, 2.5, 3.5])["mae"]
    >>> round(figure.value, 3), figure.label
    (0.333, 'MAE')
    """

    name: str
    value: float
    lower: float
    upper: float
    reference: float
    reference_name: str

    @property
    def label(self) -> str:
        """The printed name."""
        return _LABELS[self.name]

    def cells(self) -> tuple[str, str, str]:
        """Value, interval and reference as strings; a dash for what the rows do not determine."""
        ends = [number for number in (self.value, self.lower, self.upper) if math.isfinite(number)]
        form = ".3f"
        if self.name in _SCALED and ends:
            form = number_format(max(map(abs, ends)), 4)
        value, lower, upper = (
            format(number + 0.0, form) if math.isfinite(number) else "-"
            for number in (self.value, self.lower, self.upper)
        )
        interval = "-" if "-" in (lower, upper) else f"{lower} to {upper}"
        return value, interval, f"{self.reference:.3g} ({self.reference_name})"


@dataclass(frozen=True, eq=False)
class Performance(PlainData):
    """Predictive performance on some rows: figures with confidence intervals, as a table and as data.

    Attributes
    ----------
    figures
        In the order in which they are printed; also by name: ``performance["auroc"]``.
    n_rows
        Number of rows, of positive weight.
    coverage
        Confidence level of the intervals.

    Examples
    --------
    >>> from lanam.metrics import count_performance
    >>> print(count_performance([0, 1, 3, 2], [0.5, 1.5, 2.0, 2.0]))
    figure                      value    95% interval  reference
    A/E (actual over expected)  1.000  0.630 to 1.587  1 (calibrated)
    ...
    """

    figures: tuple[Figure, ...]
    n_rows: int
    coverage: float

    def __getitem__(self, name: str) -> Figure:
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise KeyError(f"no figure {name!r}; there are {[figure.name for figure in self.figures]}")

    def __iter__(self) -> Iterator[Figure]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def __contains__(self, name: object) -> bool:
        return any(figure.name == name for figure in self.figures)

    def table(self) -> list[tuple[str, ...]]:
        """The table as strings: a header, then cells."""
        head = ("figure", "value", f"{round(100.0 * self.coverage, 4):g}% interval", "reference")
        return [head, *((figure.label, *figure.cells()) for figure in self.figures)]

    def to_frame(self, backend: str | None = None) -> Any:
        """One row per figure, as a frame of ``backend`` ("pandas", "polars", "pyarrow")."""
        names = ("value", "lower", "upper", "reference", "reference_name")
        columns: dict[str, Any] = {"figure": [figure.name for figure in self.figures]}
        columns |= {name: [getattr(figure, name) for figure in self.figures] for name in names}
        return make_frame(columns, backend)

    def __str__(self) -> str:
        return "\n".join(aligned(self.table(), words=(0, 3)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        return html_table(self.table())


class _Rows:
    """Collects the figures of rows with these weights."""

    def __init__(self, weight: Array, coverage: float, groups: ArrayLike | None = None) -> None:
        self.weight, self.coverage = weight, require_coverage(coverage)
        self.group = read_groups(groups, len(weight))
        self.z = float(ndtri(0.5 + 0.5 * self.coverage))
        self.figures: list[Figure] = []

    def add(
        self, name: str, estimate: Estimate, reference: float, of: str, n_least: float | None = None
    ) -> None:
        """Add a figure with its interval; ``n_least`` is for fractions, see `_fraction`."""
        value, error = estimate.value, estimate.std_error(self.weight, self.group)
        total = float(self.weight.sum())
        # One row says nothing of its own variance; else the usual correction for the mean.
        if self.group is None:
            error *= math.sqrt(total / (total - 1.0)) if total > 1.0 else math.nan
        if n_least is not None:
            ends = _fraction(value, error, self.z, n_least)
        elif name in ("r2", "deviance_explained"):
            upper, lower = (1.0 - end for end in _positive(1.0 - value, error, self.z))
            ends = lower, upper
        elif name.startswith("calibration"):
            ends = value - self.z * error, value + self.z * error
        else:
            ends = _positive(value, error, self.z)
        self.figures.append(Figure(name, value, *ends, float(reference), of))

    def performance(self) -> Performance:
        """The figures so far."""
        return Performance(tuple(self.figures), int((self.weight > 0.0).sum()), self.coverage)


def _positive(value: float, error: float, z: float) -> tuple[float, float]:
    """The interval of a positive number, which is symmetric in its logarithm."""
    if value == 0.0 or value != value:
        return value, value
    factor = math.exp(min(z * error / value, 700.0))
    return value / factor, value * factor


def _fraction(value: float, error: float, z: float, n_least: float) -> tuple[float, float]:
    """Wilson's interval of a fraction, for as many rows as would give the standard error.

    A fraction of 0 or 1 has no standard error: it is then that of ``n_least`` rows.
    """
    if error != error or value != value:
        return math.nan, math.nan
    spread = value * (1.0 - value)
    if error <= 0.0 and spread > 0.0:
        return value, value
    n_rows = spread / error**2 if error > 0.0 and spread > 0.0 else n_least
    shrink = 1.0 + z**2 / n_rows
    centre = (value + 0.5 * z**2 / n_rows) / shrink
    half = z / shrink * math.sqrt(spread / n_rows + (0.5 * z / n_rows) ** 2)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def classification_performance(
    y: ArrayLike,
    probabilities: ArrayLike,
    *,
    sample_weight: Weights = None,
    groups: ArrayLike | None = None,
    coverage: float = 0.95,
) -> Performance:
    """Discrimination, error and calibration of predicted class probabilities.

    Two classes have ``auroc``, ``auprc`` (average precision), ``brier_score`` (the mean of
    ``(p - y)^2``), ``log_loss``, ``accuracy``, ``calibration_slope`` (of a logistic regression of the
    classes on the predicted log-odds: below one, predictions are too extreme) and
    ``calibration_intercept`` (of the same with a slope of one: above zero, probabilities are too low). More
    classes have ``macro_auroc`` (one-vs-rest, averaged over the classes that occur), ``brier_score``
    (summed over classes), ``log_loss`` and ``accuracy``.

    Parameters
    ----------
    y : array-like of shape (n,)
        Class indices.
    probabilities : array-like of shape (n, C)
        Of all classes; for two classes, the second is the event.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights.
    groups : array-like of shape (n,), default=None
        The group of each row, if rows of one group are not independent: intervals are those of independent
        groups.
    coverage : float, default=0.95
        Confidence level of the intervals.

    Returns
    -------
    performance : Performance
        Intervals are from the influence of the rows (infinitesimal jackknife; DeLong's for the AUROC).

    Examples
    --------
    >>> p = [[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]
    >>> performance = classification_performance([0, 1, 0, 1], p)
    >>> performance["auroc"].value, round(performance["brier_score"].value, 4)
    (1.0, 0.125)
    """
    numbers, table = read_classes(y, probabilities)
    weight = read_weights(sample_weight, len(numbers))
    rows = _Rows(weight, coverage, groups)
    n_classes = table.shape[1]
    share = np.bincount(numbers, weight, n_classes) / weight.sum()
    chosen = np.maximum(table[np.arange(len(numbers)), numbers], _LEAST_PROBABILITY)
    right = (table.argmax(axis=1) == numbers).astype(np.float64)
    occurring = share[(share > 0.0) & (share < 1.0)]
    n_least = float(weight.sum() * min(occurring, default=1.0))
    if n_classes == 2:
        _add_ranks(rows, numbers == 1, table[:, 1], n_least)
        losses, spread = (table[:, 1] - numbers) ** 2, share[0] * share[1]
    else:
        each = [influence.auroc(numbers == k, table[:, k], weight) for k in range(n_classes)]
        rows.add("macro_auroc", _mean_estimate(each), 0.5, "chance", n_least)
        losses = ((table - np.eye(n_classes)[numbers]) ** 2).sum(axis=1)
        spread = 1.0 - float(share @ share)
    rows.add("brier_score", mean_of(losses, weight), spread, "base rates")
    entropy = -float(xlogy(share, share).sum())
    rows.add("log_loss", mean_of(-np.log(chosen), weight), entropy, "base rates")
    most = "most frequent class"
    rows.add("accuracy", mean_of(right, weight), share.max(), most, float(weight.sum()))
    if n_classes == 2:
        _add_calibration(rows, numbers == 1, table[:, 1])
    return rows.performance()


def _add_ranks(rows: _Rows, truth: NDArray[np.bool_], probability: Array, n_least: float) -> None:
    """Add the areas under the curves of two classes."""
    area = influence.auroc(truth, probability, rows.weight)
    rows.add("auroc", area, 0.5, "chance", n_least)
    rate = float(np.average(truth, weights=rows.weight))
    precision = influence.auprc(truth, probability, rows.weight)
    rows.add("auprc", precision, rate, "base rate", n_least)


def _add_calibration(rows: _Rows, truth: NDArray[np.bool_], probability: Array) -> None:
    """Add slope and intercept of the calibration of two classes."""
    ends = _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY
    log_odds = logit(np.clip(probability, *ends))
    slope = influence.calibration_slope(truth, log_odds, rows.weight)
    rows.add("calibration_slope", slope, 1.0, "calibrated")
    intercept = influence.calibration_intercept(truth, log_odds, rows.weight)
    rows.add("calibration_intercept", intercept, 0.0, "calibrated")


def _mean_estimate(estimates: list[Estimate]) -> Estimate:
    """The mean of those estimates that the rows determine."""
    known = [each for each in estimates if each.value == each.value]
    if not known:
        return estimates[0]
    influences = np.mean([each.influence for each in known], axis=0)
    return Estimate(float(np.mean([each.value for each in known])), influences)


def regression_performance(
    y: ArrayLike,
    mean: ArrayLike,
    *,
    sample_weight: Weights = None,
    groups: ArrayLike | None = None,
    coverage: float = 0.95,
) -> Performance:
    """Error of predicted numbers: ``r2``, ``rmse`` and ``mae``.

    Parameters
    ----------
    y, mean : array-like of shape (n,)
        Observations and predictions.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights.
    groups : array-like of shape (n,), default=None
        The group of each row, if rows of one group are not independent: intervals are those of independent
        groups.
    coverage : float, default=0.95
        Confidence level of the intervals.

    Returns
    -------
    performance : Performance
        R2 is that of :func:`sklearn.metrics.r2_score`, and NaN if y is constant.

    Examples
    --------
    >>> performance = regression_performance([1.0, 2.0, 4.0], [1.0, 2.5, 3.5])
    >>> round(performance["r2"].value, 3), round(performance["rmse"].value, 3)
    (0.893, 0.408)
    """
    target = read_vector("y", y)
    predicted = read_vector("mean", mean, len(target))
    weight = read_weights(sample_weight, len(target))
    rows = _Rows(weight, coverage, groups)
    # A common unit keeps squares of huge or tiny numbers finite.
    unit = float(np.abs(target).max()) or 1.0
    error = (target - predicted) / unit
    away = target / unit - np.average(target / unit, weights=weight)
    squares, spread = mean_of(error**2, weight), mean_of(away**2, weight)
    rows.add("r2", influence.explained(squares, spread), 0.0, "mean")
    rows.add("rmse", _times(influence.root(squares), unit), unit * math.sqrt(spread.value), "mean")
    mae = _times(mean_of(np.abs(error), weight), unit)
    rows.add("mae", mae, unit * float(np.average(np.abs(away), weights=weight)), "mean")
    return rows.performance()


def _times(estimate: Estimate, unit: float) -> Estimate:
    return Estimate(estimate.value * unit, estimate.influence * unit)


def count_performance(
    y: ArrayLike,
    mean: ArrayLike,
    *,
    exposure: ArrayLike | None = None,
    sample_weight: Weights = None,
    groups: ArrayLike | None = None,
    coverage: float = 0.95,
) -> Performance:
    """Calibration and error of predicted counts.

    ``actual_over_expected`` (A/E) is the sum of counts over the sum of their predicted means; ``deviance``
    the mean Poisson deviance of a row; ``deviance_explained`` the fraction of the deviance of one rate for
    all rows that the predictions explain.

    Parameters
    ----------
    y, mean : array-like of shape (n,)
        Counts, and their predicted means (rate times exposure).
    exposure : float or array-like of shape (n,), default=None
        Exposures, for the rate that ignores all columns; one by default.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights.
    groups : array-like of shape (n,), default=None
        The group of each row, if rows of one group are not independent: intervals are those of independent
        groups.
    coverage : float, default=0.95
        Confidence level of the intervals.

    Returns
    -------
    performance : Performance
        Its intervals assume independent rows, and no distribution: overdispersion widens them.

    Examples
    --------
    >>> performance = count_performance([0, 1, 3, 2], [0.5, 1.5, 2.0, 2.0])
    >>> performance["actual_over_expected"].value
    1.0
    """
    counts = read_positive("y", y, zero=True)
    expected = read_positive("mean", mean, len(counts))
    time = read_positive("exposure", 1.0 if exposure is None else exposure, len(counts))
    weight = read_weights(sample_weight, len(counts))
    rows = _Rows(weight, coverage, groups)
    rate = float(weight @ counts) / float(weight @ time)
    total = influence.ratio(mean_of(counts, weight), mean_of(expected, weight))
    rows.add("actual_over_expected", total, 1.0, "calibrated")
    deviance, baseline = (
        mean_of(_poisson_deviance(counts, predicted), weight)
        for predicted in (expected, rate * time)
    )
    rows.add("deviance", deviance, baseline.value, "one rate")
    rows.add("deviance_explained", influence.explained(deviance, baseline), 0.0, "one rate")
    return rows.performance()


def _poisson_deviance(counts: Array, mean: Array) -> Array:
    """Twice the log-likelihood ratio of the counts to their means."""
    if not mean.all():  # the rate of no events at all
        return np.zeros(len(counts))
    return np.asarray(2.0 * (xlogy(counts, counts / mean) - counts + mean))
