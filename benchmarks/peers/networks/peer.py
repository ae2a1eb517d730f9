"""What the adapters of additive networks have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.data.sets import Table, Task
from benchmarks.peers.interface import Fitted, missing_module
from benchmarks.peers.networks.settings import Architecture

if TYPE_CHECKING:
    from benchmarks.peers.networks.scaling import TrainingRows


@dataclass(frozen=True)
class NetworkPeer:
    """A model of ``architecture``, by default lanam's networks, that says how it is learned."""

    name: str

    @property
    def architecture(self) -> Architecture:
        """64 GELU units a column."""
        return Architecture((64,), "gelu")

    def missing(self) -> str | None:
        return missing_module("torch")

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        import torch

        from benchmarks.peers.networks.scaling import TrainingRows

        if task not in ("regression", "classification"):
            raise ValueError(f"the networks do regression and classification, not {task}")
        torch.set_num_threads(threads)
        interval = self.architecture.activation == "exu"
        return self.learn(TrainingRows.of(X, y, task, interval), seed)

    def learn(self, rows: TrainingRows, seed: int) -> Fitted:
        """Fit the networks to the rows."""
        raise NotImplementedError
