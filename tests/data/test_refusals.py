"""Columns that are neither numeric nor categorical: the error names the column and a fix."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lanam.data import as_frame, encode_table, learn_table
from lanam.data.errors import ColumnRef, shown, unsupported_type

DAY = datetime.date(2020, 2, 29)
NOON = datetime.datetime(2020, 2, 29, 12, 30)
NAMES = {"pd": pd, "pl": pl, "pa": pa, "np": np}


def learn(table, categorical=frozenset()):
    frame = as_frame(table)
    if frame is None:
        return learn_table(table, [f"x{k}" for k in range(table.shape[1])], categorical)
    return learn_table(frame, frame.columns, categorical, frame.implementation.name.lower())


def fix(table, error):
    """The table after the line of code that the error shows."""
    (line,) = re.findall("`(.*?)`", str(error))
    names = {**NAMES, "X": table}
    exec(line, names)
    return names["X"]


def objects(*values):
    column = np.empty((len(values), 1), dtype=object)
    column[:, 0] = values
    return column


PANDAS = [
    (pd.to_datetime([NOON, None]), "dates", [7364.0, np.nan]),
    (pd.to_datetime([NOON, None]).tz_localize("Europe/Oslo"), "dates", [7364.0, np.nan]),
    ([DAY, None], "dates", [7364.0, np.nan]),
    (pd.Series([NOON, None], dtype=object), "dates", [7364.0, np.nan]),
    (pd.period_range("2020", periods=2, freq="Y"), "periods", [50.0, 51.0]),
    (pd.to_timedelta([90, None], unit="s"), "durations", [90.0, np.nan]),
    (pd.Series([datetime.timedelta(seconds=90), None], dtype=object), "durations", [90.0, np.nan]),
    ([datetime.time(12, 30), None], "times of day", [12.5, np.nan]),
    ([[1, 2], []], "lists", [2.0, 0.0]),
    (pd.interval_range(0, 2), "intervals", [0.5, 1.5]),
    ([3 + 4j, 0], "complex numbers", [5.0, 0.0]),
    (pd.Series([3 + 4j, None], dtype=object), "complex numbers", [5.0, np.nan]),
    ([b"v", b"u"], "bytes", [1.0, 0.0]),
    (["v", 1.0], "strings and numbers together", [1.0, 0.0]),
    (["v", True], "strings and numbers together", [1.0, 0.0]),
    (pd.Categorical(["v", 1]), "strings and numbers together", [1.0, 0.0]),
]


@pytest.mark.parametrize("name", ["when", 'it\'s "so"', "back\\slash", "{c}"])
@pytest.mark.parametrize(("values", "what", "expected"), PANDAS)
def test_pandas(values, what, expected, name):
    table = pd.DataFrame({"first": [1.0, 2.0], name: values})
    with pytest.raises((ValueError, TypeError), match=what) as error:
        learn(table)
    assert str(error.value).startswith(f"column {name!r} holds {what}")
    columns, _ = learn(fix(table, error.value))
    np.testing.assert_array_equal(columns[:, 1], expected)


@pytest.mark.parametrize(
    ("values", "what", "expected"),
    [
        ([DAY, None], "dates", [18321.0, np.nan]),
        ([NOON, None], "dates", [18321.0, np.nan]),
        (
            pl.Series([NOON, None]).dt.replace_time_zone("Europe/Oslo"),
            "dates",
            [18321.0, np.nan],
        ),
        ([datetime.timedelta(seconds=90), None], "durations", [90.0, np.nan]),
        ([datetime.time(12, 30), None], "times of day", [12.5, np.nan]),
        ([[1, 2], []], "lists", [2.0, 0.0]),
        ([{"u": 1, "v": 2}, {"u": 3, "v": 4}], "records", [1.0, 3.0]),
        ([b"v", b"u"], "bytes", [1.0, 0.0]),
        (pl.Series(["v", 1], dtype=pl.Object), "strings and numbers together", [1.0, 0.0]),
    ],
)
def test_polars(values, what, expected):
    table = pl.DataFrame({"first": [1.0, 2.0], "when": values})
    with pytest.raises((ValueError, TypeError), match=f"column 'when' holds {what}") as error:
        learn(table)
    columns, _ = learn(fix(table, error.value))
    np.testing.assert_array_equal(columns[:, 1], expected)


@pytest.mark.parametrize(
    ("values", "what", "expected"),
    [
        (pa.array([DAY, None]), "dates", [18321.0, np.nan]),
        (pa.array([DAY, None], pa.date64()), "dates", [18321.0, np.nan]),
        (pa.array([NOON, None]), "dates", [18321.0, np.nan]),
        (pa.array([NOON, None], pa.timestamp("s", "UTC")), "dates", [18321.0, np.nan]),
        (pa.array([90, None], pa.duration("s")), "durations", [90.0, np.nan]),
        (pa.array([datetime.time(12, 30), None]), "times of day", [4.5e13, np.nan]),
        (pa.array([12, None], pa.time32("s")), "times of day", [1.2e10, np.nan]),
        (pa.array([b"v", b"u"]), "bytes", [1.0, 0.0]),
        (pa.array([b"v", b"u"], pa.large_binary()), "bytes", [1.0, 0.0]),
    ],
)
def test_arrow(values, what, expected):
    table = pa.table({"first": [1.0, 2.0], "when": values})
    with pytest.raises((ValueError, TypeError), match=f"column 'when' holds {what}") as error:
        learn(table)
    columns, _ = learn(fix(table, error.value))
    np.testing.assert_array_equal(columns[:, 1], expected)


@pytest.mark.parametrize(
    "values",
    [pa.array([[1], []]), pa.array([{"u": 1}, {"u": 2}]), pa.array([b"u"] * 2, pa.binary(1))],
)
def test_what_has_no_line_of_its_own_is_left_out(values):
    table = pa.table({"first": [1.0, 2.0], "when": values})
    with pytest.raises((ValueError, TypeError), match="column 'when' holds") as error:
        learn(table)
    assert fix(table, error.value).num_columns in (1, 2)


@pytest.mark.parametrize(
    ("table", "what", "expected"),
    [
        (np.array([[NOON], [NOON]], dtype="M8[s]"), "dates", [7364.0 + 12.5 / 24] * 2),
        (np.array([[90], [60]], dtype="m8[s]"), "durations", [90.0, 60.0]),
        (np.array([[b"v"], [b"u"]]), "bytes", [1.0, 0.0]),
        (np.array([[3 + 4j], [0]]), "complex numbers", [5.0, 0.0]),
        (objects(DAY, DAY), "dates", [7364.0, 7364.0]),
        (objects(np.datetime64("2020-02-29"), DAY), "dates", [7364.0, 7364.0]),
        (objects(datetime.timedelta(seconds=90), None), "durations", None),
        (objects(datetime.timedelta(seconds=90)), "durations", [90.0]),
        (objects(datetime.time(12, 30)), "times of day", [12.5]),
        (objects(b"v", b"u"), "bytes", [1.0, 0.0]),
        (objects([1, 2], []), "lists", [2.0, 0.0]),
        (objects(1j, 1.0), "complex numbers", [1.0, 1.0]),
        (objects("v", 1), "strings and numbers together", [1.0, 0.0]),
        (objects("v", True), "strings and numbers together", [1.0, 0.0]),
    ],
)
def test_arrays(table, what, expected):
    with pytest.raises((ValueError, TypeError), match=f"column 'x0' holds {what}") as error:
        learn(table)
    if expected is not None:
        columns, _ = learn(fix(table, error.value))
        np.testing.assert_allclose(columns[:, 0], expected)


@pytest.mark.parametrize("value", [{"foo": "bar"}, object(), [1], {1}, np.ones(2)])
def test_other_objects(value):
    with pytest.raises(TypeError, match=r"column 'x0' .* must be made of strings and numbers"):
        learn(objects(value, 1.0))


def test_a_structured_array():
    with pytest.raises(TypeError, match="column 'x0' holds records"):
        learn(np.zeros((2, 1), dtype=[("u", float)]))


def test_dates_that_are_declared_categorical_are_still_dates():
    table = pd.DataFrame({"when": pd.to_datetime(["2020", "2021"])})
    with pytest.raises(ValueError, match="column 'when' holds dates"):
        learn(table, frozenset({0}))


class TestFreeText:
    SENTENCES = tuple(f"Parcel {k} arrived in the rain, and nobody was home." for k in range(60))

    @pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_is_rejected(self, library):
        table = library({"first": range(60), "note": list(self.SENTENCES)})
        message = (
            "column 'note' holds free text: 60 distinct values in 60 rows .* categorical_features"
        )
        with pytest.raises(ValueError, match=message) as error:
            learn(table)
        columns, _ = learn(fix(table, error.value))
        assert columns.shape == (60, 1)

    def test_of_an_array(self):
        table = np.array(self.SENTENCES)[:, None]
        with pytest.raises(ValueError, match="column 'x0' holds free text") as error:
            learn(table)
        assert fix(table, error.value).shape == (60, 0)

    def test_declared_categorical(self):
        table = pd.DataFrame({"note": self.SENTENCES})
        assert learn(table, frozenset({0}))[1].n_levels == (60,)
        assert learn(table.astype("category"))[1].n_levels == (60,)

    @pytest.mark.parametrize(
        "values",
        [
            SENTENCES[:50],  # too few rows
            SENTENCES[:30] * 2,  # repeated
            [f"customer-{k:06d}" for k in range(5_000)] * 2,
            [f"{k:030d}" for k in range(100)] * 2,
            ["x" * 1000] * 100,
        ],
    )
    def test_is_not_what_names_are(self, values):
        assert learn(pd.DataFrame({"a": values}))[1].n_levels == (len(set(values)),)

    def test_of_new_rows_is_unseen(self):
        _, schema = learn(pd.DataFrame({"a": ["u", "v"]}))
        columns, (unseen,) = encode_table(as_frame(pd.DataFrame({"a": self.SENTENCES})), schema)
        assert (columns == -1.0).all()
        assert unseen.n_unseen == 60


def test_examples_are_shortened():
    assert shown("x" * 50) == "'" + "x" * 39 + "..."
    assert shown("x" * 41) == "'" + "x" * 41 + "'"
    assert shown(np.datetime64("2020-01-01")) == "'2020-01-01'"


def test_an_unknown_library_is_still_answered():
    error = unsupported_type(ColumnRef("a", 0, "modin"), "lists", [1])
    assert error.remedy == "leave it out"
    assert str(error).endswith("strings and numbers: leave it out")
