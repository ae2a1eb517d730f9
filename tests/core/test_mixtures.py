"""Predictive distributions with noise that is a mixture of Gaussians."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from lanam.core.model.mixtures import GAUSSIAN, Mixture, gaussian_log_density, standardised

SHAPES = {
    "skewed": standardised(np.array([0.7, 0.3]), np.array([-1.0, 2.0]), np.array([0.3, 1.0])),
    "heavy": standardised(np.array([0.95, 0.05]), np.zeros(2), np.array([0.5, 6.0])),
    "apart": standardised(np.array([0.5, 0.5]), np.array([-2.0, 2.0]), np.array([0.25, 0.25])),
}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def rows(n_rows, shape, seed=0):
    rng = np.random.default_rng(seed)
    return Mixture(
        rng.normal(size=n_rows), rng.uniform(size=n_rows) ** 4, rng.uniform(0.5, 3.0, n_rows), shape
    )


@shapes
def test_mean_zero_and_variance_one(shape):
    assert shape.weights.sum() == pytest.approx(1.0)
    assert shape.weights @ shape.means == pytest.approx(0.0, abs=1e-12)
    assert shape.weights @ (shape.means**2 + shape.stds**2) == pytest.approx(1.0)


@shapes
def test_moments_are_those_of_draws(shape):
    rng = np.random.default_rng(0)
    component = rng.choice(len(shape.weights), size=400_000, p=shape.weights)
    draws = rng.normal(shape.means[component], shape.stds[component])
    assert shape.skewness == pytest.approx(np.mean(draws**3), abs=0.05)
    assert shape.excess_kurtosis == pytest.approx(np.mean(draws**4) - 3.0, rel=0.1, abs=0.05)


@shapes
def test_the_density_is_one_in_sum_and_has_the_moments_it_should(shape):
    one = Mixture(np.array([1.0]), np.array([0.3]), np.array([2.0]), shape)

    def integral(of):
        whole = (-40.0, 40.0)
        inside = [1.0, *(1.0 + np.sqrt(2.0) * shape.means)]
        return quad(lambda y: of(y) * np.exp(one.log_prob(np.array([y]))[0]), *whole,
                    points=inside, limit=500)[0]  # fmt: skip

    assert integral(lambda y: 1.0) == pytest.approx(1.0)
    assert integral(lambda y: y) == pytest.approx(1.0)
    assert integral(lambda y: (y - 1.0) ** 2) == pytest.approx(2.3)


@shapes
def test_normal_scores_have_as_much_below_them(shape):
    some = rows(50, shape)
    y = some.mean + np.random.default_rng(1).normal(size=50)
    noise = np.sqrt(some.noise_variance)[:, None]
    means = some.mean[:, None] + noise * shape.means
    stds = np.sqrt(some.variance[:, None] + (noise * shape.stds) ** 2)
    below = norm.cdf(y[:, None], means, stds) @ shape.weights
    np.testing.assert_allclose(norm.cdf(some.normal_score(y)), below, rtol=1e-10)


@shapes
@pytest.mark.parametrize("n_rows", [20, 1000])
@pytest.mark.parametrize("score", [-12.0, -0.1, 1.3, 30.0])
def test_what_has_a_score_has_that_score(shape, n_rows, score):
    some = rows(n_rows, shape)
    np.testing.assert_allclose(some.normal_score(some.at_score(score)), score, atol=1e-8)


@shapes
def test_few_rows_and_many_say_the_same(shape):
    many = rows(3000, shape)
    few = Mixture(many.mean[:9], many.variance[:9], many.noise_variance[:9], shape)
    np.testing.assert_allclose(few.at_score(1.7), many.at_score(1.7)[:9], atol=1e-8)


def test_a_gaussian_is_a_gaussian():
    some = rows(100, GAUSSIAN)
    variance = some.variance + some.noise_variance
    y = some.mean + 1.0
    np.testing.assert_allclose(some.log_prob(y), gaussian_log_density(y, some.mean, variance))
    np.testing.assert_allclose(some.normal_score(y), 1.0 / np.sqrt(variance), rtol=1e-13)
    np.testing.assert_allclose(some.at_score(2.0), some.mean + 2.0 * np.sqrt(variance), rtol=1e-14)


@shapes
def test_the_ranked_probability_score_is_its_integral(shape):
    some = rows(3, shape)
    y = some.mean + np.array([0.1, -2.0, 5.0])
    for k, found in enumerate(some.crps(y)):

        def squared(value, k=k):
            one = Mixture(some.mean[[k]], some.variance[[k]], some.noise_variance[[k]], shape)
            below = norm.cdf(one.normal_score(np.array([value]))[0])
            return (below - (value >= y[k])) ** 2

        low, high = some.mean[k] - 30.0, some.mean[k] + 30.0
        known = quad(squared, low, y[k], limit=500)[0] + quad(squared, y[k], high, limit=500)[0]
        assert found == pytest.approx(known, rel=1e-4)
