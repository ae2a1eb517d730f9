"""Deviances against scikit-learn and the likelihoods of the families."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import mean_tweedie_deviance

from lanam.metrics import binomial_deviance, negative_binomial_deviance, tweedie_deviance

RNG = np.random.default_rng(0)
MEAN, WEIGHT = RNG.uniform(0.5, 6.0, 200), RNG.uniform(0.5, 2.0, 200)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_tweedie_is_scikit_learns(power):
    y = RNG.gamma(2.0, MEAN) if power == 2.0 else RNG.poisson(MEAN) * 1.0
    found = tweedie_deviance(y, MEAN, power, sample_weight=WEIGHT)
    wanted = mean_tweedie_deviance(y, MEAN, power=power, sample_weight=WEIGHT)
    assert found == pytest.approx(wanted)


def test_negative_binomial_is_twice_what_the_best_means_gain():
    y, k = RNG.poisson(MEAN) * 1.0, 0.7

    def log_pmf(mean):
        return stats.nbinom.logpmf(y, 1.0 / k, 1.0 / (1.0 + k * mean))

    wanted = 2.0 * np.average(log_pmf(np.maximum(y, 1e-12)) - log_pmf(MEAN), weights=WEIGHT)
    assert negative_binomial_deviance(y, MEAN, k, sample_weight=WEIGHT) == pytest.approx(wanted)


def test_binomial_is_twice_what_the_best_means_gain():
    trials = np.full(200, 9.0)
    y = RNG.binomial(9, MEAN / 9.0) * 1.0
    best, given = (stats.binom.logpmf(y, 9, chance / 9.0) for chance in (y, MEAN))
    wanted = 2.0 * np.average(best - given, weights=WEIGHT)
    assert binomial_deviance(y, MEAN, trials, sample_weight=WEIGHT) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tweedie_deviance([1.0], [1.0], 3.0), "power=3.0 is none of a Tweedie deviance"),
        (lambda: tweedie_deviance([0.0], [1.0], 2.0), "y must be positive"),
        (lambda: negative_binomial_deviance([1.0], [1.0], 0.0), "dispersion=0.0 must be positive"),
        (lambda: binomial_deviance([3.0], [1.0], [2.0]), "must not exceed trials"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
