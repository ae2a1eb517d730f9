"""Scores of predicted numbers, against integrals and loops."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from lanam import metrics

rng = np.random.default_rng(0)
Y = rng.normal(size=7)
MEAN = rng.normal(size=7)
STD = rng.uniform(0.3, 2.0, size=7)


def test_gaussian_nll_is_the_mean_of_scipys_log_density():
    expected = -np.mean([norm.logpdf(y, m, s) for y, m, s in zip(Y, MEAN, STD, strict=True)])
    assert metrics.gaussian_nll(Y, MEAN, STD) == pytest.approx(expected, rel=1e-12)


def test_rmse_by_hand():
    assert metrics.rmse([1.0, 2.0], [4.0, -2.0]) == pytest.approx(math.sqrt((9 + 16) / 2))


def test_crps_of_a_gaussian_is_the_integral_of_the_squared_distance():
    def integral(y, m, s):
        below = quad(lambda t: norm.cdf(t, m, s) ** 2, -np.inf, y)[0]
        return below + quad(lambda t: norm.sf(t, m, s) ** 2, y, np.inf)[0]

    for y, m, s in zip(Y, MEAN, STD, strict=True):
        assert metrics.crps_gaussian([y], [m], [s]) == pytest.approx(integral(y, m, s), rel=1e-6)


def test_crps_of_draws_is_the_integral_over_their_steps():
    draws = rng.normal(size=(9, 4))
    y = rng.normal(size=4)

    def integral(y, draws):
        points = np.sort(np.append(draws, y))
        total = 0.0
        for left, right in itertools.pairwise(points):
            middle = 0.5 * (left + right)
            total += (right - left) * (np.mean(draws <= middle) - (y <= middle)) ** 2
        return total

    expected = np.mean([integral(y[k], draws[:, k]) for k in range(4)])
    assert metrics.crps_sample(y, draws) == pytest.approx(expected, rel=1e-12)


def test_crps_of_many_draws_is_that_of_their_distribution():
    draws = 1.0 + 2.0 * rng.standard_normal((200_000, 1))
    exact = metrics.crps_gaussian([0.3], [1.0], [2.0])
    assert metrics.crps_sample([0.3], draws) == pytest.approx(exact, rel=0.01)


def test_coverage_counts_both_ends_and_width_is_a_mean():
    assert metrics.interval_coverage([0.0, 1.0, 2.0, 3.0], 0.0, 2.0) == 0.75
    assert metrics.interval_width([0.0, 1.0], [1.0, 4.0]) == 2.0


@pytest.mark.parametrize(
    ("score", "columns"),
    [
        (metrics.gaussian_nll, (Y, MEAN, STD)),
        (metrics.rmse, (Y, MEAN)),
        (metrics.crps_gaussian, (Y, MEAN, STD)),
        (metrics.interval_coverage, (Y, MEAN - STD, MEAN + STD)),
        (metrics.interval_width, (MEAN - STD, MEAN + STD)),
        (metrics.quantile_calibration_error, (norm.cdf(Y),)),
    ],
)
def test_weights_are_frequencies(score, columns):
    weight = np.array([3, 1, 0, 2, 1, 4, 1])
    repeated = [np.repeat(column, weight) for column in columns]
    weighted = score(*columns, sample_weight=weight)
    assert weighted == pytest.approx(score(*repeated), rel=1e-12)
    assert weighted != pytest.approx(score(*columns), rel=1e-6)


def test_weights_of_draws_are_frequencies():
    draws = rng.normal(size=(5, 3))
    weighted = metrics.crps_sample(Y[:3], draws, sample_weight=[2, 0, 1])
    repeated = metrics.crps_sample(Y[[0, 0, 2]], draws[:, [0, 0, 2]])
    assert weighted == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.rmse([1.0, 2.0], [1.0, 2.0, 3.0]), "mean has 3 values, and there are 2"),
        (
            lambda: metrics.rmse([1.0, np.nan], [1.0, 2.0]),
            "y has 1 of 2 values that are not finite",
        ),
        (lambda: metrics.rmse([[1.0]], [1.0]), r"y must have one dimension, and has the shape"),
        (lambda: metrics.rmse([], []), "y is empty"),
        (lambda: metrics.rmse(["a"], [1.0]), "y must be numeric"),
        (
            lambda: metrics.gaussian_nll([1.0, 2.0], 0.0, [1.0, 0.0]),
            "std must be positive: violated by 1 of 2 values, first 0 in row 2",
        ),
        (
            lambda: metrics.interval_width([0.0, 2.0], [1.0, 1.0]),
            "upper must not lie below lower: violated by 1 of 2",
        ),
        (lambda: metrics.crps_sample([1.0, 2.0], np.zeros((2, 3))), "draws must have a column"),
        (lambda: metrics.crps_sample([1.0], [[np.inf]]), "draws have values that are not finite"),
        (
            lambda: metrics.rmse([1.0, 2.0], 0.0, sample_weight=[1.0, -1.0]),
            "sample_weight must not be negative",
        ),
        (lambda: metrics.rmse([1.0], 0.0, sample_weight=[0.0]), "zero for every row"),
        (lambda: metrics.rmse([1.0], 0.0, sample_weight=[1.0, 1.0]), "sample_weight has 2 values"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
