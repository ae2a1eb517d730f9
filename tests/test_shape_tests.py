"""Tests of shapes: exact departures, calibrated probabilities, messages."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.errors import InputError
from lanam.explain.shape_tests import _DEPARTURES, ShapeTest


def convex_minorant(values, points):
    """The slow oracle: at each point the lowest chord of two points around it."""
    result = values.copy()
    for k, point in enumerate(points):
        for i in range(k + 1):
            for j in range(k, len(points)):
                if i < j:
                    place = (point - points[i]) / (points[j] - points[i])
                    result[k] = min(result[k], (1 - place) * values[i] + place * values[j])
    return result


class TestDepartures:
    def test_the_largest_fall(self):
        curves = np.array([[0.0, 0.0], [2.0, 1.0], [1.5, 2.0], [1.0, 3.0]])
        points = np.arange(4.0)
        assert _DEPARTURES["increasing"](curves, points).tolist() == [1.0, 0.0]
        assert _DEPARTURES["decreasing"](curves, points).tolist() == [2.0, 3.0]

    def test_the_distance_from_the_convex_minorant(self):
        rng = np.random.default_rng(0)
        points = np.sort(rng.uniform(size=12))
        curves = rng.normal(size=(12, 5))
        expected = [np.max(curve - convex_minorant(curve, points)) for curve in curves.T]
        np.testing.assert_allclose(_DEPARTURES["convex"](curves, points), expected)
        np.testing.assert_allclose(_DEPARTURES["concave"](-curves, points), expected)

    def test_a_parabola_is_convex_and_a_line_is_both(self):
        points = np.sort(np.random.default_rng(1).uniform(-1, 1, 30))
        curves = np.stack([points**2, 3 * points], axis=1)
        np.testing.assert_allclose(_DEPARTURES["convex"](curves, points), 0.0, atol=1e-12)
        assert _DEPARTURES["concave"](curves, points)[0] > 0.5
        assert _DEPARTURES["concave"](curves, points)[1] < 1e-12


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, size=(300, 3)), columns=["rise", "bowl", "none"])
    X["grade"] = rng.choice(["low", "mid", "high"], 300)
    level = X["grade"].map({"low": 0.0, "mid": 0.7, "high": 1.0})
    y = 3 * X["rise"] + 8 * (X["bowl"] - 0.5) ** 2 + level + 0.5 * rng.normal(size=300)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def model(data):
    return LANAMRegressor(interactions=0, ordered={"grade": ["low", "mid", "high"]}).fit(*data)


class TestModels:
    def test_what_is_true(self, model):
        assert model.test_shape("rise", "increasing").probability > 0.95
        assert model.test_shape("bowl", "convex").bayes_factor > 3
        assert model.test_shape("grade", "increasing").probability > 0.95

    def test_what_is_false(self, model):
        for column, shape in (("rise", "decreasing"), ("bowl", "increasing"), ("bowl", "concave")):
            test = model.test_shape(column, shape)
            assert test.probability < 0.01
            assert test.bayes_factor < 0.1

    def test_of_a_range(self, model):
        test = model.test_shape("bowl", "increasing", between=(0.6, 2.0))
        assert test.probability > 0.95
        assert 0.59 < test.low < 0.62
        assert test.high <= 1.0

    def test_is_the_same_for_rows_in_another_order(self, data, model):
        X, y = data
        order = np.random.default_rng(1).permutation(len(y))
        again = LANAMRegressor(**model.get_params()).fit(X.iloc[order], y[order])
        before, after = (each.test_shape("bowl", "convex") for each in (model, again))
        assert before.probability == pytest.approx(after.probability, abs=0.002)
        assert str(model.test_shape("bowl", "convex")) == str(before)

    def test_a_tolerance_of_nothing_is_strict(self, model):
        strict = model.test_shape("rise", "increasing", tolerance=0.0)
        assert strict.probability <= model.test_shape("rise", "increasing").probability

    def test_several_classes(self, data):
        X, y = data
        classes = np.digitize(y, [1.5, 2.5])
        tests = (
            LANAMClassifier(interactions=0).fit(X[["rise"]], classes).test_shape(0, "increasing")
        )
        assert tests[2].probability > 0.9 > 0.1 > tests[0].probability

    def test_as_data_and_in_words(self):
        test = ShapeTest("dose", "convex", 0.0, 2.5, 0.02, 0.9, 0.1, 1000)
        assert test.bayes_factor == pytest.approx(81.0)
        assert test.to_dict()["bayes_factor"] == pytest.approx(81.0)
        assert test.standard_error == pytest.approx(np.sqrt(2 / 90))
        words = "dose is convex (0 to 2.5): posterior probability 0.900, prior 0.100; Bayes factor 81 for"
        assert str(test) == f"{words} it (strong)"
        none = ShapeTest("dose", "convex", 0.0, 2.5, 0.02, 0.0005, 0.2, 1000)
        assert none.is_bound
        assert "Bayes factor more than 500 against it (very strong)" in str(none)
        assert "no draw is" in str(ShapeTest("dose", "convex", 0.0, 2.5, 0.02, 5e-4, 5e-4, 1000))


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("rise", "up"), "shape='up' is not known: choose 'increasing', 'decreasing'"),
            (("rises", "convex"), "names the column 'rises'.*did you mean 'rise'"),
            (("none", "convex"), "'none' was dropped.*name the column in keep"),
            (("grade", "convex"), "has ordered categories, and shape='convex' is for numbers"),
        ],
    )
    def test_say_what_to_do(self, model, arguments, message):
        with pytest.raises(InputError, match=message):
            model.test_shape(*arguments)

    @pytest.mark.parametrize("between", [(3, 2), 5, (0.2, 0.200001)])
    def test_ranges(self, model, between):
        with pytest.raises(InputError, match="between="):
            model.test_shape("rise", "convex", between=between)
        with pytest.raises(InputError, match="tolerance=2"):
            model.test_shape("rise", "convex", tolerance=2)

    def test_categories_without_an_order_and_constraints(self, data):
        X, y = data
        model = LANAMRegressor(interactions=0, monotonic_cst={"rise": 1}).fit(X, y)
        with pytest.raises(InputError, match=r"fit with their order, ordered={'grade'"):
            model.test_shape("grade", "increasing")
        with pytest.raises(InputError, match="was fitted under constraints"):
            model.test_shape("rise", "increasing")
