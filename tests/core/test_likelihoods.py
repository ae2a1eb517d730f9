"""Likelihoods: slopes and curvatures against finite differences, densities against scipy."""

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit
from scipy.stats import bernoulli, norm

from lanam.core.likelihoods import (
    LIKELIHOODS,
    gaussian_log_density,
    moderated_log_odds,
)
from tests.oracles import assert_close

F = np.array([-30.0, -3.0, -0.2, 0.0, 0.7, 4.0, 30.0])
Y = {"gaussian": np.array([1.0, -2.0, 0.0, 0.5, 3.0, -1.0, 2.0]), "bernoulli": np.arange(7.0) % 2}


@pytest.mark.parametrize("name", LIKELIHOODS)
class TestEveryLikelihood:
    def test_slope(self, name):
        likelihood, y = LIKELIHOODS[name], Y[name]
        finite = (likelihood.log_prob(y, F + 1e-5) - likelihood.log_prob(y, F - 1e-5)) / 2e-5
        assert_close(likelihood.slope(y, F), finite, "finite differences")

    def test_curvature(self, name):
        likelihood, y = LIKELIHOODS[name], Y[name]
        finite = -(likelihood.slope(y, F + 1e-5) - likelihood.slope(y, F - 1e-5)) / 2e-5
        assert_close(likelihood.curvature(F), finite, "finite differences")

    def test_start_is_the_best_constant(self, name):
        likelihood, y = LIKELIHOODS[name], Y[name]
        constant = np.full(7, likelihood.start(float(y.mean())))
        assert likelihood.slope(y, constant).sum() == pytest.approx(0.0, abs=1e-12)

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


def test_gaussian_predictive_density():
    variance = np.linspace(0.1, 3.0, 7)
    expected = norm.logpdf(Y["gaussian"], F, np.sqrt(variance))
    assert_close(gaussian_log_density(Y["gaussian"], F, variance), expected, "rounding")


@pytest.mark.parametrize("mean", [-3.0, 0.0, 1.5])
@pytest.mark.parametrize("deviation", [0.1, 1.0, 4.0])
def test_the_probit_approximation_is_the_integral_to_two_per_cent(mean, deviation):
    expected, _ = integrate.quad(
        lambda f: expit(f) * norm.pdf(f, mean, deviation), mean - 40.0, mean + 40.0, points=[mean]
    )
    found = expit(moderated_log_odds(np.array([mean]), np.array([deviation**2])))
    # An approximation: MacKay's is known to be off by up to about 0.02.
    assert found[0] == pytest.approx(expected, abs=0.02)
