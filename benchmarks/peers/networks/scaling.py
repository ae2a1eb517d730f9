"""Tables as the networks see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from benchmarks.data.sets import Table, Task
from benchmarks.peers.interface import as_numbers


@dataclass(frozen=True)
class Scaling:
    """Columns as the networks see them, and back from their output to y.

    Columns are brought to [-1, 1] (``interval``) or to mean 0 and standard deviation 1; a constant one
    becomes 0 everywhere. Only regression scales y.
    """

    centre: np.ndarray
    factor: np.ndarray
    offset: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, task: Task, interval: bool) -> Scaling:
        low, high = X.min(axis=0), X.max(axis=0)
        centre = (low + high) / 2 if interval else X.mean(axis=0)
        spread = (high - low) / 2 if interval else X.std(axis=0)
        constant = high == low
        factor = np.where(constant, 0.0, 1 / np.where(constant, 1.0, spread))
        if task == "classification":
            return cls(centre, factor)
        return cls(centre, factor, float(y.mean()), float(y.std()) or 1.0)

    def inputs(self, X: np.ndarray) -> Tensor:
        return torch.from_numpy(((X - self.centre) * self.factor).astype(np.float32))

    def targets(self, y: np.ndarray) -> Tensor:
        return torch.from_numpy(((y - self.offset) / self.scale).astype(np.float32))


@dataclass(frozen=True)
class TrainingRows:
    """The rows to learn from, ``x`` (rows, columns) and ``y`` scaled, and ``target``, y as it came."""

    x: Tensor
    y: Tensor
    target: np.ndarray
    task: Task
    scaling: Scaling

    @classmethod
    def of(cls, X: Table, y: np.ndarray, task: Task, interval: bool) -> TrainingRows:
        array, target = as_numbers(X), np.asarray(y, float)
        scaling = Scaling.of(array, target, task, interval)
        return cls(scaling.inputs(array), scaling.targets(target), target, task, scaling)

    @property
    def intercept(self) -> Tensor:
        """Where intercepts start: at the mean, which is zero of scaled y, or its log odds."""
        if self.task == "classification":
            return torch.logit(self.y.mean().clamp(1e-3, 1 - 1e-3))
        return torch.zeros(())
