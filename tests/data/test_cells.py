"""Columns of every library: what they hold, and which rows have a value."""

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lanam.data import as_frame, is_missing
from lanam.data.cells import read_cells

DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
# As DuckDB and polars export enums.
UNSIGNED = pa.DictionaryArray.from_arrays(
    pa.array([2, None, 0], pa.uint8()), pa.array(["v", "w", "u"])
)


def read(table):
    return read_cells(as_frame(table), 0, "a")


def whole(cells):
    """The column as a list, None where it is missing."""
    listed = cells.values.tolist()
    if cells.present is None:
        return [None if value != value else value for value in listed]
    values = iter(listed)
    return [next(values) if present else None for present in cells.present]


@pytest.mark.parametrize("values", [["u", None, "v"], [1.5, None, 0.5], [7, None, 3]])
@pytest.mark.parametrize("in_pandas", [True, False])
def test_a_null_among_the_values_of_a_dictionary(values, in_pandas):
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(values))
    column = pd.Series(array, dtype=pd.ArrowDtype(array.type)) if in_pandas else array
    cells = read(pd.DataFrame({"a": column}) if in_pandas else pa.table({"a": column}))
    assert whole(cells) == [values[0], None, values[2], None]
    assert cells.categorical
    assert cells.order == (values[0], values[2])


@pytest.mark.parametrize(
    "dtype",
    [object, "str", "string", "string[python]", "string[pyarrow]", pd.ArrowDtype(pa.string())],
)
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_text_of_pandas(dtype, missing):
    if isinstance(dtype, pd.ArrowDtype) and missing is np.nan:
        missing = None  # which pandas does not take here
    cells = read(pd.DataFrame({"a": pd.Series(["v", missing, "", "u"], dtype=dtype)}))
    assert cells.holds == "string"
    assert whole(cells) == ["v", None, "", "u"]
    assert not cells.categorical


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_of_arrow(kind):
    cells = read(pa.table({"a": pa.array(["v", None, "", "u"], kind)}))
    assert cells.holds == "string"
    assert whole(cells) == ["v", None, "", "u"]


@pytest.mark.parametrize(
    ("table", "order"),
    [
        (pd.DataFrame({"a": pd.Categorical(["u", None, "v"], ["v", "w", "u"])}), ("v", "w", "u")),
        (
            pd.DataFrame({"a": pd.Categorical(["u", None, "v"], ["v", "w", "u"], ordered=True)}),
            ("v", "w", "u"),
        ),
        (pd.DataFrame({"a": pd.array(["u", None, "v"], dtype=DICTIONARY)}), ("u", "v")),
        (
            pl.DataFrame({"a": pl.Series(["u", None, "v"], dtype=pl.Enum(["v", "w", "u"]))}),
            ("v", "w", "u"),
        ),
        (pl.DataFrame({"a": pl.Series(["u", None, "v"], dtype=pl.Categorical)}), ()),
        (pa.table({"a": pa.array(["u", None, "v"]).dictionary_encode()}), ("u", "v")),
        (pa.table({"a": UNSIGNED}), ("v", "w", "u")),
    ],
)
def test_categories(table, order):
    cells = read(table)
    assert cells.categorical
    assert cells.holds == "string"
    assert cells.order == order
    assert whole(cells) == ["u", None, "v"]


def test_dictionaries_of_several_chunks():
    # Each chunk of an arrow column has a dictionary of its own, and numpy does not see its nulls.
    chunks = [pa.array(values).dictionary_encode() for values in (["u", None], ["w", "u", None])]
    cells = read(pa.table({"a": pa.chunked_array(chunks)}))
    assert cells.order == ("u", "w")
    assert whole(cells) == ["u", None, "w", "u", None]


def test_categories_of_a_session_do_not_leak():
    # polars numbers its categories in the order in which they came up, in whatever frame.
    pl.Series(["z", "y"], dtype=pl.Categorical)
    assert read(pl.DataFrame({"a": pl.Series(["y", "z"], dtype=pl.Categorical)})).order == ()


@pytest.mark.parametrize(
    ("values", "holds", "expected"),
    [
        (pd.Categorical([3, None, 1]), "numeric", [3, None, 1]),
        (pd.Categorical([True, None, False]), "boolean", [True, None, False]),
        (pd.cut([1, 5, np.nan], [0, 2, 9]), "string", ["(0, 2]", "(2, 9]", None]),
        (pd.Categorical(pd.to_datetime(["2020", None])), "string", ["2020-01-01 00:00:00", None]),
        (pd.Categorical([None, None]), "string", [None, None]),
    ],
)
def test_categories_of_other_things(values, holds, expected):
    cells = read(pd.DataFrame({"a": values}))
    assert (cells.holds, cells.categorical) == (holds, True)
    assert whole(cells) == expected


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.Series([True, None, False], dtype=object)}),
        pd.DataFrame({"a": pd.array([True, None, False], dtype="boolean")}),
        pd.DataFrame({"a": pd.array([True, None, False], dtype="bool[pyarrow]")}),
        pl.DataFrame({"a": [True, None, False]}),
        pa.table({"a": [True, None, False]}),
    ],
)
def test_booleans(table):
    cells = read(table)
    assert cells.holds == "boolean"
    assert whole(cells) == [True, None, False]


@pytest.mark.parametrize(
    "values",
    [
        pd.array([1, None, 3], dtype="Int64"),
        pd.array([1, None, 3], dtype="Float64"),
        pd.array([1, None, 3], dtype="Float32"),
        pd.array([1, None, 3], dtype="int64[pyarrow]"),
        pd.array([1, None, 3], dtype="double[pyarrow]"),
        pd.array([1, None, 3], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        pd.array([1, None, 3], dtype="float32"),
        pd.arrays.SparseArray([1.0, np.nan, 3.0]),
        pd.Series([1, None, 3], dtype=object),
        pd.Series([1, pd.NA, 3.0], dtype=object),
        pd.Series([True, pd.NaT, 3], dtype=object),
        pd.Series([Decimal(1), Decimal("NaN"), np.float32(3)], dtype=object),
        pd.Series([Fraction(1), None, np.int8(3)], dtype=object),
    ],
)
def test_numbers_of_pandas(values):
    cells = read(pd.DataFrame({"a": values}))
    assert cells.holds == "numeric"
    assert whole(cells) == [1, None, 3]


@pytest.mark.parametrize(
    "dtype", [pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Decimal(5, 2)]
)
def test_numbers_of_polars(dtype):
    assert whole(read(pl.DataFrame({"a": pl.Series([1, None, 3], dtype=dtype)}))) == [1, None, 3]


def test_both_of_polars_missing_values():
    cells = read(pl.DataFrame({"a": [1.0, None, float("nan")]}))
    assert whole(cells) == [1.0, None, None]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint64(), pa.float16(), pa.decimal128(5, 2), pa.decimal256(5, 2)]
)
def test_numbers_of_arrow(kind):
    values = [1, None, 3] if not pa.types.is_float16(kind) else np.float16([1, np.nan, 3])
    assert whole(read(pa.table({"a": pa.array(values, kind)}))) == [1, None, 3]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.Series([None, None], dtype=object)}),
        pd.DataFrame({"a": pd.Series([pd.NaT, pd.NaT])}),
        pl.DataFrame({"a": [None, None]}),
        pa.table({"a": pa.nulls(2)}),
    ],
)
def test_empty(table):
    cells = read(table)
    assert cells.holds == "empty"
    assert whole(cells) == [None, None]


def test_large_integers_stay_apart():
    ids = [2**53, 2**53 + 1, None]
    tables = [pl.DataFrame({"a": ids}), pd.DataFrame({"a": pd.array(ids, dtype="Int64")})]
    for table in [*tables, pd.DataFrame({"a": pd.Series(ids, dtype=object)})]:
        assert whole(read(table)) == ids


@pytest.mark.parametrize(
    ("column", "holds", "expected"),
    [
        (np.array(["u", "v"]), "string", ["u", "v"]),
        (np.array(["u", None], dtype=object), "string", ["u", None]),
        (np.array(["u", np.nan], dtype=object), "string", ["u", None]),
        (np.array([np.str_("u"), "v"], dtype=object), "string", ["u", "v"]),
        (np.array(["u", "v"], dtype=np.dtypes.StringDType()), "string", ["u", "v"]),
        (np.array([True, False]), "boolean", [True, False]),
        (np.array([True, None], dtype=object), "boolean", [True, None]),
        (np.array([1, 2.5], dtype=object), "numeric", [1, 2.5]),
        (np.array([1.0, np.nan]), "numeric", [1.0, None]),
        (np.array([10**400, 1], dtype=object), "numeric", [np.inf, 1.0]),
        (np.array([None, np.nan], dtype=object), "empty", [None, None]),
    ],
)
def test_columns_of_arrays(column, holds, expected):
    cells = read_cells(column[:, None], 0, "a")
    assert cells.holds == holds
    assert whole(cells) == expected


@pytest.mark.parametrize(
    "value",
    [None, np.nan, np.float32("nan"), Decimal("NaN"), pd.NA, pd.NaT, np.datetime64("NaT", "s")],
)
def test_missing_objects(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, "", "nan", "NA", np.inf, False, timedelta(0), [], np.ones(2)])
def test_objects_that_are_not_missing(value):
    assert not is_missing(value)
