"""Tables to arrays, and columns back to a frame.

In the array a categorical column has codes 0 to K - 1 of its levels; NaN is a missing value, `UNSEEN` an
unseen category.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from lanam.data.cells import BOOLEAN, EMPTY, NUMBERS, STRING, Array, Cells, Frame, Level, read_cells
from lanam.data.errors import ColumnRef, inexact, type_changed
from lanam.data.schema import (
    CATEGORICAL,
    NUMERIC,
    UNSEEN,
    Column,
    Schema,
    kind_of,
    learn_column,
    learn_schema,
)
from lanam.data.strings import require_categories
from lanam.data.unseen import UnseenValues
from lanam.errors import InputError
from lanam.text import did_you_mean, utf8

#: Integers whose rounding to floats is less than this fraction of their range are numbers like others.
_MOST_ROUNDING = 1e-6

#: Libraries of frames that are returned, in order of preference.
_BACKENDS = ("pandas", "polars", "pyarrow")

#: Where no column has an order.
NO_ORDERS: Mapping[int, tuple[Level, ...]] = MappingProxyType({})

#: How many columns a message names.
_MAX_NAMED = 5

#: Floats beyond this are not all distinct integers.
_LARGEST_WHOLE = 2.0**53


def learn_table(
    table: Frame | np.ndarray,
    names: Sequence[str],
    categorical: frozenset[int] = frozenset(),
    backend: str | None = None,
    orders: Mapping[int, tuple[Level, ...]] = NO_ORDERS,
) -> tuple[Array, Schema]:
    """The array (n, D) of a training table, and its schema.

    Columns whose indices are in ``categorical`` are categorical whatever they hold, and so are those with
    ``orders``, whose categories these are.

    Examples
    --------
    >>> import pandas as pd
    >>> from lanam.data import as_frame
    >>> frame = as_frame(pd.DataFrame({"age": [40, 61, 50], "city": ["Rome", "Bonn", None]}))
    >>> columns, schema = learn_table(frame, ["age", "city"])
    >>> columns
    array([[40.,  1.],
           [61.,  0.],
           [50., nan]])
    >>> schema.columns[1].levels
    ('Bonn', 'Rome')
    """
    if (
        isinstance(table, np.ndarray)
        and table.dtype.kind in "fiu"
        and not categorical | orders.keys()
    ):
        columns = _float_columns(table)
        for index, name in enumerate(names if table.dtype.kind in "iu" else ()):
            require_exact(read_cells(table, index, name))
        require_no_infinity(columns, names)
        return columns, learn_schema(names, columns, backend)
    columns = np.empty(table.shape, order="F")  # the core reads one column at a time
    learned = []
    for index, name in enumerate(names):
        cells = read_cells(table, index, name)
        declared = index in categorical or index in orders
        column = Column(name, kind_of(cells, declared=declared), np.nan, np.nan)
        if column.kind == NUMERIC:
            require_exact(cells)
            columns[:, index] = _numbers(cells)
        elif index in orders:
            column = Column(name, CATEGORICAL, np.nan, np.nan, orders[index])
            columns[:, index] = _encode_in_order(cells, column)
        else:
            codes, levels = factorise(cells)
            if cells.holds == STRING and not declared:
                n_values = None if cells.categorical else len(cells.values)
                require_categories(cells.place, [str(level) for level in levels], n_values)
            column = Column(name, CATEGORICAL, np.nan, np.nan, levels)
            columns[:, index] = codes
        learned.append(column)
    require_no_infinity(columns, names)
    schema_columns = tuple(map(learn_column, learned, columns.T))
    return columns, Schema(schema_columns, backend)


def encode_table(
    table: Frame | np.ndarray, schema: Schema
) -> tuple[Array, tuple[UnseenValues, ...]]:
    """The array (n, D) of new rows, columns in the schema's order, and their unseen values.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.array([["Rome"], ["Bonn"], ["Rome"]])
    >>> _, schema = learn_table(table, ["city"])
    >>> columns, unseen = encode_table(np.array([["Oslo"], ["Rome"]]), schema)
    >>> columns.tolist()
    [[-1.0], [1.0]]
    >>> print(unseen[0])
    column 'city': 1 of 2 values is an unseen category ('Oslo'): predicted with the mean ...
    """
    numeric = all(column.kind == NUMERIC for column in schema.columns)
    if isinstance(table, np.ndarray) and table.dtype.kind in "fiu" and numeric:
        columns = _float_columns(table)
        examples: list[tuple[object, ...]] = [()] * schema.n_columns
    else:
        columns, examples = np.empty(table.shape, order="F"), []
        for index, column in enumerate(schema.columns):
            cells = read_cells(table, index, column.name)
            encode = _encode_numbers if column.kind == NUMERIC else _encode_levels
            columns[:, index], new = encode(cells, column)
            examples.append(new)
    require_no_infinity(columns, schema.names)
    unseen = map(_unseen_values, schema.columns, columns.T, examples)
    return columns, tuple(each for each in unseen if each is not None)


def _unseen_values(
    column: Column, values: Array, examples: tuple[object, ...]
) -> UnseenValues | None:
    n_unseen = int((values == UNSEEN).sum()) if examples else 0
    n_missing = 0 if column.missing else int(np.isnan(values).sum())
    if not (n_unseen or n_missing):
        return None
    return UnseenValues(column.name, len(values), n_unseen, examples, n_missing)


def _float_columns(array: np.ndarray) -> Array:
    with np.errstate(over="ignore"):  # overflow becomes infinite, and is rejected as such
        return np.asarray(array, dtype=np.float64, order="F")


def _encode_numbers(cells: Cells, column: Column) -> tuple[Array, tuple[object, ...]]:
    if column.holds == EMPTY:  # any value is new, whatever it is
        codes, values = factorise(cells)
        return np.where(np.isnan(codes), np.nan, UNSEEN), values
    # Booleans are 0 and 1, which is unambiguous only if the training data were within that range.
    within = column.lowest >= 0.0 and column.highest <= 1.0
    if cells.holds == STRING or (cells.holds == BOOLEAN and not within):
        _reject_change(cells, column)
    return _numbers(cells), ()


def _encode_levels(cells: Cells, column: Column) -> tuple[Array, tuple[object, ...]]:
    codes, values = factorise(cells)
    _require_comparable(cells, values, column)
    # Python's equality: 3 and 3.0 are one category, and so are 1 and True.
    code_of = {level: code for code, level in enumerate(column.levels)}
    table = np.array([code_of.get(value, UNSEEN) for value in values] + [np.nan])
    unseen = tuple(value for value in values if value not in code_of)
    missing = np.isnan(codes)
    return table[np.where(missing, len(values), codes).astype(np.intp)], unseen


def _encode_in_order(cells: Cells, column: Column) -> Array:
    """The codes of a column whose categories are known before."""
    codes, values = factorise(cells)
    require_ordered(cells.place, values, column.levels)
    code_of = {level: code for code, level in enumerate(column.levels)}
    table = np.array([*(float(code_of[value]) for value in values), np.nan])
    return table[np.where(np.isnan(codes), len(values), codes).astype(np.intp)]


def require_ordered(place: ColumnRef, values: Iterable[Level], order: Sequence[Level]) -> None:
    """Reject categories that the order of a column does not have."""
    unknown = [value for value in values if value not in order]
    if unknown:
        raise InputError(
            "column {column!r} has the category {value!r}, which {ordered} does not have",
            "add it to the order, in its place; {hint}",
            argument="ordered",
            column=place.name,
            value=unknown[0],
            hint=did_you_mean(str(unknown[0]), list(map(str, order)), "the order is"),
        )


def _require_comparable(cells: Cells, values: Sequence[Level], column: Column) -> None:
    before, now = column.holds, cells.holds
    if EMPTY in (before, now) or before == now or not values:
        return
    if STRING not in (before, now) and {*values, *column.levels} <= {0, 1}:
        return
    _reject_change(cells, column)


def _reject_change(cells: Cells, column: Column) -> None:
    if cells.values.size == 0:
        return  # nothing but missing values, whatever their dtype is
    raise type_changed(cells.place, column.holds, cells.holds, cells.values.flat[0])


def _numbers(cells: Cells) -> Array:
    """The column's numbers (n,), NaN where they are missing."""
    with np.errstate(over="ignore"):
        if cells.present is None:
            return np.asarray(cells.values, dtype=np.float64)
        numbers = np.full(cells.n_rows, np.nan)
        numbers[cells.present] = cells.values
        return numbers


def factorise(cells: Cells) -> tuple[Array, tuple[Level, ...]]:
    """The column's codes (n,), NaN for missing values, and its levels.

    Levels are in the order of the dtype's categories, or ascending.

    Examples
    --------
    >>> import numpy as np
    >>> factorise(read_cells(np.array([[7.0], [np.nan], [3.0]]), 0, "zone"))
    (array([ 1., nan,  0.]), (3, 7))
    """
    values, present = cells.values, cells.present
    if values.dtype.kind == "f" and np.isnan(values).any():
        valid = ~np.isnan(values)
        rows = np.ones(cells.n_rows, dtype=bool) if present is None else present.copy()
        rows[rows] = valid
        values, present = values[valid], rows
    if values.dtype.kind == "O":
        levels, inverse = _factorise_objects(values, cells.order)
    else:
        distinct, inverse = np.unique(values, return_inverse=True)
        levels = distinct.tolist()
        if distinct.dtype.kind == "f" and distinct.dtype.itemsize < 8:
            # Single precision stands for its shortest decimal: 0.1, not 0.10000000149.
            levels = [float(str(value)) for value in distinct]
    if cells.holds == NUMBERS and any(map(math.isinf, levels)):
        require_no_infinity(_numbers(cells)[:, None], [cells.place.name])
    if present is None:
        return inverse.astype(np.float64), plain_levels(levels)
    codes = np.full(cells.n_rows, np.nan)
    codes[present] = inverse
    return codes, plain_levels(levels)


def _factorise_objects(
    values: np.ndarray, order: tuple[object, ...]
) -> tuple[list[Any], NDArray[np.intp]]:
    # This loop over rows runs in C; the libraries' own ways are hardly faster.
    listed = values.tolist()
    seen = set(listed)
    levels = [level for level in order if level in seen] if order else sorted(seen)
    codes = {level: code for code, level in enumerate(levels)}
    return levels, np.fromiter(map(codes.__getitem__, listed), np.intp, len(listed))


def plain_levels(levels: list[Any]) -> tuple[Level, ...]:
    """Levels as plain Python values; integers stored as floats, because of missing values, as integers."""
    if not levels or isinstance(levels[0], str):
        return tuple(map(str, levels))
    if isinstance(levels[0], (bool, np.bool_)):
        return tuple(map(bool, levels))
    plain = [level.item() if isinstance(level, np.generic) else level for level in levels]
    if all(isinstance(level, int) for level in plain):
        return tuple(plain)
    floats = [float(level) for level in plain]
    if all(level.is_integer() and abs(level) < _LARGEST_WHOLE for level in floats):
        return tuple(map(int, floats))
    return tuple(floats)


def label(column: Column, code: float) -> Level | None:
    """The value behind a number in the array; None if it is missing.

    Examples
    --------
    >>> city = Column("city", "categorical", 0.0, 1.0, ("Bonn", "Rome"))
    >>> label(city, 1.0), label(city, UNSEEN), label(city, float("nan"))
    ('Rome', '(unseen)', None)
    >>> label(Column("age", "numeric", 40.0, 61.0), 50.0)
    50.0
    """
    if np.isnan(code):
        return None
    if column.kind == NUMERIC:
        return float(code)
    return "(unseen)" if code == UNSEEN else column.levels[int(code)]


def require_no_infinity(columns: Array, names: Sequence[str]) -> None:
    """Reject infinite values.

    Examples
    --------
    >>> import numpy as np
    >>> require_no_infinity(np.array([[1.0, np.inf], [2.0, 3.0]]), ["age", "bmi"])
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: Input X contains infinity: column 'bmi' has 1 infinite value, the first ...
    """
    infinite = np.array([_count_infinite(column) for column in columns.T])
    if infinite.any():
        raise InputError(
            "{Input X} contains infinity: {counts}, the first in row {row}",
            "Find out where they come from (often a division by zero, or the logarithm of zero), and "
            "drop or replace them.",
            column=names[int(np.argmax(infinite > 0))],
            row=int(np.argmax(np.isinf(columns[:, infinite > 0]).any(axis=1))),
            counts=_count(infinite, names, "infinite value"),
        )


def require_exact(cells: Cells) -> None:
    """Reject integers of a numeric column that floats cannot tell apart.

    Examples
    --------
    >>> import numpy as np
    >>> require_exact(read_cells(np.array([[2**60], [2**60 + 1]]), 0, "key"))
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: column 'key' has integers above 2^53, from 1152921504606846976 to ...
    """
    if cells.values.dtype.kind not in "iu" or not cells.values.size:
        return
    low, high = int(cells.values.min()), int(cells.values.max())
    spacing = float(np.spacing(float(max(-low, high))))
    if spacing > max(1.0, _MOST_ROUNDING * (high - low)) and low < high:
        raise inexact(cells.place, low, high)


def _count_infinite(column: Array) -> int:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(column.sum()):  # the common case, without an array of flags
            return 0
    return int(np.isinf(column).sum())


def _count(counts: NDArray[np.intp], names: Sequence[str], what: str) -> str:
    parts = [
        f"column {name!r} has {count} {what}{'s' if count > 1 else ''}"
        for name, count in zip(names, counts, strict=True)
        if count > 0
    ]
    if len(parts) > _MAX_NAMED:
        parts[_MAX_NAMED:] = [f"and {len(parts) - _MAX_NAMED} more columns"]
    return ", ".join(parts)


def _encodable(column: Any) -> list[Any]:
    return [utf8(cell).decode() if isinstance(cell, str) else cell for cell in column]


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
    try:
        frame = nw.from_dict(dict(columns), backend=chosen)
    except UnicodeEncodeError:
        frame = nw.from_dict(
            {utf8(k).decode(): _encodable(columns[k]) for k in columns}, backend=chosen
        )
    # Columns of nulls have no type in polars and arrow, and could not be concatenated with strings.
    untyped = [name for name, kind in frame.schema.items() if kind == nw.Unknown]
    if untyped:
        frame = frame.with_columns(nw.col(untyped).cast(nw.String))
    return frame.to_native()
