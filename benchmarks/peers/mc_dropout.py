"""MC dropout on additive networks: units are left out of predictions too."""

from __future__ import annotations

import numpy as np

from benchmarks.datasets import Table, Task
from benchmarks.metrics import residual_std
from benchmarks.peers.interface import Fitted, missing_module
from benchmarks.peers.nam import RATES


class DropoutSampling:
    """One network of 64 GELU units a column, predicted with ``passes`` times.

    A pass leaves the same units out for all rows, so it is a function that can be drawn, and effects can be
    centred. Noise is that of the training residuals around the mean of the passes.
    ``updates`` and ``patience`` are as for ``nam``.
    """

    def __init__(
        self,
        name: str = "mc-dropout",
        passes: int = 50,
        dropout: float = 0.2,
        weight_decay: float = 1e-5,
        rates: tuple[float, ...] = RATES,
        updates: int = 2000,
        patience: int = 300,
    ) -> None:
        self.name = name
        self.passes, self.dropout = passes, dropout
        self.weight_decay, self.rates = weight_decay, rates
        self.updates, self.patience = updates, patience

    def missing(self) -> str | None:
        return missing_module("torch")

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        from benchmarks.peers.networks import (
            AdditiveEnsemble,
            Architecture,
            Budget,
            as_numbers,
            ensemble_fit,
            without_units,
        )

        array = as_numbers(X)
        network, info = ensemble_fit(
            array,
            y,
            task,
            seed,
            threads,
            Architecture((64,), "gelu", dropout=self.dropout),
            members=1,
            rates=self.rates,
            weight_decay=self.weight_decay,
            budget=Budget(self.updates, self.patience),
        )
        model = AdditiveEnsemble(
            without_units(network.parameters, self.dropout, self.passes, seed),
            network.architecture,
            network.scaling,
            task,
            array,
        )
        if task == "classification":
            return model.fitted(None, info)
        return model.fitted(residual_std(y, model.outputs(array).mean(axis=0)), info)
