"""What every model of the benchmark looks like: three small values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from benchmarks.datasets import Task


@dataclass(frozen=True)
class Prediction:
    """Regression: mean and standard deviation of y. Classification: mean is P(y = 1), no std."""

    mean: np.ndarray
    std: np.ndarray | None = None


@dataclass(frozen=True)
class Fitted:
    """A fitted model.

    ``info`` may hold extra columns of the results (``log_evidence``, ``n_iter``, ...); a
    ``fit_seconds`` or ``predict_seconds`` there replaces the runner's own clock, for models
    that live in another process.
    """

    predict: Callable[[np.ndarray], Prediction]
    predict_mean: Callable[[np.ndarray], np.ndarray] | None = None
    info: dict[str, Any] = field(default_factory=dict)


class Peer(Protocol):
    """A model that can be fitted, or says why it cannot be had here."""

    name: str

    def missing(self) -> str | None:
        """Say why the model cannot run here; None if it can. Imports what it needs."""

    def fit(self, X: np.ndarray, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        """Fit with the given seed and number of threads."""


def missing_module(module: str) -> str | None:
    """Import a module now, so that no fit is charged for it; say if it is not there."""
    try:
        __import__(module)
    except ImportError as error:
        return f"{module} is not installed ({error})"
    return None
