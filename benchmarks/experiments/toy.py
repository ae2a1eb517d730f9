"""The paper's toy: four functions with a known truth, the last one zero (its first figure)."""

from __future__ import annotations

import numpy as np

from benchmarks.cells import Arrays, Row
from benchmarks.data.problems import TOY_FUNCTIONS, toy_problem
from benchmarks.data.sets import Dataset, Table
from benchmarks.experiments.interface import Experiment, Source, function_arrays
from benchmarks.experiments.uci import FIRST_ORDER, INFERENCE
from benchmarks.metrics import rmse
from benchmarks.peers import Fitted
from benchmarks.recovery import band_coverage

ROWS = 1000
GRID = np.linspace(0, 1, 101)


def load_toy(name: str, seed: int, source: Source) -> Dataset:
    """A thousand rows to fit and as many to test, new ones for every seed."""
    problem = toy_problem(seed, n_rows=2 * ROWS)
    return Dataset(name, "regression", problem.X, problem.y, n_train=ROWS)


def recovered(fitted: Fitted, dataset: Dataset, train: Table) -> tuple[Row, Arrays]:
    """Every function beside the truth: error, coverage of 95% bands, and what f4 is made to be."""
    assert fitted.effect is not None, "an additive model has effects"
    row: Row = {}
    arrays = function_arrays(fitted, train, dict.fromkeys(range(len(TOY_FUNCTIONS)), GRID))
    X = np.asarray(train)
    for d, function in enumerate(TOY_FUNCTIONS):
        centre = function(X[:, d]).mean()
        arrays[f"truth_{d}"] = function(GRID) - centre
        mean, std = fitted.effect(train, d)
        truth = function(X[:, d]) - centre
        row[f"rmse_f{d + 1}"] = rmse(truth, mean)
        if np.isfinite(std).all():
            row[f"coverage_f{d + 1}"] = band_coverage(truth, mean, std)
    row["range_f4"] = float(np.ptp(arrays["mean_3"]))
    return row, arrays | {"X": X, "y_train": dataset.y[: len(X)]}


EXPERIMENT = Experiment(
    name="toy",
    title="Illustrative example: recovered functions",
    sets=("toy",),
    models=FIRST_ORDER,
    load=load_toy,
    observe=recovered,
)

#: The same problem, one architecture (but for the two that the paper shows beside), other posteriors.
INFERENCE_METHODS = Experiment(
    name="inference",
    title="Approximate inference for Bayesian additive networks",
    sets=("toy",),
    models=("nam-relu-deep", "nam-gelu", "nam", *INFERENCE, "lanam-paper", "lanam"),
    load=load_toy,
    observe=recovered,
    same_as=EXPERIMENT.name,
)
