"""Columns of frames of any library, and of arrays, as `Cells`: type, missing values, values.

Columns that are neither numeric nor string nor boolean are rejected.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import compress
from typing import Any, TypeAlias

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from lanam.data.errors import ColumnRef, mixed, unsupported_type

Array: TypeAlias = NDArray[np.float64]
Frame: TypeAlias = "nw.DataFrame[Any]"
#: A value of a categorical column as a plain value: a string, number or boolean.
Level: TypeAlias = str | float
NarwhalsSeries: TypeAlias = Any  # the stable frames' columns have another type than nw.Series

#: Types of columns; one without values and dtype is empty.
NUMBERS = "numeric"
STRING = "string"
BOOLEAN = "boolean"
EMPTY = "empty"

#: Dtypes of frames that are rejected, and their names in messages.
_UNSUPPORTED = (
    (nw.Date, "dates"),
    (nw.Datetime, "dates"),
    (nw.Duration, "durations"),
    (nw.Time, "times of day"),
    (nw.Binary, "bytes"),
    (nw.List, "lists"),
    (nw.Array, "lists"),
    (nw.Struct, "records"),
)

#: The same for Python objects; subclasses come first.
_UNSUPPORTED_OBJECTS = (
    ((datetime.date, np.datetime64), "dates as objects"),
    ((datetime.timedelta, np.timedelta64), "durations as objects"),
    ((datetime.time,), "times of day"),
    ((bytes, bytearray), "bytes as objects"),
    ((complex, np.complexfloating), "complex numbers as objects"),
    ((list, tuple, set, np.ndarray), "lists"),
    ((dict,), "records"),
)


@dataclass(frozen=True)
class Cells:
    """One column: what it ``holds`` (numeric, string, boolean; empty without values and dtype).

    ``values`` are those of the rows in ``present``; where that is None, of all rows, with NaN for missing
    numbers. ``categorical`` says whether the dtype is categorical, ``order`` has its categories in order.
    """

    place: ColumnRef
    holds: str
    n_rows: int
    values: np.ndarray
    present: NDArray[np.bool_] | None = None
    categorical: bool = False
    order: tuple[object, ...] = ()


def read_cells(table: Frame | np.ndarray, index: int, name: str) -> Cells:
    """Column ``index`` of a frame or of a two-dimensional array.

    Examples
    --------
    >>> import pandas as pd
    >>> from lanam.data import as_frame
    >>> cells = read_cells(as_frame(pd.DataFrame({"colour": ["red", None]})), 0, "colour")
    >>> cells.holds, cells.present.tolist(), cells.values.tolist()
    ('string', [True, False], ['red'])
    """
    if isinstance(table, np.ndarray):
        return _read_array(table[:, index], ColumnRef(name, index))
    place = ColumnRef(name, index, table.implementation.name.lower())
    return _read_series(table[:, index], place)


def _read_series(series: NarwhalsSeries, place: ColumnRef) -> Cells:
    dtype = series.dtype
    if dtype.is_numeric():
        return _read_numbers(series, place)
    if dtype in (nw.Categorical, nw.Enum):
        return _read_categories(series, place)
    if dtype == nw.String and series.implementation.is_pyarrow():
        series = series.cast(nw.String)  # arrow cannot filter a view of strings
    n_rows, (present, non_null) = len(series), _present(series)
    if dtype == nw.String:
        return Cells(place, STRING, n_rows, _objects(_listed(non_null)), present)
    if dtype == nw.Boolean:
        return Cells(place, BOOLEAN, n_rows, np.asarray(non_null.to_numpy(), dtype=bool), present)
    if len(non_null) == 0:  # without values, any dtype will do
        return Cells(place, EMPTY, n_rows, np.empty(0), present)
    what = next((words for unsupported, words in _UNSUPPORTED if dtype == unsupported), None)
    if what is None:  # Python objects, or a dtype unknown to narwhals
        values = non_null.to_numpy()
        cells = _read_array(values, place)
        return cells if len(non_null) == n_rows else _spread(cells, present)
    if getattr(dtype, "time_zone", None) is not None:
        what += " with a time zone"
    raise unsupported_type(place, what, non_null.head(1).to_list()[0])


def _present(series: NarwhalsSeries) -> tuple[NDArray[np.bool_] | None, NarwhalsSeries]:
    """Which rows have a value (None: all), and these values."""
    if series.null_count() == 0:
        return None, series
    return ~np.asarray(series.is_null().to_numpy(), dtype=bool), series.drop_nulls()


def _spread(cells: Cells, present: NDArray[np.bool_] | None) -> Cells:
    """Cells of the rows ``present``, as cells of all rows."""
    assert present is not None
    rows = present.copy()
    if cells.present is not None:
        rows[present] = cells.present
    return Cells(cells.place, cells.holds, len(rows), cells.values, rows)


def _read_numbers(series: NarwhalsSeries, place: ColumnRef) -> Cells:
    n_rows = len(series)
    # numpy has no decimals, nor integers of 128 bits.
    if series.dtype == nw.Decimal or series.dtype in (nw.Int128, nw.UInt128):
        series = series.cast(nw.Float64)
    if series.dtype.is_float():  # nulls become NaN
        return Cells(place, NUMBERS, n_rows, series.to_numpy())
    # Integers stay integers: the largest would not be distinct as floats.
    present, known = _present(series)
    return Cells(place, NUMBERS, n_rows, known.to_numpy(), present)


def _read_categories(series: NarwhalsSeries, place: ColumnRef) -> Cells:
    order = _categories(series)
    if any(map(is_missing, order)):  # an arrow dictionary may have a null among its values
        every, order = series.to_list(), tuple(each for each in order if not is_missing(each))
        present: NDArray[np.bool_] | None = np.array([not is_missing(each) for each in every])
        listed: list[object] = [each for each in every if not is_missing(each)]
    else:
        present, known = _present(series)
        listed = _listed(known)
    distinct = order if order else tuple(set(listed))
    kinds = {_holds(type(value)) for value in distinct}
    if kinds <= {None}:  # intervals and dates, as categories, are represented by their names
        listed, order, kinds = [str(value) for value in listed], tuple(map(str, order)), {STRING}
    if len(kinds) > 1:
        _reject_mixture(distinct, place)
    return Cells(place, kinds.pop() or STRING, len(series), _objects(listed), present, True, order)


def _categories(series: NarwhalsSeries) -> tuple[object, ...]:
    """The dtype's categories in their order, if it has any."""
    if series.implementation.is_polars() and series.dtype == nw.Categorical:
        return ()  # shared by all frames of a session, in order of appearance
    try:
        return tuple(series.cat.get_categories().to_list())
    except AttributeError:  # arrow's dictionaries inside pandas
        arrow = series.to_native().array.__arrow_array__()
        return tuple(nw.from_native(arrow, series_only=True).cat.get_categories().to_list())


def _listed(series: NarwhalsSeries) -> list[object]:
    # The fast way to Python objects differs by library. The series has no nulls, which numpy would miss
    # in an arrow dictionary.
    if series.implementation.is_pyarrow():
        try:
            values = series.to_numpy()
        except TypeError:  # before pyarrow 23: unsigned indices, which DuckDB's enums have
            native = series.to_native()
            values = native.cast(native.type.value_type).to_numpy()
        listed: list[object] = values.tolist()
        return listed
    return list(series.to_list())


def _read_array(values: np.ndarray, place: ColumnRef) -> Cells:
    kind = values.dtype.kind
    if kind in "fiu":
        return Cells(place, NUMBERS, len(values), values)
    if kind == "b":
        return Cells(place, BOOLEAN, len(values), values)
    if kind in "UTO":
        return _read_objects(values.tolist(), place)
    what = {"M": "dates", "m": "durations", "S": "bytes", "c": "complex numbers"}.get(
        kind, "records"
    )
    raise unsupported_type(place, what, values[0])


def _read_objects(values: list[object], place: ColumnRef) -> Cells:
    """Cells of Python objects, which must be all strings, all numbers or all booleans."""
    n_rows, present = len(values), None
    types = set(map(type, values))
    if not all(kind is bool or issubclass(kind, (str, int)) for kind in types):
        present = np.array([not is_missing(value) for value in values], dtype=bool)
        values = list(compress(values, present))
        types = set(map(type, values))
    kinds = {_holds(kind) for kind in types}
    if not kinds:
        return Cells(place, EMPTY, n_rows, np.empty(0), present)
    if None in kinds:
        odd = next(value for value in values if _holds(type(value)) is None)
        raise unsupported_type(place, _name_of_object(odd), odd)
    if kinds == {BOOLEAN}:
        return Cells(place, BOOLEAN, n_rows, np.array(values, dtype=bool), present)
    if kinds == {STRING}:
        return Cells(place, STRING, n_rows, _objects(values), present)
    if STRING in kinds:
        _reject_mixture(values, place)
    return Cells(place, NUMBERS, n_rows, _number_array(values, types), present)


def _reject_mixture(values: Sequence[object], place: ColumnRef) -> None:
    text = next((value for value in values if _holds(type(value)) == STRING), None)
    other = next(value for value in values if _holds(type(value)) != STRING)
    if text is None:
        text = next(value for value in values if _holds(type(value)) != _holds(type(other)))
    raise mixed(place, other, text)


def _holds(kind: type) -> str | None:
    """What a column of objects of a type holds; None if it is rejected."""
    if issubclass(kind, str):
        return STRING
    if issubclass(kind, (bool, np.bool_)):
        return BOOLEAN
    if issubclass(kind, np.timedelta64):  # a number, to numpy
        return None
    # Not complex numbers, whose imaginary part floats would lose.
    return NUMBERS if issubclass(kind, (numbers.Real, Decimal)) else None


def _name_of_object(value: object) -> str:
    known = next((words for types, words in _UNSUPPORTED_OBJECTS if isinstance(value, types)), None)
    if known == "dates as objects" and getattr(value, "tzinfo", None) is not None:
        return "dates with a time zone"
    by_name = {"Period": "periods", "Interval": "intervals"}
    return known or by_name.get(type(value).__name__, "objects")


def _number_array(values: list[object], types: set[type]) -> np.ndarray:
    if all(issubclass(kind, numbers.Integral) for kind in types):
        array = np.array(values)
        if array.dtype.kind in "iu":
            return array
    return np.array([_as_float(value) for value in values])


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond the largest float, rejected as infinite
        return float("inf")


def _objects(values: list[object]) -> np.ndarray:
    # np.array would make fixed-width strings, and a table of tuples.
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def is_missing(value: object) -> bool:
    """Whether an object is a missing value: None, NaN, ``pd.NA`` or ``pd.NaT``.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), 0.0, "", "NaN")]
    [True, True, False, False, False]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    # NaN is not equal to itself.
    return isinstance(value, (float, np.floating)) and bool(value != value)
