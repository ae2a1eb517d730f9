"""Tables to arrays, and back."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lanam.data import (
    UNSEEN,
    Column,
    UnseenValues,
    as_frame,
    encode_table,
    label,
    learn_table,
    make_frame,
)
from lanam.data import encoding as encoding_module
from lanam.data.encoding import require_no_infinity

NAN = np.nan


def framed(table):
    frame = as_frame(table)
    return table if frame is None else frame


def learn(table, categorical=frozenset()):
    frame = framed(table)
    names = getattr(frame, "columns", None) or [f"x{k}" for k in range(table.shape[1])]
    return learn_table(frame, [str(name) for name in names], frozenset(categorical))


def learn_one(values, categorical=True):
    """Codes and levels of one column that is declared categorical."""
    columns, schema = learn(pd.DataFrame({"a": values}), {0} if categorical else ())
    return columns[:, 0].tolist(), schema.columns[0].levels


def encode_one(values, schema):
    columns, unseen = encode_table(framed(pd.DataFrame({"a": values})), schema)
    return columns[:, 0], unseen


class TestArrays:
    def test_columns_keep_their_order_and_are_contiguous(self):
        columns, _ = learn(pd.DataFrame({"b": [1, 2], "a": [3.5, 4.5]}))
        np.testing.assert_array_equal(columns, [[1, 3.5], [2, 4.5]])
        assert columns.flags.f_contiguous

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64"])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_of_numbers(self, dtype, order):
        columns, schema = learn(np.array([[1, 2], [3, 4]], dtype=dtype, order=order))
        assert columns.dtype == np.float64
        assert columns.flags.f_contiguous
        assert schema.n_levels == (-1, -1)
        again, unseen = encode_table(columns, schema)
        assert again is columns  # numbers in the right order are not copied
        assert unseen == ()

    def test_of_booleans(self):
        columns, schema = learn(np.array([[True], [False]]))
        assert columns.tolist() == [[1.0], [0.0]]
        assert schema.columns[0].levels == (False, True)

    def test_of_anything(self):
        table = np.array([[1, "v", True, None], [2.5, None, False, None]], dtype=object)
        columns, schema = learn(table)
        np.testing.assert_array_equal(columns, [[1, 0, 1, NAN], [2.5, NAN, 0, NAN]])
        assert [column.kind for column in schema.columns] == [
            "numeric",
            "categorical",
            "categorical",
            "numeric",
        ]
        np.testing.assert_array_equal(encode_table(table, schema)[0], columns)

    def test_with_declared_columns(self):
        columns, schema = learn(np.array([[5.0, 7.0], [NAN, 3.0]]), {0})
        np.testing.assert_array_equal(columns, [[0, 7], [NAN, 3]])
        assert schema.columns[0].levels == (5,)


class TestLevels:
    @pytest.mark.parametrize(
        ("values", "codes", "levels"),
        [
            (["v", "u", "", "v"], [2, 1, 0, 2], ("", "u", "v")),
            ([10, 9, 100, 9], [1, 0, 2, 0], (9, 10, 100)),
            ([1.5, -2.0, 1.5], [1, 0, 1], (-2.0, 1.5)),
            ([3.0, 1.0, 2.0], [2, 0, 1], (1, 2, 3)),  # whole numbers are shown as such
            ([-0.0, 0.0], [0, 0], (0,)),
            ([1e300, 1.0], [1, 0], (1.0, 1e300)),
            ([True, False], [1, 0], (False, True)),
            (pd.Categorical(["u", "v", "u"], ["w", "v", "u"]), [1, 0, 1], ("v", "u")),
            (pd.Categorical([1.0, 2.0], [2.0, 1.0]), [1, 0], (2, 1)),
            (np.array([0.1, 0.5], dtype="float32"), [0, 1], (0.1, 0.5)),
        ],
    )
    def test_are_ordered_and_plain(self, values, codes, levels):
        assert learn_one(values) == (codes, levels)
        assert {type(level) for level in learn_one(values)[1]} <= {str, bool, int, float}
        assert str(learn_one(values)[1]) == str(levels)

    def test_of_large_numbers_stay_apart(self):
        assert learn_one([2**53 + 1, 2**53])[1] == (2**53, 2**53 + 1)

    def test_ten_thousand(self):
        rng = np.random.default_rng(0)
        values = rng.integers(0, 10_000, size=50_000)
        columns, schema = learn(pl.DataFrame({"a": [f"level {value:05d}" for value in values]}))
        np.testing.assert_array_equal(columns[:, 0], np.unique(values, return_inverse=True)[1])
        assert schema.n_levels == (len(np.unique(values)),)

    @pytest.mark.parametrize(
        "values", [[1.0, np.inf], pd.Categorical([1.0, -np.inf]), [10**400, 1]]
    )
    def test_are_finite(self, values):
        with pytest.raises(ValueError, match="infinity: column 'a' has 1 infinite value"):
            learn_one(pd.Series(values, dtype=getattr(values, "dtype", object)))

    def test_have_labels(self):
        column = Column("a", "categorical", 0.0, 1.0, ("u", "v"))
        assert [label(column, code) for code in (0.0, 1.0, UNSEEN, NAN)] == [
            "u",
            "v",
            "(unseen)",
            None,
        ]


class TestNewRows:
    @pytest.mark.parametrize(
        "values",
        [
            np.array([3, 7, 5], dtype="int8"),
            np.array([3, 7, 5], dtype="uint64"),
            np.array([3, 7, 5], dtype="float16"),
            np.array([3, 7, 5], dtype="float32"),
            pd.array([3, 7, 5], dtype="Int64"),
            pd.Categorical([3, 7, 5]),
            pd.Series([3, 7.0, np.int64(5)], dtype=object),
        ],
    )
    @pytest.mark.parametrize("training", [[7, 5, 3], [7.0, 5.0, 3.0]])
    def test_a_number_is_the_same_level_in_every_type(self, training, values):
        _, schema = learn(pd.DataFrame({"a": training}), {0})
        codes, unseen = encode_one(values, schema)
        assert codes.tolist() == [0, 2, 1]
        assert unseen == ()

    @pytest.mark.parametrize(
        ("training", "new"),
        [("float64", "float32"), ("float32", "float64"), ("float32", "float32")],
    )
    def test_so_is_a_fraction(self, training, new):
        values = np.array([0.1, 2.7, 0.3])
        _, schema = learn(pd.DataFrame({"a": values.astype(training)}), {0})
        assert encode_one(values.astype(new), schema)[0].tolist() == [0, 2, 1]

    @pytest.mark.parametrize("dtype", [object, "str", "string", "string[pyarrow]", "category"])
    def test_text_is_the_same_level_in_every_type(self, dtype):
        _, schema = learn(pd.DataFrame({"a": pd.Categorical(["u", "v"], ["v", "u"])}))
        codes, _ = encode_one(pd.Series(["v", "u"], dtype=dtype), schema)
        assert codes.tolist() == [0, 1]

    def test_unseen_levels_and_missing_values_are_counted(self):
        _, schema = learn(pd.DataFrame({"city": ["Rome", "Bonn"], "age": [1.0, 2.0]}))
        new = pd.DataFrame(
            {"city": ["Oslo", "Rome", "Riga", "Oslo", None], "age": [1, NAN, 2, 3, 4]}
        )
        columns, (city, age) = encode_table(framed(new), schema)
        np.testing.assert_array_equal(columns, [[-1, 1], [1, NAN], [-1, 2], [-1, 3], [NAN, 4]])
        assert city == UnseenValues("city", 5, 3, ("Oslo", "Riga"), 1)
        assert age == UnseenValues("age", 5, n_missing=1)
        assert str(city) == (
            "column 'city': 3 of 5 values are unseen categories ('Oslo', 'Riga'): predicted with the "
            "mean effect of a category and a wider credible interval; 1 of 5 values is missing, and "
            "none was in the training data: predicted with the column's mean effect and a "
            "wider credible interval"
        )

    def test_of_many_unseen_levels_some_are_shown(self):
        assert "('u', 'v', 'w', ...)" in str(UnseenValues("a", 9, 4, ("u", "v", "w", "x")))
        assert "1 of 9 values is an unseen category" in str(UnseenValues("a", 9, 1, ("u",)))

    def test_missing_values_are_not_unseen_if_the_training_data_had_them(self):
        _, schema = learn(pd.DataFrame({"city": ["Rome", None], "age": [1.0, NAN]}))
        columns, unseen = encode_table(
            framed(pd.DataFrame({"city": [None, None], "age": [NAN, NAN]})), schema
        )
        assert np.isnan(columns).all()
        assert unseen == ()

    def test_a_value_of_minus_one_is_no_unseen_level(self):
        _, schema = learn(np.array([[1.0], [2.0]]))
        columns, unseen = encode_table(np.array([[-1.0]]), schema)
        assert columns.tolist() == [[-1.0]]
        assert unseen == ()

    @pytest.mark.parametrize("dtype", ["string", "category", "boolean", object, float])
    def test_a_column_of_nothing_knows_no_value(self, dtype):
        _, schema = learn(pd.DataFrame({"a": pd.Series([None, None], dtype=dtype)}))
        for values in (["u", None], [2.5, NAN], [True, None]):
            codes, (unseen,) = encode_one(values, schema)
            np.testing.assert_array_equal(codes, [-1, NAN])
            assert (unseen.n_unseen, unseen.n_missing) == (1, 0)

    @pytest.mark.parametrize(
        ("training", "new", "codes"),
        [
            ([True, False], [0, 1], [0, 1]),
            ([True, False], [0.0, 1.0], [0, 1]),
            ([True, False], [0.0, NAN], [0, NAN]),
            ([True, True], [0, 1], [UNSEEN, 0]),
            (pd.Categorical([0, 1]), [False, True], [0, 1]),
            ([0.0, 1.0], [False, True], [0, 1]),  # numeric
            ([0.25, 0.5], [False, True], [0, 1]),
            (["u", "v"], [NAN, NAN], [NAN, NAN]),
            (["u", "v"], [None, None], [NAN, NAN]),
            ([1.5, 2.5], pd.Series([None, None], dtype="string"), [NAN, NAN]),
            ([1.5, 2.5], pd.Categorical([1, 2]), [1, 2]),
        ],
    )
    def test_other_types_that_can_only_mean_one_thing(self, training, new, codes):
        _, schema = learn(pd.DataFrame({"a": training}))
        np.testing.assert_array_equal(encode_one(new, schema)[0], codes)

    @pytest.mark.parametrize(
        ("training", "new", "message"),
        [
            ([1.5, 2.5], ["u", "v"], "was numeric in the training data, and is string now"),
            ([1.5, 2.5], ["1.5", "2.5"], "is string now (for example '1.5'): convert it"),
            ([1.5, 2.5], pd.Categorical(["u", "v"]), "is string now (for example 'u')"),
            ([1.5, 2.5], [True, False], "was numeric in the training data, and is bool"),
            (["u", "v"], [1, 2], "was string in the training data, and is numeric now"),
            (["u", "v"], [True, False], "was string in the training data, and is boolean"),
            (["01", "02"], [1, 2], "was string in the training data, and is numeric now"),
            ([True, False], [1, 2], "was boolean in the training data, and is numeric"),
            ([True, False], ["True", "False"], "was boolean in the training data, and is str"),
            (pd.Categorical([1, 2]), ["1", "2"], "was numeric in the training data, and is str"),
            (
                pd.Categorical([1, 2]),
                [True, False],
                "was numeric in the training data, and is bool",
            ),
        ],
    )
    def test_other_types_that_do_not(self, training, new, message):
        _, schema = learn(pd.DataFrame({"a": training}))
        with pytest.raises(ValueError, match=r"^column 'a' was") as error:
            encode_one(new, schema)
        assert message in str(error.value)

    @pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, None])
    @pytest.mark.parametrize(
        ("training", "new", "expected"),
        [([1.5, 2.5], ["1.5", "2.5"], [1.5, 2.5]), (["1", "2"], [1, 2], [0, 1])],
    )
    def test_the_line_fixes_a_changed_column(self, library, training, new, expected):
        if library is None:
            tables = np.array(training)[:, None], np.array(new)[:, None]
        else:
            tables = library({"a": training}), library({"a": new})
        _, schema = learn(tables[0], {0} if isinstance(training[0], str) else ())
        with pytest.raises(ValueError, match="was") as error:
            encode_table(framed(tables[1]), schema)
        (line,) = re.findall("`(.*?)`", str(error.value))
        names = {"pl": pl, "pa": pa, "np": np, "X": tables[1]}
        exec(line, names)
        columns, unseen = encode_table(framed(names["X"]), schema)
        assert columns[:, 0].tolist() == expected
        assert unseen == ()

    def test_infinite_values_are_refused(self):
        _, schema = learn(pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}), {1})
        new = pd.DataFrame({"a": [1.0, -np.inf], "b": [3.0, 4.0]})
        with pytest.raises(ValueError, match="column 'a' has 1 infinite value"):
            encode_table(framed(new), schema)
        with pytest.raises(ValueError, match="column 'b' has 2 infinite values"):
            encode_table(framed(pd.DataFrame({"a": [1.0, 1.0], "b": [np.inf, np.inf]})), schema)


class TestLargeIntegers:
    @pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, None])
    @pytest.mark.parametrize("low", [2**53, 2**60, -(2**60), 2**63])
    def test_what_floats_cannot_tell_apart_is_refused(self, library, low):
        values = np.array([low, low + 1, low + 2], dtype=np.uint64 if low > 0 else np.int64)
        table = values[:, None].copy() if library is None else library({"a": values})
        _, schema = learn(table, {0})
        assert schema.columns[0].levels == (low, low + 1, low + 2)
        with pytest.raises(ValueError, match="has integers above 2\\^53, from") as error:
            learn(table)
        assert error.value.column == ("x0" if library is None else "a")
        assert "categorical_features=" in error.value.remedy
        (line,) = re.findall("`(.*?)`", str(error.value))
        names = {"pl": pl, "pa": pa, "np": np, "X": table}
        exec(line, names)
        assert learn(names["X"])[0][:, 0].tolist() == [0.0, 1.0, 2.0]

    @pytest.mark.parametrize(
        "values", [[2**60] * 3, [0, 2**60 + 1], [2**53 - 2, 2**53 - 1], [2**60, 2**60 + 2**40]]
    )
    def test_what_varies_enough_is_numeric(self, values):
        columns, schema = learn(pd.DataFrame({"a": values}))
        assert schema.columns[0].kind == "numeric"
        assert columns[:, 0].tolist() == [float(value) for value in values]


class TestInfinity:
    def test_finite_numbers_pass_however_large(self):
        require_no_infinity(np.full((4, 2), 1.7e308), ["a", "b"])

    def test_missing_values_pass(self):
        require_no_infinity(np.full((4, 2), NAN), ["a", "b"])

    def test_among_missing_values_is_found(self):
        with pytest.raises(ValueError, match="infinity: column 'b' has 1 infinite value"):
            require_no_infinity(np.array([[NAN, -np.inf], [1.0, NAN]]), ["a", "b"])

    def test_in_many_columns_is_counted(self):
        with pytest.raises(ValueError, match="'4' has 9 infinite values, and 15 more columns"):
            require_no_infinity(np.full((9, 20), np.inf), [str(k) for k in range(20)])

    def test_what_does_not_fit_into_a_float_is_infinite(self):
        with pytest.raises(ValueError, match="column 'x0' has 1 infinite value"):
            learn(np.array([[np.longdouble("1e4000")], [1.0]]))


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
