"""One fit on much data in a process of its own, so that its peak memory is its own.

``python -m benchmarks.sizes_worker MODEL TASK ROWS COLUMNS THREADS PROBLEM`` prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import cast

from threadpoolctl import threadpool_limits

from benchmarks.data.problems import large_problem, sparse_table
from benchmarks.data.sets import Task
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
    data = PROBLEMS[problem](rows + TEST_ROWS, columns, task)
    X, y = data.X[:rows], data.y[:rows]
    reset_peak()
    before = resident_bytes()
    start = time.perf_counter()
    fitted = peer.fit(X, y, task, 0, threads)
    fit_seconds = time.perf_counter() - start
    extra = peak_bytes() - before
    start = time.perf_counter()
    fitted.predict(X)
    predict_seconds = time.perf_counter() - start
    answer = {
        "fit_seconds": fit_seconds,
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


def main() -> None:
    """Read the command line, measure, print."""
    name, task, *sizes, problem = sys.argv[1:7]
    rows, columns, threads = (int(size) for size in sizes)
    with threadpool_limits(threads):
        print(json.dumps(measure(name, cast(Task, task), rows, columns, threads, problem)))


if __name__ == "__main__":
    main()
