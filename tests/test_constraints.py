"""Monotone, convex and concave columns, from the estimators to files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lanam
from lanam import LANAMClassifier, LANAMRegressor, LANAMSurvival
from lanam.editing import edit_words
from lanam.errors import InputError


def table(n=250, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(n, 3)), columns=["a", "b", "c"])
    X["stage"] = rng.choice(["I", "II", "III"], size=n)
    stage = X["stage"].str.len()
    signal = np.exp(X["a"]) * stage + 1.5 * X["a"] * X["b"] + X["c"] ** 2 + stage
    return X, (signal + 0.5 * rng.normal(size=n)).to_numpy()


ORDER = {"stage": ["I", "II", "III"]}


@pytest.fixture(scope="module")
def data():
    return table()


@pytest.fixture(scope="module")
def fitted(data):
    return LANAMRegressor(
        interactions=[("a", "b"), ("a", "stage")],
        monotonic_cst={"a": 1, "stage": 1},
        shape_cst={"c": "convex"},
        ordered=ORDER,
    ).fit(*data)


def along(X, column, values):
    """A row of each of the first rows for each of the values of a column."""
    rows = X.head(12)
    many = rows.loc[rows.index.repeat(len(values))].reset_index(drop=True)
    many[column] = np.tile(values, len(rows))
    return many


def links(model, X, n_draws=30):
    """Draws (n_draws, n) of the linear predictor, and its mean as the first."""
    rows = model._rows(X)
    mean = model.intercept_ + model.predict_terms(X).sum(axis=1)
    return np.vstack([mean, model._sample_links(rows, n_draws, 0)])


def steps(model, X, column, values):
    drawn = links(model, along(X, column, values))
    return np.diff(drawn.reshape(len(drawn), -1, len(values)), axis=2)


class TestObeys:
    #: knots, what lies between them, and beyond the data
    POINTS = np.unique(np.r_[np.linspace(-1, 1, 40), np.linspace(-12, 12, 30)])

    def test_a_column_with_interactions(self, data, fitted):
        assert {"a x b", "a x stage"} <= {term.name for term in fitted.terms_ if term.active}
        assert steps(fitted, data[0], "a", self.POINTS).min() > -1e-10

    @pytest.mark.filterwarnings("ignore::lanam.data.NewValuesWarning")
    def test_where_the_other_column_is_missing(self, data, fitted):
        # The training data had none: draws have a value of each row instead.
        X = data[0].assign(b=np.nan, stage="II")
        assert steps(fitted, X, "a", self.POINTS)[0].min() > -1e-10

    def test_ordered_categories(self, data, fitted):
        assert steps(fitted, data[0], "stage", ["I", "II", "III"]).min() > -1e-10

    def test_a_convex_column(self, data, fitted):
        values = np.linspace(-8, 8, 61)  # the table ends four ranges beyond the data
        bends = np.diff(steps(fitted, data[0], "c", values), axis=2)
        # Rows between knots are located in single precision.
        assert bends.min() > -1e-5
        curve = fitted.explain_global()["c"]
        assert np.diff(np.diff(curve.mean) / np.diff(curve.values)).min() > -1e-9

    def test_the_free_fit_does_not(self, data):
        free = LANAMRegressor(interactions=[("a", "b")]).fit(*data)
        assert steps(free, data[0], "a", self.POINTS).min() < -0.1

    @pytest.mark.parametrize("likelihood", ["poisson", "gamma", "student"])
    def test_every_family(self, data, likelihood):
        X, y = data
        y = np.round(np.exp(0.3 * y)) + (likelihood == "gamma")
        model = LANAMRegressor(likelihood=likelihood, interactions=0, monotonic_cst={"a": -1})
        model.fit(X[["a", "b"]], y)
        assert steps(model, X[["a", "b"]], "a", self.POINTS).max() < 1e-10

    def test_two_and_ordinal_classes(self, data):
        X, y = data
        for classes in (y > 3, np.digitize(y, [2, 3, 4])):
            likelihood = "categorical" if classes.dtype == bool else "ordinal"
            model = LANAMClassifier(
                likelihood=likelihood, interactions=0, monotonic_cst={"a": 1, "b": -1}
            ).fit(X[["a", "b", "c"]], classes)
            assert steps(model, X[["a", "b", "c"]], "a", self.POINTS).min() > -1e-10

    def test_survival(self, data):
        X, y = data
        rows = X[["a", "b"]].assign(time=np.exp(1.0 - 0.3 * y), event=1)
        model = LANAMSurvival(interactions=0, time_interactions=0, monotonic_cst={"b": 1})
        model.fit(rows, event="event", time="time")
        grid = along(X[["a", "b"]], "b", self.POINTS)
        assert np.diff(model.predict(grid).reshape(-1, len(self.POINTS))).min() > -1e-10


class TestConsistent:
    def test_bands_have_the_free_width(self, free):
        edited = free.edit_term("c", "increasing")
        before, after = (model.explain_global()["c"] for model in (free, edited))
        np.testing.assert_array_equal(after.std, before.std)
        np.testing.assert_array_equal(after.largest_deviations, before.largest_deviations)
        assert np.ptp(after.mean) < np.ptp(before.mean)

    def test_questions_are_answered_from_draws_that_obey(self, fitted):
        curve = fitted.explain_global()["a"]
        inside = curve.posterior.at(np.flatnonzero(curve.inside))
        draws = curve.mean[curve.inside, None] + inside.draws(100)[0]
        assert np.diff(draws, axis=0).min() > -1e-10
        assert curve.peak().probability_lowest == 0.0
        assert not curve.falling()

    def test_means_are_those_of_terms(self, data, fitted):
        terms = fitted.intercept_ + fitted.predict_terms(data[0]).sum(axis=1)
        np.testing.assert_allclose(fitted.predict(data[0]), terms)

    def test_nothing_changes_where_nothing_is_violated(self, data):
        X, y = data
        X = X[["a", "b"]].assign(steep=X["a"])
        y = y + 40.0 * X["steep"]
        free = LANAMRegressor(interactions=0, level_effects=False).fit(X[["b", "steep"]], y)
        bound = LANAMRegressor(interactions=0, level_effects=False, monotonic_cst={"steep": 1}).fit(
            X[["b", "steep"]], y
        )
        X = X[["b", "steep"]]
        np.testing.assert_allclose(free.predict(X), bound.predict(X), rtol=1e-6)

    def test_columns_without_an_effect_have_none(self, data):
        X, y = data
        X = X[["a"]].assign(same=1.0, none=np.nan)
        arguments = {"interactions": 0, "noise": "constant"}
        model = LANAMRegressor(monotonic_cst={"a": -1, "same": 1, "none": 1}, **arguments)
        assert [term.active for term in model.fit(X, y).terms_] == [True, False, False]

    def test_the_other_direction_of_the_other_sign(self, data):
        X, y = data
        up = LANAMRegressor(interactions=0, monotonic_cst={"a": 1}).fit(X[["a", "b"]], y)
        down = LANAMRegressor(interactions=0, monotonic_cst={"a": -1}).fit(X[["a", "b"]], -y)
        X = X[["a", "b"]]
        np.testing.assert_allclose(up.predict(X), -down.predict(X), rtol=1e-6)

    def test_the_order_of_the_rows_does_not_matter(self, data, fitted):
        order = np.random.default_rng(1).permutation(len(data[1]))
        again = LANAMRegressor(**fitted.get_params()).fit(data[0].iloc[order], data[1][order])
        np.testing.assert_allclose(again.predict(data[0]), fitted.predict(data[0]), rtol=1e-5)
        before, after = (model.explain_global()["a"].std for model in (fitted, again))
        np.testing.assert_allclose(after, before, rtol=0.01)

    def test_files_in_chunks(self, data, tmp_path):
        X, y = data
        frame = X[["a", "b"]].assign(y=y)
        for part in range(2):
            frame.iloc[part::2].to_parquet(tmp_path / f"{part}.parquet")
        arguments = {"interactions": 0, "monotonic_cst": {"a": 1}, "noise": "constant"}
        files = LANAMRegressor(**arguments).fit(str(tmp_path), "y")
        memory = LANAMRegressor(**arguments).fit(X[["a", "b"]], y)
        X = X[["a", "b"]]
        np.testing.assert_allclose(files.predict(X), memory.predict(X), rtol=1e-4)
        assert steps(files, X, "a", TestObeys.POINTS).min() > -1e-10

    def test_a_saved_model_draws_the_same(self, data, fitted, tmp_path):
        loaded = lanam.load(fitted.save(tmp_path / "model.lanam"))
        np.testing.assert_array_equal(links(loaded, data[0]), links(fitted, data[0]))
        curves = (model.explain_global()["a"] for model in (fitted, loaded))
        before, after = (curve.band(simultaneous=True) for curve in curves)
        np.testing.assert_array_equal(before, after)
        assert loaded.get_params()["monotonic_cst"] == {"a": 1, "stage": 1}

    def test_an_edited_model_is_saved_with_its_draws(self, data, fitted, tmp_path):
        edited = fitted.edit_term("a", "clamp", high=0.5)
        loaded = lanam.load(edited.save(tmp_path / "model.lanam"))
        np.testing.assert_array_equal(links(loaded, data[0]), links(edited, data[0]))

    def test_interactions_are_added_under_the_constraints(self, data):
        X, y = data
        model = LANAMRegressor(interactions=0, monotonic_cst={"a": 1}).fit(X[["a", "b"]], y)
        model.add_interactions(X[["a", "b"]], y, [("a", "b")])
        assert steps(model, X[["a", "b"]], "a", TestObeys.POINTS).min() > -1e-10

    def test_an_array_names_the_same_columns(self, data):
        X, y = data
        arguments = {"interactions": 0, "noise": "constant"}
        named = LANAMRegressor(monotonic_cst={"b": -1}, **arguments).fit(X[["a", "b"]], y)
        listed = LANAMRegressor(monotonic_cst=np.array([0, -1]), **arguments).fit(X[["a", "b"]], y)
        X = X[["a", "b"]]
        np.testing.assert_array_equal(named.predict(X), listed.predict(X))


@pytest.fixture(scope="module")
def free(data):
    return LANAMRegressor(interactions=[("a", "b")], level_effects=False).fit(*data)


class TestEdits:
    def test_a_range_becomes_monotone(self, data, free):
        edited = free.edit_term("c", "increasing", low=-0.5, high=0.5, reason="known")
        values = np.linspace(-0.5, 0.5, 60)
        falls = steps(edited, data[0], "c", values)
        size = np.ptp(free.explain_global()["c"].mean)
        assert falls.min() > -1e-5 * size  # tables of free fits have six digits
        assert steps(free, data[0], "c", values).min() < -0.01 * size
        record = edited.edits_[0]
        assert (record["action"], record["where"][0]["low"]) == ("increasing", -0.5)
        words = "c: increasing from -0.5 to 0.5"
        assert edit_words(record).startswith(words)
        curve = edited.explain_global()["c"]
        assert curve.edited.tolist() == ((curve.values >= -0.5) & (curve.values <= 0.5)).tolist()

    def test_the_direction_of_the_curve(self, free):
        edited = free.edit_term("a", "monotone")
        rising = free.edit_term("a", "increasing")
        np.testing.assert_array_equal(
            edited.explain_global()["a"].mean, rising.explain_global()["a"].mean
        )

    def test_one_after_the_other_is_both_at_once(self, data, free):
        one = free.edit_term("a", "increasing").edit_term("c", "decreasing")
        other = free.edit_term("c", "decreasing").edit_term("a", "increasing")
        np.testing.assert_allclose(one.predict(data[0]), other.predict(data[0]), atol=2e-3)
        assert steps(one, data[0], "a", TestObeys.POINTS).min() > -1e-4

    def test_a_later_edit_has_the_last_word(self, data, free):
        zero = free.edit_term("a", "increasing").edit_term("a", "zero", low=0.2)
        edited = zero.edit_term("c", "decreasing")
        curve = edited.explain_global()["a"]
        assert not curve.mean[curve.values > 0.21].any()

    @pytest.mark.parametrize(
        ("name", "arguments", "message"),
        [
            ("a x b", {}, "is a pairwise interaction: name a column"),
            ("stage", {}, "have no order: fit with their order"),
            ("a", {"low": 0.9, "high": 0.1}, "is above high"),
        ],
    )
    def test_errors(self, free, name, arguments, message):
        with pytest.raises(ValueError, match=message):
            free.edit_term(name, "increasing", **arguments)


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"monotonic_cst": {"aa": 1}}, "monotonic_cst names the column 'aa'.*did you mean 'a'"),
            ({"monotonic_cst": {"a": 2}}, "2 for column 'a': use 1 .increasing., -1"),
            ({"monotonic_cst": [1, 0]}, "2 values for 4 columns.*monotonic_cst={'a': 1}"),
            ({"monotonic_cst": "a"}, "use a value per column, for example {'a': 1}"),
            ({"monotonic_cst": {"a": 1, 0: -1}}, "has the column 'a' twice"),
            ({"monotonic_cst": {"stage": 1}}, "categories have no order.*ordered={'stage': "),
            ({"monotonic_cst": {"a": 1}, "cyclic": {"a": 9}}, "both name the column 'a'"),
            ({"shape_cst": {"a": "bent"}}, "'bent' for column 'a': choose 'convex' or 'concave'"),
            ({"shape_cst": {"a": "increasing"}}, "increasing columns are for monotonic_cst"),
            ({"shape_cst": {"stage": "convex"}, "ordered": ORDER}, "'stage', which is categorical"),
            ({"shape_cst": {"a": "convex"}, "interactions": [("a", "b")]}, "has no interactions"),
            ({"monotonic_cst": {"a": 1}, "solver": "adam"}, "use solver='gauss-newton'"),
        ],
    )
    def test_say_what_to_do(self, data, arguments, message):
        with pytest.raises(InputError, match=message):
            LANAMRegressor(**arguments).fit(*data)

    def test_several_classes(self, data):
        X, y = data
        with pytest.raises(InputError, match=r"one function of each column.*likelihood='ordinal'"):
            LANAMClassifier(monotonic_cst={"a": 1}).fit(X, np.digitize(y, [2, 3]))

    def test_convex_columns_are_left_out_of_the_search(self, data):
        X, y = data
        model = LANAMRegressor(shape_cst={"a": "convex"}).fit(X[["a", "b", "c"]], y)
        assert not any("a" in term.feature_names for term in model.terms_ if term.joint)
