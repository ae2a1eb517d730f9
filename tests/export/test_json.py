"""Lookup tables, scored by the scorer that the documentation prints."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from lanam.explain.portable import explain_portable
from lanam.export import lookup_tables
from tests.export.cases import KINDS, case, check_link, check_response

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "docs" / "hooks"))

from blocks import python_blocks  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:column '", "ignore:of the 60 categories")


def printed_scorer(tables):
    """What the page's scorer defines, with these tables in place of its file's."""
    page = ROOT / "docs" / "howto" / "export.md"
    (block,) = (text for _, text in python_blocks(page) if "def score(row)" in text)
    start, end = block.index("levels = {"), block.index("for row, expected")
    names = {"tables": tables}
    exec("import bisect, math\nfrom statistics import NormalDist\n" + block[start:end], names)
    return names


def strict(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("kind", [*KINDS, "nothing"])
def test_the_documented_scorer_agrees_with_the_model(kind):
    found = case(kind)
    tables = strict(found.model.export(None, to="json"))
    scorer = printed_scorer(tables)
    score, noise = scorer["score"], scorer["noise"]
    rows = found.X.to_dict("records")
    scored = [score(row) for row in rows]
    mean = np.array([mean for mean, _ in scored])
    covariance = np.array([covariance for _, covariance in scored])
    check_link(found, mean, np.diagonal(covariance, axis1=1, axis2=2))
    scale = np.sqrt(np.einsum("ncc->nc", found.link[1]))
    error = np.abs(covariance - found.link[1]) / (scale[:, :, None] * scale[:, None, :])
    assert error.max() < 1e-6
    respond = {"identity": numbers, "log": counts, "logit": two, "softmax": several}
    noises = np.array([noise(row) for row in rows])
    if "grades" in tables:
        assert tables["grades"] == found.model.classes_.tolist()
        cuts = tables["parameters"]["cut_points"]
        check_response(found, grades(mean, covariance, cuts))
    else:
        check_response(found, *respond[tables["link"]](mean, covariance, noises))
    if tables["link"] == "identity":
        check_intervals(found, scorer, rows, 0.9, ndtri(0.95))


def check_intervals(found, scorer, rows, coverage, z):
    own = found.model.predict_interval(found.X, coverage=coverage)
    error = np.array([scorer["interval"](row, z) for row in rows]) - own
    _, std = found.model.predict(found.X, return_std=True)
    assert (np.abs(error) / std[:, None]).max() < 1e-5


def test_some_noise_is_not_gaussian():
    shapes = {
        kind: strict(case(kind).model.export(None, to="json"))["noise_shape"] for kind in KINDS
    }
    assert shapes["gaussian"] is not None
    assert shapes["noisy"] is None
    assert shapes["many"] is None


# the page's table of what comes after the link scale


def numbers(mean, covariance, noise):
    return mean[:, 0], covariance[:, 0, 0] + noise


def counts(mean, covariance, noise):
    return (np.exp(mean[:, 0] + covariance[:, 0, 0] / 2.0),)


def two(mean, covariance, noise):
    odds = mean[:, 0] / np.sqrt(1.0 + math.pi / 8.0 * covariance[:, 0, 0])
    return (np.stack([1.0 / (1.0 + np.exp(odds)), 1.0 / (1.0 + np.exp(-odds))], axis=1),)


def grades(mean, covariance, cuts):
    scale = np.sqrt(1.0 + math.pi / 8.0 * covariance[:, 0])
    upto = 1.0 / (1.0 + np.exp((mean - np.array(cuts)) / scale))
    return np.diff(upto, axis=1, prepend=0.0, append=1.0)


def several(mean, covariance, noise):
    size, shares = mean.shape[1], np.zeros(mean.shape)
    for c in range(size):
        for d in range(size):
            spread = covariance[:, c, c] + covariance[:, d, d] - 2.0 * covariance[:, c, d]
            odds = (mean[:, d] - mean[:, c]) / np.sqrt(1.0 + math.pi / 8.0 * spread)
            shares[:, c] += np.exp(odds)
    return ((1.0 / shares) / (1.0 / shares).sum(axis=1, keepdims=True),)


def test_self_describing():
    model = case("odd").model
    tables = strict(model.export(None, to="json"))
    assert (tables["format"], tables["version"]) == ("lanam lookup tables", 1)
    columns = {column["name"]: column for column in tables["columns"]}
    assert columns["flag"]["levels"] == [False, True]
    assert columns["zone"]["levels"] == [-3, 0, 7, 2**40]
    assert columns["SELECT"] == {
        "name": "SELECT", "kind": "numeric", "missing": True, "lowest": 0.0, "highest": 8.0,
    }  # fmt: skip
    assert [term["name"] for term in tables["terms"]] == [t.name for t in model.terms_ if t.active]
    shares = [sum(term["share"]) for term in tables["terms"]]
    assert shares == pytest.approx(np.ones(len(shares)))


def test_every_kind_of_axis_is_in_the_examples():
    kinds = {
        axis["kind"]
        for kind in KINDS
        for term in strict(case(kind).model.export(None, to="json"))["terms"]
        for axis in term["axes"]
    }
    assert kinds == {"knots", "levels", "bins", "codes"}


def test_without_the_variance_means_are_the_same_and_the_rest_is_left_out():
    model = case("many").model
    with_it, without = (
        strict(model.export(None, to="json", variance=variance)) for variance in (True, False)
    )
    assert [term["mean"] for term in with_it["terms"]] == [t["mean"] for t in without["terms"]]
    assert set(with_it) - set(without) == {
        "factor", "contrasts", "noise_variance", "gap_variance", "log_noise", "noise_terms", "noise_shape",
        "calibration",
    }  # fmt: skip
    assert not any("rows" in term for term in without["terms"])


def test_terms_of_the_noise_are_there_where_it_differs():
    noisy, odd = (strict(case(kind).model.export(None, to="json")) for kind in ("noisy", "odd"))
    names = [term.name for term in case("noisy").model.noise_terms_ if term.active]
    assert [term["name"] for term in noisy["noise_terms"]] == names
    assert not any("rows" in term for term in noisy["noise_terms"])
    assert (odd["log_noise"], odd["noise_terms"]) == (0.0, [])


def test_calibrated_intervals_can_be_made_from_the_file():
    found = case("calibrated")
    tables = strict(found.model.export(None, to="json"))
    thresholds = {t["coverage"]: t["threshold"] for t in tables["calibration"]["thresholds"]}
    assert list(thresholds) == [0.5, 0.8, 0.9, 0.95, 0.99]
    rows = found.X.to_dict("records")
    check_intervals(found, printed_scorer(tables), rows, 0.8, thresholds[0.8])
    assert tables["calibration"]["scores"] == found.model.calibration_.scores.tolist()
    assert strict(case("gaussian").model.export(None, to="json"))["calibration"] is None


def test_few_held_out_rows_allow_few_coverages():
    found = case("odd")
    model = found.model
    calibrated = type(model)()
    calibrated.__dict__ |= vars(model)
    calibrated.calibrate(found.X[:10], model.predict(found.X[:10]) + np.arange(10.0))
    tables = strict(calibrated.export(None, to="json"))
    assert [t["coverage"] for t in tables["calibration"]["thresholds"]] == [0.5, 0.8, 0.9]


def test_edits_are_in_it():
    model = case("gaussian").model.edit_term("load", action="zero")
    tables = strict(model.export(None, to="json"))
    assert tables["edits"][0]["action"] == "zero"
    edited = {term["name"]: term["edited"] for term in tables["terms"]}
    assert any(edited["load"])
    assert edited["gap"] is None


def test_indent_spreads_it_over_lines():
    model = case("nothing").model
    wide, long = model.export(None, to="json"), model.export(None, to="json", indent=2)
    assert wide.count("\n") == 1 < long.count("\n")
    assert strict(wide) == strict(long)


def test_the_same_as_plain_data():
    model = case("two").model
    portable = explain_portable(model._model, model._schema, model._labels)
    facts = lookup_tables(portable, model._schema)
    assert json.loads(model.export(None, to="json")) == facts
