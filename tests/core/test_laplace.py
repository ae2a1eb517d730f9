"""The Laplace evidence at given networks, against dense matrices and finite differences."""

import numpy as np
import pytest

from lanam.core.fit.solvers import CURVATURES
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem
from lanam.core.paper import laplace
from lanam.core.paper.laplace import LogHyper
from lanam.core.rows import statistics
from lanam.core.terms import linearise, networks
from tests.core import in_memory
from tests.likelihoods import LIKELIHOODS
from tests.oracles import (
    block_diagonal,
    differences,
    interpolation_matrix,
    kron_curvature,
    laplace_evidence,
    log_likelihood,
)


@pytest.fixture(autouse=True)
def _compress_without_loss(monkeypatch):
    monkeypatch.setattr(linearise, "RANK_TOLERANCE", 1e-10)


VARIANTS = [("joint", "exact"), ("block", "exact"), ("block", "kron")]


class Case:
    """Random networks on a small problem, with rows of different weights."""

    def __init__(self, likelihood, posterior, prior_groups, max_knots=128):
        rng = np.random.default_rng(0)
        columns = rng.normal(size=(60, 2)).round(1)
        y = np.sin(2.0 * columns[:, 0]) + columns[:, 1] + 0.3 * rng.normal(size=60)
        if likelihood == "bernoulli":
            y = (y > 0.0).astype(float)
        weight = rng.uniform(0.5, 2.0, size=60)
        options = Options(
            hidden_sizes=(4,), init_scales=(1.0,), prior_groups=prior_groups, max_knots=max_knots
        )
        prepared = in_memory.prepared(columns, y, weight, LIKELIHOODS[likelihood], options)
        self.problem = Problem.of(
            prepared.terms, prepared.rows, LIKELIHOODS[likelihood], posterior == "joint"
        )
        self.likelihood, self.weight = likelihood, weight
        self.thetas = [
            1.5 * networks.initialise(term.architecture, rng) for term in self.problem.terms
        ]
        n_groups = 2 * (3 if prior_groups == "layer" else 1)
        log_noise = -0.7 if likelihood == "gaussian" else 0.0
        self.hyper = LogHyper(0.3 * rng.normal(size=n_groups), log_noise)
        self.state = laplace.state_of(
            self.problem, [theta[None] for theta in self.thetas], np.array([0.2]), self.hyper
        )

    def approximate(self, curvature):
        return laplace.approximate(self.problem, self.state, CURVATURES[curvature])

    def dense_evidence(self, hyper, posterior, curvature):
        """Dense evidence from the rows and the networks, without compression."""
        problem = self.problem
        readers = [
            interpolation_matrix(position, size)
            for position, size in zip(problem.rows.positions, problem.rows.sizes, strict=True)
        ]
        inputs = [term.entries.inputs[:, None] for term in problem.terms]
        f = 0.2 + sum(
            reader @ networks.forward(term.architecture, theta, x)
            for reader, term, theta, x in zip(
                readers, problem.terms, self.thetas, inputs, strict=True
            )
        )
        noise = np.exp(hyper.log_noise)
        gamma = self.weight * problem.likelihood.curvature(f) / noise
        if curvature == "kron":
            hessian = block_diagonal(
                [
                    kron_curvature((4,), "gelu", theta, reader @ x, self.weight, gamma)
                    for reader, theta, x in zip(readers, self.thetas, inputs, strict=True)
                ]
            )
        else:
            rows = [
                reader @ term.jacobian(theta)
                for reader, term, theta in zip(readers, problem.terms, self.thetas, strict=True)
            ]
            # Terms are centred over the data.
            rows = [part - self.weight @ part / self.weight.sum() for part in rows]
            hessian = np.hstack(rows).T @ np.diag(gamma) @ np.hstack(rows)
            if posterior == "block":
                size = rows[0].shape[1]
                hessian = block_diagonal([hessian[:size, :size], hessian[size:, size:]])
        theta, split = np.concatenate(self.thetas), len(hyper.log_precision) // 2
        precision = np.concatenate(
            [
                np.exp(own)[term.group_index]
                for own, term in zip(
                    [hyper.log_precision[:split], hyper.log_precision[split:]],
                    problem.terms,
                    strict=True,
                )
            ]
        )
        value = log_likelihood(self.likelihood, problem.rows.y, f, self.weight, noise)
        return laplace_evidence(value, theta, hessian, precision)


@pytest.mark.parametrize("prior_groups", ["layer", "network"])
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.parametrize(("posterior", "curvature"), VARIANTS)
class TestEvidence:
    def test_value_is_the_dense_one(self, likelihood, posterior, curvature, prior_groups):
        case = Case(likelihood, posterior, prior_groups)
        # Also away from where the tables were computed, as far as one round of steps goes.
        for step in (0.0, 1.0, -1.0, 2.5, -2.5):
            moved = np.append(np.full(len(case.hyper.log_precision), step), 0.3 * step)
            hyper = case.hyper.moved(moved, LIKELIHOODS[likelihood].noise_bounds)
            found = case.approximate(curvature).evidence(hyper).value
            expected = case.dense_evidence(hyper, posterior, curvature)
            assert found == pytest.approx(expected, abs=1e-5)

    def test_gradient_is_the_finite_difference(
        self, likelihood, posterior, curvature, prior_groups
    ):
        case = Case(likelihood, posterior, prior_groups)
        now = case.approximate(curvature)

        def value(logs):
            return now.evidence(LogHyper(logs[:-1], logs[-1])).value

        # Away from where the tables were computed.
        logs = np.append(case.hyper.log_precision, case.hyper.log_noise) - 0.4
        if likelihood == "bernoulli":
            logs[-1] = 0.0
        slope = now.evidence(LogHyper(logs[:-1], logs[-1])).gradient
        expected = differences(value, logs, 1e-5)
        if likelihood == "bernoulli":
            assert slope[-1] == 0.0
            slope, expected = slope[:-1], expected[:-1]
        np.testing.assert_allclose(slope, expected, atol=1e-5)
        assert np.abs(slope).min() > 1e-3


def test_every_variant_has_a_different_evidence():
    values = [
        Case("gaussian", posterior, "layer").approximate(curvature)
        for posterior, curvature in VARIANTS
    ]
    hyper = Case("gaussian", "joint", "layer").hyper
    found = [now.evidence(hyper).value for now in values]
    assert min(abs(a - b) for i, a in enumerate(found) for b in found[:i]) > 0.01
    # Without the correlations of terms the determinant is larger (paper, eq. marglik's bound).
    assert found[1] < found[0]


def test_mackays_updates_point_where_the_evidence_rises():
    case = Case("gaussian", "block", "layer")
    now = case.approximate("exact")
    hyper = case.hyper
    for _ in range(200):
        step = now.mackay_step(hyper, now.evidence(hyper))
        hyper = hyper.moved(np.clip(step, -0.1, 0.1), (1e-6, 4.0))
    value = now.evidence(hyper)
    # A fixed point is a stationary point, but for the intercept's degree of freedom.
    inside = np.abs(hyper.log_precision) < 8.0
    assert inside.any()
    np.testing.assert_allclose(value.gradient[:-1][inside], 0.0, atol=1e-2)
    assert value.gradient[-1] == pytest.approx(-0.5, abs=1e-2)
    assert value.value > now.evidence(case.hyper).value


def test_centring_changes_no_prediction():
    case = Case("gaussian", "joint", "layer", max_knots=8)
    rows = case.problem.rows
    plain = [
        networks.forward(term.architecture, theta, term.entries.inputs[:, None])
        for term, theta in zip(case.problem.terms, case.thetas, strict=True)
    ]
    centred = statistics.predict(rows, case.state.values, case.state.intercept)
    np.testing.assert_allclose(centred, statistics.predict(rows, plain, 0.2), atol=1e-12)
    for share, values in zip(case.problem.data_mass, case.state.values, strict=True):
        assert share @ values == pytest.approx(0.0, abs=1e-12)


def test_hyperparameters_stay_within_bounds():
    hyper = LogHyper(np.zeros(2), 0.0)
    far = hyper.moved(np.array([1e3, -1e3, -1e3]), (1e-6, 4.0))
    assert np.isfinite(far.log_precision).all()
    assert far.noise == pytest.approx(1e-6)
    assert hyper.moved(np.array([0.1, 0.1, 5.0]), (1e-6, 4.0)).noise == pytest.approx(4.0)
    assert hyper.moved(np.array([0.1, 0.1, 5.0]), None).noise == 1.0
