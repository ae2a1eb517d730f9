"""Calibration curves and retention curves, with the sampling range of a calibrated model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom
from sklearn.base import is_classifier

from lanam.core.arrays import Array, sum_by
from lanam.data import make_frame
from lanam.explain.values import PlainData
from lanam.metrics.checks import Weights, class_numbers, read_count, read_vector, read_weights


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationCurve(PlainData):
    """Predicted against observed frequencies; a calibrated model lies on the diagonal.

    Attributes
    ----------
    kind
        ``"reliability"`` (binned probabilities) or ``"quantiles"`` (levels of predicted quantiles).
    expected
        Mean predicted probability in each bin, or the nominal levels.
    observed
        Fraction of ones in each bin, or fraction of observations below the predicted quantile.
    lower, upper
        Range of ``observed`` with probability ``coverage`` if the model is calibrated: binomial quantiles
        around ``expected`` for the same number of rows.
    share
        Fraction of the rows in each bin, or between consecutive levels (from 0 for the first).
    error
        Expected calibration error, or quantile calibration error.
    coverage
        Of ``lower`` and ``upper``.
    n_rows
        Number of rows.

    Examples
    --------
    >>> from lanam.metrics import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 1], [0.1, 0.3, 0.8, 0.8], n_bins=2)
    >>> curve.expected, curve.observed, round(curve.error, 3)
    (array([0.2, 0.8]), array([0., 1.]), 0.2)
    """

    kind: str
    expected: Array
    observed: Array
    lower: Array
    upper: Array
    share: Array
    error: float
    coverage: float
    n_rows: int

    def to_frame(self, backend: str | None = None) -> Any:
        """One row per bin or level, as a frame of ``backend`` ("pandas", "polars", "pyarrow")."""
        names = ("expected", "observed", "lower", "upper", "share")
        return make_frame({name: getattr(self, name) for name in names}, backend)


def calibrated_range(
    probability: ArrayLike, n_rows: ArrayLike, coverage: float
) -> tuple[Array, Array]:
    """Central range of the observed fraction of events with these probabilities, if they are correct.

    Examples
    --------
    >>> calibrated_range(0.5, 100, 0.95)
    (array(0.4), array(0.6))
    """
    n_rows = np.maximum(np.rint(n_rows), 1.0)  # weights need not be integers
    tail = 0.5 - 0.5 * coverage
    success = np.clip(probability, 0.0, 1.0)
    ends = (
        binom.ppf(tail, n_rows, success) / n_rows,
        binom.ppf(1.0 - tail, n_rows, success) / n_rows,
    )
    return np.asarray(ends[0]), np.asarray(ends[1])


def binomial_p_value(fraction: float, probability: float, n_rows: float) -> float:
    """Two-sided p-value of an observed fraction of ``n_rows`` events with this probability.

    Examples
    --------
    >>> round(binomial_p_value(0.4, 0.5, 100), 3), binomial_p_value(0.5, 0.5, 100)
    (0.057, 1.0)
    """
    count, expected = max(round(n_rows), 1), min(max(probability, 0.0), 1.0)
    seen = round(fraction * count)
    tails = binom.cdf(seen, count, expected), binom.sf(seen - 1, count, expected)
    return float(min(2.0 * min(tails), 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class RetentionCurve(PlainData):
    """Quality of the predictions with the lowest uncertainty.

    Attributes
    ----------
    retained
        Fractions of the rows that are kept, ascending up to 1: those with the lowest uncertainty.
    value
        Accuracy of the retained rows, or the measure ``name``. If uncertainty is informative, accuracy
        falls and an error rises along the curve.
    name
        The measure.
    area
        Mean of ``value`` over all fractions: the area under the curve.
    n_rows
        Number of rows.

    Examples
    --------
    >>> from lanam.metrics import retention_curve
    >>> curve = retention_curve([1, 1, 0, 1], [0.1, 0.2, 0.4, 0.3], n_points=4)
    >>> curve.retained, curve.value
    (array([0.25, 0.5 , 0.75, 1.  ]), array([1.  , 1.  , 1.  , 0.75]))
    """

    retained: Array
    value: Array
    name: str
    area: float
    n_rows: int

    def to_frame(self, backend: str | None = None) -> Any:
        """One row per fraction, as a frame of ``backend`` ("pandas", "polars", "pyarrow")."""
        return make_frame({"retained": self.retained, self.name: self.value}, backend)


def retention_curve(
    quality: ArrayLike,
    uncertainty: ArrayLike,
    *,
    name: str = "accuracy",
    root: bool = False,
    n_points: int = 100,
    sample_weight: Weights = None,
) -> RetentionCurve:
    """Mean quality of the rows with the lowest uncertainty, by the fraction retained (Ciosek et al. 2020).

    Parameters
    ----------
    quality : array-like of shape (n,)
        Quality of each prediction: 1 for a correct class and 0 otherwise, or a squared error.
    uncertainty : array-like of shape (n,)
        Rows are retained in ascending order. Ties have their mean quality, independent of their order.
    name : str, default="accuracy"
        The measure.
    root : bool, default=False
        Whether to take the square root of the mean: of squared errors this is the RMSE.
    n_points : int, default=100
        Number of fractions, the multiples of ``1 / n_points``; interpolated between rows.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights.

    Examples
    --------
    >>> curve = retention_curve([9.0, 1.0], [2.0, 1.0], name="rmse", root=True, n_points=2)
    >>> curve.value.round(3)
    array([1.   , 2.236])
    """
    quality = read_vector("quality", quality)
    order = read_vector("uncertainty", uncertainty, len(quality))
    n_points = read_count("n_points", n_points)
    weight = read_weights(sample_weight, len(quality))
    if root and (quality < 0.0).any():
        raise ValueError("root=True is for squares, and quality has negative values")
    groups, group = np.unique(order, return_inverse=True)
    size = np.cumsum(sum_by(group, weight, len(groups)))
    sums = np.cumsum(sum_by(group, weight * quality, len(groups)))
    retained = np.arange(1, n_points + 1) / n_points
    kept = retained * size[-1]
    # Linear within a row, and within rows of equal uncertainty.
    value = np.interp(kept, np.append(0.0, size), np.append(0.0, sums)) / kept
    value = np.sqrt(np.maximum(value, 0.0)) if root else value
    area = value[0] * retained[0] + np.trapezoid(value, retained)
    return RetentionCurve(retained, value, name, float(area), len(quality))


def retention_of(
    model: Any,
    X: object,
    y: ArrayLike,
    *,
    n_points: int = 100,
    exposure: ArrayLike | None = None,
    trials: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    sample_weight: Weights = None,
) -> RetentionCurve:
    """The retention curve of a fitted model.

    For a classifier, the accuracy by the probability of the most probable class; for a regressor, the
    RMSE by the predictive standard deviation of a new observation.

    Parameters
    ----------
    model : fitted classifier or regressor
        With ``classes_`` and ``predict_proba``, or with ``predict(X, return_std=True)``.
    X : frame or array-like of shape (n, n_features)
    y : array-like of shape (n,)
    n_points : int, default=100
        Number of fractions of the rows.
    exposure : float or array-like of shape (n,), default=None
        For counts.
    trials, offset : float or array-like of shape (n,), default=None
        As in the model's ``predict``.
    sample_weight : array-like of shape (n,), default=None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lanam import LANAMClassifier
    >>> from lanam.metrics import retention_of
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LANAMClassifier(interactions=0, random_state=0).fit(X[::2], y[::2])
    >>> curve = retention_of(model, X[1::2], y[1::2])
    >>> bool(curve.value[49] >= curve.value[-1])  # the more certain half is no worse than all
    True
    """
    if is_classifier(model):
        extra = given_options(model, exposure, trials, offset, classes=True)
        probabilities = np.asarray(model.predict_proba(X, **extra))
        correct = probabilities.argmax(axis=1) == class_numbers(y, model.classes_)
        uncertainty = 1.0 - probabilities.max(axis=1)
        return retention_curve(correct, uncertainty, n_points=n_points, sample_weight=sample_weight)
    extra = given_options(model, exposure, trials, offset)
    mean, std = model.predict(X, return_std=True, **extra)
    error = (read_vector("y", y, len(mean)) - mean) ** 2
    return retention_curve(
        error, std, name="rmse", root=True, n_points=n_points, sample_weight=sample_weight
    )


def given_options(
    model: Any,
    exposure: ArrayLike | None = None,
    trials: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    *,
    classes: bool = False,
) -> dict[str, ArrayLike]:
    """Keyword arguments of predictions; an error if the model requires some that are missing."""
    if classes and (exposure is not None or trials is not None):
        name = "trials are" if exposure is None else "exposure is"
        raise ValueError(f"{name} for counts, and the model predicts classes")
    options = {"exposure": exposure, "trials": trials, "offset": offset}
    given = {name: value for name, value in options.items() if value is not None}
    require = getattr(model, "_require_given", None)
    if require is not None:
        require(**given)
    return given
