"""Split conformal calibration: coverage, exactly and by simulation."""

import math
import pickle

import numpy as np
import pytest
from scipy.stats import betabinom, gamma, norm, poisson
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lanam import LANAMClassifier, LANAMRegressor
from lanam.conformal import (
    calibrated_by,
    class_scores,
    class_sets,
    smallest_sets,
)
from lanam.core.model.mixtures import GAUSSIAN, Mixture, standardised
from lanam.families.poisson_lognormal import PoissonLognormal


def slow_threshold(scores, coverage):
    """The ceil((n + 1) coverage)-th smallest."""
    return sorted(scores)[math.ceil(round((len(scores) + 1) * coverage, 9)) - 1]


def coverage_of(interval, y):
    return np.mean((interval[:, 0] <= y) & (y <= interval[:, 1]))


# thresholds


@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.7, 0.9, 0.95])
@pytest.mark.parametrize("n_rows", [19, 20, 99])
def test_the_threshold_is_an_order_statistic(n_rows, coverage):
    scores = np.random.default_rng(0).exponential(size=n_rows)
    calibration = calibrated_by(scores, np.ones(n_rows))
    assert calibration.threshold(coverage) == slow_threshold(scores, coverage)
    assert calibration.n_rows == n_rows
    assert calibration.most_coverage == n_rows / (n_rows + 1)


@pytest.mark.parametrize(("n_rows", "coverage"), [(99, 0.07), (99, 0.14), (99, 0.28), (99, 0.55)])
def test_the_order_statistic_is_robust_to_rounding(n_rows, coverage):
    assert (n_rows + 1) * coverage > round(100 * coverage)  # in floating point
    calibration = calibrated_by(np.arange(1.0, n_rows + 1), np.ones(n_rows))
    assert calibration.threshold(coverage) == round(100 * coverage)


def test_coverage_is_exact_over_all_ranks_of_a_new_row():
    # leave one out: this many of the n + 1 rows are covered
    scores = np.random.default_rng(0).exponential(size=25)
    for coverage in (0.5, 0.8, 0.9):
        inside = [
            scores[k] <= calibrated_by(np.delete(scores, k), np.ones(24)).threshold(coverage)
            for k in range(25)
        ]
        assert sum(inside) == math.ceil(round(25 * coverage, 9))


def test_weights_are_repetitions():
    scores = np.random.default_rng(0).exponential(size=30)
    weight = np.random.default_rng(1).integers(0, 4, size=30)
    weighted = calibrated_by(scores, weight.astype(float))
    repeated = np.repeat(scores, weight)
    for coverage in (0.1, 0.5, 0.8, 0.95):
        assert weighted.threshold(coverage) == slow_threshold(repeated, coverage)
    assert weighted.n_rows == (weight > 0).sum()


def test_errors_name_the_number_of_rows_needed():
    calibration = calibrated_by(np.arange(18.0), np.ones(18))
    with pytest.raises(ValueError, match=r"coverage=0\.95 needs 19 held-out rows.* had 18.*0\.947"):
        calibration.threshold(0.95)
    assert calibrated_by(np.arange(19.0), np.ones(19)).threshold(0.95) == 18.0
    with pytest.raises(ValueError, match=r"coverage=0\.99 needs 99 held-out rows"):
        calibration.threshold(0.99)
    with pytest.raises(ValueError, match=r"coverage=0\.9 needs 9 held-out rows"):
        calibrated_by(np.arange(8.0), np.ones(8)).threshold(0.9)
    assert calibrated_by(np.arange(9.0), np.ones(9)).threshold(0.9) == 8.0


def test_warning_of_weights_that_are_no_frequencies(regressor):
    X, y = heavy_tails(150, 206)
    with pytest.warns(
        UserWarning, match=r"is 1000 for every row.*150 rows.*150000.*leave it"
    ) as caught:
        regressor.calibrate(X, y, sample_weight=np.full(150, 1000.0))
    assert caught[0].filename == __file__
    uneven = np.arange(1.0, 151) / np.arange(1.0, 151).sum()
    with pytest.warns(UserWarning, match=r"counts how often.*sum of 1 makes 150 rows.*mean of one"):
        regressor.calibrate(X, y, sample_weight=uneven)
    with pytest.raises(ValueError, match=r"needs 9 held.* had 150 whose weights sum to 1, which"):
        regressor.predict_interval(X, 0.9)
    for fine in (np.arange(150) % 2, np.tile([1.0, 2.0], 75), uneven * 150):  # no warning
        regressor.calibrate(X, y, sample_weight=fine)
    assert calibrated_by(np.arange(99.0), np.ones(99)).threshold(0.99) == 98.0


def test_range_of_the_empirical_coverage():
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(3000):
        old, new = rng.normal(size=50), rng.normal(size=40)
        threshold = calibrated_by(np.abs(old), np.ones(50)).threshold(0.8)
        shares.append(np.mean(np.abs(new) <= threshold))
    shares = np.array(shares)
    calibration = calibrated_by(np.arange(50.0), np.ones(50))
    assert np.mean(shares) == pytest.approx(41 / 51, abs=0.006)  # four standard errors
    lowest, highest = calibration.by_chance(0.8, 40, 0.9)
    assert (lowest, highest) == tuple(betabinom.ppf([0.05, 0.95], 40, 41, 10) / 40)
    assert np.mean((lowest <= shares) & (shares <= highest)) > 0.9
    assert np.mean(shares < lowest) < 0.05
    assert np.mean(shares > highest) < 0.05


def test_a_calibration_as_data():
    facts = calibrated_by(np.array([2.0, 1.0]), np.array([1.0, 3.0])).to_dict()
    assert facts == {"scores": [1.0, 2.0], "weight": [3.0, 1.0]}


# conformity scores


SKEWED = standardised(np.array([0.6, 0.4]), np.array([-1.0, 2.0]), np.array([0.5, 1.5]))


@pytest.mark.parametrize("shape", [GAUSSIAN, SKEWED])
def test_scores_and_intervals_are_inverse(shape):
    rng = np.random.default_rng(0)
    y, mean = 1e4 + rng.normal(size=(2, 50))
    rows = Mixture(mean, rng.uniform(0.1, 4.0, size=50), rng.uniform(0.1, 4.0, size=50), shape)
    scores = rows.score(y)
    if shape is GAUSSIAN:
        std = np.sqrt(rows.variance + rows.noise_variance)
        np.testing.assert_allclose(scores, np.abs(y - mean) / std, rtol=1e-12)
    for k in range(50):
        lower, upper = rows.interval(scores[k])[k]
        assert lower <= y[k] <= upper  # ties are covered
        lower, upper = rows.interval(0.999 * scores[k])[k]
        assert not lower <= y[k] <= upper


@pytest.mark.parametrize("rate", [1e-14, 0.01, 0.7, 3.0, 250.0])
@pytest.mark.parametrize("variance", [0.0, 0.5])
def test_the_interval_of_a_score_is_all_counts_with_at_most_that_score(rate, variance):
    counts = np.unique(np.geomspace(1, 4000, 200).round()) - 1
    mean, one = np.full(len(counts), np.log(rate)), np.ones(len(counts))
    scores = PoissonLognormal(mean, variance * one, one).score(counts)
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()
    for threshold in np.unique(scores)[::7]:
        ends = PoissonLognormal(mean[:1], np.array([variance]), one[:1]).interval(threshold)[0]
        np.testing.assert_array_equal(
            scores <= threshold, (ends[0] <= counts) & (counts <= ends[1])
        )


def test_count_scores_are_tails_of_the_distribution():
    y, rate = np.arange(12.0), 3.0
    tail = np.minimum(np.minimum(poisson.cdf(y, rate), poisson.sf(y - 1, rate)), 0.5)
    one = np.ones(12)
    scores = PoissonLognormal(np.log(rate) * one, 0 * one, one).score(y)
    np.testing.assert_allclose(scores, -norm.ppf(tail), atol=1e-8)


def test_count_scores_rise_away_from_the_middle_however_far():
    y = np.concatenate([np.arange(500.0), np.geomspace(1e3, 1e15, 40)])
    one = np.ones(len(y))
    scores = PoissonLognormal(np.log(100.0) * one, 0.01 * one, one).score(y)
    middle = int(np.argmin(scores))
    assert (np.diff(scores[middle:]) >= 0).all()
    assert (np.diff(scores[: middle + 1]) <= 0).all()
    assert scores[-1] > 1e6
    assert np.isfinite(scores).all()


def test_uncalibrated_intervals_of_counts_are_quantiles():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=50), rng.uniform(0, 0.3, size=50)
    counts = PoissonLognormal(mean, variance, np.ones(50))
    expected = np.column_stack([counts.ppf(p) for p in (0.05, 0.95)])
    np.testing.assert_array_equal(counts.interval(float(norm.ppf(0.95))), expected)


def test_class_scores_are_the_probability_of_more_probable_classes():
    rng = np.random.default_rng(0)
    table = rng.multinomial(8, np.full(5, 0.2), size=50) / 8  # with ties
    scores = class_scores(table)
    for row, actual in zip(table, scores, strict=True):
        expected = [sum(p for p in row if p > row[c]) for c in range(5)]
        np.testing.assert_allclose(actual, expected, atol=1e-12)
    assert class_sets(table, 0.0)[np.arange(50), table.argmax(axis=1)].all()
    np.testing.assert_array_equal(class_sets(table, 0.5), scores <= 0.5)


def test_uncalibrated_sets_are_the_smallest_that_reach_the_coverage():
    table = np.random.default_rng(0).dirichlet(np.ones(4), size=100)
    sets = smallest_sets(table, 0.8)
    for row, inside in zip(table, sets, strict=True):
        order = np.argsort(-row)
        size = int(np.argmax(np.cumsum(row[order]) >= 0.8)) + 1
        assert set(np.flatnonzero(inside)) == set(order[:size])


# models


def heavy_tails(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, 2))
    scale = np.where(X[:, 1] > 0, 1.0, 0.1)  # the model's noise is homoscedastic
    return X, np.sin(2 * X[:, 0]) + scale * rng.standard_t(2.5, size=n_rows)


@pytest.fixture(scope="module")
def regressor():
    model = LANAMRegressor(interactions=0, level_effects=False, noise="constant", random_state=0)
    return model.fit(*heavy_tails(200, 0))


def test_calibrated_intervals_have_their_coverage_where_uncalibrated_ones_do_not(regressor):
    plain, calibrated = [], []
    for seed in range(1, 151):
        X, y = heavy_tails(139, seed)
        regressor.calibrate(X[:39], y[:39])
        new, y_new = X[39:], y[39:]
        calibrated.append(coverage_of(regressor.predict_interval(new, 0.8), y_new))
        plain.append(coverage_of(regressor.predict_interval(new, 0.8, calibrated=False), y_new))
    # rank 32 of 40: exactly 0.8, with a standard error of about 0.07 / sqrt(150)
    assert np.mean(calibrated) == pytest.approx(0.8, abs=4 * np.std(calibrated) / np.sqrt(150))
    assert np.std(calibrated) < 0.1
    assert np.mean(plain) > 0.88


def distances(model, X, values):
    """Probability of being as far on the same side as a value, with the noise integrated out.

    A fine trapezoidal rule over the logarithm of the noise precision, which is gamma distributed.
    """
    df, mean = model._model.noise_df, model.predict(X)
    assert 100.0 < df < 200.0
    precisions = np.exp(np.sqrt(2.0 / df) * np.linspace(-10.0, 10.0, 401))
    weights = precisions * gamma.pdf(precisions, 0.5 * df, scale=2.0 / df)
    of_mean = np.ptp(model.predict_interval(X, 0.9, kind="mean"), axis=1) / (2 * norm.ppf(0.95))
    stds = np.sqrt(of_mean[:, None] ** 2 + model.noise_std_**2 / precisions)
    return norm.cdf(-np.abs(values - mean)[:, None] / stds) @ weights / weights.sum()


def test_without_calibrate_nothing_changes(regressor):
    X, y = heavy_tails(60, 200)
    fresh = pickle.loads(pickle.dumps(regressor))
    fresh.__dict__.pop("calibration_", None)
    plain = fresh.predict_interval(X, 0.9)
    assert (plain[:, 0] < plain[:, 1]).all()
    for end in plain.T:
        np.testing.assert_allclose(distances(fresh, X, end), 0.05, rtol=1e-8)
    np.testing.assert_allclose(plain.mean(axis=1), fresh.predict(X), rtol=1e-8)
    of_mean, quantiles = fresh.predict_interval(X, 0.9, kind="mean"), fresh.predict_quantile(X)
    fresh.calibrate(X, y)
    np.testing.assert_array_equal(fresh.predict_interval(X, 0.9, calibrated=False), plain)
    np.testing.assert_array_equal(fresh.predict_interval(X, 0.9, kind="mean"), of_mean)
    np.testing.assert_array_equal(fresh.predict_quantile(X), quantiles)
    # The score is how improbable a row is on its side; both ends are as improbable as the threshold's row.
    threshold = -slow_threshold(-distances(fresh, X, y), 0.9)
    interval = fresh.predict_interval(X, 0.9)
    assert (interval[:, 0] < interval[:, 1]).all()
    for end in interval.T:
        np.testing.assert_allclose(distances(fresh, X, end), threshold, rtol=1e-6)
    np.testing.assert_allclose(interval.mean(axis=1), fresh.predict(X), rtol=1e-8)


def test_calibrate_takes_weights_as_repetitions(regressor):
    X, y = heavy_tails(40, 201)
    weight = np.random.default_rng(0).integers(0, 3, size=40)
    rows = np.repeat(np.arange(40), weight)
    weighted = regressor.calibrate(X, y, sample_weight=weight).predict_interval(X, 0.9)
    repeated = regressor.calibrate(X[rows], y[rows]).predict_interval(X, 0.9)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)
    assert not np.allclose(weighted, regressor.calibrate(X, y).predict_interval(X, 0.9))


def test_the_row_at_the_threshold_is_covered(regressor):
    # few distinct integers: scores are tied, and new rows have scores of calibration rows
    X = np.repeat([[0.0, 0.5], [0.5, -0.5]], 10, axis=0)
    y = np.tile(np.arange(10.0), 2)
    interval = regressor.calibrate(X, y).predict_interval(X, 0.9)
    assert coverage_of(interval, y) == slow_count_share(regressor, X, y, 0.9)


def slow_count_share(model, X, y, coverage):
    mean, std = model.predict(X, return_std=True)
    scores = np.abs(y - mean) / std
    return np.mean(scores <= slow_threshold(scores, coverage) * (1 + 1e-9))


def test_too_few_rows_for_a_models_coverage(regressor):
    X, y = heavy_tails(10, 202)
    regressor.calibrate(X, y)
    with pytest.raises(ValueError, match=r"coverage=0\.95 needs 19.*pass calibrated=False"):
        regressor.predict_interval(X)
    assert regressor.predict_interval(X, calibrated=False).shape == (10, 2)


def test_a_fit_forgets_the_calibration_and_a_pickle_does_not():
    X, y = heavy_tails(60, 3)
    model = LANAMRegressor(interactions=0, noise="constant", random_state=0).fit(X, y)
    assert not hasattr(model, "calibration_")
    assert model.calibrate(X, y) is model
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(X, 0.8), model.predict_interval(X, 0.8))
    assert not hasattr(clone(model), "calibration_")
    again.add_interactions(X, y, 1)
    assert not hasattr(again, "calibration_")
    with pytest.raises(ValueError, match="y has"):
        model.fit(X, y[:-1])
    assert not hasattr(model, "calibration_")
    assert not hasattr(model.fit(X, y).calibrate(X, y).fit(X, y), "calibration_")


def test_only_a_fitted_model_is_calibrated(regressor):
    X, y = heavy_tails(30, 4)
    with pytest.raises(NotFittedError):
        LANAMRegressor().calibrate(X, y)
    with pytest.raises(ValueError, match="X has 30 rows and y has 29 values"):
        regressor.calibrate(X, y[:-1])
    with pytest.raises(
        ValueError, match=r"exposure is for counts, .* set likelihood=.poisson., or leave"
    ):
        regressor.calibrate(X, y, exposure=1.0)


def test_probabilities_of_new_observations(regressor):
    X, _ = heavy_tails(30, 5)
    quantile = regressor.predict_quantile(X, 0.3)[:, 0]
    np.testing.assert_allclose(regressor.predict_cdf(X, quantile), 0.3, rtol=1e-10)
    tail = distances(regressor, X, 0.2)
    expected = np.where(regressor.predict(X) > 0.2, tail, 1.0 - tail)
    np.testing.assert_allclose(regressor.predict_cdf(X, 0.2), expected, rtol=1e-8)


# counts


def clustered(n_rows, seed):
    """Counts that are overdispersed in one part of the table only."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, 1))
    hours = rng.uniform(0.5, 3.0, size=n_rows)
    shape = np.where(X[:, 0] > 0, 0.3, 50.0)
    rate = 4.0 * hours * np.exp(0.5 * X[:, 0])
    return X, rng.poisson(rate * rng.gamma(shape, 1 / shape)), hours


@pytest.fixture(scope="module")
def counts():
    X, y, hours = clustered(300, 0)
    model = LANAMRegressor(likelihood="poisson", level_effects=False, random_state=0)
    return model.fit(X, y, exposure=hours)


def test_calibrated_counts_have_their_coverage(counts):
    plain, calibrated = [], []
    for seed in range(1, 41):
        X, y, hours = clustered(219, seed)
        counts.calibrate(X[:99], y[:99], exposure=hours[:99])
        new, y_new, hours_new = X[99:], y[99:], hours[99:]
        interval = counts.predict_interval(new, 0.9, exposure=hours_new)
        calibrated.append(coverage_of(interval, y_new))
        interval = counts.predict_interval(new, 0.9, exposure=hours_new, calibrated=False)
        plain.append(coverage_of(interval, y_new))
    error = np.std(calibrated) / np.sqrt(40)
    # at least 0.9, and a little more for integers
    assert 0.9 - 4 * error < np.mean(calibrated) < 0.9 + 4 * error + 0.02
    assert np.mean(plain) < 0.885


def test_calibration_of_counts_uses_the_exposure(counts):
    X, y, hours = clustered(99, 50)
    with_hours = counts.calibrate(X, y, exposure=hours).calibration_.scores
    without = counts.calibrate(X, y, exposure=1.0).calibration_.scores
    assert not np.allclose(with_hours, without)
    cdf = counts.predict_cdf(X, y, exposure=hours)
    below = counts.predict_cdf(X, y - 1, exposure=hours)
    tail = np.minimum(np.minimum(cdf, 1 - below), 0.5)
    np.testing.assert_allclose(np.sort(-norm.ppf(tail)), with_hours, atol=1e-8)


def test_probabilities_of_new_counts(counts):
    X, _, hours = clustered(20, 51)
    quantile = counts.predict_quantile(X, 0.6, exposure=hours)[:, 0]
    assert (counts.predict_cdf(X, quantile, exposure=hours) >= 0.6).all()
    assert (counts.predict_cdf(X, quantile - 1, exposure=hours) < 0.6).all()
    np.testing.assert_array_equal(
        counts.predict_cdf(X, quantile + 0.9, exposure=hours),
        counts.predict_cdf(X, quantile, exposure=hours),
    )


def test_an_absurd_count_leaves_intervals_finite(counts):
    X, y, hours = clustered(30, 52)
    y[0] = 10_000_000
    interval = counts.calibrate(X, y, exposure=hours).predict_interval(X, 0.96, exposure=hours)
    assert np.isfinite(interval).all()
    assert interval[0, 1] >= 10_000_000
    assert (interval[:, 0] == 0).all()


# classes


def rings(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2))
    radius = np.hypot(*X.T) * np.exp(0.3 * rng.normal(size=n_rows))
    return X, np.array(["in", "mid", "out"])[np.digitize(radius, [0.8, 1.5])]


@pytest.fixture(scope="module")
def classifier():
    return LANAMClassifier(interactions=0, level_effects=False, random_state=0).fit(*rings(150, 0))


def share_in_set(sets, model, y):
    return np.mean(sets[np.arange(len(y)), np.searchsorted(model.classes_, y)])


def test_calibrated_sets_have_their_coverage(classifier):
    calibrated, sizes = [], []
    for seed in range(1, 81):
        X, y = rings(199, seed)
        classifier.calibrate(X[:99], y[:99])
        sets = classifier.predict_set(X[99:], coverage=0.9)
        calibrated.append(share_in_set(sets, classifier, y[99:]))
        sizes.append(sets.sum(axis=1).mean())
    # few ties between scores of three classes: at least 0.9, and not much more
    error = np.std(calibrated) / np.sqrt(80)
    assert 0.9 - 4 * error < np.mean(calibrated) < 0.9 + 4 * error + 0.02
    assert 1.0 < np.mean(sizes) < 3.0


def test_sets_and_their_options(classifier):
    X, y = rings(99, 100)
    fresh = pickle.loads(pickle.dumps(classifier))
    fresh.__dict__.pop("calibration_", None)
    plain = fresh.predict_set(X)
    table = fresh.predict_proba(X)
    np.testing.assert_array_equal(plain, smallest_sets(table, 0.9))
    band = fresh.predict_interval(X)
    assert fresh.calibrate(X, y) is fresh
    np.testing.assert_array_equal(fresh.predict_set(X, calibrated=False), plain)
    np.testing.assert_array_equal(fresh.predict_interval(X), band)
    np.testing.assert_array_equal(fresh.predict_proba(X), table)
    own_class = np.searchsorted(fresh.classes_, y)
    scores = class_scores(table)[np.arange(99), own_class]
    for coverage in (0.5, 0.9, 0.99):
        sets = fresh.predict_set(X, coverage)
        np.testing.assert_array_equal(
            sets, class_scores(table) <= slow_threshold(scores, coverage) + 1e-9
        )
        assert share_in_set(sets, fresh, y) >= coverage
        assert sets[np.arange(99), table.argmax(axis=1)].all()
    weight = np.random.default_rng(0).integers(0, 3, size=99)
    rows = np.repeat(np.arange(99), weight)
    np.testing.assert_array_equal(
        fresh.calibrate(X, y, sample_weight=weight).calibration_.scores.repeat(
            fresh.calibration_.weight.astype(int)
        ),
        fresh.calibrate(X[rows], y[rows]).calibration_.scores,
    )
    with pytest.raises(ValueError, match="was not among the training data's"):
        fresh.calibrate(X, np.where(y == "in", "inside", y))
    with pytest.raises(ValueError, match=r"coverage=1\.2 must lie between 0 and 1"):
        fresh.predict_set(X, 1.2)
    fresh.fit(X, y)
    assert not hasattr(fresh, "calibration_")


def test_sets_of_two_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4100, 1))
    y = rng.uniform(size=4100) < 1 / (1 + np.exp(-X[:, 0]))
    model = LANAMClassifier(random_state=0).fit(X[:100], y[:100])
    shares = []
    for start in range(100, 4100, 200):
        old, new = slice(start, start + 100), slice(start + 100, start + 200)
        sets = model.calibrate(X[old], y[old]).predict_set(X[new], coverage=0.9)
        assert sets.any(axis=1).all()
        shares.append(share_in_set(sets, model, y[new]))
    assert (sets.shape, sets.dtype) == ((100, 2), bool)
    assert 0.1 < sets.all(axis=1).mean() < 0.9
    assert np.mean(shares) == pytest.approx(0.9, abs=0.04)  # four standard errors
