"""Interactions through the estimators: scores, statuses, surfaces, and adding them to a fitted model."""

import json
import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.interpolate import RegularGridInterpolator
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import fitting
from lanam.errors import InputWarning
from lanam.parameters import choices

NAMES = ["a", "b", "c", "d"]
#: Small networks, and no search for what the noise depends on: as much to say of pairs, less to wait for.
QUICK = {"hidden_sizes": (16,), "pair_hidden_sizes": (16,), "random_state": 0}
NUMBERS = QUICK | {"noise": "constant"}
#: The status of a pair that was tried in vain.
SHORTFALL = re.compile(
    r"dropped: not supported by the data "
    r"\(log evidence gain (?P<gain>-?\d+\.\d+), threshold (?P<threshold>\d+\.\d+)\)"
)


def make_table(n_rows, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.uniform(-2, 2, size=(n_rows, 4)), columns=NAMES)


@pytest.fixture(scope="module")
def data():
    X = make_table(240, seed=0)
    noise = 0.1 * np.random.default_rng(1).standard_normal(240)
    y = 3.0 + np.sin(2 * X["a"]) + 0.5 * X["b"] + X["a"] * X["c"] + noise
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def labelled():
    X = make_table(300, seed=2)
    chance = np.random.default_rng(3).uniform(size=300)
    return X, np.where(chance < expit(2.0 * X["a"] * X["c"] + X["b"]), "yes", "no")


@pytest.fixture(scope="module")
def regressor(data):
    return LANAMRegressor(**NUMBERS).fit(*data)


@pytest.fixture(scope="module")
def classifier(labelled):
    return LANAMClassifier(**QUICK).fit(*labelled)


@pytest.fixture(scope="module")
def plain(data):
    """A model without interactions; tests that change it take a copy."""
    return LANAMRegressor(interactions=0, **NUMBERS).fit(*data)


def copy_of(model):
    return pickle.loads(pickle.dumps(model))


def pair_names(model):
    return [term.name for term in model.terms_ if term.kind == "pair" and term.active]


def statuses(model):
    return {row["pair"]: row["status"] for row in model.interaction_scores_}


class TestPredictions:
    @pytest.mark.parametrize("name", ["regressor", "classifier"])
    def test_the_interaction_is_found(self, name, request):
        model = request.getfixturevalue(name)
        assert pair_names(model) == ["a x c"]
        term = next(term for term in model.terms_ if term.name == "a x c")
        assert term.features == (0, 2)
        assert term.feature_names == ("a", "c")
        assert term.importance > 0.1
        assert term.evidence > 3.0
        assert term.effective_parameters > 1.0

    def test_it_predicts_better_on_new_rows(self, regressor, plain):
        X = make_table(500, seed=9)
        y = 3.0 + np.sin(2 * X["a"]) + 0.5 * X["b"] + X["a"] * X["c"]
        assert plain.score(X, y) < 0.8
        assert regressor.score(X, y) > 0.98
        assert regressor.noise_std_ == pytest.approx(0.1, rel=0.3)
        assert regressor.log_evidence_ > plain.log_evidence_ + 50.0

    @pytest.mark.parametrize("name", ["regressor", "classifier"])
    def test_terms_and_intercept_sum_to_the_link(self, name, request):
        model = request.getfixturevalue(name)
        X = make_table(100, seed=4) * 1.5  # partly beyond the training data
        terms = model.predict_terms(X)
        assert terms.shape == (100, len(model.terms_))
        link = model.intercept_ + terms.sum(axis=1)
        np.testing.assert_allclose(link, model.explain_local(X).prediction, rtol=1e-10, atol=1e-10)
        if name == "regressor":
            np.testing.assert_allclose(link, model.predict(X), rtol=1e-10)
        else:
            np.testing.assert_array_equal(link > 0.0, model.predict(X) == "yes")

    @pytest.mark.parametrize("name", ["regressor", "classifier"])
    def test_dropped_terms_are_zero_without_uncertainty(self, name, request):
        model = request.getfixturevalue(name)
        means, stds = model.predict_terms(make_table(50, seed=4), return_std=True)
        active = np.array([term.active for term in model.terms_])
        assert not active.all()
        assert (means[:, ~active] == 0.0).all()
        assert (stds[:, ~active] == 0.0).all()
        assert (stds[:, active] > 0.0).all()
        assert all((term.importance > 0.0) == term.active for term in model.terms_)

    def test_draws_have_the_predictions_moments(self, regressor):
        X = make_table(40, seed=4)
        draws = regressor.sample(X, n_samples=4000, random_state=0)
        mean, std = regressor.predict(X, return_std=True)
        spread = np.sqrt(std**2 - regressor.noise_std_**2)
        # The standard error of standard deviations of 4000 draws is about one per cent.
        np.testing.assert_allclose(draws.std(axis=0), spread, rtol=0.06)
        assert (np.abs(draws.mean(axis=0) - mean) < 5 * spread / np.sqrt(4000)).all()

    def test_draws_of_the_classifier_are_probabilities(self, classifier):
        X = make_table(40, seed=4)
        draws = classifier.sample(X, n_samples=4000, random_state=0)
        assert ((draws >= 0.0) & (draws <= 1.0)).all()
        # The error of MacKay's approximation is about 0.01.
        np.testing.assert_allclose(draws.mean(axis=0), classifier.predict_proba(X)[:, 1], atol=0.03)

    def test_the_prediction_varies_less_than_its_terms_would_alone(self, regressor):
        # Terms are correlated: the joint variance is near the sum of theirs.
        local = regressor.explain_local(make_table(50, seed=4))
        alone = np.sqrt(np.square(local.contributions_std).sum(axis=1) + local.intercept_std**2)
        assert (local.prediction_std != alone).all()
        np.testing.assert_allclose(local.prediction_std, alone, rtol=0.5)

    @pytest.mark.parametrize("name", ["regressor", "classifier"])
    @pytest.mark.parametrize("far", [3.0, 10.0, 1e6, 1e300])
    def test_intervals_beyond_the_data_are_wide_and_finite(self, name, far, request):
        model = request.getfixturevalue(name)
        index = [term.name for term in model.terms_].index("a x c")
        near = pd.DataFrame([[0.5, 0.0, 0.5, 0.0]], columns=NAMES)
        corners = [[far, 0.0, far, 0.0], [-far, 0.0, far, 0.0], [far, 0.0, 0.1, 0.0]]
        rows = pd.DataFrame(corners, columns=NAMES)
        means, stds = model.predict_terms(rows, return_std=True)
        _, inner = model.predict_terms(near, return_std=True)
        assert np.isfinite(means).all()
        assert (stds[:, index] > inner[0, index]).all()
        if name == "classifier":
            probability = model.predict_proba(rows)
            assert ((probability > 0.0) & (probability < 1.0)).all()
        else:
            mean, std = model.predict(rows, return_std=True)
            assert np.isfinite(mean).all()
            assert (std > model.noise_std_).all()

    def test_predictions_do_not_depend_on_other_rows(self, regressor):
        X = make_table(60, seed=4)
        np.testing.assert_allclose(
            regressor.predict_terms(X[20:23]), regressor.predict_terms(X)[20:23], atol=1e-6
        )

    def test_single_precision(self, regressor, data):
        X = data[0].astype(np.float32)
        np.testing.assert_allclose(regressor.predict(X), regressor.predict(data[0]), atol=1e-4)
        model = LANAMRegressor(**NUMBERS).fit(X, data[1].astype(np.float32))
        assert pair_names(model) == ["a x c"]
        # Rounding changes the columns in the sixth digit.
        np.testing.assert_allclose(model.predict(X), regressor.predict(data[0]), atol=0.02)
        assert model.predict(X).dtype == np.float64


class TestSurface:
    @pytest.fixture(params=["regressor", "classifier"])
    def fitted(self, request, regressor, classifier, data, labelled):
        if request.param == "regressor":
            return regressor, data[0]
        return classifier, labelled[0]

    def test_shapes_and_pairs_make_up_the_terms(self, fitted):
        model, _ = fitted
        explanation = model.explain_global()
        kinds = [term.kind for term in model.terms_]
        assert [len(explanation.shapes), len(explanation.pairs)] == [
            len(kinds) - kinds.count("pair"),
            kinds.count("pair"),
        ]
        assert explanation.shapes + explanation.pairs == explanation.terms
        assert [term.name for term in explanation] == [term.name for term in model.terms_]

    def test_it_is_a_grid(self, fitted):
        model, _ = fitted
        for surface in model.explain_global().pairs:
            shape = (len(surface.values), len(surface.second_values))
            for table in (surface.mean, surface.std, surface.density, surface.inside):
                assert table.shape == shape
            assert (np.diff(surface.values) > 0.0).all()
            assert (np.diff(surface.second_values) > 0.0).all()
            assert surface.active
            assert (surface.std[surface.density > 0.0] > 0.0).all()

    def test_density_is_the_fraction_of_the_data(self, fitted):
        model, X = fitted
        surface = model.explain_global()["a x c"]
        assert surface.density.sum() == pytest.approx(1.0)
        assert (surface.density >= 0.0).all()
        assert (surface.density[~surface.inside] == 0.0).all()
        # Rows between knots count at both, weighted to keep the mean; in single precision.
        assert surface.density.sum(axis=1) @ surface.values == pytest.approx(
            X["a"].mean(), abs=1e-6
        )
        assert surface.density.sum(axis=0) @ surface.second_values == pytest.approx(
            X["c"].mean(), abs=1e-6
        )

    def test_inside_is_the_datas_range(self, fitted):
        model, X = fitted
        surface = model.explain_global()["a x c"]
        for name, values, inside in (
            ("a", surface.values, surface.inside.any(axis=1)),
            ("c", surface.second_values, surface.inside.any(axis=0)),
        ):
            assert values[inside][[0, -1]] == pytest.approx([X[name].min(), X[name].max()])
            assert not inside[[0, -1]].any()

    def test_it_has_no_main_effects(self, fitted):
        model, _ = fitted
        for surface in model.explain_global().pairs:
            for axis in (0, 1):
                share = surface.density.sum(axis=axis)
                seen = share > 0.0
                mean = (surface.density * surface.mean).sum(axis=axis)[seen] / share[seen]
                np.testing.assert_allclose(mean, 0.0, atol=1e-8)

    def test_it_is_the_contribution_of_predict_terms(self, fitted):
        model, X = fitted
        surface = model.explain_global()["a x c"]
        index = [term.name for term in model.terms_].index("a x c")
        read = RegularGridInterpolator((surface.values, surface.second_values), surface.mean)
        # Rows read the tables in single precision.
        np.testing.assert_allclose(
            read(X[["a", "c"]].to_numpy()), model.predict_terms(X)[:, index], atol=1e-5
        )
        first, second = np.meshgrid(surface.values, surface.second_values, indexing="ij")
        at_knots = pd.DataFrame(0.0, index=range(first.size), columns=NAMES)
        at_knots = at_knots.assign(a=first.ravel(), c=second.ravel())
        means, stds = model.predict_terms(at_knots, return_std=True)
        np.testing.assert_allclose(means[:, index], surface.mean.ravel(), atol=1e-5)
        np.testing.assert_allclose(stds[:, index], surface.std.ravel(), rtol=1e-3, atol=1e-6)

    def test_importance_is_the_mean_absolute_contribution(self, fitted):
        model, X = fitted
        explanation = model.explain_global()
        contributions = np.abs(model.predict_terms(X)).mean(axis=0)
        for term, contribution in zip(explanation, contributions, strict=True):
            assert term.importance == pytest.approx(contribution, rel=1e-12)
            assert (term.importance_std > 0.0) == term.active
            if term.kind == "pair":
                # Over the rows, not over the knots: between four of them, contributions of different
                # signs cancel.
                at_knots = (term.density * np.abs(term.mean)).sum()
                assert 0.85 * at_knots < term.importance < at_knots

    def test_it_has_the_form_of_the_product(self, regressor):
        surface = regressor.explain_global()["a x c"]
        first, second = np.nonzero(surface.density)
        weight = surface.density[first, second]
        product = surface.values[first] * surface.second_values[second]
        # The residual of the product after the best sum of two functions, over the data.
        columns = [
            np.eye(size)[k] for size, k in zip(surface.mean.shape, (first, second), strict=True)
        ]
        root = np.sqrt(weight)
        design = np.hstack(columns)
        fit = np.linalg.lstsq(root[:, None] * design, root * product, rcond=None)[0]
        pure = product - design @ fit
        error = surface.mean[first, second] - pure
        # The noise sd is 0.1, and between knots the surface is bilinear like the product.
        assert np.sqrt(weight @ error**2) < 0.1 < 0.2 * np.sqrt(weight @ pure**2)

    def test_an_explanation_is_a_copy(self, regressor, data):
        before = regressor.predict_terms(data[0][:5])
        surface = regressor.explain_global()["a x c"]
        for table in (surface.values, surface.second_values, surface.mean, surface.density):
            table += 5.0
        np.testing.assert_array_equal(regressor.predict_terms(data[0][:5]), before)
        assert regressor.explain_global()["a x c"].density.sum() == pytest.approx(1.0)


class TestLocal:
    def test_second_values_are_the_pairs(self, regressor, data):
        local = regressor.explain_local(data[0][:5])
        for k, term in enumerate(local.terms):
            np.testing.assert_array_equal(local.values[:, k], data[0][term.feature_names[0]][:5])
            if term.kind == "pair":
                second = data[0][term.feature_names[1]][:5]
                np.testing.assert_array_equal(local.second_values[:, k], second)
            else:
                assert np.isnan(local.second_values[:, k]).all()

    def test_plain_data_is_json(self, regressor, data):
        local = regressor.explain_local(data[0][:2])
        # Standard JSON has no NaN.
        plain = json.loads(json.dumps(local.to_dict(), allow_nan=False))
        assert plain["contributions"] == local.contributions.tolist()
        index = [term.name for term in local.terms].index("a x c")
        assert plain["second_values"][1][index] == data[0]["c"][1]
        assert plain["second_values"][1][0] is None

    def test_the_frame_has_both_values(self, regressor, data):
        frame = regressor.explain_local(data[0][:3]).to_frame()
        pair = frame[frame["term"] == "a x c"]
        np.testing.assert_array_equal(pair["value"], data[0]["a"][:3])
        np.testing.assert_array_equal(pair["second_value"], data[0]["c"][:3])
        assert frame[frame["term"] == "a"]["second_value"].isna().all()
        assert frame[frame["term"].str.startswith("(")]["value"].isna().all()


class TestScores:
    @pytest.mark.parametrize("name", ["regressor", "classifier"])
    def test_every_pair_once_best_first(self, name, request):
        scores = request.getfixturevalue(name).interaction_scores_
        assert len(scores) == len(list(scores)) == 6
        assert {row["features"] for row in scores} == {
            (i, j) for i in range(4) for j in range(i + 1, 4)
        }
        assert [row["rank"] for row in scores] == [1, 2, 3, 4, 5, 6]
        values = [row["score"] for row in scores]
        assert values == sorted(values, reverse=True)
        assert values[-1] >= 0.0
        best = scores[0]
        assert (best["pair"], best["feature_names"], best["status"]) == (
            "a x c",
            ("a", "c"),
            "active",
        )
        assert scores.active == (best,)

    def test_as_a_matrix(self, regressor):
        scores = regressor.interaction_scores_
        matrix = scores.matrix()
        assert np.isnan(np.diag(matrix)).all()
        np.testing.assert_array_equal(matrix, matrix.T)
        assert np.isnan(matrix).sum() == 4
        for row in scores:
            assert matrix[row["features"]] == row["score"]

    def test_as_plain_data(self, regressor):
        scores = regressor.interaction_scores_
        plain = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
        assert plain == scores.to_dict()
        assert plain["score"] == "evidence"
        assert plain["names"] == NAMES
        assert plain["pairs"][0]["feature_names"] == ["a", "c"]

    def test_as_a_frame(self, regressor):
        frame = regressor.interaction_scores_.to_frame()
        assert list(frame.columns) == ["rank", "first", "second", "score", "status"]
        assert frame.iloc[0].tolist()[:3] == [1, "a", "c"]
        assert frame["score"].is_monotonic_decreasing

    def test_as_words(self, regressor):
        scores = regressor.interaction_scores_
        assert str(scores) == repr(scores)
        lines = str(scores).splitlines()
        assert lines[0] == "6 interactions by evidence, 1 active"
        assert len(lines) == 7
        assert lines[1].split()[:4] == ["1", "a", "x", "c"]
        assert lines[1].endswith("active")

    def test_of_many_the_best_are_printed(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 8))
        model = LANAMRegressor(interactions=1, **NUMBERS).fit(X, X[:, 0] * X[:, 7])
        lines = str(model.interaction_scores_).splitlines()
        assert len(lines) == 1 + 20 + 1
        assert lines[-1].strip() == "and 8 more, 0 of them active (interaction_scores_)"
        printed = str(model.summary()).splitlines()
        assert printed[-1].strip() == "and 16 more, 0 of them active (interaction_scores_)"
        assert printed[-14].startswith("28 pairwise interactions by screening score, 1 active")

    def test_long_names_are_cut_where_they_are_printed(self, data):
        X = data[0][["a", "c"]].set_axis(["first" * 20, "second" * 20], axis=1)
        scores = LANAMRegressor(**NUMBERS).fit(X, data[1]).interaction_scores_
        line = str(scores).splitlines()[1]
        assert re.search(r"(first)+\w*\.\.\. x (second)+\w*\.\.\.  ", line)
        assert 90 < len(line) <= 100
        assert scores[0]["pair"] == " x ".join(X.columns)

    @pytest.mark.parametrize("kind", choices("interaction_score"))
    @pytest.mark.parametrize("name", ["data", "labelled"])
    def test_every_score_ranks_and_is_named(self, kind, name, request):
        X, y = request.getfixturevalue(name)
        estimator = LANAMRegressor if name == "data" else LANAMClassifier
        model = estimator(interactions=1, interaction_score=kind, **QUICK).fit(X, y)
        scores = model.interaction_scores_
        assert scores.score == kind
        values = np.array([row["score"] for row in scores])
        assert (np.diff(values) <= 0.0).all()
        assert (values >= 0.0).all()
        assert values[0] > 0.0
        name = "screening score" if kind == "evidence" else kind
        assert f"6 pairwise interactions by {name}" in str(model.summary())
        if kind == "evidence":
            assert scores.active == (scores[0],)
            assert scores[0]["pair"] == "a x c"
        assert len(scores.active) <= 1

    def test_scores_differ(self, plain, data):
        found = [
            copy_of(plain).add_interactions(*data, 1, interaction_score=kind).interaction_scores_
            for kind in choices("interaction_score")
        ]
        tables = [scores.matrix()[np.triu_indices(4, 1)].round(6).tolist() for scores in found]
        assert len({tuple(table) for table in tables}) == 5


class TestStatuses:
    def test_auto(self, regressor):
        by_pair = statuses(regressor)
        assert by_pair.pop("a x c") == "active"
        assert all(
            status == "left out: no gain expected" or SHORTFALL.fullmatch(status)
            for status in by_pair.values()
        )
        # A dropped interaction is no term.
        assert [term.name for term in regressor.terms_ if term.kind == "pair"] == ["a x c"]

    def test_a_number(self, data):
        model = LANAMRegressor(interactions=1, **NUMBERS).fit(*data)
        by_pair = statuses(model)
        assert by_pair.pop("a x c") == "active"
        assert set(by_pair.values()) == {"left out: not among the best 1"}

    def test_more_than_all(self, data):
        model = LANAMRegressor(interactions=10**20, **NUMBERS).fit(*data)
        by_pair = statuses(model)
        assert by_pair.pop("a x c") == "active"
        # All were tried.
        assert len(by_pair) == 5
        assert all(status == "active" or SHORTFALL.fullmatch(status) for status in by_pair.values())

    def test_named_pairs(self, data):
        model = LANAMRegressor(interactions=[("d", "b"), (2, 0)], **NUMBERS).fit(*data)
        by_pair = statuses(model)
        assert by_pair.pop("a x c") == "active"
        dropped = SHORTFALL.fullmatch(by_pair.pop("b x d"))
        assert dropped is not None
        # Zero if it is visible, since there was no search.
        assert float(dropped["gain"]) < float(dropped["threshold"]) in (0.0, 3.0)
        assert set(by_pair.values()) == {"left out: not named"}
        assert pair_names(model) == ["a x c"]

    def test_names_and_indices_are_equivalent(self, data):
        named = LANAMRegressor(interactions=[("a", "c")], **NUMBERS).fit(*data)
        numbered = LANAMRegressor(interactions=np.array([[2, 0]]), **NUMBERS).fit(*data)
        np.testing.assert_array_equal(named.predict(data[0]), numbered.predict(data[0]))

    def test_constant_and_repeated_columns(self, data):
        X = data[0][["a", "c"]].assign(same=7.0, again=data[0]["a"])
        model = LANAMRegressor(**NUMBERS).fit(X, data[1])
        by_pair = statuses(model)
        assert len(by_pair) == 6
        assert by_pair["a x same"] == by_pair["c x same"] == "dropped: constant column"
        assert by_pair["c x again"] == "dropped: same values as another column"
        assert by_pair["a x again"] == "dropped: same values as another column"
        assert by_pair["a x c"] == "active"
        matrix = model.interaction_scores_.matrix()
        assert (matrix[[0, 0, 1, 1], [2, 3, 2, 3]] == 0.0).all()

    def test_a_named_pair_of_a_constant_column(self, data):
        X = data[0].assign(d=1.0)
        model = LANAMRegressor(interactions=[("a", "d")], **NUMBERS).fit(X, data[1])
        assert statuses(model)["a x d"] == "dropped: constant column"
        assert pair_names(model) == []


class TestNames:
    def test_pairs_are_named_after_the_columns_of_this_fit(self, data):
        model = LANAMRegressor(interactions=[("a", "c")], **NUMBERS)
        model.fit(*data)
        with pytest.raises(ValueError, match="the column 'c', which X does not have"):
            model.fit(data[0].drop(columns="c"), data[1])
        with pytest.raises(NotFittedError):
            model.predict(data[0])
        # Arrays have names as well.
        with pytest.raises(ValueError, match="its columns are 'x0', 'x1', 'x2', 'x3'"):
            model.fit(data[0].to_numpy(), data[1])
        model.set_params(interactions=[("x0", "x2")]).fit(data[0].to_numpy(), data[1])
        assert pair_names(model) == ["x0 x x2"]

    def test_numbered_columns_are_named_by_their_numbers_as_text(self, data):
        X = data[0].set_axis([1990, 1991, 1992, 1993], axis=1)
        model = LANAMRegressor(interactions=[("1990", "1992")], **NUMBERS).fit(X, data[1])
        assert pair_names(model) == ["1990 x 1992"]
        with pytest.raises(ValueError, match="the column 1990, and X has columns 0 to 3"):
            LANAMRegressor(interactions=[(1990, 1992)]).fit(X, data[1])


class TestSummary:
    def test_pairs_stand_below_the_table(self, regressor):
        summary = regressor.summary()
        assert summary.interactions is regressor.interaction_scores_
        lines = str(summary).splitlines()
        at = lines.index("6 pairwise interactions by screening score, 1 active:")
        assert lines[at - 1] == ""
        assert lines[at + 1 :] == regressor.interaction_scores_.lines(12)
        assert any(line.startswith("a x c  pair ") for line in lines[:at])

    def test_without_interactions_they_are_not_mentioned(self, plain):
        assert "pair" not in str(plain.summary())
        assert "pair" not in plain.summary()._repr_html_()
        assert plain.summary().to_dict()["interactions"]["pairs"] == []

    def test_plain_data(self, regressor):
        data = json.loads(json.dumps(regressor.summary().to_dict(), allow_nan=False))
        assert data["interactions"] == regressor.interaction_scores_.to_dict()
        assert {row["kind"] for row in data["terms"]} == {"smooth", "pair"}

    def test_names_are_escaped_in_a_notebook(self, data):
        X = data[0][["a", "c"]].set_axis(["<b>age</b>", "x & y"], axis=1)
        page = LANAMRegressor(**NUMBERS).fit(X, data[1]).summary()._repr_html_()
        assert "<b>" not in page
        assert " & " not in page
        assert page.count("&lt;b&gt;age&lt;/b&gt; x x &amp; y") == 2  # as a term and as a pair


class TestFrames:
    @pytest.mark.parametrize(
        ("convert", "kind"),
        [(pd.DataFrame, pd.DataFrame), (pl.from_pandas, pl.DataFrame), (pa.table, pa.Table)],
    )
    def test_frames_are_of_the_users_library(self, data, regressor, convert, kind):
        X = convert(data[0])
        model = LANAMRegressor(**NUMBERS).fit(X, data[1])
        np.testing.assert_array_equal(model.predict(X), regressor.predict(data[0]))
        explanation = model.explain_global()
        frames = [
            model.interaction_scores_.to_frame(),
            model.summary().to_frame(),
            model.explain_local(X).to_frame(),
            explanation.to_frame(),
        ]
        assert all(isinstance(frame, kind) for frame in frames)
        assert len(frames[0]) == 6
        assert explanation.to_dict() == regressor.explain_global().to_dict()

    def test_an_interaction_has_one_row_per_point(self, regressor):
        explanation = regressor.explain_global()
        frame = explanation.to_frame(beyond=True)
        assert len(frame) == sum(term.mean.size for term in explanation)
        part = frame[frame["term"] == "a x c"]
        surface = explanation["a x c"]
        assert (part["kind"] == "pair").all()
        table = part.pivot(index="value", columns="second_value", values="mean")
        np.testing.assert_array_equal(table.index, surface.values)
        np.testing.assert_array_equal(table.columns, surface.second_values)
        np.testing.assert_array_equal(table, surface.mean)
        assert part["density"].sum() == pytest.approx(1.0)
        assert frame[frame["kind"] == "smooth"]["second_value"].isna().all()

    def test_plain_data(self, regressor):
        explanation = regressor.explain_global()
        plain = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
        pair = next(term for term in plain["terms"] if term["name"] == "a x c")
        surface = explanation["a x c"]
        assert pair["features"] == [0, 2]
        assert pair["mean"] == surface.mean.tolist()
        assert pair["second_values"] == surface.second_values.tolist()
        assert np.array(pair["inside"]).dtype == bool

    @pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
    def test_no_pairs_are_a_frame_of_no_rows(self, data, backend):
        X = {"pandas": pd.DataFrame, "polars": pl.from_pandas, "pyarrow": pa.table}[backend](
            data[0][["a"]]
        )
        model = LANAMRegressor(**NUMBERS).fit(X, data[1])
        frame = model.interaction_scores_.to_frame()
        assert len(frame) == 0
        assert type(frame).__module__.split(".")[0] == backend


class TestAddInteractions:
    # The second stage starts from other rounding: the model was rescaled by the unit of the response.
    SAME = 1e-4

    @pytest.mark.parametrize("interactions", ["auto", 1, [("a", "c"), ("a", "d")]])
    def test_equals_a_single_fit(self, plain, data, interactions):
        model = copy_of(plain)
        assert model.add_interactions(*data, interactions) is model
        whole = LANAMRegressor(interactions=interactions, **NUMBERS).fit(*data)
        np.testing.assert_allclose(
            model.predict(data[0], return_std=True),
            whole.predict(data[0], return_std=True),
            atol=self.SAME,
        )
        assert model.log_evidence_ == pytest.approx(whole.log_evidence_, abs=0.01)
        assert statuses(model) == statuses(whole)
        assert [term.name for term in model.terms_] == [term.name for term in whole.terms_]
        assert model.n_iter_ == len(model.history_) == whole.n_iter_

    def test_of_a_classifier_of_strings(self, labelled, classifier):
        model = LANAMClassifier(interactions=0, **QUICK).fit(*labelled)
        assert pair_names(model) == []
        model.add_interactions(*labelled)
        assert list(model.classes_) == ["no", "yes"]
        np.testing.assert_allclose(
            model.predict_proba(labelled[0]), classifier.predict_proba(labelled[0]), atol=self.SAME
        )
        assert set(model.predict(labelled[0])) == {"no", "yes"}

    @pytest.mark.parametrize(
        ("label", "message"),
        [
            ("maybe", "the label 'maybe', which was not among"),
            (7, "the label 7, which was not among"),
            (None, "y contains NaN: 1 of 300 values, the first in row 6"),
        ],
    )
    def test_unknown_labels(self, labelled, classifier, label, message):
        y = labelled[1].astype(object)
        y[5] = label
        model = copy_of(classifier)
        with pytest.raises(ValueError, match=message):
            model.add_interactions(labelled[0], y)
        np.testing.assert_array_equal(model.predict(labelled[0]), classifier.predict(labelled[0]))

    def test_labels_of_another_type(self, labelled, classifier):
        with pytest.raises(ValueError, match=r"the label 0, which .* \['no', 'yes'\]"):
            copy_of(classifier).add_interactions(labelled[0], np.arange(300) % 2)

    @pytest.mark.parametrize("estimator", [LANAMRegressor, LANAMClassifier])
    def test_before_a_fit(self, data, estimator):
        with pytest.raises(NotFittedError):
            estimator().add_interactions(*data)

    def test_needs_the_columns_of_the_fit(self, plain, data):
        X, y = data
        with pytest.raises(ValueError, match="yet now missing:\n- c"):
            copy_of(plain).add_interactions(X.drop(columns="c"), y)
        with pytest.warns(InputWarning, match="which are ignored: 'e'"):
            copy_of(plain).add_interactions(X.assign(e=1.0), y, 0)
        with_missing = X.assign(a=X["a"].where(X.index > 0))
        with (
            pytest.warns(UserWarning, match="none was in the training data"),
            pytest.raises(ValueError, match="column 'a' has 1 missing value, and had none"),
        ):
            copy_of(plain).add_interactions(with_missing, y)
        with pytest.warns(UserWarning, match="none was in the training data"):
            copy_of(plain).add_interactions(
                with_missing, y, sample_weight=(X.index > 0).astype(float)
            )
        with pytest.raises(ValueError, match="X has 240 rows and y has 239 values"):
            copy_of(plain).add_interactions(X, y[:-1])

    @pytest.mark.parametrize("convert", [pl.from_pandas, pa.table])
    def test_takes_another_library_and_another_order(self, plain, data, convert):
        X, y = data
        expected = copy_of(plain).add_interactions(X, y).predict(X)
        model = copy_of(plain).add_interactions(convert(X[["d", "c", "b", "a"]]), y)
        np.testing.assert_array_equal(model.predict(X), expected)
        assert isinstance(model.interaction_scores_.to_frame(), pd.DataFrame)

    def test_names_are_those_of_the_fit(self, plain, data):
        with pytest.raises(ValueError, match="the column 'e', which X does not have"):
            copy_of(plain).add_interactions(*data, [("a", "e")])
        with pytest.raises(ValueError, match="interactions='all' is not known"):
            copy_of(plain).add_interactions(*data, "all")
        with pytest.raises(ValueError, match="interaction_score='shap' is not known"):
            copy_of(plain).add_interactions(*data, interaction_score="shap")

    def test_weights(self, plain, data):
        X, y = data
        weight = np.arange(240) % 3
        model = LANAMRegressor(interactions=0, **NUMBERS).fit(X, y, sample_weight=weight)
        model.add_interactions(X, y, sample_weight=weight)
        whole = LANAMRegressor(**NUMBERS).fit(X, y, sample_weight=weight)
        # With large weights the evidence is steep: both fits stop a little apart.
        np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=10 * self.SAME)
        without = copy_of(plain).add_interactions(X, y)
        assert np.abs(model.predict(X) - without.predict(X)).max() > 10 * self.SAME
        with pytest.raises(ValueError, match="Negative values in sample_weight"):
            model.add_interactions(X, y, sample_weight=-np.ones(240))

    def test_constructor_arguments_stay_as_they_were(self, plain, data):
        model = copy_of(plain)
        before = model.get_params()
        model.add_interactions(*data, 2, interaction_score="evidence_gain")
        assert model.get_params() == before
        assert model.interaction_scores_.score == "evidence_gain"
        assert model.summary().interactions.score == "evidence_gain"

    def test_pickles_keep_it_and_clones_do_not(self, plain, data):
        model = copy_of(plain).add_interactions(*data)
        again = copy_of(model)
        np.testing.assert_array_equal(again.predict(data[0]), model.predict(data[0]))
        assert str(again.summary()) == str(model.summary())
        assert again.interaction_scores_.to_dict() == model.interaction_scores_.to_dict()
        assert again.add_interactions(*data) is again
        fresh = clone(model)
        assert fresh.get_params() == model.get_params()
        with pytest.raises(NotFittedError):
            fresh.add_interactions(*data)

    def test_nothing_to_add_changes_nothing(self, regressor, data):
        for nothing in (0, None, []):
            model = copy_of(regressor).add_interactions(*data, nothing)
            np.testing.assert_array_equal(model.predict(data[0]), regressor.predict(data[0]))
            assert str(model.summary()) == str(regressor.summary())
            assert len(model.interaction_scores_) == 6

    def test_a_second_time_finds_nothing_new(self, regressor, data):
        model = copy_of(regressor).add_interactions(*data)
        assert pair_names(model) == pair_names(regressor)
        np.testing.assert_allclose(model.predict(data[0]), regressor.predict(data[0]), atol=0.02)
        assert statuses(model)["a x c"] == "active"

    def test_other_networks_than_those_of_the_fit(self, plain, data):
        for change in (
            {"hidden_sizes": (8,)},
            {"init_scales": (1.0,)},
            {"prior_groups": "network"},
        ):
            model = copy_of(plain).set_params(**change)
            with pytest.raises(ValueError, match=r"changed since .* set .* back .* or fit again"):
                model.add_interactions(*data)
            # The fitted terms are kept.
            np.testing.assert_array_equal(model.predict(data[0]), plain.predict(data[0]))

    def test_other_pair_networks_are_fine_before_there_is_a_pair(self, plain, data):
        model = copy_of(plain).set_params(pair_hidden_sizes=(8,)).add_interactions(*data)
        assert pair_names(model) == ["a x c"]
        model.set_params(pair_hidden_sizes=(16,))
        with pytest.raises(ValueError, match=r"set hidden_sizes, pair_hidden_sizes, .* back"):
            model.add_interactions(*data)

    def test_not_converging_is_a_warning_at_the_users_line(self, plain, data):
        model = copy_of(plain).set_params(max_iter=1)
        with pytest.warns(ConvergenceWarning, match="Raise max_iter to train longer") as caught:
            model.add_interactions(*data)
        assert caught[0].filename == __file__
        assert not model.converged_
        assert np.isfinite(model.predict(data[0])).all()

    def test_an_interrupt_keeps_the_model(self, plain, data, monkeypatch):
        def fit_on(model, tables, likelihood, options, *args, **kwargs):
            def interrupt(record):
                raise KeyboardInterrupt

            options = replace(options, on_iteration=interrupt)
            return original(model, tables, likelihood, options, *args, **kwargs)

        original = fitting.fit_on
        monkeypatch.setattr(fitting, "fit_on", fit_on)
        model = copy_of(plain)
        with pytest.warns(ConvergenceWarning, match="interrupted after .* iterations"):
            model.add_interactions(*data)
        assert not model.converged_
        assert model.log_evidence_ >= plain.log_evidence_ - 0.01
        assert np.isfinite(model.predict(data[0], return_std=True)).all()
        assert len(model.interaction_scores_) == 6

    def test_progress_names_the_stage(self, plain, data, capsys):
        copy_of(plain).set_params(verbose=1).add_interactions(*data)
        assert "(pairs)  log evidence" in capsys.readouterr().err


def test_progress_of_a_fit_ends_with_interactions(data, capsys):
    model = LANAMRegressor(verbose=1, **NUMBERS).fit(*data)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("lanam  columns: ")
    assert "(smooth)" in lines[1]
    assert "(pairs)" in lines[-1]
    stages = [record["stage"] for record in model.history_]
    assert set(stages) == {"smooth", "pairs"}
    assert stages == sorted(stages, reverse=True)
    assert f"iteration {len(stages)} (pairs)" in lines[-1]


@pytest.mark.parametrize(
    "change", [{"pair_hidden_sizes": (4,)}, {"interactions": 0}, {"interactions": [("a", "b")]}]
)
def test_every_option_changes_something(regressor, data, change):
    model = LANAMRegressor(**NUMBERS | change).fit(*data)
    assert np.abs(model.predict(data[0]) - regressor.predict(data[0])).max() > 1e-3
