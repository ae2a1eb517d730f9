"""A deep ensemble of additive networks: the same networks as lanam's, fitted many times."""

from __future__ import annotations

import numpy as np

from benchmarks.datasets import Table, Task
from benchmarks.metrics import residual_std
from benchmarks.peers.interface import Fitted, missing_module
from benchmarks.peers.nam import RATES


class DeepEnsemble:
    """Maximum a posteriori, ``members`` times: 64 GELU units a column, a weak prior, no dropout.

    Every member has the noise of its own training residuals; the variance of a prediction is their mean
    plus the members' variance. ``updates`` and ``patience`` are as for ``nam``.
    """

    def __init__(
        self,
        name: str = "deep-ensemble",
        members: int = 10,
        weight_decay: float = 1e-5,
        rates: tuple[float, ...] = RATES,
        updates: int = 2000,
        patience: int = 300,
    ) -> None:
        self.name = name
        self.members, self.weight_decay, self.rates = members, weight_decay, rates
        self.updates, self.patience = updates, patience

    def missing(self) -> str | None:
        return missing_module("torch")

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        from benchmarks.peers.networks import Architecture, Budget, as_numbers, ensemble_fit

        model, info = ensemble_fit(
            X,
            y,
            task,
            seed,
            threads,
            Architecture((64,), "gelu"),
            members=self.members,
            rates=self.rates,
            weight_decay=self.weight_decay,
            budget=Budget(self.updates, self.patience),
        )
        if task == "classification":
            return model.fitted(None, info)
        noises = [residual_std(y, output) for output in model.outputs(as_numbers(X))]
        return model.fitted(float(np.sqrt(np.mean(np.square(noises)))), info)
