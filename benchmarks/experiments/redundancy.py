"""A column that is a sum of others, with and without it: the paper's anion gap and bicarbonate.

The risk of the made-up patients is in the gap alone. Those of PhysioNet have no chloride, so their gap is
sodium less bicarbonate.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.cells import Arrays, Row
from benchmarks.data.sets import Dataset, Table
from benchmarks.experiments.icu import looked_at
from benchmarks.experiments.interface import Experiment, Source, function_arrays
from benchmarks.experiments.uci import load_set
from benchmarks.peers import Fitted

N_TRAIN, N_TEST = 4000, 4000
GAP, PARTS = "Na-HCO3_last", ("Na_last", "HCO3_last")
#: One column a measurement, so that nothing but the gap says the same twice.
KEPT = ("_last", "_median")


def load_sums(name: str, seed: int, source: Source) -> Dataset:
    """``gap`` and ``physionet2012``, and ``...-without`` the column that is a sum."""
    base = name.removesuffix("-without")
    data = made_up(seed) if base == "gap" else with_gap(load_set(base, seed, source))
    if base == name:
        return data
    whole = pd.DataFrame(data.X)
    kept = whole.drop(columns=["gap" if base == "gap" else GAP])
    return Dataset(name, data.task, kept, data.y, data.n_train)


def made_up(seed: int) -> Dataset:
    """Sodium, chloride and bicarbonate as in adults; risk grows with the gap between them."""
    rng = np.random.default_rng(seed)
    n_rows = N_TRAIN + N_TEST
    sodium = rng.normal(139.0, 4.0, n_rows)
    bicarbonate = rng.normal(24.0, 4.0, n_rows)
    gap = rng.gamma(9.0, 12.0 / 9.0, n_rows)
    chloride = sodium - bicarbonate - gap
    risk = 1 / (1 + np.exp(2.5 - 1.5 * np.tanh((gap - 14.0) / 4.0)))
    columns = {"sodium": sodium, "chloride": chloride, "bicarbonate": bicarbonate, "gap": gap}
    y = (rng.random(n_rows) < risk).astype(int)
    return Dataset("gap", "classification", pd.DataFrame(columns), y, N_TRAIN)


def with_gap(data: Dataset) -> Dataset:
    """One column a measurement, and sodium less bicarbonate."""
    frame = pd.DataFrame(data.X)
    names = [n for n in frame.columns if "_" not in n or n.endswith(KEPT)]
    gap = frame[PARTS[0]] - frame[PARTS[1]]
    return Dataset(data.name, data.task, frame[names].assign(**{GAP: gap}), data.y, data.n_train)


def parts_of_the_sum(fitted: Fitted, dataset: Dataset, train: Table) -> tuple[Row, Arrays]:
    """How much of the log odds the sum and its parts carry, and their functions."""
    frame = pd.DataFrame(train)
    names = [
        n for n in frame.columns if n in ("sodium", "chloride", "bicarbonate", "gap", GAP, *PARTS)
    ]
    row, arrays = looked_at(fitted, dataset, train)
    assert fitted.effect is not None, "an additive model has effects"
    columns = {frame.columns.get_loc(name): str(name) for name in names}
    grids = {c: np.linspace(*frame[n].quantile([0.005, 0.995]), 60) for c, n in columns.items()}
    arrays |= function_arrays(fitted, train, grids, columns.__getitem__)
    for column, name in columns.items():
        row[f"spread_{name}"] = float(np.nanstd(fitted.effect(train, column)[0]))
    return row, arrays


EXPERIMENT = Experiment(
    name="redundancy",
    title="A column that is a sum of others",
    sets=("gap", "gap-without", "physionet2012", "physionet2012-without"),
    models=("lanam", "lanam-paper", "oak", "ebm"),
    load=load_sums,
    observe=parts_of_the_sum,
)
