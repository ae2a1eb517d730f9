"""What members say of new rows, together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.data.sets import Table
from benchmarks.metrics import residual_std
from benchmarks.peers.interface import Fitted, Prediction, as_numbers
from benchmarks.peers.networks.outputs import totals
from benchmarks.peers.networks.parameters import Parameters
from benchmarks.peers.networks.scaling import TrainingRows
from benchmarks.peers.networks.settings import Architecture


@dataclass(frozen=True)
class AdditiveEnsemble:
    """Members of equal weight, the rows they were fitted to, and what the results should tell of that."""

    parameters: Parameters
    architecture: Architecture
    rows: TrainingRows
    info: dict[str, Any]

    def outputs(self, x: Tensor) -> np.ndarray:
        """Every member's mean of y, or its log odds: (members, rows); ``x`` as the networks see it."""
        values = totals(self.parameters, x.t(), self.architecture).double().numpy()
        return self.rows.scaling.offset + self.rows.scaling.scale * values

    def effects(self, x: Tensor, column: int) -> np.ndarray:
        """What members say that a column adds, not centred; ``x`` as the networks see it."""
        single = [p[:, column : column + 1] for p in self.parameters[:-1]]
        single.append(torch.zeros_like(self.parameters[-1]))
        values = totals(single, x[None, :, column], self.architecture).double().numpy()
        return self.rows.scaling.scale * values

    def fitted(self, noise: Callable[[AdditiveEnsemble], float]) -> Fitted:
        """Mean and variance over the members; ``noise`` gives a standard deviation in units of y.

        Classification has none, and averages probabilities.
        """
        regression = self.rows.task == "regression"
        std = noise(self) if regression else 0.0

        def inputs(X: Table) -> Tensor:
            return self.rows.scaling.inputs(as_numbers(X))

        def predict(X: Table) -> Prediction:
            outputs = self.outputs(inputs(X))
            if regression:
                return Prediction(outputs.mean(axis=0), np.sqrt(outputs.var(axis=0) + std**2))
            return Prediction((1 / (1 + np.exp(-outputs))).mean(axis=0))

        def effect(X: Table, column: int) -> tuple[np.ndarray, np.ndarray]:
            level = self.effects(self.rows.x, column).mean(axis=1, keepdims=True)
            values = self.effects(inputs(X), column) - level
            return values.mean(axis=0), values.std(axis=0)

        return Fitted(predict, effect=effect, info=self.info)


def noise_around_the_mean(model: AdditiveEnsemble) -> float:
    """The standard deviation of the training residuals."""
    return residual_std(model.rows.target, model.outputs(model.rows.x).mean(axis=0))


def noise_around_members(model: AdditiveEnsemble) -> float:
    """The same of every member for itself: the root of their mean square."""
    outputs = model.outputs(model.rows.x)
    noises = [residual_std(model.rows.target, output) for output in outputs]
    return float(np.sqrt(np.mean(np.square(noises))))
