"""What a column is."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from lanam.data import Column, Schema, as_frame, column_names, learn_schema


def test_a_schema_knows_names_and_ranges():
    schema = learn_schema(["a", "b"], np.array([[1.0, -5.0], [3.0, 2.0]]), "polars")
    assert schema == Schema((Column("a", 1.0, 3.0), Column("b", -5.0, 2.0)), "polars")
    assert schema.names == ("a", "b")
    assert schema.n_columns == 2


def test_a_narrowed_schema_keeps_all_but_the_ranges():
    schema = learn_schema(["a"], np.array([[1.0], [3.0]]), "pandas")
    assert schema.narrowed(np.array([[1.0]])) == Schema((Column("a", 1.0, 1.0),), "pandas")


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
        ([1, 0], ("1", "0")),
        ([1990, 1991], ("1990", "1991")),
    ],
)
def test_names_to_show(labels, names):
    frame = as_frame(pd.DataFrame([[1.0, 2.0]], columns=labels))
    assert column_names(frame, 2) == names


def test_columns_of_an_array_are_numbered():
    assert column_names(None, 3) == ("x0", "x1", "x2")
