"""Predictive distributions against quadrature, draws and scipy's own."""

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit, gammaln, softmax
from scipy.stats import norm, poisson

from lanam.core.model.mixtures import gaussian_log_density
from lanam.families import poisson_lognormal
from lanam.families.bernoulli import moderated_log_odds
from lanam.families.poisson_lognormal import PoissonLognormal
from lanam.families.softmax import SoftmaxFamily, softmax_log_probability
from tests.oracles import assert_close


def test_gaussian_predictive_density():
    variance, y = np.linspace(0.1, 3.0, 7), np.array([1.0, -2.0, 0.0, 0.5, 3.0, -1.0, 2.0])
    mean = np.array([-30.0, -3.0, -0.2, 0.0, 0.7, 4.0, 30.0])
    expected = norm.logpdf(y, mean, np.sqrt(variance))
    assert_close(gaussian_log_density(y, mean, variance), expected, "rounding")


@pytest.mark.parametrize("mean", [-3.0, 0.0, 1.5])
@pytest.mark.parametrize("deviation", [0.1, 1.0, 4.0])
def test_the_probit_approximation_is_the_integral_to_two_per_cent(mean, deviation):
    expected, _ = integrate.quad(
        lambda f: expit(f) * norm.pdf(f, mean, deviation), mean - 40.0, mean + 40.0, points=[mean]
    )
    found = expit(moderated_log_odds(np.array([mean]), np.array([deviation**2])))
    # An approximation: MacKay's is known to be off by up to about 0.02.
    assert found[0] == pytest.approx(expected, abs=0.02)


def vectors(*values):
    return [np.array([value], dtype=float) for value in values]


def count_log_density(y, mean, variance, exposure):
    """The integral of a Poisson mass over a Gaussian link, on a grid too fine to be wrong."""
    deviation = np.sqrt(variance)
    f = np.linspace(mean - 14.0 * deviation, mean + 14.0 * deviation, 400_001)
    exponent = y * (np.log(exposure) + f) - exposure * np.exp(f) - gammaln(y + 1.0)
    exponent += norm.logpdf(f, mean, deviation)
    top = exponent.max()
    return top + np.log(np.exp(exponent - top).sum() * (f[1] - f[0]))


class TestCounts:
    @pytest.mark.parametrize(
        ("y", "mean", "variance", "exposure"),
        [
            (0, 0.0, 1.0, 1.0),
            (0, 5.0, 25.0, 1.0),  # a cliff on one side, a long tail on the other
            (0, -30.0, 100.0, 1.0),
            (3, 0.0, 1e-8, 1.0),
            (7, 1.0, 4.0, 0.5),
            (2, 8.0, 0.5, 1.0),  # a count the rate did not expect
            (50, -2.0, 2.0, 30.0),
            (1000, 6.9, 1e-3, 1.0),
            (100_000, 11.0, 0.04, 1.0),
            (100_000, 11.5, 25.0, 1.0),
            (1, 2.0, 400.0, 1.0),
        ],
    )
    def test_the_density_is_the_integral(self, y, mean, variance, exposure):
        count, *moments = vectors(y, mean, variance, exposure)
        found = PoissonLognormal(*moments).log_prob(count)
        # Logarithms of large counts' factorials cancel: ten digits of 1e6 are left.
        expected = count_log_density(y, mean, variance, exposure)
        assert found[0] == pytest.approx(expected, abs=1e-8)

    def test_without_variance_it_is_poissons(self):
        y, mean, exposure = np.array([0.0, 3.0, 40.0]), np.array([-2.0, 0.3, 3.0]), np.full(3, 2.0)
        rate = exposure * np.exp(mean)
        found = PoissonLognormal(mean, np.zeros(3), exposure)
        np.testing.assert_allclose(found.log_prob(y), poisson.logpmf(y, rate), atol=1e-10)
        np.testing.assert_allclose(found.cdf(y), poisson.cdf(y, rate), atol=1e-10)
        for probability in (0.01, 0.5, 0.99):
            np.testing.assert_array_equal(found.ppf(probability), poisson.ppf(probability, rate))
        np.testing.assert_allclose(found.mean, rate)
        np.testing.assert_allclose(found.variance, rate)

    @pytest.mark.parametrize("rate", [0.01, 5.0, 300.0])
    @pytest.mark.parametrize("variance", [1e-6, 0.05, 0.999, 1.001, 3.0])
    def test_density_cdf_quantiles_and_moments_are_of_one_distribution(self, rate, variance):
        counts = np.arange(40_000.0)
        same = np.ones(len(counts))
        found = PoissonLognormal(np.log(rate / 2.0) * same, variance * same, 2.0 * same)
        mass = np.exp(found.log_prob(counts))
        cumulative = np.cumsum(mass)
        # Sums of 40000 masses, each with an error of its own.
        np.testing.assert_allclose(found.cdf(counts), cumulative, rtol=0.0, atol=1e-8)
        found = found.part(np.zeros(1, dtype=int))
        for probability in (0.001, 0.3, 0.5, 0.95, 0.999):
            (quantile,) = found.ppf(probability)
            assert quantile == np.searchsorted(cumulative, probability) or quantile >= 40_000
        # What lies beyond 40000 matters to moments with the largest variance only.
        if rate * np.exp(12.0 * np.sqrt(variance)) < 40_000:
            average = mass @ counts
            assert found.mean[0] == pytest.approx(average, rel=1e-6)
            expected = mass @ (counts - average) ** 2
            assert found.variance[0] == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("variance", [1e-8, 1e-4, 0.2])
    def test_quantiles_of_a_million(self, variance):
        rng = np.random.default_rng(0)
        draws = rng.poisson(np.exp(np.log(1e6) + np.sqrt(variance) * rng.standard_normal(400_000)))
        for probability in (0.05, 0.5, 0.95):
            found = PoissonLognormal(*vectors(np.log(1e6), variance, 1.0))
            k = found.ppf(probability)
            at, before = (found.cdf(c) for c in (k, k - 1.0))
            assert before < probability <= at
            # The share of 400000 draws is known to 0.0008; four times that.
            assert np.mean(draws <= k) == pytest.approx(probability, abs=0.0032)

    def test_probabilities_that_are_reached_at_nothing(self):
        for log_mean in (-5.0, -800.0):
            assert PoissonLognormal(*vectors(log_mean, 0.1, 1.0)).ppf(0.9) == 0.0
        assert PoissonLognormal(*vectors(0.0, 1.0, 1.0)).cdf(np.array([-1.0])) == 0.0

    def test_rows_are_answered_alone_and_in_any_chunks(self, monkeypatch):
        rng = np.random.default_rng(0)
        y, mean = rng.poisson(4.0, size=60).astype(float), rng.normal(1.0, 2.0, size=60)
        variance, exposure = rng.gamma(0.3, size=60) ** 3, rng.uniform(0.1, 5.0, size=60)
        found = PoissonLognormal(mean, variance, exposure)
        together, density = found.ppf(0.9), found.log_prob(y)
        monkeypatch.setattr(poisson_lognormal, "_CHUNK_VALUES", 64)
        np.testing.assert_array_equal(found.ppf(0.9), together)
        for k in range(60):
            row = np.array([k])
            alone = found.part(row).log_prob(y[row])
            np.testing.assert_allclose(alone, density[row], rtol=1e-12)

    def test_nothing_is_infinite_or_not_a_number(self):
        mean, variance = np.array([-1e5, 0.0, 600.0, 1e5]), np.array([1e-12, 1e3, 900.0, 1e4])
        found = PoissonLognormal(mean, variance, np.ones(4))
        assert np.isfinite(found.mean).all()
        assert np.isfinite(found.variance).all()
        assert np.isfinite(found.log_prob(np.ones(4))).all()
        for probability in (0.01, 0.99):
            quantile = found.ppf(probability)
            assert np.isfinite(quantile).all()
            assert (quantile == np.floor(quantile)).all()


class TestClasses:
    def test_two_classes_have_mackays_probability(self):
        rng = np.random.default_rng(0)
        mean, root = rng.normal(size=(20, 2)), rng.normal(size=(20, 2, 2))
        covariance = root @ root.transpose(0, 2, 1)
        difference = covariance[:, 0, 0] + covariance[:, 1, 1] - 2.0 * covariance[:, 0, 1]
        expected = expit(moderated_log_odds(mean[:, 1] - mean[:, 0], difference))
        assert_close(SoftmaxFamily().mean(mean, covariance)[:, 1], expected, "rounding")

    def test_without_variance_it_is_the_softmax(self):
        mean = np.random.default_rng(0).normal(size=(20, 5))
        found = SoftmaxFamily().mean(mean, np.zeros((20, 5, 5)))
        assert_close(found, softmax(mean, axis=1), "rounding")

    def test_what_is_added_to_all_classes_changes_nothing(self):
        rng = np.random.default_rng(0)
        mean, root = rng.normal(size=(20, 4)), rng.normal(size=(20, 4, 4))
        covariance = root @ root.transpose(0, 2, 1)
        shifted = SoftmaxFamily().mean(mean + 3.0, covariance + 2.0)
        assert_close(shifted, SoftmaxFamily().mean(mean, covariance), "rounding")

    @pytest.mark.parametrize(("scale", "error"), [(0.3, 0.01), (1.0, 0.06)])
    def test_it_is_near_the_mean_over_draws(self, scale, error):
        rng = np.random.default_rng(0)
        mean, root = rng.normal(size=(10, 4)), scale * rng.normal(size=(10, 4, 4)) / 2.0
        draws = mean[:, None] + rng.standard_normal((10, 40_000, 4)) @ root.transpose(0, 2, 1)
        expected = softmax(draws, axis=2).mean(axis=1)
        found = SoftmaxFamily().mean(mean, root @ root.transpose(0, 2, 1))
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        # An approximation, as MacKay's for two classes is, and worse the less sure the model.
        np.testing.assert_allclose(found, expected, atol=error)

    def test_huge_means_have_log_probabilities(self):
        mean = np.array([[1e6, 0.0, -1e6], [-1e300, 1e300, 0.0]])
        covariance = np.broadcast_to(np.eye(3), (2, 3, 3))
        probability = SoftmaxFamily().mean(mean, covariance)
        np.testing.assert_array_equal(probability, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        assert np.isfinite(softmax_log_probability(mean, covariance)).all()
