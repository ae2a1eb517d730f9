import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.linalg

from lanam.core.fit.solvers import find_solver
from lanam.core.inference.evidence import UPDATES, Moments
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem, State, add_terms
from lanam.core.model.fitted import ACTIVE, UNSUPPORTED
from lanam.core.paper import adam, kron, laplace, trained
from lanam.core.paper import stack as stacks
from lanam.core.paper.objective import Objective
from lanam.core.paper.stack import Layout, Stack
from lanam.core.rows import reading, statistics
from lanam.core.terms import linearise, networks
from lanam.core.terms.knots import Grid, place_knots, summarise
from lanam.core.terms.networks import Architecture
from lanam.core.terms.term import LevelTerm, SmoothTerm
from tests.core import in_memory
from tests.core.examples import dense_curvature
from tests.likelihoods import LIKELIHOODS
from tests.oracles import (
    assert_close,
    block_diagonal,
    differences,
    interpolation_matrix,
    log_likelihood,
    network_value,
    pure_part,
)

PAPER = Options(
    hidden_sizes=(8,),
    init_scales=(1.0,),
    prior_groups="network",
    posterior="block",
    curvature="kron",
    solver="adam",
    evidence_update="gradient",
    level_effects=False,
    max_iter=4,
)


def toy(n_rows=200, seed=0):
    """A bump, a linear effect and an irrelevant column."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n_rows, 3)).round(2)
    signal = np.sin(2.0 * columns[:, 0]) + 0.5 * columns[:, 1]
    return columns, signal, signal + 0.2 * rng.normal(size=n_rows)


def make_problem(options=PAPER, likelihood="gaussian", n_rows=200, weight=None):
    columns, signal, y = toy(n_rows)
    if likelihood == "bernoulli":
        y = (signal + 0.3 > 0.0).astype(float)
    weight = np.ones(n_rows) if weight is None else weight
    prepared = in_memory.prepared(columns, y, weight, LIKELIHOODS[likelihood], options)
    return Problem.of(
        prepared.terms,
        prepared.rows,
        prepared.units.likelihood,
        options.posterior == "joint",
        UPDATES[options.evidence_update],
    )


def flat(problem, per_term):
    """Parameters in the stack's order, the intercept last, as the tests' oracles have them term by term."""
    layout = Layout(problem.terms, tuple(np.flatnonzero(mass) for mass in problem.data_mass))
    own, intercept = np.atleast_2d(per_term)[:, :-1], np.atleast_2d(per_term)[:, -1]
    ends = np.cumsum([trained.n_parameters(term) for term in problem.terms])[:-1]
    return layout, layout.stacked(np.split(own, ends, axis=1), intercept)


def gradient_of(problem, per_term, precision, noise, batch=None, batch_rows=512):
    """The objective's gradient (S, P) in double precision, in the order of the tests' parameters."""
    layout, parameters = flat(problem, per_term)
    objective = Objective(problem, layout, parameters, batch_rows, np.float64)
    copies = len(parameters)
    whole = flat(problem, np.tile(np.append(precision, 0.0), (copies, 1)))[1]
    noise = np.broadcast_to(noise, copies)[:, None]
    rows = objective.whole if batch is None else batch(objective)
    found = objective.gradient(rows, whole, noise)
    return np.hstack([*(found[:, places] for places in layout.parameters), found[:, -1:]])


class TestStack:
    """Values and gradients of all networks of several copies at once."""

    @pytest.mark.parametrize(
        ("sizes", "activation", "cached"),
        [
            ([(3,)] * 4, "gelu", 1 << 16),
            ([(3,)] * 4, "relu", 20),
            ([(2, 3)] * 3, "gelu", 1),
            ([(3, 2, 2)] * 2, "silu", 1 << 16),
            ([(3,), (3,), (2,), (2, 2)], "tanh", 20),
            ([(2, 3), (2,), (3, 2)], "gelu", 1 << 16),
        ],
    )
    def test_values_and_gradient(self, sizes, activation, cached, monkeypatch):
        monkeypatch.setattr(stacks, "_CACHED", cached)
        rng = np.random.default_rng(0)
        terms, seen = [], []
        for k, own in enumerate(sizes):
            knots = knots_of(rng.normal(size=4 + k).round(3), missing=k == 1)
            n_inputs, entries = (1, knots) if k % 2 == 0 or k == 1 else (2, Grid((knots, knots)))
            features = tuple(range(n_inputs))
            terms.append(SmoothTerm(features, entries, Architecture(n_inputs, own, activation)))
            # Some entries have no data.
            seen.append(np.flatnonzero(rng.uniform(size=len(entries)) < 0.7))
        terms.append(LevelTerm((0,), in_memory.place_categories(np.arange(3.0), np.ones(3), 3)))
        seen.append(np.arange(2))
        layout = Layout(tuple(terms), tuple(seen))
        theta = rng.normal(size=(3, layout.n_parameters))
        stack = Stack(layout, theta)

        def values(at):
            """Of all terms at their entries with data, and the intercept."""
            tables = []
            for term, own, places in zip(terms, seen, layout.parameters, strict=True):
                inputs = trained.network_inputs(term)
                network, effects = np.split(at[places], [len(places) - trained.n_effects(term)])
                table = [
                    network_value(term.architecture.finite, activation, network, point)
                    for point in inputs
                ]
                table += list(effects)
                tables.append(np.array(table)[own])
            return np.concatenate([*tables, at[-1:]])

        stack.forward()
        columns = [own[rows] for own, rows in zip(stack.columns, seen, strict=True)]
        columns = np.concatenate([*columns, [stack.values.shape[1] - 1]])
        assert len(set(columns)) == len(columns)
        pull = rng.normal(size=(3, len(columns)))
        for copy, at in enumerate(theta):
            assert_close(stack.values[copy, columns], values(at), "rounding")
            stack.pull[copy, columns] = pull[copy]
        stack.backward()
        for copy, at in enumerate(theta[:2]):
            expected = pull[copy] @ differences(values, at)
            assert_close(stack.gradient[copy], expected, "finite differences")


def knots_of(column, missing=False):
    distribution = summarise(
        np.append(column, np.nan) if missing else column, np.ones(len(column) + missing)
    )
    return place_knots(distribution, 64)


class TestObjective:
    @pytest.mark.parametrize("max_knots", [256, 16])
    @pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
    def test_gradient_is_that_of_the_log_posterior(self, likelihood, max_knots):
        rng = np.random.default_rng(1)
        weight = rng.uniform(0.5, 2.0, size=50)
        options = replace(PAPER, hidden_sizes=(3,), max_knots=max_knots)
        problem = make_problem(options, likelihood, 50, weight)
        # Two runs, with a noise each.
        parameters = rng.normal(size=(2, 3 * 9 + 1))
        precision = rng.uniform(0.5, 2.0, size=27)
        noises = (0.3, 0.7) if likelihood == "gaussian" else (1.0, 1.0)
        found = gradient_of(problem, parameters, precision, noises)
        for own, noise, gradient in zip(parameters, noises, found, strict=True):

            def log_posterior(at, noise=noise):
                tables = [
                    networks.forward(term.architecture, theta, term.entries.inputs[:, None])
                    for term, theta in zip(problem.terms, np.split(at[:-1], 3), strict=True)
                ]
                f = statistics.predict(problem.rows, tables, at[-1])
                value = log_likelihood(likelihood, problem.rows.y, f, weight, noise)
                return (value - 0.5 * precision @ at[:-1] ** 2) / weight.sum()

            assert_close(gradient, differences(log_posterior, own, 1e-5), "finite differences")

    def test_known_parts_of_predictions_and_precisions_of_rows(self):
        rng = np.random.default_rng(1)
        options = replace(PAPER, hidden_sizes=(3,))
        problem = make_problem(options, "bernoulli", 50)
        offset, precision = rng.normal(size=50), rng.uniform(0.5, 2.0, 50)
        own = replace(problem.rows, offset=offset, precision=precision)
        parameters = rng.normal(size=28)

        def log_posterior(at):
            tables = [
                networks.forward(term.architecture, theta, term.entries.inputs[:, None])
                for term, theta in zip(problem.terms, np.split(at[:-1], 3), strict=True)
            ]
            f = statistics.predict(problem.rows, tables, at[-1]) + offset
            value = log_likelihood("bernoulli", problem.rows.y, f, precision, 1.0)
            return (value - 0.5 * np.square(at[:-1]).sum()) / 50.0

        found = gradient_of(replace(problem, rows=own), parameters, np.ones(27), 1.0)[0]
        assert_close(found, differences(log_posterior, parameters, 1e-5), "finite differences")

    def test_every_run_has_a_likelihood_of_its_own(self):
        problem = make_problem(replace(PAPER, hidden_sizes=(3,)), "bernoulli", 50)
        twice = np.random.default_rng(0).normal(size=(2, 28))
        layout, parameters = flat(problem, twice)
        objective = Objective(problem, layout, parameters, 512, np.float64)
        precision, noise = np.zeros_like(parameters), np.ones((2, 1))
        both = objective.gradient(objective.whole, precision, noise).copy()
        objective.likelihoods = [LIKELIHOODS["bernoulli"], LIKELIHOODS["poisson"]]
        mixed = objective.gradient(objective.whole, precision, noise).copy()
        objective.likelihoods = [LIKELIHOODS["poisson"]] * 2
        counts = objective.gradient(objective.whole, precision, noise)
        np.testing.assert_allclose(mixed, np.stack([both[0], counts[1]]), atol=1e-12)
        assert np.abs(both[1] - counts[1]).max() > 1e-3

    def test_an_epoch_sees_every_row_once_in_small_shuffled_batches(self):
        problem = make_problem(n_rows=1200)
        layout, parameters = flat(problem, np.zeros(3 * 24 + 1))
        objective = Objective(problem, layout, parameters, 512)
        batches = list(objective.batches(np.random.default_rng(0)))
        assert [len(batch.y) for batch in batches] == [400, 400, 400]
        seen = np.concatenate([batch.y for batch in batches])
        assert not np.array_equal(seen, objective.whole.y)
        np.testing.assert_array_equal(np.sort(seen), np.sort(objective.whole.y))
        larger = Objective(problem, layout, parameters, 600)
        assert len(list(larger.batches(np.random.default_rng(0)))) == 2

    @pytest.mark.parametrize("max_knots", [32, 256])
    def test_batches_average_to_the_whole_gradient(self, max_knots):
        problem = make_problem(replace(PAPER, max_knots=max_knots), n_rows=1200)
        parameters, precision = np.random.default_rng(0).normal(size=3 * 24 + 1), np.ones(72)
        assert_batches_average(problem, parameters, precision)

    def test_a_weight_is_a_repetition(self):
        columns, _, y = toy(60)
        weight = np.r_[np.full(30, 2.0), np.ones(30)]
        twice = np.r_[np.arange(30), np.arange(60)]
        gradients = []
        for rows, own in ((np.arange(60), weight), (twice, np.ones(90))):
            prepared = in_memory.prepared(
                columns[rows], y[rows], own, LIKELIHOODS["gaussian"], PAPER
            )
            problem = Problem.of(
                prepared.terms, prepared.rows, prepared.units.likelihood, False, UPDATES["gradient"]
            )
            parameters = np.linspace(-1.0, 1.0, 3 * 24 + 1)
            gradients.append(gradient_of(problem, parameters, np.ones(72), 0.5))
        assert_close(*gradients, "rounding")


def assert_batches_average(problem, parameters, precision, n_batches=3):
    def batch(number):
        def of(objective):
            return list(objective.batches(np.random.default_rng(0)))[number]

        return of

    parts = [
        gradient_of(problem, parameters, precision, 0.5, batch(number))
        for number in range(n_batches)
    ]
    whole = gradient_of(problem, parameters, precision, 0.5)
    assert_close(np.mean(parts, axis=0), whole, "rounding")


def test_adams_first_step_is_the_rate_and_later_ones_have_momentum():
    moments = Moments.zeros(2)
    step, moments = moments.step(np.array([3.0, -0.01]), 0.1)
    np.testing.assert_allclose(step, [0.1, -0.1], rtol=1e-5)
    # Two equal gradients of opposite sign: the first's weight has fallen to 0.9 of the second's.
    step, _ = moments.step(np.array([-3.0, -0.01]), 0.1)
    np.testing.assert_allclose(step, [-0.1 * 0.1 / 1.9, -0.1], rtol=1e-5)


def test_the_cosine_schedule_falls_to_zero():
    cosine = adam.SCHEDULES["cosine"]
    assert [round(cosine(part), 3) for part in (0.0, 0.25, 0.5, 1.0)] == [1.0, 0.854, 0.5, 0.0]


class TestFit:
    def test_a_toy_is_learned(self):
        problem, states = make_problem(), []
        result = find_solver(PAPER).fit(problem, np.random.default_rng(0), states.append)
        state = result.state
        # Three learning rates, each with the maximum number of rounds.
        assert len(states) == 3 * PAPER.max_iter
        assert result.reason == "max_iter"
        assert states[-1].evidence > states[2].evidence  # of the smallest learning rate
        # The best round of the best rate is restored.
        assert state.evidence == max(seen.evidence for seen in states)
        assert result.learning_rate in PAPER.learning_rates
        f = statistics.predict(problem.rows, state.values, state.intercept)
        assert np.mean((problem.rows.y - f) ** 2) < 0.15
        assert state.noise < 0.2

    def test_same_seed_same_result(self):
        problem, options = make_problem(), replace(PAPER, max_iter=1)
        one, two, other = (
            find_solver(options).fit(problem, np.random.default_rng(seed)) for seed in (3, 3, 4)
        )
        assert one.state.evidence == two.state.evidence
        for left, right in zip(one.state.terms, two.state.terms, strict=True):
            np.testing.assert_array_equal(left.expansion, right.expansion)
        assert one.state.evidence != other.state.evidence

    def test_stops_when_the_evidence_does_not_rise(self):
        states = []
        options = replace(PAPER, max_iter=50, tol=1e6)
        result = find_solver(options).fit(make_problem(), np.random.default_rng(0), states.append)
        assert result.reason == "converged"
        assert len(states) == 3 * 4

    @pytest.mark.parametrize("stop_at", [2, 6])
    def test_an_interrupt_keeps_the_best(self, stop_at):
        states = []

        def on_round(state):
            states.append(state)
            if len(states) == stop_at:
                raise KeyboardInterrupt

        options = replace(PAPER, max_iter=4)
        result = find_solver(options).fit(make_problem(), np.random.default_rng(0), on_round)
        assert result.reason == "interrupted"
        assert len(states) == stop_at
        # The interrupted round is not finished.
        assert result.state.evidence == max(state.evidence for state in states[:-1])

    def test_an_interrupt_before_the_first_round_returns_the_initial_state(self, monkeypatch):
        def interrupt(*arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(Objective, "gradient", interrupt)
        result = find_solver(PAPER).fit(make_problem(), np.random.default_rng(0))
        assert result.reason == "interrupted"
        assert np.isfinite(result.state.evidence)

    @pytest.mark.parametrize(
        "change",
        [
            {"prior_groups": "layer"},
            {"curvature": "exact"},
            {"curvature": "exact", "posterior": "joint"},
            {"evidence_update": "mackay"},
            {"activation": "tanh"},
            {"hidden_sizes": (4, 4)},
            {"max_iter": 2},
        ],
    )
    def test_every_option_changes_something(self, change):
        base = replace(PAPER, max_iter=1, **({} if len(change) == 1 else {"curvature": "exact"}))
        one, two = (evidence_of(options) for options in (base, replace(base, **change)))
        assert abs(one - two) > 1e-3


@cache
def evidence_of(options):
    return find_solver(options).fit(make_problem(options), np.random.default_rng(0)).state.evidence


@cache
def without_loss(likelihood, posterior, curvature):
    """A fit whose tables are not compressed, shared by four tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linearise, "RANK_TOLERANCE", 1e-10)
        options = replace(PAPER, posterior=posterior, curvature=curvature, max_iter=2)
        problem = make_problem(options, likelihood)
        rng = np.random.default_rng(0)
        result = find_solver(options).fit(problem, rng)
        return problem, result, find_solver(options).solution(problem, result.state)


def dense_covariance(problem, state, posterior, curvature):
    """Covariance of all parameters and the intercept, from the rows."""
    rows = problem.rows
    f = statistics.predict(rows, state.values, state.intercept)
    gamma = rows.weight * problem.likelihood.curvature(f) / state.noise
    if curvature == "kron":
        blocks = [dense_curvature(block) / state.noise for block in kron.blocks(problem, state)]
        hessian = block_diagonal([*blocks, [[gamma.sum()]]])
    else:
        parts = [
            interpolation_matrix(position, size) @ estimate.jacobian
            for position, size, estimate in zip(
                rows.positions, rows.sizes, state.terms, strict=True
            )
        ]
        design = np.hstack([*parts, np.ones((len(rows), 1))])
        hessian = design.T @ np.diag(gamma) @ design
        if posterior == "block":
            ends = np.cumsum([0, *(part.shape[1] for part in parts), 1])
            own = [slice(*pair) for pair in itertools.pairwise(ends)]
            hessian = block_diagonal([hessian[block, block] for block in own])
    prior = [
        estimate.precision[term.group_index]
        for term, estimate in zip(problem.terms, state.terms, strict=True)
    ]
    return np.linalg.inv(hessian + np.diag(np.concatenate([*prior, [0.0]])))


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.parametrize(
    ("posterior", "curvature"), [("joint", "exact"), ("block", "exact"), ("block", "kron")]
)
class TestSolution:
    @pytest.fixture
    def fitted(self, likelihood, posterior, curvature):
        return without_loss(likelihood, posterior, curvature)

    def test_means_are_the_centred_networks(self, fitted):
        problem, result, found = fitted
        for k, term in enumerate(problem.terms):
            inputs = term.entries.inputs[:, None]
            values = networks.forward(term.architecture, result.state.terms[k].expansion, inputs)
            values -= problem.data_mass[k] @ values
            np.testing.assert_allclose(found.means[k], values, atol=1e-12)
        assert found.intercept == result.state.intercept
        assert found.evidence == result.state.evidence

    def test_covariance_is_the_dense_one(self, fitted, posterior, curvature):
        problem, result, found = fitted
        dense = dense_covariance(problem, result.state, posterior, curvature)
        features = block_diagonal_tables([estimate.jacobian for estimate in result.state.terms])
        expected = features @ dense @ features.T
        tables = block_diagonal_tables(found.tables)
        covariance = tables @ found.covariance @ tables.T
        assert_close(covariance, expected, "conditioning")
        assert expected.max() > 0.1

    def test_log_evidence_gain_is_the_difference_to_the_evidence_without_the_term(
        self, fitted, likelihood, posterior, curvature
    ):
        problem, result, found = fitted
        state = result.state
        rows, groups = problem.rows, [term.group_index for term in problem.terms]
        dense = dense_covariance(problem, state, posterior, curvature)
        size = len(state.terms[0].expansion)
        for k in range(3):
            with_it = statistics.predict(rows, state.values, state.intercept)
            without = with_it - reading.read(rows.positions[k], state.values[k])
            gain = log_likelihood(
                likelihood, rows.y, with_it, rows.weight, state.noise
            ) - log_likelihood(likelihood, rows.y, without, rows.weight, state.noise)
            own, precision = slice(k * size, (k + 1) * size), state.terms[k].precision[groups[k]]
            penalty = precision @ state.terms[k].expansion ** 2
            penalty -= np.linalg.slogdet(dense[own, own] * precision)[1]
            assert found.log_evidence_gains[k] == pytest.approx(gain - 0.5 * penalty, abs=1e-4)
        # The bump gains much, the irrelevant column much less.
        assert found.log_evidence_gains[0] > 10.0
        assert found.log_evidence_gains[2] < 1.0

    def test_effective_parameters_are_the_dense_trace(self, fitted, posterior, curvature):
        problem, result, found = fitted
        state = result.state
        dense = dense_covariance(problem, state, posterior, curvature)
        # Given the intercept, as the evidence counts them.
        given = dense - np.outer(dense[-1], dense[-1]) / dense[-1, -1]
        shrunk = 1.0 - np.diag(given)[:-1] * np.concatenate(
            [
                estimate.precision[term.group_index]
                for term, estimate in zip(problem.terms, state.terms, strict=True)
            ]
        )
        expected = shrunk.reshape(3, -1).sum(axis=1)
        np.testing.assert_allclose(found.effective, expected, atol=1e-4)
        assert sum(found.effective) == pytest.approx(state.n_effective, abs=1e-4)


def block_diagonal_tables(tables):
    """Tables of all terms along the diagonal, and the intercept's 1."""
    return scipy.linalg.block_diag(*tables, np.ones((1, 1)))


class TestDroppedTerms:
    def test_by_effective_parameters_or_standard_deviation(self):
        problem = make_problem()
        rng = np.random.default_rng(0)
        result = find_solver(replace(PAPER, max_iter=1)).fit(problem, rng)
        found = find_solver(PAPER).solution(problem, result.state)
        assert adam.terms_to_drop(problem, found) == []
        small = tuple(mean * factor for mean, factor in zip(found.means, (1, 1, 1e-5), strict=True))
        assert adam.terms_to_drop(problem, replace(found, means=small)) == [2]
        undetermined = (*found.effective[:1], 0.001, *found.effective[2:])
        assert adam.terms_to_drop(problem, replace(found, effective=undetermined)) == [1]

    def test_in_the_fitted_model(self, monkeypatch):
        monkeypatch.setattr(adam, "terms_to_drop", lambda problem, found: [2])
        columns, _, y = toy()
        model = in_memory.fit(columns, y, np.ones(200), "gaussian", replace(PAPER, max_iter=1), 0)
        assert [term.status for term in model.terms] == [ACTIVE, ACTIVE, UNSUPPORTED]
        assert (model.terms[2].mean == 0.0).all()
        assert len(model.covariance) == sum(term.table.shape[1] for term in model.terms) + 1

    def test_all_terms_dropped(self, monkeypatch):
        monkeypatch.setattr(adam, "terms_to_drop", lambda problem, found: [0, 1, 2])
        columns, _, y = toy()
        for change in ({}, {"curvature": "exact", "posterior": "joint"}):
            options = replace(PAPER, max_iter=1, **change)
            model = in_memory.fit(columns, y, np.ones(200), "gaussian", options, 0)
            assert model.covariance.shape == (1, 1)


class TestFitting:
    def test_there_are_no_level_effects(self):
        columns, _, y = toy()
        options = replace(PAPER, level_effects=True, max_iter=1)
        model = in_memory.fit(columns, y, np.ones(200), "gaussian", options, 0)
        assert [term.kind for term in model.terms] == ["smooth"] * 3
        assert model.n_iter == 3
        assert model.stop_reason == "max_iter"
        assert model.history[0]["stage"] == "adam"

    def test_an_interrupt_is_a_stopping_reason(self):
        def interrupt(record):
            raise KeyboardInterrupt

        columns, _, y = toy()
        options = replace(PAPER, on_iteration=interrupt)
        model = in_memory.fit(columns, y, np.ones(200), "gaussian", options, 0)
        assert model.stop_reason == "interrupted"

    def test_constant_columns_alone(self):
        y = np.arange(5.0)
        model = in_memory.fit(np.ones((5, 2)), y, np.ones(5), "gaussian", PAPER, 0)
        assert model.intercept == pytest.approx(2.0)

    def test_kronecker_factors_with_the_default_solver(self):
        columns, _, y = toy()
        options = replace(PAPER, solver="gauss-newton", evidence_update="mackay", max_iter=20)
        models = [
            in_memory.fit(columns, y, np.ones(200), "gaussian", replace(options, curvature=name), 0)
            for name in ("kron", "exact")
        ]
        for one, two in zip(models[0].terms, models[1].terms, strict=True):
            np.testing.assert_allclose(one.mean, two.mean, atol=1e-8)
        assert abs(models[0].log_evidence - models[1].log_evidence) > 0.1


# joint networks


def with_pairs(problem, options, pairs=((0, 1),), n_rows=200):
    """The same problem with joint networks."""
    columns = toy(n_rows)[0]
    terms = in_memory.joint_terms(columns, problem.rows.weight, pairs, options)
    return add_terms(problem, State((), 0.0, 1.0), terms, rng=np.random.default_rng(0))[0]


class TestPairs:
    @pytest.mark.parametrize("max_knots", [256, 6])
    @pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
    def test_gradient_is_that_of_the_log_posterior(self, likelihood, max_knots):
        # Rows interpolate the pure part of a joint network.
        rng = np.random.default_rng(1)
        weight = rng.uniform(0.5, 2.0, size=50)
        options = replace(PAPER, hidden_sizes=(3,), pair_hidden_sizes=(4,), max_knots=max_knots)
        problem = make_problem(options, likelihood, 50, weight)
        problem = with_pairs(problem, options, ((0, 2), (1, 2)), 50)
        sizes = [term.architecture.n_parameters for term in problem.terms]
        assert sizes == [9, 9, 9, 16, 16]
        parameters = rng.normal(size=sum(sizes) + 1)
        precision = rng.uniform(0.5, 2.0, size=sum(sizes))
        noise = 0.3 if likelihood == "gaussian" else 1.0
        readers = [
            interpolation_matrix(position, size)
            for position, size in zip(problem.rows.positions, problem.rows.sizes, strict=True)
        ]
        pure = [
            pure_part(np.eye(len(share)), share, term.entries.shape)
            if term.kind == "pair"
            else np.eye(len(share))
            for term, share in zip(problem.terms, problem.data_mass, strict=True)
        ]

        def log_posterior(at):
            thetas = np.split(at[:-1], np.cumsum(sizes)[:-1])
            f = at[-1] + sum(
                reader
                @ own
                @ networks.forward(term.architecture, theta, term.entries.network_inputs)
                for reader, own, term, theta in zip(
                    readers, pure, problem.terms, thetas, strict=True
                )
            )
            value = log_likelihood(likelihood, problem.rows.y, f, weight, noise)
            return (value - 0.5 * precision @ at[:-1] ** 2) / weight.sum()

        found = gradient_of(problem, parameters, precision, noise)[0]
        assert_close(found, differences(log_posterior, parameters, 1e-5), "finite differences")

    @pytest.mark.parametrize("max_knots", [32, 6])
    def test_batches_average_to_the_whole_gradient(self, max_knots):
        options = replace(PAPER, hidden_sizes=(3,), pair_hidden_sizes=(4,), max_knots=max_knots)
        problem = with_pairs(make_problem(options, n_rows=1200), options, ((0, 1),), 1200)
        parameters, precision = np.random.default_rng(0).normal(size=44), np.ones(43)
        assert_batches_average(problem, parameters, precision)

    @pytest.mark.parametrize("curvature", ["exact", "kron"])
    def test_training_continues_from_an_earlier_state(self, curvature):
        options = replace(PAPER, max_iter=2, curvature=curvature)
        problem = make_problem(options)
        before = find_solver(options).fit(problem, np.random.default_rng(0)).state
        # With a large mean of the networks, so that counting it twice would be noticed.
        means = [
            share
            @ networks.forward(term.architecture, estimate.expansion, term.entries.network_inputs)
            for term, estimate, share in zip(
                problem.terms, before.terms, problem.data_mass, strict=True
            )
        ]
        assert abs(sum(means)) > 0.1
        none = replace(options, max_iter=0)
        after = find_solver(none).fit(problem, np.random.default_rng(1), earlier=before).state
        assert after.intercept == pytest.approx(before.intercept, abs=1e-12)
        assert after.noise == pytest.approx(before.noise)
        for one, two in zip(after.terms, before.terms, strict=True):
            assert_close(one.values, two.values, "rounding")
            assert_close(one.precision, two.precision, "rounding")
        # The coordinates of the evidence are sketched at random.
        assert after.evidence == pytest.approx(before.evidence, abs=1e-3)

    def test_training_continues_with_earlier_pairs(self):
        options = replace(PAPER, max_iter=1, pair_hidden_sizes=(6,))
        problem = with_pairs(make_problem(options), options)
        before = find_solver(options).fit(problem, np.random.default_rng(0)).state
        wider = with_pairs(problem, options, ((1, 2),))
        begin = adam.start(wider, before, np.random.default_rng(0))
        state = laplace.state_of(wider, begin.parameters, begin.intercept, begin.hyper)
        assert state.intercept == pytest.approx(before.intercept, abs=1e-12)
        for one, two in zip(state.terms, before.terms, strict=False):
            assert_close(one.values, two.values, "rounding")
        # The new network starts at random, at precision 1.
        assert state.terms[4].values.any()
        np.testing.assert_array_equal(state.terms[4].precision, 1.0)

    def test_training_fits_a_product(self):
        columns, signal, _ = toy()
        y = signal + columns[:, 0] * columns[:, 1]
        options = replace(PAPER, pair_hidden_sizes=(6, 4), interactions=((0, 1),), max_iter=2)
        model = in_memory.fit(columns, y, np.ones(200), "gaussian", options, 0)
        plain = in_memory.fit(
            columns, y, np.ones(200), "gaussian", replace(options, interactions=0), 0
        )
        assert model.terms[3].kind == "pair"
        assert model.terms[3].active
        assert model.log_evidence > plain.log_evidence + 50.0
        assert model.noise_variance < 0.5 * plain.noise_variance
