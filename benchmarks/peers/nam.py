"""Neural additive models (Agarwal et al. 2021) as the paper sets them, written in torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.datasets import Table, Task
from benchmarks.metrics import residual_std
from benchmarks.peers.interface import Fitted, missing_module

RATES = (0.01, 0.001)  # the paper's
WIDE = 40  # columns from which on the budget shrinks as they grow, so that a fit takes minutes


class NeuralAdditive:
    """An ensemble of feature networks with dropout; its noise is that of the training residuals.

    ``hidden`` and ``activation`` are those of every feature network: by default 1024 ExU units. The
    learning rate is the better of ``rates`` on an eighth of the training rows, which also say
    when to stop.
    ``members`` networks are averaged, and their spread says how sure the model is of an effect.

    ``updates`` is the budget: the most steps of Adam that a member may take, in batches of 512 rows
    (all of them in a small set), fewer of each in a wide table (``WIDE``); ``patience`` that many without
    improvement end it earlier. The results say how many were taken and whether training stopped by itself.
    """

    def __init__(
        self,
        name: str = "nam",
        hidden: tuple[int, ...] = (1024,),
        activation: str = "exu",
        members: int = 5,
        dropout: float = 0.2,
        feature_dropout: float = 0.05,
        weight_decay: float = 1e-5,
        rates: tuple[float, ...] = RATES,
        updates: int = 1200,
        patience: int = 200,
    ) -> None:
        self.name = name
        self.networks: dict[str, Any] = {
            "hidden": hidden,
            "activation": activation,
            "dropout": dropout,
            "feature_dropout": feature_dropout,
        }
        self.settings: dict[str, Any] = {
            "members": members,
            "rates": rates,
            "weight_decay": weight_decay,
        }
        self.updates, self.patience = updates, patience

    def missing(self) -> str | None:
        return missing_module("torch")

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        from benchmarks.peers.networks import Architecture, Budget, as_numbers, ensemble_fit

        share = min(1.0, WIDE / X.shape[1])
        budget = Budget(round(share * self.updates), round(share * self.patience))
        model, info = ensemble_fit(
            X,
            y,
            task,
            seed,
            threads,
            Architecture(**self.networks),
            budget=budget,
            **self.settings,
        )
        if task == "classification":
            return model.fitted(None, info)
        noise = residual_std(y, model.outputs(as_numbers(X)).mean(axis=0))
        return model.fitted(noise, info)
