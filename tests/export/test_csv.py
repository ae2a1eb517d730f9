"""Rating tables: rows scored with the csv module alone, and the texts."""

import csv
import io
import math

import numpy as np
import pytest

from tests.export.cases import KINDS, case, check_link

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
        own = [cell for cell in cells if cell[:2] == ("level", text)]
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
        knots = [cell for cell in cells if cell[0] == "value at"]
        numbers = [float(cell[1]) for cell in knots]
        assert numbers == sorted(numbers)
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
