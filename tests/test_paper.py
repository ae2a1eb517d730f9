"""``paper()``: the paper's system on everything that a default fit takes."""

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor, load
from lanam.arguments import read_options
from lanam.core.paper.adam import Adam
from lanam.errors import InputError
from lanam.parameters import PAPER

#: Little training: what is learned suffices to tell right from wrong.
QUICK = {
    "hidden_sizes": (16,),
    "learning_rates": (0.1, 0.01),
    "max_iter": 6,
    "tol": 1.0,
    "random_state": 0,
}


def quick(kind=LANAMRegressor, **parameters):
    return kind.paper(**{**QUICK, "pair_hidden_sizes": (8, 8), **parameters})


@pytest.fixture(scope="module")
def table():
    """A curve, missing values that matter, a category, and an interaction of the latter two."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "curve": rng.normal(size=400),
            "partial": rng.normal(size=400),
            "city": rng.choice(["Bonn", "Oslo", "Rome"], 400),
        }
    )
    X.loc[rng.uniform(size=400) < 0.2, "partial"] = np.nan
    city = X["city"].map({"Bonn": -1.0, "Oslo": 0.0, "Rome": 1.0}).to_numpy()
    partial = X["partial"].to_numpy()
    f = np.sin(2.0 * X["curve"].to_numpy()) + city
    f += np.where(np.isnan(partial), 1.5, city * np.nan_to_num(partial))
    return X, f, f + 0.2 * rng.normal(size=400)


@pytest.fixture(scope="module")
def pairs(table):
    X, _, y = table
    return quick(interactions=[("partial", "city")]).fit(X, y)


@pytest.mark.filterwarnings("ignore::lanam.additive.UnfinishedWarning")
class TestRegression:
    def test_main_effects_of_all_kinds(self, table):
        X, _, y = table
        model = quick(prior_groups="layer").fit(X, y)
        assert [term.kind for term in model.terms_] == ["smooth", "smooth", "categorical"]
        shapes = model.explain_global()
        assert shapes["partial"].missing_mean > 1.0
        cities = dict(zip(shapes["city"].values, shapes["city"].mean, strict=True))
        assert cities["Bonn"] < -0.7 < 0.7 < cities["Rome"]
        # The band of a missing value's effect is about that of its rows' mean.
        assert 0.01 < shapes["partial"].missing_std < 0.2

    def test_a_pair_of_a_category_and_missing_values(self, table, pairs):
        X, f, _ = table
        assert pairs.score(X, f) > 0.95
        assert [term.name for term in pairs.terms_ if term.kind == "pair" and term.active]
        unseen = X.head(3).assign(city=["Rome", None, "Bonn"], partial=[np.nan, 0.0, np.nan])
        with pytest.warns(UserWarning, match="missing"):
            mean, std = pairs.predict(unseen, return_std=True)
        assert np.isfinite(mean).all()
        assert std[1] > std[0]  # a city that was never missing has the prior's variance

    def test_files_hold_all_of_it(self, table, pairs, tmp_path):
        X = table[0]
        pairs.save(tmp_path / "model.lanam")
        loaded = load(tmp_path / "model.lanam")
        np.testing.assert_array_equal(loaded.predict(X), pairs.predict(X))
        assert loaded.get_params()["pure"] is False
        # Training goes on from the file.
        X, _, y = table
        wider = loaded.add_interactions(X, y, [("curve", "city")])
        tried = wider.interaction_scores_.to_frame().set_index(["first", "second"])["status"]
        assert "left out" not in tried["curve", "city"]
        assert wider.score(X, y) > 0.9

    def test_pairs_that_are_not_pure_say_main_effects(self, table):
        X, _, y = table
        spreads = []
        for pure in (True, False):
            model = quick(interactions=[("partial", "city")], pure=pure, max_iter=4).fit(X, y)
            surface = next(term for term in model._model.terms if term.kind == "pair")
            shape = surface.entries.shape
            values, mass = surface.mean.reshape(shape), surface.data_mass.reshape(shape)
            per_city = (mass * values).sum(axis=0) / np.maximum(mass.sum(axis=0), 1e-12)
            spreads.append(np.ptp(per_city[mass.sum(axis=0) > 0]))
        assert spreads[0] < 1e-9
        assert spreads[1] > 0.1

    def test_mutual_information_ranks_all_pairs(self, table):
        X, _, y = table
        model = quick(interactions=2, max_iter=3).fit(X, y)
        scores = model.interaction_scores_.to_frame()
        assert len(scores) == 3
        assert (scores["score"] > 0.0).all()
        assert scores["status"].str.contains("not among the best 2").sum() == 1

    def test_a_weight_is_a_repetition(self, table):
        X, _, y = table
        X, y = X.head(150), y[:150]
        weight = np.r_[np.full(50, 2.0), np.ones(100)]
        twice = np.r_[np.arange(50), np.arange(150)]
        options = {"learning_rates": (0.01,), "max_iter": 1, "max_knots": 16}
        weighted = quick(**options).fit(X, y, sample_weight=weight)
        repeated = quick(**options).fit(X.iloc[twice], y[twice])
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=2e-3)

    def test_counts_with_an_exposure(self, table):
        X, f, _ = table
        rng = np.random.default_rng(1)
        hours = rng.uniform(0.5, 4.0, len(X))
        events = rng.poisson(hours * np.exp(0.5 * f + 1.0))
        model = quick(likelihood="poisson", interactions=[("partial", "city")])
        rate = model.fit(X, events, exposure=hours).predict(X)
        assert np.corrcoef(np.log(rate), f)[0, 1] > 0.95

    def test_amounts_with_an_offset_have_a_shape_of_their_own(self, table):
        X, f, _ = table
        rng = np.random.default_rng(3)
        offset = rng.normal(size=len(X))
        y = rng.gamma(4.0, np.exp(0.5 * f + offset) / 4.0)
        model = quick(likelihood="gamma", max_iter=12).fit(X[["curve", "city"]], y, offset=offset)
        # Less than 4: the interaction is not in the model.
        assert 2.0 < model.family_parameters_["shape"] < 4.0
        rate = model.predict(X[["curve", "city"]], offset=0.0)
        assert np.corrcoef(np.log(rate), f)[0, 1] > 0.7

    def test_ctrl_c_keeps_the_best_so_far(self, table, monkeypatch):
        X, _, y = table
        seen = []

        tuned = Adam._tuned

        def interrupt(self, problem, run, on_round):
            seen.append(run)
            if len(seen) == 3:
                raise KeyboardInterrupt
            return tuned(self, problem, run, on_round)

        monkeypatch.setattr(Adam, "_tuned", interrupt)
        model = quick().fit(X, y)
        assert not model.converged_
        assert model.n_iter_ == 2
        assert model.score(X, y) > 0.3


@pytest.fixture(scope="module")
def fitted(table):
    X, f, _ = table
    rng = np.random.default_rng(2)
    logits = np.stack([2.0 * f, -2.0 * f, np.full(len(f), 0.5)], axis=1)
    label = np.array(["high", "low", "none"])[(logits + rng.gumbel(size=logits.shape)).argmax(1)]
    model = quick(LANAMClassifier, interactions=[("partial", "city")]).fit(X, label)
    exact = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return X, label, exact, model


@pytest.mark.filterwarnings("ignore::lanam.additive.UnfinishedWarning")
class TestClasses:
    def test_probabilities(self, fitted):
        X, _, exact, model = fitted
        found = model.predict_proba(X)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert np.sqrt(np.mean((found - exact) ** 2)) < 0.1

    def test_bands_are_of_every_class(self, fitted):
        X, _, _, model = fitted
        mean, std = model.predict_terms(X, return_std=True)
        np.testing.assert_allclose(mean.sum(axis=2), 0.0, atol=1e-9)
        active = [term.active for term in model.terms_]
        assert (std[:, active] > 0.0).all()
        assert std.max() < 2.0

    def test_beyond_the_data_bands_grow(self, fitted):
        X, _, _, model = fitted
        far = X.head(1).assign(curve=20.0)
        assert (
            model.predict_terms(far, return_std=True)[1][0, 0]
            > 1.5 * model.predict_terms(X, return_std=True)[1][:, 0].mean(axis=0)
        ).all()

    def test_files(self, fitted, tmp_path):
        X, _, _, model = fitted
        model.save(tmp_path / "model.lanam")
        loaded = load(tmp_path / "model.lanam")
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))

    @pytest.mark.parametrize(
        ("parameters", "argument", "remedy"),
        [
            ({"curvature": "exact"}, "solver", "set curvature='kron'"),
            ({"solver": "gauss-newton"}, "curvature", "set solver='adam'"),
            (
                {"interaction_score": "mutual_information_full"},
                "interaction_score",
                "set interaction_score='mutual_information'",
            ),
        ],
    )
    def test_what_there_is_no_form_for(self, fitted, parameters, argument, remedy):
        X, label, _, _ = fitted
        with pytest.raises(InputError, match="y has 3 classes") as caught:
            quick(LANAMClassifier, **parameters).fit(X, label)
        assert caught.value.argument == argument
        assert remedy in str(caught.value)


class TestSettings:
    @pytest.mark.parametrize("kind", [LANAMRegressor, LANAMClassifier])
    def test_are_the_papers(self, kind):
        model = kind.paper()
        given = {name: value for name, value in PAPER.items() if name in model.get_params()}
        assert {name: getattr(model, name) for name in given} == given
        assert all(value != getattr(kind(), name) for name, value in given.items())
        options = read_options(model.get_params())
        assert options.hidden_sizes == (64,)
        assert options.learning_rates == (0.1, 0.01, 0.001)
        assert (options.epochs, options.evidence_steps, options.batch_size) == (100, 30, 512)
        wider = kind.paper(interactions=10, curvature="exact")
        assert (wider.interactions, wider.curvature, wider.solver) == (10, "exact", "adam")

    def test_others_are_refused(self):
        with pytest.raises(TypeError, match="unexpected keyword argument 'wings'"):
            LANAMRegressor.paper(wings=2)

    @pytest.mark.filterwarnings("ignore::lanam.additive.UnfinishedWarning")
    @pytest.mark.parametrize(
        "change",
        [
            {"learning_rates": (0.03,)},
            {"schedule": "constant"},
            {"epochs": 5},
            {"batch_size": 50},
            {"evidence_steps": 3},
            {"n_restarts": 2},
        ],
    )
    def test_each_changes_the_fit(self, table, change):
        X, _, y = table
        X, y = X[["curve"]].head(120), y[:120]
        few = {"epochs": 10, "max_iter": 2, "learning_rates": (0.01,)}
        plain, other = (quick(**{**few, **more}).fit(X, y) for more in ({}, change))
        assert abs(plain.log_evidence_ - other.log_evidence_) > 1e-3

    def test_patience_ends_a_fit(self, table):
        X, _, y = table
        rounds = []
        for patience in (1, 3):
            model = quick(patience=patience, tol=1e6, max_iter=10, epochs=5)
            model.fit(X[["curve"]].head(100), y[:100])
            assert model.converged_
            rounds.append(model.n_iter_)
        assert rounds == [2, 6]
