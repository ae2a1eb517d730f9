"""Retention curves, against a loop over the retained rows."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge, LogisticRegression

from lanam import metrics

rng = np.random.default_rng(0)


def slow_curve(quality, uncertainty):
    order = np.argsort(uncertainty)
    return [np.mean([quality[i] for i in order[: k + 1]]) for k in range(len(order))]


def test_the_curve_is_a_rolling_mean():
    right, doubt = rng.integers(0, 2, size=40), rng.uniform(size=40)
    curve = metrics.retention_curve(right, doubt, n_points=40)
    np.testing.assert_allclose(curve.retained, np.arange(1, 41) / 40)
    np.testing.assert_allclose(curve.value, slow_curve(right, doubt), rtol=1e-12)
    assert (curve.name, curve.n_rows) == ("accuracy", 40)


def test_fewer_points_lie_on_the_same_curve():
    right, doubt = rng.integers(0, 2, size=40), rng.uniform(size=40)
    few, all_points = (metrics.retention_curve(right, doubt, n_points=n) for n in (10, 40))
    np.testing.assert_allclose(few.value, all_points.value[3::4], rtol=1e-12)
    assert metrics.retention_curve(right, doubt).retained[-1] == 1.0


def test_the_root_of_mean_squared_errors():
    error, std = rng.normal(size=30) ** 2, rng.uniform(size=30)
    curve = metrics.retention_curve(error, std, name="rmse", root=True, n_points=30)
    np.testing.assert_allclose(curve.value, np.sqrt(slow_curve(error, std)), rtol=1e-12)
    pytest.importorskip("pandas", reason="the frame's library")
    assert list(curve.to_frame().columns) == ["retained", "rmse"]


def test_ties_in_uncertainty_are_averaged():
    right, doubt = np.array([1, 0, 1, 0]), np.array([0.2, 0.2, 0.1, 0.2])
    expected = [1.0, 2 / 3, 5 / 9, 0.5]  # one correct row, then thirds of another
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        curve = metrics.retention_curve(right[order], doubt[order], n_points=4)
        np.testing.assert_allclose(curve.value, [1.0, (1 + 1 / 3) / 2, (1 + 2 / 3) / 3, 0.5])
        np.testing.assert_allclose(curve.value, expected)


def test_weights_are_frequencies():
    right, doubt = rng.integers(0, 2, size=30), rng.uniform(size=30)
    weight = rng.integers(0, 4, size=30)
    weighted = metrics.retention_curve(right, doubt, sample_weight=weight)
    repeated = metrics.retention_curve(np.repeat(right, weight), np.repeat(doubt, weight))
    np.testing.assert_allclose(weighted.value, repeated.value, rtol=1e-12)
    assert weighted.area == pytest.approx(repeated.area)


def test_the_area_is_the_mean_over_fractions():
    flat = metrics.retention_curve(np.full(10, 0.7), np.arange(10))
    assert flat.area == pytest.approx(0.7)
    # correct rows first: 1 up to a half, then 1 / (2 r)
    falling = metrics.retention_curve([1, 0], [0.0, 1.0], n_points=1000)
    assert falling.area == pytest.approx(0.5 + 0.5 * np.log(2), abs=1e-3)
    rising = metrics.retention_curve([1, 0], [1.0, 0.0], n_points=1000)
    assert rising.area < falling.area


def test_retention_of_a_classifier():
    X = rng.normal(size=(60, 2))
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, size=60)]
    model = LogisticRegression().fit(X, y)
    proba = model.predict_proba(X)
    expected = slow_curve(model.predict(X) == y, -proba.max(axis=1))
    curve = metrics.retention_of(model, X, y, n_points=60)
    np.testing.assert_allclose(curve.value, expected, rtol=1e-12)
    assert curve.value[-1] == pytest.approx(model.score(X, y))


def test_retention_of_a_regressor():
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    model = BayesianRidge().fit(X, y)
    mean, std = model.predict(X, return_std=True)
    curve = metrics.retention_of(model, X, y, n_points=60)
    np.testing.assert_allclose(curve.value, np.sqrt(slow_curve((y - mean) ** 2, std)), rtol=1e-10)
    assert curve.name == "rmse"
    assert curve.value[-1] == pytest.approx(metrics.rmse(y, mean))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.retention_curve([1, 0], [0.1]), "uncertainty has 1 values"),
        (lambda: metrics.retention_curve([1], [0.1], n_points=0), "n_points=0 must be"),
        (lambda: metrics.retention_curve([-1.0], [0.1], root=True), "root=True is for squares"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_exposure_and_unknown_labels_are_refused_for_classes():
    model = LogisticRegression().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match="exposure is for counts, and"):
        metrics.retention_of(model, [[0.0]], ["a"], exposure=1.0)
    with pytest.raises(ValueError, match=r"y has the label 'z', which is none of \['a', 'b'\]"):
        metrics.retention_of(model, [[0.0]], ["z"])
