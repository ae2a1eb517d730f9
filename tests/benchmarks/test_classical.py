"""Linear, boosted and spline peers: what their columns add, and how their settings are chosen."""

from functools import cache

import numpy as np
import pytest
from scipy.special import expit

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks.peers import all_peers  # noqa: E402

TASKS = ("regression", "classification")


def problem(task, n_rows=240, noise=1.0):
    """Uniform, skewed, binary and constant columns; the first two matter."""
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.uniform(-2, 2, n_rows),
            rng.lognormal(0, 1, n_rows),
            rng.integers(0, 2, n_rows),
            np.full(n_rows, 3.0),
        ]
    )
    score = 2 * X[:, 0] + np.log(X[:, 1])
    if task == "classification":
        return X, (score + rng.logistic(size=n_rows) > 0).astype(int)
    return X, 10 * score + noise * rng.standard_normal(n_rows)


def fitted(name, task, seed=0):
    peer = all_peers()[name]
    reason = peer.missing()
    if reason is not None:
        pytest.skip(reason)
    # Boosting goes on for thousands of rounds where there is hardly any noise.
    X, y = problem(task, noise=20.0 if name == "ebm" else 1.0)
    return X, y, peer.fit(X, y, task, seed, 1)


#: The same model for several tests, none of which changes it.
shared = cache(fitted)


def log_odds(probability):
    return np.log(probability / (1 - probability))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["linear", "ebm", "lanam", "pygam"])
def test_what_the_columns_add_is_centred_and_sums_to_the_prediction(name, task):
    X, _, model = shared(name, task)
    means, stds = zip(*(model.effect(X, column) for column in range(X.shape[1])), strict=True)
    np.testing.assert_allclose(np.mean(means, axis=1), 0, atol=1e-8)
    np.testing.assert_array_equal(means[3], 0)  # constant
    if name == "linear":
        assert np.isnan(stds).all()
    else:
        assert (stds[0] > 0).all()
        assert (np.asarray(stds) >= 0).all()
    prediction = model.predict(X).mean
    if (
        name == "lanam" and task == "classification"
    ):  # averaged over the posterior: not the sum alone
        return
    rest = (log_odds(prediction) if task == "classification" else prediction) - np.sum(
        means, axis=0
    )
    np.testing.assert_allclose(rest, rest[0], atol=1e-6)  # the intercept


def test_the_band_of_the_bags_is_that_of_their_bins():
    X, y, model = shared("ebm", "regression")
    from interpret.glassbox import ExplainableBoostingRegressor

    same = ExplainableBoostingRegressor(
        interactions=0, random_state=0, n_jobs=1, feature_types=["continuous"] * 4
    ).fit(X, y)
    row = int(np.argmin(X[:, 0]))
    _, std = model.effect(X[[row]], 0)
    assert std[0] == same.standard_deviations_[0][1]  # entry 0 is for missing values


def test_a_band_of_two_terms_is_that_of_their_sum():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 60, (900, 1)).astype(float)
    y = 3.0 * (X[:, 0] == 30) + np.sin(X[:, 0] / 10) + 0.1 * rng.standard_normal(900)
    model = all_peers()["lanam"].fit(X, y, "regression", 0, 1)
    from lanam import LANAMRegressor

    same = LANAMRegressor(interactions=0, random_state=0).fit(X, y)
    own = [k for k, term in enumerate(same.terms_) if tuple(term.features) == (0,)]
    assert len(own) == 2
    mean, std = model.effect(X, 0)
    np.testing.assert_allclose(mean, same.predict_terms(X)[:, own].sum(axis=1))
    rows = np.unique(X[:, 0], return_index=True)[1]
    draws = same.sample(X[rows], 4000, random_state=0)
    np.testing.assert_allclose(std[rows], draws.std(axis=0), rtol=0.1)
    separate = same.predict_terms(X[rows], return_std=True)[1][:, own]
    assert not np.allclose(std[rows], np.linalg.norm(separate, axis=1), rtol=0.1)


@pytest.mark.parametrize("task", TASKS)
def test_the_grid_keeps_the_corner_with_the_least_held_out_loss(task, monkeypatch):
    pytest.importorskip("lightgbm", reason="the peer itself")
    from benchmarks.peers import lightgbm as adapter

    losses = {}
    measure = adapter.held_out_loss

    def remember(model):
        losses[model.max_depth, model.num_leaves] = measure(model)
        assert model.min_child_samples == 2
        return losses[model.max_depth, model.num_leaves]

    monkeypatch.setattr(adapter, "held_out_loss", remember)
    X, _, model = fitted("lightgbm-grid", task)
    assert set(losses) == {(d, leaves) for d in (3, 7, 12) for leaves in (8, 16, 31)}
    kept = losses[model.info["depth"], model.info["leaves"]]
    assert kept == min(losses.values()) < max(losses.values())
    losses.clear()
    _, _, single = fitted("lightgbm", task)
    assert list(losses) == [(3, 8)]
    assert (single.info["depth"], single.info["leaves"]) == (3, 8)
    if task == "regression":  # the noise is that of the held-out rows, whose loss is its square
        assert model.predict(X).std[0] == pytest.approx(np.sqrt(kept))


@pytest.mark.parametrize("task", TASKS)
def test_candidates_are_scored_as_pygam_scores_its_fit(task):
    pygam = pytest.importorskip("pygam", reason="the peer itself")
    from benchmarks.peers import pygam as adapter

    X, y = problem(task)
    X = X[:, :3]
    splines = adapter.spline_counts(X)
    kind = pygam.LogisticGAM if task == "classification" else pygam.LinearGAM
    coordinates = adapter.coordinates_of(kind(n_splines=splines, lam=1.0), X)
    assert coordinates.design.shape[1] == sum(splines) - 3 + 1
    make, name, error = {
        "regression": (adapter.gcv_score, "GCV", 1e-6),
        "classification": (adapter.ubre_score, "UBRE", 1e-4),  # iterations stop early
    }[task]
    score = make(coordinates, y)
    for strengths in ([0.01, 300.0, 2.0], [50.0, 0.02, 100.0]):
        gam = kind(n_splines=splines, lam=strengths)
        adapter.quietly(lambda gam=gam: gam.fit(X, y))
        outcome = score(np.array(strengths))
        assert outcome.converged
        assert outcome.score == pytest.approx(gam.statistics_[name], rel=error)
        linear = coordinates.design @ outcome.weights
        np.testing.assert_allclose(
            expit(linear) if task == "classification" else linear, gam.predict_mu(X), atol=0.01
        )


@pytest.mark.parametrize("task", TASKS)
def test_the_best_of_a_thousand_candidates_is_fitted(task):
    pygam = pytest.importorskip("pygam", reason="the peer itself")
    from benchmarks.peers.pygam import quietly

    X, y, model = shared("pygam", task)
    assert model.info["candidates"] == 1000
    assert model.info["converged"]
    kind = pygam.LogisticGAM if task == "classification" else pygam.LinearGAM
    name = "UBRE" if task == "classification" else "GCV"
    for strengths in ([1e-3] * 3, [1.0] * 3, [1e3] * 3, [0.6, 100.0, 0.6]):
        gam = kind(n_splines=[20, 20, 4], lam=strengths)
        quietly(lambda gam=gam: gam.fit(X[:, :3], y))
        assert model.info["score"] < gam.statistics_[name]


def test_the_band_of_a_spline_is_that_of_its_centred_coefficients():
    pytest.importorskip("pygam", reason="the peer itself")
    X, _, model = shared("pygam", "regression")
    mean, std = model.effect(X, 0)
    assert np.corrcoef(mean, X[:, 0])[0, 1] > 0.99
    # the truth is a line of slope 20 with noise of one: the error is of the size the band says
    error = (mean - 20 * (X[:, 0] - X[:, 0].mean())) / std
    assert 0.3 < np.sqrt(np.mean(error**2)) < 2
    assert std[np.argmin(X[:, 0])] > np.median(std)  # the end is known least


def test_splines_are_no_more_than_distinct_values_and_rows_allow():
    pytest.importorskip("pygam", reason="the peer itself")
    from benchmarks.peers.pygam import spline_counts

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(60), rng.integers(0, 2, 60), np.arange(60) % 9])
    assert spline_counts(X) == [20, 4, 9]
    wide = np.column_stack([rng.standard_normal((60, 5)), np.arange(60) % 9])
    assert spline_counts(wide) == [10] * 5 + [9]  # 59 and the intercept are 60
    assert spline_counts(rng.standard_normal((10, 5))) == [4] * 5  # cubic splines are no fewer


def test_separated_classes_do_not_run_away():
    """Two columns tell the classes apart, and pyGAM by itself ends at one half for every row."""
    pytest.importorskip("pygam", reason="the peer itself")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 12))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = all_peers()["pygam"].fit(X, y, "classification", 0, 1)
    assert np.mean((model.predict(X).mean > 0.5) == y) > 0.97
