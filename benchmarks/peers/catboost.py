"""CatBoost with early stopping; categories and missing values as it handles them itself."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.data.sets import Table, Task
from benchmarks.metrics import residual_dispersion, residual_std
from benchmarks.peers.interface import Fitted, Prediction, missing_module, probabilities

OBJECTIVES = {"classification": "Logloss", "multiclass": "MultiClass", "counts": "Poisson"}


class CatBoost:
    """Its defaults, up to 2000 trees with 50 rounds of patience on 12.5% of the training rows.

    Noise and dispersion come from the same rows, as LightGBM's do.
    """

    def __init__(self, name: str = "catboost") -> None:
        self.name = name

    def missing(self) -> str | None:
        return missing_module("catboost")

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        import catboost

        classes = task in ("classification", "multiclass")
        words, prepare = category_columns(X)
        X_fit, X_held, y_fit, y_held = train_test_split(
            prepare(X), y, test_size=0.125, random_state=seed, stratify=y if classes else None
        )
        kind = catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor
        with tempfile.TemporaryDirectory() as folder:  # it keeps notes of its training
            model: Any = kind(
                loss_function=OBJECTIVES.get(task, "RMSE"),
                iterations=2000,
                early_stopping_rounds=50,
                cat_features=words,
                random_seed=seed,
                thread_count=threads,
                train_dir=folder,
                allow_writing_files=False,
                verbose=False,
            )
            model.fit(X_fit, y_fit, eval_set=(X_held, y_held))
        info = {"n_iter": int(model.get_best_iteration())}
        if classes:
            predict = probabilities(model, task)
            return Fitted(lambda rows: predict(prepare(rows)), info=info)

        def predict_mean(rows: Table) -> np.ndarray:
            options = {"prediction_type": "Exponent"} if task == "counts" else {}
            return np.asarray(model.predict(prepare(rows), **options), float)

        held = predict_mean(X_held)
        if task == "counts":
            dispersion = residual_dispersion(y_held, held)
            return Fitted(
                lambda rows: Prediction(predict_mean(rows), dispersion=dispersion),
                predict_mean=predict_mean,
                info=info,
            )
        noise = residual_std(y_held, held)
        return Fitted(
            lambda rows: Prediction(predict_mean(rows), np.full(len(rows), noise)),
            predict_mean=predict_mean,
            info=info,
        )


def category_columns(X: Table) -> tuple[list[str], Callable[[Table], Table]]:
    """Columns of strings and categories, and frames in which they are strings, a missing cell too."""
    if isinstance(X, np.ndarray):
        return [], lambda rows: rows
    words = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name].dtype)]

    def prepare(rows: Table) -> Table:
        return rows.assign(**{name: rows[name].astype(object).map(str) for name in words})

    return words, prepare
