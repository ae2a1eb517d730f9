"""The kernel calibration error, against a loop over pairs with expectations by quadrature."""

import itertools
import math

import numpy as np
import pytest

from lanam.metrics import kernel, skce

rng = np.random.default_rng(0)
MEAN = rng.normal(size=9)
STD = rng.uniform(0.3, 1.5, size=9)
Y = MEAN + 1.7 * STD * rng.normal(size=9)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def slow_term(i, j, near, alike):
    """One pair, with means over the predictions as sums over nodes."""

    def likeness(a, b):
        return math.exp(-((a - b) ** 2) / (2 * alike**2))

    def draws(k):
        return [
            (weight, MEAN[k] + STD[k] * node) for weight, node in zip(WEIGHTS, NODES, strict=True)
        ]

    distance = math.sqrt((MEAN[i] - MEAN[j]) ** 2 + (STD[i] - STD[j]) ** 2)
    total = likeness(Y[i], Y[j])
    total -= sum(weight * likeness(z, Y[j]) for weight, z in draws(i))
    total -= sum(weight * likeness(Y[i], z) for weight, z in draws(j))
    total += sum(v * w * likeness(a, b) for v, a in draws(i) for w, b in draws(j))
    return math.exp(-distance / near) * total


def median_distance(*columns):
    pairs = itertools.combinations(range(len(columns[0])), 2)
    return np.median([math.sqrt(sum((c[i] - c[j]) ** 2 for c in columns)) for i, j in pairs])


@pytest.fixture(scope="module")
def terms():
    near, alike = median_distance(MEAN, STD), median_distance(Y)
    return np.array([[slow_term(i, j, near, alike) for j in range(9)] for i in range(9)])


def test_the_unbiased_estimate_is_the_mean_over_pairs(terms):
    expected = (terms.sum() - np.trace(terms)) / (9 * 8)
    assert skce(Y, MEAN, STD) == pytest.approx(expected, rel=1e-8)


def test_the_biased_estimate_includes_the_diagonal(terms):
    assert skce(Y, MEAN, STD, biased=True) == pytest.approx(terms.mean(), rel=1e-8)
    assert terms.mean() > 0


def test_bandwidths_can_be_set():
    expected = np.mean([slow_term(i, j, 0.7, 2.5) for i in range(9) for j in range(9) if i != j])
    error = skce(Y, MEAN, STD, prediction_bandwidth=0.7, target_bandwidth=2.5)
    assert error == pytest.approx(expected, rel=1e-8)
    assert error != pytest.approx(skce(Y, MEAN, STD, target_bandwidth=2.5), rel=1e-3)


def test_chunks_of_pairs_do_not_change_the_result(monkeypatch):
    whole = skce(Y, MEAN, STD), skce(Y, MEAN, STD, biased=True)
    monkeypatch.setattr(kernel, "_CHUNK_PAIRS", 20)  # chunks of two rows, and a last one
    assert skce(Y, MEAN, STD) == pytest.approx(whole[0], rel=1e-12)
    assert skce(Y, MEAN, STD, biased=True) == pytest.approx(whole[1], rel=1e-12)


def test_blocks_are_means_over_pairs_within_them(terms):
    expected = sum(
        terms[i, j]
        for block in ([0, 1, 2], [3, 4, 5], [6, 7, 8])
        for i in block
        for j in block
        if i != j
    )
    assert skce(Y, MEAN, STD, block_size=3) == pytest.approx(expected / 18, rel=1e-8)
    assert skce(Y, MEAN, STD, block_size=9) == pytest.approx(skce(Y, MEAN, STD), rel=1e-12)


@pytest.mark.parametrize("biased", [False, True])
def test_weights_are_frequencies(biased):
    weight = np.array([1, 2, 0, 1, 3, 1, 1, 0, 1])
    rows = np.repeat(np.arange(9), weight)
    same = {"prediction_bandwidth": 1.0, "target_bandwidth": 1.0, "biased": biased}
    weighted = skce(Y, MEAN, STD, sample_weight=weight, **same)
    assert weighted == pytest.approx(skce(Y[rows], MEAN[rows], STD[rows], **same), rel=1e-10)
    assert weighted != pytest.approx(skce(Y, MEAN, STD, **same), rel=1e-3)


def test_the_estimate_is_unbiased_at_calibration():
    estimates = []
    for seed in range(400):
        own = np.random.default_rng(seed)
        mean, std = own.normal(size=20), own.uniform(0.5, 1.5, size=20)
        y = mean + std * own.normal(size=20)
        estimates.append(skce(y, mean, std, prediction_bandwidth=1.0, target_bandwidth=1.0))
    error = np.std(estimates) / 20
    assert abs(np.mean(estimates)) < 4 * error
    assert min(estimates) < 0


def test_it_grows_with_miscalibration_and_not_with_the_unit():
    mean = rng.normal(size=300)
    y = mean + rng.normal(size=300)
    errors = [skce(y, mean, std) for std in (1.0, 2.0, 4.0)]
    assert errors == sorted(errors)
    shifted = skce(1000 + 60 * y, 1000 + 60 * mean, 120.0)
    assert shifted == pytest.approx(errors[1], rel=1e-8)


def test_bandwidths_of_a_subsample_are_accurate(monkeypatch):
    y, mean = rng.normal(size=(2, 1500))
    all_rows = np.median(np.abs(y[:, None] - y)[np.triu_indices(1500, 1)])
    subsample = kernel._median_distance(y)
    assert subsample == pytest.approx(all_rows, rel=0.02)
    order = rng.permutation(1500)
    assert kernel._median_distance(y[order]) == subsample
    assert kernel._median_distance(y[order], mean[order]) == kernel._median_distance(y, mean)


def test_constant_data_has_a_bandwidth():
    assert np.isfinite(skce([0.0, 0.0, 0.0], 1.0, 1.0))
    assert np.isfinite(skce([0.0, 0.0, 0.0, 0.0, 5.0], 1.0, 1.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_bandwidth": 0.0}, "target_bandwidth=0.0 must be positive"),
        ({"prediction_bandwidth": -1.0}, "prediction_bandwidth=-1.0 must be positive"),
        ({"block_size": 1}, "block_size=1 must be an integer of at least 2"),
        ({"sample_weight": [1] + [0] * 8}, "pass at least two rows"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        skce(Y, MEAN, STD, **options)


@pytest.mark.parametrize(("n_rows", "block"), [(100, None), (240, 60)])
def test_a_calibrated_model_exceeds_the_limit_in_five_per_cent(n_rows, block):
    rng = np.random.default_rng(1)
    mean, std = rng.normal(size=n_rows), rng.uniform(0.5, 2.0, size=n_rows)
    draws = mean + std * rng.normal(size=(300, n_rows))
    most = kernel.skce_limit(draws[0], mean, std, block_size=block)
    errors = [skce(y, mean, std, block_size=block) for y in draws]
    # 300 data sets, against the quantile of 200 draws: three standard errors of both.
    assert 0.01 < np.mean(np.array(errors) > most) < 0.11
    assert skce(mean + 0.5 * std * draws.std(), mean, std, block_size=block) > 2 * most


def test_the_limit_falls_with_rows_and_with_weights():
    rng = np.random.default_rng(2)
    mean = rng.normal(size=400)
    y = mean + rng.normal(size=400)
    most = kernel.skce_limit(y, mean, 1.0)
    twice = kernel.skce_limit(y, mean, 1.0, sample_weight=np.full(400, 2.0))
    assert twice == pytest.approx(most * np.sqrt(400 * 399 / (800 * 799)))
    repeated = kernel.skce_limit(np.repeat(y, 2), np.repeat(mean, 2), 1.0)
    assert repeated == pytest.approx(twice, rel=0.02)  # other bandwidths
    assert kernel.skce_limit(y[::-1], mean[::-1], 1.0) == pytest.approx(most)
