"""What every model of the benchmark looks like: three small values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from benchmarks.data.sets import Table, Task


@dataclass(frozen=True)
class Prediction:
    """What a model says of new rows.

    Regression: mean and standard deviation of y. Classification: the mean is P(y = 1). Several classes:
    the mean has a column of probabilities for each. Counts: the mean, and the variance over the mean
    (``dispersion``). Of numbers and counts, the 90% interval of a model that has one of its own.
    """

    mean: np.ndarray
    std: np.ndarray | None = None
    interval: tuple[np.ndarray, np.ndarray] | None = None
    dispersion: float = 1.0


@dataclass(frozen=True)
class Fitted:
    """A fitted model.

    ``info`` may hold extra columns of the results (``log_evidence``, ``n_iter``, ...); a
    ``fit_seconds`` or ``predict_seconds`` there replaces the runner's own clock, for models
    that live in another process. ``log_density`` is the mean log predictive density of rows and their
    y, and ``cdf`` the probability of at most that y, where they are more than ``predict`` can say.
    ``effect`` gives the mean and the standard deviation of what a column, by its number, adds at each
    row, centred over the training rows; not a number where a model has no uncertainty. ``model`` is what
    was fitted, for who looks further.
    """

    predict: Callable[[Table], Prediction]
    predict_mean: Callable[[Table], np.ndarray] | None = None
    log_density: Callable[[Table, np.ndarray], float] | None = None
    cdf: Callable[[Table, np.ndarray], np.ndarray] | None = None
    effect: Callable[[Table, int], tuple[np.ndarray, np.ndarray]] | None = None
    info: dict[str, Any] = field(default_factory=dict)
    model: Any = None


class Peer(Protocol):
    """A model that can be fitted, or says why it cannot be had here."""

    name: str

    def missing(self) -> str | None:
        """Say why the model cannot run here; None if it can. Imports what it needs."""

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        """Fit with the given seed and number of threads."""


def probabilities(classifier: Any, task: Task) -> Callable[[Table], Prediction]:
    """Predictions of a classifier with scikit-learn's ``predict_proba``."""
    if task == "multiclass":
        return lambda rows: Prediction(classifier.predict_proba(rows))
    return lambda rows: Prediction(classifier.predict_proba(rows)[:, 1])


def as_numbers(X: Table) -> np.ndarray:
    """The table as an array of floats; missing cells are an error that names their columns."""
    values = np.asarray(X, float)
    names = getattr(X, "columns", range(values.shape[1]))
    gaps = np.flatnonzero(~np.isfinite(values).all(axis=0))
    if len(gaps):
        listed = ", ".join(str(names[d]) for d in gaps)
        raise ValueError(f"missing or infinite cells in column {listed}; fill them first")
    return values


def missing_module(module: str) -> str | None:
    """Import a module now, so that no fit is charged for it; say if it is not there."""
    try:
        __import__(module)
    except ImportError as error:
        return f"{module} is not installed ({error})"
    return None
