"""Levels integrated out while hyperparameters are tuned: the same regression as with coordinates."""

import math

import numpy as np
import pytest

from lanam.core.fit.solvers import make_problem
from lanam.core.inference import evidence, problem
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Regression
from tests.core import in_memory
from tests.likelihoods import LIKELIHOODS, find_likelihood
from tests.oracles import assert_close


def shops(likelihood, n_levels=12, n=240):
    """A curve and a category of which some levels have one row."""
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.integers(0, n_levels, n), rng.integers(0, n_levels + 4, n))
    codes[:3] = n_levels - np.arange(1, 4)
    x = rng.standard_normal(n)
    y = (rng.uniform(size=n) * 3).astype(int).astype(float)
    columns = np.column_stack([codes.astype(float), x])
    made = in_memory.prepared(columns, y, np.ones(n), likelihood, Options(), (n_levels, -1))
    fitted = make_problem(made.terms, made.rows, made.units.likelihood, Options())
    return fitted, made.solver.initial_state(fitted, rng)


@pytest.mark.parametrize("name", ["gaussian", "poisson", "softmax"])
def test_the_same_evidence_and_step(name, monkeypatch):
    likelihood = find_likelihood("softmax", 3) if name == "softmax" else LIKELIHOODS[name]
    monkeypatch.setattr(evidence, "INTERCEPT_PRECISION", 1e-12)
    made, state = shops(likelihood)
    whole = Regression.in_pass(made, state, math.inf, headroom=False)
    monkeypatch.setattr(problem, "_MANY_LEVELS", 10)
    without = Regression.in_pass(made, state, math.inf, headroom=False)
    assert whole.integrated is None
    assert without.integrated == 0
    assert len(without.model.target) < len(whole.model.target)
    for shift in (0.0, 0.7):
        hyper = evidence.Hyper(np.full(whole.model.prior.n_groups, shift), state.noise)
        expected = evidence.solve(whole.model, hyper, True)
        found = evidence.estimate(without.model, hyper, True)
        # In the determinant of coordinates the levels are without their mean.
        known = [
            np.linalg.slogdet(one.covariance[model.intercepts, model.intercepts])[1]
            for one, model in (
                (evidence.solve(without.model, hyper, True), without.model),
                (expected, whole.model),
            )
        ]
        difference = 0.5 * (known[1] - known[0])
        assert found.evidence - expected.evidence == pytest.approx(difference, abs=1e-6)
        assert_close(found.energy, expected.energy, "rounding")
        assert_close(found.rare[1], expected.rare[1], "rounding")
        # The mean of all levels is the intercept's.
        means = [of.values(one) for of, one in ((without, found), (whole, expected))]
        mean_level = made.data_mass[0] @ means[0][0]
        assert_close(means[0][0] - mean_level, means[1][0], "rounding")
        assert_close(means[0][1], means[1][1], "rounding")
        intercept = without.intercept(found) + mean_level
        np.testing.assert_allclose(intercept, whole.intercept(expected), atol=1e-9)


def test_few_levels_have_coordinates():
    made, state = shops(LIKELIHOODS["gaussian"])
    assert Regression.in_pass(made, state, math.inf, headroom=False).integrated is None
