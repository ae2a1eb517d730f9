"""The unit of time: one pass that reads the files and sorts each column.

``whole``: columns one after the other, each read from all files and sorted. Beside it, row groups one at
a time with all their columns, as lanam reads them, and each numeric column of the group sorted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data.sets import Array
from benchmarks.scale.data import names

Row = dict[str, Any]


def row_groups(folder: Path) -> Iterator[Any]:
    """The chunks in which files are read."""
    import pyarrow.dataset

    for fragment in pyarrow.dataset.dataset(folder, format="parquet").get_fragments():
        yield from fragment.split_by_row_group()


def sorted_by_chunks(folder: Path, columns: int, threads: int) -> Iterator[list[Array]]:
    """Sorted columns, chunk by chunk; columns are shared out among the threads."""
    with ThreadPoolExecutor(threads) as pool:
        for group in row_groups(folder):
            table = group.to_table(use_threads=threads > 1)
            yield list(pool.map(np.sort, [table[name].to_numpy() for name in names(columns)]))


def sorted_wholes(folder: Path, columns: int, threads: int) -> Iterator[Array]:
    """Sorted columns, one at a time."""
    import pyarrow.dataset

    dataset = pyarrow.dataset.dataset(folder, format="parquet")

    def of(name: str) -> Array:
        return np.sort(dataset.to_table([name], use_threads=threads > 1)[name].to_numpy())

    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, columns, threads):  # no more columns in memory than are worked on
            yield from pool.map(of, names(columns)[first : first + threads])


def measure_reference(folder: Path, columns: int, threads: int, whole: bool = False) -> Row:
    """Seconds of a pass over files that the system has read before."""
    import pyarrow
    import pyarrow.dataset  # not on the clock

    pyarrow.set_cpu_count(threads)
    for path in folder.iterdir():
        path.read_bytes()
    row = {"seconds": _clocked(lambda: sorted_by_chunks(folder, columns, threads))}
    if whole:
        row["whole_seconds"] = _clocked(lambda: sorted_wholes(folder, columns, threads))
    return row


def _clocked(work: Callable[[], Iterator[Any]]) -> float:
    start = time.perf_counter()
    for _ in work():
        pass
    return time.perf_counter() - start
