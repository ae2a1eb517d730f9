"""The posterior a fit ends with, against dense matrices in parameter space."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from lanam.core.fit.assembly import assemble
from lanam.core.inference import gauss_newton, posterior
from lanam.core.inference.evidence import Hyper, solve
from lanam.core.inference.problem import UNSEEN_PRECISION, Regression
from lanam.core.rows import statistics
from tests.core import in_memory
from tests.core.examples import SMALL, additive_data, started
from tests.oracles import DensePosterior, assert_close, interpolation_matrix


def rng():
    return np.random.default_rng(0)


def dense_parts(problem, state):
    """Features of the rows, and precisions, of all parameters together."""
    rows = problem.rows
    phi = np.hstack(
        [
            interpolation_matrix(p, n) @ known.jacobian
            for p, n, known in zip(rows.positions, rows.sizes, state.terms, strict=True)
        ]
    )
    precision = np.concatenate(
        [k.precision[t.group_index] for t, k in zip(problem.terms, state.terms, strict=True)]
    )
    ends = np.cumsum([known.jacobian.shape[1] for known in state.terms])
    widths = np.diff(ends, prepend=0)
    blocks = [slice(e - w, e) for e, w in zip(ends, widths, strict=True)]
    return phi, precision, blocks


@pytest.fixture(params=["joint", "block"])
def kind(request):
    return request.param


@pytest.fixture
def gaussian(kind):
    options = replace(SMALL, posterior=kind)
    problem, state = started(*additive_data(), options=options)
    state, _ = gauss_newton.converge(
        problem, state, gauss_newton.Limits(20, 0.05), lambda state: None
    )
    return problem, state


@pytest.mark.usefixtures("given_hyperparameters")
class TestGaussian:
    def dense(self, problem, state):
        phi, precision, blocks = dense_parts(problem, state)
        rows = problem.rows
        return DensePosterior(
            phi,
            precision,
            rows.y,
            rows.weight,
            state.noise,
            None if problem.joint else blocks,
        ), blocks

    def test_functions_at_all_entries(self, gaussian, lossless):
        # With UNSEEN_PRECISION every entry counts, also those beyond the data.
        problem, state = gaussian
        found = posterior.ExactCurvature().solution(problem, state)
        dense, blocks = self.dense(problem, state)
        widths = [table.shape[1] for table in found.tables]
        ends = np.cumsum(widths)
        for k, known in enumerate(state.terms):
            own = slice(ends[k] - widths[k], ends[k])
            covariance = found.tables[k] @ found.covariance[own, own] @ found.tables[k].T
            jacobian = known.jacobian
            expected = jacobian @ dense.covariance[blocks[k], blocks[k]] @ jacobian.T
            assert_close(covariance, expected, "conditioning")
            assert_close(found.means[k], jacobian @ dense.mean[blocks[k]], "conditioning")
        assert found.intercept == pytest.approx(dense.mean[-1], abs=1e-6)
        assert_close(found.evidence, dense.log_evidence, "conditioning")

    def test_compression_keeps_the_bands_beyond_the_data(self, gaussian):
        problem, state = gaussian
        found = posterior.ExactCurvature().solution(problem, state)
        dense, blocks = self.dense(problem, state)
        ends = np.cumsum([table.shape[1] for table in found.tables])
        for k, known in enumerate(state.terms):
            own = slice(ends[k] - found.tables[k].shape[1], ends[k])
            covariance = found.tables[k] @ found.covariance[own, own] @ found.tables[k].T
            expected = known.jacobian @ dense.covariance[blocks[k], blocks[k]] @ known.jacobian.T
            lost = np.sqrt(np.diag(expected)) - np.sqrt(np.diag(covariance))
            # Two per cent of the response's spread, which is 1.
            assert np.abs(lost).max() < 0.02

    def test_effective_parameters(self, gaussian, lossless):
        problem, state = gaussian
        found = posterior.ExactCurvature().solution(problem, state)
        dense, blocks = self.dense(problem, state)
        expected = [dense.effective[block].sum() for block in blocks]
        assert_close(found.effective, expected, "conditioning")

    @pytest.mark.parametrize("kind", ["joint"])  # blocks ignore that other terms are substitutes
    def test_the_log_evidence_gain_is_against_the_model_without_the_term(self, gaussian, lossless):
        problem, state = gaussian
        found = posterior.ExactCurvature().solution(problem, state)
        for k in range(2):
            without = replace(state, terms=(state.terms[1 - k],))
            dense, _ = self.dense(problem.keep([1 - k]), without)
            assert_close(
                found.log_evidence_gains[k], found.evidence - dense.log_evidence, "conditioning"
            )

    def test_what_is_handed_on(self, gaussian):
        problem, state = gaussian
        found = posterior.ExactCurvature().solution(problem, state)
        units = in_memory.units(*additive_data()[1:], problem.likelihood)
        model = assemble(units, problem, state, found, [])
        assert model.noise_variance == pytest.approx(state.noise * units.scale**2)
        for term, known in zip(model.terms, state.terms, strict=True):
            np.testing.assert_array_equal(term.precision, known.precision)
        off_diagonal = found.covariance[: found.tables[0].shape[1], found.tables[0].shape[1] : -1]
        assert off_diagonal.any() == problem.joint


@pytest.mark.usefixtures("given_hyperparameters")
class TestBernoulli:
    @pytest.fixture
    def fitted(self, kind):
        options = replace(SMALL, posterior=kind)
        problem, state = started(
            *additive_data(likelihood="bernoulli"), "bernoulli", options=options
        )
        state, _ = gauss_newton.converge(
            problem, state, gauss_newton.Limits(50, 0.01), lambda state: None
        )
        return problem, state

    def test_the_mean_is_the_mode(self, fitted):
        """The slope of ``log p(y | f) - 1/2 z' z`` vanishes at the mean."""
        problem, state = fitted
        found = posterior.ExactCurvature().solution(problem, state)
        rows = problem.rows
        f = np.full(len(rows), found.intercept)
        for position, mean in zip(rows.positions, found.means, strict=True):
            f += interpolation_matrix(position, len(mean)) @ mean
        residual = rows.weight * (rows.y - expit(f))
        assert abs(residual.sum()) < 0.01
        for position, mean, table in zip(rows.positions, found.means, found.tables, strict=True):
            features = interpolation_matrix(position, len(mean)) @ table
            z = np.linalg.lstsq(table, mean, rcond=None)[0]
            slope = features.T @ residual - z
            # In units of the prior's deviation; without the fit it is of the order of ten.
            assert np.abs(features.T @ (rows.weight * (rows.y - rows.y.mean()))).max() > 1.0
            assert np.abs(slope).max() < 0.02

    def test_covariance_is_the_inverse_curvature_there(self, fitted, lossless):
        problem, state = fitted
        found = posterior.ExactCurvature().solution(problem, state)
        rows = problem.rows
        p = expit(statistics.predict(rows, state.values, state.intercept))
        phi, precision, blocks = dense_parts(problem, state)
        # Slope and curvature of the Bernoulli around the state, as a weighted regression.
        gamma = rows.weight * p * (1 - p)
        f = statistics.predict(rows, state.values, state.intercept)
        working = f + (rows.y - p) / (p * (1 - p))
        dense = DensePosterior(
            phi, precision, working, gamma, 1.0, None if problem.joint else blocks
        )
        ends = np.cumsum([table.shape[1] for table in found.tables])
        for k, known in enumerate(state.terms):
            own = slice(ends[k] - found.tables[k].shape[1], ends[k])
            covariance = found.tables[k] @ found.covariance[own, own] @ found.tables[k].T
            expected = known.jacobian @ dense.covariance[blocks[k], blocks[k]] @ known.jacobian.T
            assert_close(covariance, expected, "conditioning")
            assert_close(found.means[k], known.jacobian @ dense.mean[blocks[k]], "conditioning")
        # An improper prior weighs nothing: only the difference to the likelihood's own constants.
        likelihood = rows.weight @ np.log(np.where(rows.y == 1.0, p, 1 - p))
        expansion = dense.log_likelihood + 0.5 * gamma.sum() * np.log(2 * np.pi)
        at_state = -0.5 * gamma @ (working - f) ** 2
        expected = dense.log_evidence - dense.log_likelihood + likelihood + expansion - at_state
        assert_close(found.evidence, expected, "conditioning")


def test_unseen_precision_changes_no_regression():
    # It determines which directions are kept, not their posterior.
    problem, state = started(*additive_data())
    state, _ = gauss_newton.converge(
        problem, state, gauss_newton.Limits(20, 0.05), lambda state: None
    )
    plain = Regression.of(problem, state)
    wide = Regression.of(problem, state, UNSEEN_PRECISION)
    assert len(wide.model.target) > len(plain.model.target)
    results = [
        solve(one.model, Hyper(np.zeros(one.model.prior.n_groups), state.noise), True)
        for one in (plain, wide)
    ]
    assert results[0].evidence == pytest.approx(results[1].evidence, abs=0.01)
