"""``lanam adequacy``, and the same in a report."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest


def test_adequacy_of_held_out_rows(lanam, place):
    done = lanam("adequacy", "price.lanam", "rides.csv", "--splits", "2", "-o", "missed.png")
    assert "what can be explained" in done.out
    assert "which has not seen the rows" in done.out
    assert (place / "missed.png").stat().st_size > 5000
    assert "were held out of the fit" in done.err


def test_adequacy_of_all_rows_refits(lanam, place):
    arguments = ("--all-rows", "--splits", "2", "--max-columns", "2", "--json")
    found = lanam("adequacy", "events.lanam", "rides.csv", *arguments).document["adequacy"]
    assert found["refitted"]
    assert found["n_rows"] == 300
    assert found["measure"] == "deviance"


def test_adequacy_of_survival(lanam, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = {"age": rng.uniform(40, 80, 120), "years": rng.exponential(size=120).round(3) + 0.01}
    arrow_csv.write_csv(pa.table({**table, "died": rng.integers(0, 2, 120)}), "a.csv")
    lanam("fit", "a.csv", "--time", "years", "--event", "died", "-o", "a.lanam")
    done = lanam("adequacy", "a.lanam", "a.csv", "--splits", "2", "--max-columns", "1")
    assert "log loss (nats)" in done.out
    done = lanam("adequacy", "a.lanam", "a.csv", "--time", "yaers", code=2)
    assert "years" in done.err


def test_the_report_takes_it(lanam, place):
    lanam("report", "ill.lanam", "rides.csv", "--adequacy", "-o", "r.html")
    assert 'id="adequacy"' in (place / "r.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("adequacy", "price.lanam", "rides.csv", "--time", "hours"), "are for survival"),
        (("adequacy", "price.lanam", "rides.csv", "-o", "missed.txt"), "the name of a plot ends"),
        (("adequacy", "price.lanam", "rides.csv", "-t", "prise"), "price"),
        (("report", "price.lanam", "--adequacy"), "pass the table as well"),
    ],
)
def test_wrong_usage(lanam, place, arguments, words):
    assert words in lanam(*arguments, code=2).err
