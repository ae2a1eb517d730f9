"""Every model on two hundred made-up rows: does each adapter still run?"""

from __future__ import annotations

from benchmarks.data.problems import large_problem
from benchmarks.data.sets import Dataset
from benchmarks.experiments.interface import Experiment, Source
from benchmarks.experiments.uci import EXPERIMENT as UCI

ROWS = 200
TASKS = {"numbers": "regression", "classes": "classification"}


def load_smoke(name: str, seed: int, source: Source) -> Dataset:
    """Three columns that matter, half of as many rows again to test."""
    data = large_problem(ROWS + ROWS // 2, 3, TASKS[name], seed)
    return Dataset(name, data.task, data.X, data.y, n_train=ROWS)


EXPERIMENT = Experiment(
    name="smoke",
    title="Every model on 200 rows",
    sets=tuple(TASKS),
    models=(*UCI.models, *UCI.named_only),
    load=load_smoke,
)
