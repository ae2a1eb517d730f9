"""Explainable boosting machine of interpret: its defaults but for pairs and the likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.datasets import Table, Task
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
            return Fitted(probabilities(classifier, task))
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
        )
