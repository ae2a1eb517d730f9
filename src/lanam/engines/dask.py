"""Dask frames: one task per partition, and only totals are moved.

Results of partitions are merged as a binary tree, which depends only on the number of partitions: the
result is the same to the last bit for any number of workers, even if some of them die.

Tasks run on the active client of ``dask.distributed``, or else on Dask's scheduler in this process.
Workers need lanam installed. Nothing is scattered, because scattered data is lost with its worker: what
all tasks of a pass share is a node of the graph, sent to the cluster once and computed again if lost.
"""

from __future__ import annotations

import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np

from lanam.core.blas import limited_threads
from lanam.core.rows.tables import EncodedRows, Job, Merge, Tables, Totals, add
from lanam.engines import dask_tasks as tasks
from lanam.engines.formats import arrow
from lanam.engines.interface import (
    Chunk,
    Engine,
    Result,
    ResultColumns,
    RowOutput,
    Source,
    require_unique,
)
from lanam.engines.writing import ENDING, output_format
from lanam.files import open_folder, require_folder

#: Results merged by one task, which are in a worker's memory together.
_MERGED_AT_ONCE = 4
#: Bytes of encoded tables to keep in this process if there is no cluster.
_KEPT_HERE = 2**30


def is_dask_frame(table: Any) -> bool:
    """Whether this is a Dask frame, without importing Dask."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith(("dask.dataframe", "dask_expr"))
        for kind in type(table).__mro__
    )


class DaskSource(Source):
    """A Dask frame of pandas partitions, which are its chunks.

    A cluster keeps all encoded tables on its workers, which spill to disk what their memory does not hold.
    Without a cluster, this process keeps ``keep`` bytes of them; other partitions are encoded in each pass.
    """

    title = "the Dask frame"

    def __init__(self, frame: Any, keep: int = _KEPT_HERE) -> None:
        meta = frame._meta
        library = type(meta).__module__.split(".")[0]
        if library != "pandas":
            raise TypeError(
                f"{self.title} has partitions of {library}: convert them with "
                "ddf = ddf.to_backend('pandas')"
            )
        odd = [name for name in meta.columns if not isinstance(name, str)]
        if odd:
            raise ValueError(
                f"{self.title} has a column named {odd[0]!r}: names must be strings, for example by "
                "ddf = ddf.rename(columns=str)"
            )
        require_unique(list(meta.columns), self.title)
        self._frame, self._keep = frame, keep

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(self._frame.columns)

    @property
    def fingerprint(self) -> str:
        """Dask's token of the frame's graph: the same for the same data read the same way."""
        from dask.base import tokenize

        return str(tokenize(self._frame))

    def empty(self) -> Any:
        """A pandas frame without rows that has the columns' dtypes.

        Categories unknown to Dask are left out: each partition has its own, in number and order.
        """
        meta = self._frame._meta.iloc[:0].copy()
        for name in meta.columns:
            if hasattr(meta[name], "cat") and not self._frame[name].cat.known:
                meta[name] = meta[name].cat.set_categories([])
        return meta

    def reduce(
        self,
        columns: Sequence[str],
        function: Callable[[Iterable[Chunk]], Result],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """Map-reduce over these columns of all partitions with rows; results of None are left out."""
        results = _by_partition(tasks.summarise_partition, self._frame[list(columns)], function)
        result: Result | None = _computed(_merged_in_order(results, merge))
        if result is None:
            raise ValueError(f"{self.title} has no rows")
        return result

    def encoded(self, columns: Sequence[str], encode: Callable[[Chunk], EncodedRows]) -> Tables:
        """The rows as arrays, encoded once and kept."""
        empty = Chunk(self.empty()[list(columns)], self.title, 0, 0)
        n_columns = int(encode(empty).columns.shape[1])
        return DaskTables(self._frame[list(columns)], encode, n_columns, self._keep)

    def map(
        self, columns: Sequence[str], function: Callable[[Chunk], Any], result: ResultColumns
    ) -> Any:
        """Apply a function row-wise: a lazy series (of one name) or frame with the index of this one.

        Arrays of a tuple are put side by side; of arrays with more than two axes the last varies fastest.
        """
        meta = tasks.labelled(np.empty(0, result.dtype), self._frame._meta.iloc[:0], result)
        return self._mapped(columns, partial(tasks.label_results, function, result), meta)

    def write(
        self,
        rows: RowOutput,
        output: Any,
        overwrite: bool,
        progress: Callable[[int], None] | None,
    ) -> int:
        """Write the output for all rows, one file per partition, on the workers."""
        if not os.path.isdir(output) and output_format(output) is not None:
            raise ValueError(
                f"{output} is one file, but a Dask frame is written as one file per partition: pass the "
                "name of a folder"
            )
        target = require_folder(output, overwrite=overwrite, ending=ENDING)
        meta = rows.frame(self._frame[rows.columns]._meta.iloc[:0])
        with open_folder(target, overwrite=overwrite, ending=ENDING) as folder:
            self._mapped(rows.columns, rows.frame, meta).to_parquet(
                str(folder), write_index=False, name_function="part-{:05d}.parquet".format
            )
            written = sorted(folder.glob(f"*{ENDING}"))
            return sum(arrow().parquet.read_metadata(path).num_rows for path in written)

    def _mapped(self, columns: Sequence[str], function: Callable[[Any], Any], meta: Any) -> Any:
        """Apply a function to each partition lazily; it returns frames like ``meta``.

        It is sent to the cluster once, with all it holds, for example a fitted model, and is not called
        for partitions without rows.
        """
        frame = self._frame[list(columns)]
        return frame.map_partitions(tasks.predict_partition, _shared((function, meta)), meta=meta)


class DaskTables:
    """The encoded partitions of a Dask frame as `lanam.core.rows.tables.Tables`.

    A cluster makes them once and keeps them until this object is deleted; Dask recomputes a table that is
    lost with its worker.
    """

    def __init__(
        self, frame: Any, encode: Callable[[Chunk], EncodedRows], n_columns: int, keep: int
    ) -> None:
        self._frame, self._encode, self.n_columns = frame, encode, n_columns
        self._shelf = _Shelf(keep)
        self._kept: list[Any] | None = None

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """Map-reduce over all tables, one table at a time."""
        try:
            total = self._total(job, merge)
        except CancelledError:  # the cluster was restarted without the tables
            total = self._total(job, merge)
        if total is None:
            raise ValueError(
                "the Dask frame has no row with a positive weight: nothing is left to fit"
            )
        return total

    def _total(self, job: Job, merge: Merge) -> Totals | None:
        import dask

        shared = _shared(job)
        results = [
            _task(tasks.total_of_table)(shared, table, number)
            for number, table in enumerate(self._tables())
        ]
        total: Totals | None
        try:  # jobs may be large; `_shared` follows Dask's advice already
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                total = _computed(_merged_in_order(results, merge))
            return total
        except BaseException:
            # The traceback refers to this object, and a session may keep it: the cluster would go on
            # encoding, and hold the tables. They are made again when they are needed.
            kept, self._kept = self._kept, None
            if kept is not None:
                from distributed import futures_of

                # Cancelling them would fail in the scheduler if other tasks still depend on them.
                for future in futures_of(kept):
                    future.release()
            raise

    def _tables(self) -> list[Any]:
        client = _client()
        if client is not None and self._kept is not None:
            return self._kept
        lazy = _by_partition(tasks.encode_partition, self._frame, self._encode)
        if client is not None:
            self._kept = client.persist(lazy)
            return self._kept
        return [
            _node(self._shelf[number])
            if number in self._shelf
            else _task(self._shelf.put)(number, table)
            for number, table in enumerate(lazy)
        ]


class _Shelf(dict[int, tasks.Carried | None]):
    """Tables kept in this process as far as they fit. Other processes have an empty one of no capacity."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Shelf, (0,)

    def put(self, number: int, table: tasks.Carried | None) -> tasks.Carried | None:
        size = 0 if table is None else table.size
        with self._lock:
            if size <= self._capacity:
                self._capacity -= size
                self[number] = table
        return table


# Graphs, and how they are computed.


def _task(function: Callable[..., Any]) -> Any:
    from dask import delayed

    return delayed(function, pure=False)


def _shared(value: Any) -> Any:
    """A value that many tasks share: one node of the graph."""
    return _node(tasks.Carried(value))


def _node(value: tasks.Carried | None) -> Any:
    from dask import delayed

    return delayed(value, name=f"shared-{uuid.uuid4()}", traverse=False)


def _by_partition(task: Callable[..., Any], frame: Any, value: Any) -> list[Any]:
    """One task per partition, which Dask fuses with reading it."""
    import dask

    mapped = frame.map_partitions(task, _shared(value), meta=(None, object), enforce_metadata=False)
    # Dask would fuse partitions of Parquet files if few columns are read: "partition 3" would be another.
    with dask.config.set({"optimization.tune.active": False}):
        return list(mapped.to_delayed())


def _merged_in_order(results: Sequence[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """All results as one: a binary tree, several nodes of which are one task."""
    rest = list(results)
    while len(rest) > 1:
        groups = [rest[at : at + _MERGED_AT_ONCE] for at in range(0, len(rest), _MERGED_AT_ONCE)]
        rest = [
            _task(tasks.merge_in_order)(merge, *group) if len(group) > 1 else group[0]
            for group in groups
        ]
    return rest[0]


def _computed(task: Any) -> Any:
    """A task's result; after an error nothing is left running."""
    client = _client()
    try:
        if client is not None:
            result = _computed_by(client, task)
        else:
            with limited_threads(1):  # as a rule the limit of all threads
                result = task.compute()
        return None if result is None else result.value
    except Exception as error:
        failure = error.with_traceback(_traceback_of_task(error.__traceback__))
    try:
        raise failure
    finally:
        del failure  # breaks the cycle with this frame


def _computed_by(client: Any, task: Any) -> Any:
    from distributed import KilledWorker

    future = client.compute(task)
    try:
        return future.result()
    except KilledWorker as error:
        raise RuntimeError(
            "workers died repeatedly at the same task, most likely because they ran out of memory: make "
            "partitions smaller with ddf.repartition(partition_size='50MB'), or give workers more memory. "
            "If they were lost for other reasons, allow more failures: "
            "dask.config.set({'distributed.scheduler.allowed-failures': 20}) before the cluster starts"
        ) from error
    finally:
        future.release()  # after an interrupt, tasks that wait are not started


def _traceback_of_task(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from our task on, without Dask's frames; all of it if the task was not ours."""
    link = traceback
    while link is not None and link.tb_frame.f_code.co_name not in tasks.TASKS:
        link = link.tb_next
    return link or traceback


def _client() -> Any:
    """The client that Dask would compute with; None for a scheduler in this process."""
    if "distributed" not in sys.modules:
        return None
    from dask.base import get_scheduler
    from distributed import Client

    owner = getattr(get_scheduler(), "__self__", None)
    return owner if isinstance(owner, Client) else None


ENGINE = Engine(
    is_dask_frame,
    lambda table, _: DaskSource(table),
    lambda _: "a Dask frame: load some rows first, for example with X.head(1000)",
)
