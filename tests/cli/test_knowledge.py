"""lanam fit: what is known of columns, by options or a TOML file."""

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor, load
from lanam.cli.deciding import hold_out

FIT = (
    "fit",
    "t.csv",
    "-t",
    "y",
    "-o",
    "m.lanam",
    "--force",
    "--interactions",
    "0",
    "--max-iter",
    "20",
)

OPTIONS = (
    *("--cyclic", "hour=24", "--linear", "weight", "--ordered", "stage=I,II,III"),
    *("--ordered", "grade=1,2,3", "--random-slopes", "time:patient", "--by", "weight=stage"),
    *("--keep", "weight,time", "--exclude-pairs", "hour:stage,hour:time"),
    *("--monotone", "grade=+"),
    *("--spatial", "east:north"),
)

SPEC = """
linear = ["weight"]
keep = ["weight", "time"]
exclude_pairs = [["hour", "stage"], ["hour", "time"]]
random_slopes = [["time", "patient"]]
spatial = [["east", "north"]]
cyclic = {hour = 24}
monotonic_cst = {grade = 1}
by = {weight = "stage"}

[ordered]
stage = ["I", "II", "III"]
grade = [1, 2, 3]
"""

EXPECTED = {
    "monotonic_cst": {"grade": 1},
    "cyclic": {"hour": 24},
    "linear": ["weight"],
    "ordered": {"stage": ["I", "II", "III"], "grade": [1, 2, 3]},
    "keep": ["weight", "time"],
    "exclude_pairs": [("hour", "stage"), ("hour", "time")],
    "by": {"weight": "stage"},
    "random_slopes": [("time", "patient")],
    "spatial": [("east", "north")],
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 200
    patient = rng.integers(0, 12, n)
    frame = pd.DataFrame(
        {
            "hour": rng.integers(0, 24, n),
            "time": rng.uniform(size=n),
            "patient": [f"p{k}" for k in patient],
            "stage": rng.choice(["I", "II", "III"], n),
            "grade": rng.integers(1, 4, n),
            "weight": rng.normal(70.0, 9.0, n),
            "east": rng.uniform(size=n),
            "north": rng.uniform(size=n),
        }
    )
    y = np.sin(frame["hour"] / 3.8) + rng.normal(size=12)[patient] * frame["time"]
    frame["y"] = y + 0.2 * rng.normal(size=n)
    frame.to_csv("t.csv", index=False)
    return frame


def known(model):
    return {name: value for name, value in model.get_params().items() if name in EXPECTED}


def test_options_and_files_are_the_parameters(lanam, table, tmp_path):
    (tmp_path / "s.toml").write_text(SPEC)
    lanam(*FIT, *OPTIONS)
    by_options = load("m.lanam")
    assert known(by_options) == EXPECTED
    lanam(*FIT, "--spec", "s.toml")
    by_file = load("m.lanam")
    assert known(by_file) == EXPECTED
    X = table.drop(columns="y")
    np.testing.assert_array_equal(by_options.predict(X), by_file.predict(X))
    assert known(LANAMRegressor(**known(by_file))) == EXPECTED


def test_survival(lanam, table):
    table.assign(died=1, days=np.exp(-table["y"])).drop(columns="y").to_csv("s.csv", index=False)
    lanam(
        *("fit", "s.csv", "-o", "m.lanam", "--time", "days", "--event", "died"),
        *("--interactions", "0", "--max-iter", "10", "--cyclic", "hour=24", "--keep", "weight"),
    )
    assert load("m.lanam").cyclic == {"hour": 24.0}


def test_whole_groups_are_held_out(lanam, table):
    done = lanam(*FIT, "--groups", "patient", "--calibrate-share", "0.2", "--json")
    assert done.document["held_out"]["n_groups"] == 2
    assert done.document["n_train"] + done.document["n_test"] + done.document["n_calibrate"] == 200
    groups = table["patient"].to_numpy()
    parts = hold_out(None, 200, [0.2, 0.2], 0, groups)
    names = [set(groups[part]) for part in parts]
    assert len(set.union(*names)) == sum(map(len, names)) == 12
    assert sum(map(len, parts)) == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--cyclic", "hour"),
            "--cyclic 'hour' is not valid: use a column and its period, such as",
        ),
        (("--monotone", "time=up"), "--monotone time=up: the direction is + or -"),
        (("--shape", "time=round"), "--shape"),
        (("--cyclic", "hour=day"), "--cyclic hour=day: the period is not a number"),
        (
            ("--cyclic", "hours=24"),
            "--cyclic names the column 'hours', which the table does not have; did",
        ),
        (
            ("--ordered", "stage"),
            "--ordered 'stage' is not valid: use a column and its categories in",
        ),
        (
            ("--by", "time=patent"),
            "--by names the column 'patent', which the table does not have; did you",
        ),
        (
            ("--random-slopes", "time"),
            "--random-slopes 'time' is not valid: use pairs of columns such as",
        ),
        (("--linear", "stage"), "--linear names the column 'stage', which is categorical"),
        (
            ("--linear", "weight", "--paper"),
            "--linear is for infinitely wide networks, the default: leave",
        ),
        (
            ("--groups", "patent"),
            "--groups names the column 'patent', which the table does not have; did",
        ),
    ],
)
def test_errors_name_the_options(lanam, table, options, message):
    codes = {2, 1}
    done = None
    for code in codes:
        try:
            done = lanam(*FIT, *options, code=code)
        except AssertionError:
            continue
        break
    assert done is not None
    assert message in done.err


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("linear = [", (), "--spec s.toml is not valid TOML: "),
        (
            "linaer = ['weight']",
            (),
            "has 'linaer', which is no parameter for columns; did you mean 'linear'",
        ),
        (
            "linear = ['weight']",
            ("--linear", "weight"),
            "--linear and 'linear' of --spec s.toml say the same",
        ),
        ("linear = ['wieght']", (), "--linear names the column 'wieght'"),
    ],
)
def test_errors_of_files(lanam, table, tmp_path, text, options, message):
    (tmp_path / "s.toml").write_text(text)
    code = 1 if "wieght" in text else 2
    assert message in lanam(*FIT, "--spec", "s.toml", *options, code=code).err


def test_a_spec_that_is_not_there(lanam, table):
    assert "s.toml" in lanam(*FIT, "--spec", "s.toml", code=1).err
