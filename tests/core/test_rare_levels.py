"""Levels of one or two rows do not determine the variance that all levels share."""

from dataclasses import replace

import numpy as np
import pytest

from lanam import LANAMRegressor
from lanam.core.inference import evidence, tuning
from lanam.core.inference.evidence import HighCardinality, Hyper, LinearModel
from lanam.core.inference.prior import Prior, RareLevels
from tests.core.examples import unchanged
from tests.oracles import assert_close

pd = pytest.importorskip("pandas", reason="tables of these tests are frames")

#: rows per level, the last two rare
COUNTS = np.array([9, 6, 5, 2, 1])
RARE = RareLevels(np.arange(3)[None], np.arange(3, 5)[None])


def _model(wide, y):
    """Levels and one feature; the levels integrated out if ``wide``."""
    rng = np.random.default_rng(0)
    levels = np.repeat(np.eye(5), COUNTS, axis=0)
    feature, ones = rng.standard_normal((len(y), 1)), np.ones((len(y), 1))
    design = np.hstack([*([] if wide else [levels]), feature, ones])
    one = np.ones((1, 1, 1))
    prior = Prior((0 if wide else 5, 1), (one, one), {} if wide else {0: RARE})
    sums = design.T @ design, design.T @ y, -0.5 * float(y @ y)
    model = LinearModel(*sums, prior, float(len(y)), np.full(2, 9.0), (1e-6, 9.0))
    if not wide:
        return model
    wider = HighCardinality(COUNTS.astype(float), levels.T @ design, levels.T @ y, 0, RARE)
    return replace(model, high_cardinality=wider)


@pytest.fixture
def response():
    rng = np.random.default_rng(1)
    return np.repeat(rng.standard_normal(5), COUNTS) + 0.3 * rng.standard_normal(COUNTS.sum())


class TestSums:
    def test_levels_integrated_out_have_the_same(self, response):
        hyper = Hyper(np.array([0.3, -0.2]), 0.4)
        dense, wide = (evidence.solve(_model(k, response), hyper, True) for k in (False, True))
        assert_close(wide.tuning_effective, dense.tuning_effective, "conditioning")
        assert_close(wide.tuning_energy, dense.tuning_energy, "conditioning")
        assert_close(wide.rare, dense.rare, "conditioning")

    def test_with_free_effects_rare_levels_leave_the_evidence(self, response):
        """A gross error in a level's only row changes nothing but the level's own part."""
        wrong = response.copy()
        wrong[-1] += 50.0
        hyper = Hyper(np.array([8.0, 0.0]), 0.4)  # nearly no shrinkage
        right, grossly = (evidence.solve(_model(False, y), hyper, True) for y in (response, wrong))
        change = right.evidence - grossly.evidence
        assert change > 0.3
        assert abs(right.objective - grossly.objective) < 0.3 * change
        assert np.allclose(right.tuning_energy, grossly.tuning_energy, rtol=0.05)

    def test_a_gross_error_does_not_raise_the_shared_variance(self, response):
        wrong = response.copy()
        wrong[-1] += 50.0
        all_levels = replace(_model(False, wrong), prior=Prior((5, 1), (np.ones((1, 1, 1)),) * 2))
        models = _model(False, response), _model(False, wrong), all_levels
        right, robust, naive = (
            tuning.tune(model, unchanged(model, 0.5), True, evidence.mackay, 60, 1e-9)[0].log_rho[0]
            for model in models
        )
        assert abs(robust - right) < 1.5
        assert naive > right + 3.0

    @pytest.mark.parametrize("scale", [0.1, 30.0])
    def test_what_rare_levels_add_does_not_depend_on_the_unit_of_their_effects(self, scale):
        # Tables are made anew in every pass, for other variances: objectives must stay comparable.
        information, mean = (
            np.array([9.0, 6.0, 5.0, 2.0, 1.0]),
            np.array([0.1, 0.0, 0.2, 0.9, -0.6]),
        )
        own = RARE.own(mean, information, 0.7, 0.3)
        other = RARE.own(mean / scale, information * scale**2, 0.7 / scale**2, 0.3)
        assert_close(other, own, "conditioning")


class TestWithoutNoise:
    @pytest.mark.parametrize("rho", [0.01, 1.0, 50.0])
    def test_the_gain_is_a_ratio_of_densities(self, rho):
        information, estimates = np.array([9.0, 6.0, 5.0, 2.0, 1.0]), np.array([0, 0, 0, 3.0, -2.0])
        mean = estimates * rho * information / (1.0 + rho * information)
        without = -0.5 * (estimates[3:] ** 2 * information[3:]).sum()
        gain = RARE.own(mean, information, rho, 1.0)[0] - without
        assert_close(RARE.own_gain(mean, information, rho), gain, "conditioning")

    @pytest.mark.parametrize("information", [0.0, 1e-300, 1e-20])
    def test_a_level_without_information_adds_little(self, information):
        """As one whose rows' class is certain; its objective was once 10^11, and fits did not converge."""
        of_levels = np.array([9.0, 6.0, 5.0, information, information])
        assert abs(RARE.own_gain(np.array([0.1, 0.1, 0.1, 0.0, 0.0]), of_levels, 1.0)) < 0.1

    def test_the_objective_has_the_gain(self, response):
        hyper = Hyper(np.array([0.3, -0.2]), 1.0)
        posterior = evidence.solve(replace(_model(False, response), n_rows=None), hyper, True)
        gain = RARE.own_gain(posterior.mean, COUNTS.astype(float), np.exp(0.3))
        assert_close(posterior.rare, [gain, 0.0, 0.0], "conditioning")


def _table(error):
    rng = np.random.default_rng(3)
    kind = np.array(["a", "b", "c", "d"])[rng.integers(0, 4, 300)]
    kind[:2] = "rare", "seldom"
    x = rng.standard_normal(300)
    y = x + 0.3 * (kind == "b") + 0.3 * rng.standard_normal(300)
    y[0] += error
    return pd.DataFrame({"x": x, "kind": kind}), y


def test_an_outlier_of_a_rare_category_is_not_explained_by_it():
    X, y = _table(error=20.0)
    model = LANAMRegressor(interactions=0, random_state=0).fit(X, y)
    effect = model.predict(X.iloc[[0]]) - model.predict(X.iloc[[0]].assign(kind="a"))
    assert abs(effect[0]) < 5.0


def test_rare_levels_beside_a_single_other_do_not_determine_their_variance():
    """As a column that is missing but for a few rows: no contrast is left to tune its variance by."""
    rng = np.random.default_rng(5)
    pool = np.full(400, "none", dtype=object)
    pool[:3] = "good", "fair", "poor"
    x = rng.standard_normal(400)
    y = x + 0.3 * rng.standard_normal(400)
    y[0] += 20.0
    X = pd.DataFrame({"x": x, "pool": pool})
    model = LANAMRegressor(interactions=0, random_state=0).fit(X, y)
    effect = model.predict(X.iloc[[0]]) - model.predict(X.iloc[[0]].assign(pool="none"))
    assert abs(effect[0]) < 1.0


def test_many_rare_categories_are_learned_from():
    """Where most categories are rare, they determine their variance themselves."""
    rng = np.random.default_rng(4)
    effects, place = rng.standard_normal(150), rng.integers(0, 150, 600)
    X = pd.DataFrame({"place": [f"p{k}" for k in place]})
    y = effects[place] + 0.3 * rng.standard_normal(600)
    model = LANAMRegressor(interactions=0, random_state=0).fit(X.iloc[:300], y[:300])
    known = 300 + np.flatnonzero(np.isin(place[300:], place[:300]))
    error = model.predict(X.iloc[known]) - effects[place[known]]
    assert np.sqrt(np.mean(error**2)) < 0.5
