"""Checks of what users pass to ``fit`` and ``predict``, by the rules of scikit-learn and of ``data``.

Targets and weights become finite floats, columns floats that may be missing.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Collection, Sequence
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
    encode_table,
    is_missing,
    learn_table,
    read_categorical,
    warn_unseen,
)
from lanam.data.cells import read_cells
from lanam.data.columns import read_orders
from lanam.data.encoding import factorise
from lanam.data.errors import missing_columns, unknown_columns
from lanam.errors import InputError, Line, warn_user
from lanam.families import Family

#: Squares of larger numbers, and of smaller ones than its inverse, come near the ends of a float.
_LARGEST = 1e140

#: Exposures beyond this, or below its inverse, have the wrong unit.
_LARGEST_EXPOSURE = 1e100

#: Offsets beyond this are on another scale than the link's.
_LARGEST_OFFSET = 1e100

_LARGEST_WEIGHT = 1e12
#: A fit needs two observations.
_LEAST_WEIGHT = 2.0

_DROP = "Drop these rows, because a target cannot be imputed"


def read_columns(
    estimator: BaseEstimator, X: Any, *, fitting: bool, used: Collection[int] | None = None
) -> tuple[Array, Schema]:
    """The table ``X`` as an array (n, D) of numbers and codes, and its schema.

    Fitting sets ``n_features_in_`` and ``feature_names_in_``. Otherwise columns with names are matched by
    name, in any order, and one warning counts the values that the training data did not have, of the
    columns that are ``used``; None for all.
    """
    X = _with_missing(X)
    frame = as_frame(X)
    least = 2 if fitting else 1  # noise cannot be estimated from one row
    table: Any
    if frame is None:
        table = validate_data(
            estimator,
            _array_of_lists(X) if isinstance(X, (list, tuple)) else X,
            reset=fitting,
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=least,
        )
        if table.dtype.kind == "c":
            raise ValueError("Complex data not supported: pass real and imaginary parts as columns")
    else:
        table = _match(estimator, frame, fitting)
        # The numbers of rows and columns are checked on an array of the same shape.
        shape = np.broadcast_to(False, table.shape)
        check_array(shape, dtype=None, ensure_min_samples=least, estimator=estimator)
    if fitting:
        names = column_names(frame, table.shape[1])
        categorical = read_categorical(estimator.categorical_features, names)
        backend = None if frame is None else frame.implementation.name.lower()
        return learn_table(
            table, names, categorical, backend, read_orders(estimator.ordered, names)
        )
    fitted = estimator._inputs
    columns, unseen = encode_table(table, fitted)
    names = fitted.names
    warned = names if used is None else [names[feature] for feature in used]
    warn_unseen([each for each in unseen if each.name in warned])
    return columns, fitted


def _match(estimator: BaseEstimator, frame: Any, fitting: bool) -> Any:
    """The frame with its columns in the order of the fit; further columns are left out with a warning."""
    if not fitting:
        frame = _in_order(frame, estimator._inputs.names)
    try:
        validate_data(estimator, frame.to_native(), reset=fitting, skip_check_array=True)
    except ValueError as error:
        fitted = None if fitting else getattr(estimator, "feature_names_in_", None)
        if fitted is None or set(fitted) == set(frame.columns):
            raise
        # scikit-learn's message names the columns, and its checks look for it.
        words = f"{error}The model needs every column that it was fitted with"
        raise missing_columns("X", frame.columns, fitted, words) or error from None
    return frame


def _in_order(frame: Any, fitted: Sequence[str]) -> Any:
    """The columns that the model was fitted with, by their labels; as they are if some are missing.

    Labels that are not text (integers, tuples of several levels) count as the text that names them.
    """
    names = column_names(frame, frame.shape[1])
    place = {name: k for k, name in enumerate(names)}
    if names == tuple(fitted):
        return frame
    if not place.keys() >= set(fitted):
        if all(isinstance(label, str) for label in frame.columns):
            return frame  # scikit-learn names the columns
        positions = column_names(None, len(names))
        if names == positions or tuple(fitted) == positions:
            return frame
        if error := missing_columns("X", names, fitted):
            raise error
    if unknown := [name for name in names if name not in fitted]:
        warn_user(unknown_columns(unknown))
    return frame[:, [place[name] for name in fitted]]


def _with_missing(X: Any) -> Any:
    """Masked values of an array as missing ones."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    numeric = X.dtype.kind in "fiub"
    values = np.array(X.data, dtype=np.float64 if numeric else object)
    values[np.ma.getmaskarray(X)] = np.nan if numeric else None
    return values


def _array_of_lists(X: Any) -> Any:
    # numpy turns [[1.0, "red"]] into strings throughout, and [[1.0, True]] into numbers; as objects
    # values keep their types, and each column is judged by its own.
    array = np.asarray(X)
    if array.dtype.kind in "US" or (array.dtype.kind in "fiu" and _has_booleans(X)):
        return np.asarray(X, dtype=object)
    return array


def _has_booleans(X: Any) -> bool:
    rows = (row for row in X if isinstance(row, (list, tuple)))
    return any(not {bool, np.bool_}.isdisjoint(map(type, row)) for row in rows)


def read_groups(groups: Any, n_rows: int) -> Array:
    """A number for each row that is the same for all rows of a group, and does not depend on the others.

    Examples
    --------
    >>> numbers = read_groups(["a", "b", "a"], 3)
    >>> bool(numbers[0] == numbers[2] != numbers[1]), bool(read_groups(["a"], 1)[0] == numbers[0])
    (True, True)
    """
    values = groups.to_numpy() if hasattr(groups, "to_numpy") else np.asarray(groups)
    if values.ndim != 1 or len(values) != n_rows:
        shape = f"shape {values.shape}" if values.ndim != 1 else f"{len(values)} values"
        problem = f"{{argument}} has {shape}, and there are {n_rows} rows"
        raise InputError(problem, "pass one value per row", argument="groups")
    codes, levels = factorise(read_cells(values[:, None], 0, "groups"))
    if np.isnan(codes).any():
        row = int(np.argmax(np.isnan(codes)))
        problem = "{argument} has a missing value in row {row}"
        raise InputError(
            problem, "Give every row a group, or drop these rows", argument="groups", row=row
        )
    digests = (hashlib.blake2b(repr(level).encode(), digest_size=6) for level in levels)
    numbers = np.array([int.from_bytes(digest.digest()) for digest in digests], dtype=np.float64)
    return np.asarray(numbers[codes.astype(np.intp)])


def read_target_of(family: Family, estimator: BaseEstimator, y: Any, n_rows: int) -> np.ndarray:
    """The target ``y`` of a response family: finite numbers in its support, or class labels."""
    target = read_target(estimator, y, n_rows)
    if not family.link.classes:
        return family.check(read_response(target, type(estimator).__name__))
    _require_finite_target(target)
    return plain_labels(target)


def plain_labels(labels: np.ndarray) -> np.ndarray:
    """Labels unchanged, except that numbers in an object array become a numeric array."""
    if labels.dtype.kind != "O" or any(isinstance(label, str) for label in labels.tolist()):
        return labels
    known = (bool, int, float, np.generic)
    strange = next((type(x) for x in labels.tolist() if not isinstance(x, known)), None)
    if strange is not None:
        raise InputError(
            f"y has labels of type {strange.__name__}, and classes are text, numbers or booleans",
            "make all of them text, for example with `y = [str(label) for label in y]`",
            argument="y",
        )
    return np.array(labels.tolist())


def read_response(target: np.ndarray, estimator: str, *, chunk: bool = False) -> Array:
    """A regression target as finite floats, for an estimator of this name.

    Whether all values are very small is not checked in a ``chunk`` of the rows.
    """
    if target.dtype.kind in "mM":
        raise ValueError(
            f"y holds {'dates' if target.dtype.kind == 'M' else 'durations'}, and "
            f"{estimator} predicts numbers: pass for example the days since a date, "
            "(y - y.min()) / np.timedelta64(1, 'D')"
        )
    _require_finite_target(target)
    try:
        response = target.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must be numeric for {estimator}, and it is not ({error}): "
            "convert it to floats, or use LANAMClassifier if these are classes"
        ) from error
    largest = float(np.max(np.abs(response), initial=0.0))
    require_squares(max(largest, 1.0) if chunk else largest)
    return response


def refuse_missing_target(missing: np.ndarray, line: Line | None = None) -> None:
    """Reject missing targets; ``line`` is code that drops these rows."""
    _refuse(missing, "y", "NaN", _DROP + "{example}" if line else _DROP, line)


def _refuse(
    bad: np.ndarray, argument: str, word: str, remedy: str, line: Line | None = None
) -> None:
    if bad.any():
        where = f"{bad.sum()} of {len(bad)} values, the first in row {{row}}"
        problem = f"Input {{argument}} contains {word}: {where}"
        raise InputError(problem, remedy, argument=argument, row=int(np.argmax(bad)), line=line)


def _require_finite_target(target: np.ndarray) -> None:
    if target.dtype.kind == "O":
        refuse_missing_target(np.array([is_missing(value) for value in target.tolist()]))
    elif target.dtype.kind == "f":
        refuse_missing_target(np.isnan(target))
        _refuse(np.isinf(target), "y", "infinity", _DROP)


def require_squares(largest: float) -> None:
    """Reject a target whose variance overflows, by the largest magnitude of its values."""
    if largest > _LARGEST or 0.0 < largest < 1.0 / _LARGEST:
        raise ValueError(
            f"y has values of magnitude {largest:.0e}, whose squares are beyond the range of floats: "
            f"change the unit of y, for example to y / {largest:.0e}"
        )


def read_target(estimator: BaseEstimator, y: Any, n_rows: int) -> np.ndarray:
    """The target ``y`` as a vector of any type, one value per row."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    if np.ma.isMaskedArray(y):
        refuse_missing_target(np.ma.getmaskarray(y).ravel())
    target: np.ndarray = column_or_1d(_labels_in_objects(y), warn=True)
    if target.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must be real")
    if len(target) != n_rows:
        raise ValueError(
            f"X has {n_rows} rows and y has {len(target)} values: they must be equal. Found "
            "input variables with inconsistent numbers of samples."
        )
    return target


def _labels_in_objects(y: Any) -> Any:
    """A sequence of tuples as an array of objects, which numpy would spread over columns."""
    values = getattr(y, "tolist", lambda: y)()
    if not isinstance(values, (list, tuple)) or not any(isinstance(v, tuple) for v in values):
        return y
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def read_weights(sample_weight: Any, n_rows: int, *, chunk: bool = False) -> Array:
    """The rows' weights, ones by default; they may all be zero only in a ``chunk`` of the rows."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = read_numbers(sample_weight, n_rows, "sample_weight", "use 0 to leave a row out")
    if weight.ndim != 1:
        problem = "{argument} must have one dimension, and has {value}"
        raise InputError(problem, argument="sample_weight", value=weight.ndim)
    check_consistent_length(weight, np.empty(n_rows))
    if (bad := weight < 0.0).any():
        problem = (
            f"Negative values in {{argument}}: {bad.sum()} of {len(bad)}, the first in row {{row}}"
        )
        remedy = "A weight counts how often a row was seen; use 0 to leave a row out."
        raise InputError(problem, remedy, argument="sample_weight", row=int(np.argmax(bad)))
    if (most := weight.max(initial=0.0)) > _LARGEST_WEIGHT:
        problem = (
            f"{{argument}} has values up to {most:.0e}. A weight counts how often a row was seen"
        )
        remedy = "divide all weights by their mean if only their ratios matter"
        raise InputError(problem, remedy, argument="sample_weight")
    if not chunk:
        require_enough(int((weight > 0.0).sum()), least=1)
    return weight


def require_enough(n_rows: int, *, least: int = 2) -> None:
    """Reject fewer rows with a positive weight than are needed."""
    if n_rows == 0:
        problem = "{argument} is zero for every row: no row is left to fit"
        raise InputError(problem, argument="sample_weight")
    if n_rows < least:
        raise ValueError(
            f"only {n_rows} sample has a positive weight: a fit needs at least {least}"
        )


def require_weight(total: float, n_rows: int) -> None:
    """Reject weights that sum to hardly more than one observation."""
    if total < _LEAST_WEIGHT:
        raise InputError(
            f"{{argument}} sums to {total:.2g} for {n_rows} rows, fewer than the two observations that a "
            "fit needs. A weight counts how often a row was observed",
            "divide all weights by their mean if only their ratios matter",
            argument="sample_weight",
        )


def read_given(values: Any, n_rows: int, argument: str) -> Array:
    """Exposures, trials or offsets of rows; ones or zeros by default."""
    if argument == "offset":
        return read_offset(values, n_rows)
    return read_trials(values, n_rows) if argument == "trials" else read_exposure(values, n_rows)


def read_trials(trials: Any, n_rows: int) -> Array:
    """The rows' numbers of trials, ones by default.

    Examples
    --------
    >>> read_trials([10, 2.5], 2)
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: trials must be whole numbers, and 1 of 2 values are not, the first, 2.5, ...
    """
    values = read_exposure(trials, n_rows, "trials")
    if (bad := values != np.floor(values)).any():
        row = int(np.argmax(bad))
        first = f"{bad.sum()} of {len(values)} values are not, the first, {values[row]:g}, in row {{row}}"
        problem = f"{{argument}} must be whole numbers, and {first}"
        remedy = "pass how many trials the successes in y are out of"
        raise InputError(problem, remedy, argument="trials", row=row)
    return values


def read_offset(offset: Any, n_rows: int) -> Array:
    """The rows' offsets on the link scale, zeros by default.

    Examples
    --------
    >>> read_offset([0.1, -0.2], 2)
    array([ 0.1, -0.2])
    """
    if offset is None:
        return np.zeros(n_rows)
    values = read_numbers(offset, n_rows, "offset", "use 0 for rows without an offset")
    _require_per_row(values, n_rows, "offset")
    if np.abs(values).max(initial=0.0) > _LARGEST_OFFSET:
        problem = f"{{argument}} has values of magnitude {np.abs(values).max():.0e}"
        remedy = "offsets are on the scale of the link, for example the logarithm of an exposure"
        raise InputError(problem, remedy, argument="offset")
    return values


def _require_per_row(values: Array, n_rows: int, argument: str) -> None:
    if values.shape != (n_rows,):
        seen = f"{{X}} has {n_rows} rows, and {{argument}} has the shape {values.shape}"
        problem = f"{{argument}} must be one number, or one per row: {seen}"
        raise InputError(problem, argument=argument)


def read_exposure(exposure: Any, n_rows: int, argument: str = "exposure") -> Array:
    """The rows' exposures, ones by default.

    Examples
    --------
    >>> read_exposure(0.5, 3)
    array([0.5, 0.5, 0.5])
    >>> read_exposure([1.0, 0.0, 2.0], 3)
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: exposure must be positive, and 1 of 3 values are not, the first, 0, ...
    """
    if exposure is None:
        return np.ones(n_rows)
    remedy = f"leave out rows without {argument}"
    values = read_numbers(exposure, n_rows, argument, remedy)
    _require_per_row(values, n_rows, argument)
    if (bad := values <= 0.0).any():
        row = int(np.argmax(bad))
        first = f"{bad.sum()} of {len(values)} values are not, the first, {values[row]:g}, in row {{row}}"
        problem = f"{{argument}} must be positive, and {first}"
        raise InputError(problem, remedy.capitalize() + ".", argument=argument, row=row)
    if (
        values.size
        and not 1.0 / _LARGEST_EXPOSURE <= values.min() <= values.max() <= _LARGEST_EXPOSURE
    ):
        problem = f"{{argument}} has values from {values.min():.0e} to {values.max():.0e}"
        raise InputError(problem, "change its unit", argument=argument)
    return values


def read_numbers(values: Any, n_rows: int, argument: str, remedy: str) -> Array:
    """Finite numbers; a single one is repeated for all rows."""
    if np.ma.isMaskedArray(values):
        _refuse(np.ma.getmaskarray(values).ravel(), argument, "masked values", remedy)
    if isinstance(values, numbers.Real):
        values = np.full(n_rows, float(values))
    try:
        checked: Array = check_array(
            values,
            dtype=np.float64,
            ensure_2d=False,
            ensure_all_finite=False,
            ensure_min_samples=0,
            input_name=argument,
        )
    except (TypeError, ValueError) as error:
        problem = "{argument} must be numeric, and it is not ({error})"
        raise InputError(problem, argument=argument, error=str(error)) from error
    flat = checked.ravel()
    _refuse(np.isnan(flat), argument, "NaN", remedy)
    _refuse(np.isinf(flat), argument, "infinity", remedy)
    return checked
