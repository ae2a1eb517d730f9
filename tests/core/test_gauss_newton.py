"""The solver: what one pass and many do to a state."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from lanam.core.inference import evidence, gauss_newton
from lanam.core.inference import problem as problem_values
from lanam.core.inference.evidence import Hyper
from lanam.core.inference.problem import Problem, Regression, State
from lanam.core.rows import quadratics, reading, statistics
from tests.core.examples import additive_data, started
from tests.likelihoods import LIKELIHOODS
from tests.oracles import assert_close


def rng():
    return np.random.default_rng(0)


def converge(problem, state, max_iter=50, tol=0.05, before=None):
    passes = []
    state, converged = gauss_newton.converge(
        problem, state, gauss_newton.Limits(max_iter, tol, before), passes.append
    )
    return state, converged, passes


def permuted(problem, state, order):
    """The same terms in another order."""
    again = Problem.of(
        [problem.terms[k] for k in order],
        problem.rows.keep_terms(order),
        problem.likelihood,
        problem.joint,
        problem.update,
    )
    return again, replace(state, terms=tuple(state.terms[k] for k in order))


@pytest.fixture(params=["gaussian", "bernoulli"])
def name(request):
    return request.param


class TestStart:
    def test_a_term_knows_nothing(self, name):
        problem, _ = started(*additive_data(likelihood=name), name)
        estimate = problem.initial_term(0, rng())
        assert not estimate.values.any()
        variance = problem.data_mass[0] @ np.square(
            estimate.jacobian / np.sqrt(estimate.precision[problem.terms[0].group_index])
        ).sum(axis=1)
        assert variance == pytest.approx(problem_values._START_VARIANCE)
        rise = estimate.precision / estimate.smallest_precision
        np.testing.assert_allclose(rise, problem_values._LARGEST_RISE)

    def test_shares_are_of_the_weight(self, name):
        problem, _ = started(*additive_data(likelihood=name), name)
        for share, position in zip(problem.data_mass, problem.rows.positions, strict=True):
            assert share.sum() == pytest.approx(1.0)
            total = reading.spread(position, problem.rows.weight, len(share))
            assert_close(share, total / problem.rows.weight.sum(), "rounding")

    def test_only_a_gaussian_is_summed_once(self, name):
        problem, state = started(*additive_data(likelihood=name), name)
        assert (problem.exact is not None) == (name == "gaussian")
        assert (problem.n_rows is not None) == (name == "gaussian")
        assert (problem.quadratic(state) is problem.exact) == (name == "gaussian")


class TestConvergence:
    def test_the_state_is_the_posterior_mean_of_its_own_regression(self, name):
        problem, state = started(*additive_data(likelihood=name), name)
        state, converged, _ = converge(problem, state, tol=1e-4)
        assert converged
        linear = Regression.of(problem, state)
        as_made = Hyper(np.zeros(linear.model.prior.n_groups), state.noise)
        posterior = evidence.solve(linear.model, as_made, problem.joint)
        for part, block, estimate in zip(
            linear.compressed, linear.model.prior.blocks, state.terms, strict=True
        ):
            # The rank is cut a thousandth of the noise above zero, each time anew.
            seen = part.table @ posterior.mean[block]
            np.testing.assert_allclose(seen[4:-4], estimate.values[4:-4], atol=0.01)
        assert posterior.evidence == pytest.approx(state.evidence, abs=0.05)

    def test_the_evidence_rises(self):
        problem, state = started(*additive_data())
        best, _, passes = converge(problem, state)
        levels = [one.evidence for one in passes]
        assert best.evidence == max(levels)
        assert levels[1] > levels[0]
        assert len(passes) >= 2

    def test_the_likelihood_of_a_bernoulli_settles(self):
        problem, state = started(*additive_data(likelihood="bernoulli"), "bernoulli")
        best, converged, passes = converge(problem, state)
        assert converged
        assert best is passes[-1]
        assert abs(passes[-1].evidence - passes[-2].evidence) < 0.05

    def test_too_few_passes_are_reported(self, name):
        problem, state = started(*additive_data(likelihood=name), name)
        for max_iter in (0, 1):
            after, converged, passes = converge(problem, state, max_iter=max_iter)
            assert not converged
            assert len(passes) == max_iter
        assert after is passes[-1]

    def test_little_of_a_large_gain_ends_an_extension(self, name):
        problem, state = started(*additive_data(likelihood=name), name)
        _, _, passes = converge(problem, state, tol=1e-6)
        assert len(passes) > 2
        second = passes[1].evidence
        rise = abs(passes[1].objective - passes[0].objective)
        # A gain of which the second pass's rise is a little less than a thousandth, or a little more.
        before = second - 1.01e3 * rise
        best, converged, fewer = converge(problem, state, tol=1e-6, before=before)
        assert converged
        assert len(fewer) == 2
        assert best.evidence == second
        before = second - 0.99e3 * rise
        assert len(converge(problem, state, tol=1e-6, before=before)[2]) > 2
        # Where nothing was gained, the tolerance alone counts.
        none_gained = passes[-1].evidence + 1.0
        assert len(converge(problem, state, tol=1e-6, before=none_gained)[2]) == len(passes)

    def test_columns_in_another_order(self, name):
        # Each column brings its own start along; only sums and factorisations change order.
        problem, state = started(*additive_data(likelihood=name), name)
        first, _, _ = converge(problem, state)
        second, _, _ = converge(*permuted(problem, state, [1, 0]))
        # The range finder's random probe differs: equal up to the rank's tolerance.
        assert second.evidence == pytest.approx(first.evidence, abs=0.02)
        f = statistics.predict(problem.rows, first.values, first.intercept)
        flipped = problem.rows.keep_terms([1, 0])
        g = statistics.predict(flipped, second.values, second.intercept)
        np.testing.assert_allclose(g, f, atol=0.01)

    def test_precisions_stay_above_their_floor(self, name):
        problem, state = started(*additive_data(likelihood=name), name)
        state = replace(
            state,
            terms=tuple(
                replace(estimate, smallest_precision=estimate.precision / 1.5)
                for estimate in state.terms
            ),
        )
        after, _, _ = converge(problem, state)
        at_floor = 0
        for estimate in after.terms:
            ratio = estimate.precision / estimate.smallest_precision
            assert (ratio >= 1.0 - 1e-9).all()
            at_floor += int((ratio < 1.0 + 1e-6).sum())
        assert at_floor > 0


def largest_rises(problem, state):
    """Of every pass, the most that a log prior variance rose in it."""
    _, converged, passes = converge(problem, state)
    assert converged
    precisions = [[estimate.precision for estimate in one.terms] for one in (state, *passes)]
    return [
        max(np.log(a / b).max() for a, b in zip(before, after, strict=True))
        for before, after in pairwise(precisions)
    ]


def test_expansions_that_are_climbed_do_not_go_beyond_what_their_terms_can_tell(monkeypatch):
    """At a million rows they went back and forth for a hundred expansions."""
    problem, state = started(*additive_data(likelihood="bernoulli"), "bernoulli")
    assert not problem.in_tables
    assert max(largest_rises(problem, state)) > gauss_newton._REACH + 1.0
    monkeypatch.setattr(quadratics, "MANY_ROWS", 1)
    problem, state = started(*additive_data(likelihood="bernoulli"), "bernoulli")
    assert problem.in_tables
    assert 1.0 < max(largest_rises(problem, state)) < gauss_newton._REACH + 1e-9


def test_keeping_terms_is_making_the_problem_with_them(name):
    problem, state = started(*additive_data(likelihood=name), name)
    kept, kept_state = problem.keep([1]), replace(state, terms=state.terms[1:])
    fresh, _ = permuted(problem, state, [1])
    assert isinstance(kept, Problem)
    for part in (kept, fresh):
        assert part.terms == (problem.terms[1],)
    found = Regression.of(kept, kept_state).model
    expected = Regression.of(fresh, kept_state).model
    assert_close(found.gram, expected.gram, "rounding")
    assert_close(found.target, expected.target, "rounding")
    assert found.constant == pytest.approx(expected.constant)


class TestWide:
    """With many coordinates, here with more than five: coarse passes, then the others."""

    def test_the_optimum_is_that_of_other_fits(self, name, monkeypatch):
        problem, state = started(*additive_data(likelihood=name), name)
        expected = converge(problem, state, tol=1e-3)[0]
        made, in_pass = [], Regression.in_pass

        def note(*args, **kwargs):
            made.append(in_pass(*args, **kwargs))
            return made[-1]

        monkeypatch.setattr(gauss_newton, "WIDE", 5)
        monkeypatch.setattr(Regression, "in_pass", note)
        found, converged, passes = converge(problem, state, tol=1e-3)
        assert converged
        assert len(made) == len(passes)
        coarse = [linear.coarse for linear in made]
        assert any(coarse)
        assert not coarse[-1]
        assert found.objective == pytest.approx(expected.objective, abs=0.2)

    def test_coarse_coordinates_are_the_larger_of_all(self, name):
        problem, state = started(*additive_data(likelihood=name), name)
        state = converge(problem, state)[0]
        whole, coarse = (
            Regression.in_pass(problem, state, most, headroom=False) for most in (np.inf, 5)
        )
        assert not whole.coarse
        assert coarse.coarse
        assert sum(coarse.model.prior.widths) < sum(whole.model.prior.widths)
        for part, larger in zip(whole.compressed, coarse.compressed, strict=True):
            n = larger.table.shape[1]
            assert n > 0
            np.testing.assert_array_equal(larger.table, part.table[:, -n:])
            np.testing.assert_array_equal(larger.sizes, part.sizes[-n:])

    def test_headroom_leaves_the_posterior(self, name, lossless):
        problem, state = started(*additive_data(likelihood=name), name)
        tiny = state.terms[0].precision * np.array(
            [1.0, *[1e6] * (len(state.terms[0].precision) - 1)]
        )
        state = replace(state, terms=(replace(state.terms[0], precision=tiny), *state.terms[1:]))
        expected = Regression.of(problem, state).solve()
        raised = Regression.in_pass(problem, state, np.inf, headroom=True)
        assert raised.start.log_rho.min() < -3.0
        assert raised.start.log_rho.max() <= 0.0
        found = raised.solve()
        assert found.evidence == pytest.approx(expected.evidence, abs=1e-5)
        np.testing.assert_allclose(found.effective, expected.effective, atol=1e-5)


class TestDamping:
    def problem(self):
        columns, y, weight = additive_data(likelihood="bernoulli")
        problem, state = started(columns, y, weight, "bernoulli")
        start = LIKELIHOODS["bernoulli"].fit_intercept_only(y, weight)
        return problem, replace(state, intercept=start)

    def log_likelihood(self, problem, state):
        return statistics.log_likelihood(
            problem.rows, problem.likelihood, state.values, state.intercept
        )

    def test_a_step_that_reaches_the_predicted_likelihood_is_taken(self):
        problem, state = self.problem()
        after, _, _ = converge(problem, state, max_iter=3)
        promised = self.log_likelihood(problem, after)
        found = gauss_newton._damped(problem, state, after, promised)
        # The same, but for the expansion around it, which comes along.
        assert replace(found, quadratic=after.quadratic) == after
        assert found.quadratic.is_around(after.values)

    def test_a_step_far_too_long_is_halved_until_it_helps(self):
        problem, state = self.problem()
        good, _, _ = converge(problem, state, max_iter=3)

        def beyond(factor):
            terms = tuple(replace(term, values=factor * term.values) for term in good.terms)
            return replace(good, terms=terms, intercept=state.intercept)

        promised = self.log_likelihood(problem, good)
        wild = beyond(-16.0)
        before = self.log_likelihood(problem, state)
        assert self.log_likelihood(problem, wild) < before - 10.0
        found = gauss_newton._damped(problem, state, wild, promised)
        assert self.log_likelihood(problem, found) > self.log_likelihood(problem, wild)
        # Still on the way from one to the other.
        ratio = found.terms[0].values[10] / wild.terms[0].values[10]
        assert np.log2(ratio) == pytest.approx(round(np.log2(ratio)))
        assert ratio < 1.0

    def test_a_gaussian_step_is_exact_and_never_damped(self):
        problem, state = started(*additive_data())
        terms = tuple(replace(term, values=term.values + 1e3) for term in state.terms)
        wild = State(terms, 0.0, 1.0)
        assert gauss_newton._damped(problem, state, wild, 0.0) is wild
