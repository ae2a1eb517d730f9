"""The same rows in memory, in files cut in two ways, and with Dask: how far do predictions differ?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data.sets import Array
from benchmarks.scale import data
from benchmarks.scale.cells import Cell
from benchmarks.scale.cluster import cluster
from benchmarks.scale.fits import estimator, ours

Row = dict[str, Any]
Look = tuple[
    Array, Array | None, float
]  # means, standard deviations where there are some, log evidence
ODD_ROWS = 7_777  # of a row group, for the other cut
TEST_ROWS = 10_000


def measure_agreement(cell: Cell, folder: Path) -> Row:
    """For every place, the greatest difference from the model fitted in memory.

    ``mean`` is of predictions (of probabilities, for classes) and ``std`` of their standard deviations,
    both in standard deviations of the target; ``evidence`` is of the log evidence, a row.
    """
    import pandas as pd

    frame = pd.read_parquet(folder)
    rows = data.held_out(TEST_ROWS, cell.columns, cell.stepped)
    y = frame[cell.target].to_numpy()

    def look(model: Any) -> Look:
        told = ours(model).predict(rows.X)
        return told.mean, told.std, float(model.log_evidence_)

    in_memory = look(estimator(cell).fit(frame[data.names(cell.columns)], y))
    odd = data.cut_anew(folder, max(10, min(ODD_ROWS, cell.rows // 13)))
    answers: dict[str, Row] = {}
    for place, fit in {
        "files": lambda: estimator(cell).fit(f"{folder}/*.parquet", target=cell.target),
        "files, other chunks": lambda: estimator(cell).fit(f"{odd}/*.parquet", target=cell.target),
        "Dask, 1 worker": lambda: _on_workers(cell, folder, 1),
        f"Dask, {cell.workers} workers": lambda: _on_workers(cell, folder, cell.workers),
    }.items():
        answers[place] = _compared(in_memory, lambda fit=fit: look(fit()), y)
    return {"places": answers}


def _on_workers(cell: Cell, folder: Path, workers: int) -> Any:
    import dask.dataframe

    with cluster(workers):
        return estimator(cell).fit(dask.dataframe.read_parquet(folder), cell.target)


def _compared(in_memory: Look, look: Callable[[], Look], y: Array) -> Row:
    """Differences, or why there are none: other places are compared all the same."""
    try:
        mean, std, evidence = look()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    row = {
        "mean": float(np.abs(mean - in_memory[0]).max() / y.std()),
        "evidence": abs(evidence - in_memory[2]) / len(y),
    }
    if std is not None and in_memory[1] is not None:
        row["std"] = float(np.abs(std - in_memory[1]).max() / y.std())
    return row
