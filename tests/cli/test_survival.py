"""Survival on the command line: fitted by --time and --event, predicted at --times."""

import csv

import numpy as np
import pandas as pd
import pytest

from lanam import load


@pytest.fixture(scope="module")
def subjects():
    """Two causes, and features with text and missing values."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(40, 90, 400), "sex": rng.choice(["f", "m"], 400)})
    hazard = np.exp(0.05 * (table["age"] - 65))
    time, lost = rng.exponential(1 / hazard), rng.uniform(0.5, 3, 400)
    cause = rng.integers(1, 3, 400)
    table["status"] = np.where(time <= lost, cause, 0)
    table["years"] = np.minimum(time, lost)
    table.loc[::9, "age"] = np.nan
    return table


@pytest.fixture
def place(subjects, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subjects.to_csv("subjects.csv", index=False)
    return tmp_path


FIT = ("fit", "subjects.csv", "--time", "years", "--event", "status", "-o", "m.lanam")


def test_fit_predict_explain_report(lanam, place, subjects):
    done = lanam(*FIT, "--interactions", 0, "--json")
    assert done.document["causes"] == [1, 2]
    assert 0.5 < done.document["held_out"]["harrell_c"] < 0.8
    model, X = load("m.lanam"), subjects[["age", "sex"]]
    lanam("predict", "m.lanam", "subjects.csv", "-o", "out.csv", "--times", "1,2", "--keep", "sex")
    out = pd.read_csv("out.csv")
    curves = [
        f"{curve}_{at}" for curve in ("survival", "incidence_1", "incidence_2") for at in (1, 2)
    ]
    assert list(out) == ["sex", "prediction", *curves]
    np.testing.assert_allclose(out["prediction"], model.predict(X))
    np.testing.assert_allclose(
        out[["survival_1", "survival_2"]], model.predict_survival_function(X, [1, 2])
    )
    np.testing.assert_allclose(
        out["incidence_2_1"], model.predict_cumulative_incidence(X, 2, 1)[:, 0]
    )
    done = lanam("explain", "m.lanam", code=2)
    assert "choose a cause of the model with --cause: 1, 2" in done.err
    assert "age" in lanam("explain", "m.lanam", "--cause", 2).out
    lanam("report", "m.lanam", "subjects.csv", "-o", "r.html", "--cause", 1)
    assert "Survival until" in (place / "r.html").read_text()


def test_intervals_and_files_in_chunks(lanam, place, subjects):
    (place / "many").mkdir()
    for k, part in enumerate(np.array_split(np.arange(400), 3)):
        subjects.iloc[part].to_csv(f"many/{k}.csv", index=False)
    names = ("--time", "years", "--event", "status", "--interactions", 0)
    lanam("fit", "many", *names, "-o", "m.lanam")
    lanam("predict", "m.lanam", "subjects.csv", "-o", "o.csv", "--times", 1, "--interval", 0.9)
    with open("o.csv", newline="") as file:
        header = next(csv.reader(file))
    assert header[1:4] == ["survival_1", "survival_1_lower", "survival_1_upper"]
    whole = load("m.lanam")
    whole_in_memory = type(whole)(interactions=0).fit(subjects, event="status", time="years")
    assert whole.log_evidence_ == pytest.approx(whole_in_memory.log_evidence_, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("--time", "years"), "a survival model needs --time", 2),
        (("--time", "years", "--event", "state"), "--event names the column 'state'", 2),
        (("--time", "years", "--event", "status", "--task", "counts"), "--task is not for", 2),
        (("--time", "status", "--event", "status"), "both name the column 'status'", 1),
        (("--time", "age", "--event", "status"), "--time: column 'age' has 45 missing values", 1),
    ],
)
def test_bad_input(lanam, place, arguments, message, code):
    assert message in lanam("fit", "subjects.csv", *arguments, "-o", "m.lanam", code=code).err


def test_times_are_for_survival(lanam, place):
    lanam("fit", "subjects.csv", "--target", "years", "--interactions", 0, "-o", "y.lanam")
    done = lanam("predict", "y.lanam", "subjects.csv", "-o", "y.csv", "--times", 1, code=2)
    assert "--times are for survival models" in done.err
    done = lanam("predict", "y.lanam", "subjects.csv", "-o", "y.csv", "--times", "soon", code=2)
    assert "write numbers" in done.err
