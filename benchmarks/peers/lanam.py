"""lanam itself, in the variants the benchmark compares."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.datasets import Task
from benchmarks.peers.interface import Fitted, Prediction, missing_module


class LaplaceAdditive:
    """An estimator of lanam with the given arguments; everything else is its default."""

    def __init__(self, name: str, **arguments: Any) -> None:
        self.name = name
        self.arguments = arguments

    def missing(self) -> str | None:
        # the estimators, not the package alone: lanam imports them when they are first asked for
        return missing_module("lanam.estimators")

    def fit(self, X: np.ndarray, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        from lanam import LANAMClassifier, LANAMRegressor

        if task == "classification":
            classifier = LANAMClassifier(random_state=seed, **self.arguments).fit(X, y)
            return Fitted(
                lambda rows: Prediction(classifier.predict_proba(rows)[:, 1]),
                info=_learned(classifier),
            )
        model = LANAMRegressor(random_state=seed, **self.arguments).fit(X, y)
        return Fitted(
            lambda rows: Prediction(*model.predict(rows, return_std=True)),
            predict_mean=model.predict,
            info=_learned(model),
        )


def _learned(model: Any) -> dict[str, Any]:
    return {
        "log_evidence": float(model.log_evidence_),
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "terms_active": sum(bool(term.active) for term in model.terms_),
        "terms": len(model.terms_),
    }
