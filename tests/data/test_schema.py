"""What a column is."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from lanam.data import (
    Column,
    Schema,
    as_frame,
    column_names,
    find_column,
    learn_schema,
    learn_table,
    read_categorical,
)
from lanam.data.cells import read_cells
from lanam.data.schema import kind_of

NAN = float("nan")


def test_a_schema_knows_names_and_ranges():
    schema = learn_schema(["a", "b"], np.array([[1.0, -5.0], [3.0, 2.0]]), "polars")
    numeric = (Column("a", "numeric", 1.0, 3.0), Column("b", "numeric", -5.0, 2.0))
    assert schema == Schema(numeric, "polars")
    assert schema.names == ("a", "b")
    assert schema.n_columns == 2
    assert schema.n_levels == (-1, -1)


def test_missing_values_have_no_part_in_a_range():
    schema = learn_schema(["a", "b"], np.array([[NAN, NAN], [3.0, NAN], [1.0, NAN]]))
    first, second = schema.columns
    assert first == Column("a", "numeric", 1.0, 3.0, missing=True)
    assert np.isnan([second.lowest, second.highest]).all()
    assert second.missing


def test_the_range_of_levels_is_that_of_their_codes():
    table = pd.DataFrame({"a": ["u", None, "v"], "b": pd.Series([None] * 3, dtype="string")})
    _, schema = learn_table(as_frame(table), ["a", "b"])
    first, second = schema.columns
    assert first == Column("a", "categorical", 0.0, 1.0, ("u", "v"), missing=True)
    assert (second.kind, second.levels) == ("categorical", ())
    assert np.isnan([second.lowest, second.highest]).all()
    assert schema.n_levels == (2, 0)


def test_a_narrowed_schema_keeps_all_but_ranges_and_gaps():
    table = pd.DataFrame({"a": [1.0, 3.0, None], "b": ["u", "v", None]})
    columns, schema = learn_table(as_frame(table), ["a", "b"], backend="pandas")
    assert [column.missing for column in schema.columns] == [True, True]
    narrowed = Column("a", "numeric", 1.0, 1.0), Column("b", "categorical", 0.0, 1.0, ("u", "v"))
    assert schema.narrowed(columns[:1]) == Schema(narrowed, "pandas")
    assert schema.narrowed(columns) == schema


class TestKinds:
    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            ([1, 2], "numeric"),
            ([1.0, 2.0], "numeric"),
            ([0, 1], "numeric"),
            (["u", "v"], "categorical"),
            (["1", "2"], "categorical"),  # numbers that are written as text are text
            ([True, False], "categorical"),
            (pd.Series([True, None], dtype=object), "categorical"),
            (pd.Series([1, None], dtype=object), "numeric"),
            (pd.Series([None, None], dtype=object), "numeric"),
            (pd.Series([None, None], dtype="string"), "categorical"),
            (pd.Series([None, None], dtype="boolean"), "categorical"),
            (pd.Series([None, None], dtype="category"), "categorical"),
            (pd.Categorical([1, 2]), "categorical"),
        ],
    )
    def test_are_decided_by_dtype(self, values, kind):
        cells = read_cells(as_frame(pd.DataFrame({"a": values})), 0, "a")
        assert kind_of(cells) == kind
        assert kind_of(cells, declared=True) == "categorical"

    def test_do_not_depend_on_how_many_values_there_are(self):
        assert learn_table(np.ones((1000, 1)), ["a"])[1].n_levels == (-1,)

    @pytest.mark.parametrize(
        ("levels", "holds"),
        [(("u",), "string"), ((False,), "boolean"), ((3, 4), "numeric"), ((), "empty")],
    )
    def test_of_levels(self, levels, holds):
        assert Column("a", "categorical", NAN, NAN, levels).holds == holds

    def test_of_numbers(self):
        assert Column("a", "numeric", 0.0, 1.0).holds == "numeric"
        assert Column("a", "numeric", NAN, NAN).holds == "empty"


@pytest.mark.parametrize("table", [np.ones((2, 2)), [[1.0]], None, 3, "text", pd.Series([1.0])])
def test_what_is_not_a_frame(table):
    assert as_frame(table) is None


def test_lazy_frames_are_for_the_user_to_collect():
    with pytest.raises(TypeError, match=r"collect it first, for example with X\.collect"):
        as_frame(pl.LazyFrame({"a": [1]}))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["a", "b"], ("a", "b")),
        ([0, 1], ("x0", "x1")),
        ([1, 0], ("x1", "x0")),
        ([1990, 1991], ("1990", "1991")),
    ],
)
def test_names_to_show(labels, names):
    frame = as_frame(pd.DataFrame([[1.0, 2.0]], columns=labels))
    assert column_names(frame, 2) == names


def test_columns_of_an_array_are_numbered():
    assert column_names(None, 3) == ("x0", "x1", "x2")


class TestDeclaredColumns:
    NAMES = ("age", "sex", "bmi", "bp")

    @pytest.mark.parametrize(
        "value", ["auto", np.str_("auto"), np.array("auto"), None, [], (), set(), np.array([])]
    )
    def test_none(self, value):
        assert read_categorical(value, self.NAMES) == frozenset()

    @pytest.mark.parametrize(
        "value",
        [
            ["age", "bmi"],
            ("bmi", "age", "age"),
            {"age", "bmi"},
            frozenset({0, 2}),
            [0, "bmi"],
            [np.int64(0), np.uint8(2)],
            np.array([0, 2]),
            np.array(["age", "bmi"]),
            range(0, 4, 2),
            pd.Index(["age", "bmi"]),
            pd.Series([0, 2]),
        ],
    )
    def test_some(self, value):
        found = read_categorical(value, self.NAMES)
        assert found == {0, 2}
        assert all(type(index) is int for index in found)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (["bim"], "names the column 'bim', which X does not have; did you mean 'bmi'?"),
            (["height"], "which X does not have; its columns are 'age', 'sex', 'bmi', 'bp'"),
            ([4], "categorical_features has the column 4, and X has columns 0 to 3"),
            ([-1], "categorical_features has the column -1, and X has columns 0 to 3"),
            ([True, False, True, False], "has True for a column: use its name, or its index"),
            (np.array([True, False]), "has True for a column: use its name, or its index"),
            ([1.0], "has 1.0 for a column"),
            ([["age"]], "has ['age'] for a column"),
            ("sex", "categorical_features='sex' is not known: use 'auto', or a list of names or "),
            ("sex", "for example ['sex']"),
            ("all", "categorical_features='all' is not known"),
            ("all", "for example ['city']"),
            (2, "categorical_features=2 is not known"),
            (np.int64(2), "categorical_features=2 is not known"),
            (b"age", "categorical_features=b'age' is not known"),
            ({"age": 1}, "is not known: use 'auto'"),
        ],
    )
    def test_invalid_values(self, value, message):
        with pytest.raises(ValueError, match=r"^categorical_features") as error:
            read_categorical(value, self.NAMES)
        assert message in str(error.value)

    def test_an_error_names_its_argument(self):
        with pytest.raises(ValueError, match=r"^weights names the column 'c'"):
            find_column("c", ("a", "b"), "weights")
