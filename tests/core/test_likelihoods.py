"""Likelihoods: slopes and curvatures against finite differences, densities against scipy."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import bernoulli, norm, poisson

from lanam.core.noise.residuals import LogVariance
from tests.likelihoods import LIKELIHOODS
from tests.oracles import assert_close

F = np.array([-30.0, -3.0, -0.2, 0.0, 0.7, 4.0, 30.0])
Y = {
    "gaussian": np.array([1.0, -2.0, 0.0, 0.5, 3.0, -1.0, 2.0]),
    "bernoulli": np.arange(7.0) % 2,
    "poisson": np.array([0.0, 3.0, 1.0, 0.0, 7.0, 2.5, 40.0]),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
class TestEveryLikelihood:
    def test_gradient(self, name):
        likelihood, y = LIKELIHOODS[name], Y[name]
        finite = (likelihood.log_prob(y, F + 1e-5) - likelihood.log_prob(y, F - 1e-5)) / 2e-5
        assert_close(likelihood.gradient(y, F), finite, "finite differences")

    def test_curvature(self, name):
        likelihood, y = LIKELIHOODS[name], Y[name]
        finite = -(likelihood.gradient(y, F + 1e-5) - likelihood.gradient(y, F - 1e-5)) / 2e-5
        assert_close(likelihood.curvature(F), finite, "finite differences")

    def test_the_intercept_only_fit_is_the_best_constant(self, name):
        likelihood, y = LIKELIHOODS[name], Y[name]
        weight = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 0.2])
        constant = np.full(7, likelihood.fit_intercept_only(y, weight))
        assert weight @ likelihood.gradient(y, constant) == pytest.approx(0.0, abs=1e-12)

    def test_its_name(self, name):
        assert LIKELIHOODS[name].name == name


def test_gaussian_is_the_normal_density_at_unit_noise_without_its_constant():
    y = Y["gaussian"]
    expected = norm.logpdf(y, F) - norm.logpdf(0.0)
    assert_close(LIKELIHOODS["gaussian"].log_prob(y, F), expected, "rounding")


def test_bernoulli_is_the_mass_of_the_log_odds_even_far_out():
    y = Y["bernoulli"]
    expected = bernoulli.logpmf(y[1:-1], expit(F[1:-1]))
    assert_close(LIKELIHOODS["bernoulli"].log_prob(y, F)[1:-1], expected, "rounding")
    far = LIKELIHOODS["bernoulli"].log_prob(np.array([1.0, 0.0]), np.array([-800.0, 800.0]))
    np.testing.assert_allclose(far, -800.0)


def test_poisson_and_its_constant_are_the_mass_of_counts_with_exposure():
    rng = np.random.default_rng(0)
    counts, exposure = rng.poisson(3.0, size=50).astype(float), rng.uniform(0.1, 9.0, size=50)
    weight, f = rng.uniform(0.5, 2.0, size=50), rng.normal(size=50)
    likelihood = LIKELIHOODS["poisson"]
    found = (weight * exposure) @ likelihood.log_prob(counts / exposure, f)
    # As at unit noise, whose constant every observation has.
    found -= 0.5 * weight.sum() * np.log(2.0 * np.pi)
    found += likelihood.constant(counts, weight)
    expected = weight @ poisson.logpmf(counts, exposure * np.exp(f))
    assert found == pytest.approx(expected, rel=1e-12)


def test_poisson_is_minus_half_the_deviance():
    y = Y["poisson"]
    saturated = LIKELIHOODS["poisson"].log_prob(y[1:3], np.log(y[1:3]))
    np.testing.assert_allclose(saturated, 0.0, atol=1e-12)
    found = LIKELIHOODS["poisson"].log_prob(y, F)
    assert (found <= 0.0).all()
    assert found[0] == pytest.approx(-np.exp(-30.0))


def test_a_rate_beyond_floats_gives_finite_values():
    likelihood, f = LIKELIHOODS["poisson"], np.array([1e4, -1e4])
    for value in (likelihood.log_prob(np.ones(2), f), likelihood.gradient(np.ones(2), f)):
        assert np.isfinite(value).all()
    np.testing.assert_array_less(likelihood.log_prob(np.ones(2), f), -1e3)
    assert likelihood.curvature(f)[1] == 0.0


class TestLogVariance:
    squares = np.array([0.0, 0.3, 1.0, 2.5, 9.0, 0.01, 4.0])
    f = np.array([-3.0, -1.0, -0.2, 0.0, 0.7, 1.5, 4.0])

    def test_is_the_normal_density_of_the_residual_without_its_constant(self):
        expected = norm.logpdf(np.sqrt(self.squares), 0.0, np.exp(0.5 * self.f))
        found = LogVariance().log_prob(self.squares, self.f) - 0.5 * np.log(2.0 * np.pi)
        assert_close(found, expected, "rounding")

    def test_gradient(self):
        ends = [LogVariance().log_prob(self.squares, self.f + step) for step in (1e-5, -1e-5)]
        found = LogVariance().gradient(self.squares, self.f)
        assert_close(found, (ends[0] - ends[1]) / 2e-5, "finite differences")

    def test_curvature_is_the_mean_over_residuals(self):
        f = np.full(200_000, 0.7)
        squares = np.exp(f) * np.random.default_rng(0).chisquare(1, size=len(f))
        own = (
            -(LogVariance().gradient(squares, f + 1e-4) - LogVariance().gradient(squares, f - 1e-4))
            / 2e-4
        )
        assert own.mean() == pytest.approx(LogVariance().curvature(f)[0], rel=0.02)

    def test_the_intercept_only_fit_is_the_best_constant(self):
        weight = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 0.2])
        constant = np.full(7, LogVariance().fit_intercept_only(self.squares, weight))
        slopes = LogVariance().gradient(self.squares, constant)
        assert weight @ slopes == pytest.approx(0.0, abs=1e-12)

    def test_extreme_predictions_give_finite_values(self):
        far = np.array([-1e4, 1e4])
        assert np.isfinite(LogVariance().log_prob(np.ones(2), far)).all()
        assert np.isfinite(LogVariance().gradient(np.ones(2), far)).all()
