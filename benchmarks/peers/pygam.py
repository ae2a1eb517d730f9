"""Spline GAM of pyGAM; optional, not among the default models."""

from __future__ import annotations

import numpy as np

from benchmarks.datasets import Task
from benchmarks.peers.interface import Fitted, Prediction, missing_module


class SplineGAM:
    """One smoothing strength for all terms, by GCV over 13 values of the paper's range."""

    name = "pygam"

    def missing(self) -> str | None:
        return missing_module("pygam")

    def fit(self, X: np.ndarray, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        from pygam import LinearGAM, LogisticGAM

        strengths = np.logspace(-3, 3, 13)
        # A constant column has no spline (it divides by its range) and nothing to say.
        varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
        kind = LogisticGAM if task == "classification" else LinearGAM
        model = kind().gridsearch(X[:, varying], y, lam=strengths, progress=False)
        if task == "classification":
            return Fitted(lambda rows: Prediction(model.predict_proba(rows[:, varying])))
        noise = float(model.statistics_["scale"])  # a standard deviation, in spite of its name
        return Fitted(
            lambda rows: Prediction(model.predict(rows[:, varying]), np.full(len(rows), noise)),
            predict_mean=lambda rows: model.predict(rows[:, varying]),
        )
