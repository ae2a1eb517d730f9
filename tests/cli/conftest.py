"""Tables in files, models fitted to them by the command line, and a way to run commands."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

from lanam.cli import demo, main


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out)


@pytest.fixture
def lanam(capfd):
    """Run a command in this process and return its output."""

    def run(*arguments, code=0):
        capfd.readouterr()
        got = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        done = Done(got, out, err)
        assert got == code, done
        assert "Traceback" not in err
        return done

    return run


def make_table(n_rows=300, seed=0):
    """Numeric, string and boolean columns with missing values, and a target of each task."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Bern", "Oslo", "Rome, IT"], n_rows)
    age = rng.integers(18, 80, n_rows)
    celsius = rng.normal(15, 8, n_rows).round(3)
    zone = rng.integers(1, 5, n_rows)
    hours = rng.uniform(1, 9, n_rows).round(3)
    price = (
        2.0 * (city == "Oslo")
        + 0.05 * age
        + 0.1 * celsius
        + (zone == 3)
        + rng.normal(0, 0.5, n_rows)
    )
    missing = rng.random(n_rows) < 0.1
    return pa.table(
        {
            "id": [f"{k:05d}" for k in range(n_rows)],
            "city": pa.array(
                [None if k % 20 == 0 else name for k, name in enumerate(city.tolist())]
            ),
            "age": age,
            "celsius": pa.array(celsius, mask=missing),
            "zone": zone,
            "holiday": rng.random(n_rows) < 0.2,
            "hours": hours,
            "price": price.round(4),
            "events": rng.poisson(hours * np.exp(0.05 * celsius - 0.5)),
            "ill": np.where(price > np.median(price), "yes", "no"),
            "colour": np.select([price > 5, price > 3.5], ["red", "green"], "blue"),
        }
    )


@pytest.fixture
def small_demo(monkeypatch):
    """The demonstration with three of its ten columns, and all of its rows and files."""
    table = demo.diabetes().select(["age", "sex", "bmi", demo.TARGET])
    monkeypatch.setattr(demo, "diabetes", lambda: table)


TARGETS = {
    "price": [],
    "events": ["--task", "counts", "--exposure", "hours"],
    "ill": [],
    "colour": [],
}
OTHERS = ("id", "price", "events", "ill", "colour", "hours")


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A folder with the table as rides.csv, and a model of each target."""
    folder = tmp_path_factory.mktemp("cli")
    arrow_csv.write_csv(make_table(), folder / "rides.csv")
    for target, more in TARGETS.items():
        drop = [name for name in OTHERS if name != target and name not in more]
        arguments = ["fit", folder / "rides.csv", "-t", target, "--drop", ",".join(drop), *more]
        arguments += ["--interactions", "0", "--categorical", "zone", "--quiet"]
        code = main([str(each) for each in [*arguments, "-o", folder / f"{target}.lanam"]])
        assert code == 0
    return folder


@pytest.fixture
def place(home, tmp_path, monkeypatch) -> Path:
    """A copy of that folder as the working directory."""
    for file in home.iterdir():
        shutil.copy(file, tmp_path / file.name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return tmp_path
