from dataclasses import replace

import numpy as np
import pytest

from lanam.core.fit.joint import joint_term
from lanam.core.inference import gauss_newton, posterior
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem, State
from lanam.core.paper import kron
from lanam.core.rows import statistics
from lanam.core.terms import linearise, networks
from lanam.core.terms.knots import Grid, Levels, place_knots, summarise
from lanam.core.terms.networks import Architecture
from lanam.core.terms.term import LevelTerm, SmoothTerm
from tests.core import in_memory
from tests.core.examples import dense_curvature
from tests.likelihoods import LIKELIHOODS
from tests.oracles import assert_close, block_diagonal, interpolation_matrix, kron_curvature

ARCHITECTURES = [((3,), "gelu"), ((4,), "relu"), ((3, 2), "tanh"), ((2, 3, 2), "silu")]


def make_term(hidden_sizes=(3,), activation="gelu", prior_groups="layer", scales=(1.0,), seed=0):
    column = np.random.default_rng(seed).normal(size=9)
    knots = place_knots(summarise(column, np.ones(9)), 64)
    return SmoothTerm((0,), knots, Architecture(1, hidden_sizes, activation, scales), prior_groups)


def make_block(term, seed=1):
    rng = np.random.default_rng(seed)
    n = len(term.entries)
    theta = networks.initialise(term.architecture, rng)
    weight, curvature = rng.uniform(0.5, 2.0, n), rng.uniform(0.1, 1.0, n)
    return theta, weight, curvature, kron.block(term, theta, weight, curvature)


def make_precision(term, seed=2):
    n_groups = int(term.group_index.max()) + 1
    return np.random.default_rng(seed).uniform(0.3, 3.0, n_groups)


class TestBlock:
    @pytest.mark.parametrize(("hidden_sizes", "activation"), ARCHITECTURES)
    def test_factors_are_explicit_sums_over_rows(self, hidden_sizes, activation):
        term = make_term(hidden_sizes, activation)
        theta, weight, curvature, block = make_block(term)
        inputs = term.entries.inputs[:, None]
        expected = kron_curvature(hidden_sizes, activation, theta, inputs, weight, curvature)
        assert_close(dense_curvature(block), expected, "finite differences")

    @pytest.mark.parametrize("prior_groups", ["layer", "network"])
    @pytest.mark.parametrize(("hidden_sizes", "activation"), ARCHITECTURES)
    def test_sums_of_the_spectrum_are_dense_determinants_and_traces(
        self, hidden_sizes, activation, prior_groups
    ):
        term = make_term(hidden_sizes, activation, prior_groups)
        *_, block = make_block(term)
        precision, noise = make_precision(term), 0.3
        prior = np.diag(precision[term.group_index])
        curvature = dense_curvature(block) / noise
        sigma = np.linalg.inv(curvature + prior)
        expected = np.linalg.slogdet(curvature + prior)[1] - np.linalg.slogdet(prior)[1]
        assert block.measure(precision, noise)[0] == pytest.approx(expected, rel=1e-10)
        for group in range(len(precision)):
            own = term.group_index == group
            trace = np.trace(sigma[np.ix_(own, own)])
            # MacKay's count: parameters less their fraction determined by the prior.
            effective = own.sum() - precision[group] * trace
            assert block.measure(precision, noise)[1][group] == pytest.approx(effective, rel=1e-9)

    @pytest.mark.parametrize(("hidden_sizes", "activation"), ARCHITECTURES)
    def test_factor_table_is_the_centred_functions_covariance(self, hidden_sizes, activation):
        term = make_term(hidden_sizes, activation)
        theta, weight, _, block = make_block(term)
        precision, noise, share = make_precision(term), 0.3, weight / weight.sum()
        jacobian = term.jacobian(theta)
        jacobian = jacobian - share @ jacobian
        sigma = np.linalg.inv(dense_curvature(block) / noise + np.diag(precision[term.group_index]))
        factor = block.factor_table(term, precision, share, noise)
        assert factor.shape[1] < len(term.entries)
        assert_close(factor @ factor.T, jacobian @ sigma @ jacobian.T, "rounding")
        np.testing.assert_allclose(share @ factor, 0.0, atol=1e-7)

    def test_a_single_row_makes_every_tensor_exact(self):
        term = make_term((3, 2))
        theta = networks.initialise(term.architecture, np.random.default_rng(0))
        weight, curvature = np.zeros(len(term.entries)), np.zeros(len(term.entries))
        weight[5], curvature[5] = 1.7, 0.6
        row = term.jacobian(theta)[5]
        exact = 0.6 * np.outer(row, row)
        sizes = term.architecture.sizes
        same_tensor = np.repeat(np.arange(len(sizes)), sizes)
        exact *= same_tensor[:, None] == same_tensor
        dense = dense_curvature(kron.block(term, theta, weight, curvature))
        np.testing.assert_allclose(dense, exact, atol=1e-14)

    def test_constant_curvature_makes_only_biases_and_output_exact(self):
        term = make_term((3,))
        theta, weight, _, _ = make_block(term)
        jacobian = term.jacobian(theta)
        exact = jacobian.T @ (jacobian * (0.4 * weight)[:, None])
        dense = dense_curvature(kron.block(term, theta, weight, 0.4 * weight))
        for own in (slice(3, 6), slice(6, 9)):
            np.testing.assert_allclose(dense[own, own], exact[own, own], rtol=1e-10)
        first = slice(0, 3)
        assert np.abs(dense[first, first] / exact[first, first] - 1.0).max() > 0.1

    @pytest.mark.parametrize("prior_groups", ["layer", "network"])
    @pytest.mark.parametrize(("hidden_sizes", "activation"), ARCHITECTURES)
    def test_missing_values_have_their_own_tensor(self, hidden_sizes, activation, prior_groups):
        plain = make_term(hidden_sizes, activation, prior_groups)
        term = replace(plain, entries=replace(plain.entries, missing=True))
        theta, weight, curvature, block = make_block(term)
        inputs = plain.entries.inputs[:, None]
        network = kron_curvature(
            hidden_sizes, activation, theta, inputs, weight[:-1], curvature[:-1]
        )
        expected = block_diagonal([network, curvature[-1:, None]])
        assert_close(dense_curvature(block), expected, "finite differences")
        precision, noise, share = make_precision(term), 0.3, weight / weight.sum()
        jacobian = term.jacobian(theta)
        jacobian = jacobian - share @ jacobian
        sigma = np.linalg.inv(dense_curvature(block) / noise + np.diag(precision[term.group_index]))
        factor = block.factor_table(term, precision, share, noise)
        assert_close(factor @ factor.T, jacobian @ sigma @ jacobian.T, "rounding")
        log_det = np.linalg.slogdet(np.linalg.inv(sigma))[1]
        log_det -= np.log(precision[term.group_index]).sum()
        assert block.measure(precision, noise)[0] == pytest.approx(log_det, rel=1e-10)

    @pytest.mark.parametrize("first", ["categories", "missing"])
    def test_pairs_of_all_kinds_have_one_network(self, first):
        knots = make_term().entries
        axes = {
            "categories": in_memory.place_categories(np.arange(3.0), np.ones(3), 3),
            "missing": replace(knots, missing=True),
        }
        grid = Grid((axes[first], knots))
        options = Options(
            curvature="kron", hidden_sizes=(3,), pair_hidden_sizes=(3, 2), init_scales=(1.0,)
        )
        term = joint_term((0, 1), grid, replace(options, pair_init_scales=(1.0,)))
        assert len(term.initial(np.random.default_rng(0))) == term.architecture.n_parameters
        # A category and a missing value are indicators, of which no two are alike.
        inputs = grid.network_inputs
        assert len(np.unique(inputs, axis=0)) == len(grid) == len(inputs)
        theta, weight, curvature, block = make_block(term)
        expected = kron_curvature((3, 2), "gelu", theta, inputs, weight, curvature)
        assert_close(dense_curvature(block), expected, "finite differences")

    def test_levels_are_independent(self):
        levels = Levels(np.array([1.0, 2.0, 5.0]), np.empty(0), 1.0, exact=True)
        curvature = np.array([1.0, 2.0, 1.0, 0.0])
        term = LevelTerm((0,), levels)
        block = kron.block(term, np.empty(0), 2.0 * curvature, curvature)
        np.testing.assert_allclose(dense_curvature(block), np.diag(curvature))
        # The last level is unseen: its variance is that of the prior.
        factor = block.factor_table(term, np.array([4.0]), np.zeros(4))
        variance = np.square(factor).sum(axis=1)
        np.testing.assert_allclose(variance, 1.0 / (curvature + 4.0))

    def test_one_precision_per_tensor_is_required(self):
        term = make_term((4,), scales=(1.0, 4.0))
        with pytest.raises(AssertionError, match="one prior precision per tensor"):
            make_block(term)
        *_, block = make_block(make_term((4,), prior_groups="network", scales=(1.0, 4.0)))
        assert block.groups.max() == 0


@pytest.fixture(params=["gaussian", "bernoulli"])
def fitted(request):
    """A small problem fitted by the default solver, with rows of different weights."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(40, 2)).round(1)
    y = np.sin(2.0 * columns[:, 0]) + 0.5 * columns[:, 1] + 0.2 * rng.normal(size=40)
    if request.param == "bernoulli":
        y = (y > 0.0).astype(float)
    weight = rng.uniform(0.5, 2.0, size=40)
    options = Options(
        hidden_sizes=(5,), init_scales=(1.0,), posterior="block", curvature="kron", max_knots=128
    )
    prepared = in_memory.prepared(columns, y, weight, LIKELIHOODS[request.param], options)
    problem = Problem.of(prepared.terms, prepared.rows, prepared.units.likelihood, False)
    estimates = tuple(problem.initial_term(k, rng) for k in range(len(problem.terms)))
    noise = 0.1 if request.param == "gaussian" else 1.0
    state = State(estimates, 0.0, noise)
    state, _ = gauss_newton.converge(
        problem, state, gauss_newton.Limits(20, 0.01), lambda state: None
    )
    return problem, state, columns


class TestSolution:
    def test_blocks_are_those_of_the_rows(self, fitted):
        problem, state, columns = fitted
        f = state.intercept + sum(
            estimate.values[position.index]
            for estimate, position in zip(state.terms, problem.rows.positions, strict=True)
        )
        weight = problem.rows.weight
        gamma = weight * problem.likelihood.curvature(f)
        for k, block in enumerate(kron.blocks(problem, state)):
            entries = problem.terms[k].entries
            inputs = np.interp(columns[:, k], entries.values, entries.inputs)[:, None]
            theta = state.terms[k].expansion
            expected = kron_curvature((5,), "gelu", theta, inputs, weight, gamma)
            assert_close(dense_curvature(block), expected, "finite differences")

    def test_mean_is_the_regressions_and_the_rest_kroneckers(self, fitted):
        problem, state, _ = fitted
        exact = posterior.ExactCurvature().solution(problem, state)
        found = kron.KronCurvature().solution(problem, state)
        assert found.intercept == exact.intercept
        blocks = kron.blocks(problem, state)
        for k, block in enumerate(blocks):
            np.testing.assert_array_equal(found.means[k], exact.means[k])
            precision, jacobian = state.terms[k].precision, state.terms[k].jacobian
            prior = np.diag(precision[problem.terms[k].group_index])
            sigma = np.linalg.inv(dense_curvature(block) / state.noise + prior)
            variance = np.einsum("bi,ij,bj->b", jacobian, sigma, jacobian)
            table = np.square(found.tables[k]).sum(axis=1)
            np.testing.assert_allclose(table, variance, rtol=1e-6, atol=1e-12)
            effective = block.measure(precision, state.noise)[1].sum()
            assert found.effective[k] == pytest.approx(effective)
        n_coordinates = sum(table.shape[1] for table in found.tables)
        np.testing.assert_array_equal(found.covariance[:-1, :-1], np.eye(n_coordinates))
        assert found.covariance[-1, -1] == pytest.approx(exact.covariance[-1, -1])

    def test_evidence_differs_from_the_exact_one_by_the_determinants(self, fitted, monkeypatch):
        # Lossless compression.
        monkeypatch.setattr(linearise, "RANK_TOLERANCE", 1e-10)
        problem, state, _ = fitted
        exact = posterior.ExactCurvature().solution(problem, state)
        found = kron.KronCurvature().solution(problem, state)
        f = statistics.predict(problem.rows, state.values, state.intercept)
        gamma = problem.rows.weight * problem.likelihood.curvature(f) / state.noise
        difference = 0.0
        for k, block in enumerate(kron.blocks(problem, state)):
            term, estimate, size = problem.terms[k], state.terms[k], problem.rows.sizes[k]
            rows = interpolation_matrix(problem.rows.positions[k], size) @ estimate.jacobian
            prior = np.diag(estimate.precision[term.group_index])
            difference += block.measure(estimate.precision, state.noise)[0]
            difference -= np.linalg.slogdet(rows.T @ np.diag(gamma) @ rows + prior)[1]
            difference += np.linalg.slogdet(prior)[1]
        assert exact.evidence - found.evidence == pytest.approx(0.5 * difference, abs=1e-5)
        assert abs(difference) > 0.1
