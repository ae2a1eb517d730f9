"""Mortality in intensive care: the paper's tables, functions, explanations of patients, and pairs.

MIMIC-III and HiRID need credentials and are run where ``--data`` has them; the open stand-in is the set
of PhysioNet's challenge of 2012. The split is fixed, so a fold is a seed.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.cells import Arrays, Row
from benchmarks.data.sets import Dataset, Table
from benchmarks.experiments.interface import Experiment, function_arrays
from benchmarks.experiments.pairs import found_pairs
from benchmarks.experiments.uci import INTERACTING, NETWORKS, load_set
from benchmarks.peers import Fitted

N_PATIENTS = 50  # whose explanations are kept
N_GRID = 60
#: Columns whose functions are drawn, where a set has them.
SHOWN = (
    *("Age", "GCS_last", "BUN_last", "Na_last", "HCO3_last", "Lactate_last", "UrineOutputSum"),
    *("WBC_last", "Platelets_last", "Na-HCO3_last"),
    *("age", "anion_gap", "bicarbonate", "sodium", "gcs", "bun"),
)


def looked_at(fitted: Fitted, dataset: Dataset, train: Table) -> tuple[Row, Arrays]:
    """Functions of some columns, what each column adds for some test patients, and pairs."""
    row, arrays = found_pairs(fitted, dataset, train)
    if fitted.effect is None:
        return row, arrays
    frame = pd.DataFrame(train)
    columns = list(frame.columns)
    grids = {columns.index(name): _grid(frame[name]) for name in SHOWN if name in columns}
    arrays |= function_arrays(fitted, train, grids, lambda column: columns[column])
    patients = dataset.rows(slice(len(train), len(train) + N_PATIENTS))
    parts = [fitted.effect(patients, column) for column in range(len(columns))]
    arrays["columns"] = np.array([str(name) for name in columns])
    arrays["patients_mean"] = np.column_stack([mean for mean, _ in parts])
    arrays["patients_std"] = np.column_stack([std for _, std in parts])
    row["columns_used"] = int((np.abs(arrays["patients_mean"]).max(axis=0) > 1e-12).sum())
    # as in the paper's figures: what stands out for a patient
    size, spread = np.abs(arrays["patients_mean"]), arrays["patients_std"]
    shown = size > (2 * spread if np.isfinite(spread).all() else 0.1)
    row["columns_explained"] = float(shown.sum(axis=1).mean())
    return row, arrays


def _grid(values: pd.Series) -> np.ndarray:
    """Values between the outermost percentiles; few distinct ones as they are."""
    known = values.dropna().to_numpy(float)
    distinct = np.unique(known)
    if len(distinct) <= N_GRID:
        return distinct
    return np.linspace(*np.quantile(known, [0.005, 0.995]), N_GRID)


EXPERIMENT = Experiment(
    name="icu",
    title="Mortality in intensive care",
    sets=("physionet2012",),
    optional_sets=("mimic3", "hirid"),
    models=(
        *("linear", "nam", "lanam", "lanam-paper", "oak", "ebm"),
        *("lanam-auto", "lanam10", "lanam10-mi", "lanam10-gain", "oak2", "ebm10"),
        *INTERACTING,
        "mean",
    ),
    load=load_set,
    observe=looked_at,
    named_only=("pygam", "lanam10-paper"),
)

#: From the network of the original to ours, one step at a time.
DEPTH = Experiment(
    name="depth",
    title="Depth and activation of the feature networks",
    sets=("physionet2012",),
    optional_sets=("mimic3", "hirid"),
    models=(*NETWORKS, "lanam-paper", "lanam"),
    load=load_set,
    observe=looked_at,
    same_as=EXPERIMENT.name,
)
