"""Dask's frames: one task a partition, and only totals move.

What a fit asks for is sent to where the partitions are; what comes back is merged as a tree, neighbours
first and the earlier before the later. The tree depends on the number of partitions and on nothing else:
two workers or twenty, and whichever of them dies, give the same numbers to the last bit.

Work is done by the active client of ``dask.distributed``, or without one by Dask's own scheduler in this
process. Workers (and their scheduler) need lanam installed, and nothing else of ours.

Nothing is scattered: data that was scattered is gone with the worker that held it. What all tasks of a
pass share is a node of the graph instead, which is sent to the cluster once, goes from worker to worker,
and can be had again.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np

from lanam.core.blas import limited_threads
from lanam.core.rows.tables import Job, Merge, Table, Tables, Totals, add
from lanam.engines.allocation import freed_memory_kept
from lanam.engines.formats import arrow
from lanam.engines.interface import (
    Chunk,
    Columns,
    Engine,
    Parse,
    Predicted,
    Result,
    unnamed_target,
)
from lanam.engines.output import ENDING, kind_of
from lanam.errors import Message
from lanam.files import open_folder, require_folder

#: How many results a task merges: a worker holds so many at once. More would save few tasks.
_MERGED_AT_ONCE = 4
#: Bytes of encoded tables kept in this process when there is no cluster to keep them.
_KEPT_HERE = 2**30


def is_dask_frame(table: Any) -> bool:
    """Whether this is a frame of Dask; asking does not import it.

    Examples
    --------
    >>> is_dask_frame([[1.0, 2.0]])
    False
    """
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith(("dask.dataframe", "dask_expr"))
        for kind in type(table).__mro__
    )


class DaskSource:
    """A Dask frame as a `Source`: its chunks are its partitions.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        Of pandas partitions, with columns named by text.
    keep : int
        Without a cluster, bytes of encoded tables that stay in this process from pass to pass; the
        partitions beyond are read and encoded anew in each. With a cluster all tables stay on the workers,
        which write to disk what their memory does not hold.

    Attributes
    ----------
    n_rows : int or None
        How many rows there are, once a `reduce` has gone over them.
    """

    title = "the Dask frame"
    dialect = None

    def __init__(self, frame: Any, keep: int = _KEPT_HERE) -> None:
        _require_dask()
        meta = frame._meta
        library = type(meta).__module__.split(".")[0]
        if library != "pandas":
            raise TypeError(
                f"{self.title} has partitions of {library}: make them pandas's with "
                "ddf = ddf.to_backend('pandas')"
            )
        odd = [name for name in meta.columns if not isinstance(name, str)]
        if odd:
            raise ValueError(
                f"{self.title} has a column named {odd[0]!r}: names must be text, for example by "
                "ddf = ddf.rename(columns=str)"
            )
        twice = meta.columns[meta.columns.duplicated()]
        if len(twice):
            raise ValueError(
                f"{self.title} has more than one column named {twice[0]!r}: columns are told apart "
                "by their names, so rename one of them or leave it out"
            )
        self.n_rows: int | None = None
        self._frame = frame
        self._keep = keep

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(self._frame.columns)

    @property
    def fingerprint(self) -> str:
        """Dask's own token of how the frame is made: the same for the same data read the same way."""
        from dask.base import tokenize

        return str(tokenize(self._frame))

    def empty(self) -> Any:
        """A pandas frame of no rows with the columns' dtypes.

        Text that Dask keeps in arrow's memory is pandas's own ``string`` dtype here and in the chunks.
        Categories that Dask does not know are none here: the column is known to be categorical, and
        each chunk has those of its partition, which may differ in number and order.
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
        """What ``function`` makes of all chunks, reading these columns only.

        Partitions without rows are no chunks, and a result of None is left out.
        """
        results = _by_partition(summarise_partition, self._frame[list(columns)], function)
        counted = _computed(_merged_in_order(results, _Counted(merge)))
        if counted is None:
            raise ValueError(f"{self.title} has no rows")
        self.n_rows = counted[0]
        result: Result = counted[1]
        return result

    def encoded(self, columns: Sequence[str], encode: Callable[[Chunk], Table]) -> Tables:
        """The rows as the core wants them, encoded once and kept."""
        return DaskTables(self._frame[list(columns)], encode, self._keep)

    def unnamed(self) -> Exception:
        """The error for a target that is not the name of a column."""
        return unnamed_target(self.title, self.names)

    def typed(self, types: Mapping[str, Any]) -> Self:
        """The same frame: its columns have types."""
        return self

    def require_numbers(self, names: Iterable[str]) -> None:
        """Nothing: columns have types."""

    def verbatim(self, names: Iterable[str], parsed: Collection[str]) -> tuple[Self, Parse | None]:
        """The same frame: its columns have types."""
        return self, None

    def map(self, columns: Sequence[str], function: Callable[[Chunk], Any], result: Columns) -> Any:
        """What ``function`` says of each row, as a lazy frame or series of Dask's."""
        of_frame = partial(_of_partition, function)
        return map_partitions(of_frame, self._frame[list(columns)], result.names, result.dtype)

    def write(
        self,
        rows: Predicted,
        output: Any,
        overwrite: bool,
        progress: Callable[[int], None] | None,
    ) -> int:
        """Write what is made of the rows: a file for each partition, written where the partitions are."""
        if not os.path.isdir(output) and kind_of(output) is not None:
            raise ValueError(
                f"{output} is one file, and a Dask frame is written as one a partition: pass the name "
                "of a folder"
            )
        target = require_folder(output, overwrite=overwrite, ending=ENDING)
        frame = self._frame[rows.columns]
        result = map_frames(rows.frame, frame, rows.frame(frame._meta.iloc[:0]))
        with open_folder(target) as folder:
            result.to_parquet(str(folder), write_index=False, name_function=_part_name)
            written = sorted(folder.glob(f"*{ENDING}"))
            return sum(arrow().parquet.read_metadata(path).num_rows for path in written)


class DaskTables:
    """The encoded partitions of a Dask frame as the core's `Tables`.

    With a cluster they are made once and stay on the workers until this object is gone; a table that is
    lost with its worker is made again by Dask.
    """

    def __init__(self, frame: Any, encode: Callable[[Chunk], Table], keep: int) -> None:
        self._frame = frame
        self._encode = encode
        self._shelf = _Shelf(keep)
        self._kept: list[Any] | None = None
        self._width: int | None = None

    @property
    def n_columns(self) -> int:
        """How many columns there are: the first table says so."""
        if self._width is None:
            widths = (self._computed(_task(_width)(table)) for table in self._tables())
            self._width = next((width for width in widths if width is not None), 0)
        return self._width

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """What a job says of all tables, one table at a time."""
        try:
            total = self._total(job, merge)
        except CancelledError:  # the cluster was restarted and has forgotten the tables
            total = self._total(job, merge)
        if total is None:
            raise ValueError("the Dask frame has no rows that count")
        return total

    def _total(self, job: Job, merge: Merge) -> Totals | None:
        shared = _shared(job)
        results = [
            _task(total_of_table)(shared, table, number)
            for number, table in enumerate(self._tables())
        ]
        total: Totals | None = self._computed(_merged_in_order(results, merge))
        return total

    def _computed(self, task: Any) -> Any:
        import dask

        try:  # jobs may be large; Dask's remedy, to send them once, is what `_shared` does
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                return _computed(task)
        except BaseException:
            # The traceback holds this object, and a session may keep it: the cluster would go on encoding
            # and hold the tables. Who asks again has them made again.
            _released(self._kept)
            self._kept = None
            raise

    def _tables(self) -> list[Any]:
        client = _client()
        if client is not None and self._kept is not None:
            return self._kept
        lazy = _by_partition(encode_partition, self._frame, self._encode)
        if client is not None:
            self._kept = client.persist(lazy)
            return self._kept
        return [
            _node(self._shelf[number])
            if number in self._shelf
            else _task(self._shelf.put)(number, table)
            for number, table in enumerate(lazy)
        ]


def map_partitions(
    function: Callable[[Any], Any], frame: Any, columns: str | Sequence[str], dtype: Any = float
) -> Any:
    """What a function says of each row of a Dask frame, as a lazy frame or series of Dask's.

    Parameters
    ----------
    function : callable
        From a pandas frame of some rows to an array of as many, or to several arrays in a tuple, which are
        put side by side. It is sent to the cluster once, with all it holds, say a fitted model.
    frame : dask.dataframe.DataFrame
    columns : str or sequence of str
        One name for a series, a sequence for a frame. Of arrays with more than two axes the last varies
        fastest.
    dtype : dtype, default=float
        Of the results.

    Returns
    -------
    result : dask.dataframe.Series or dask.dataframe.DataFrame
        With the index and the divisions of ``frame``. Partitions without rows are not shown to the
        function: they give results without rows.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from lanam.engines.dask import map_partitions
    >>> ddf = dd.from_pandas(pd.DataFrame({"x": [1.0, 2.0, 3.0]}), npartitions=2)
    >>> map_partitions(lambda frame: 2.0 * frame["x"].to_numpy(), ddf, "twice").compute().tolist()
    [2.0, 4.0, 6.0]
    """
    _require_dask()
    names = columns if isinstance(columns, str) else tuple(columns)
    meta = _labelled(np.empty(0, dtype), frame._meta.iloc[:0], names, dtype)
    return map_frames(_Labels(function, names, dtype), frame, meta)


def map_frames(function: Callable[[Any], Any], frame: Any, meta: Any) -> Any:
    """What a function makes of each partition, as a lazy frame or series of Dask's.

    Parameters
    ----------
    function : callable
        From a pandas frame of some rows to one like ``meta``, with the same index. It is sent to the
        cluster once, with all it holds.
    frame : dask.dataframe.DataFrame
    meta : pandas.DataFrame or pandas.Series
        What comes out, without rows; partitions without rows give this, and the function does not see
        them.
    """
    _require_dask()
    return frame.map_partitions(predict_partition, _shared((function, meta)), meta=meta)


# What tasks do. Their names are what Dask's dashboard shows.


def summarise_partition(
    frame: Any, function: _Carried, partition_info: Any = None
) -> _Carried | None:
    """A partition's number of rows and what the function makes of it."""
    if not len(frame):
        return None
    chunk = _chunk(frame, partition_info)
    with _at_work(chunk.place):
        result = function.value((chunk,))
    return None if result is None else _Carried((len(frame), result))


def encode_partition(frame: Any, encode: _Carried, partition_info: Any = None) -> _Carried | None:
    """A partition as a table."""
    if not len(frame):
        return None
    chunk = _chunk(frame, partition_info)
    with _at_work(chunk.place):
        table = encode.value(chunk)
    # Of one layout, whatever that of the partition: numpy rounds differently by it, and the core reads one
    # column at a time. Views would keep the whole partition in memory.
    arrays = {
        name: np.require(getattr(table, name), requirements=["F", "O"])
        for name in ("columns", "response", "weight")
    }
    return _Carried(replace(table, **arrays), sum(array.nbytes for array in arrays.values()))


def total_of_table(job: _Carried, table: _Carried | None, number: int) -> _Carried | None:
    """What the job says of a table."""
    if table is None or not len(table.value):
        return None
    with _at_work(_place(number)):
        totals = job.value((table.value,))
    return _Carried(totals, sum(array.nbytes for array in totals))


def merge_in_order(merge: Callable[[Any, Any], Any], *results: _Carried | None) -> _Carried | None:
    """Neighbours merged until one is left; None is nothing to merge."""
    rest = list(results)
    while len(rest) > 1:
        rest = [_pair(merge, *rest[first : first + 2]) for first in range(0, len(rest), 2)]
    return rest[0]


def predict_partition(frame: Any, shared: _Carried, partition_info: Any = None) -> Any:
    """What the function says of a partition's rows."""
    function, nothing = shared.value
    if not len(frame):
        return nothing.set_axis(frame.index)
    with _named(_place(partition_info["number"])):
        return function(frame)


def _pair(
    merge: Callable[[Any, Any], Any], first: _Carried | None, second: _Carried | None = None
) -> _Carried | None:
    if first is None or second is None:
        return second if first is None else first
    return _Carried(merge(first.value, second.value), max(first.size, second.size))


def _width(table: _Carried | None) -> _Carried | None:
    return None if table is None else _Carried(table.value.columns.shape[1])


def _chunk(frame: Any, partition_info: Any) -> Chunk:
    number = partition_info["number"]
    return Chunk(frame, _place(number), 0, number)


def _of_partition(function: Callable[[Chunk], Any], frame: Any) -> Any:
    """What a function says of a partition, whose number Dask's errors know."""
    return function(Chunk(frame, "this partition", 0, 0))


def _part_name(number: int) -> str:
    return f"part-{number:05d}{ENDING}"


def _place(number: int) -> str:
    return f"partition {number}"


class _Counted:
    """Merges (number of rows, result)."""

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self.merge = merge

    def __call__(self, first: tuple[int, Any], second: tuple[int, Any]) -> tuple[int, Any]:
        return first[0] + second[0], self.merge(first[1], second[1])


class _Labels:
    """A function that returns arrays as one that returns frames."""

    def __init__(
        self, function: Callable[[Any], Any], columns: str | tuple[str, ...], dtype: Any
    ) -> None:
        self.function, self.columns, self.dtype = function, columns, dtype

    def __call__(self, frame: Any) -> Any:
        return _labelled(self.function(frame), frame, self.columns, self.dtype)


def _labelled(values: Any, frame: Any, columns: str | tuple[str, ...], dtype: Any) -> Any:
    import pandas as pd

    # Of text and objects pandas would say by the values what they are, and of none it cannot.
    own = pd.Series(np.empty(0, dtype)).dtype
    parts = [
        np.asarray(part, dtype) for part in (values if isinstance(values, tuple) else (values,))
    ]
    if isinstance(columns, str):
        return pd.Series(parts[0], frame.index, dtype=own, name=columns)
    shape = (len(frame), -1) if len(frame) else (0, len(columns))
    table = np.hstack([np.reshape(part, shape) for part in parts])
    return pd.DataFrame(table, frame.index, list(columns), dtype=own)


@contextmanager
def _named(place: str) -> Iterator[None]:
    """What goes wrong within says where."""
    try:
        yield
    except Exception as error:
        if place not in str(error):
            if isinstance(error, Message):
                raise error.located(f"{place}: ") from error
            if error.args == (str(error),):
                error.args = (f"{place}: {error}",)
            else:  # an error of more than a message
                error.add_note(f"in {place}")
        raise


@contextmanager
def _at_work(place: str) -> Iterator[None]:
    """Where a task computes on rows: its errors say where, on one thread, in memory that is used again."""
    with _named(place), _one_thread(), freed_memory_kept():
        yield


def _one_thread() -> Any:
    """BLAS held to one thread: the others are Dask's.

    The limit is the whole process's. Where tasks of several threads overlap, the one that leaves last may
    put back the limit of one that it found: that is where a worker of Dask's stands anyway.
    """
    return limited_threads(1)


class _Carried:
    """A value on its way between tasks, which arrives as it was sent.

    Dask would hand out arrays as views of what came over the wire, wherever in memory they happen to lie
    there. On unaligned arrays numpy is slower, and rounds differently: results would depend on which worker
    a task ran on. Nor would Dask know how large a value of our own is, and what to put on disk first.
    """

    def __init__(self, value: Any, size: int = 0) -> None:
        self.value = value
        self.size = size

    def __sizeof__(self) -> int:
        return self.size

    def __reduce__(self) -> tuple[Any, ...]:
        import cloudpickle  # Dask's own, for functions of notebooks

        return _received, (cloudpickle.dumps(self.value),)


def _received(content: bytes) -> _Carried:
    return _Carried(pickle.loads(content), len(content))


_TASKS = {
    task.__name__
    for task in (summarise_partition, encode_partition, total_of_table, merge_in_order)
}


class _Shelf:
    """Tables kept in this process, as far as they fit. Another process starts with none and keeps none."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._tables: dict[int, _Carried | None] = {}
        self._lock = threading.Lock()

    def __contains__(self, number: int) -> bool:
        return number in self._tables

    def __reduce__(self) -> tuple[Any, ...]:
        return _Shelf, (0,)

    def __getitem__(self, number: int) -> _Carried | None:
        return self._tables[number]

    def put(self, number: int, table: _Carried | None) -> _Carried | None:
        size = 0 if table is None else table.size
        with self._lock:
            if size <= self._room:
                self._room -= size
                self._tables[number] = table
        return table


# How tasks are run.


def _require_dask() -> None:
    try:
        import dask.dataframe  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'Dask frames need the package dask: install it with `pip install "lanam[dask]"`'
        ) from error


def _task(function: Callable[..., Any]) -> Any:
    from dask import delayed

    return delayed(function, pure=False)


def _shared(value: Any) -> Any:
    """A value that many tasks have: one node of the graph."""
    return _node(_Carried(value))


def _node(value: _Carried | None) -> Any:
    from dask import delayed

    return delayed(value, name=f"shared-{uuid.uuid4()}", traverse=False)


def _by_partition(task: Callable[..., Any], frame: Any, value: Any) -> list[Any]:
    """A task for each partition, which Dask makes one with reading it."""
    import dask

    # The type of the result is not looked at: it is no frame.
    mapped = frame.map_partitions(task, _shared(value), meta=(None, object), enforce_metadata=False)
    # Where few columns are read, Dask would put several partitions of Parquet into one, and
    # "partition 3" would not be the user's.
    with dask.config.set({"optimization.tune.active": False}):
        return list(mapped.to_delayed())


def _merged_in_order(results: Sequence[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """All results as one; the same tree of pairs however many of its nodes are one task."""
    rest = list(results)
    while len(rest) > 1:
        groups = [rest[at : at + _MERGED_AT_ONCE] for at in range(0, len(rest), _MERGED_AT_ONCE)]
        rest = [
            _task(merge_in_order)(merge, *group) if len(group) > 1 else group[0] for group in groups
        ]
    return rest[0]


def _computed(task: Any) -> Any:
    """A task's result; if it cannot be had, nothing is left running for it."""
    client = _client()
    try:
        if client is not None:
            result = _computed_by(client, task)
        else:
            with _one_thread():  # as a rule the limit of all threads
                result = task.compute()
        return None if result is None else result.value
    except Exception as error:
        failure = error.with_traceback(_traceback_of_task(error.__traceback__))
    try:
        raise failure
    finally:
        del failure  # or it holds this frame, which holds it


def _computed_by(client: Any, task: Any) -> Any:
    from distributed import KilledWorker

    future = client.compute(task)
    try:
        return future.result()
    except KilledWorker as error:
        raise RuntimeError(
            "workers died again and again at the same task, most likely for want of memory: make "
            "partitions smaller with ddf.repartition(partition_size='50MB'), or give workers more. If "
            "they were taken away for other reasons, let more of them go: "
            "dask.config.set({'distributed.scheduler.allowed-failures': 20}) before the cluster starts"
        ) from error
    finally:
        future.release()  # what nobody waits for any more is not begun


def _released(tasks: Sequence[Any] | None) -> None:
    """Workers forget these."""
    if tasks is not None:
        from distributed import futures_of

        # To cancel them would do, but for tasks that still depend on them: over those the scheduler
        # trips, and with it the connection to it.
        for future in futures_of(tasks):
            future.release()


def _traceback_of_task(traceback: TracebackType | None) -> TracebackType | None:
    """Without how Dask came to run the task; all of it where the task was not ours."""
    link = traceback
    while link is not None:
        if link.tb_frame.f_code.co_name in _TASKS:
            return link
        link = link.tb_next
    return traceback


def _client() -> Any:
    """The client that Dask would compute with; None where that is a scheduler in this process."""
    if "distributed" not in sys.modules:
        return None
    from dask.base import get_scheduler
    from distributed import Client

    owner = getattr(get_scheduler(), "__self__", None)
    return owner if isinstance(owner, Client) else None


ENGINE = Engine(
    is_dask_frame,
    lambda table, _: DaskSource(table),
    lambda _: "a Dask frame: take some of them, for example with X.head(1000)",
)
