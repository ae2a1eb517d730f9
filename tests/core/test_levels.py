"""Level effects: closed-form screening, and added terms."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from lanam.core.fit.first_stage import add_levels, level_gain
from lanam.core.inference import gauss_newton
from lanam.core.rows import statistics
from lanam.core.terms.knots import place_levels, summarise
from tests.core.examples import started
from tests.oracles import assert_close


def jagged(n_levels=12, n=200, size=1.0, seed=0):
    """Residuals with an effect per level, and levels of different sizes."""
    rng = np.random.default_rng(seed)
    level = np.minimum(rng.integers(0, n_levels, n), rng.integers(0, n_levels, n))
    effect = size * rng.standard_normal(n_levels)
    return level, effect[level] + 0.5 * rng.standard_normal(n)


def gain_of(level, residual, noise, n_levels=12):
    return level_gain(
        np.bincount(level, minlength=n_levels) / noise,
        np.bincount(level, weights=residual, minlength=n_levels) / noise,
    )


class TestGain:
    @pytest.mark.parametrize("size", [0.2, 0.5, 1.0])
    def test_is_the_dense_evidence_at_its_best_variance(self, size):
        noise = 0.25
        level, residual = jagged(size=size)
        same = (level[:, None] == level[None, :]).astype(float)

        def log_evidence(variance):
            covariance = variance * same + noise * np.eye(len(level))
            return multivariate_normal.logpdf(residual, np.zeros(len(level)), covariance)

        best = minimize_scalar(
            lambda t: -log_evidence(np.exp(t)), bounds=(-8.0, 4.0), method="bounded"
        )
        found = gain_of(level, residual, noise)
        # Two grids of variances find the best to about a per cent of a nat.
        assert found.evidence == pytest.approx(-best.fun - log_evidence(0.0), abs=0.02)
        assert np.log(found.variance) == pytest.approx(best.x, abs=0.1)
        exact = log_evidence(found.variance) - log_evidence(0.0)
        assert_close(found.evidence, exact, "rounding")

    def test_the_variance_of_huge_effects_is_bounded(self):
        # A hundred times the precision of a typical level: enough to start from.
        level, residual = jagged(size=30.0)
        found = gain_of(level, residual, 0.25)
        assert found.variance == pytest.approx(100.0 * 0.25 / (200 / 12))
        assert found.evidence > 1000.0

    def test_mean_is_the_posterior_mean(self):
        level, residual = jagged()
        found = gain_of(level, residual, 0.25)
        indicator = np.eye(12)[level]
        precision = indicator.T @ indicator / 0.25 + np.eye(12) / found.variance
        expected = np.linalg.solve(precision, indicator.T @ residual / 0.25)
        assert_close(found.mean, expected, "rounding")

    def test_noise_gains_nothing(self):
        rng = np.random.default_rng(0)
        gains = [
            gain_of(rng.integers(0, 12, 200), 0.5 * rng.standard_normal(200), 0.25).evidence
            for _ in range(20)
        ]
        assert np.median(gains) < 0.1
        assert max(gains) < 3.0

    def test_a_level_without_rows_has_the_prior_mean(self):
        found = level_gain(np.array([10.0, 10.0, 0.0]), np.array([20.0, -20.0, 0.0]))
        assert found.mean[2] == 0.0
        assert found.evidence > 1.0


class TestAdding:
    def converged(self, columns, y):
        problem, state = started(columns, y, np.ones(len(y)), noise=0.1)
        state, _ = gauss_newton.converge(
            problem, state, gauss_newton.Limits(20, 0.05), lambda state: None
        )
        levels = {
            k: place_levels(summarise(columns[:, k], np.ones(len(y))), 300, 20)
            for k in range(columns.shape[1])
        }
        return problem, state, levels

    def example(self, effects):
        rng = np.random.default_rng(0)
        columns = rng.integers(0, 40, (600, 3)).astype(float)
        y = np.sin(columns[:, 0] / 8) + 0.3 * rng.standard_normal(600)
        for k in effects:
            y += rng.standard_normal(40)[columns[:, k].astype(int)]
        return columns, y

    def test_none_for_smooth_data(self):
        columns, y = self.example([])
        problem, state, levels = self.converged(columns, y)
        assert add_levels(problem, state, levels) is None

    @pytest.mark.parametrize("effects", [[1], [0, 2]])
    def test_effects_in_the_residuals_are_added(self, effects):
        columns, y = self.example(effects)
        problem, state, levels = self.converged(columns, y)
        wider, wider_state = add_levels(problem, state, levels)
        added = wider.terms[len(problem.terms) :]
        assert sorted(term.features[0] for term in added) == effects
        assert all(term.kind == "level" for term in added)
        assert wider.rows.sizes[-len(added) :] == (41,) * len(added)
        assert len(wider_state.terms) == len(wider.terms)
        # Their effects are still zero: the prediction is unchanged.
        before = statistics.predict(problem.rows, state.values, state.intercept)
        after = statistics.predict(wider.rows, wider_state.values, wider_state.intercept)
        assert_close(after, before, "rounding")
        for estimate in wider_state.terms[-len(added) :]:
            # An effect of variance 1 in units of y's variance.
            assert 0.3 < (1.0 / estimate.precision[0]) * y.var() < 3.0

    def test_each_is_screened_on_the_residuals_of_the_previous_ones(self):
        # Two columns that are functions of each other explain the same effect.
        columns, y = self.example([1])
        columns[:, 2] = (7.0 * columns[:, 1]) % 40.0
        problem, state, levels = self.converged(columns, y)
        wider, _ = add_levels(problem, state, levels)
        assert len(wider.terms) == len(problem.terms) + 1

    def test_a_column_of_three_values_needs_none(self):
        rng = np.random.default_rng(0)
        columns = rng.integers(0, 3, (300, 1)).astype(float)
        y = np.array([0.0, 5.0, -3.0])[columns[:, 0].astype(int)] + rng.standard_normal(300)
        problem, state = started(columns, y, np.ones(300))
        # Before any fit the residuals have the whole effect.
        levels = {0: place_levels(summarise(columns[:, 0], np.ones(300)), 300, 20)}
        assert add_levels(problem, state, levels) is None
