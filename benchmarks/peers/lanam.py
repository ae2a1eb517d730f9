"""lanam itself, in the variants the benchmark compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.data.sets import Table, Task
from benchmarks.peers.interface import Fitted, Prediction, missing_module, probabilities


class LaplaceAdditive:
    """An estimator of lanam with the given arguments; everything else is its default, or the paper's."""

    def __init__(self, name: str, *, paper: bool = False, **arguments: Any) -> None:
        self.name = name
        self.paper = paper
        self.arguments = arguments

    def missing(self) -> str | None:
        # the estimators, not the package alone: lanam imports them when they are first asked for
        return missing_module("lanam.regressor")

    def fit(self, X: Table, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        from lanam import LANAMClassifier, LANAMRegressor

        regressor: Any = LANAMRegressor.paper if self.paper else LANAMRegressor
        if task in ("classification", "multiclass"):
            # Classes have no noise.
            own = {name: value for name, value in self.arguments.items() if name != "noise"}
            make: Any = LANAMClassifier.paper if self.paper else LANAMClassifier
            classifier = make(random_state=seed, **own).fit(X, y)
            return Fitted(
                probabilities(classifier, task),
                effect=None if task == "multiclass" else additive(classifier),
                info=learned(classifier),
                model=classifier,
            )
        if task == "counts":
            counts = regressor(likelihood="poisson", random_state=seed, **self.arguments)
            counts.fit(X, y)
            return Fitted(
                lambda rows: Prediction(
                    counts.predict(rows),
                    interval=tuple(counts.predict_interval(rows, coverage=0.9).T),
                ),
                predict_mean=counts.predict,
                log_density=counts.log_likelihood,
                info=learned(counts),
                model=counts,
            )
        model = regressor(random_state=seed, **self.arguments).fit(X, y)
        return Fitted(
            lambda rows: Prediction(
                *model.predict(rows, return_std=True),
                interval=tuple(model.predict_interval(rows, coverage=0.9).T),
            ),
            predict_mean=model.predict,
            log_density=model.log_likelihood,
            cdf=model.predict_cdf,
            effect=additive(model),
            info=learned(model),
            model=model,
        )


def additive(model: Any) -> Callable[[Table, int], tuple[np.ndarray, np.ndarray]]:
    """What a column adds by itself: its smooth term and its single values, with the band of their sum."""
    from lanam.core.model.scoring import sum_moments

    def effect(rows: Table, column: int) -> tuple[np.ndarray, np.ndarray]:
        own = [k for k, term in enumerate(model.terms_) if tuple(term.features) == (column,)]
        # no public call has the band of a sum of terms at many rows; theirs do not add
        mean, variance = sum_moments(model._model, own, model._columns(rows))
        return mean, np.sqrt(variance)

    return effect


def learned(model: Any) -> dict[str, Any]:
    """What results tell of a fit besides its predictions."""
    return {
        "log_evidence": float(model.log_evidence_),
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "terms_active": sum(bool(term.active) for term in model.terms_),
        "terms": len(model.terms_),
        "pairs_active": sum(term.kind == "pair" and bool(term.active) for term in model.terms_),
        **scoring_seconds(model.history_),
    }


def scoring_seconds(history: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds between the end of the first stage and the first record of the second, if any.

    All pairs are scored there; the end of the first stage's selection and one pass with the first
    joint networks are in it too, so it is a little more than the scoring takes.
    """
    first = next((k for k, record in enumerate(history) if record["stage"] == "pairs"), 0)
    if first == 0:
        return {}
    return {"scoring_seconds": history[first]["seconds"] - history[first - 1]["seconds"]}
