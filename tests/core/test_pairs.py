"""Joint networks: their grids, how they start, and that they are pure at every step."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from lanam.core.fit import joint
from lanam.core.fit.solvers import CURVATURES
from lanam.core.inference.problem import Regression, add_terms
from lanam.core.paper import kron, laplace
from lanam.core.paper.laplace import LogHyper
from lanam.core.rows import reading, statistics
from lanam.core.terms import networks
from lanam.core.terms.linearise import compress, initial_precision, tangent
from lanam.core.terms.networks import Architecture
from tests.core import in_memory
from tests.core.examples import SMALL, dense_curvature, started
from tests.oracles import (
    assert_close,
    block_diagonal,
    conditional_means,
    interpolation_matrix,
    kron_curvature,
    laplace_evidence,
    log_likelihood,
    network_value,
    pure_part,
)

RNG = np.random.default_rng
OPTIONS = replace(SMALL, pair_hidden_sizes=(6,), pair_init_scales=(1.0, 4.0))


def data(n=80, rho=0.6, likelihood="gaussian"):
    rng = RNG(0)
    columns = rng.standard_normal((n, 3))
    columns[:, 1] = rho * columns[:, 0] + np.sqrt(1 - rho**2) * columns[:, 1]
    columns[:, 2] = columns[:, 2].round()
    y = columns[:, 0] * columns[:, 1] + columns[:, 2] + 0.3 * rng.standard_normal(n)
    if likelihood == "bernoulli":
        y = (y > 0.0).astype(float)
    return columns, y, rng.uniform(0.5, 2.0, n)


def wider(likelihood="gaussian", options=OPTIONS, own=((0, 1), (0, 2))):
    columns, y, weight = data(likelihood=likelihood)
    problem, state = started(columns, y, weight, likelihood, options)
    terms = in_memory.joint_terms(columns, weight, own, options)
    return (*add_terms(problem, state, terms, rng=RNG(1)), columns)


class TestGrids:
    def test_have_fewer_knots_a_column_and_wider_margins(self):
        columns, _, weight = data(400)
        columns[:, 0] = RNG(1).uniform(0.0, 1.0, 400)
        grids = in_memory.place_grids(columns, weight, [(0, 1), (1, 2)])
        for grid in grids:
            for knots in grid.axes:
                inside = knots.points[knots.inside]
                reach = inside[-1] - inside[0]
                margin = np.array([0.2, 1.0]) * reach
                np.testing.assert_allclose(knots.points[-2:], inside[-1] + margin)
                np.testing.assert_allclose(knots.points[:2], inside[0] - margin[::-1])
                assert len(knots) == len(inside) + 4
        # A column's knots are the same in all of its pairs.
        np.testing.assert_array_equal(grids[0].axes[1].points, grids[1].axes[0].points)
        few = np.unique(columns[:, 2])
        np.testing.assert_array_equal(grids[1].axes[1].values[grids[1].axes[1].inside], few)

    @pytest.mark.parametrize(
        ("total", "n_knots"),
        [(40, 8), (320, 8), (330, 9), (420, 10), (1000, 15), (1030, 16), (1e5, 16)],
    )
    def test_more_rows_pay_for_more_knots(self, total, n_knots):
        # Half the root of their weight, between 8 and 16; it is the weight that counts, not the rows.
        columns, _, _ = data(200)
        (grid,) = in_memory.place_grids(columns, np.full(200, total / 200), [(0, 1)])
        assert grid.shape == (n_knots + 4, n_knots + 4)

    @pytest.mark.parametrize(("n_values", "n_knots"), [(2, 2), (16, 16), (17, 8), (30, 8)])
    def test_few_values_are_all_knots_however_few_rows(self, n_values, n_knots):
        column = np.arange(60) % n_values * 1.5
        columns = np.column_stack([column, RNG(0).standard_normal(60)])
        (grid,) = in_memory.place_grids(columns, np.ones(60), [(0, 1)])
        inside = grid.axes[0].values[grid.axes[0].inside]
        assert grid.shape == (n_knots + 4, 8 + 4)
        assert inside[[0, -1]].tolist() == [0.0, 1.5 * (n_values - 1)]
        if n_values <= joint._SIZES[2].most_knots:
            np.testing.assert_array_equal(inside, np.unique(column))

    def test_the_users_number_of_knots_is_of_single_columns(self):
        columns, _, weight = data(400)
        (plain,) = in_memory.joint_terms(columns, weight, [(0, 1)], OPTIONS)
        for max_knots in (8, 1000):
            (other,) = in_memory.joint_terms(
                columns, weight, [(0, 1)], replace(OPTIONS, max_knots=max_knots)
            )
            for one, two in zip(other.entries.axes, plain.entries.axes, strict=True):
                np.testing.assert_array_equal(one.points, two.points)

    def test_a_constant_column_has_none(self):
        columns = np.column_stack([np.ones(10), np.arange(10.0)])
        with pytest.raises(AssertionError, match="constant"):
            in_memory.place_grids(columns, np.ones(10), [(0, 1)])


class TestTerms:
    @pytest.mark.parametrize(
        ("groups", "scales", "expected"),
        [
            ("layer", (1.0, 4.0), [0, 0, 0, 1, 1, 1] * 4),
            ("layer", (1.0, 4.0, 16.0), [0, 0, 1, 1, 2, 2] * 4),
            ("layer", (1.0,), [0] * 24),
            ("network", (1.0, 4.0), [0] * 24),
        ],
    )
    def test_are_networks_of_two_inputs_with_a_precision_per_scale(self, groups, scales, expected):
        columns, _, weight = data()
        options = replace(OPTIONS, prior_groups=groups, activation="tanh", pair_init_scales=scales)
        (term,) = in_memory.joint_terms(columns, weight, [(0, 2)], options)
        assert term.kind == "pair"
        assert term.features == (0, 2)
        assert term.architecture == Architecture(2, (6,), "tanh", scales)
        # Two weights, a bias and an output for each unit: all of one band.
        np.testing.assert_array_equal(term.group_index, expected)

    def test_the_jacobian_is_the_networks_at_all_pairs_of_knots(self):
        columns, _, weight = data()
        (term,) = in_memory.joint_terms(columns, weight, [(0, 2)], OPTIONS)
        theta = term.initial(RNG(0))
        found = term.jacobian(theta)
        step = 1e-6 * RNG(1).standard_normal(len(theta))
        for k in (0, 7, len(found) - 1):
            i, j = divmod(k, term.entries.shape[1])
            point = (term.entries.axes[0].inputs[i], term.entries.axes[1].inputs[j])
            forth, back = (
                network_value((6,), "gelu", theta + sign * step, point) for sign in (1, -1)
            )
            assert found[k] @ step == pytest.approx((forth - back) / 2, rel=1e-4, abs=1e-11)

    def test_units_bend_all_over_both_columns(self):
        columns, _, weight = data(400)
        options = replace(OPTIONS, pair_hidden_sizes=(20,))
        (term,) = in_memory.joint_terms(columns, weight, [(0, 1)], options)
        theta = term.initial(RNG(0))
        weights, bias = theta[:40].reshape(2, 20), theta[40:60]
        rng = RNG(0)
        places = []
        for band in range(2):
            # The same draws as the term's own: centres are what makes a unit's argument zero.
            along = (np.arange(10) + rng.uniform(size=10)) / 10
            order = rng.permutation(10)
            across = (order + rng.uniform(size=10)) / 10
            own = slice(10 * band, 10 * (band + 1))
            centres = np.column_stack(
                [
                    knots.quantile_input(place)
                    for knots, place in zip(term.entries.axes, (along, across), strict=True)
                ]
            )
            argument = np.einsum("ij,ji->j", weights[:, own], centres) + bias[own]
            np.testing.assert_allclose(argument, 0.0, atol=1e-12)
            places.append(across)
        # In either column one in each tenth; in the second in an order of its own.
        for across in places:
            np.testing.assert_array_equal(np.sort(np.floor(10 * across)), np.arange(10))
            assert (np.diff(across) < 0.0).any()
        assert np.abs(weights[:, 10:]).max() > 2.0 * np.abs(weights[:, :10]).max()


class TestAddNetworks:
    def test_what_is_known_stays(self):
        problem, state, _ = wider()
        before, old = started(*data(), options=OPTIONS)
        assert [term.kind for term in problem.terms] == ["smooth"] * 3 + ["pair"] * 2
        for one, two in zip(state.terms, old.terms, strict=False):
            np.testing.assert_array_equal(one.expansion, two.expansion)
            np.testing.assert_array_equal(one.values, two.values)
            np.testing.assert_array_equal(one.precision, two.precision)
        assert (state.intercept, state.noise) == (old.intercept, old.noise)
        # New terms are zero.
        for estimate in state.terms[3:]:
            assert not estimate.values.any()
        f = statistics.predict(problem.rows, state.values, state.intercept)
        expected = statistics.predict(before.rows, old.values, old.intercept)
        np.testing.assert_array_equal(f, expected)

    def test_shares_are_the_rows_weight_on_the_grid(self):
        problem, _, columns = wider()
        weight = problem.rows.weight
        for term, share in zip(problem.terms[3:], problem.data_mass[3:], strict=True):
            own = term.entries.locate(*(columns[:, k] for k in term.features))
            expected = interpolation_matrix(own, len(term.entries)).T @ weight / weight.sum()
            assert_close(share, expected, "rounding")
            assert share.sum() == pytest.approx(1.0)


class TestPurity:
    def test_the_tangent_is_pure(self):
        problem, state, _ = wider()
        for term, estimate, share in zip(
            problem.terms, state.terms, problem.data_mass, strict=True
        ):
            if term.kind != "pair":
                continue
            raw = term.jacobian(estimate.expansion)
            assert_close(
                estimate.jacobian, pure_part(raw, share, term.entries.shape), "conditioning"
            )
            means = conditional_means(estimate.jacobian, share, term.entries.shape)
            np.testing.assert_allclose(means, 0.0, atol=1e-12 * np.abs(raw).max())

    def test_compressed_tables_are_pure(self):
        problem, state, _ = wider()
        for coarse in (False, True):
            for term, estimate, share in zip(
                problem.terms, state.terms, problem.data_mass, strict=True
            ):
                if term.kind != "pair":
                    continue
                found = compress(
                    term,
                    estimate.jacobian,
                    estimate.precision,
                    500.0 * share,
                    coarse=coarse,
                )
                assert found.table.shape[1] >= 3
                means = conditional_means(found.table, share, term.entries.shape)
                np.testing.assert_allclose(means, 0.0, atol=1e-10 * np.abs(found.table).max())

    def test_the_sum_with_main_effects_is_what_it_was(self):
        # Purification removes main effects only, which the columns' terms can represent.
        columns, _, weight = data()
        (term,) = in_memory.joint_terms(columns, weight, [(0, 1)], OPTIONS)
        position = term.entries.locate(columns[:, 0], columns[:, 1])
        share = reading.spread(position, weight / weight.sum(), len(term.entries))
        raw = term.jacobian(term.initial(RNG(0)))
        taken = (raw - tangent(term, term.initial(RNG(0)), share)).reshape(*term.entries.shape, -1)
        sums = taken[:, :1] + taken[:1] - taken[:1, :1]
        np.testing.assert_allclose(taken, sums, atol=1e-9 * np.abs(raw).max())
        assert np.abs(taken).max() > 0.1

    def test_first_precisions_are_of_the_pure_part(self):
        problem, state, _ = wider()
        term, estimate, share = problem.terms[3], state.terms[3], problem.data_mass[3]
        precision = initial_precision(term, estimate.jacobian, share, 0.25)
        assert precision.shape == (2,)
        for group in range(2):
            own = estimate.jacobian[:, term.group_index == group] / np.sqrt(precision[group])
            assert share @ np.square(own).sum(axis=1) == pytest.approx(0.125)


@pytest.mark.usefixtures("lossless")
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.parametrize(
    ("posterior", "curvature"), [("joint", "exact"), ("block", "exact"), ("block", "kron")]
)
def test_the_laplace_evidence_of_trained_pairs(likelihood, posterior, curvature):
    options = replace(OPTIONS, posterior=posterior, init_scales=(1.0,), max_knots=12)
    if curvature == "kron":
        # Kronecker factors want one precision a tensor.
        options = replace(options, pair_init_scales=(1.0,))
    problem, _, _ = wider(likelihood, options, ((0, 1),))
    rng = RNG(2)
    thetas = [1.5 * networks.initialise(term.architecture, rng) for term in problem.terms]
    n_groups = [int(term.group_index.max()) + 1 for term in problem.terms]
    hyper = LogHyper(
        0.3 * rng.standard_normal(sum(n_groups)), -0.7 if likelihood == "gaussian" else 0.0
    )
    state = laplace.state_of(problem, [theta[None] for theta in thetas], np.array([0.2]), hyper)
    found = laplace.approximate(problem, state, CURVATURES[curvature]).evidence(hyper)

    # Everything from the rows and the networks' values, nothing compressed.
    rows, noise = problem.rows, np.exp(hyper.log_noise)
    readers, f, parts = [], np.full(len(rows), 0.2), []
    for term, theta, share, position in zip(
        problem.terms, thetas, problem.data_mass, rows.positions, strict=True
    ):
        reader = interpolation_matrix(position, len(share))
        pure = np.eye(len(share))
        if term.kind == "pair":
            pure = pure_part(pure, share, term.entries.shape)
        f += reader @ pure @ networks.forward(term.architecture, theta, term.entries.network_inputs)
        jacobian = pure @ term.jacobian(theta)
        parts.append(reader @ (jacobian - share @ jacobian))
        readers.append(reader)
    assert_close(statistics.predict(rows, state.values, state.intercept), f, "conditioning")
    gamma = rows.weight * problem.likelihood.curvature(f) / noise
    if curvature == "kron":
        # Rows are summed through the entries, and the factors are the whole network's.
        hessian = block_diagonal(
            [
                kron_curvature(
                    term.architecture.hidden_sizes,
                    "gelu",
                    theta,
                    term.entries.network_inputs[seen],
                    (reader.T @ rows.weight)[seen],
                    (reader.T @ gamma)[seen],
                )
                for term, theta, reader in zip(problem.terms, thetas, readers, strict=True)
                for seen in [reader.sum(axis=0) > 0.0]
            ]
        )
        for block, estimate in zip(kron.blocks(problem, state), problem.terms, strict=True):
            assert block.groups.max() == estimate.group_index.max()
    else:
        hessian = np.hstack(parts).T @ np.diag(gamma) @ np.hstack(parts)
        if posterior == "block":
            ends = np.cumsum([0, *(part.shape[1] for part in parts)])
            hessian = block_diagonal([hessian[a:b, a:b] for a, b in itertools.pairwise(ends)])
    per_term = np.split(np.exp(hyper.log_precision), np.cumsum(n_groups)[:-1])
    precision = np.concatenate(
        [own[term.group_index] for own, term in zip(per_term, problem.terms, strict=True)]
    )
    value = log_likelihood(likelihood, rows.y, f, rows.weight, noise)
    expected = laplace_evidence(value, np.concatenate(thetas), hessian, precision)
    assert found.value == pytest.approx(expected, abs=1e-3)


def test_a_kronecker_factored_pair_is_pure_and_dense():
    options = replace(OPTIONS, init_scales=(1.0,), pair_init_scales=(1.0,))
    problem, state, _ = wider(options=options, own=((0, 1),))
    term, estimate, share = problem.terms[3], state.terms[3], problem.data_mass[3]
    block = kron.blocks(problem, state)[3]
    factor = block.factor_table(term, estimate.precision, share, state.noise)
    means = conditional_means(factor, share, term.entries.shape)
    np.testing.assert_allclose(means, 0.0, atol=1e-9 * np.abs(factor).max())
    prior = estimate.precision[0] * np.eye(24)
    sigma = np.linalg.inv(dense_curvature(block) / state.noise + prior)
    expected = estimate.jacobian @ sigma @ estimate.jacobian.T
    assert_close(factor @ factor.T, expected, "conditioning")


def test_gauss_newton_tables_of_a_pair_are_the_dense_posterior(lossless):
    problem, state, _ = wider(own=((0, 1),))
    linear = Regression.of(problem, state)
    found = linear.solve()
    rows, parts = problem.rows, []
    for term, estimate, position in zip(problem.terms, state.terms, rows.positions, strict=True):
        phi = estimate.jacobian / np.sqrt(estimate.precision[term.group_index])
        parts.append(interpolation_matrix(position, len(phi)) @ phi)
    design = np.hstack([*parts, np.ones((len(rows), 1))])
    precision = design.T @ np.diag(rows.weight / state.noise) @ design
    precision[:-1, :-1] += np.eye(design.shape[1] - 1)
    mean = np.linalg.solve(precision, design.T @ (rows.weight * rows.y / state.noise))
    prediction = reading.Design([part.table for part in linear.compressed]).of(rows)
    assert_close(prediction @ found.mean, design @ mean, "conditioning")
    expected = design @ np.linalg.inv(precision) @ design.T
    assert_close(prediction @ found.covariance @ prediction.T, expected, "conditioning")
