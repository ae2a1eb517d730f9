"""Frames to arrays, and columns back to a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from lanam.data.schema import Array, Frame, is_missing, not_numeric, require_numeric

#: Libraries that can hold an answer, in order of preference.
_BACKENDS = ("pandas", "polars", "pyarrow")

#: How many columns an error names before it only counts them.
_MAX_NAMED = 5


def encode_frame(frame: Frame, names: Sequence[str]) -> Array:
    """A frame as a float array (n, D); nulls become NaN.

    Parameters
    ----------
    frame
        With its columns in the order wanted.
    names
        The columns' names, for errors.

    Raises
    ------
    ValueError
        If a column is not numeric; it names the column and the remedy.

    Examples
    --------
    >>> import pandas as pd
    >>> from lanam.data import as_frame
    >>> encode_frame(as_frame(pd.DataFrame({"a": [1, 2], "b": [True, False]})), ["a", "b"])
    array([[1., 1.],
           [2., 0.]])
    """
    # Columns are what the core reads one at a time, so each is contiguous.
    result = np.empty(frame.shape, order="F")
    for index, (series, name) in enumerate(zip(frame.iter_columns(), names, strict=True)):
        require_numeric(series, name)
        if series.null_count() == len(series):
            result[:, index] = np.nan
        elif series.dtype == nw.Object:
            values = series.to_list()
            result[:, index] = [np.nan if is_missing(value) else float(value) for value in values]
        else:
            result[:, index] = series.cast(nw.Float64).to_numpy()
    return result


def encode_array(array: NDArray[Any], names: Sequence[str]) -> Array:
    """A two-dimensional array as floats; text, dates and complex numbers are refused by column.

    Examples
    --------
    >>> import numpy as np
    >>> encode_array(np.array([[1, 2]]), ["a", "b"])
    array([[1., 2.]])
    >>> encode_array(np.array([["1", "red"]]), ["size", "colour"])
    Traceback (most recent call last):
        ...
    ValueError: column 'size' holds text (for example '1'), ...
    """
    if array.dtype.kind in "USOmMV":
        for index, name in enumerate(names):
            for value in array[:, index]:
                if isinstance(value, (str, bytes)):
                    raise not_numeric(name, "text", value)
                if isinstance(value, (np.datetime64, np.timedelta64)):
                    raise not_numeric(name, "dates", value)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: pass real and imaginary parts as columns")
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused as such
        return np.asarray(array, dtype=np.float64)


def require_finite(columns: Array, names: Sequence[str]) -> None:
    """Refuse NaN and infinity, naming the columns and what to do.

    Examples
    --------
    >>> import numpy as np
    >>> require_finite(np.array([[1.0, np.nan], [2.0, 3.0]]), ["age", "bmi"])
    Traceback (most recent call last):
        ...
    ValueError: Input X contains NaN: column 'bmi' has 1 missing value. lanam does not ...
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(columns.sum()):  # the common case, without an array of flags
            return
    missing = np.isnan(columns).sum(axis=0)
    if missing.any():
        raise ValueError(
            f"Input X contains NaN: {_count(missing, names, 'missing value')}. lanam does not "
            "handle missing values yet: drop these rows, or impute them, for example with "
            "sklearn.impute.SimpleImputer(add_indicator=True)."
        )
    infinite = np.isinf(columns).sum(axis=0)
    if infinite.any():
        raise ValueError(
            f"Input X contains infinity: {_count(infinite, names, 'infinite value')}. Find out "
            "where they come from (often a division by zero, or the logarithm of zero), and drop "
            "or replace them."
        )


def _count(counts: NDArray[np.intp], names: Sequence[str], what: str) -> str:
    parts = [
        f"column {name!r} has {count} {what}{'s' if count > 1 else ''}"
        for name, count in zip(names, counts, strict=True)
        if count > 0
    ]
    if len(parts) > _MAX_NAMED:
        parts[_MAX_NAMED:] = [f"and {len(parts) - _MAX_NAMED} more columns"]
    return ", ".join(parts)


def make_frame(columns: Mapping[str, Any], backend: str | None = None) -> Any:
    """Columns as a frame of ``backend``, or of the first library that is installed.

    Examples
    --------
    >>> make_frame({"term": ["bmi"], "importance": [0.5]}, backend="pandas")
      term  importance
    0  bmi         0.5
    """
    installed = [name for name in _BACKENDS if find_spec(name) is not None]
    chosen: Any = backend if backend in installed else next(iter(installed), None)
    if chosen is None:
        raise ImportError(
            "to_frame needs pandas, polars or pyarrow, and none is installed: install one, for "
            "example with `pip install pandas`, or use to_dict"
        )
    return nw.from_dict(dict(columns), backend=chosen).to_native()
