"""Regressors whose noise is not Gaussian, as users meet them."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning

import lanam
from lanam import LANAMClassifier, LANAMRegressor
from lanam.metrics import crps_gaussian, crps_sample

SMALL = {"hidden_sizes": (8,), "interactions": 0, "random_state": 0}


def table(n_rows=900, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.uniform(-1, 1, n_rows), "z": rng.normal(size=n_rows)})
    return X, np.sin(3.0 * X["x"]) + 0.5 * (rng.gamma(2.0, size=n_rows) - 2.0)


@pytest.fixture(scope="module")
def skewed():
    return LANAMRegressor(**SMALL).fit(*table())


@pytest.fixture(scope="module")
def gaussian():
    return LANAMRegressor(noise="constant", **SMALL).fit(*table())


def test_the_shape_is_told(skewed):
    assert skewed.noise_shape_.skewness > 0.5
    assert "not Gaussian: skewed to larger values" in str(skewed.summary())
    assert skewed.summary().facts["noise_skewness"] == skewed.noise_shape_.skewness


def test_mean_and_deviation_are_those_of_gaussian_noise(skewed, gaussian):
    assert gaussian.noise_shape_ is None
    X, _ = table(50, seed=1)
    np.testing.assert_allclose(skewed.predict(X), gaussian.predict(X))
    if not skewed.noise_terms_:
        own, other = (model.predict(X, return_std=True)[1] for model in (skewed, gaussian))
        np.testing.assert_allclose(own, other)


def test_new_rows_are_likelier_and_intervals_are_where_they_lie(skewed, gaussian):
    X, y = table(4000, seed=1)
    assert skewed.log_likelihood(X, y) > gaussian.log_likelihood(X, y) + 0.05
    assert skewed.crps(X, y) < gaussian.crps(X, y)
    lower, upper = skewed.predict_interval(X, coverage=0.9).T
    assert (y < lower).mean() == pytest.approx(0.05, abs=0.03)  # where the density is steep
    assert (y > upper).mean() == pytest.approx(0.05, abs=0.02)
    mean = skewed.predict(X)
    assert np.all(upper - mean > 1.2 * (mean - lower))


def test_quantiles_and_probabilities_are_each_others_inverse(skewed):
    X, _ = table(40, seed=2)
    for share, values in zip(
        (0.01, 0.3, 0.99), skewed.predict_quantile(X, (0.01, 0.3, 0.99)).T, strict=True
    ):
        np.testing.assert_allclose(skewed.predict_cdf(X, values), share, atol=1e-6)


def test_calibrated_intervals_are_the_models_own_of_another_level(skewed):
    held, rows = table(500, seed=3), table(2000, seed=4)
    model = LANAMRegressor(**SMALL).fit(*table()).calibrate(*held)
    lower, upper = model.predict_interval(rows[0], coverage=0.8).T
    assert ((lower <= rows[1]) & (rows[1] <= upper)).mean() == pytest.approx(0.8, abs=0.04)
    level = ndtr(model.calibration_.threshold(0.8))
    np.testing.assert_allclose(upper, model.predict_quantile(rows[0], level)[:, 0], atol=1e-4)


def test_the_ranked_probability_score_is_that_of_draws(skewed, gaussian):
    X, y = table(300, seed=5)
    mean, std = gaussian.predict(X, return_std=True)
    assert gaussian.crps(X, y) == pytest.approx(crps_gaussian(y, mean, std))
    levels = (np.arange(400) + 0.5) / 400
    draws = skewed.predict_quantile(X, levels).T
    assert skewed.crps(X, y) == pytest.approx(crps_sample(y, draws), rel=0.01)
    weight = np.arange(300.0)
    each = np.array([skewed.crps(X[k : k + 1], y[k : k + 1]) for k in range(300)])
    assert skewed.crps(X, y, sample_weight=weight) == pytest.approx(
        np.average(each, weights=weight)
    )


def test_rows_in_files_have_the_same_score(skewed, tmp_path):
    X, y = table(200, seed=6)
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    assert skewed.crps(tmp_path / "rows.parquet", "y") == pytest.approx(skewed.crps(X, y))


def test_a_saved_model_has_its_shape(skewed, tmp_path):
    again = lanam.load(skewed.save(tmp_path / "model.lanam"))
    X, _ = table(30, seed=7)
    np.testing.assert_array_equal(again.predict_interval(X), skewed.predict_interval(X))
    assert again.noise_shape_.as_lists() == skewed.noise_shape_.as_lists()


def test_counts_have_no_shape_but_such_a_score():
    X, _ = table(200)
    y = np.random.default_rng(0).poisson(3.0, 200)
    model = LANAMRegressor(likelihood="poisson", **SMALL).fit(X, y)
    assert model.noise_shape_ is None
    # The sum over counts k of (F(k) - [k >= y])^2, one by one.
    k = np.arange(60.0)[:, None] * np.ones(200)
    below = np.stack([model.predict_cdf(X, row) for row in k])
    wanted = np.square(below - (k >= y)).sum(axis=0).mean()
    assert model.crps(X, y) == pytest.approx(wanted, rel=1e-6)
    with pytest.raises(ValueError, match="the noise of counts follows from their rate"):
        model.predict_noise(X)


def test_the_papers_model_is_gaussian():
    X, y = table(300)
    model = LANAMRegressor(solver="adam", posterior="block", curvature="kron", level_effects=False,
                           max_iter=5, **SMALL)  # fmt: skip
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X, y).noise_shape_ is None


def test_classes_know_no_noise(skewed):
    X, y = table(200)
    model = LANAMClassifier(**SMALL).fit(X, y > 0)
    assert model.summary().facts["noise_skewness"] is None
    assert not hasattr(model, "noise_shape_")
