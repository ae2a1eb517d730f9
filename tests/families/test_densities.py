"""Likelihoods with parameters of their own: against scipy, finite differences and sums over y."""

import numpy as np
import pytest

from tests.families.densities import CASES

F = np.array([-1.5, -0.2, 0.0, 0.8, 2.0])


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def _density(one, y):
    return one.logpmf(y) if hasattr(one.dist, "pmf") else one.logpdf(y)


def test_log_prob_is_the_whole_density(case):
    likelihood, distribution, y = case
    np.testing.assert_allclose(
        likelihood.log_prob(y, F), _density(distribution(F), y), rtol=1e-10, atol=1e-10
    )


def test_gradient(case):
    likelihood, _, y = case
    step = 1e-5
    finite = (likelihood.log_prob(y, F + step) - likelihood.log_prob(y, F - step)) / (2.0 * step)
    np.testing.assert_allclose(likelihood.gradient(y, F), finite, rtol=1e-6, atol=1e-8)


def test_the_curvature_is_expected(case):
    """The variance of the gradient, by Fisher."""
    likelihood, distribution, _ = case
    draws = distribution(F).rvs((200_000, len(F)), random_state=np.random.default_rng(0))
    information = np.square(likelihood.gradient(draws, np.broadcast_to(F, draws.shape))).mean(
        axis=0
    )
    np.testing.assert_allclose(likelihood.curvature(F), information, rtol=0.03)


def test_the_deviance_is_what_the_best_link_would_gain(case):
    likelihood, _, y = case
    links = np.linspace(-12.0, 35.0, 200_001)
    for one, f in zip(y, F, strict=True):
        best = likelihood.log_prob(np.full_like(links, one), links).max()
        wanted = (
            2.0
            * (best - likelihood.log_prob(one, f))
            / likelihood.named_parameters.get("shape", 1.0)
        )
        assert likelihood.deviance(np.array([one]), np.array([f]))[0] == pytest.approx(
            wanted, rel=1e-3, abs=1e-4
        )


def test_the_intercept_of_the_best_constant_model(case):
    likelihood, _, y = case
    weight = np.array([1.0, 2.0, 0.5, 1.0, 0.2])
    constant = np.full(len(y), likelihood.fit_intercept_only(y, weight))
    assert weight @ likelihood.gradient(y, constant) == pytest.approx(0.0, abs=1e-9)


def test_parameters_are_replaced_by_name(case):
    likelihood = case[0]
    doubled = likelihood.with_parameters([2.0 * value for value in likelihood.parameters])
    assert doubled.named_parameters == {
        name: 2.0 * value for name, value in likelihood.named_parameters.items()
    }
    for value, (low, high) in zip(likelihood.parameters, likelihood.bounds, strict=True):
        assert low < value < high


@pytest.mark.parametrize("power", [1.05, 1.5, 1.95])
@pytest.mark.parametrize("dispersion", [0.05, 1.0, 8.0])
def test_tweedie_is_a_poisson_number_of_gamma_amounts(power, dispersion):
    from scipy.stats import gamma, poisson

    from lanam.families.tweedie import Tweedie

    likelihood, f = Tweedie(dispersion, power), np.log([0.6, 2.0, 7.0])
    for precision in (np.ones(3), np.array([0.3, 1.0, 2.5])):
        y = np.array([0.0, 1.7, 9.0])
        phi, mean = dispersion / precision, np.exp(f)
        rate = mean ** (2.0 - power) / (phi * (2.0 - power))
        number, shape = np.arange(1, 3000)[:, None], (2.0 - power) / (power - 1.0)
        scale = phi * (power - 1.0) * mean ** (power - 1.0)
        density = (poisson.pmf(number, rate) * gamma.pdf(y, number * shape, scale=scale)).sum(
            axis=0
        )
        density[0] = np.exp(-rate[0])
        found = precision * likelihood.log_prob(y, f) + likelihood.normaliser(y, precision)
        np.testing.assert_allclose(found, np.log(density), rtol=1e-6, atol=1e-7)
    step = 1e-5
    finite = (likelihood.log_prob(y, f + step) - likelihood.log_prob(y, f - step)) / (2.0 * step)
    np.testing.assert_allclose(likelihood.gradient(y, f), finite, rtol=1e-5)


def test_without_dispersion_clusters_are_poisson():
    from scipy.stats import poisson

    from lanam.families.negative_binomial import NegativeBinomial

    y = np.array([0.0, 3.0, 8.0])
    found = NegativeBinomial(1e-6).log_prob(y, np.log([1.0, 3.0, 9.0]))
    np.testing.assert_allclose(found, poisson.logpmf(y, [1.0, 3.0, 9.0]), atol=1e-4)
