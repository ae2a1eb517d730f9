"""The paper's system on all kinds of columns and pairs, missing values, and more than two classes."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp

from lanam.core.fit import effect_scores
from lanam.core.fit.solvers import CURVATURES, find_solver
from lanam.core.inference.evidence import UPDATES
from lanam.core.inference.problem import Problem, State, add_terms
from lanam.core.paper import adam, kron, laplace, trained
from lanam.core.rows import reading
from lanam.core.terms import networks
from tests.core import in_memory
from tests.core.examples import dense_curvature
from tests.core.test_adam import PAPER, gradient_of
from tests.likelihoods import find_likelihood
from tests.oracles import assert_close, differences, interpolation_matrix, pure_part

SMALL = replace(PAPER, hidden_sizes=(3,), pair_hidden_sizes=(2, 2), max_iter=1, epochs=20)
N_LEVELS = (-1, 3, -1)
PAIRS = ((0, 1), (0, 2))


def mixed(n_rows=80, seed=0):
    """A number that may be missing, a category, and a number; a response, and one of three classes."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n_rows, 3)).round(1)
    columns[:, 1] = rng.integers(0, 3, n_rows)
    columns[rng.uniform(size=n_rows) < 0.2, 0] = np.nan
    f = np.where(np.isnan(columns[:, 0]), 1.0, np.sin(columns[:, 0])) + 0.5 * columns[:, 1]
    y = f + 0.3 * rng.normal(size=n_rows)
    return columns, y, np.digitize(y, np.quantile(y, (0.3, 0.7))).astype(float)


@cache
def make_problem(likelihood, pure=True):
    columns, y, label = mixed()
    options = replace(SMALL, pure=pure)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    known = find_likelihood(likelihood, 3)
    response = label if known.n_classes else y
    prepared = in_memory.prepared(columns, response, weight, known, options, N_LEVELS)
    problem = Problem.of(
        prepared.terms, prepared.rows, prepared.units.likelihood, False, UPDATES["gradient"]
    )
    terms = in_memory.joint_terms(columns, weight, PAIRS, options, prepared.categories)
    return add_terms(problem, State((), 0.0, 1.0), terms, rng=np.random.default_rng(0))[0]


def tables_of(problem, parameters):
    """Values at the entries of all terms by their parameters of one output, each kind by itself."""
    tables = []
    for term, own, mass in zip(problem.terms, parameters, problem.data_mass, strict=True):
        if term.kind == "categorical":
            tables.append(own)
            continue
        table = networks.forward(term.architecture, own, term.entries.network_inputs)
        if term.kind == "smooth" and term.features == (
            0,
        ):  # its last parameter is that of missing values
            table = np.append(table, own[-1])
        if term.joint and term.pure:
            table = pure_part(np.eye(len(mass)), mass, term.entries.shape) @ table
        tables.append(table)
    return tables


def log_likelihood(problem, f, noise):
    """Of rows with predictions (n,) or (n, 2)."""
    rows, likelihood = problem.rows, problem.likelihood
    if likelihood.n_classes:
        links = f @ likelihood.contrasts.T
        value = links[np.arange(len(f)), rows.y.astype(int)] - logsumexp(links, axis=1)
        return rows.weight @ value
    value = -0.5 * (rows.y - f[:, 0]) ** 2 / noise - 0.5 * np.log(2.0 * np.pi * noise)
    return rows.weight @ value


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("likelihood", ["gaussian", "softmax"])
def test_gradient_is_that_of_the_log_posterior(likelihood, pure):
    problem = make_problem(likelihood, pure)
    sizes = [trained.n_parameters(term) for term in problem.terms]
    # With a missing value's effect, a category's or an unseen one's, and the indicators of a pair.
    assert sizes == [10, 5, 9, 2 * 7 + 2 + 6 + 2, 2 * 3 + 2 + 6 + 2]
    n_outputs = problem.likelihood.n_outputs
    rng = np.random.default_rng(2)
    parameters, noise = rng.normal(size=(n_outputs, sum(sizes) + 1)), 1.0
    precision = rng.uniform(0.5, 2.0, sum(sizes))
    readers = [
        interpolation_matrix(position, size)
        for position, size in zip(problem.rows.positions, problem.rows.sizes, strict=True)
    ]

    def log_posterior(flat):
        at = flat.reshape(parameters.shape)
        f = np.empty((len(problem.rows), n_outputs))
        for k, own in enumerate(at):
            tables = tables_of(problem, np.split(own[:-1], np.cumsum(sizes)[:-1]))
            f[:, k] = own[-1] + sum(r @ t for r, t in zip(readers, tables, strict=True))
        prior = 0.5 * (np.square(at[:, :-1]) @ precision).sum()
        return (log_likelihood(problem, f, noise) - prior) / problem.rows.count

    found = gradient_of(problem, parameters, precision, noise)
    expected = differences(log_posterior, parameters.ravel(), 1e-5)
    assert_close(found.ravel(), expected, "finite differences")


@cache
def trained_classes():
    problem = make_problem("softmax", False)
    options = replace(SMALL, pure=False)
    result = find_solver(options).fit(problem, np.random.default_rng(0))
    return problem, result.state, find_solver(options).solution(problem, result.state)


def posteriors(problem, state):
    """Every term's and output's Jacobian (B, P) and dense posterior covariance (P, P)."""
    blocks = iter(kron.blocks(problem, state))
    for term, estimate, mass in zip(problem.terms, state.terms, problem.data_mass, strict=True):
        prior = np.diag(estimate.precision[term.group_index])
        for own in estimate.expansion.reshape(2, -1):
            jacobian = term.jacobian(own)
            curvature = dense_curvature(next(blocks))
            yield jacobian - mass @ jacobian, np.linalg.inv(curvature + prior), prior


class TestClasses:
    """Every class has networks of its own, independent of each other."""

    def test_curvature_is_of_each_output_by_itself(self):
        problem, state, _ = trained_classes()
        links = problem.around(state).predict(problem.rows)
        gamma = problem.likelihood.curvature(links) * problem.rows.weight[:, None, None]
        category = problem.rows.columns[:, 1]
        blocks = kron.blocks(problem, state)
        for output in range(2):
            sums = [gamma[category == k, output, output].sum() for k in range(3)]
            block = blocks[2 * 1 + output]  # of the second term
            assert_close(np.diag(dense_curvature(block))[:3], sums, "rounding")

    def test_covariance_is_the_dense_one(self):
        problem, _, solution = trained_classes()
        dense = list(posteriors(problem, trained_classes()[1]))
        start = 0
        for k, table in enumerate(solution.tables):
            size = table.shape[1]
            for one in range(2):
                for two in range(2):
                    rows = slice(start + one * size, start + (one + 1) * size)
                    columns = slice(start + two * size, start + (two + 1) * size)
                    found = table @ solution.covariance[rows, columns] @ table.T
                    jacobian, sigma, _ = dense[2 * k + one]
                    expected = (one == two) * jacobian @ sigma @ jacobian.T
                    assert_close(found, expected, "conditioning")
            start += 2 * size
        assert len(solution.covariance) == start + 2

    def test_evidence_is_the_dense_one(self):
        problem, state, solution = trained_classes()
        f = problem.around(state).predict(problem.rows)
        expected = log_likelihood(problem, f, 1.0)
        thetas = [own for term in state.terms for own in term.expansion.reshape(2, -1)]
        for (_, sigma, prior), own in zip(posteriors(problem, state), thetas, strict=True):
            expected -= 0.5 * own @ prior @ own
            expected += 0.5 * np.linalg.slogdet(sigma)[1] + 0.5 * np.linalg.slogdet(prior)[1]
        assert state.evidence == pytest.approx(expected, rel=1e-9)
        assert sum(solution.effective) == pytest.approx(state.n_effective, rel=1e-9)

    def test_means_are_the_centred_networks(self):
        problem, state, solution = trained_classes()
        for term, estimate, mean, mass in zip(
            problem.terms, state.terms, solution.means, problem.data_mass, strict=True
        ):
            for k, own in enumerate(estimate.expansion.reshape(2, -1)):
                values = trained.function(term, own)
                assert_close(mean[:, k], values - mass @ values, "rounding")

    def test_training_goes_on_where_it_ended(self):
        problem, state, _ = trained_classes()
        begin = adam.start(problem, state, np.random.default_rng(1))
        after = laplace.state_of(problem, begin.parameters, begin.intercept, begin.hyper)
        assert_close(after.intercept, state.intercept, "rounding")
        for one, two in zip(after.terms, state.terms, strict=True):
            assert_close(one.values, two.values, "rounding")


@pytest.mark.parametrize("likelihood", ["gaussian", "softmax"])
def test_multipliers_of_trained_effects(likelihood):
    """Their precision is minus the log posterior's second derivatives at ones."""
    problem = make_problem(likelihood, False)
    begin = adam.start(problem, State((), np.zeros(1), 0.5), np.random.default_rng(0))
    rng = np.random.default_rng(3)
    parameters = [rng.normal(size=own.shape) for own in begin.parameters]
    intercept = np.zeros(problem.likelihood.n_outputs)
    hyper = begin.hyper if likelihood == "gaussian" else replace(begin.hyper, log_noise=0.0)
    state = laplace.state_of(problem, parameters, intercept, hyper)
    effects = effect_scores.multipliers(problem, state)
    assert list(effects.blocks) == [0, 1, 2]
    single = [
        reading.read(position, estimate.values).reshape(len(problem.rows), -1)
        for position, estimate, term in zip(
            problem.rows.positions, state.terms, problem.terms, strict=True
        )
        if not term.joint
    ]
    whole = problem.around(state).predict(problem.rows).reshape(len(problem.rows), -1)

    def gradient(at):
        def log_posterior(factors):
            f = whole + sum((factors[k] - 1.0) * single[k] for k in range(3)) + factors[3:]
            prior = 0.5 * np.square(factors[:3]).sum()
            return log_likelihood(problem, f, hyper.noise) - prior

        return differences(log_posterior, at, 1e-4)

    ones = np.r_[np.ones(3), intercept]
    expected = -differences(gradient, ones, 1e-3)
    np.testing.assert_allclose(effects.precision, expected, rtol=1e-3, atol=2e-3)


def test_restarts_are_runs_of_their_own():
    problem = make_problem("gaussian")
    options = replace(SMALL, n_restarts=2, learning_rates=(0.1, 0.01), max_iter=2)
    states = []
    result = find_solver(options).fit(problem, np.random.default_rng(0), states.append)
    evidences = [state.evidence for state in states]
    assert len(states) == 2 * 2 * 2
    assert len(set(evidences)) == len(evidences)
    assert result.state.evidence == max(evidences)
    assert CURVATURES["kron"].factored


def test_a_run_that_has_stopped_leaves_the_others_as_they_were():
    problem = make_problem("gaussian")
    points = [adam.start(problem, State((), 0.1, 0.5), np.random.default_rng(k)) for k in range(3)]
    both = adam.Training.of(problem, points, replace(SMALL, epochs=3))
    rates = [0.1, 0.01, 0.001]
    points = both.epochs(points, rates, np.random.default_rng(0))
    fewer = both.keep([0, 2])
    left = fewer.epochs([points[0], points[2]], [0.1, 0.001], np.random.default_rng(0))
    all_three = both.epochs(points, rates, np.random.default_rng(0))
    for one, two in zip(left, [all_three[0], all_three[2]], strict=True):
        for own, other in zip(one.parameters, two.parameters, strict=True):
            np.testing.assert_allclose(own, other, atol=1e-5)
