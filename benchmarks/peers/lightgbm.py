"""LightGBM with early stopping: one corner of the paper's grid for each size of data, or all of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.data.sets import Table, Task
from benchmarks.metrics import residual_dispersion, residual_std
from benchmarks.peers.interface import Fitted, Prediction, missing_module, probabilities

SMALL = 1000  # training rows below which leaves may hold two rows (the paper: "small datasets")
DEPTHS, LEAVES = (3, 7, 12), (8, 16, 31)  # the paper's grid


class LightGBM:
    """Up to 2000 trees, 50 rounds of patience on 12.5% of the training rows.

    The paper searches depth {3, 7, 12} and leaves {8, 16, 31}; one fit is what a fit time can be
    compared with, so one corner of that grid is taken by the number of rows: depth 3 with
    8 leaves for small sets (deeper trees overfit there: heart, parkinsons, yacht), depth 12 with
    31 leaves for the others. The noise comes from the validation residuals, which is kinder
    than the training residuals of an overfitted ensemble.

    ``search=True`` is the paper's: all nine corners, and the one kept has the least loss on the rows
    that also stop its trees.
    """

    def __init__(self, name: str = "lightgbm", search: bool = False) -> None:
        self.name = name
        self.search = search

    def missing(self) -> str | None:
        return missing_module("lightgbm")

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        import lightgbm

        classes = task in ("classification", "multiclass")
        prepare = category_columns(X)
        X_fit, X_held, y_fit, y_held = train_test_split(
            prepare(X),
            y,
            test_size=0.125,
            random_state=seed,
            stratify=y if classes else None,
        )
        kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor

        def grow(depth: int, leaves: int) -> Any:
            model = kind(
                n_estimators=2000,
                max_depth=depth,
                num_leaves=leaves,
                min_child_samples=2 if len(y) < SMALL else 20,
                n_jobs=threads,
                random_state=seed,
                verbose=-1,
                **({"objective": "poisson"} if task == "counts" else {}),
            )
            stopping = lightgbm.early_stopping(50, verbose=False)
            with warnings.catch_warnings():
                # eval_set works in every version we allow; its successor only in the newest
                warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")
                return model.fit(X_fit, y_fit, eval_set=[(X_held, y_held)], callbacks=[stopping])

        model = min((grow(*corner) for corner in self._corners(len(y))), key=held_out_loss)
        info = {
            "n_iter": int(model.best_iteration_),
            "depth": model.max_depth,
            "leaves": model.num_leaves,
        }
        if classes:
            predict = probabilities(model, task)
            return Fitted(lambda rows: predict(prepare(rows)), info=info)

        def predict_mean(rows: Table) -> np.ndarray:
            return model.predict(prepare(rows))

        if task == "counts":
            dispersion = residual_dispersion(y_held, model.predict(X_held))
            return Fitted(
                lambda rows: Prediction(predict_mean(rows), dispersion=dispersion),
                predict_mean=predict_mean,
                info=info,
            )
        noise = residual_std(y_held, model.predict(X_held))
        return Fitted(
            lambda rows: Prediction(predict_mean(rows), np.full(len(rows), noise)),
            predict_mean=predict_mean,
            info=info,
        )

    def _corners(self, n_rows: int) -> list[tuple[int, int]]:
        if self.search:
            return list(product(DEPTHS, LEAVES))
        return [(3, 8) if n_rows < SMALL else (12, 31)]


def held_out_loss(model: Any) -> float:
    """The loss of the rows that stop the trees, at the round that is kept: the likelihood's own."""
    ((loss,),) = (scores.values() for scores in model.best_score_.values())
    return loss


def category_columns(X: Table) -> Callable[[Table], Table]:
    """Give columns of strings pandas' category type, which LightGBM needs, with the levels of ``X``."""
    if isinstance(X, np.ndarray):
        return lambda rows: rows
    words = [name for name in X.columns if pd.api.types.is_string_dtype(X[name].dtype)]
    levels = {name: pd.Index(X[name].dropna().unique()) for name in words}

    def prepare(rows: Table) -> Table:
        columns = {
            # a level that the training rows do not have is missing
            name: rows[name].where(rows[name].isin(known)).astype(pd.CategoricalDtype(known))
            for name, known in levels.items()
        }
        return rows.assign(**columns)

    return prepare
