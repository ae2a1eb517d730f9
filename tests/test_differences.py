"""Differences of two values, against posterior draws of predictions with only that column changed."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import logit

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import prepare
from lanam.explain import Contrast, Difference, explain_global

CITIES = ("Bonn", "Rome", "Oslo", "Lima", "Cairo")
PAIRS = [("age", "bmi"), ("age", "city")]
#: Small networks and constant noise, for speed.
QUICK = {"hidden_sizes": (16,), "pair_hidden_sizes": (16,), "random_state": 0}
NUMBERS = QUICK | {"noise": "constant"}


def make_table(n_rows=700, seed=0):
    """Columns of all kinds with missing values, interactions; and the noiseless target."""
    rng = np.random.default_rng(seed)
    age, bmi = rng.uniform(20.0, 80.0, n_rows), rng.normal(27.0, 4.0, n_rows)
    city, week = rng.choice(CITIES, n_rows), rng.integers(0, 25, n_rows).astype(float)
    target = np.sin(age / 12.0) + 0.6 * (city == "Rome") - 0.8 * (city == "Oslo") + 0.1 * (bmi - 27)
    target += rng.normal(0.0, 0.7, 25)[week.astype(int)] + 0.03 * week
    target += 0.03 * (age - 50.0) * ((bmi - 27.0) / 4.0 + (city == "Rome"))
    absent, lost = rng.random(n_rows) < 0.1, rng.random(n_rows) < 0.1
    target += 0.5 * absent + 0.7 * lost
    X = pd.DataFrame(
        {
            "age": np.where(absent, np.nan, age),
            "bmi": bmi,
            "city": np.where(lost, None, city),
            "week": week,
            "noise": rng.standard_normal(n_rows),
            "same": 1.0,
        }
    )
    return X, target


@pytest.fixture(scope="module")
def data():
    X, target = make_table()
    return X, target + 0.4 * np.random.default_rng(1).standard_normal(len(X))


@pytest.fixture(scope="module", params=["gaussian", "poisson", "bernoulli", "softmax"])
def model(request, data):
    X, y = data
    kind = request.param
    if kind == "gaussian":
        return LANAMRegressor(interactions=PAIRS, **NUMBERS).fit(X, y)
    if kind == "poisson":
        counts = np.random.default_rng(2).poisson(np.exp(1.0 + 0.5 * y))
        return LANAMRegressor(interactions=PAIRS, likelihood="poisson", **QUICK).fit(X, counts)
    labels = y > 0.3 if kind == "bernoulli" else np.digitize(y, [-0.4, 0.6])
    return LANAMClassifier(interactions=PAIRS, **QUICK).fit(X, labels)


@pytest.fixture(scope="module")
def gaussian(data):
    return LANAMRegressor(interactions=PAIRS, **NUMBERS).fit(*data)


@pytest.fixture(scope="module")
def explanation(gaussian):
    return gaussian.explain_global()


def links(model, rows, n_draws):
    """Draws of the link from the public draws of the mean."""
    draws = model.sample(rows, n_samples=n_draws, random_state=0)
    kind = model.explain_global().link
    if kind == "softmax":
        scores = np.log(draws)
        return scores - scores.mean(axis=-1, keepdims=True)
    return {"identity": lambda mean: mean, "log": np.log, "logit": logit}[kind](draws)


def two_rows(X, column, first, second, **held):
    """A row twice, with two values of a column."""
    return pd.concat([X[:1].assign(**held)] * 2).assign(**{column: [first, second]})


def compare_with_draws(actual, draws):
    apart = draws[:, 0] - draws[:, 1]
    # 4000 draws: means to 0.016 standard deviations, standard deviations to 1.1%.
    np.testing.assert_allclose((apart.mean(axis=0) - actual.mean) / actual.std, 0.0, atol=0.07)
    np.testing.assert_allclose(apart.std(axis=0), actual.std, rtol=0.05)
    np.testing.assert_allclose((apart > 0.0).mean(axis=0), actual.probability, atol=0.035)
    inside = ((apart >= actual.lower) & (apart <= actual.upper)).mean(axis=0)
    np.testing.assert_allclose(inside, actual.coverage, atol=0.02)


class TestAgainstDraws:
    def test_smooth_and_per_value_effects_are_summed(self, model, data):
        actual = model.explain_global().difference("week", 20, 3, coverage=0.9)
        assert set(actual.terms) <= {"week", "week (levels)"}
        assert actual.terms
        assert actual.left_out == ()
        compare_with_draws(actual, links(model, two_rows(data[0], "week", 20.0, 3.0), 4000))

    @pytest.mark.parametrize("first", [71.3, None])
    def test_with_interactions_it_is_the_difference_of_predictions(self, model, data, first):
        explanation = model.explain_global()
        held = {"bmi": 31.0, "city": "Rome"}
        actual = explanation.difference("age", first, 30, given=held)
        rows = two_rows(data[0], "age", first, 30.0, **held).astype({"age": float})
        compare_with_draws(actual, links(model, rows, 4000))
        local = model.explain_local(rows)
        np.testing.assert_allclose(actual.mean, local.prediction[0] - local.prediction[1])
        pairs = {pair.name for pair in explanation.pairs if pair.active}
        assert pairs == {"age x bmi", "age x city"}
        assert actual.left_out == ()
        assert pairs <= set(actual.terms)
        assert actual.given == held

    def test_levels(self, model, data):
        explanation = model.explain_global()
        for first, second in (("Oslo", "Rome"), ("Oslo", None)):
            actual = explanation.difference("city", first, second, given={"age": 40})
            rows = two_rows(data[0], "city", first, second, age=40.0)
            compare_with_draws(actual, links(model, rows, 4000))

    def test_every_class_has_its_own(self, model, data):
        actual = model.explain_global().difference("age", 60, 30)
        shape = () if actual.link != "softmax" else (3,)
        for number in (actual.mean, actual.std, actual.lower, actual.upper, actual.probability):
            assert np.shape(number) == shape
        if shape:
            assert actual.mean.sum() == pytest.approx(0.0, abs=1e-9)

    def test_ratios(self, model):
        actual = model.explain_global().difference("age", 60, 30)
        if actual.link in ("log", "logit"):
            assert actual.ratio == pytest.approx(np.exp(actual.mean))
            assert actual.ratio_interval == pytest.approx(
                (np.exp(actual.lower), np.exp(actual.upper))
            )
            assert actual.to_dict()["ratio_interval"] == list(actual.ratio_interval)
            beyond = replace(actual, mean=1000.0, upper=1001.0)
            assert beyond.ratio == np.inf
            assert "ratio inf" in str(beyond)
            assert json.loads(beyond.to_json())["ratio"] is None
        else:
            assert actual.ratio is actual.ratio_interval is None

    def test_antisymmetric(self, model):
        explanation = model.explain_global()
        here, back = explanation.difference("age", 60, 30), explanation.difference("age", 30, 60)
        np.testing.assert_allclose(here.mean, -np.asarray(back.mean))
        np.testing.assert_allclose(here.std, back.std)
        np.testing.assert_allclose(here.lower, -np.asarray(back.upper))
        np.testing.assert_allclose(here.probability, 1.0 - np.asarray(back.probability), atol=1e-12)

    def test_the_same_value_twice(self, model):
        explanation = model.explain_global()
        for column, value in (("age", 47.3), ("age", np.nan), ("city", "Oslo"), ("week", 7)):
            actual = explanation.difference(column, value, value)
            np.testing.assert_array_equal(actual.mean, 0.0)
            np.testing.assert_array_equal(actual.std, 0.0)
            np.testing.assert_array_equal(actual.probability, 0.0)
            assert "changes nothing" in str(actual)

    def test_json(self, model):
        actual = model.explain_global().difference("city", "Oslo", None, coverage=0.8)
        known = json.loads(actual.to_json())
        assert known["first"] == "Oslo"
        assert known["second"] is None
        assert known["coverage"] == 0.8
        np.testing.assert_array_equal(known["mean"], actual.mean)
        assert known["terms"] == list(actual.terms)
        assert known == actual.to_dict()


class TestAverage:
    """Interactions averaged over the other columns: by brute force, every row with both values."""

    @pytest.mark.parametrize(
        ("column", "first", "second"),
        [("age", 71.3, 30.0), ("age", None, 30.0), ("bmi", 33.0, 20.0)],
    )
    def test_it_is_the_mean_over_rows_of_differences_of_predictions(
        self, model, data, column, first, second
    ):
        actual = model.explain_global().difference(column, first, second, given="average")
        sides = [data[0].assign(**{column: np.float64(at)}) for at in (first or np.nan, second)]
        here, there = (model.explain_local(side).prediction for side in sides)
        np.testing.assert_allclose(actual.mean, (here - there).mean(axis=0), rtol=1e-5, atol=1e-7)
        draws = links(model, pd.concat(sides), 400)
        of_rows = draws.reshape(400, 2, len(data[0]), *draws.shape[2:]).mean(axis=2)
        apart = of_rows[:, 0] - of_rows[:, 1]
        np.testing.assert_allclose(apart.std(axis=0), actual.std, rtol=0.15)  # four standard errors
        assert actual.left_out == ()
        expected = ("bmi", "city") if column == "age" else ("age",)
        assert actual.averaged == expected
        text = f"; averaged over {' and '.join(expected)} in the training data"
        assert text in str(actual)

    @pytest.mark.parametrize(
        ("column", "first", "second"), [("age", 71.3, 30.0), ("city", "Oslo", "Rome")]
    )
    def test_the_standard_deviation_by_the_dense_covariance(
        self, gaussian, data, column, first, second
    ):
        from lanam.core.model import scoring

        inner = gaussian._model
        design = []
        for at in (first, second):
            columns = gaussian._columns(data[0].assign(**{column: at}))
            readers = scoring._readers(inner, columns)
            design.append(scoring._mean_and_design(inner, readers, len(columns))[1].mean(axis=0))
        apart = design[0] - design[1]
        actual = gaussian.explain_global().difference(column, first, second, given="average")
        # Interpolation weights are in single precision.
        assert actual.std == pytest.approx(np.sqrt(apart @ inner.covariance @ apart), rel=1e-5)

    def test_weighted_averages(self, data):
        X, y = data[0][["age", "bmi"]][:200], data[1][:200]
        weight = np.random.default_rng(0).integers(0, 4, 200)
        pairs = LANAMRegressor(interactions=[("age", "bmi")], **NUMBERS)
        model = pairs.fit(X, y, sample_weight=weight)
        actual = model.explain_global().difference("bmi", 32, 24, given="average")
        apart = model.predict(X.assign(bmi=32.0)) - model.predict(X.assign(bmi=24.0))
        assert "age x bmi" in actual.terms
        assert actual.mean == pytest.approx(np.average(apart, weights=weight), rel=1e-5)
        assert actual.mean != pytest.approx(apart.mean(), rel=1e-3)

    def test_correlated_columns(self):
        # y = a b with correlated a and b: the conditional difference is positive, the marginal one zero.
        rng = np.random.default_rng(0)
        a, noise = rng.normal(size=(2, 1000))
        X = pd.DataFrame({"a": a, "b": 0.8 * a + 0.6 * noise})
        y = X["a"] * X["b"] + 0.3 * rng.normal(size=1000)
        model = LANAMRegressor(interactions=[("a", "b")], **NUMBERS).fit(X, y)
        explanation = model.explain_global()
        assert explanation.difference("a", 1.5, 0.0).mean > 0.8
        apart = model.predict(X.assign(a=1.5)) - model.predict(X.assign(a=0.0))
        average = explanation.difference("a", 1.5, 0.0, given="average")
        assert average.mean == pytest.approx(apart.mean(), abs=1e-5)
        assert abs(average.mean) < 0.3

    def test_without_interactions_nothing_changes(self, explanation):
        plain = explanation.difference("week", 20, 3).to_dict()
        assert explanation.difference("week", 20, 3, given="average").to_dict() == plain

    def test_every_value(self, explanation):
        contrast = explanation.differences("age", 30.0, given="average")
        for k in range(0, len(contrast.values), 9):
            actual = explanation.difference("age", contrast.values[k], 30.0, given="average")
            assert contrast.mean[k] == pytest.approx(actual.mean, abs=1e-12)
            assert contrast.std[k] == pytest.approx(actual.std, abs=1e-12)
        assert contrast.averaged == ("bmi", "city")


class TestOverlap:
    def test_bands_that_overlap_may_hide_a_difference(self, explanation):
        # Common errors cancel: the difference is less uncertain than its ends.
        mean, std = explanation.evaluate("bmi", [29.0, 28.0])
        actual = explanation.difference("bmi", 29, 28)
        assert actual.mean == pytest.approx(mean[0] - mean[1])
        assert actual.std < 0.5 * np.hypot(*std)


class TestWords:
    def test_numbers(self, gaussian):
        actual = gaussian.explain_global().difference("bmi", 30, 25.5, coverage=0.9)
        pattern = (
            r"^bmi: 30 vs 25\.5 changes the prediction by \+0\.\d\d\d? \(90%: \+0\.\d+ to \+0\.\d+\); "
            r"positive with probability more than 0\.999; "
            r"without age x bmi: averaged over age conditional on bmi \(see given\)$"
        )
        assert re.match(pattern, str(actual)), str(actual)

    def test_what_is_left_out(self, explanation):
        actual = explanation.difference("age", 60, 30)
        assert actual.left_out == ("age x bmi", "age x city")
        assert actual.left_out_columns == ("bmi", "city")
        assert str(actual).endswith(
            "; without age x bmi and age x city: averaged over bmi and city conditional on age "
            "(see given)"
        )
        held = explanation.difference("age", 60, None, given={"city": None, "bmi": 25.0})
        assert str(held).endswith("; at bmi = 25 and city = (missing)")
        assert "age: 60 vs (missing) changes" in str(held)

    def test_links(self, model):
        text = str(model.explain_global().difference("age", 60, 30))
        link = model.explain_global().link
        words = {
            "identity": " changes the prediction by ",
            "log": " changes the logarithm of the rate by ",
            "logit": " changes the log-odds of True by ",
            "softmax": " of each class; without",
        }
        assert text.startswith("age: 60 vs 30 changes ")
        assert words[link] in text
        assert text.count("; positive with probability ") == (3 if link == "softmax" else 1)
        assert ("odds ratio " in text) == (link == "logit")
        assert ("rate ratio " in text) == (link == "log")
        assert text.count("\n") == (3 if link == "softmax" else 0)
        if link == "softmax":
            assert [line[:5] for line in text.splitlines()[1:]] == ["  0: ", "  1: ", "  2: "]

    def test_values_beyond_the_data(self, explanation, data):
        bmi, age = data[0]["bmi"], data[0]["age"]
        actual = explanation.difference("bmi", 1000, 30)
        assert actual.beyond == (("bmi", 1000.0, bmi.min(), bmi.max()),)
        assert str(actual).endswith(
            f"; 1000 is outside the data range ({bmi.min():.4g} to {bmi.max():.4g})"
        )
        assert actual.to_dict()["beyond"] == [["bmi", 1000.0, bmi.min(), bmi.max()]]
        ends = explanation.difference("bmi", bmi.min(), bmi.max(), given={"age": -5})
        assert ends.beyond == (("age", -5.0, age.min(), age.max()),)
        assert str(ends).endswith(
            f"; at age = -5; age = -5 is outside the data range ({age.min():.4g} to {age.max():.4g})"
        )
        assert explanation.difference("age", None, 30).beyond == ()
        assert explanation.difference("city", "Rome", None).beyond == ()
        contrast = explanation.differences("bmi", 1000)
        assert contrast.beyond == actual.beyond

    def test_columns_without_an_effect(self, explanation):
        actual = explanation.difference("noise", 1, 0)
        assert actual.terms == ()
        assert (actual.mean, actual.std, actual.probability) == (0.0, 0.0, 0.0)
        assert str(actual) == (f"noise: 1 vs 0 changes nothing: no main effect ({actual.status})")
        actual = explanation.difference("same", 1, 0)
        assert f"no main effect ({actual.status})" in str(actual)
        assert actual.status.endswith("constant column")

    @pytest.mark.parametrize("scale", [1e-12, 1e-5, 1e5])
    def test_numbers_of_any_size(self, data, scale):
        model = LANAMRegressor(interactions=0, **NUMBERS).fit(data[0], data[1] * scale)
        actual = model.explain_global().difference("bmi", 35, 25)
        words = str(actual).split()
        assert float(words[8]) == pytest.approx(actual.mean, rel=0.05)
        assert float(words[10]) == pytest.approx(actual.lower, rel=0.1)
        assert len(str(actual)) < 160


def test_booleans_and_numbers_as_categories():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"member": rng.random(300) < 0.4, "zone": rng.integers(1, 5, 300)})
    y = X["member"] + 0.5 * (X["zone"] == 3) + 0.2 * rng.standard_normal(300)
    model = LANAMRegressor(categorical_features=["zone"], interactions=0, **NUMBERS).fit(X, y)
    explanation = model.explain_global()
    assert explanation.difference("member", True, False).mean == pytest.approx(1.0, abs=0.1)
    assert explanation.difference("zone", 3, 1.0).mean == pytest.approx(0.5, abs=0.15)
    assert str(explanation.difference("zone", 3, 3.0)) == "zone: 3 vs 3 changes nothing"
    with pytest.raises(
        ValueError, match="'yes' cannot be a value of column 'member': its categories"
    ):
        explanation.difference("member", "yes", False)


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("ages", 1, 2), r"names the column 'ages', which X does not have; did you mean 'age'"),
            (("age", "old", 2), r"'old' cannot be a value of column 'age': it is numeric, from"),
            (
                ("city", "Rome", 3),
                r"3 cannot be a value of column 'city': its categories are 'Bonn', ",
            ),
            (("age", np.inf, 2), r"inf cannot be a value of column 'age'"),
            (("bmi", None, 2), r"column 'bmi' had no missing values in the training data"),
            (("bmi", 1, np.nan), r"column 'bmi' had no missing values in the training data"),
            (("age", [1, 2], 2), r"\[1, 2\] cannot be a value of column 'age'"),
        ],
    )
    def test_values(self, explanation, arguments, message):
        with pytest.raises(ValueError, match=message):
            explanation.difference(*arguments)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"bmi": 30},
                r"'age' interacts with 'city', which given does not contain: add a value",
            ),
            ({}, r"'age' interacts with 'bmi' and 'city', which given does not contain"),
            ("mean", r"given='mean' is not valid: pass 'average', or values of the other columns"),
            ({"bmi": 30, "town": 1}, r"given names the column 'town', which X does not have"),
            ({"age": 30}, r"given holds the column 'age' itself, whose values are compared"),
            ({"bmi": None, "city": "Rome"}, r"column 'bmi' had no missing values"),
            ({"bmi": "x", "city": "Rome"}, r"'x' cannot be a value of column 'bmi'"),
        ],
    )
    def test_given(self, explanation, given, message):
        with pytest.raises(ValueError, match=message):
            explanation.difference("age", 60, 30, given=given)

    def test_a_whole_row_may_be_given(self, explanation, data):
        row = data[0].iloc[3].drop("age").to_dict()
        actual = explanation.difference("age", 60, 30, given=row)
        assert list(actual.given) == ["bmi", "city"]
        # A column without interactions does not depend on others.
        assert explanation.difference("week", 3, 4, given={"bmi": 30}).given == {}

    def test_references(self, explanation):
        with pytest.raises(ValueError, match="column 'bmi' had no missing values"):
            explanation.differences("bmi", None)
        with pytest.raises(ValueError, match="'old' cannot be a value of column 'age'"):
            explanation.differences("age", "old")

    def test_coverage(self, explanation):
        with pytest.raises(ValueError, match="coverage=95 must lie between 0 and 1"):
            explanation.difference("age", 60, 30, coverage=95)

    def test_without_its_model(self, explanation):
        alone = replace(explanation, source=None)
        for call in (
            lambda: alone.difference("age", 60, 30),
            lambda: alone.differences("age", 30),
            lambda: alone.evaluate("age", [30]),
        ):
            with pytest.raises(ValueError, match="explanation has no model"):
                call()

    def test_the_model_is_not_part_of_the_data(self, explanation):
        assert "source" not in explanation.to_dict()
        assert "FittedModel" not in repr(explanation)


class TestUnseenCategories:
    def test_one_has_a_wide_band(self, explanation):
        with pytest.warns(UserWarning, match="unseen categor") as caught:
            actual = explanation.difference("city", "Quito", "Rome")
        assert caught[0].filename == __file__
        known = explanation.difference("city", "Oslo", "Rome")
        assert actual.std > 2.0 * known.std
        with pytest.warns(UserWarning, match="unseen categor") as caught:
            actual = explanation.difference("age", 50, 40, given={"bmi": 30, "city": "Quito"})
        assert caught[0].filename == __file__
        assert actual.std > 0.0

    @pytest.mark.filterwarnings("ignore:.*unseen categor")
    def test_two_cannot_be_distinguished(self, explanation):
        with pytest.raises(ValueError, match=r"'Quito' and 'Graz' are both unseen or too rare"):
            explanation.difference("city", "Quito", "Graz")
        assert explanation.difference("city", "Quito", "Quito").std == 0.0

    @pytest.mark.filterwarnings("ignore:of the .* categories of column")
    def test_high_cardinality_and_rare_ones(self, monkeypatch):
        # Of two such columns only one keeps all categories; the limit is lowered for speed.
        monkeypatch.setattr(prepare, "_WIDE", 30)
        rng = np.random.default_rng(2)
        street, shop = rng.integers(0, 60, 1500), np.minimum(rng.geometric(0.1, 1500), 50)
        y = rng.normal(0.0, 1.0, 51)[shop] + rng.normal(0.0, 1.0, 60)[street]
        y += 0.1 * rng.standard_normal(1500)
        X = pd.DataFrame({"street": street.astype(str), "shop": [f"shop {k}" for k in shop]})
        model = LANAMRegressor(interactions=0, categorical_features=["street"], **NUMBERS).fit(X, y)
        assert model._model.terms[0].coupling is not None
        explanation = model.explain_global()
        actual = explanation.difference("street", "12", "40")
        compare_with_draws(actual, links(model, two_rows(X, "street", "12", "40"), 4000))
        rare = sorted(set(X["shop"]) - set(explanation["shop"].values))
        with pytest.raises(ValueError, match="both unseen or too rare"):
            explanation.difference("shop", rare[0], rare[1])
        assert explanation.difference("shop", rare[0], "shop 1").std > 0.0
        contrast = explanation.differences("street", "12")
        lower, upper = contrast.band(0.95, simultaneous=True)
        rows = pd.DataFrame({"street": contrast.values, "shop": "shop 1"})
        draws = model.sample(rows, n_samples=4000, random_state=5)
        apart = draws - draws[:, contrast.values == "12"]
        inside = ((apart >= lower - 1e-9) & (apart <= upper + 1e-9)).all(axis=1).mean()
        assert inside == pytest.approx(0.95, abs=0.03)


class TestContrast:
    @pytest.mark.parametrize(
        ("column", "reference", "given"),
        [
            ("age", 47.3, None),
            ("age", None, {"bmi": 31.0, "city": "Rome"}),
            ("city", "Oslo", None),
            ("week", 3, None),
        ],
    )
    def test_it_is_every_difference(self, model, column, reference, given):
        explanation = model.explain_global()
        contrast = explanation.differences(column, reference, given)
        assert isinstance(contrast, Contrast)
        assert contrast.reference == reference
        lower, upper = contrast.band(0.8)
        assert len(contrast.values) == len(contrast.mean) == len(contrast.inside) > 3
        for k in range(0, len(contrast.values), 7):
            actual = explanation.difference(column, contrast.values[k], reference, 0.8, given)
            assert isinstance(actual, Difference)
            np.testing.assert_allclose(contrast.mean[k], actual.mean, atol=1e-12)
            np.testing.assert_allclose(contrast.std[k], actual.std, atol=1e-12)
            np.testing.assert_allclose(lower[k], actual.lower, atol=1e-12)
            np.testing.assert_allclose(upper[k], actual.upper, atol=1e-12)
        assert (contrast.terms, contrast.left_out) == (actual.terms, actual.left_out)

    def test_the_simultaneous_band_covers_all_differences(self, model, data):
        contrast = model.explain_global().differences("age", 30.0, {"bmi": 29.0, "city": "Oslo"})
        inner = contrast.values[contrast.inside]
        rows = pd.concat([data[0][:1].assign(bmi=29.0, city="Oslo")] * (len(inner) + 2))
        draws = links(model, rows.assign(age=[*inner, np.nan, 30.0]), 4000)
        apart = draws[:, :-1] - draws[:, -1:]
        for coverage, close in ((0.5, 0.07), (0.95, 0.03)):
            lower, upper = contrast.band(coverage, simultaneous=True)
            gap_lower, gap_upper = contrast.missing_band(coverage, simultaneous=True)
            low = np.concatenate([lower[contrast.inside], np.asarray(gap_lower)[None]])
            high = np.concatenate([upper[contrast.inside], np.asarray(gap_upper)[None]])
            inside = (apart >= low - 1e-6) & (apart <= high + 1e-6)
            np.testing.assert_allclose(inside.all(axis=1).mean(axis=0), coverage, atol=close)
            single = contrast.band(coverage)
            assert (lower <= single[0]).all()
            assert (upper >= single[1]).all()

    def test_contrasts_of_single_values(self, explanation):
        assert explanation["week (levels)"].active
        values = explanation.differences("week", 3).values
        np.testing.assert_array_equal(values, np.arange(25.0))

    def test_nothing_to_compare(self, explanation):
        contrast = explanation.differences("noise", 0.0)
        assert contrast.terms == ()
        np.testing.assert_array_equal(contrast.mean, 0.0)
        np.testing.assert_array_equal(contrast.band(0.95, simultaneous=True), 0.0)
        assert len(contrast.largest_deviations) == 0
        assert len(explanation.differences("same", 1.0).values) == 0

    def test_deterministic(self, explanation):
        one, other = (explanation.differences("age", 30).to_dict() for _ in range(2))
        assert one == other
        assert json.loads(explanation.differences("age", 30).to_json()) == one

    def test_frames(self, model, data):
        for column, reference in (("bmi", 30), ("age", 30), ("city", "Oslo")):
            contrast = model.explain_global().differences(column, reference)
            everything = contrast.to_frame(coverage=0.8)
            assert isinstance(everything, pd.DataFrame)
            assert set(everything["term"]) == {column}
            frame, missing_row = everything[: contrast.mean.size], everything[contrast.mean.size :]
            if column == "bmi":  # without missing values
                assert contrast.missing_mean is contrast.missing_std is None
                assert missing_row.empty
                with pytest.raises(ValueError, match="'bmi' had no missing values in the training"):
                    contrast.missing_band()
            else:
                self.compare_missing(model, contrast, missing_row)
            np.testing.assert_array_equal(frame["mean"], contrast.mean.ravel())
            np.testing.assert_array_equal(frame["lower"], contrast.band(0.8)[0].ravel())
            np.testing.assert_array_equal(
                frame["simultaneous_upper"], contrast.band(0.8, simultaneous=True)[1].ravel()
            )
            n_classes = contrast.mean.size // len(contrast.values)
            name = "level" if column == "city" else "value"
            np.testing.assert_array_equal(frame[name], np.repeat(contrast.values, n_classes))
            np.testing.assert_array_equal(frame["inside"], np.repeat(contrast.inside, n_classes))

    @staticmethod
    def compare_missing(model, contrast, missing_row):
        """The last row of a frame is the difference of a missing value."""
        actual = model.explain_global().difference(contrast.column, None, contrast.reference, 0.8)
        np.testing.assert_allclose(contrast.missing_mean, actual.mean, atol=1e-12)
        np.testing.assert_allclose(contrast.missing_std, actual.std, atol=1e-12)
        assert set(missing_row["level"]) == {"(missing)"}
        assert missing_row["value"].isna().all()
        assert missing_row["inside"].all()
        np.testing.assert_array_equal(missing_row["mean"], np.ravel(contrast.missing_mean))
        np.testing.assert_array_equal(missing_row["std"], np.ravel(contrast.missing_std))
        np.testing.assert_allclose(missing_row["lower"], np.ravel(actual.lower), atol=1e-12)
        np.testing.assert_array_equal(
            missing_row["simultaneous_upper"],
            np.ravel(contrast.missing_band(0.8, simultaneous=True)[1]),
        )

    def test_frames_in_the_users_library(self, data):
        X = pl.from_pandas(data[0][["bmi", "week"]][:100])
        explanation = LANAMRegressor(**NUMBERS).fit(X, data[1][:100]).explain_global()
        assert isinstance(explanation.differences("bmi", 27).to_frame(), pl.DataFrame)


class TestEvaluate:
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_it_agrees_with_predict_terms(self, model, data):
        explanation = model.explain_global()
        names = [term.name for term in model.terms_]
        values = {
            "age": [20.5, 47.123, 1e6, None, np.nan],
            "bmi": [27.0, 31.4, -3.0, np.nan, 30],
            "city": ["Rome", None, "Quito", "Oslo", "Bonn"],
            "week": [3, 7.0, 10.5, 24, 100],
        }
        rows = pd.concat([data[0][:1]] * 5).assign(**values)
        rows = rows.astype({"age": float, "bmi": float})
        means, stds = model.predict_terms(rows, return_std=True)
        for index, (name, term) in enumerate(zip(names, explanation, strict=True)):
            columns = [values.get(column, [1.0] * 5) for column in term.feature_names]
            mean, std = explanation.evaluate(name, *columns)
            if name not in ("noise", "same"):
                np.testing.assert_allclose(mean, means[:, index], rtol=1e-9, atol=1e-12)
                np.testing.assert_allclose(std, stds[:, index], rtol=1e-6, atol=1e-9)

    def test_the_standard_deviation_between_knots(self, explanation):
        bmi = explanation["bmi"]
        values, means, stds = (table[bmi.inside] for table in (bmi.values, bmi.mean, bmi.std))
        middle = 0.5 * (values[:-1] + values[1:])
        mean, std = explanation.evaluate("bmi", middle)
        np.testing.assert_allclose(mean, 0.5 * (means[:-1] + means[1:]), rtol=1e-6, atol=1e-6)
        between = 0.5 * (stds[:-1] + stds[1:])
        assert (std <= between * (1.0 + 1e-6)).all()
        assert (std < between * (1.0 - 1e-4)).any()

    def test_one_value(self, explanation):
        for values in (30, [30], np.array([30.0]), pd.Series([30])):
            mean, std = explanation.evaluate("bmi", values)
            assert mean.shape == std.shape == (1,)
        assert explanation.evaluate("city", "Rome")[0].shape == (1,)

    def test_errors(self, explanation):
        with pytest.raises(KeyError, match="no term 'size'"):
            explanation.evaluate("size", [1])
        with pytest.raises(
            ValueError, match=r"'age x bmi' is an interaction: pass values of 'bmi' as second"
        ):
            explanation.evaluate("age x bmi", [40])
        with pytest.raises(ValueError, match="'age' has one column: leave second_values out"):
            explanation.evaluate("age", [40], [30])
        with pytest.raises(ValueError, match="must have equal lengths, and have 1 and 2"):
            explanation.evaluate("age x bmi", [40], [30, 31])
        with pytest.raises(ValueError, match="'x' cannot be a value of column 'bmi'"):
            explanation.evaluate("bmi", [20, "x"])

    def test_extrapolation_warns(self, explanation, data):
        with pytest.warns(
            UserWarning, match=r"'bmi': 2 of 3 values are outside .*, the farthest 99"
        ) as caught:
            explanation.evaluate("bmi", [-1, 30, 99])
        assert caught[0].filename == __file__
        with pytest.warns(
            UserWarning, match=r"'bmi': 1 of 1 values is outside the range of the training data"
        ):
            explanation.evaluate("age x bmi", [40], [99])
        bmi = data[0]["bmi"]
        explanation.evaluate("bmi", [bmi.min(), bmi.max()])  # no warning
        explanation.evaluate("age", [None, 40])

    def test_unseen_values_warn(self, explanation):
        with pytest.warns(UserWarning, match="'Quito'") as caught:
            mean, std = explanation.evaluate("city", ["Quito", "Rome"])
        assert caught[0].filename == __file__
        assert std[0] == pytest.approx(explanation["city"].unseen_std)
        assert mean[0] == pytest.approx(explanation["city"].unseen_mean)


def test_an_explanation_of_a_bare_model(gaussian):
    explanation = explain_global(gaussian._model, gaussian._schema)
    expected = gaussian.explain_global().difference("age", 60, 30)
    assert explanation.difference("age", 60, 30).to_dict() == expected.to_dict()
    assert explanation.difference(0, 60, 30).mean == expected.mean
