"""Rating tables: rows scored with the csv module alone, and the texts."""

import csv
import io
import itertools
import math

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor
from lanam.errors import InputError
from lanam.export.rating import guarded
from tests.export.cases import KINDS, Case, case, check_link

pytestmark = pytest.mark.filterwarnings("ignore:column '", "ignore:of the 60 categories")


def lines_of(model):
    return list(csv.DictReader(io.StringIO(model.export(None, to="csv"))))


def contribution_columns(lines):
    return [name for name in lines[0] if name.startswith("contribution")]


def places_along(cells, value):
    """Of the different (kind, value, below) along a column, those a row reads, and their weights."""
    if value is None or value != value:
        return [(cell, 1.0) for cell in cells if cell[0] == "missing"]
    kinds = {kind for kind, _, _ in cells}
    if "level" in kinds or kinds == {"missing", "other"}:
        text = str(value)
        if isinstance(value, float) and value.is_integer():
            text = str(int(value))
        own = [cell for cell in cells if cell[:2] == ("level", guarded(text))]
    elif "value" in kinds:
        own = [
            c for c in cells if c[0] == "value" and math.isclose(float(c[1]), value, rel_tol=1e-6)
        ]
    elif "from" in kinds:
        own = [
            (kind, low, high)
            for kind, low, high in cells
            if kind == "from"
            and (low == "" or float(low) <= value)
            and (high == "" or value < float(high))
        ]
    else:
        knots = [cell for cell in cells if cell[0] in ("value at", "cyclic at")]
        numbers = [float(cell[1]) for cell in knots]
        assert numbers == sorted(numbers)
        if knots[0][0] == "cyclic at" and not numbers[0] <= value <= numbers[-1]:
            value = numbers[0] + (value - numbers[0]) % (numbers[-1] - numbers[0])
        place = float(np.interp(value, numbers, np.arange(len(numbers))))
        left = min(int(place), len(numbers) - 2)
        return [(knots[left], 1.0 + left - place), (knots[left + 1], place - left)]
    own = own or [cell for cell in cells if cell[0] == "other"]
    assert len(own) == 1
    return [(own[0], 1.0)]


def scorer(lines):
    """Sums the entries of a row by the documented rules."""
    names = contribution_columns(lines)
    terms = {}
    for line in lines[1:]:
        first = tuple(line[name] for name in ("kind", "value", "below"))
        second = tuple(line.get(f"second_{name}", "") for name in ("kind", "value", "below"))
        columns = (line["column"], line.get("second_column", ""))
        assert (first, second) not in terms.setdefault((line["term"], columns), {})
        terms[line["term"], columns][first, second] = np.array([float(line[n]) for n in names])

    def score(row):
        total = np.array([float(lines[0][name]) for name in names])
        for (_, (one, two)), table in terms.items():
            along = places_along(list(dict.fromkeys(first for first, _ in table)), row[one])
            across = [(("", "", ""), 1.0)]
            if two:
                across = places_along(list(dict.fromkeys(second for _, second in table)), row[two])
            for first, weight in along:
                for second, share in across:
                    total = total + weight * share * table[first, second]
        return total

    return score


@pytest.mark.parametrize("kind", [*KINDS, "nothing"])
def test_rows_scored_with_the_table_alone(kind):
    found = case(kind)
    score = scorer(lines_of(found.model))
    check_link(found, np.array([score(row) for row in found.X.to_dict("records")]))


def test_texts():
    lines = lines_of(case("gaussian").model)
    assert lines[0]["term"] == "(intercept)"
    by_term = {}
    for line in lines:
        by_term.setdefault(line["term"], []).append(line["meaning"])
    assert by_term["size"] == [
        "size is L", "size is M", "size is S", "size is missing", "size is any other level",
    ]  # fmt: skip
    assert by_term["load"][0].endswith(" or less")
    assert by_term["load"][-2].endswith(" or more")
    assert by_term["load"][-1] == "load is missing"
    assert by_term["zone (levels)"][0] == "zone is 0"
    assert by_term["zone (levels)"][-2:] == ["zone is missing", "zone is any other value"]
    assert by_term["hour (levels)"][0].startswith("hour below ")
    assert " to below " in by_term["hour (levels)"][1]
    assert by_term["hour (levels)"][-2].startswith("hour from ")
    assert by_term["gap x size"][-1] == "gap is missing and size is any other level"


@pytest.mark.parametrize(("kind", "name"), [("counts", "relativity"), ("two", "odds_ratio")])
def test_factors(kind, name):
    for line in lines_of(case(kind).model):
        assert float(line[name]) == pytest.approx(math.exp(float(line["contribution"])), rel=1e-5)
    assert name not in lines_of(case("gaussian").model)[0]
    assert name not in lines_of(case("many").model)[0]


def test_each_of_several_classes_has_its_columns():
    model = case("many").model
    lines = lines_of(model)
    for what in ("contribution", "std"):
        assert [name for name in lines[0] if name.startswith(what)] == [
            f"{what}: {label}" for label in model.classes_
        ]


@pytest.mark.parametrize("kind", ["gaussian", "many", "wide"])
def test_bands_and_shares_are_those_of_the_explanations(kind):
    model = case(kind).model
    lines = lines_of(model)
    stds = [name for name in lines[0] if name.startswith("std")]
    for term in model.explain_global().terms:
        own = [line for line in lines if line["term"] == term.name]
        if not term.active:
            assert not own
        elif term.kind in ("smooth", "categorical"):
            values = own[: len(term.values)]
            std = np.array([[float(line[name]) for name in stds] for line in values])
            np.testing.assert_allclose(std, term.std.reshape(std.shape), rtol=2e-5)
            share = [float(line["share"]) for line in values]
            np.testing.assert_allclose(share, term.density, atol=1e-6)
    intercept = [float(lines[0][name]) for name in stds]
    assert all(0.0 < std < 1.0 for std in intercept)


def test_edited_entries_are_marked():
    model = case("gaussian").model
    assert "edited" not in lines_of(model)[0]
    lines = lines_of(model.edit_term("load", action="zero", low=40.0, high=60.0))
    marked = [float(line["value"]) for line in lines if line["edited"] == "by hand"]
    assert marked
    assert all(39.0 < value < 61.0 for value in marked)
    assert {line["term"] for line in lines if line["edited"]} == {"load"}


@pytest.fixture(scope="module")
def tariff():
    """Claims by age, and by a region of names that a spreadsheet would run."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(18.0, 90.0, 400),
            "=region": rng.choice(["=1+1", "@x", "-a", "plain"], 400, p=[0.4, 0.2, 0.2, 0.2]),
            "doors": rng.choice([2.0, 3.0, 5.0, np.nan], 400),
        }
    )
    slope = np.where(X["=region"] == "-a", -0.03, 0.02)
    rate = np.exp(slope * (X["age"] - 50) + (X["=region"] == "@x") + 0.6 * X["doors"].isna())
    pairs = [("age", "=region")]
    model = LANAMRegressor(likelihood="poisson", interactions=pairs, hidden_sizes=(8,))
    return model.fit(X, rng.poisson(3 * rate)), X


@pytest.fixture(scope="module")
def simple():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.choice(list("xxy"), 80), "b": rng.choice(list("uvv"), 80)})
    y = 2.0 * (X["a"] == "x") + (X["b"] == "u") + rng.standard_normal(80)
    return LANAMRegressor(interactions=0, noise="constant").fit(X, y)


class TestBands:
    def lines(self, model, bands=5):
        content = model.export(None, to="csv", bands=bands)
        return list(csv.DictReader(io.StringIO(content)))

    def of(self, model, term):
        return [line for line in self.lines(model) if line["term"] == term]

    def test_relative_to_the_most_frequent_band(self, tariff):
        for line in self.lines(tariff[0])[1:]:
            assert float(line["relativity"]) == pytest.approx(
                math.exp(float(line["contribution"])), rel=1e-5
            )
            is_base = line["base"] == "base"
            assert not is_base or (line["std"], line["relativity"]) == ("0", "1")
        region = self.of(tariff[0], "'=region")
        (base,) = [line for line in region if line["base"]]
        assert base["value"] == "'=1+1"
        assert max(float(line["share"]) for line in region) == float(base["share"])

    def test_categories_are_differences_from_the_base_level(self, tariff):
        model, _ = tariff
        region = {line["value"]: line for line in self.of(model, "'=region")}
        assert set(region) == {"'=1+1", "'@x", "'-a", "plain"}  # no unseen category
        for label in ("@x", "plain"):
            line = region[label if label == "plain" else f"'{label}"]
            alone = model.explain_global()["=region"]
            at = dict(zip(alone.values, alone.mean, strict=True))
            assert float(line["contribution"]) == pytest.approx(at[label] - at["=1+1"])

    def test_the_standard_deviation_is_that_of_the_difference(self, simple):
        """Without interactions, as ``difference`` has it."""
        explained = simple.explain_global().difference("a", "x", "y")
        (line,) = [line for line in self.of(simple, "a") if line["value"] == "y"]
        assert abs(float(line["contribution"])) == pytest.approx(abs(explained.mean), rel=1e-4)
        assert float(line["std"]) == pytest.approx(explained.std, rel=1e-3)

    def test_ranges_are_within_the_data_and_share_it(self, tariff):
        model, X = tariff
        age = self.of(model, "age")
        assert len(age) == 5
        ends = [(float(line["value"]), float(line["below"])) for line in age]
        assert ends[0][0] == pytest.approx(X["age"].min())
        assert ends[-1][1] == pytest.approx(X["age"].max())
        assert all(first[1] == second[0] for first, second in itertools.pairwise(ends))
        assert all(len(line["below"]) <= 5 for line in age[:-1])  # round numbers
        f = model.predict_terms(X)[:, 0]
        means = [f[(X["age"] >= low) & (X["age"] <= high)].mean() for low, high in ends]
        base = next(k for k, line in enumerate(age) if line["base"])
        actual = [float(line["contribution"]) for line in age]
        np.testing.assert_allclose(actual, np.subtract(means, means[base]), atol=0.02)
        assert sum(float(line["share"]) for line in age) == pytest.approx(1.0, abs=1e-4)
        for line, (low, high) in zip(age, ends, strict=True):
            seen = ((X["age"] >= low) & (X["age"] < high)).mean()
            assert float(line["share"]) == pytest.approx(seen, abs=0.02)

    def test_few_values_stay_single_and_missing_ones_are_a_band(self, tariff):
        doors = self.of(tariff[0], "doors")
        assert [line["kind"] for line in doors] == ["value"] * 3 + ["missing"]
        assert [line["value"] for line in doors[:3]] == ["2.0", "3.0", "5.0"]

    def test_the_base_and_its_cells_add_up_to_predictions(self, tariff):
        """At a row of the base levels' single values: exact but for the band of age."""
        model, X = tariff
        lines = self.lines(model, bands=200)
        row = X.iloc[[7]].fillna({"doors": 3.0})
        total = float(lines[0]["contribution"])
        for term in ("age", "'=region", "doors", "age x =region"):
            for line in (line for line in lines[1:] if line["term"] == term):
                hit = all(
                    self.holds(line, prefix, row)
                    for prefix in ("", "second_")
                    if line[f"{prefix}column"]
                )
                total += float(line["contribution"]) if hit else 0.0
        assert total == pytest.approx(float(np.log(model.predict(row)[0])), abs=0.02)

    def holds(self, line, prefix, row):
        value = row[line[f"{prefix}column"].removeprefix("'")].iloc[0]
        kind, low, high = (line[prefix + name] for name in ("kind", "value", "below"))
        if kind == "from":
            return float(low) <= value < float(high)
        return low.removeprefix("'") == value if kind == "level" else low == repr(value)

    def test_the_bases_uncertainty_is_that_of_its_prediction(self, simple):
        base = self.lines(simple)[0]
        row = pd.DataFrame({"a": ["x"], "b": ["v"]})
        mean, covariance = Case(simple, row).link
        assert float(base["contribution"]) == pytest.approx(mean[0, 0])
        assert float(base["std"]) ** 2 == pytest.approx(covariance[0, 0, 0], rel=1e-3)

    @pytest.mark.parametrize("kind", ["gaussian", "two", "many", "wide", "nothing"])
    def test_every_kind(self, kind):
        lines = self.lines(case(kind).model, bands=4)
        assert lines[0]["term"] == "(base)"
        numbers = [n for n in lines[0] if n.startswith(("contribution", "std"))]
        assert np.isfinite([[float(line[name]) for name in numbers] for line in lines]).all()

    @pytest.mark.parametrize("bands", [1, 201, 2.5, True, "5"])
    def test_bad_numbers(self, tariff, bands):
        with pytest.raises(InputError, match="bands must be an integer") as caught:
            tariff[0].export(None, to="csv", bands=bands)
        assert caught.value.argument == "bands"
        assert "from 2 to 200" in caught.value.remedy


def test_no_cell_is_a_formula(tariff):
    for options in ({}, {"bands": 3}):
        content = tariff[0].export(None, to="csv", **options)
        for cell in (cell for row in csv.reader(io.StringIO(content)) for cell in row):
            if cell[:1] in tuple("=+-@\t\r"):
                float(cell)  # a number, or else an error
        assert "'=1+1" in content
