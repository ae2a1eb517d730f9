"""Workers of Dask on this machine: processes of one thread each."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.memory import peak_bytes
from benchmarks.scale.cells import Cell
from benchmarks.scale.clock import Pass, by_job, clocked
from benchmarks.scale.fits import estimator, ours, plan_of, truth

Row = dict[str, Any]
REPEATS = 5  # of a pass over rows that workers keep
ROW_PASS = "cross_tables"  # what a fit sums over rows, once or at every expansion


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A client of so many workers."""
    from distributed import Client, LocalCluster

    with (
        tempfile.TemporaryDirectory() as scratch,
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any port that is free
            local_directory=scratch,
        ) as local,
        Client(local) as client,
    ):
        yield client


def measure_workers(cell: Cell, folder: Path) -> Row:
    """A fit on a Dask frame, and a pass of it over again, when workers have the rows at hand."""
    import dask.dataframe

    model = estimator(cell)
    with cluster(cell.workers) as client:
        frame = dask.dataframe.read_parquet(folder)
        with clocked() as passes:
            start = time.perf_counter()
            model.fit(frame, cell.target)
            seconds = time.perf_counter() - start
        row: Row = {
            "fit_seconds": seconds,
            "passes_seconds": sum(one.seconds for one in passes),
            "jobs": by_job(passes),
            **repeated(passes),
            "worker_bytes": max(client.run(peak_bytes).values()),
            "peak_bytes": peak_bytes(),
        }
    return row | plan_of(model) | truth(ours(model), cell)


def repeated(passes: list[Pass]) -> Row:
    """Median seconds of the sums that are the fit's own, once rows are surely at hand.

    A fit without them repeats the job that took longest.
    """
    if not passes:
        return {}
    kinds: dict[str, list[Pass]] = {}
    for one in passes:
        kinds.setdefault(one.job, []).append(one)
    job = max(kinds, key=lambda name: (ROW_PASS in name, sum(one.seconds for one in kinds[name])))
    again = kinds[job][-1].again
    again()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        again()
        seconds.append(time.perf_counter() - start)
    return {"pass_job": job, "pass_seconds": statistics.median(seconds)}
