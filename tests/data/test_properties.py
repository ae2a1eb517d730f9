"""What holds for any table: what goes in can be read off, and only values matter."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanam.data import as_frame, encode_table, label, learn_table

pytestmark = pytest.mark.filterwarnings("ignore:.*differ only in case or blanks")

N_ROWS = st.integers(min_value=1, max_value=8)

finite = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(st.characters(exclude_categories=["Cs", "Nd"]), max_size=5)  # no numbers or dates
whole = st.integers(min_value=-(2**31), max_value=2**31 - 1)
KINDS = {
    "float": (finite, pl.Float64),
    "integer": (whole, pl.Int64),
    "text": (text, pl.String),
    "truth": (st.booleans(), pl.Boolean),
    "category": (text, pl.Categorical),
}


@st.composite
def tables(draw, kinds=tuple(KINDS)):
    """Columns as lists with None for missing values, what each is, and which are declared."""
    n_rows = draw(N_ROWS)
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
    columns = {
        f"{kind} {index}": draw(
            st.lists(st.none() | KINDS[kind][0], min_size=n_rows, max_size=n_rows)
        )
        for index, kind in enumerate(chosen)
    }
    declared = draw(st.frozensets(st.integers(0, len(chosen) - 1)))
    return columns, chosen, declared


def as_polars(columns, kinds):
    series = (
        pl.Series(name, values, dtype=KINDS[kind][1])
        for kind, (name, values) in zip(kinds, columns.items(), strict=True)
    )
    return pl.DataFrame(list(series))


def as_arrow(columns, kinds):
    types = {"float": pa.float64(), "integer": pa.int64(), "truth": pa.bool_()}
    arrays = {}
    for kind, (name, values) in zip(kinds, columns.items(), strict=True):
        array = pa.array(values, types.get(kind, pa.string()))
        if kind == "category":
            levels = sorted({value for value in values if value is not None})
            codes = [None if value is None else levels.index(value) for value in values]
            array = pa.DictionaryArray.from_arrays(
                pa.array(codes, pa.int32()), pa.array(levels, pa.string())
            )
        arrays[name] = array
    return pa.table(arrays)


def as_pandas(columns, kinds, nullable=False):
    types = {"float": "float64", "truth": "boolean", "category": "category"}
    types |= {"integer": "Int64", "text": "string"} if nullable else {"text": object}
    series = {}
    for kind, (name, values) in zip(kinds, columns.items(), strict=True):
        dtype = types.get(kind)
        if kind == "category":
            series[name] = pd.Categorical(values, sorted({v for v in values if v is not None}))
        elif kind == "integer" and not nullable:  # floats, where some are missing
            series[name] = pd.Series(values, dtype="float64" if None in values else "int64")
        else:  # objects have no type where there are none
            nothing = dtype is object and set(values) == {None}
            series[name] = pd.Series(values, dtype="string" if nothing else dtype)
    return pd.DataFrame(series)


def as_array(columns, kinds):
    table = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=object)
    for index, values in enumerate(columns.values()):
        table[:, index] = values
    return table


def framed(table):
    frame = as_frame(table)
    return table if frame is None else frame


LIBRARIES = {
    "pandas": as_pandas,
    "pandas, nullable": lambda columns, kinds: as_pandas(columns, kinds, nullable=True),
    "polars": as_polars,
    "pyarrow": as_arrow,
    "objects": as_array,
}


@settings(deadline=None)
@given(tables())
@pytest.mark.parametrize("library", LIBRARIES)
def test_what_goes_in_can_be_read_off(library, table):
    columns, kinds, declared = table
    encoded, schema = learn_table(
        framed(LIBRARIES[library](columns, kinds)), list(columns), declared
    )
    assert encoded.flags.f_contiguous
    for column, values, expected in zip(schema.columns, encoded.T, columns.values(), strict=True):
        assert [label(column, value) for value in values] == expected
        assert column.missing == (None in expected)
        known = values[~np.isnan(values)]
        if len(known):
            assert (column.lowest, column.highest) == (known.min(), known.max())
        else:
            assert np.isnan([column.lowest, column.highest]).all()
        assert (column.kind == "numeric") == (column.levels == () and schema_says(column, schema))


def schema_says(column, schema):
    return schema.n_levels[schema.columns.index(column)] == -1


@settings(deadline=None)
@given(tables())
def test_the_same_table_from_any_library_is_the_same_array(table):
    columns, kinds, declared = table
    names = list(columns)
    expected, schema = learn_table(framed(as_polars(columns, kinds)), names, declared)
    for build in LIBRARIES.values():
        raw = framed(build(columns, kinds))
        if not isinstance(raw, np.ndarray):  # nothing but None has no dtype among objects
            found, learned = learn_table(raw, names, declared)
            np.testing.assert_array_equal(found, expected)
            assert learned.n_levels == schema.n_levels
            assert [column.levels for column in learned.columns] == [
                column.levels for column in schema.columns
            ]
        again, unseen = encode_table(raw, schema)
        np.testing.assert_array_equal(again, expected)
        assert unseen == ()


@settings(deadline=None)
@given(tables(kinds=("text", "category")), st.randoms(use_true_random=False))
def test_new_names_of_levels_permute_codes_only(table, random):
    columns, kinds, _ = table
    present = {value for values in columns.values() for value in values if value is not None}
    order = list(range(len(present)))
    random.shuffle(order)
    renamed = {
        value: f"level {number:03d}" for value, number in zip(sorted(present), order, strict=True)
    }
    renamed[None] = None
    new = {name: [renamed[value] for value in values] for name, values in columns.items()}
    before, first = learn_table(framed(as_polars(columns, kinds)), list(columns))
    after, second = learn_table(framed(as_polars(new, kinds)), list(columns))
    for index, (old, fresh) in enumerate(zip(first.columns, second.columns, strict=True)):
        where = [fresh.levels.index(renamed[level]) for level in old.levels]
        np.testing.assert_array_equal(
            after[:, index], np.array([*where, np.nan])[codes(before, index)]
        )


def codes(columns, index):
    return np.where(np.isnan(columns[:, index]), -1, columns[:, index]).astype(int)


@settings(deadline=None)
@given(tables(), st.data())
def test_rows_are_encoded_one_by_one(table, data):
    columns, kinds, declared = table
    frame = as_polars(columns, kinds)
    encoded, schema = learn_table(framed(frame), list(columns), declared)
    rows = data.draw(st.lists(st.integers(0, len(frame) - 1), min_size=1, max_size=5))
    again, unseen = encode_table(framed(frame[rows]), schema)
    np.testing.assert_array_equal(again, encoded[rows])
    assert unseen == ()


@settings(deadline=None)
@given(tables(kinds=("text",)), tables(kinds=("text",)))
def test_a_level_that_is_new_is_unseen_and_counted(training, new):
    before, after = next(iter(training[0].values())), next(iter(new[0].values()))
    _, schema = learn_table(framed(as_polars({"a": before}, ["text"])), ["a"])
    encoded, unseen = encode_table(framed(as_polars({"a": after}, ["text"])), schema)
    known = {value for value in before if value is not None}
    expected = [
        None if value is None else value if value in known else "(unseen)" for value in after
    ]
    assert [label(schema.columns[0], value) for value in encoded[:, 0]] == expected
    n_unseen = sum(value is not None and value not in known for value in after)
    n_missing = 0 if None in before else after.count(None)
    assert sum(unseen.n_unseen for unseen in unseen) == n_unseen
    assert sum(unseen.n_missing for unseen in unseen) == n_missing


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(),
            st.binary(),
            st.complex_numbers(),
            st.dates(),
            st.datetimes(min_value=datetime.datetime(1900, 1, 1)),
            st.timedeltas(),
            st.times(),
            st.decimals(allow_nan=False) | st.just(Decimal("NaN")),  # pandas trips over sNaN
            st.fractions(),
            st.lists(st.integers()),
            st.dictionaries(st.text(), st.integers()),
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_anything_at_all_is_read_or_refused_by_name(values, declared):
    column = pd.Series(values, dtype=object).to_frame("a thing")
    for table in (as_frame(column), column.to_numpy()):
        encoded, error = np.empty((0, 0)), None
        try:
            encoded, _ = learn_table(table, ["a thing"], frozenset({0} if declared else ()))
        except (ValueError, TypeError) as refusal:
            error = refusal
        assert encoded.shape == (len(values), 1) if error is None else "'a thing'" in str(error)
        assert not np.isinf(encoded).any()
