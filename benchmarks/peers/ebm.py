"""Explainable boosting machine of interpret, library defaults but for the number of pairs."""

from __future__ import annotations

import numpy as np

from benchmarks.datasets import Task
from benchmarks.metrics import residual_std
from benchmarks.peers.interface import Fitted, Prediction, missing_module


class ExplainableBoosting:
    """Has no noise model: it gets the noise of its training residuals (the paper's rule)."""

    def __init__(self, name: str = "ebm", interactions: int = 0) -> None:
        self.name = name
        self.interactions = interactions

    def missing(self) -> str | None:
        return missing_module("interpret.glassbox")

    def fit(self, X: np.ndarray, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        # Every column is a number here, as for the others; "auto" would turn small integer
        # columns into categories.
        settings = {
            "interactions": self.interactions,
            "n_jobs": threads,
            "random_state": seed,
            "feature_types": ["continuous"] * X.shape[1],
        }
        if task == "classification":
            classifier = ExplainableBoostingClassifier(**settings).fit(X, y)
            return Fitted(lambda rows: Prediction(classifier.predict_proba(rows)[:, 1]))
        model = ExplainableBoostingRegressor(**settings).fit(X, y)
        noise = residual_std(y, model.predict(X))
        return Fitted(
            lambda rows: Prediction(model.predict(rows), np.full(len(rows), noise)),
            predict_mean=model.predict,
        )
