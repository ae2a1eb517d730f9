"""The command that measures CPU time: cells, tables, and what it does not run again."""

import csv

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("benchmarks.sizes")

from benchmarks import sizes
from benchmarks.data.problems import class_problem


def test_cells_that_are_known_are_not_run_again(tmp_path, monkeypatch):
    asked = []

    def ask(module, arguments, threads, limit):
        asked.append(arguments)
        return {"cpu_seconds": 0.1 * float(arguments[3]), "nll": 1.0}

    monkeypatch.setattr(sizes, "ask", ask)
    options = sizes.parse(["--parts", "columns,classes", "--models", "lanam,lightgbm"])
    for _ in range(2):
        sizes.measure_costs(options, tmp_path / "costs.csv")
    assert len(asked) == 2 * (3 + 3)
    with (tmp_path / "costs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["size"] for row in rows[:4]] == ["10", "10", "30", "30"]
    table, _ = sizes.cost_tables(pd.read_csv(tmp_path / "costs.csv", dtype={"size": str}))
    assert "| slope |   1.00 |     1.00 |" in table


def test_ratios_of_small_tables():
    cells = [("sets", "lanam", 2.0), ("sets", "lightgbm", 0.5), ("noise", "lanam-constant", 1.0)]
    costs = pd.DataFrame(
        [(part, model, "heart", cost, 0.0, None) for part, model, cost in cells],
        columns=list(sizes.FIELDS),
    )
    of_sets, of_noise = sizes.cost_tables(costs)
    assert "| times LightGBM's |   4.0 |      1.0 |" in of_sets
    assert "| with its noise, times |           2.00 |" in of_noise


def test_classes_of_every_kind():
    data = class_problem(300, 4, 5)
    assert data.X.shape == (300, 4)
    np.testing.assert_array_equal(np.unique(data.y), np.arange(5))
