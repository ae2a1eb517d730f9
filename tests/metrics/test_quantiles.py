"""Calibration of quantiles and of counts, against loops."""

import numpy as np
import pytest
from scipy.stats import binom, norm, poisson

from lanam import metrics
from lanam.metrics.scores import quantile_error_limit

rng = np.random.default_rng(0)


def test_pit_is_the_distribution_function():
    y, mean, std = rng.normal(size=(3, 5))
    std = np.exp(std)
    expected = [norm.cdf(y[k], mean[k], std[k]) for k in range(5)]
    np.testing.assert_allclose(metrics.gaussian_pit(y, mean, std), expected, rtol=1e-12)


@pytest.mark.parametrize("n_levels", [1, 9, 19])
def test_the_error_is_a_sum_over_levels(n_levels):
    pit = rng.beta(2, 2, size=60)
    slow = 0.0
    for j in range(1, n_levels + 1):
        level = j / (n_levels + 1)
        slow += (sum(p <= level for p in pit) / 60 - level) ** 2
    assert metrics.quantile_calibration_error(pit, n_levels) == pytest.approx(slow, rel=1e-12)


def test_ties_with_a_level_count_as_below():
    assert metrics.quantile_calibration_curve([0.5, 0.75], 3).observed.tolist() == [0, 0.5, 1]


def test_the_expected_error_under_calibration():
    errors = [
        metrics.quantile_calibration_error(np.random.default_rng(k).uniform(size=50))
        for k in range(2000)
    ]
    # its standard deviation is about as large as its mean
    assert np.mean(errors) == pytest.approx(1.65 / 50, rel=0.1)


def test_the_curve():
    pit = rng.uniform(size=200) ** 2
    curve = metrics.quantile_calibration_curve(pit, 4, coverage=0.9)
    np.testing.assert_allclose(curve.expected, [0.2, 0.4, 0.6, 0.8])
    np.testing.assert_allclose(curve.observed, [np.mean(pit <= p) for p in curve.expected])
    np.testing.assert_allclose(curve.share, np.diff(curve.observed, prepend=0.0))
    np.testing.assert_array_equal(curve.lower, binom.ppf(0.05, 200, curve.expected) / 200)
    np.testing.assert_array_equal(curve.upper, binom.ppf(0.95, 200, curve.expected) / 200)
    assert (curve.kind, curve.coverage, curve.n_rows) == ("quantiles", 0.9, 200)
    assert curve.error == metrics.quantile_calibration_error(pit, 4)


def test_counts_need_both_probabilities():
    rate = rng.uniform(0.2, 2.0, size=20_000)
    y = rng.poisson(rate)
    upto, below = poisson.cdf(y, rate), poisson.cdf(y - 1, rate)
    curve = metrics.quantile_calibration_curve(upto, below=below)
    # four standard errors of a fraction of 20,000 rows
    np.testing.assert_allclose(curve.observed, curve.expected, atol=0.0142)
    assert metrics.quantile_calibration_error(upto) > 100 * curve.error


def test_counts_match_the_randomised_pit():
    y, rate = rng.poisson(1.5, size=40), 2.0
    upto, below = poisson.cdf(y, rate), poisson.cdf(y - 1, rate)
    curve = metrics.quantile_calibration_curve(upto, below=below)
    random = below + (upto - below) * rng.uniform(size=(20_000, 40))
    expected = [(random <= level).mean() for level in curve.expected]
    np.testing.assert_allclose(curve.observed, expected, atol=0.004)  # four standard errors


def test_a_row_without_width_is_on_one_side():
    curve = metrics.quantile_calibration_curve([0.3, 0.7], 1, below=[0.3, 0.7])
    assert curve.observed == [0.5]
    curve = metrics.quantile_calibration_curve([0.3, 1.0], 1, below=[0.3 + 1e-12, 1.0 + 1e-15])
    assert curve.observed == [0.5]  # rounding


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.quantile_calibration_error([1.2]), "pit must lie between 0 and 1"),
        (lambda: metrics.quantile_calibration_error([0.2], 0), "n_levels=0 must be"),
        (lambda: metrics.quantile_calibration_error([0.2], below=[0.3]), "below must not be more"),
        (lambda: metrics.quantile_calibration_error([0.2], below=[0.1, 0.1]), "below has 2 values"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("n_rows", "n_levels"), [(20, 9), (300, 9), (300, 3)])
def test_a_calibrated_model_exceeds_the_limit_in_five_per_cent(n_rows, n_levels):
    most = quantile_error_limit(n_rows, n_levels)
    draws = np.random.default_rng(3).uniform(size=(2000, n_rows))
    errors = [metrics.quantile_calibration_error(pit, n_levels) for pit in draws]
    assert np.mean(np.array(errors) > most) == pytest.approx(0.05, abs=0.02)  # four errors
