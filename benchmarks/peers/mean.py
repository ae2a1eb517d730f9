"""The trivial control: the mean of y, or the share of each class."""

from __future__ import annotations

import numpy as np

from benchmarks.data.sets import Table, Task
from benchmarks.metrics import residual_dispersion
from benchmarks.peers.interface import Fitted, Prediction


class Mean:
    """Knows nothing of X; its noise is the standard deviation of the training y."""

    name = "mean"

    def missing(self) -> None:
        return None

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        if task == "multiclass":
            shares = np.bincount(y) / len(y)
            return Fitted(lambda rows: Prediction(np.tile(shares, (len(rows), 1))))
        mean = float(np.mean(y))
        if task == "counts":
            dispersion = residual_dispersion(y, np.full(len(y), mean))
            return Fitted(lambda rows: Prediction(np.full(len(rows), mean), dispersion=dispersion))
        std = float(np.std(y)) if task == "regression" else None

        def predict(rows: Table) -> Prediction:
            shape = len(rows)
            return Prediction(np.full(shape, mean), None if std is None else np.full(shape, std))

        return Fitted(predict)
