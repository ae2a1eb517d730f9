"""Every model on two hundred made-up rows: does each adapter still run?"""

from __future__ import annotations

import numpy as np

from benchmarks.data.sets import Dataset
from benchmarks.experiments.interface import Experiment, Source
from benchmarks.experiments.uci import EXPERIMENT as UCI

ROWS = 200
TASKS = {"numbers": "regression", "classes": "classification"}


def load_smoke(name: str, seed: int, source: Source) -> Dataset:
    """A slope and a bend, two columns so that there is one pair; half of as many rows again to test."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS + ROWS // 2, 2))
    signal = np.tanh(2 * X[:, 0]) + X[:, 1] ** 2
    signal = (signal - signal.mean()) / signal.std()
    if TASKS[name] == "classification":
        y = (rng.random(len(X)) < 1 / (1 + np.exp(-2 * signal))).astype(int)
        return Dataset(name, "classification", X, y, n_train=ROWS)
    y = signal + 0.5 * rng.standard_normal(len(X))
    return Dataset(name, "regression", X, y, n_train=ROWS)


EXPERIMENT = Experiment(
    name="smoke",
    title="Every model on 200 rows",
    sets=tuple(TASKS),
    models=(*UCI.models, *UCI.named_only),
    load=load_smoke,
)
