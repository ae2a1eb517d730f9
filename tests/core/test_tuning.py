"""Approximate steps of the hyperparameters, where coordinates are many."""

import numpy as np
import pytest

from lanam.core.inference import evidence, tuning
from lanam.core.inference.evidence import HighCardinality, Hyper, LinearModel, mackay
from lanam.core.inference.prior import Prior, RareLevels
from tests.core.examples import unchanged
from tests.oracles import assert_close

NOISE, WIDTH, N_ROWS = 0.5, 6, 400


def wide_model(*, correlation=0.3, noisy=True, levels=False, rare=False, seed=0):
    """Eight terms of two groups each, one of a single group, and an intercept."""
    rng = np.random.default_rng(seed)
    n_terms, n_columns = 8, 9 * WIDTH
    design = rng.normal(size=(N_ROWS, n_columns)) + correlation * rng.normal(size=(N_ROWS, 1))
    design = np.column_stack([design, np.ones(N_ROWS)])
    coordinates = rng.normal(size=n_columns + 1) * (np.arange(n_columns + 1) % WIDTH < 2)
    y = design @ coordinates + np.sqrt(NOISE) * rng.normal(size=N_ROWS)
    smooth = np.diag(np.r_[np.ones(WIDTH // 2), np.zeros(WIDTH // 2)])
    grams = (*[np.stack([smooth, np.eye(WIDTH) - smooth])] * n_terms, np.ones((1, 1, 1)))
    of_rare = RareLevels(np.arange(n_columns - WIDTH, n_columns - 2)[None], np.array([[52, 53]]))
    prior = Prior((WIDTH,) * 9, grams, {2 * n_terms: of_rare} if rare else {})
    outside = None
    if levels:
        prior = Prior((*prior.widths, 0), (*grams, np.ones((1, 1, 1))), prior.rare)
        index = rng.integers(0, 40, N_ROWS)
        one_hot = (index[:, None] == np.arange(40)).astype(float)
        y = y + 0.7 * rng.normal(size=40)[index]
        sums = one_hot.sum(axis=0), one_hot.T @ design, one_hot.T @ y
        outside = HighCardinality(*sums, group=prior.n_groups - 1)
    return LinearModel(
        design.T @ design,
        design.T @ y,
        -0.5 * float(y @ y),
        prior,
        N_ROWS if noisy else None,
        np.full(prior.n_groups, 6.0),
        (1e-6, np.inf),
        high_cardinality=outside,
    )


KINDS = [{}, {"noisy": False}, {"levels": True}, {"rare": True}, {"correlation": 2.0}]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_sums_are_exact_where_they_were_made(kind):
    model = wide_model(**kind)
    hyper = Hyper(np.random.default_rng(1).uniform(-1.0, 1.0, model.prior.n_groups), NOISE)
    exact = evidence.solve(model, hyper, joint=True)
    mean, sums = tuning._Near.of(model, hyper, exact).at(hyper, exact.mean)
    assert_close(mean, exact.mean, "rounding")
    for name, value in vars(sums).items():
        assert_close(value, getattr(exact, name), "rounding")


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_means_elsewhere(kind, monkeypatch):
    model = wide_model(**kind)
    monkeypatch.setattr(tuning, "_GRADIENT_TOL", 1e-12)
    monkeypatch.setattr(tuning, "_GRADIENT_STEPS", 500)
    start, hyper = (Hyper(np.full(model.prior.n_groups, rho), NOISE) for rho in (0.0, 1.5))
    exact, other = (evidence.solve(model, at, joint=True) for at in (start, hyper))
    mean, sums = tuning._Near.of(model, start, exact).at(hyper, exact.mean)
    np.testing.assert_allclose(mean, other.mean, rtol=1e-7, atol=1e-9)
    assert sums.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-7)
    np.testing.assert_allclose(sums.energy, other.energy, rtol=1e-6)
    # The shares change little.
    np.testing.assert_allclose(sums.effective, other.effective, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_optimum_is_that_of_exact_steps(kind, monkeypatch):
    model, solves, estimate = wide_model(**kind), [], evidence.estimate
    monkeypatch.setattr(evidence, "estimate", lambda *args: solves.append(1) or estimate(*args))
    _, by_exact_steps = tuning.tune(model, unchanged(model, NOISE), True, mackay, 200, 1e-4)
    n_exact = len(solves)
    _, found = tuning.tune(
        model, unchanged(model, NOISE), True, mackay, 200, 1e-4, approximate=True
    )
    assert found.objective == pytest.approx(by_exact_steps.objective, abs=0.02)
    assert len(solves) - n_exact < n_exact


def test_terms_that_depend_on_each_other_are_tuned_by_exact_steps(monkeypatch):
    model = wide_model()
    given = unchanged(model, NOISE), True, mackay, 200, 1e-4
    expected = tuning.tune(model, *given)[1].objective
    worse = Hyper(np.full(model.prior.n_groups, -6.0), 1e3)
    monkeypatch.setattr(tuning, "_approach", lambda *args: worse)
    found = tuning.tune(model, *given, approximate=True)[1].objective
    assert found == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_estimates_are_those_of_the_whole_posterior(kind):
    model = wide_model(**kind)
    hyper = Hyper(np.linspace(-1.0, 1.0, model.prior.n_groups), NOISE)
    whole, found = (of(model, hyper, True) for of in (evidence.solve, evidence.estimate))
    assert not hasattr(found, "covariance")
    assert found.evidence == pytest.approx(whole.evidence, rel=1e-12)
    assert found.objective == pytest.approx(whole.objective, rel=1e-12)
    np.testing.assert_allclose(found.mean, whole.mean, rtol=1e-9, atol=1e-12)
    for sums in ("effective", "tuning_effective", "tuning_energy", "penalty_gradient", "rare"):
        np.testing.assert_allclose(
            getattr(found, sums), getattr(whole, sums), rtol=1e-9, atol=1e-12
        )
