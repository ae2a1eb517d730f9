"""A column of ten thousand levels: time, memory, and whether the effects and their bands are true.

``python -m benchmarks.levels MODEL ROWS LEVELS THREADS`` measures one fit, in a process of its own so
that its peak memory is its own, and prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.child import ask
from benchmarks.data.frames import LevelsProblem, levels_problem
from benchmarks.environment import say
from benchmarks.memory import peak_bytes, reset_peak, resident_bytes
from benchmarks.peers import Fitted, all_peers
from benchmarks.recovery import band_coverage
from benchmarks.runner import score, warm_up
from benchmarks.sizes_worker import TEST_ROWS

Row = dict[str, Any]
ROWS = 200_000
LEVELS = 10_000
# EBM fits its bags in processes of its own, which the peak of ours does not see.
ELSEWHERE = {"ebm"}


def levels_rows(
    models: list[str], threads: int, rows: int = ROWS, levels: int = LEVELS
) -> Iterator[Row]:
    """One row a model."""
    for model in models:
        row: Row = {"model": model, "rows": rows, "levels": levels, "threads": threads}
        row |= ask("benchmarks.levels", [model, str(rows), str(levels), str(threads)], threads)
        figures = (f"{key} {row[key]:.4g}" for key in ("fit_seconds", "rmse") if key in row)
        say(f"levels {model:<13} {row.get('error', ', '.join(figures))}")
        yield row


def measure(name: str, rows: int, levels: int, threads: int) -> Row:
    """Fit; seconds, memory beyond what was there before, and the truth of the effects."""
    peer = all_peers()[name]
    reason = peer.missing()
    if reason is not None:
        raise RuntimeError(reason)
    warm_up([peer], threads)
    problem = levels_problem(rows + TEST_ROWS, rows, levels)
    data = problem.data
    X, y = data.rows(slice(rows)), data.y[:rows]
    reset_peak()
    before = resident_bytes()
    start = time.perf_counter()
    fitted = peer.fit(X, y, data.task, 0, threads)
    answer: Row = {"fit_seconds": time.perf_counter() - start}
    if name not in ELSEWHERE:
        answer["extra_bytes"] = peak_bytes() - before
    start = time.perf_counter()
    prediction = fitted.predict(data.rows(slice(rows, None)))
    answer["predict_seconds"] = time.perf_counter() - start
    answer |= fitted.info | score(data, data.y[rows:], prediction)
    return answer | truth_of_effects(problem, X, fitted)


def truth_of_effects(problem: LevelsProblem, X: pd.DataFrame, fitted: Fitted) -> Row:
    """What the model says of each level beside what is true of it.

    Effects are read off predictions at ``x = 0``, which every model has; bands, of models that have
    them, off the column's term, which is centred over the training rows like the truth here.
    """
    counts = pd.Series(problem.names).map(X["level"].value_counts()).fillna(0).to_numpy()
    seen = counts > 0
    each = pd.DataFrame({"level": problem.names, "x": 0.0})
    learned = fitted.predict(each).mean
    answer: Row = {
        "unseen": int((~seen).sum()),
        "correlation": float(np.corrcoef(learned[seen], problem.effects[seen])[0, 1]),
    }
    if fitted.effect is not None:
        truth = problem.effects - np.average(problem.effects, weights=counts)
        mean, std = fitted.effect(each, 0)
        for key, rows in (("band_coverage", seen), ("unseen_band_coverage", ~seen)):
            if rows.any():
                answer[key] = band_coverage(truth[rows], mean[rows], std[rows])
    return answer


def main() -> None:
    """Read the command line, measure, print."""
    name, *sizes = sys.argv[1:5]
    rows, levels, threads = (int(size) for size in sizes)
    with threadpool_limits(threads):
        print(json.dumps(measure(name, rows, levels, threads)))


if __name__ == "__main__":
    main()
