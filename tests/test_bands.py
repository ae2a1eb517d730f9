"""Coverage of pointwise and simultaneous bands, in posterior draws."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.inference.options import Options
from lanam.core.model import draws, scoring
from lanam.core.model.draws import with_stratified_norms
from lanam.core.model.fitted import FittedModel, FittedTerm
from lanam.core.terms import knots as core_knots
from lanam.data import as_frame, learn_schema, learn_table
from lanam.explain import bands, explain_global
from lanam.explain.bands import Banded, require_coverage
from lanam.explain.evaluation import read_values
from lanam.explain.values import plain
from tests.core import in_memory

CITIES = ("Bonn", "Rome", "Oslo", "Lima", "Cairo")

#: Monte Carlo error of a band's coverage: the band is from 1000 draws, the test from 4000.
CLOSE = {0.5: 0.06, 0.8: 0.05, 0.95: 0.03}


def make_table(n_rows=600, seed=0):
    """Columns of all kinds with missing values, an interaction; and the noiseless target."""
    rng = np.random.default_rng(seed)
    age, bmi = rng.uniform(20.0, 80.0, n_rows), rng.normal(27.0, 4.0, n_rows)
    city, week = rng.choice(CITIES, n_rows), rng.integers(0, 52, n_rows).astype(float)
    target = np.sin(age / 12.0) + 0.6 * (city == "Rome") - 0.8 * (city == "Oslo")
    target += rng.normal(0.0, 0.7, 52)[week.astype(int)] + 0.02 * (age - 50.0) * (bmi - 27.0) / 4.0
    absent, lost = rng.random(n_rows) < 0.1, rng.random(n_rows) < 0.1
    target += 0.5 * absent + 0.7 * lost
    X = pd.DataFrame(
        {
            "age": np.where(absent, np.nan, age),
            "bmi": bmi,
            "city": np.where(lost, None, city),
            "week": week,
            "noise": rng.standard_normal(n_rows),
        }
    )
    return X, target


@pytest.fixture(scope="module")
def data():
    X, target = make_table()
    return X, target + 0.4 * np.random.default_rng(1).standard_normal(len(X))


@pytest.fixture(scope="module")
def gaussian(data):
    return LANAMRegressor(interactions=[("age", "bmi")], random_state=0).fit(*data)


@pytest.fixture(scope="module")
def several(data):
    X, y = data
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.4, 0.6])]
    return LANAMClassifier(interactions=[("age", "bmi")], random_state=0).fit(X, labels)


@pytest.fixture(scope="module")
def wide():
    """A high-cardinality column, whose categories have no coordinates."""
    rng = np.random.default_rng(5)
    street, age = rng.integers(0, 1100, 5000), rng.uniform(20.0, 80.0, 5000)
    y = rng.normal(0.0, 0.8, 1100)[street] + np.sin(age / 12.0) + 0.4 * rng.standard_normal(5000)
    X = pd.DataFrame({"street": [f"street {k:04d}" for k in street], "age": age})
    columns, schema = learn_table(as_frame(X), list(X), backend="pandas")
    options = Options(interactions=0)
    model = in_memory.fit(columns, y, np.ones(len(y)), "gaussian", options, 0, schema.n_levels)
    assert model.terms[0].coupling is not None
    return model, schema


def rows_inside(shape, schema):
    """Rows at all points of a term within the data, with its means and standard deviations there."""
    codes = []
    for k, feature in enumerate(shape.features):
        values = list(shape.second_values if k else shape.values)
        if shape.kind == "pair":
            others = shape.second_others if k else shape.others
            values += [None] * ("(missing)" in others)
            assert "(other levels)" not in others
        elif shape.missing_density:
            values.append(None)
        codes.append(read_values(schema.columns[feature], values))
    grid = np.meshgrid(*codes, indexing="ij")
    rows = np.zeros((grid[0].size, schema.n_columns))
    for feature, code in zip(shape.features, grid, strict=True):
        rows[:, feature] = code.ravel()
    inside, mean, std = shape.inside.ravel(), shape.mean, shape.std
    if shape.kind == "pair":
        mean, std = (table.reshape(len(rows), *table.shape[2:]) for table in (mean, std))
    elif shape.missing_density:
        inside = np.append(inside, True)
        mean = np.concatenate([mean, np.reshape(shape.missing_mean, (1, *mean.shape[1:]))])
        std = np.concatenate([std, np.reshape(shape.missing_std, (1, *std.shape[1:]))])
    return rows[inside], mean[inside], std[inside]


def whole_coverage(model, schema, shape, coverage, simultaneous):
    """Fraction of new draws of a term's function that lie in its band everywhere."""
    rows, mean, std = rows_inside(shape, schema)
    index = [term.features for term in model.terms].index(shape.features)
    if shape.kind == "level":
        index = [term.kind for term in model.terms].index("level")
    functions = scoring.sample_links(model, rows, 4000, np.random.default_rng(99), [index])
    half = shape.half_width(coverage, simultaneous)
    # Interpolation weights are in single precision.
    return (np.abs(functions - mean) <= half * std * (1.0 + 1e-5) + 1e-9).all(axis=1).mean(axis=0)


def _stratified(size, n_draws):
    return with_stratified_norms(np.random.default_rng(0).standard_normal((size, n_draws)))


class TestSimultaneous:
    @pytest.mark.parametrize("name", ["age", "city", "week (levels)", "age x bmi"])
    @pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
    def test_the_whole_function_lies_in_it(self, gaussian, name, coverage):
        shape = gaussian.explain_global()[name]
        assert shape.active
        actual = whole_coverage(gaussian._model, gaussian._schema, shape, coverage, True)
        assert actual == pytest.approx(coverage, abs=CLOSE[coverage])
        # Pointwise bands leave many functions outside somewhere.
        assert (
            whole_coverage(gaussian._model, gaussian._schema, shape, coverage, False)
            < coverage - 0.1
        )

    @pytest.mark.parametrize("name", ["age", "city"])
    def test_every_class_has_its_own(self, several, name):
        shape = several.explain_global()[name]
        assert shape.largest_deviations.shape == (1000, 3)
        assert shape.half_width(0.95, simultaneous=True).shape == (3,)
        actual = whole_coverage(several._model, several._schema, shape, 0.95, True)
        np.testing.assert_allclose(actual, 0.95, atol=CLOSE[0.95])

    def test_high_cardinality(self, wide):
        model, schema = wide
        shape = explain_global(model, schema)["street"]
        actual = whole_coverage(model, schema, shape, 0.95, True)
        assert actual == pytest.approx(0.95, abs=CLOSE[0.95])
        # Nearly independent categories: the maximum of as many normal deviations.
        independent = norm.ppf(0.5 + 0.5 * 0.95 ** (1.0 / len(shape.values)))
        assert shape.half_width(0.95, simultaneous=True) == pytest.approx(independent, rel=0.05)

    def test_never_narrower_than_pointwise(self, gaussian, several):
        for explanation in (gaussian.explain_global(), several.explain_global()):
            for shape in explanation:
                for coverage in (0.05, 0.5, 0.95, 0.999):
                    lower, upper = shape.band(coverage)
                    all_lower, all_upper = shape.band(coverage, simultaneous=True)
                    assert lower.shape == upper.shape == shape.mean.shape
                    assert (all_lower <= lower).all()
                    assert (all_upper >= upper).all()

    def test_monte_carlo_error_cannot_make_it_narrower(self):
        function = Banded()
        function.largest_deviations = np.array([0.1, 0.2])
        assert function.half_width(0.95, simultaneous=True) == norm.ppf(0.975)

    def test_one_degree_of_freedom_is_pointwise(self):
        # A line through the origin with an uncertain slope: inside somewhere is inside everywhere, but
        # for the origin, which is certain.
        column = core_knots.summarise(np.array([-3.0, -1.0, 0.0, 1.0, 3.0]), np.ones(5))
        knots = core_knots.place_knots(column, 256)
        line = knots.values
        term = FittedTerm(
            kind="smooth",
            features=(0,),
            entries=knots,
            data_mass=np.isin(line, [-3.0, -1.0, 0.0, 1.0, 3.0]) / 5.0,
            mean=2.0 * line,
            table=line[:, None],
            status="active",
            importance=3.2,
            effective_parameters=1.0,
            evidence=5.0,
            precision=np.ones(1),
            expansion=np.empty(0),
        )
        model = FittedModel("gaussian", 0.0, (term,), np.diag([0.1, 0.7]), 1.0, 0.0)
        (shape,) = explain_global(model, learn_schema(["x"], np.array([[-3.0], [3.0]])))
        assert shape.std[line == 0.0] == 0.0
        for coverage in (0.5, 0.8, 0.95):
            half = shape.half_width(coverage, simultaneous=True)
            assert half == pytest.approx(norm.ppf(0.5 + 0.5 * coverage), rel=2e-3)
            np.testing.assert_allclose(
                shape.band(coverage, simultaneous=True), shape.band(coverage), rtol=2e-3, atol=2e-3
            )
        # Its importance is |2 + 0.1 z| times the mean of |x|, from stratified draws.
        assert shape.importance_std == pytest.approx(0.1 * 8.0 / 5.0, rel=5e-3)

    def test_one_coordinate_is_exact(self):
        draws = np.sort(np.abs(_stratified(1, 1000)[0]))
        for coverage in (0.5, 0.8, 0.95):
            assert np.quantile(draws, coverage) == pytest.approx(
                norm.ppf(0.5 + 0.5 * coverage), rel=2e-3
            )

    def test_draws_are_normal(self):
        draws = _stratified(5, 20_000)
        np.testing.assert_allclose(np.cov(draws), np.eye(5), atol=0.03)
        np.testing.assert_allclose(draws.mean(axis=1), 0.0, atol=0.03)
        inside = [(np.abs(number) < 1.96).mean() for number in draws]
        np.testing.assert_allclose(inside, 0.95, atol=0.01)

    def test_places_beyond_the_data_do_not_count(self, gaussian):
        # They are uncertain, and would widen the band needlessly.
        shape = gaussian.explain_global()["age"]
        model, schema = gaussian._model, gaussian._schema
        rows, mean, std = rows_inside(shape, schema)
        assert len(rows) == shape.inside.sum() + 1 < len(shape.values)
        index = [term.features for term in model.terms].index(shape.features)
        functions = scoring.sample_links(model, rows, 4000, np.random.default_rng(7), [index])
        largest = (np.abs(functions - mean) / std).max(axis=1)
        for coverage in (0.2, 0.5, 0.8):
            assert np.quantile(shape.largest_deviations, coverage) == pytest.approx(
                np.quantile(largest, coverage), rel=0.03
            )

    def test_dropped_terms(self, gaussian):
        for shape in gaussian.explain_global().switched_off:
            assert (shape.mean == 0.0).all()
            if shape.std.any():
                continue  # what the data leave possible: test_margins.py
            assert len(shape.largest_deviations) == 0
            for simultaneous in (False, True):
                lower, upper = shape.band(0.95, simultaneous)
                np.testing.assert_array_equal(lower, 0.0)
                np.testing.assert_array_equal(upper, 0.0)

    def test_large_tables_have_chunks_and_fewer_draws(self, gaussian, several, monkeypatch):
        for model in (gaussian, several):
            at_once = model.explain_global()["city"]
            monkeypatch.setattr(draws, "_CHUNK_VALUES", 1)
            parts = model.explain_global()["city"]
            np.testing.assert_allclose(parts.largest_deviations, at_once.largest_deviations)
            assert parts.importance_std == pytest.approx(at_once.importance_std)
            monkeypatch.undo()
        monkeypatch.setattr(bands, "_MOST_VALUES", 1)
        assert len(gaussian.explain_global()["city"].largest_deviations) == 256


class TestBands:
    def test_pointwise(self, gaussian):
        shape = gaussian.explain_global()["age"]
        for coverage, half in ((0.5, 0.67448975), (0.9, 1.644853627), (0.95, 1.959963985)):
            lower, upper = shape.band(coverage)
            np.testing.assert_allclose(lower, shape.mean - half * shape.std, atol=1e-7)
            np.testing.assert_allclose(upper, shape.mean + half * shape.std, atol=1e-7)
            assert shape.half_width(coverage) == pytest.approx(half)

    def test_missing_and_other_values(self, gaussian):
        city = gaussian.explain_global()["city"]
        for simultaneous in (False, True):
            bands = city.others_band(0.9, simultaneous)
            assert list(bands) == ["(missing)", "(other levels)"]
            half = city.half_width(0.9, simultaneous)
            lower, upper = bands["(missing)"]
            assert lower == pytest.approx(city.missing_mean - half * city.missing_std)
            assert upper == pytest.approx(city.missing_mean + half * city.missing_std)
            assert bands["(other levels)"][1] == pytest.approx(
                city.unseen_mean + half * city.unseen_std
            )
        assert gaussian.explain_global()["bmi"].others_band() == {}

    def test_plain_data_is_enough(self, gaussian, several):
        for model in (gaussian, several):
            explanation = model.explain_global()
            text = explanation.to_json()
            assert text == json.dumps(json.loads(text), ensure_ascii=False)
            assert explanation.to_json(indent=1).count("\n") > 100
            for shape, known in zip(explanation, json.loads(text)["terms"], strict=True):
                if shape.active:
                    half = np.quantile(known["largest_deviations"], 0.95, axis=0)
                    _, upper = shape.band(0.95, simultaneous=True)
                    actual = np.array(known["mean"]) + half * np.array(known["std"])
                    np.testing.assert_allclose(actual, upper, rtol=1e-12)

    @pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 95])
    def test_invalid_coverage(self, gaussian, data, coverage):
        shape, local = gaussian.explain_global()["age"], gaussian.explain_local(data[0][:2])
        calls = [
            lambda: shape.band(coverage),
            lambda: shape.band(coverage, simultaneous=True),
            lambda: shape.importance_interval(coverage),
            lambda: shape.others_band(coverage),
            lambda: local.contribution_interval(coverage),
            lambda: local.prediction_interval(coverage),
            lambda: local.to_frame(coverage),
            lambda: gaussian.explain_global().to_frame(coverage),
            lambda: require_coverage(coverage),
        ]
        for call in calls:
            with pytest.raises(ValueError, match=r"must lie between 0 and 1, for example 0\.95"):
                call()

    def test_frames(self, gaussian, several):
        for model, n_classes in ((gaussian, 1), (several, 3)):
            explanation = model.explain_global()
            frame = explanation.to_frame(coverage=0.8, beyond=True)
            for name in ("age", "city", "age x bmi"):
                shape = explanation[name]
                part = frame[frame["term"] == name]
                for prefix, simultaneous in (("", False), ("simultaneous_", True)):
                    lower, upper = shape.band(0.8, simultaneous)
                    n_cells = lower.size
                    np.testing.assert_array_equal(part[f"{prefix}lower"][:n_cells], lower.ravel())
                    np.testing.assert_array_equal(part[f"{prefix}upper"][:n_cells], upper.ravel())
                    if name == "city":
                        bands = shape.others_band(0.8, simultaneous)
                        ends = np.ravel([upper for _, upper in bands.values()])
                        np.testing.assert_array_equal(part[f"{prefix}upper"][n_cells:], ends)
                        assert len(ends) == 2 * n_classes
        assert list(frame)[-9:] == [
            "mean",
            "std",
            "lower",
            "upper",
            "simultaneous_lower",
            "simultaneous_upper",
            "density",
            "inside",
            "edited",
        ]

    def test_importance(self, gaussian):
        for shape in gaussian.explain_global():
            lower, upper = shape.importance_interval(0.9)
            assert upper == pytest.approx(shape.importance + 1.6448536 * shape.importance_std)
            assert lower == pytest.approx(
                max(shape.importance - 1.6448536 * shape.importance_std, 0.0)
            )
        doubtful = replace(shape, importance=1.0, importance_std=5.0)
        assert doubtful.importance_interval()[0] == 0.0


@pytest.fixture(scope="module")
def counts(data):
    rng = np.random.default_rng(3)
    y = rng.poisson(np.exp(0.5 * data[1]))
    return LANAMRegressor(likelihood="poisson", interactions=0, random_state=0).fit(data[0], y)


@pytest.fixture(scope="module")
def classes(data):
    return LANAMClassifier(interactions=0, random_state=0).fit(data[0], data[1] > 0.2)


class TestRows:
    def test_contributions_and_predictions(self, gaussian, several, data):
        for model in (gaussian, several):
            local = model.explain_local(data[0][:7])
            half = 1.2815516
            actual = local.contribution_interval(0.8)
            assert actual.shape == (*local.contributions.shape, 2)
            np.testing.assert_allclose(
                actual[..., 0], local.contributions - half * local.contributions_std, atol=1e-7
            )
            np.testing.assert_allclose(
                actual[..., 1], local.contributions + half * local.contributions_std, atol=1e-7
            )
            actual = local.prediction_interval(0.8)
            assert actual.shape == (*local.prediction.shape, 2)
            np.testing.assert_allclose(
                actual[..., 1] - actual[..., 0], 2.0 * half * local.prediction_std, rtol=1e-6
            )
            np.testing.assert_allclose(actual.mean(axis=-1), local.prediction)

    def test_responses_are_the_models_intervals_of_the_mean(self, gaussian, counts, classes, data):
        X = data[0][:20]
        for model in (gaussian, counts, classes):
            actual = model.explain_local(X).response_interval(0.9)
            np.testing.assert_allclose(
                actual, model.predict_interval(X, coverage=0.9, kind="mean"), rtol=1e-6
            )
        local = classes.explain_local(X)
        np.testing.assert_allclose(
            local.response_interval(0.9), expit(local.prediction_interval(0.9))
        )

    def test_several_classes_have_no_response_interval(self, several, data):
        with pytest.raises(
            ValueError, match="depends on all logits: use the model's predict_interval"
        ):
            several.explain_local(data[0][:2]).response_interval()

    def test_frames(self, gaussian, several, data):
        for model in (gaussian, several):
            local = model.explain_local(data[0][:3])
            frame = local.to_frame(coverage=0.8)
            terms = frame[~frame["term"].str.startswith("(")]
            ends = local.contribution_interval(0.8)
            np.testing.assert_allclose(terms["lower"], ends[..., 0].ravel(), atol=1e-12)
            np.testing.assert_allclose(terms["upper"], ends[..., 1].ravel(), atol=1e-12)
            whole = frame[frame["term"] == "(prediction)"]
            ends = local.prediction_interval(0.8)
            np.testing.assert_allclose(whole["lower"], ends[..., 0].ravel())
            np.testing.assert_allclose(whole["upper"], ends[..., 1].ravel())

    def test_json(self, gaussian, several, data):
        for model in (gaussian, several):
            local = model.explain_local(data[0][:3])
            known = json.loads(local.to_json(indent=2))
            assert known["prediction"] == local.prediction.tolist()
            assert json.loads(local.to_json()) == known


def test_json_of_class_labels_of_any_type(several):
    days = np.array(["2024-05-01", "2024-05-02", "2024-05-03"], dtype="datetime64[D]")
    explanation = explain_global(several._model, several._schema, days)
    assert json.loads(explanation.to_json())["classes"] == [str(day) for day in days]
    assert plain([np.inf, np.int64(3), np.True_, {"a": np.nan}]) == [None, 3, True, {"a": None}]
