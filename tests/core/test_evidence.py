"""Posterior, evidence and its gradient against dense matrices in parameter space."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import minimize

from lanam.core.inference import evidence
from lanam.core.inference.covariance import Dense
from lanam.core.inference.evidence import (
    UPDATES,
    Hyper,
    LinearModel,
    estimate,
    gradient,
    noise_gradient,
    solve,
)
from lanam.core.inference.prior import Prior, inverse_and_log_det
from lanam.core.inference.problem import Regression
from lanam.core.inference.tuning import tune
from lanam.core.rows import reading, statistics
from tests.core.examples import SMALL, additive_data, mackay_step, started, unchanged
from tests.oracles import (
    DensePosterior,
    assert_close,
    differences,
    interpolation_matrix,
    profiled_log_marginal,
)

NOISE = 0.3


class Example:
    """A Gaussian problem linearised without loss, and its dense reference in parameter space."""

    def __init__(self, joint, prior_groups):
        options = replace(SMALL, posterior="joint" if joint else "block", prior_groups=prior_groups)
        self.problem, self.state = started(*additive_data(), options=options, noise=NOISE)
        self.linear = Regression.of(self.problem, self.state)
        self.model, self.joint = self.linear.model, joint
        rng = np.random.default_rng(1)
        self.hyper = Hyper(rng.uniform(-1.0, 1.0, self.model.prior.n_groups), 0.2)
        rows = self.problem.rows
        self.row_features = [
            interpolation_matrix(p, n) @ estimate.jacobian
            for p, n, estimate in zip(rows.positions, rows.sizes, self.state.terms, strict=True)
        ]

    @property
    def group_index(self):
        """The group of every parameter, all terms together."""
        starts = [groups.start for groups in self.model.prior.groups]
        terms = self.problem.terms
        return np.concatenate([s + t.group_index for s, t in zip(starts, terms, strict=True)])

    def dense(self, hyper):
        precisions = [term.precision for term in self.state.terms]
        precision = (np.concatenate(precisions) * np.exp(-hyper.log_rho))[self.group_index]
        widths = [part.shape[1] for part in self.row_features]
        ends = np.cumsum(widths)
        blocks = [slice(e - w, e) for e, w in zip(ends, widths, strict=True)]
        rows = self.problem.rows
        phi = np.hstack(self.row_features)
        return DensePosterior(
            phi, precision, rows.y, rows.weight, hyper.noise, None if self.joint else blocks
        )


@pytest.fixture(params=["layer", "network"])
def prior_groups(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["joint", "block"])
def example(request, prior_groups, lossless):
    return Example(request.param, prior_groups)


class TestAgainstParameterSpace:
    def test_evidence(self, example):
        found = solve(example.model, example.hyper, example.joint)
        dense = example.dense(example.hyper)
        assert_close(found.evidence, dense.log_evidence, "conditioning")
        assert_close(found.log_likelihood, dense.log_likelihood, "conditioning")

    def test_prediction_and_its_covariance(self, example):
        found = solve(example.model, example.hyper, example.joint)
        dense = example.dense(example.hyper)
        tables = [part.table for part in example.linear.compressed]
        design = reading.Design(tables).of(example.problem.rows)
        phi = np.hstack([*example.row_features, np.ones((len(design), 1))])
        assert_close(design @ found.mean, phi @ dense.mean, "conditioning")
        assert_close(
            design @ found.covariance @ design.T, phi @ dense.covariance @ phi.T, "conditioning"
        )

    def test_effective_parameters_and_energy(self, example):
        found = solve(example.model, example.hyper, example.joint)
        dense, index = example.dense(example.hyper), example.group_index
        assert_close(found.effective, np.bincount(index, dense.effective), "conditioning")
        assert_close(found.energy, np.bincount(index, dense.energy), "conditioning")
        assert found.n_effective == pytest.approx(dense.effective.sum(), rel=1e-6)
        assert 1.0 < found.n_effective < len(example.problem.rows)

    def test_the_penalty_is_that_of_each_term_alone(self, example):
        found = solve(example.model, example.hyper, example.joint)
        precisions = [term.precision for term in example.state.terms]
        scales = np.concatenate(precisions) * np.exp(-example.hyper.log_rho)
        weight, occam, start = example.problem.rows.weight, 0.0, 0
        for term, phi in zip(example.problem.terms, example.row_features, strict=True):
            precision = scales[start + term.group_index]
            start += term.group_index.max() + 1
            if term.group_index.max() > 0:
                # Sylvester: the determinant over the rows is that over the parameters.
                gram = phi.T @ (weight[:, None] * phi) / example.hyper.noise
                occam += np.linalg.slogdet(np.eye(len(gram)) + gram / precision)[1]
        weight = example.model.tuning_penalty
        assert_close(found.tuning_penalty, 0.5 * weight * occam, "conditioning")
        assert found.objective == found.evidence - found.tuning_penalty
        several = max(term.group_index.max() for term in example.problem.terms) > 0
        assert (found.tuning_penalty > 0.1) == several

    def test_log_likelihood_is_that_of_the_rows(self, example):
        found = solve(example.model, example.hyper, example.joint)
        prior, rows = example.model.prior, example.problem.rows
        values = [
            part.table @ found.mean[block]
            for part, block in zip(example.linear.compressed, prior.blocks, strict=True)
        ]
        f = statistics.predict(rows, values, float(found.mean[-1]))
        squares = rows.weight @ (rows.y - f) ** 2
        count = rows.weight.sum()
        expected = -0.5 * squares / 0.2 - 0.5 * count * np.log(2 * np.pi * 0.2)
        assert_close(found.log_likelihood, expected, "rounding")


def test_joint_evidence_is_the_marginal_likelihood(lossless):
    """Of ``y ~ N(b 1, sum_d J_d Lambda_d^-1 J_d' + noise I)`` at the best constant ``b``."""
    columns, y, _ = additive_data()
    problem, state = started(columns, y, np.ones(len(y)), noise=NOISE)
    model = Regression.of(problem, state).model
    covariance = NOISE * np.eye(len(y))
    for term, own, position in zip(problem.terms, state.terms, problem.rows.positions, strict=True):
        features = interpolation_matrix(position, len(term.entries)) @ own.jacobian
        covariance += features @ np.diag(1.0 / own.precision[term.group_index]) @ features.T
    expected = profiled_log_marginal(problem.rows.y, covariance)
    as_made = Hyper(np.zeros(model.prior.n_groups), NOISE)
    assert_close(solve(model, as_made, joint=True).evidence, expected, "conditioning")
    # The paper's blocks are a lower bound.
    assert solve(model, as_made, joint=False).evidence < expected


class TestSlopes:
    def test_log_variances(self, example):
        def at(log_rho):
            return solve(example.model, Hyper(log_rho, 0.2), example.joint).objective

        found = gradient(solve(example.model, example.hyper, example.joint))
        expected = differences(at, example.hyper.log_rho, step=1e-4)
        assert_close(found, expected, "finite differences")

    def test_log_noise(self, example):
        def at(log_noise):
            hyper = Hyper(example.hyper.log_rho, float(np.exp(log_noise[0])))
            return solve(example.model, hyper, example.joint).objective

        posterior = solve(example.model, example.hyper, example.joint)
        found = noise_gradient(example.model, posterior, 0.2)
        expected = differences(at, np.log([0.2]), step=1e-4)[0]
        assert_close(found, expected, "finite differences")

    @pytest.mark.parametrize("joint", [True, False])
    def test_where_terms_and_intercept_are_coupled(self, joint):
        # A Bernoulli's curvature differs from row to row, so centred terms do not decouple.
        model = coupled_model()

        def at(log_rho):
            return solve(model, Hyper(log_rho, 1.0), joint).objective

        log_rho = np.array([0.3, -0.2, 0.5])
        found = gradient(solve(model, Hyper(log_rho, 1.0), joint))
        assert_close(found, differences(at, log_rho, step=1e-4), "finite differences")


def coupled_model(n_rows=None):
    """Two terms of three and two coordinates; their columns have means."""
    rng = np.random.default_rng(0)
    design = rng.standard_normal((30, 6)) + 0.5
    design[:, -1] = 1.0
    basis = np.linalg.qr(rng.standard_normal((9, 3)))[0]
    grams = np.stack([basis[:4].T @ basis[:4], basis[4:].T @ basis[4:]])
    prior = Prior((3, 2), (grams, np.ones((1, 1, 1))))
    y = rng.standard_normal(30)
    constant = -0.5 * float(y @ y)
    bound = np.full(3, 5.0)
    return LinearModel(design.T @ design, design.T @ y, constant, prior, n_rows, bound)


class TestMacKay:
    def test_its_fixed_point_is_where_the_gradient_vanish(self, example):
        model = replace(example.model, log_rho_bound=np.full(example.model.prior.n_groups, 6.0))
        hyper = example.hyper
        for _ in range(1500):
            posterior = solve(model, hyper, example.joint)
            hyper = mackay_step(model, hyper, posterior)
        posterior = solve(model, hyper, example.joint)
        inside = np.abs(hyper.log_rho) < 6.0
        assert inside.any()
        np.testing.assert_allclose(gradient(posterior)[inside], 0.0, atol=1e-3)
        # At a bound the objective pushes outwards.
        outwards = gradient(posterior)[~inside] * np.sign(hyper.log_rho[~inside])
        assert (outwards > -1e-3).all()
        # The noise's step gives the intercept a degree of freedom, half a nat of slope.
        slope = noise_gradient(model, posterior, hyper.noise)
        assert slope == pytest.approx(-0.5, abs=1e-3)

    def test_a_step_leads_uphill(self, example):
        before = solve(example.model, example.hyper, example.joint)
        after = mackay_step(example.model, example.hyper, before)
        assert solve(example.model, after, example.joint).objective > before.objective

    def test_steps_and_reach_are_bounded(self, example):
        n = example.model.prior.n_groups
        model = replace(example.model, log_rho_bound=np.full(n, 0.25))
        hyper = Hyper(np.zeros(n), 0.2)
        for _ in range(20):
            after = mackay_step(model, hyper, solve(model, hyper, example.joint))
            assert (np.abs(after.log_rho - hyper.log_rho) <= 1.5 + 1e-12).all()
            assert (after.log_rho >= -6.0).all()
            assert (after.log_rho <= 0.25).all()
            hyper = after

    def test_the_noise_is_bounded(self):
        model = replace(coupled_model(n_rows=30.0), noise_bounds=(1e-6, 4.0))
        for y_scale, bound in [(1e-6, 1e-6), (1e6, 4.0)]:
            scaled = replace(
                model, target=model.target * y_scale, constant=model.constant * y_scale**2
            )
            hyper = Hyper(np.zeros(3), 1.0)
            after = mackay_step(scaled, hyper, solve(scaled, hyper, True))
            assert after.noise == bound

    def test_without_a_noise_there_is_none_to_step(self):
        model = coupled_model()
        hyper = Hyper(np.zeros(3), 1.0)
        assert mackay_step(model, hyper, solve(model, hyper, True)).noise == 1.0


@pytest.mark.parametrize("update", ["mackay", "gradient"])
class TestTune:
    def test_never_lowers_the_objective(self, example, update):
        n = example.model.prior.n_groups
        before = estimate(example.model, Hyper(np.zeros(n), NOISE), example.joint)
        last = before.objective
        for steps in (0, 1, 3, 10, 30):
            hyper, after = tune(
                example.model,
                unchanged(example.model, NOISE),
                example.joint,
                UPDATES[update],
                steps,
                1e-6,
            )
            assert after.objective >= last
            last = after.objective
            again = estimate(example.model, hyper, example.joint)
            assert again.objective == after.objective
        assert last > before.objective + 1.0

    def test_reaches_what_a_general_optimiser_reaches(self, example, update):
        model, n = example.model, example.model.prior.n_groups

        def loss(at):
            hyper = Hyper(model.clip(at[:-1]), float(np.exp(at[-1])))
            return -solve(model, hyper, example.joint).objective

        upper = np.minimum(model.log_rho_bound, 6.0)
        bounds = [(-6.0, high) for high in upper] + [tuple(np.log(model.noise_bounds))]
        best = minimize(loss, np.append(np.zeros(n), np.log(NOISE)), bounds=bounds)
        _, found = tune(model, unchanged(model, NOISE), example.joint, UPDATES[update], 500, 1e-6)
        start = -loss(np.append(np.zeros(n), np.log(NOISE)))
        assert found.objective <= -best.fun + 1e-3
        # Tuning stops when a step brings less than a per cent of what was gained, because the
        # tables are remade anyway; the small steps along the gradient fall below that sooner.
        share = (found.objective - start) / (-best.fun - start)
        assert share > (0.95 if update == "mackay" else 0.8)

    def test_the_best_is_the_objectives_not_the_evidences(self, update):
        # With a large penalty the objective may rise while the evidence falls.
        model, truth = (
            replace(coupled_model(), tuning_penalty=5.0),
            np.array([1.0, -1.0, 1.0, 1.0, -1.0, 0.0]),
        )
        target = model.gram @ truth
        model = replace(model, target=target, constant=-0.5 * float(truth @ target))

        def loss(log_rho):
            return -solve(model, Hyper(model.clip(log_rho), 1.0), True).objective

        best = minimize(loss, np.zeros(3), bounds=[(-6.0, 5.0)] * 3)
        _, found = tune(model, unchanged(model, 1.0), True, UPDATES[update], 500, 1e-6)
        start = solve(model, Hyper(np.zeros(3), 1.0), True)
        assert found.evidence < start.evidence
        share = (found.objective - start.objective) / (-best.fun - start.objective)
        assert 0.9 < share < 1.001

    def test_leaves_a_noise_that_is_not_learned(self, update):
        model = coupled_model()
        hyper, _ = tune(model, unchanged(model, 1.0), True, UPDATES[update], 10, 1e-6)
        assert hyper.noise == 1.0
        assert np.abs(hyper.log_rho).max() > 0.1


def ragged_prior(rng):
    """Terms of many widths and numbers of groups, and a function that makes their dense blocks."""
    grams, dense_grams = [], []
    widths = (3, 2, 4, 0, 1)
    for width, n_groups in zip(widths, (2, 1, 3, 2, 2), strict=True):
        if n_groups == 1:
            grams.append(np.ones((1, 1, 1)))
            dense_grams.append(np.eye(width)[None])
            continue
        basis = np.linalg.qr(rng.standard_normal((12, width)))[0]
        parts = np.array_split(basis, n_groups)
        grams.append(np.stack([part.T @ part for part in parts]))
        dense_grams.append(grams[-1])
    prior = Prior(widths, tuple(grams))

    def blocks(log_rho):
        return [
            np.einsum("g,gij->ij", np.exp(log_rho[groups]), grams)
            for groups, grams in zip(prior.groups, dense_grams, strict=True)
        ]

    return prior, blocks


class TestPrior:
    def test_padded_blocks_are_the_dense_matrix(self):
        rng = np.random.default_rng(0)
        prior, blocks = ragged_prior(rng)
        log_rho = rng.standard_normal(prior.n_groups)
        dense = block_diag(*blocks(log_rho))
        precision = prior.precision(log_rho)
        matrix = np.zeros((11, 11))
        precision.add_to(matrix)
        assert_close(matrix[:10, :10], np.linalg.inv(dense), "rounding")
        assert not matrix[10].any()
        assert not matrix[:, 10].any()
        assert precision.log_det_covariance == pytest.approx(np.linalg.slogdet(dense)[1])

    def test_what_terms_with_several_groups_learn_if_alone(self):
        rng = np.random.default_rng(0)
        prior, blocks = ragged_prior(rng)
        log_rho = rng.standard_normal(prior.n_groups)
        root = rng.standard_normal((11, 20))
        gram = root @ root.T

        def dense(at):
            several = [k for k, grams in enumerate(prior.group_grams) if len(grams) > 1]
            total = 0.0
            for k in several:
                block = gram[prior.blocks[k], prior.blocks[k]]
                total += np.linalg.slogdet(np.eye(len(block)) + block @ blocks(at)[k])[1]
            return total

        before = gram.copy()
        alone = prior.precision(log_rho).alone(gram)
        value, gradient = alone.log_det, alone.effective
        np.testing.assert_array_equal(gram, before)
        assert_close(value, dense(log_rho), "rounding")
        assert_close(gradient, differences(dense, log_rho, step=1e-4), "finite differences")
        # Terms with one group, and those without coordinates, have no penalty.
        assert gradient[prior.groups[1]] == 0.0
        np.testing.assert_allclose(gradient[prior.groups[3]], 0.0, atol=1e-12)
        assert (gradient[prior.groups[0]] > 0.0).all()

    def test_several_outputs_have_the_same_prior(self):
        rng = np.random.default_rng(1)
        prior, _ = ragged_prior(rng)
        shared = replace(prior, widths=tuple(3 * width for width in prior.widths), n_outputs=3)
        repeated = Prior(
            shared.widths,
            tuple(g if len(g) == 1 else np.kron(np.eye(3), g) for g in prior.group_grams),
        )
        log_rho = rng.standard_normal(prior.n_groups)
        root = rng.standard_normal((33, 60))
        gram, mean = root @ root.T, rng.standard_normal(33)
        found, expected = (each.precision(log_rho) for each in (shared, repeated))
        assert found.log_det_covariance == pytest.approx(expected.log_det_covariance)
        assert_close(found.energy(mean), expected.energy(mean), "rounding")
        covariance = Dense(np.linalg.inv(gram))
        assert_close(found.effective(covariance), expected.effective(covariance), "rounding")
        alone = [each.alone(gram, 0.5) for each in (found, expected)]
        assert alone[0].log_det == pytest.approx(alone[1].log_det)
        assert_close(alone[0].effective, alone[1].effective, "rounding")
        products = [
            each.prior.times(blocks, np.ones(33), mean)
            for each, one in zip((found, expected), alone, strict=True)
            for blocks in (each.inverse, one.covariance)
        ]
        assert_close(products[0], products[2], "rounding")
        assert_close(products[1], products[3], "rounding")
        matrices = np.zeros((2, 33, 33))
        found.add_to(matrices[0])
        expected.add_to(matrices[1])
        assert_close(*matrices, "rounding")

    def test_exempt_terms_have_no_penalty(self):
        """Those of which every group of rows is a repetition."""
        rng = np.random.default_rng(0)
        prior, blocks = ragged_prior(rng)
        root, log_rho = rng.standard_normal((11, 20)), rng.standard_normal(prior.n_groups)
        gram = root @ root.T
        whole = prior.precision(log_rho).alone(gram)
        terms = zip(prior.group_grams, prior.widths, strict=True)
        for k in [k for k, (grams, width) in enumerate(terms) if len(grams) > 1 and width]:
            groups = prior.groups[k]
            exempt = frozenset(range(groups.start, groups.stop))
            alone = replace(prior, exempt=exempt).precision(log_rho).alone(gram)
            block = gram[prior.blocks[k], prior.blocks[k]]
            own = np.linalg.slogdet(np.eye(len(block)) + block @ blocks(log_rho)[k])[1]
            assert whole.log_det - alone.log_det == pytest.approx(own)
            expected = whole.effective.copy()
            expected[groups] = 0.0
            np.testing.assert_allclose(alone.penalised, expected)
            np.testing.assert_allclose(alone.effective, whole.effective)

    def test_terms_with_one_group_have_no_penalty(self):
        prior = Prior((3, 2), (np.ones((1, 1, 1)), np.ones((1, 1, 1))))
        alone = prior.precision(np.zeros(2)).alone(np.eye(6))
        value, gradient = alone.log_det, alone.effective
        assert value == 0.0
        np.testing.assert_array_equal(gradient, [0.0, 0.0])

    def test_no_terms_at_all(self):
        model = LinearModel(
            np.array([[10.0]]), np.array([20.0]), -25.0, Prior((), ()), 10.0, np.empty(0)
        )
        found = solve(model, Hyper(np.empty(0), 0.5), True)
        assert found.mean[0] == pytest.approx(2.0, rel=1e-6)
        expected = (-25.0 + 20.0) / 0.5 - 5.0 * np.log(2 * np.pi * 0.5)
        assert found.evidence == pytest.approx(expected, rel=1e-6)


class TestInverse:
    def test_is_the_inverse(self):
        root = np.random.default_rng(0).standard_normal((6, 9))
        matrix = root @ root.T
        inverse, log_det = inverse_and_log_det(matrix)
        assert_close(inverse, np.linalg.inv(matrix), "rounding")
        np.testing.assert_array_equal(inverse, inverse.T)
        assert log_det == pytest.approx(np.linalg.slogdet(matrix)[1])

    def test_of_nothing(self):
        inverse, log_det = inverse_and_log_det(np.empty((0, 0)))
        assert inverse.shape == (0, 0)
        assert log_det == 0.0

    def test_what_is_not_positive_definite_is_refused(self):
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            inverse_and_log_det(np.diag([1.0, -1.0]))


def test_the_tuning_penalty_grows_with_columns_per_row():
    assert evidence.tuning_penalty(10, 1e9) == pytest.approx(evidence.TUNING_PENALTY)
    assert evidence.tuning_penalty(50, 100.0) == pytest.approx(evidence.TUNING_PENALTY + 0.5)
    assert evidence.tuning_penalty(900, 100.0) == pytest.approx(evidence.TUNING_PENALTY + 1.0)
