"""Fits and intervals that several sections share."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import metrics
from benchmarks.cells import Row
from benchmarks.data.sets import Array, Task
from benchmarks.trust.section import LEVEL


def estimator(task: Task, **arguments: Any) -> Any:
    """lanam's estimator for a task."""
    from lanam import LANAMClassifier, LANAMRegressor

    arguments = {"random_state": 0} | arguments
    if task in ("classification", "multiclass"):
        return LANAMClassifier(**arguments)
    family = {"likelihood": "poisson"} if task == "counts" else {}
    return LANAMRegressor(**family, **arguments)


def active_columns(model: Any) -> set[int]:
    """Columns of the terms that are not dropped."""
    return {feature for term in model.terms_ if term.active for feature in term.features}


def coverage_of(model: Any, X: Array, y: Array) -> float:
    """Share of new observations within their 95% prediction intervals."""
    return metrics.interval_coverage(y, *model.predict_interval(X, coverage=LEVEL).T)


def central_share(below: Array, probability: Array, seed: int = 0) -> float:
    """Share of discrete observations in the central 95% of their predictive distributions.

    An interval of whole numbers holds more than it promises. So an observation takes a random place within
    its own probability (randomised probability integral transform): 95% for a model that is right, fewer
    for one that is too sure. ``below`` is the probability of less than what was observed.
    """
    place = below + probability * np.random.default_rng(seed).random(len(below))
    return float(np.mean(np.abs(place - 0.5) <= LEVEL / 2))


def count_share(model: Any, X: Array, y: Array) -> float:
    """``central_share`` of counts."""
    up_to = model.predict_cdf(X, y)
    below = np.where(y > 0, model.predict_cdf(X, np.maximum(y - 1, 0)), 0.0)
    return central_share(below, up_to - below)


def class_share(probability: Array, y: Array) -> float:
    """``central_share`` of two classes, by the probability of the second."""
    return central_share(
        np.where(y == 1, 1 - probability, 0.0), np.where(y == 1, probability, 1 - probability)
    )


def gaussian_scores(y: Array, mean: Array, std: Array) -> Row:
    """Coverage, NLL and RMSE of normal predictive distributions."""
    return {
        "coverage": metrics.interval_coverage(y, *metrics.gaussian_interval(mean, std, LEVEL)),
        "nll": metrics.gaussian_nll(y, mean, std),
        "rmse": metrics.rmse(y, mean),
    }


def ard(X: Array, y: Array, X_new: Array) -> tuple[Array, Array, Any]:
    """scikit-learn's ARDRegression, type-II maximum likelihood like ours: predictions and the model."""
    from sklearn.linear_model import ARDRegression

    model = ARDRegression().fit(X, y)
    mean, std = model.predict(X_new, return_std=True)
    return mean, std, model
