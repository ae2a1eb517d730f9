"""Pairs of columns as users meet them: scores, statuses, surfaces, and adding them to a fitted model."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import RegularGridInterpolator
from scipy.special import expit

from lanam import LANAMClassifier, LANAMRegressor

NAMES = ["a", "b", "c", "d"]


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
    return LANAMRegressor(random_state=0).fit(*data)


@pytest.fixture(scope="module")
def classifier(labelled):
    return LANAMClassifier(random_state=0).fit(*labelled)


@pytest.fixture(scope="module")
def plain(data):
    """Without pairs; tests that change it take a copy."""
    return LANAMRegressor(interactions=0, random_state=0).fit(*data)


def copy_of(model):
    return pickle.loads(pickle.dumps(model))


def pair_names(model):
    return [term.name for term in model.terms_ if term.kind == "pair" and term.active]


def statuses(model):
    return {row["pair"]: row["status"] for row in model.interaction_scores_}


class TestPredictions:
    @pytest.mark.parametrize("name", ["regressor", "classifier"])
    def test_the_pair_is_found(self, name, request):
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
        X = make_table(100, seed=4) * 1.5  # some of it beyond the training data
        terms = model.predict_terms(X)
        assert terms.shape == (100, len(model.terms_))
        link = model.intercept_ + terms.sum(axis=1)
        np.testing.assert_allclose(link, model.explain_local(X).prediction, rtol=1e-10, atol=1e-10)
        if name == "regressor":
            np.testing.assert_allclose(link, model.predict(X), rtol=1e-10)
        else:
            np.testing.assert_array_equal(link > 0.0, model.predict(X) == "yes")

    @pytest.mark.parametrize("name", ["regressor", "classifier"])
    def test_terms_that_are_off_add_nothing_and_are_sure_of_it(self, name, request):
        model = request.getfixturevalue(name)
        means, stds = model.predict_terms(make_table(50, seed=4), return_std=True)
        active = np.array([term.active for term in model.terms_])
        assert not active.all()
        assert (means[:, ~active] == 0.0).all()
        assert (stds[:, ~active] == 0.0).all()
        # Of a first-stage term beside its pair nothing may be left; nobody is unsure of that.
        working = np.array([term.importance > 0.0 for term in model.terms_])
        assert (stds[:, working] > 0.0).all()

    def test_draws_have_the_predictions_moments(self, regressor):
        X = make_table(40, seed=4)
        draws = regressor.sample(X, n_samples=4000, random_state=0)
        mean, std = regressor.predict(X, return_std=True)
        spread = np.sqrt(std**2 - regressor.noise_std_**2)
        # Standard deviations of 4000 draws are known to about one per cent each.
        np.testing.assert_allclose(draws.std(axis=0), spread, rtol=0.06)
        assert (np.abs(draws.mean(axis=0) - mean) < 5 * spread / np.sqrt(4000)).all()

    def test_draws_of_the_classifier_are_probabilities(self, classifier):
        X = make_table(40, seed=4)
        draws = classifier.sample(X, n_samples=4000, random_state=0)
        assert ((draws >= 0.0) & (draws <= 1.0)).all()
        # MacKay's approximation itself is good to about a hundredth.
        np.testing.assert_allclose(draws.mean(axis=0), classifier.predict_proba(X)[:, 1], atol=0.03)

    def test_the_prediction_varies_less_than_its_terms_would_alone(self, regressor):
        # Terms share data: the joint variance is not the sum of theirs, but near it.
        local = regressor.explain_local(make_table(50, seed=4))
        alone = np.sqrt(np.square(local.contributions_std).sum(axis=1) + local.intercept_std**2)
        assert (local.prediction_std != alone).all()
        np.testing.assert_allclose(local.prediction_std, alone, rtol=0.5)

    @pytest.mark.parametrize("name", ["regressor", "classifier"])
    @pytest.mark.parametrize("far", [3.0, 10.0, 1e6, 1e300])
    def test_beyond_the_data_bands_are_wide_and_finite(self, name, far, request):
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

    def test_rows_do_not_depend_on_their_company(self, regressor):
        X = make_table(60, seed=4)
        np.testing.assert_allclose(
            regressor.predict_terms(X[20:23]), regressor.predict_terms(X)[20:23], atol=1e-6
        )

    def test_single_precision(self, regressor, data):
        X = data[0].astype(np.float32)
        np.testing.assert_allclose(regressor.predict(X), regressor.predict(data[0]), atol=1e-4)
        model = LANAMRegressor(random_state=0).fit(X, data[1].astype(np.float32))
        assert pair_names(model) == ["a x c"]
        # Rounded columns are other columns, to six digits.
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
            assert surface.active == bool(surface.mean.any()) == bool(surface.std.any())

    def test_density_is_the_share_of_the_data(self, fitted):
        model, X = fitted
        surface = model.explain_global()["a x c"]
        assert surface.density.sum() == pytest.approx(1.0)
        assert (surface.density >= 0.0).all()
        assert (surface.density[~surface.inside] == 0.0).all()
        # Rows between knots count at both, in shares that keep the mean; to single precision.
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

    def test_it_says_nothing_that_a_column_could_say_alone(self, fitted):
        model, _ = fitted
        for surface in model.explain_global().pairs:
            for axis in (0, 1):
                share = surface.density.sum(axis=axis)
                seen = share > 0.0
                mean = (surface.density * surface.mean).sum(axis=axis)[seen] / share[seen]
                np.testing.assert_allclose(mean, 0.0, atol=1e-8)

    def test_it_is_what_predict_terms_says(self, fitted):
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
            if term.kind == "pair":
                # The table's mean counts a row between four knots at all of them.
                assert term.importance == pytest.approx(contribution, rel=0.05, abs=1e-12)
                share = (term.density * np.abs(term.mean)).sum()
                assert term.importance == pytest.approx(share, rel=1e-12)
                assert (term.importance_std > 0.0) == term.active

    def test_it_has_the_form_of_the_product(self, regressor):
        surface = regressor.explain_global()["a x c"]
        first, second = np.nonzero(surface.density)
        weight = surface.density[first, second]
        product = surface.values[first] * surface.second_values[second]
        # What the best sum of two functions leaves of the product, over the data.
        columns = [
            np.eye(size)[k] for size, k in zip(surface.mean.shape, (first, second), strict=True)
        ]
        root = np.sqrt(weight)
        design = np.hstack(columns)
        fit = np.linalg.lstsq(root[:, None] * design, root * product, rcond=None)[0]
        pure = product - design @ fit
        error = surface.mean[first, second] - pure
        # The noise is a tenth, and between knots the surface is bilinear as the product is.
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

    def test_what_is_plain_is_json(self, regressor, data):
        local = regressor.explain_local(data[0][:2])
        # JSON proper has no NaN.
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
