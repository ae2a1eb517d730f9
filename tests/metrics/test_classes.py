"""Scores of predicted probabilities, against loops and scikit-learn."""

import math

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from lanam import metrics

rng = np.random.default_rng(0)
P = rng.uniform(size=400)
Y = (rng.uniform(size=400) < P**2).astype(int)
TABLE = rng.dirichlet(np.ones(4), size=300)
NUMBERS = np.array([rng.choice(4, p=row) for row in TABLE])


def slow_error(y, probability, n_bins):
    """A loop over bins, then over rows."""
    total = 0.0
    for k in range(n_bins):
        last = k == n_bins - 1
        rows = [
            i
            for i, p in enumerate(probability)
            if k / n_bins <= p < (k + 1) / n_bins or (last and p == 1.0)
        ]
        if rows:
            difference = np.mean([y[i] for i in rows]) - np.mean([probability[i] for i in rows])
            total += len(rows) / len(y) * abs(difference)
    return total


def test_likelihoods_are_scikit_learns_log_losses():
    assert metrics.bernoulli_nll(Y, P) == pytest.approx(log_loss(Y, P), rel=1e-12)
    assert metrics.categorical_nll(NUMBERS, TABLE) == pytest.approx(
        log_loss(NUMBERS, TABLE, labels=range(4)), rel=1e-12
    )


def test_losses_of_certain_mistakes_are_finite():
    assert metrics.bernoulli_nll([1], [0.0]) == pytest.approx(-math.log(1e-12))
    assert metrics.categorical_nll([1], [[1.0, 0.0]]) == pytest.approx(-math.log(1e-12))
    assert metrics.bernoulli_nll([1, 0], [1.0, 0.0]) == 0


def test_brier_scores():
    assert metrics.brier_score(Y, P) == pytest.approx(brier_score_loss(Y, P), rel=1e-12)
    slow = np.mean(
        [
            sum((p - (c == y)) ** 2 for c, p in enumerate(row))
            for y, row in zip(NUMBERS, TABLE, strict=True)
        ]
    )
    assert metrics.brier_score(NUMBERS, TABLE) == pytest.approx(slow, rel=1e-12)
    combined = metrics.brier_score(Y, np.column_stack([1 - P, P]))
    assert combined == pytest.approx(2 * metrics.brier_score(Y, P), rel=1e-12)
    assert metrics.root_brier_score(Y, P) == pytest.approx(math.sqrt(brier_score_loss(Y, P)))


def test_the_root_brier_score_bounds_the_calibration_error():
    # Gruber and Buettner's theorem, for the binned error of order two
    for k in (1, 2, 3):
        y = (rng.uniform(size=400) < P**k).astype(int)
        curve = metrics.reliability_curve(y, P)
        squared = curve.share @ (curve.observed - curve.expected) ** 2
        assert math.sqrt(squared) <= metrics.root_brier_score(y, P)


@pytest.mark.parametrize("n_bins", [1, 7, 10])
def test_calibration_error_is_that_of_a_loop(n_bins):
    p = np.append(P, [0.0, 1.0, 1.0])
    y = np.append(Y, [0, 1, 0])
    error = metrics.expected_calibration_error(y, p, n_bins)
    assert error == pytest.approx(slow_error(y, p, n_bins), rel=1e-10)


def test_top_label_error_is_that_of_the_most_probable_class():
    right = TABLE.argmax(axis=1) == NUMBERS
    error = metrics.top_label_calibration_error(NUMBERS, TABLE, n_bins=15)
    assert error == pytest.approx(slow_error(right, TABLE.max(axis=1), 15), rel=1e-10)
    assert metrics.accuracy(NUMBERS, TABLE) == right.mean()


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_reliability_curve_is_scikit_learns(strategy):
    curve = metrics.reliability_curve(Y, P, 8, strategy=strategy)
    observed, expected = calibration_curve(Y, P, n_bins=8, strategy=strategy)
    np.testing.assert_allclose(curve.observed, observed, rtol=1e-12)
    np.testing.assert_allclose(curve.expected, expected, rtol=1e-12)
    assert curve.share.sum() == pytest.approx(1.0)
    if strategy == "quantile":
        np.testing.assert_allclose(curve.share, 1 / 8)
    assert curve.error == pytest.approx(curve.share @ np.abs(observed - expected))
    assert (curve.kind, curve.coverage, curve.n_rows) == ("reliability", 0.95, 400)


def test_limits_are_binomial_quantiles():
    p = np.repeat([0.2, 0.7], [30, 50])
    curve = metrics.reliability_curve(np.zeros(80), p, 2, coverage=0.8)
    for k, (n, chance) in enumerate([(30, 0.2), (50, 0.7)]):
        assert curve.lower[k] == binom.ppf(0.1, n, chance) / n
        assert curve.upper[k] == binom.ppf(0.9, n, chance) / n


def test_ranges_cover_the_fractions_of_a_calibrated_model():
    inside = []
    for seed in range(200):
        own = np.random.default_rng(seed)
        p = own.uniform(size=200)
        curve = metrics.reliability_curve(own.uniform(size=200) < p, p)
        inside += list((curve.lower <= curve.observed) & (curve.observed <= curve.upper))
    # the binomial is discrete, so ranges are wider; four standard errors of 2000 fractions
    assert 0.95 - 0.02 < np.mean(inside) < 0.99


def test_empty_bins_are_dropped_and_ties_share_a_bin():
    curve = metrics.reliability_curve([0, 1, 1], [0.05, 0.95, 0.95])
    np.testing.assert_allclose(curve.expected, [0.05, 0.95])
    ties = metrics.reliability_curve([0, 1, 0, 1], [0.3, 0.3, 0.3, 0.9], 4, strategy="quantile")
    np.testing.assert_allclose(ties.expected, [0.3, 0.9])
    np.testing.assert_allclose(ties.share, [0.75, 0.25])
    # most of the second value's rows lie in the upper half
    halves = metrics.reliability_curve(
        [0, 1, 0, 1, 1], [0.3, 0.3, 0.9, 0.9, 0.9], 2, strategy="quantile"
    )
    np.testing.assert_allclose(halves.share, [0.4, 0.6])


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_weights_of_a_curve_are_frequencies(strategy):
    weight = rng.integers(0, 4, size=400)
    weighted = metrics.reliability_curve(Y, P, strategy=strategy, sample_weight=weight)
    rows = np.repeat(np.arange(400), weight)
    repeated = metrics.reliability_curve(Y[rows], P[rows], strategy=strategy)
    for name in ("expected", "observed", "lower", "upper", "share", "error"):
        np.testing.assert_allclose(
            getattr(weighted, name), getattr(repeated, name), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize(
    ("score", "columns"),
    [
        (metrics.bernoulli_nll, (Y, P)),
        (metrics.brier_score, (Y, P)),
        (metrics.root_brier_score, (NUMBERS, TABLE)),
        (metrics.expected_calibration_error, (Y, P)),
        (metrics.categorical_nll, (NUMBERS, TABLE)),
        (metrics.accuracy, (NUMBERS, TABLE)),
        (metrics.top_label_calibration_error, (NUMBERS, TABLE)),
    ],
)
def test_weights_are_frequencies(score, columns):
    weight = rng.integers(0, 4, size=len(columns[0]))
    repeated = [np.repeat(column, weight, axis=0) for column in columns]
    weighted = score(*columns, sample_weight=weight)
    assert weighted == pytest.approx(score(*repeated), rel=1e-10)
    assert weighted != pytest.approx(score(*columns), rel=1e-6)


def test_a_curve_exports():
    pytest.importorskip("polars", reason="the frame's library")
    curve = metrics.reliability_curve(Y, P, 5)
    assert curve.to_dict()["expected"] == curve.expected.tolist()
    assert curve.to_dict()["kind"] == "reliability"
    frame = curve.to_frame(backend="polars")
    assert type(frame).__module__.startswith("polars")
    assert frame.columns == ["expected", "observed", "lower", "upper", "share"]
    assert frame.shape == (5, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.bernoulli_nll([0, 2], [0.5, 0.5]), "y must be 0 or 1.*first 2 in row 2"),
        (lambda: metrics.bernoulli_nll([0, 1], [0.5, 1.5]), "probability must lie between 0 and 1"),
        (lambda: metrics.bernoulli_nll([0, 1], [0.5]), "probability has 1 values"),
        (lambda: metrics.categorical_nll([0, 3], [[0.5, 0.5]] * 2), "class indices from 0 to 1"),
        (lambda: metrics.categorical_nll([0.5], [[0.5, 0.5]]), "class indices from 0 to 1"),
        (lambda: metrics.categorical_nll([0], [[0.5, 0.6]]), "must sum to 1 in a row"),
        (lambda: metrics.categorical_nll([0], [[-0.5, 1.5]]), "must lie between 0 and 1"),
        (lambda: metrics.categorical_nll([0], [0.5]), r"a column for each class.*shape \(1,\)"),
        (lambda: metrics.categorical_nll([0, 1], [[0.5, 0.5]]), "1 rows, and y has 2 values"),
        (lambda: metrics.reliability_curve([0], [0.5], 0), "n_bins=0 must be an integer"),
        (lambda: metrics.reliability_curve([0], [0.5], strategy="even"), "strategy='even'"),
        (lambda: metrics.reliability_curve([0], [0.5], coverage=1.0), "coverage=1.0 must lie"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_probabilities_may_exceed_one_by_rounding():
    assert metrics.bernoulli_nll([1], [1.0 + 1e-12]) == 0.0
