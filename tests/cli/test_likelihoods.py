"""--likelihood, --trials, --offset and --tweedie-power."""

import numpy as np
import pandas as pd
import pytest

from lanam import load
from lanam.cli.requests import LikelihoodName
from lanam.families import AUTO, ORDINAL, numeric_families

FIT = ("--interactions", "0", "--quiet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table with a target for every likelihood."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, known = rng.uniform(-1.0, 1.0, 300), rng.normal(size=300).round(3)
    mean = np.exp(1.0 + x)
    number = rng.poisson(mean)
    table = pd.DataFrame(
        {
            "x": x.round(4),
            "amount": (np.exp(known) * mean * rng.gamma(3.0, size=300) / 3.0).round(4),
            "total": np.round(number * rng.gamma(2.0, size=300), 3),
            "number": number,
            "n": rng.integers(5, 20, 300),
            "known": known,
            "grade": np.digitize(x + 0.5 * rng.logistic(size=300), [-0.5, 0.5]),
        }
    )
    table["dead"] = rng.binomial(table["n"], 1.0 / (1.0 + np.exp(-x)))
    table.to_csv("rows.csv", index=False)
    return tmp_path


def columns(*used):
    others = {"amount", "total", "number", "n", "known", "grade", "dead"} - set(used)
    return ("--drop", ",".join(sorted(others)))


def test_an_offset(lanam, folder):
    options = ("--likelihood", "gamma", "--offset", "known", *columns("amount", "known"))
    lanam("fit", "rows.csv", "-t", "amount", *options, *FIT, "-o", "amount.lanam")
    model = load("amount.lanam")
    assert model.family_.name == "gamma"
    assert list(model.feature_names_in_) == ["x"]
    lanam("predict", "amount.lanam", "rows.csv", "-o", "out.csv", "--interval", "0.9", "--quiet")
    table = pd.read_csv("rows.csv")
    written = pd.read_csv("out.csv")
    wanted = model.predict(table[["x"]], offset=table["known"])
    np.testing.assert_allclose(written["prediction"], wanted, rtol=1e-6)
    lanam("predict", "amount.lanam", "rows.csv", "-o", "zero.csv", "--offset", "0", "--quiet")
    np.testing.assert_allclose(pd.read_csv("zero.csv")["prediction"], model.predict(table[["x"]]))
    lanam("report", "amount.lanam", "rows.csv", "-o", "report.html", "--quiet")
    row = ("--row", 3, "--data", "rows.csv", "--json")
    local = model.explain_local(table[["x"]][2:3], offset=table["known"][2:3])
    document = lanam("explain", "amount.lanam", *row).document
    assert document["prediction"] == pytest.approx(local.prediction.tolist())
    document = lanam("explain", "amount.lanam", *row, "--offset", "0").document
    assert document["offset"] == [0.0]


def test_trials(lanam, folder):
    options = ("--likelihood", "binomial", "--trials", "n", *columns("dead", "n"))
    lanam("fit", "rows.csv", "-t", "dead", *options, *FIT, "-o", "dead.lanam")
    lanam("predict", "dead.lanam", "rows.csv", "-o", "out.csv", "--std", "--quiet")
    table = pd.read_csv("rows.csv")
    wanted = load("dead.lanam").predict(table[["x"]], trials=table["n"])
    np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], wanted, rtol=1e-6)


def test_the_power_of_tweedie(lanam, folder):
    options = ("--likelihood", "tweedie", "--tweedie-power", "1.4", *columns("total"))
    lanam("fit", "rows.csv", "-t", "total", *options, *FIT, "-o", "total.lanam")
    assert load("total.lanam").family_parameters_["power"] == pytest.approx(1.4)
    refused = lanam(
        *("fit", "rows.csv", "-t", "total", "--likelihood", "tweedie", "--tweedie-power", "3"),
        *(*columns("total"), *FIT, "-o", "none.lanam"),
        code=1,
    )
    assert "--tweedie-power" in refused.err
    assert "1.01" in refused.err


def test_grades_and_the_choice_by_evidence(lanam, folder):
    options = ("--likelihood", "ordinal", *columns("grade"))
    lanam("fit", "rows.csv", "-t", "grade", *options, *FIT, "-o", "grade.lanam")
    assert load("grade.lanam").family_.name == "ordinal"
    options = ("--likelihood", "auto", *columns("number"))
    done = lanam(
        *("fit", "rows.csv", "-t", "number", *options, "--interactions", "0", "-o", "n.lanam")
    )
    assert "likelihood poisson, by log evidence" in done.out


def test_one_that_is_not_of_the_task(lanam, folder):
    options = ("--likelihood", "gamma", "--task", "counts", *FIT, "-o", "none.lanam")
    refused = lanam("fit", "rows.csv", "-t", "amount", *options, code=2)
    assert "--likelihood gamma is for --task regression, and --task is counts" in refused.err


def test_bad_targets_are_named_in_flags(lanam, folder):
    options = ("--likelihood", "gamma", *columns("total"), *FIT, "-o", "none.lanam")
    refused = lanam("fit", "rows.csv", "-t", "total", *options, code=1)
    assert "--likelihood gamma is for positive numbers" in refused.err
    assert "use --likelihood tweedie for amounts that can be zero" in refused.err


def test_all_are_known():
    assert set(LikelihoodName) == {AUTO, ORDINAL.name, *numeric_families()}
