"""Retention curves: whether a model is better where it is more certain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from lanam.core.arrays import Array, sum_by
from lanam.data import make_frame
from lanam.explain.values import PlainData
from lanam.metrics.checks import Weights, class_numbers, read_count, read_vector, read_weights


@dataclass(frozen=True, eq=False)
class RetentionCurve(PlainData):
    """How good a model is on the rows of which it is most certain.

    Attributes
    ----------
    retained
        Shares of the rows that are kept, ascending up to 1: the most certain ones.
    value
        Accuracy of the kept rows, or whatever ``name`` says. Of a model that knows what it does not
        know, accuracy falls and an error rises along the curve.
    name
        What ``value`` is.
    area
        Mean of ``value`` over all shares: the area under the curve.
    n_rows
        How many rows there were.

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
        """One row for each share, as a frame of ``backend`` ("pandas", "polars", "pyarrow")."""
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
    """Mean quality of the most certain rows, for growing shares of all (Ciosek et al. 2020).

    Parameters
    ----------
    quality : array-like of shape (n,)
        How good each row's prediction is: 1 if the class is right and 0 if not, or a squared error.
    uncertainty : array-like of shape (n,)
        By which rows are ordered, the smallest first. Rows of equal uncertainty count as if each of
        them had their mean quality, whatever their order.
    name : str, default="accuracy"
        What the mean is.
    root : bool, default=False
        Whether to take the mean's root: of squared errors, that is the RMSE.
    n_points : int, default=100
        How many shares: ``1 / n_points`` and its multiples, between rows if need be.
    sample_weight : array-like of shape (n,), default=None
        How often each row counts.

    Examples
    --------
    >>> curve = retention_curve([9.0, 1.0], [2.0, 1.0], name="rmse", root=True, n_points=2)
    >>> curve.value.round(3)
    array([1.   , 2.236])
    """
    gains = read_vector("quality", quality)
    order = read_vector("uncertainty", uncertainty, len(gains))
    n_points = read_count("n_points", n_points)
    weight = read_weights(sample_weight, len(gains))
    if root and (gains < 0.0).any():
        raise ValueError("root=True is for squares, and quality has negative values")
    groups, place = np.unique(order, return_inverse=True)
    size = np.cumsum(sum_by(place, weight, len(groups)))
    sums = np.cumsum(sum_by(place, weight * gains, len(groups)))
    retained = np.arange(1, n_points + 1) / n_points
    kept = retained * size[-1]
    # Sums grow evenly within a row, and within rows that are equally certain.
    value = np.interp(kept, np.append(0.0, size), np.append(0.0, sums)) / kept
    value = np.sqrt(np.maximum(value, 0.0)) if root else value
    area = value[0] * retained[0] + np.trapezoid(value, retained)
    return RetentionCurve(retained, value, name, float(area), len(gains))


def retention_of(
    model: Any,
    X: object,
    y: ArrayLike,
    *,
    n_points: int = 100,
    exposure: ArrayLike | None = None,
    sample_weight: Weights = None,
) -> RetentionCurve:
    """The retention curve of a fitted model.

    Of a classifier, the accuracy by the probability of the most probable class; of a regressor, the RMSE
    by the standard deviation of a new observation.

    Parameters
    ----------
    model : fitted classifier or regressor
        With ``classes_`` and ``predict_proba``, or with ``predict(X, return_std=True)``.
    X : frame or array-like of shape (n, n_features)
    y : array-like of shape (n,)
    n_points : int, default=100
        How many shares of the rows.
    exposure : float or array-like of shape (n,), default=None
        For counts, what they were counted over.
    sample_weight : array-like of shape (n,), default=None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lanam import LANAMClassifier
    >>> from lanam.metrics import retention_of
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LANAMClassifier(interactions=0, random_state=0).fit(X[::2], y[::2])
    >>> curve = retention_of(model, X[1::2], y[1::2])
    >>> bool(curve.value[49] >= curve.value[-1])  # the surer half is no worse than all
    True
    """
    if is_classifier(model):
        refuse_exposure(exposure)
        probabilities = np.asarray(model.predict_proba(X))
        right = probabilities.argmax(axis=1) == class_numbers(y, model.classes_)
        doubt = 1.0 - probabilities.max(axis=1)
        return retention_curve(right, doubt, n_points=n_points, sample_weight=sample_weight)
    extra = exposure_option(model, exposure)
    mean, std = model.predict(X, return_std=True, **extra)
    error = (read_vector("y", y, len(mean)) - mean) ** 2
    return retention_curve(
        error, std, name="rmse", root=True, n_points=n_points, sample_weight=sample_weight
    )


def exposure_option(model: Any, exposure: ArrayLike | None) -> dict[str, ArrayLike]:
    """The exposure as an argument of the model's methods, refused where it is needed and was forgotten."""
    require = getattr(model, "_require_exposure", None)
    if require is not None:
        require(exposure)
    return {} if exposure is None else {"exposure": exposure}


def refuse_exposure(exposure: ArrayLike | None) -> None:
    """Refuse an exposure of classes."""
    if exposure is not None:
        raise ValueError("exposure is what counts are counted over, and the model predicts classes")
