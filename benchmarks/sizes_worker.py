"""One fit on much data in a process of its own, so that its peak memory is its own.

``python -m benchmarks.sizes_worker MODEL TASK ROWS COLUMNS THREADS PROBLEM`` prints one line of JSON. A
problem is "large", "sparse", a number of classes, or the file of a table, whose first fold is left out.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import cast

import numpy as np
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from benchmarks.data.problems import class_problem, large_problem, sparse_table
from benchmarks.data.sets import Dataset, Task, load_uci
from benchmarks.memory import peak_bytes, reset_peak, resident_bytes
from benchmarks.peers import all_peers
from benchmarks.runner import score, warm_up

PROBLEMS = {"large": large_problem, "sparse": sparse_table}
TEST_ROWS = 10_000


def measure(
    name: str, task: Task, rows: int, columns: int, threads: int, problem: str
) -> dict[str, float]:
    """Fit and predict; seconds, and memory beyond what was there before the fit."""
    peer = all_peers()[name]
    reason = peer.missing()
    if reason is not None:
        raise RuntimeError(reason)
    warm_up([peer], threads)
    data = load(problem, rows, columns, task)
    rows = data.n_train or rows
    X, y = data.X[:rows], data.y[:rows]
    reset_peak()
    before = resident_bytes()
    start, cpu_start = time.perf_counter(), time.process_time()
    fitted = peer.fit(X, y, task, 0, threads)
    fit_seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    extra = peak_bytes() - before
    start = time.perf_counter()
    fitted.predict(X)
    predict_seconds = time.perf_counter() - start
    answer = {
        "fit_seconds": fit_seconds,
        "cpu_seconds": cpu_seconds,
        "extra_bytes": extra,
        "extra_over_data": extra / X.nbytes,
        "predict_seconds": predict_seconds,
        **fitted.info,
    }
    if fitted.predict_mean is not None:
        start = time.perf_counter()
        fitted.predict_mean(X)
        answer["predict_mean_seconds"] = time.perf_counter() - start
    answer["nll"] = score(data, data.y[rows:], fitted.predict(data.X[rows:]))["nll"]
    return answer


def load(problem: str, rows: int, columns: int, task: Task) -> Dataset:
    """The rows to fit, and further ones to test."""
    if problem.isdigit():
        return class_problem(rows + TEST_ROWS, columns, int(problem))
    if problem in PROBLEMS:
        return PROBLEMS[problem](rows + TEST_ROWS, columns, task)
    path = Path(problem)
    data = load_uci(path.parent.parent, path.name)
    train, test = next(KFold(5, shuffle=True, random_state=0).split(data.X))
    order = np.concatenate([train, test])
    return Dataset(data.name, data.task, data.X[order], data.y[order], len(train))


def main() -> None:
    """Read the command line, measure, print."""
    name, task, *sizes, problem = sys.argv[1:7]
    rows, columns, threads = (int(size) for size in sizes)
    with threadpool_limits(threads):
        print(json.dumps(measure(name, cast(Task, task), rows, columns, threads, problem)))


if __name__ == "__main__":
    main()
