"""Tables that this process reads: threads, tables kept in memory, results and output files.

An engine lists columns and yields chunks (`LocalSource.groups`); everything else is shared here.
"""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain
from typing import Any

import numpy as np

from lanam.core.blas import limited_threads
from lanam.core.rows.tables import EncodedRows, Job, Merge, Totals, add
from lanam.data import UnseenValues, collect_unseen, merge_unseen, warn_unseen
from lanam.engines.formats import LARGEST_CHUNK
from lanam.engines.interface import (
    Chunk,
    ProgressHook,
    ReadOptions,
    Result,
    ResultColumns,
    RowOutput,
    Source,
    in_chunk,
)
from lanam.engines.writing import ENDING, open_table, output_format, parquet_names
from lanam.files import open_folder, require_folder, require_place

#: Opens a file for a schema; `lanam.engines.writing.open_table` of a path.
Open = Callable[[Any], AbstractContextManager[Any]]


class Pass:
    """One pass over the rows, by several threads; an error in one of them stops all."""

    def __init__(self, progress: ProgressHook | None = None, n_rows: int | None = None) -> None:
        self._progress, self._n_rows = progress, n_rows
        self._done = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def count(self, n_rows: int) -> None:
        """Count rows that are done."""
        if self._stopped.is_set():
            raise _StoppedError
        if self._progress is not None:
            with self._lock:
                self._done += n_rows
                self._progress(self._done, self._n_rows)

    def run(
        self, work: Sequence[Callable[[], Result]], n_threads: int | None = None
    ) -> list[Result]:
        """The results of all tasks, in order; by default one thread per task."""
        n_threads = min(n_threads or len(work), len(work))
        if n_threads == 1:
            return [each() for each in work]
        # Parallelise here or in BLAS, not both.
        with limited_threads(1), ThreadPoolExecutor(n_threads) as pool:
            futures = [pool.submit(each) for each in work]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:  # also after Ctrl-C
                if not all(future.done() for future in futures):
                    self._stopped.set()
                    pool.shutdown(wait=False, cancel_futures=True)
        finished = [future for future in futures if not future.cancelled()]
        errors = [error for future in finished if (error := future.exception()) is not None]
        if errors:
            raise next(error for error in errors if not isinstance(error, _StoppedError))
        return [future.result() for future in futures]


def _closed(work: Callable[[Iterable[Chunk]], Result], group: Iterator[Chunk]) -> Result:
    """The result for a group, whose reader is closed even while the traceback of an error holds it."""
    try:
        return work(group)
    finally:
        if isinstance(group, Generator):
            group.close()


class _StoppedError(Exception):
    """Raised in threads whose results are no longer needed."""


class LocalSource(Source):
    """A table that this process reads."""

    options: ReadOptions

    @abstractmethod
    def groups(self, columns: Sequence[str], run: Pass) -> list[Iterator[Chunk]]:
        """All chunks as Arrow tables, in groups of consecutive ones: one group per thread.

        ``run.count`` is called for the rows that are read.
        """

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """The number of rows; None if it is known only after reading."""

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(self.empty().column_names)

    @property
    def memory(self) -> int:
        """Bytes available for keeping the encoded table between passes."""
        return self.options.memory

    def parts(self) -> list[tuple[str, LocalSource]]:
        """The sub-tables that are written to one file each in a folder, and names for the files."""
        return [("rows.parquet", self)]

    def each(self, columns: Sequence[str]) -> Iterator[Chunk]:
        """All chunks one after the other, read by the calling thread."""
        return chain.from_iterable(self.groups(columns, Pass(self.options.progress, self.n_rows)))

    def run(
        self, columns: Sequence[str], work: Callable[[Iterable[Chunk]], Result]
    ) -> list[Result]:
        """Apply ``work`` to each group of chunks, one thread per group; results in order."""
        run = Pass(self.options.progress, self.n_rows)
        return run.run([partial(_closed, work, group) for group in self.groups(columns, run)])

    def reduce(
        self,
        columns: Sequence[str],
        function: Callable[[Iterable[Chunk]], Result],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """Map-reduce over these columns of all chunks."""
        return reduce(merge, self.run(columns, function))

    def encoded(
        self, columns: Sequence[str], encode: Callable[[Chunk], EncodedRows]
    ) -> LocalTables:
        """The rows as arrays."""
        return LocalTables(self, tuple(columns), encode)

    def map(
        self, columns: Sequence[str], function: Callable[[Chunk], Any], result: ResultColumns
    ) -> Any:
        """Apply a function row-wise: arrays of all rows, and one warning for unseen values."""
        gathered = self.reduce(columns, partial(_gather, function), _Gathered.followed_by)
        warn_unseen(merge_unseen(gathered.unseen, gathered.n_rows))
        return gathered.joined()

    def write(
        self,
        rows: RowOutput,
        output: Any,
        overwrite: bool,
        progress: Callable[[int], None] | None,
    ) -> int:
        """Write the output for all rows: to one file, or to one file per part in a folder."""
        if not os.path.isdir(output) and output_format(output) is not None:
            path = require_place(output, "out.parquet", overwrite=overwrite)
            return self.write_to(partial(open_table, path, overwrite=overwrite), rows, progress)
        target = require_folder(output, overwrite=overwrite, ending=ENDING)
        names, parts = zip(*self.parts(), strict=True)
        with open_folder(target, overwrite=overwrite, ending=ENDING) as folder:
            paths = [folder / name for name in parquet_names(names)]
            for path in paths:
                path.parent.mkdir(parents=True, exist_ok=True)
            opened = [partial(open_table, path) for path in paths]
            written = self._write_parts(parts, opened, rows, progress)
        return _warn_of_unseen(written)

    def write_to(
        self, opened: Open, rows: RowOutput, progress: Callable[[int], None] | None
    ) -> int:
        """Write the output for all rows to what ``opened`` opens."""
        return _warn_of_unseen(self._write_parts([self], [opened], rows, progress))

    def _write_parts(
        self,
        parts: Sequence[LocalSource],
        opened: Sequence[Open],
        rows: RowOutput,
        progress: Callable[[int], None] | None,
    ) -> list[_Gathered]:
        schema = rows.schema(self.empty())
        run = Pass(None if progress is None else lambda done, _: progress(done))
        work = [
            partial(_write, run, rows, schema, file, part.each(rows.columns))
            for file, part in zip(opened, parts, strict=True)
        ]
        return run.run(work, self.options.n_jobs)


class LocalTables:
    """The rows of a source as `lanam.core.rows.tables.Tables`.

    They are read and encoded again in every pass, unless the encoded rows fit in the source's ``memory``.
    """

    def __init__(
        self, source: LocalSource, columns: tuple[str, ...], encode: Callable[[Chunk], EncodedRows]
    ) -> None:
        self._source, self._columns, self._encode = source, columns, encode
        empty = Chunk(source.empty().select(columns), source.title, 0, 0)
        self.n_columns = int(encode(empty).columns.shape[1])
        self._kept: list[list[EncodedRows]] = []

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """Map-reduce over all tables."""
        if self._kept:
            return reduce(merge, Pass().run([partial(job, tables) for tables in self._kept]))
        source = self._source
        keeping = _Keeping(source.memory) if source.memory > 0 else None
        results = source.run(self._columns, partial(_total, self._encode, job, keeping))
        totals = [result for result in results if result is not None]
        if not totals:
            raise ValueError(
                f"{source.title} has no row with a positive weight: nothing is left to fit"
            )
        self._kept = [] if keeping is None else keeping.tables(source.options.n_jobs)
        return reduce(merge, totals)


def _total(
    encode: Callable[[Chunk], EncodedRows],
    job: Job,
    keeping: _Keeping | None,
    chunks: Iterable[Chunk],
) -> Totals | None:
    """The totals of some chunks; None if no row has a positive weight."""
    tables = joined(map(encode, chunks))
    some = _unless_empty(tables if keeping is None else keeping.noted(tables))
    return None if some is None else job(some)


def _unless_empty(tables: Iterator[EncodedRows]) -> Iterator[EncodedRows] | None:
    # A separate function, so that no variable holds the first table while others are read.
    for first in tables:
        return chain(iter([first]), tables)
    return None


def joined(tables: Iterable[EncodedRows]) -> Iterator[EncodedRows]:
    """Concatenate small consecutive tables: a job has a cost per table."""
    waiting: list[EncodedRows] = []
    enough = LARGEST_CHUNK // 2
    for table in tables:
        if waiting and len(table) >= enough:
            yield _concatenated(waiting)
            waiting = []
        if len(table):
            waiting.append(table)
        if sum(map(len, waiting)) >= enough:
            waiting = [_concatenated(waiting)]
            yield waiting.pop()
    if waiting:
        yield _concatenated(waiting)


def _concatenated(tables: Sequence[EncodedRows]) -> EncodedRows:
    if len(tables) == 1:
        return tables[0]
    columns = np.empty((sum(map(len, tables)), tables[0].columns.shape[1]), order="F")
    np.concatenate([table.columns for table in tables], out=columns)
    rows = EncodedRows(
        columns,
        np.concatenate([table.response for table in tables]),
        np.concatenate([table.weight for table in tables]),
        tables[0].number,
    )
    extras = zip(*(table.extras for table in tables), strict=True)
    return rows.with_extras(*map(np.concatenate, extras))


class _Keeping:
    """Keeps tables while they are read, as long as all of them fit."""

    def __init__(self, memory: int) -> None:
        self._left = memory
        self._lock = threading.Lock()
        self._kept: list[list[EncodedRows]] = []
        self._n_complete = 0

    def noted(self, tables: Iterator[EncodedRows]) -> Iterator[EncodedRows]:
        """The same tables, which are kept."""
        group: list[EncodedRows] = []
        self._kept.append(group)
        for table in tables:
            with self._lock:
                self._left -= table.columns.nbytes + table.response.nbytes + table.weight.nbytes
            if self._left >= 0:
                group.append(table)
            else:
                group.clear()
            yield table
        with self._lock:
            self._n_complete += 1

    def tables(self, n_jobs: int) -> list[list[EncodedRows]]:
        """All tables in groups, one per thread; nothing if some do not fit or were not read."""
        if self._left < 0 or self._n_complete < len(self._kept):
            return []
        groups = sorted((group for group in self._kept if group), key=lambda some: some[0].number)
        if len(groups) > 1:
            return groups
        cuts = np.array_split(np.arange(len(groups[0])), min(n_jobs, len(groups[0])))
        return [groups[0][cut[0] : cut[-1] + 1] for cut in cuts]


@dataclass(frozen=True)
class _Gathered:
    """The number of rows, unseen values in them, and results, one part per chunk."""

    n_rows: int = 0
    unseen: list[UnseenValues] = field(default_factory=list)
    parts: deque[Any] = field(default_factory=deque)

    def followed_by(self, other: _Gathered) -> _Gathered:
        """Append the results for the rows that follow, which are moved here."""
        self.parts.extend(other.parts)
        return _Gathered(self.n_rows + other.n_rows, self.unseen + other.unseen, self.parts)

    def joined(self) -> Any:
        """One array of all rows, or several in a tuple; the parts are removed."""
        if not isinstance(self.parts[0], tuple):
            return _drained(self.parts, self.n_rows)
        arrays = [deque(part) for part in zip(*self.parts, strict=True)]
        self.parts.clear()
        return tuple(_drained(parts, self.n_rows) for parts in arrays)


def _gather(function: Callable[[Chunk], Any], chunks: Iterable[Chunk]) -> _Gathered:
    return reduce(_Gathered.followed_by, (_of_chunk(function, chunk) for chunk in chunks))


def _of_chunk(function: Callable[[Chunk], Any], chunk: Chunk) -> _Gathered:
    with collect_unseen() as unseen, in_chunk(chunk):
        result = function(chunk)
    return _Gathered(len(chunk.frame), unseen, deque([result]))


def _drained(parts: deque[Any], n_rows: int) -> np.ndarray:
    """Concatenate parts, each of which is freed once it is copied: rows are in memory once."""
    whole = np.empty((n_rows, *parts[0].shape[1:]), parts[0].dtype)
    start = 0
    while parts:
        part = parts.popleft()
        whole[start : start + len(part)] = part
        start += len(part)
    return whole


def _write(
    run: Pass, rows: RowOutput, schema: Any, opened: Open, chunks: Iterable[Chunk]
) -> _Gathered:
    """Write the output for some chunks to one file."""
    total = _Gathered()
    with opened(schema) as writer:
        for chunk in chunks:
            written = _of_chunk(partial(rows.table, schema=schema), chunk)
            writer.write_table(written.parts.pop())
            total = total.followed_by(written)
            run.count(len(chunk.frame))
    return total


def _warn_of_unseen(written: Sequence[_Gathered]) -> int:
    """Warn of the unseen values in all parts, once; returns the number of rows."""
    total = reduce(_Gathered.followed_by, written)
    warn_unseen(merge_unseen(total.unseen, total.n_rows))
    return total.n_rows
