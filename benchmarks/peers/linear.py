"""Ridge and logistic regression on standardised columns, as in the paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data.sets import Task
from benchmarks.metrics import residual_std
from benchmarks.peers.interface import Fitted, Prediction, probabilities

STRENGTHS = [0.001, 0.01, 0.1, 1.0, 10.0]  # the paper's grid


class Linear:
    """Strength of the penalty by cross-validation; noise from the training residuals."""

    name = "linear"

    def missing(self) -> None:
        return None

    def fit(self, X: np.ndarray, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        if task in ("classification", "multiclass"):
            search = GridSearchCV(
                make_pipeline(StandardScaler(), LogisticRegression(max_iter=10_000)),
                {"logisticregression__C": [1 / strength for strength in STRENGTHS]},
                scoring="neg_log_loss",
            ).fit(X, y)
            effect = None if task == "multiclass" else additive(search.best_estimator_)
            return Fitted(probabilities(search, task), effect=effect)
        model = make_pipeline(StandardScaler(), RidgeCV(STRENGTHS)).fit(X, y)
        noise = residual_std(y, model.predict(X))
        return Fitted(
            lambda rows: Prediction(model.predict(rows), np.full(len(rows), noise)),
            predict_mean=model.predict,
            effect=additive(model),
        )


def additive(pipeline: Pipeline) -> Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]:
    """What a column adds: its coefficient times the standardised, so centred, column; no band."""
    scaler, model = (step for _, step in pipeline.steps)
    coefficients = np.ravel(model.coef_)

    def effect(rows: np.ndarray, column: int) -> tuple[np.ndarray, np.ndarray]:
        mean = coefficients[column] * scaler.transform(rows)[:, column]
        return mean, np.full(len(rows), np.nan)

    return effect
