"""Invalid input is handled, or an error names the column and the remedy."""

import datetime
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from lanam import LANAMClassifier, LANAMRegressor
from lanam.data import NewValuesWarning
from lanam.errors import InputWarning, MissingColumnsError


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(60, 3)), columns=["age", "bmi", "bp"])
    y = np.sin(3 * X["age"]) + X["bmi"] + 0.1 * rng.standard_normal(60)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def model(data):
    return LANAMRegressor(random_state=0).fit(*data)


class TestInvalidX:
    @pytest.mark.parametrize("sign", [1, -1])
    def test_infinite_values(self, data, model, sign):
        X = data[0].copy()
        X.loc[7, "bmi"] = sign * np.inf
        with pytest.raises(
            ValueError, match="contains infinity: column 'bmi' has 1 infinite value"
        ):
            LANAMRegressor().fit(X, data[1])
        with pytest.raises(ValueError, match="column 'bmi'"):
            model.predict(X)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (["red", 1.0] * 30, r"holds strings and numbers together .*astype\("),
            (pd.date_range("2020-01-01", periods=60), r"holds dates .*pd\.Timestamp"),
            (pd.to_timedelta(range(60), unit="s"), r"holds durations .*total_seconds\(\)"),
            ([datetime.time(12)] * 60, "holds times of day"),
            ([1 + 1j] * 60, "holds complex numbers"),
            ([b"x"] * 60, r"holds bytes .*decode"),
            ([f"Note {k}: a sentence that nobody wrote twice." for k in range(60)], "free text"),
        ],
    )
    def test_columns_of_other_types(self, data, values, message):
        X = data[0].assign(colour=values)
        with pytest.raises(ValueError, match=f"column 'colour' .*{message}"):
            LANAMRegressor().fit(X, data[1])

    @pytest.mark.parametrize("value", [[1], {"a": 1}, object(), np.ones(3)])
    def test_columns_of_objects(self, data, value):
        X = data[0].assign(colour=pd.Series([value] * 60, dtype=object))
        with pytest.raises(TypeError, match=r"column 'colour' holds .* strings and numbers"):
            LANAMRegressor().fit(X, data[1])

    def test_dates_in_a_polars_frame(self, data):
        X = pl.from_pandas(data[0]).with_columns(
            pl.Series("when", [datetime.date(2020, 1, 1)] * 60)
        )
        with pytest.raises(ValueError, match=r"column 'when' holds dates .*dt\.epoch"):
            LANAMRegressor().fit(X, data[1])

    def test_numbers_and_text_in_lists(self):
        with pytest.raises(ValueError, match="column 'x1' holds strings and numbers together"):
            LANAMRegressor().fit([[1.0, "red"], [2.0, 3.0], [3.0, "red"]], [1.0, 2.0, 3.0])

    def test_dates_in_an_array(self):
        X = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")[:, None]
        with pytest.raises(ValueError, match="column 'x0' holds dates"):
            LANAMRegressor().fit(X, [1.0, 2.0])

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (["1.5"] * 60, "was numeric in the training data, and is string now"),
            (["red"] * 60, "was numeric in the training data, and is string now"),
            ([True] * 60, "was numeric in the training data, and is boolean now"),
            (pd.date_range("2020-01-01", periods=60), "holds dates"),
        ],
    )
    def test_columns_that_changed_their_type(self, data, model, values, message):
        with pytest.raises(ValueError, match=f"column 'bmi' {message}"):
            model.predict(data[0].assign(bmi=values))

    def test_unknown_columns(self, data, model):
        with pytest.warns(InputWarning, match="was not fitted with, which are ignored: 'y'"):
            model.predict(data[0].assign(y=1.0))

    def test_values_of_a_dropped_column(self, data, model):
        """Predictions do not depend on them: no warning."""
        assert not model.explain_global()["bp"].active
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = model.predict(data[0].assign(bp=np.nan))
        np.testing.assert_array_equal(got, model.predict(data[0]))
        with pytest.warns(NewValuesWarning, match="column 'bmi'"):
            model.predict(data[0].assign(bmi=np.nan))

    def test_missing_columns(self, data, model):
        words = r"(?s)now missing:\n- bp\nThe model needs .*\. If values are not known, add the column with"
        with pytest.raises(MissingColumnsError, match=words) as caught:
            model.predict(data[0].drop(columns="bp"))
        assert (caught.value.columns, caught.value.similar) == (("bp",), {})
        with pytest.raises(MissingColumnsError) as caught:
            model.predict(data[0].rename(columns={"bp": "BP", "bmi": "bmj"}))
        assert set(caught.value.columns) == {"bmi", "bp"}
        assert caught.value.similar == {"bmi": ["bmj"], "bp": ["BP"]}
        same = pickle.loads(pickle.dumps(caught.value))
        assert (same.columns, same.similar) == (caught.value.columns, caught.value.similar)

    def test_sparse_input(self, data):
        with pytest.raises(TypeError, match="dense data is required"):
            LANAMRegressor().fit(sparse.csr_array(data[0].to_numpy()), data[1])

    def test_lazy_frames(self, data):
        with pytest.raises(TypeError, match=r"lazy frame .polars.; collect it first"):
            LANAMRegressor().fit(pl.from_pandas(data[0]).lazy(), data[1])

    def test_no_columns_and_no_rows(self, data):
        with pytest.raises(ValueError, match="0 feature"):
            LANAMRegressor().fit(data[0][[]], data[1])
        with pytest.raises(ValueError, match="0 sample"):
            LANAMRegressor().fit(data[0][:0], data[1][:0])

    def test_one_row(self, data):
        for X in (data[0][:1], data[0][:1].to_numpy()):
            with pytest.raises(ValueError, match=r"1 sample.*minimum of 2 is required"):
                LANAMRegressor().fit(X, data[1][:1])

    def test_one_row_with_a_positive_weight(self, data):
        weight = np.zeros(60)
        weight[5] = 3.0
        with pytest.raises(ValueError, match="only 1 sample has a positive weight"):
            LANAMRegressor().fit(*data, sample_weight=weight)

    def test_one_dimension(self, data):
        with pytest.raises(ValueError, match=r"reshape\(-1, 1\)"):
            LANAMRegressor().fit(data[0]["age"].to_numpy(), data[1])

    def test_another_number_of_columns(self, data):
        model = LANAMRegressor(random_state=0).fit(data[0].to_numpy(), data[1])
        with pytest.raises(ValueError, match="X has 2 features, but LANAMRegressor is expecting 3"):
            model.predict(data[0].to_numpy()[:, :2])

    def test_names_of_mixed_types(self, data):
        with pytest.raises(TypeError, match="string names"):
            LANAMRegressor().fit(data[0].set_axis(["age", "bmi", 3], axis=1), data[1])

    def test_duplicate_names(self, data):
        with pytest.raises(ValueError, match=r"more than one column named 'age'.*rename one"):
            LANAMRegressor().fit(data[0].set_axis(["age", "age", "bp"], axis=1), data[1])


class TestInvalidTargets:
    @pytest.mark.parametrize("estimator", [LANAMRegressor, LANAMClassifier])
    @pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
    def test_values_that_are_not_numbers(self, data, estimator, value, word):
        y = (data[1] > 0).astype(float)
        y[4] = value
        with pytest.raises(
            ValueError, match=f"y contains {word}: 1 of 60 values, the first in row 5"
        ):
            estimator().fit(data[0], y)

    def test_missing_values_of_pandas(self, data):
        y = pd.array([1.0, None, 2.0] * 20, dtype="Float64")
        with pytest.raises(ValueError, match="y contains NaN: 20 of 60 values"):
            LANAMRegressor().fit(data[0], y)

    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
    def test_missing_labels(self, data, missing):
        y = np.array(["no", "yes", missing] * 20, dtype=object)
        with pytest.raises(ValueError, match="y contains NaN: 20 of 60 values"):
            LANAMClassifier().fit(data[0], y)

    def test_text_for_the_regressor(self, data):
        with pytest.raises(ValueError, match=r"y must be numeric .* use LANAMClassifier"):
            LANAMRegressor().fit(data[0], ["low", "high"] * 30)

    @pytest.mark.parametrize("scale", [1e300, 1e-300])
    def test_squares_beyond_the_range_of_floats(self, data, scale):
        with pytest.raises(ValueError, match=r"magnitude .* change the unit of y"):
            LANAMRegressor().fit(data[0], data[1] * scale)

    def test_other_lengths(self, data):
        with pytest.raises(ValueError, match="X has 60 rows and y has 59 values"):
            LANAMRegressor().fit(data[0], data[1][:-1])

    def test_one_class(self, data):
        with pytest.raises(ValueError, match=r"one class only .'yes'"):
            LANAMClassifier().fit(data[0], ["yes"] * 60)

    @pytest.mark.parametrize(
        ("unit", "word"), [("datetime64[D]", "dates"), ("timedelta64[D]", "durations")]
    )
    def test_times(self, data, unit, word):
        with pytest.raises(ValueError, match=f"y holds {word}.*days since"):
            LANAMRegressor().fit(data[0], np.arange(60).astype(unit))

    def test_numbers_for_the_classifier(self, data):
        with pytest.raises(ValueError, match="continuous"):
            LANAMClassifier().fit(*data)


class TestInvalidWeights:
    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (-np.ones(60), "Negative values in sample_weight: 60 of 60, the first in row 1"),
            (np.full(60, np.nan), "sample_weight contains NaN"),
            (np.full(60, np.inf), "sample_weight contains infinity"),
            (np.zeros(60), "zero for every row"),
            (np.ones(59), "inconsistent numbers of samples"),
            (np.ones((60, 2)), "one dimension"),
        ],
    )
    def test_invalid_weights(self, data, weight, message):
        with pytest.raises(ValueError, match=message):
            LANAMRegressor().fit(*data, sample_weight=weight)


class TestHandled:
    @pytest.mark.parametrize("convert", [lambda X: X, pl.from_pandas, pd.DataFrame.to_numpy])
    def test_missing_values(self, data, convert):
        X, y = data
        X = X.copy()
        X.loc[::5, "age"] = np.nan
        X.loc[5, "bp"] = np.nan
        X = convert(X)
        model = LANAMRegressor(random_state=0).fit(X, y)
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0.0).all()
        assert model.score(X, y) > 0.5

    def test_missing_values_of_new_rows(self, data, model):
        X = data[0].assign(age=np.nan)
        with pytest.warns(UserWarning, match="column 'age': 60 of 60 values are missing"):
            mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        # Missing values were not in the training data: their interval is wide.
        assert (std > model.predict(data[0], return_std=True)[1]).all()

    def test_only_missing_values(self, data):
        X = data[0].assign(age=np.nan, bp=None)
        model = LANAMRegressor(random_state=0).fit(X, data[1])
        assert np.isfinite(model.predict(X, return_std=True)).all()
        assert np.isfinite(model.predict(data[0].assign(bp=None), return_std=True)).all()

    def test_text_in_lists_and_arrays(self):
        rng = np.random.default_rng(0)
        colours = rng.choice(["red", "green", "blue"], 90)
        y = (colours == "red") + 0.1 * rng.standard_normal(90)
        rows = [[k / 90, colour] for k, colour in enumerate(colours)]
        for X in (rows, colours[:, None], colours.astype(object)[:, None]):
            model = LANAMRegressor(random_state=0).fit(X, y)
            assert model.score(X, y) > 0.8

    def test_unseen_categories(self):
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"city": rng.choice(["Bonn", "Oslo", "Rome"], 90)})
        y = (X["city"] == "Rome") + 0.1 * rng.standard_normal(90)
        model = LANAMRegressor(random_state=0).fit(X, y)
        new = pd.DataFrame({"city": ["Rome", "Riga", "Riga", "Kyiv"]})
        with pytest.warns(
            UserWarning, match=r"3 of 4 values are unseen categories .*\('Kyiv', 'Riga'\)"
        ):
            mean, std = model.predict(new, return_std=True)
        assert np.isfinite(mean).all()
        assert (std[1:] > 2.0 * std[0]).all()
        assert len(set(mean[1:])) == 1

    def test_a_constant_column_is_dropped(self, data):
        X = data[0].assign(same=5.0)
        model = LANAMRegressor(random_state=0).fit(X, data[1])
        assert model.terms_[3].status == "dropped: constant column"
        assert (model.predict_terms(X)[:, 3] == 0.0).all()
        np.testing.assert_array_equal(model.predict(X), model.predict(X.assign(same=-7.0)))
        shape = model.explain_global()["same"]
        assert shape.values.tolist() == [5.0]

    def test_only_constant_columns(self, data):
        model = LANAMRegressor(random_state=0).fit(np.ones((60, 2)), data[1])
        np.testing.assert_allclose(model.predict(np.zeros((3, 2))), data[1].mean())
        assert model.noise_std_ == pytest.approx(data[1].std(), rel=0.05)
        assert "0 of 2 terms active" in str(model.summary())

    def test_duplicate_columns(self, data):
        X = data[0].assign(again=data[0]["age"])
        model = LANAMRegressor(random_state=0).fit(X, data[1])
        assert np.isfinite(model.predict(X, return_std=True)).all()
        assert model.score(X, data[1]) > 0.9

    def test_fewer_rows_than_columns(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((15, 40))
        y = 2.0 * X[:, 0] + 0.1 * rng.standard_normal(15)
        model = LANAMRegressor(random_state=0).fit(X, y)
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0.0).all()

    def test_two_rows(self):
        X = np.array([[0.0, 1.0], [1.0, 1.0]])
        model = LANAMRegressor(random_state=0).fit(X, [1.0, 2.0])
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        classifier = LANAMClassifier(random_state=0).fit(X, [0, 1])
        assert np.isfinite(classifier.predict_proba(X)).all()

    @pytest.mark.parametrize("value", [0.0, 3.0, -1e30, 1e-30])
    def test_a_constant_target(self, data, value):
        with pytest.warns(UserWarning, match="y is constant"):
            model = LANAMRegressor(random_state=0).fit(data[0], np.full(60, value))
        mean, std = model.predict(data[0], return_std=True)
        np.testing.assert_allclose(mean, value)
        assert (std <= 1e-3 * (abs(value) or 1.0)).all()
        assert not any(term.active for term in model.terms_)

    @pytest.mark.parametrize("scale", [1e300, 1e-300, 1e12])
    def test_columns_of_any_scale(self, data, model, scale):
        X = data[0] * scale
        scaled = LANAMRegressor(random_state=0).fit(X, data[1])
        # Not to rounding: a scale that is no power of two changes the columns' last digits.
        np.testing.assert_allclose(scaled.predict(X), model.predict(data[0]), atol=1e-3)
        shape = scaled.explain_global()["age"]
        assert np.isfinite(shape.values).all()
        assert shape.inside.any()

    @pytest.mark.parametrize("scale", [2.0**-400, 2.0**-30, 2.0**30, 2.0**400])
    def test_targets_of_any_scale(self, data, model, scale):
        scaled = LANAMRegressor(random_state=0).fit(data[0], data[1] * scale)
        mean, std = scaled.predict(data[0], return_std=True)
        expected_mean, expected_std = model.predict(data[0], return_std=True)
        np.testing.assert_allclose(mean / scale, expected_mean, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(std / scale, expected_std, rtol=1e-6)
        assert np.isfinite(scaled.log_likelihood(data[0], data[1] * scale))
        assert scaled.log_evidence_ == pytest.approx(
            model.log_evidence_ - 60 * np.log(scale), abs=1e-3
        )

    def test_outliers_of_a_column_do_not_squeeze_the_rest(self, data):
        X = data[0].copy()
        X.loc[0, "age"] = 1e9
        model = LANAMRegressor(random_state=0).fit(X, data[1])
        assert model.score(X[1:], data[1][1:]) > 0.9

    def test_heavy_tails(self):
        rng = np.random.default_rng(0)
        X = rng.standard_cauchy((300, 2))
        y = np.tanh(X[:, 0]) + 0.1 * rng.standard_normal(300)
        model = LANAMRegressor(random_state=0).fit(X, y)
        assert model.score(X, y) > 0.9

    def test_an_outlier_of_the_target_is_not_fatal(self, data):
        y = data[1].copy()
        y[0] = 1e6
        model = LANAMRegressor(random_state=0).fit(data[0], y)
        assert np.isfinite(model.predict(data[0], return_std=True)).all()

    def test_perfectly_separated_classes(self):
        X = np.linspace(-1, 1, 40)[:, None]
        model = LANAMClassifier(random_state=0).fit(X, X[:, 0] > 0)
        probability = model.predict_proba(X)
        assert np.isfinite(probability).all()
        assert model.score(X, X[:, 0] > 0) == 1.0

    def test_values_far_beyond_the_training_data(self, model, data):
        X = data[0].assign(age=1e300)
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()

    @pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "Int64"])
    def test_numeric_dtypes(self, data, dtype):
        X = (data[0] > 0).astype(int).astype(dtype)
        model = LANAMRegressor(random_state=0).fit(X, data[1])
        expected = LANAMRegressor(random_state=0).fit(X.astype(float), data[1])
        np.testing.assert_array_equal(model.predict(X), expected.predict(X.astype(float)))


def test_weights_that_cannot_be_frequencies():
    X = np.linspace(-1, 1, 20)[:, None]
    with pytest.raises(ValueError, match="divide all weights by their mean"):
        LANAMRegressor(random_state=0).fit(X, X[:, 0], sample_weight=np.full(20, 1e300))


class TestMasked:
    def test_masked_values_are_missing(self, data):
        X, y = data[0].to_numpy(), data[1]
        mask = np.random.default_rng(0).random(X.shape) < 0.2
        masked = np.ma.array(np.where(mask, 99.0, X), mask=mask)
        model = LANAMRegressor(interactions=0).fit(masked, y)
        expected = LANAMRegressor(interactions=0).fit(np.where(mask, np.nan, X), y)
        np.testing.assert_array_equal(
            model.predict(masked), expected.predict(masked.filled(np.nan))
        )

    def test_masked_text_is_missing(self, data):
        _, y = data
        words = np.array([["a"], ["b"]] * (len(y) // 2), dtype=object)
        masked = np.ma.array(words, mask=np.arange(len(words))[:, None] < 4)
        model = LANAMRegressor(interactions=0).fit(masked, y[: len(words)])
        assert model.summary().facts["n_with_missing"] == 1

    @pytest.mark.parametrize("argument", ["y", "sample_weight"])
    def test_masked_targets_and_weights_are_refused(self, data, argument):
        X, y = data
        arguments = {"y": y, "sample_weight": np.ones(len(y))}
        arguments[argument] = np.ma.array(arguments[argument], mask=np.arange(len(y)) == 3)
        with pytest.raises(ValueError, match=rf"{argument} .*1 of {len(y)} values, .* row 4"):
            LANAMRegressor().fit(X, **arguments)


class TestLabelsOfColumns:
    """Frames whose labels are not text are matched by these labels."""

    @pytest.mark.parametrize("labels", [[10, 20], [1, 0], [("a", "x"), ("b", "y")]])
    def test_another_order(self, data, labels):
        X, y = data[0].to_numpy(), data[1]
        index = pd.MultiIndex.from_tuples(labels) if isinstance(labels[0], tuple) else labels
        frame = pd.DataFrame(X[:, :2], columns=index)
        model = LANAMRegressor(interactions=0).fit(frame, y)
        other = frame[frame.columns[::-1]]
        np.testing.assert_array_equal(model.predict(other), model.predict(frame))

    def test_another_label(self, data):
        X, y = data[0].to_numpy(), data[1]
        model = LANAMRegressor(interactions=0).fit(pd.DataFrame(X[:, :2], columns=[10, 20]), y)
        with pytest.raises(
            ValueError,
            match="X has no column '20', with which the model was fitted: its other columns are '30'",
        ):
            model.predict(pd.DataFrame(X[:, :2], columns=[10, 30]))


@pytest.mark.parametrize("total", [0.5, 1.0])
def test_weights_that_sum_to_one_row(data, total):
    X, y = data
    weight = np.full(len(y), total / len(y))
    with pytest.raises(
        ValueError, match=rf"sample_weight sums to {total:.2g} .* two observations .* by their mean"
    ):
        LANAMRegressor().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("kind", [tuple, Decimal])
def test_labels_of_other_types(data, kind):
    X, y = data
    label = {tuple: [("a", 1), ("b", 2)], Decimal: [Decimal(1), Decimal(2)]}[kind]
    labels = [label[int(value > np.median(y))] for value in y]
    with pytest.raises(ValueError, match=rf"labels of type {kind.__name__}.*\[str\(label\)"):
        LANAMClassifier().fit(X, labels)


def test_a_target_that_varies_by_rounding(data):
    X, y = data
    with pytest.warns(UserWarning, match="constant up to rounding .* subtract a constant"):
        LANAMRegressor().fit(X, 1e14 + y)
