"""Interactions: how all pairs scored, which are in a model, triples too, and what pairs add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import Arrays, Row
from benchmarks.data.sets import Dataset, Table
from benchmarks.peers import Fitted

N_KEPT = 2  # the paper shows two
N_GRID = 40
N_ROWS = 400  # of the training rows, to show where the data is


def found_pairs(fitted: Fitted, dataset: Dataset, train: Table) -> tuple[Row, Arrays]:
    """What a model says of pairs; nothing where it scores none."""
    scores = getattr(fitted.model, "interaction_scores_", None)
    if scores is None or not len(scores):
        return {}, {}
    names = dataset.columns or scores.names
    active = [row["features"] for row in scores.active]
    row = {"pairs": "; ".join(_name(names, features) for features in active)}
    pairs = [features for features in active if len(features) == 2]
    arrays = {
        "pair_scores": scores.matrix(),
        "pairs_active": np.array(pairs, int).reshape(-1, 2),
    }
    return row, arrays | (strongest(fitted.model, names, train) if pairs else {})


def strongest(model: Any, names: Sequence[str], train: Table) -> Arrays:
    """Mean and deviation of the most important pairs of numbers, over grids within the data.

    ``pair_names`` are their columns; the arrays of the first begin with ``pair0_``, of which ``rows`` are
    some of the training rows.
    """
    explanation = model.explain_global()
    terms = [term for term in explanation.active if term.kind == "pair"]
    kept = [t for t in terms if all(_numeric(v) for v in (t.values, t.second_values))][:N_KEPT]
    arrays: Arrays = {}
    for k, term in enumerate(kept):
        rows = pd.DataFrame(train).iloc[:, list(term.features)].dropna().to_numpy(float)
        x, y = (np.linspace(*np.quantile(v, [0.005, 0.995]), N_GRID) for v in rows.T)
        points = [points.ravel() for points in np.meshgrid(x, y, indexing="ij")]
        mean, std = (
            values.reshape(N_GRID, N_GRID) for values in explanation.evaluate(term.name, *points)
        )
        found = {"x": x, "y": y, "mean": mean, "std": std, "rows": rows[:N_ROWS]}
        arrays |= {f"pair{k}_{what}": values for what, values in found.items()}
    if kept:
        arrays["pair_names"] = np.array([[names[f] for f in term.features] for term in kept])
    return arrays


def _name(names: Sequence[str], features: Sequence[int]) -> str:
    return " x ".join(str(names[feature]) for feature in features)


def _numeric(values: np.ndarray) -> bool:
    return bool(np.issubdtype(np.asarray(values).dtype, np.number))
