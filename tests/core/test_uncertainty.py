"""The uncertainty of precisions and noise: closed forms against finite differences and draws."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from lanam import LANAMRegressor, load
from lanam.core.inference import evidence, gauss_newton, uncertainty
from lanam.core.inference.evidence import Hyper, gradient, noise_gradient, solve
from lanam.core.inference.posterior import ExactCurvature, of_regression
from lanam.core.inference.problem import UNSEEN_PRECISION, Regression
from lanam.core.model.mixtures import GAUSSIAN, Mixture, integrated_noise, standardised
from tests.core.examples import SMALL, additive_data, started
from tests.core.test_high_cardinality import WideCase
from tests.oracles import assert_close, differences


@pytest.fixture(params=["gaussian", "bernoulli"])
def linear(request, monkeypatch):
    """A tuned regression."""
    # A flat prior of the intercept: means then depend on ratios of variances only.
    monkeypatch.setattr(evidence, "INTERCEPT_PRECISION", 0.0)
    problem, state = started(*additive_data(likelihood=request.param), request.param)
    limits = gauss_newton.Limits(20, 0.05)
    state, _ = gauss_newton.converge(problem, state, limits, lambda state: None)
    return Regression.of(problem, state, UNSEEN_PRECISION)


def at(model, noise, tau):
    """The posterior at log variances relative to the noise, then the log noise."""
    nu = tau[-1] if model.n_rows is not None else 0.0
    hyper = Hyper(tau[: model.prior.n_groups] + nu, noise * np.exp(nu))
    return solve(model, hyper, joint=True), hyper


def gradients(model, noise, tau):
    posterior, hyper = at(model, noise, tau)
    of_groups = gradient(posterior)
    if model.n_rows is None:
        return of_groups
    # At fixed ratios, all variances rise with the noise.
    return np.append(
        of_groups, of_groups.sum() + noise_gradient(model, posterior, float(hyper.noise))
    )


def origin(model):
    return np.zeros(model.prior.n_groups + (model.n_rows is not None))


def test_hessian(linear):
    model, noise = linear.model, linear.state.noise
    found = uncertainty.hessian(model, noise, linear.solve())
    expected = differences(lambda tau: gradients(model, noise, tau), origin(model), 1e-5)
    assert_close(found, expected, "finite differences")
    assert_close(found, found.T, "rounding")


def test_covariance(linear):
    # S + J V J' + sum_jk V_jk D_j S^-1 D_k / 4, all derivatives by differences
    model, noise, posterior = linear.model, linear.state.noise, linear.solve()
    means = differences(lambda tau: at(model, noise, tau)[0].mean, origin(model), 1e-5)
    changes = differences(
        lambda tau: at(model, noise, tau)[0].covariance.ravel(), origin(model), 1e-5
    ).T.reshape(-1, *posterior.covariance.shape)
    hessian = uncertainty.hessian(model, noise, posterior)
    variances = uncertainty.hyper_covariance(hessian, 0.02)
    closer = uncertainty.hyper_covariance(hessian, 0.25)
    expected = posterior.covariance + means @ variances @ means.T
    inverse = np.linalg.inv(posterior.covariance)
    for j, one in enumerate(changes):
        for k, other in enumerate(changes):
            expected += 0.25 * closer[j, k] * one @ inverse @ other
    found, _ = uncertainty.integrate(model, noise, posterior)
    assert_close(found.covariance, expected, "finite differences")
    np.testing.assert_array_equal(found.mean, posterior.mean)
    assert np.linalg.eigvalsh(found.covariance - posterior.covariance)[0] > -1e-12


def test_is_the_covariance_of_draws_for_small_uncertainty(linear, monkeypatch):
    # Hyperparameters are drawn, then coordinates by the root that is symmetric in the posterior's metric.
    monkeypatch.setattr(uncertainty, "HYPERPRIOR_PRECISION", 200.0)
    monkeypatch.setattr(uncertainty, "COVARIANCE_PRECISION", 200.0)
    model, noise, posterior = linear.model, linear.state.noise, linear.solve()
    hessian = uncertainty.hessian(model, noise, posterior)
    variances = uncertainty.hyper_covariance(hessian, 200.0)
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(variances)
    second, total, n_draws = 0.0, 0.0, 1000
    for draw in rng.standard_normal((n_draws, len(variances))):
        one, _ = at(model, noise, root @ draw)
        total = total + one.mean / n_draws
        second = second + (one.covariance + np.outer(one.mean, one.mean)) / n_draws
    expected = second - np.outer(total, total)
    found = uncertainty.integrate(model, noise, posterior)[0].covariance
    # A thousand draws; and E[S] is approximated by that of its root's first-order changes.
    whitened = np.linalg.solve(posterior.covariance, expected - found)
    assert np.abs(np.trace(whitened)) < 0.02 * len(found)


def test_flat_directions_have_the_prior_variance():
    hessian = np.diag([-2.0, 0.0, 3.0])
    expected = np.diag(1.0 / np.array([2.02, 0.02, 0.02]))
    assert_close(uncertainty.hyper_covariance(hessian, 0.02), expected, "rounding")


class TestHighCardinality:
    @pytest.fixture
    def case(self, monkeypatch):
        monkeypatch.setattr(evidence, "INTERCEPT_PRECISION", 0.0)
        return WideCase(n=200)

    def test_first_order_is_that_of_coordinates(self, case, monkeypatch):
        monkeypatch.setattr(uncertainty, "_covariance_changes", lambda *given: 0.0)
        noise, (others, _) = 0.7, case.places
        hyper = Hyper(np.zeros(4), noise)
        wide, narrow = case.model(wide=True), case.model(wide=False)
        found, _ = uncertainty.integrate(wide, noise, solve(wide, hyper, joint=True))
        dense, _ = uncertainty.integrate(narrow, noise, solve(narrow, hyper, joint=True))
        # The differences for the one group.
        expected = dense.covariance[np.ix_(others, others)]
        assert_close(found.covariance, expected, "finite differences")

    def test_categories_are_more_uncertain(self, case):
        noise, (_, levels) = 0.7, case.places
        hyper = Hyper(np.zeros(4), noise)
        wide, narrow = case.model(wide=True), case.model(wide=False)
        before = solve(wide, hyper, joint=True)
        found, _ = uncertainty.integrate(wide, noise, before)
        dense, _ = uncertainty.integrate(narrow, noise, solve(narrow, hyper, joint=True))

        def variances(posterior):
            own = posterior.levels
            return own.variance + np.einsum(
                "ki,ij,kj->k", own.coupling, posterior.covariance, own.coupling
            )

        assert (variances(found) > variances(before)).all()
        # What they have in common through their variance is neglected: most of it is the intercept's.
        np.testing.assert_allclose(variances(found), np.diag(dense.covariance)[levels], rtol=0.1)


@pytest.mark.parametrize("posterior", ["joint", "block"])
def test_only_the_joint_posterior_has_it(posterior):
    problem, state = started(*additive_data(), options=replace(SMALL, posterior=posterior))
    linear = Regression.of(problem, state, UNSEEN_PRECISION)
    found = ExactCurvature().solution(problem, state)
    given = of_regression(linear, linear.solve())
    wider = np.diag(found.covariance) > np.diag(given.covariance) * (1.0 + 1e-9)
    assert wider.all() == wider.any() == (posterior == "joint")
    assert found.log_evidence_gains == given.log_evidence_gains
    assert found.effective == given.effective


def test_bands_hold_more_of_a_known_function(monkeypatch):
    def coverage():
        inside = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X = rng.uniform(size=(200, 2))
            terms = np.column_stack([np.exp(2.0 * X[:, 0]), 2.0 * np.sin(np.pi * X[:, 1])])
            terms -= terms.mean(axis=0)
            y = terms.sum(axis=1) + 2.0 * rng.standard_normal(200)
            local = LANAMRegressor(interactions=0, noise="constant").fit(X, y).explain_local(X)
            inside.append(np.abs(local.contributions - terms) <= 1.96 * local.contributions_std)
        return np.mean(inside)

    wider = coverage()
    monkeypatch.setattr(uncertainty, "integrate", lambda model, noise, given: (given, np.inf))
    assert wider > coverage() + 0.01


class TestNoise:
    def test_given_the_mean_alone_it_is_students_t(self):
        # The textbook's interval of a normal sample, but for the mean's error, which is normal here.
        y = np.random.default_rng(0).normal(5.0, 2.0, 12)
        X = np.ones((12, 1))
        model = LANAMRegressor().fit(X, y)
        assert model._model.noise_df == pytest.approx(11.0, rel=0.01)
        lower, upper = model.predict_interval(X[:1], 0.95)[0]
        expected = student.ppf(0.975, 11) * y.std(ddof=1) * np.sqrt(1.0 + 1.0 / 12)
        assert (upper - lower) / 2.0 == pytest.approx(expected, rel=0.01)
        assert (upper + lower) / 2.0 == pytest.approx(y.mean())

    def test_many_rows_know_their_noise(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(400, 1))
        model = LANAMRegressor(interactions=0).fit(X, rng.standard_normal(400))
        assert model._model.noise_df == np.inf

    def test_others_have_none(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(30, 1))
        counts = LANAMRegressor(likelihood="poisson", interactions=0).fit(X, rng.poisson(5.0, 30))
        block = LANAMRegressor(posterior="block", interactions=0).fit(X, rng.standard_normal(30))
        assert counts._model.noise_df == block._model.noise_df == np.inf

    @pytest.mark.parametrize("df", [6.0, 20.0, 100.0])
    def test_quadrature(self, df):
        factor, shape = integrated_noise(GAUSSIAN, df)
        rows = Mixture(np.zeros(1), np.zeros(1), np.full(1, factor), shape)
        for probability in (0.6, 0.9, 0.975):
            # Tails far out are lighter, and shortest for few degrees of freedom.
            expected = student.ppf(probability, df)
            assert rows.ppf(probability)[0] == pytest.approx(expected, rel=0.01)
        assert float(shape.weights @ (shape.means**2 + shape.stds**2)) == pytest.approx(1.0)

    def test_a_learned_shape_is_widened(self):
        given = standardised(np.array([0.7, 0.3]), np.array([-0.5, 1.0]), np.array([0.5, 1.5]))
        factor, shape = integrated_noise(given, 50.0)
        assert len(shape.weights) == 6
        assert factor == pytest.approx(50.0 / 48.0, rel=1e-3)
        assert float(shape.weights @ shape.means) == pytest.approx(0.0, abs=1e-12)
        assert float(shape.weights @ (shape.means**2 + shape.stds**2)) == pytest.approx(1.0)
        assert shape.excess_kurtosis > given.excess_kurtosis

    def test_is_in_the_file(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(25, 1))
        model = LANAMRegressor(interactions=0).fit(X, rng.standard_normal(25))
        model.save(tmp_path / "model.lanam")
        loaded = load(tmp_path / "model.lanam")
        assert loaded._model.noise_df == model._model.noise_df < 30.0
        np.testing.assert_array_equal(
            loaded.predict_interval(X, 0.9), model.predict_interval(X, 0.9)
        )
