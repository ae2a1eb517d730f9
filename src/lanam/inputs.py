"""What users pass to ``fit`` and ``predict``, checked by scikit-learn's rules and ``data``'s.

Errors say which column and what to do. Arrays that come out are float64 and finite.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from lanam.core.arrays import Array
from lanam.data import (
    Schema,
    as_frame,
    column_names,
    encode_array,
    encode_frame,
    is_missing,
    learn_schema,
    require_finite,
)

#: Squares of larger numbers, and of smaller ones than its inverse, come near the ends of a float.
_LARGEST = 1e140

#: No row was seen more often than this.
_LARGEST_WEIGHT = 1e12


def read_columns(estimator: BaseEstimator, X: Any, *, fitting: bool) -> tuple[Array, Schema]:
    """The table ``X`` as a finite array (n, D), and its schema.

    Sets ``n_features_in_`` and ``feature_names_in_`` when fitting. Afterwards columns that have
    names are matched by name, in any order; scikit-learn's checks see them in the order of the fit.
    """
    frame = as_frame(X)
    # Two rows are the fewest that say anything about noise.
    n_rows_needed = 2 if fitting else 1
    if frame is None:
        if isinstance(X, (list, tuple)):
            X = _array_of_lists(X)
        array = validate_data(
            estimator,
            X,
            reset=fitting,
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=n_rows_needed,
        )
        names = column_names(None, array.shape[1])
        if not fitting:
            names = estimator._schema.names
        columns = encode_array(array, names)
    else:
        known = None if fitting else getattr(estimator, "feature_names_in_", None)
        if known is not None and set(known) == set(frame.columns):
            frame = frame.select(list(known))
        validate_data(estimator, frame.to_native(), reset=fitting, skip_check_array=True)
        names = column_names(frame, frame.shape[1]) if fitting else estimator._schema.names
        columns = check_array(
            encode_frame(frame, names),
            ensure_all_finite=False,
            ensure_min_samples=n_rows_needed,
            estimator=estimator,
        )
    require_finite(columns, names)
    if not fitting:
        return columns, estimator._schema
    backend = None if frame is None else frame.implementation.name.lower()
    return columns, learn_schema(names, columns, backend)


def _array_of_lists(X: Any) -> Any:
    # numpy turns [[1.0, "red"]] into text throughout; as objects the numbers stay numbers, and an
    # error names the column that is text.
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def read_response(estimator: BaseEstimator, y: Any, n_rows: int) -> Array:
    """The regression target ``y`` as a finite float vector."""
    target = read_target(estimator, y, n_rows)
    if target.dtype.kind == "O":
        _refuse_target(_missing(target), "NaN")
    if target.dtype.kind in "USOmMV":
        try:
            target = target.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"y must be numbers for {type(estimator).__name__}, and it is not ({error}): "
                "convert it to floats, or use LANAMClassifier if these are classes"
            ) from error
    _require_finite_target(target)
    response: Array = target.astype(np.float64)
    _require_squares(response)
    return response


def read_labels(estimator: BaseEstimator, y: Any, n_rows: int) -> np.ndarray:
    """The labels ``y`` as a vector of whatever they are, none of them missing."""
    labels = read_target(estimator, y, n_rows)
    if labels.dtype.kind == "f":
        _require_finite_target(labels)
    elif labels.dtype.kind == "O":
        _refuse_target(_missing(labels), "NaN")
    return labels


def _missing(objects: np.ndarray) -> np.ndarray:
    # NaN is the one value that is not itself.
    return np.array([is_missing(value) or bool(value != value) for value in objects.tolist()])


def _require_squares(response: Array) -> None:
    """Refuse a target whose variance no float can hold."""
    largest = float(np.max(np.abs(response), initial=0.0))
    if largest > _LARGEST or 0.0 < largest < 1.0 / _LARGEST:
        raise ValueError(
            f"y has values of magnitude {largest:.0e}, whose squares no float can hold: change the "
            f"unit of y, for example to y / {largest:.0e}"
        )


def _require_finite_target(target: np.ndarray) -> None:
    _refuse_target(np.isnan(target), "NaN")
    _refuse_target(np.isinf(target), "infinity")


def _refuse_target(bad: np.ndarray, word: str) -> None:
    if bad.any():
        raise ValueError(
            f"Input y contains {word}: {bad.sum()} of {len(bad)} values, the first in row "
            f"{int(np.argmax(bad))}. Drop these rows: a target cannot be imputed."
        )


def read_target(estimator: BaseEstimator, y: Any, n_rows: int) -> np.ndarray:
    """The target ``y`` as a vector of whatever it holds, as long as the rows."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    target: np.ndarray = column_or_1d(y, warn=True)
    if target.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must be real")
    if len(target) != n_rows:
        raise ValueError(
            f"X has {n_rows} rows and y has {len(target)} values: they must be as many. Found "
            "input variables with inconsistent numbers of samples."
        )
    return target


def read_weights(sample_weight: Any, n_rows: int) -> Array:
    """The rows' weights as a vector; ones where there are none.

    Raises
    ------
    ValueError
        For weights that are negative, not finite, all zero, or not one a row.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    weight: Array = check_array(
        sample_weight,
        dtype=np.float64,
        ensure_2d=False,
        ensure_all_finite=True,
        input_name="sample_weight",
    )
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must have one dimension, and has {weight.ndim}")
    check_consistent_length(weight, np.empty(n_rows))
    if (weight < 0.0).any():
        raise ValueError(
            f"Negative values in sample_weight: {(weight < 0.0).sum()} of {n_rows}, the first in "
            f"row {int(np.argmax(weight < 0.0))}. A weight counts how often a row was seen; use 0 "
            "to leave a row out."
        )
    if not weight.any():
        raise ValueError("sample_weight is zero for every row: nothing is left to fit")
    if weight.max() > _LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight has values up to {weight.max():.0e}. A weight counts how often a row was "
            "seen: divide all weights by their mean if only their ratios matter"
        )
    return weight
