"""Tables as users pass them: columns matched by name, and one warning of what is new."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.errors import InputWarning
from lanam.inputs import read_columns

TABLE = pd.DataFrame(
    {"age": [40.0, 61.0, np.nan], "city": ["Rome", "Bonn", "Rome"], "zone": [3, 1, 2]}
)
LIBRARIES = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "pyarrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
}


def learned(X, **arguments):
    """An estimator that knows its columns, though nothing is fitted, and the array."""
    model = LANAMRegressor(**arguments)
    columns, model._schema = read_columns(model, X, fitting=True)
    return model, columns


def encode(model, X):
    return read_columns(model, X, fitting=False)[0]


@pytest.mark.parametrize("library", LIBRARIES)
class TestFrames:
    def test_columns_are_matched_by_name(self, library):
        table = LIBRARIES[library](TABLE)
        model, columns = learned(table)
        np.testing.assert_array_equal(
            columns, [[40.0, 1.0, 3.0], [61.0, 0.0, 1.0], [np.nan, 1.0, 2.0]]
        )
        assert list(model.feature_names_in_) == ["age", "city", "zone"]
        assert model._schema.backend == library
        turned = LIBRARIES[library](TABLE[["zone", "age", "city"]])
        np.testing.assert_array_equal(encode(model, turned), columns)

    def test_another_library_is_fine(self, library):
        model, columns = learned(TABLE)
        np.testing.assert_array_equal(encode(model, LIBRARIES[library](TABLE)), columns)

    def test_columns_that_are_missing(self, library):
        model, _ = learned(LIBRARIES[library](TABLE))
        message = (
            r"(?s)names should match .* yet now missing:\n- city\n- zone\n"
            r"The model needs every column .* add the columns with missing values"
        )
        with pytest.raises(ValueError, match=message):
            encode(model, LIBRARIES[library](TABLE[["age"]]))

    def test_columns_that_are_new(self, library):
        model, columns = learned(LIBRARIES[library](TABLE))
        table = LIBRARIES[library](TABLE.assign(y=1.0, id=2.0))
        message = "columns that the model was not fitted with, which are ignored: 'y', 'id'"
        with pytest.warns(InputWarning, match=message):
            np.testing.assert_array_equal(encode(model, table), columns)

    def test_columns_that_have_other_names(self, library):
        model, _ = learned(LIBRARIES[library](TABLE))
        message = r"(?s)unseen at fit time:\n- town\n.*now missing:\n- city\nThe model needs every"
        with pytest.raises(ValueError, match=message):
            encode(model, LIBRARIES[library](TABLE.rename(columns={"city": "town"})))

    @pytest.mark.parametrize("declared", [["zone"], [2], np.array(["zone"]), (2,)])
    def test_declared_categories(self, library, declared):
        model, columns = learned(LIBRARIES[library](TABLE), categorical_features=declared)
        assert model._schema.n_levels == (-1, 2, 3)
        np.testing.assert_array_equal(columns[:, 2], [2, 0, 1])

    def test_new_rows_may_be_an_array(self, library):
        model, columns = learned(LIBRARIES[library](TABLE), categorical_features=["zone"])
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            found = encode(model, TABLE.astype(object).to_numpy())
        np.testing.assert_array_equal(found, columns)


class TestLists:
    ROWS = ([1.0, "red", True], [2.0, "blue", False], [None, None, None])

    def test_each_column_is_judged_by_its_own(self):
        model, columns = learned(list(self.ROWS))
        np.testing.assert_array_equal(columns, [[1, 1, 1], [2, 0, 0], [np.nan] * 3])
        assert model._schema.n_levels == (-1, 2, 2)
        np.testing.assert_array_equal(encode(model, self.ROWS), columns)

    def test_booleans_among_numbers_stay_truth_values(self):
        model, columns = learned([[1.5, True], [2.5, False]])
        assert model._schema.n_levels == (-1, 2)
        assert columns.tolist() == [[1.5, 1.0], [2.5, 0.0]]

    def test_rows_may_be_arrays(self):
        model, _ = learned([np.array([1.0, 2.0]), np.array([3.0, np.nan])])
        assert model._schema.n_levels == (-1, -1)

    @pytest.mark.parametrize("declared", [["x1"], [1], {1}])
    def test_columns_are_declared_by_index_or_number(self, declared):
        model, columns = learned([[1.0, 7], [2.0, 5]], categorical_features=declared)
        assert model._schema.n_levels == (-1, 2)
        assert columns.tolist() == [[1.0, 1.0], [2.0, 0.0]]

    def test_columns_that_are_not_there(self):
        with pytest.raises(
            ValueError, match=r"categorical_features names the column 'city'.* 'x0'"
        ):
            learned([[1.0], [2.0]], categorical_features=["city"])

    def test_text_only(self):
        model, columns = learned(np.array([["a1", "u"], ["a2", "v"]]))
        assert model._schema.columns[0].levels == ("a1", "a2")
        assert columns.tolist() == [[0, 0], [1, 1]]


class TestWarnings:
    NEW = pd.DataFrame({"age": [1.0, 2.0], "city": ["Oslo", None], "zone": [np.nan, 1.0]})

    def test_there_is_one_a_call(self):
        model, _ = learned(TABLE)
        with pytest.warns(UserWarning, match="column 'city'") as caught:
            encode(model, self.NEW)
        (warning,) = caught
        first, second = str(warning.message).split("\n")
        assert first.startswith("column 'city': 1 of 2 values is an unseen category")
        assert "('Oslo')" in first
        assert "1 of 2 values is missing" in first
        assert second.startswith("column 'zone': 1 of 2 values is missing, and none was in the")
        assert warning.filename == __file__

    def test_there_is_none_where_nothing_is_new(self):
        model, _ = learned(TABLE)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            encode(model, self.NEW.assign(city="Rome", zone=7, age=np.nan))

    def test_of_many_columns_some_are_named(self):
        model, _ = learned(np.zeros((3, 30)))
        with pytest.warns(UserWarning, match="and the same in 20 more columns$"):
            encode(model, np.full((2, 30), np.nan))

    @pytest.mark.parametrize("estimator", [LANAMRegressor, LANAMClassifier])
    def test_they_point_at_the_users_line(self, estimator):
        X = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) % 7})
        model = estimator(interactions=0, random_state=0).fit(X, X["b"] > 3)
        model._schema = model._schema.narrowed(X.to_numpy())
        calls = [model.predict, model.predict_terms, lambda X: model.score(X, np.ones(30))]
        for call in calls:
            with pytest.warns(
                UserWarning, match="column 'b': 30 of 30 values are missing"
            ) as caught:
                call(X.assign(b=np.nan))
            assert {warning.filename for warning in caught} == {__file__}


class TestShapes:
    @pytest.mark.parametrize("library", LIBRARIES)
    def test_too_few_rows(self, library):
        table = LIBRARIES[library](TABLE)
        with pytest.raises(ValueError, match=r"1 sample.*minimum of 2 is required"):
            learned(table[:1])
        model, columns = learned(table)
        np.testing.assert_array_equal(encode(model, table[:1]), columns[:1])
        with pytest.raises(ValueError, match="0 sample"):
            encode(model, table[:0])

    def test_integer_names(self):
        model, columns = learned(TABLE.set_axis(range(3), axis=1), categorical_features=["x2"])
        assert model._schema.names == ("x0", "x1", "x2")
        assert model._schema.n_levels == (-1, 2, 3)
        np.testing.assert_array_equal(encode(model, TABLE.set_axis(range(3), axis=1)), columns)

    def test_complex_arrays(self):
        with pytest.raises(ValueError, match="Complex data not supported"):
            learned(np.ones((3, 2), dtype=complex))
