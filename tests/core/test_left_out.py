"""Rows left out in closed form, against fits without them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from lanam import LANAMRegressor
from lanam.core.inference import gauss_newton, left_out
from lanam.core.inference.left_out import Fit, score_gain
from lanam.core.inference.problem import Problem, Regression, State
from lanam.core.rows.reading import Design
from lanam.core.rows.statistics import output_places
from lanam.families.softmax import Softmax
from tests.core import in_memory
from tests.core.examples import SMALL, additive_data, started
from tests.likelihoods import LIKELIHOODS
from tests.oracles import assert_close

TESTED = [0, 7, 31]
LIMITS = gauss_newton.Limits(30, 1e-9)


def converged(likelihood, *data):
    problem, state = started(*data, likelihood)
    return problem, gauss_newton.converge(problem, state, LIMITS, lambda state: None)[0]


def without(problem, state, row):
    """The prediction of a row by a regression without one observation of it, and its variance."""
    weight = problem.rows.weight.copy()
    weight[row] -= 1.0
    rows = replace(problem.rows, weight=weight)
    linear = Regression.of(problem.with_terms(problem.terms, rows), replace(state, quadratic=None))
    posterior = linear.solve()
    design = Design(linear.tables).of(rows)[row]
    if problem.likelihood.n_outputs == 1:
        return design @ posterior.mean, design @ posterior.covariance @ design
    widths = [table.shape[1] for table in linear.tables]
    places = output_places(widths, problem.likelihood.n_outputs)
    stacked = np.zeros((len(places), posterior.mean.size))
    for output, place in zip(stacked, places, strict=True):
        output[place] = design
    return stacked @ posterior.mean, stacked @ posterior.covariance @ stacked.T


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_a_fit_without_the_row(likelihood):
    problem, state = converged(likelihood, *additive_data(likelihood=likelihood))
    found = Fit.at(problem, state).without(problem.rows)
    for row in TESTED:
        mean, variance = without(problem, state, row)
        np.testing.assert_allclose(found.prediction[row], mean, rtol=0.0, atol=1e-4)
        np.testing.assert_allclose(found.variance[row], variance, rtol=1e-3)


def test_gaussian_score():
    """The density of an observation, whose variance is that of the prediction and the noise."""
    problem, state = converged("gaussian", *additive_data())
    found = Fit.at(problem, state).without(problem.rows)
    std = np.sqrt(state.noise + found.variance)
    expected = norm.logpdf(problem.rows.y, found.prediction, std)
    assert_close(found.score, expected, "rounding")


def test_chunks_do_not_matter(monkeypatch):
    problem, state = converged("gaussian", *additive_data())
    fit, rows = Fit.at(problem, state), problem.rows
    whole, influence = fit.without(rows), fit.influence(rows)
    monkeypatch.setattr("lanam.core.inference.left_out.CHUNK_ROWS", 7)
    assert_close(fit.without(rows).prediction, whole.prediction, "rounding")
    assert_close(fit.influence(rows), influence, "rounding")


def test_influence_is_the_change_of_all_predictions():
    """Cook's distance: in units of the predictions' variance, by refitting without the row."""
    problem, state = converged("gaussian", *additive_data())
    influence = Fit.at(problem, state).influence(problem.rows)
    linear = Regression.of(problem, state)
    posterior = linear.solve()
    design = Design(linear.tables).of(problem.rows).copy()
    weight = problem.rows.weight
    variance = weight @ np.einsum("ni,ij,nj->n", design, posterior.covariance, design)
    for row in TESTED:
        kept = weight - (np.arange(len(weight)) == row)
        ridge = np.linalg.inv(posterior.covariance) - (design.T * weight) @ design / state.noise
        precision = (design.T * kept) @ design / state.noise + ridge
        target = design.T @ (kept * problem.rows.y) / state.noise
        change = design @ (np.linalg.solve(precision, target) - posterior.mean)
        np.testing.assert_allclose(influence[row], weight @ change**2 / variance, rtol=1e-4)


@pytest.mark.parametrize("name", ["gaussian", "bernoulli"])
def test_the_most_influential_row_is_found_among_few(name, monkeypatch):
    problem, state = converged(name, *additive_data(likelihood=name))
    fit = Fit.at(problem, state)
    influence = fit.influence(problem.rows)
    monkeypatch.setattr(left_out, "_CANDIDATES", 4)
    asked, one_by_one = [], Fit.influence
    monkeypatch.setattr(Fit, "influence", lambda *args: asked.append(args[1]) or one_by_one(*args))
    row, distance = fit.most_influential(problem.rows)
    assert row == influence.argmax()
    assert distance == pytest.approx(influence.max(), rel=1e-12)
    assert 4 * len(asked) < len(influence)


def test_an_outlier_with_leverage_has_influence():
    columns, y, weight = additive_data()
    columns[5], y[5], weight[5] = [8.0, 0.0], 40.0, 1.0
    problem, state = converged("gaussian", columns, y, weight)
    influence = Fit.at(problem, state).influence(problem.rows)
    assert influence.argmax() == 5
    assert influence[5] > 1.0 > np.delete(influence, 5).max()


def test_several_classes():
    """All outputs of a row are left out together."""
    columns, y, weight = additive_data()
    classes = np.digitize(y, np.quantile(y, [0.3, 0.7])).astype(float)
    prepared = in_memory.prepared(columns, classes, weight, Softmax(3), SMALL)
    problem = Problem.of(prepared.terms, prepared.rows, prepared.units.likelihood)
    state = prepared.solver.initial_state(problem, np.random.default_rng(0))
    state, _ = gauss_newton.converge(problem, state, LIMITS, lambda state: None)
    found = Fit.at(problem, state).without(problem.rows)
    assert found.variance.shape == (len(y), 2, 2)
    for row in TESTED:
        mean, variance = without(problem, state, row)
        np.testing.assert_allclose(found.prediction[row], mean, rtol=0.0, atol=1e-3)
        np.testing.assert_allclose(found.variance[row], variance, rtol=2e-3, atol=1e-6)


def test_high_cardinality():
    """Categories that are integrated out are left out with their rows, as those with coordinates are."""
    rng = np.random.default_rng(0)
    columns, y, weight = additive_data(n=80)
    columns = np.column_stack([columns, rng.integers(0, 9, 80)])
    y = y + 0.5 * (columns[:, 2] % 3)
    found = []
    for wide in (False, True):
        prepared = in_memory.prepared(
            columns, y, weight, LIKELIHOODS["gaussian"], SMALL, (-1, -1, 9)
        )
        terms = (*prepared.terms[:2], replace(prepared.terms[2], high_cardinality=wide))
        problem = Problem.of(terms, prepared.rows, prepared.units.likelihood)
        state = prepared.solver.initial_state(problem, np.random.default_rng(0))
        found.append(Fit.at(problem, replace(state, noise=0.2)).without(problem.rows))
    np.testing.assert_allclose(found[1].prediction, found[0].prediction, atol=1e-4)
    np.testing.assert_allclose(found[1].variance, found[0].variance, rtol=1e-3)


def test_gain_of_all_rows():
    """As a total over chunks of rows, which need not be in memory."""
    problem, state = converged("bernoulli", *additive_data(likelihood="bernoulli"))
    null = State((), state.intercept, state.noise)
    alone, weight = problem.keep([]), problem.rows.weight
    scores = Fit.at(problem, state).without(problem.rows).score
    gains = scores - Fit.at(alone, null).without(alone.rows).score
    gain, error = score_gain(problem, state, null)
    assert gain == pytest.approx(weight @ gains)
    assert error == pytest.approx(np.sqrt(weight @ gains**2))


def test_the_intercept_alone():
    """Each row is predicted by the mean of the others."""
    y = np.array([1.0, 2.0, 4.0, 9.0])
    prepared = in_memory.prepared(np.arange(4.0)[:, None], y, None, LIKELIHOODS["gaussian"], SMALL)
    problem = Problem.of(prepared.terms, prepared.rows, prepared.units.likelihood).keep([])
    response = problem.rows.y
    found = Fit.at(problem, State((), float(response.mean()), 1.0)).without(problem.rows)
    expected = [np.delete(response, k).mean() for k in range(4)]
    np.testing.assert_allclose(found.prediction, expected, atol=1e-5)


class TestPredicts:
    """Fits of many parameters to few rows are kept if they predict rows that they have not seen."""

    @pytest.mark.parametrize("seed", range(3))
    def test_many_straight_effects(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 25))
        y = X.sum(axis=1) + 0.1 * rng.standard_normal(60)
        model = LANAMRegressor(interactions=0, noise="constant").fit(X, y)
        assert sum(term.active for term in model.terms_) >= 15

    @pytest.mark.parametrize("seed", range(3))
    def test_noise(self, seed):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 25)), rng.standard_normal(60)
        model = LANAMRegressor(interactions=0, noise="constant").fit(X, y)
        assert sum(term.active for term in model.terms_) <= 1
