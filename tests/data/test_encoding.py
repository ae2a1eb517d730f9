"""Frames to arrays, and back."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lanam.data import as_frame, encode_array, encode_frame, make_frame, require_finite
from lanam.data import encoding as encoding_module

NAN = np.nan


def encode(table):
    frame = as_frame(table)
    return encode_frame(frame, [str(name) for name in frame.columns])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.array([1, None, 3], dtype="Int64"), [1, NAN, 3]),
        (pd.array([1.5, None, 3], dtype="Float64"), [1.5, NAN, 3]),
        (pd.array([True, None, False], dtype="boolean"), [1, NAN, 0]),
        (pd.array([1, None, 3], dtype="int64[pyarrow]"), [1, NAN, 3]),
        (np.array([1, 2, 3], dtype="float16"), [1, 2, 3]),
        (np.array([1, 2, 2**60], dtype="uint64"), [1, 2, 2.0**60]),
        (np.array([True, False, True]), [1, 0, 1]),
        (pd.Series([1, 2.5, None], dtype=object), [1, 2.5, NAN]),
        (pd.Series([1, pd.NA, True], dtype=object), [1, NAN, 1]),
        (pd.Series([Decimal("0.5"), np.int8(2), np.float32(3)], dtype=object), [0.5, 2, 3]),
        (pd.Series([None, None, None], dtype=object), [NAN, NAN, NAN]),
    ],
)
def test_columns_of_pandas(values, expected):
    array = encode(pd.DataFrame({"a": values}))
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array[:, 0], expected)


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.DataFrame.to_arrow])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None, 3], [1, NAN, 3]),
        ([1.0, NAN, None], [1, NAN, NAN]),
        ([True, None, False], [1, NAN, 0]),
        ([Decimal("1.5"), None, Decimal(3)], [1.5, NAN, 3]),
        ([None, None, None], [NAN, NAN, NAN]),
    ],
)
def test_columns_of_polars_and_pyarrow(convert, values, expected):
    array = encode(convert(pl.DataFrame({"a": values})))
    np.testing.assert_array_equal(array[:, 0], expected)


def test_columns_keep_their_order_and_are_contiguous():
    array = encode(pd.DataFrame({"b": [1, 2], "a": [3.5, 4.5]}))
    np.testing.assert_array_equal(array, [[1, 3.5], [2, 4.5]])
    assert array.flags.f_contiguous


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["u", "v"], "text"),
        (pd.Series(["u", 1.0], dtype=object), "text"),
        (pd.Series([1.0, {}], dtype=object), "objects"),
        (pd.Series([1.0, 1j], dtype=object), "objects"),
        (pd.Categorical([1, 2]), "categories"),
        (pd.to_datetime(["2020-01-01", None]), "dates"),
        (pd.period_range("2020", periods=2), "values of type"),
    ],
)
def test_what_is_refused(values, kind):
    with pytest.raises(ValueError, match=f"column 'a' holds {kind}"):
        encode(pd.DataFrame({"a": values}))


def test_enumerations_are_categories():
    with pytest.raises(ValueError, match="column 'a' holds categories"):
        encode(pl.DataFrame({"a": pl.Series(["u", "v"], dtype=pl.Enum(["u", "v"]))}))


def test_float_arrays_are_not_copied():
    array = np.ones((3, 2))
    assert encode_array(array, ["a", "b"]) is array


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.array([[1.0, "x"]], dtype=object), "column 'b' holds text"),
        (np.array([[1.0, b"x"]], dtype=object), "column 'b' holds text"),
        (np.array([["2020-01-01"] * 2], dtype="datetime64[D]"), "column 'a' holds dates"),
        (np.array([[1j, 2j]]), "Complex data not supported"),
    ],
)
def test_arrays_of_other_things(array, said):
    with pytest.raises(ValueError, match=said):
        encode_array(array, ["a", "b"])


def test_numbers_as_objects_are_numbers():
    np.testing.assert_array_equal(
        encode_array(np.array([[1, Decimal(2)]], dtype=object), ["a", "b"]), [[1.0, 2.0]]
    )


def test_finite_numbers_pass_however_large():
    require_finite(np.full((4, 2), 1.7e308), ["a", "b"])


def test_nan_is_reported_before_infinity():
    with pytest.raises(ValueError, match="column 'b' has 2 missing values"):
        require_finite(np.array([[np.inf, np.nan], [1.0, np.nan]]), ["a", "b"])


@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        ("pandas", pd.DataFrame),
        ("polars", pl.DataFrame),
        ("pyarrow", pa.Table),
        (None, pd.DataFrame),
    ],
)
def test_frames_come_in_the_users_library(backend, kind):
    frame = make_frame({"a": [1.0, 2.0], "b": ["u", "v"]}, backend)
    assert isinstance(frame, kind)
    np.testing.assert_array_equal(frame["a"], [1.0, 2.0])


def test_a_library_that_is_gone_is_replaced(monkeypatch):
    monkeypatch.setattr(encoding_module, "find_spec", lambda name: name == "polars" or None)
    assert isinstance(make_frame({"a": [1.0]}, "pandas"), pl.DataFrame)


def test_no_library_at_all(monkeypatch):
    monkeypatch.setattr(encoding_module, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"install pandas.*or use to_dict"):
        make_frame({"a": [1.0]})
