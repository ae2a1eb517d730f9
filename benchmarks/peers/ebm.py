"""Explainable boosting machine of interpret: its defaults but for pairs and the likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.data.sets import Table, Task
from benchmarks.metrics import residual_dispersion, residual_std
from benchmarks.peers.interface import Fitted, Prediction, missing_module, probabilities


class ExplainableBoosting:
    """Has no noise model: it gets noise or dispersion of its training residuals (the paper's rule).

    ``interactions=None`` is as many pairs as the library takes by itself (0.7: three a column for
    classes, five for numbers).
    """

    def __init__(self, name: str = "ebm", interactions: int | None = 0) -> None:
        self.name = name
        self.interactions = interactions

    def missing(self) -> str | None:
        return missing_module("interpret.glassbox")

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        settings: dict[str, Any] = {"n_jobs": threads, "random_state": seed}
        if self.interactions is not None:
            settings["interactions"] = self.interactions
        if isinstance(X, np.ndarray):
            # Every column of an array is a number, as for the others; "auto" would turn small
            # integer columns into categories. A frame is taken as it is.
            settings["feature_types"] = ["continuous"] * X.shape[1]
        if task in ("classification", "multiclass"):
            classifier = ExplainableBoostingClassifier(**settings).fit(X, y)
            effect = None if task == "multiclass" else additive(classifier, X)
            return Fitted(probabilities(classifier, task), effect=effect)
        if task == "counts":
            settings["objective"] = "poisson_deviance"
        model = ExplainableBoostingRegressor(**settings).fit(X, y)
        if task == "counts":
            dispersion = residual_dispersion(y, model.predict(X))
            return Fitted(
                lambda rows: Prediction(model.predict(rows), dispersion=dispersion),
                predict_mean=model.predict,
            )
        noise = residual_std(y, model.predict(X))
        return Fitted(
            lambda rows: Prediction(model.predict(rows), np.full(len(rows), noise)),
            predict_mean=model.predict,
            effect=additive(model, X),
        )


def additive(model: Any, X: Table) -> Callable[[Table, int], tuple[np.ndarray, np.ndarray]]:
    """What a column adds by itself, centred over the rows of ``X``; its band is the bags' spread."""
    spread = model.copy()
    spread.term_scores_ = model.standard_deviations_  # looked up as the scores are
    centres = model.eval_terms(X).mean(axis=0)

    def effect(rows: Table, column: int) -> tuple[np.ndarray, np.ndarray]:
        term = model.term_features_.index((column,))
        mean, std = model.eval_terms(rows)[:, term], spread.eval_terms(rows)[:, term]
        return mean - centres[term], std

    return effect
