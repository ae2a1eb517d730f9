"""Pairs of columns: how all of them scored, which are in a model, and what the strongest add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.cells import Arrays, Row
from benchmarks.data.sets import Dataset, Table
from benchmarks.peers import Fitted

N_KEPT = 2  # the paper shows two


def found_pairs(fitted: Fitted, dataset: Dataset, train: Table) -> tuple[Row, Arrays]:
    """What a model says of pairs; nothing where it scores none."""
    scores = getattr(fitted.model, "interaction_scores_", None)
    if scores is None or not len(scores):
        return {}, {}
    names = dataset.columns or scores.names
    active = [row["features"] for row in scores.active]
    row = {"pairs": "; ".join(_name(names, features) for features in active)}
    arrays = {
        "pair_scores": scores.matrix(),
        "pairs_active": np.array(active, int).reshape(-1, 2),
    }
    return row, arrays | (strongest(fitted.model, names) if active else {})


def strongest(model: Any, names: Sequence[str]) -> Arrays:
    """Mean, deviation and share of the data of the most important pairs of numbers, over their grids.

    ``pair_names`` are their columns; the arrays of the first begin with ``pair0_``.
    """
    terms = [term for term in model.explain_global().active if term.kind == "pair"]
    kept = [t for t in terms if all(_numeric(v) for v in (t.values, t.second_values))][:N_KEPT]
    arrays: Arrays = {}
    for k, term in enumerate(kept):
        # what comes after the values is missing cells
        inside = np.s_[: len(term.values), : len(term.second_values)]
        arrays |= {f"pair{k}_x": term.values, f"pair{k}_y": term.second_values}
        arrays |= {f"pair{k}_mean": term.mean[inside], f"pair{k}_std": term.std[inside]}
        arrays[f"pair{k}_density"] = term.density[inside]
    if kept:
        arrays["pair_names"] = np.array([[names[f] for f in term.features] for term in kept])
    return arrays


def _name(names: Sequence[str], features: Sequence[int]) -> str:
    return " x ".join(str(names[feature]) for feature in features)


def _numeric(values: np.ndarray) -> bool:
    return bool(np.issubdtype(np.asarray(values).dtype, np.number))
