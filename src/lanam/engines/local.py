"""Tables that this process reads batch by batch: what every such engine shares.

An engine says what columns there are and yields chunks (`LocalSource.groups`); going over them by threads,
keeping what fits in memory, gathering results and writing them is done here.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain
from typing import Any, Self

import numpy as np

from lanam.core.blas import limited_threads
from lanam.core.rows.tables import Job, Merge, Table, Totals, add
from lanam.data import UnseenValues, add_up, collect_unseen, warn_of
from lanam.engines.dialects import Dialect
from lanam.engines.formats import LARGEST_CHUNK
from lanam.engines.interface import (
    Chunk,
    Columns,
    Hook,
    Parse,
    Predicted,
    Reading,
    Result,
    unnamed_target,
)
from lanam.engines.output import write_parts
from lanam.engines.places import in_chunk


class Pass:
    """One pass over the rows, by several threads that stop together."""

    def __init__(self, progress: Hook | None = None, n_rows: int | None = None) -> None:
        self._progress, self._n_rows = progress, n_rows
        self._done = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def read(self, n_rows: int) -> None:
        """Count rows that were read."""
        if self._stopped.is_set():
            raise _StoppedError
        if self._progress is not None:
            with self._lock:
                self._done += n_rows
                self._progress(self._done, self._n_rows)

    def run(self, work: Sequence[Callable[[], Result]]) -> list[Result]:
        """What each task returns, done in a thread each; the first error ends all."""
        if len(work) == 1:
            return [work[0]()]
        # Threads of ours or of BLAS, not both.
        with limited_threads(1), ThreadPoolExecutor(len(work)) as pool:
            running = [pool.submit(each) for each in work]
            try:
                wait(running, return_when=FIRST_EXCEPTION)
            finally:  # whatever happened, Ctrl-C too: nobody goes on for nothing
                if not all(each.done() for each in running):
                    self._stopped.set()
        errors = [error for each in running if (error := each.exception()) is not None]
        if errors:
            raise next(error for error in errors if not isinstance(error, _StoppedError))
        return [each.result() for each in running]


class _StoppedError(Exception):
    """Raised in threads whose work is no longer wanted."""


class LocalSource(ABC):
    """A table that this process reads: a `Source`, of which an engine writes four methods.

    Attributes
    ----------
    title
        What messages call it.
    reading
        How it may be read.
    """

    title: str
    reading: Reading

    @abstractmethod
    def empty(self) -> Any:
        """An arrow table of no rows with the columns' types."""

    @abstractmethod
    def groups(self, columns: Sequence[str], run: Pass) -> list[Iterator[Chunk]]:
        """All chunks as arrow tables, neighbours together: a group for each thread that may read.

        Rows that are read are counted by ``run.read``.
        """

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """How many rows there are; None where only reading tells."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """What is the same as long as the rows are."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(self.empty().column_names)

    @property
    def dialect(self) -> Dialect | None:
        """How its text is written, as far as that was said; None where it is no text."""
        return None

    @property
    def memory(self) -> int:
        """Bytes that may hold the encoded table from pass to pass."""
        return self.reading.memory

    def unnamed(self) -> Exception:
        """The error for a target that is not the name of a column."""
        return unnamed_target(self.title, self.names)

    def typed(self, types: Mapping[str, Any]) -> Self:
        """The same table: as a rule its columns have types."""
        return self

    def require_numbers(self, names: Iterable[str]) -> None:  # noqa: B027 (a default)
        """Nothing: as a rule columns have types."""

    def verbatim(self, names: Iterable[str], parsed: Collection[str]) -> tuple[Self, Parse | None]:
        """The same table: as a rule its columns have types."""
        return self, None

    def parts(self) -> list[tuple[str, LocalSource]]:
        """What is written to a file each where results go to a folder, and the files' names."""
        return [("rows.parquet", self)]

    def each(self, columns: Sequence[str]) -> Iterator[Chunk]:
        """All chunks one after the other, read by the calling thread."""
        return chain.from_iterable(self.groups(columns, Pass(self.reading.progress, self.n_rows)))

    def run(
        self, columns: Sequence[str], work: Callable[[Iterable[Chunk]], Result]
    ) -> list[Result]:
        """What ``work`` makes of each group of chunks, a thread each; in order."""
        run = Pass(self.reading.progress, self.n_rows)
        return run.run([partial(work, group) for group in self.groups(columns, run)])

    def reduce(
        self,
        columns: Sequence[str],
        function: Callable[[Iterable[Chunk]], Result],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """What ``function`` makes of all chunks, reading these columns only."""
        return reduce(merge, self.run(columns, function))

    def encoded(self, columns: Sequence[str], encode: Callable[[Chunk], Table]) -> LocalTables:
        """The rows as the core wants them; those that do not count are left out."""
        return LocalTables(self, tuple(columns), encode)

    def map(self, columns: Sequence[str], function: Callable[[Chunk], Any], result: Columns) -> Any:
        """What ``function`` says of each row, as arrays; what is new in the rows is warned of once."""
        found = self.reduce(columns, partial(_gather, function), _Found.with_next)
        warn_of(add_up(found.unseen, found.n_rows))
        return found.joined()

    def write(
        self,
        rows: Predicted,
        output: Any,
        overwrite: bool,
        progress: Callable[[int], None] | None,
    ) -> int:
        """Write what is made of the rows: a file for each part, or one for all."""
        return write_parts(self, rows, output, overwrite, progress)


class LocalTables:
    """The rows of a source as the core wants them: `lanam.core.rows.tables.Tables`.

    They are read and encoded anew for every total, unless all fits in the source's ``memory``.
    """

    def __init__(
        self, source: LocalSource, columns: tuple[str, ...], encode: Callable[[Chunk], Table]
    ) -> None:
        self._source, self._columns, self._encode = source, columns, encode
        nothing = Chunk(source.empty().select(columns), source.title, 0, 0)
        self._n_columns = int(encode(nothing).columns.shape[1])
        self._kept: list[list[Table]] = []

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return self._n_columns

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """What a job says of all chunks."""
        if self._kept:
            return reduce(merge, Pass().run([partial(job, tables) for tables in self._kept]))
        source = self._source
        keeping = _Keeping(source.memory) if source.memory > 0 else None
        results = source.run(self._columns, partial(_say, self._encode, job, keeping))
        said = [result for result in results if result is not None]
        if not said:
            raise ValueError(
                f"{source.title} has no row with a positive weight: nothing is left to fit"
            )
        self._kept = [] if keeping is None else keeping.tables(source.reading.n_jobs)
        return reduce(merge, said)


def _say(
    encode: Callable[[Chunk], Table],
    job: Job,
    keeping: _Keeping | None,
    chunks: Iterable[Chunk],
) -> Totals | None:
    """What a job says of some chunks; nothing where no row counts."""
    tables = joined(map(encode, chunks))
    some = _unless_none(tables if keeping is None else keeping.noted(tables))
    return None if some is None else job(some)


def _unless_none(tables: Iterator[Table]) -> Iterator[Table] | None:
    # A function of its own and an iterator, so that nobody holds the first table while others are read.
    for first in tables:
        return chain(iter([first]), tables)
    return None


def joined(tables: Iterable[Table]) -> Iterator[Table]:
    """Small tables together, because each costs a job something however small it is."""
    waiting: list[Table] = []
    enough = LARGEST_CHUNK // 2
    for table in tables:
        if waiting and len(table) >= enough:
            yield _below_each_other(waiting)
            waiting = []
        if len(table):
            waiting.append(table)
        if sum(map(len, waiting)) >= enough:
            waiting = [_below_each_other(waiting)]
            yield waiting.pop()
    if waiting:
        yield _below_each_other(waiting)


def _below_each_other(tables: Sequence[Table]) -> Table:
    if len(tables) == 1:
        return tables[0]
    shape = sum(map(len, tables)), tables[0].columns.shape[1]
    columns = np.empty(shape, order="F")
    np.concatenate([table.columns for table in tables], out=columns)
    return Table(
        columns,
        np.concatenate([table.response for table in tables]),
        np.concatenate([table.weight for table in tables]),
        tables[0].number,
    )


class _Keeping:
    """Tables that are kept as they go by, as long as all of them fit."""

    def __init__(self, memory: int) -> None:
        self._left = memory
        self._lock = threading.Lock()
        self._kept: list[list[Table]] = []
        self._n_whole = 0

    def noted(self, tables: Iterator[Table]) -> Iterator[Table]:
        """The same tables."""
        mine: list[Table] = []
        self._kept.append(mine)
        for table in tables:
            with self._lock:
                self._left -= table.columns.nbytes + table.response.nbytes + table.weight.nbytes
            if self._left >= 0:
                mine.append(table)
            else:
                mine.clear()
            yield table
        with self._lock:
            self._n_whole += 1

    def tables(self, n_jobs: int) -> list[list[Table]]:
        """What was kept, if that is all; what one thread read is shared out among all."""
        if self._left < 0 or self._n_whole < len(self._kept):
            return []
        kept = sorted((some for some in self._kept if some), key=lambda some: some[0].number)
        if len(kept) > 1:
            return kept
        cuts = np.array_split(np.arange(len(kept[0])), min(n_jobs, len(kept[0])))
        return [kept[0][cut[0] : cut[-1] + 1] for cut in cuts]


@dataclass(frozen=True)
class _Found:
    """Results for some rows, a part a chunk, and what was new in them."""

    parts: deque[Any]
    unseen: list[UnseenValues] = field(default_factory=list)
    n_rows: int = 0

    def with_next(self, other: _Found) -> _Found:
        """The same with the results for the rows that follow, which are moved here."""
        self.parts.extend(other.parts)
        return _Found(self.parts, self.unseen + other.unseen, self.n_rows + other.n_rows)

    def joined(self) -> Any:
        """One array of all rows, or several in a tuple; the parts are gone then."""
        first = self.parts[0]
        if not isinstance(first, tuple):
            return _drained(self.parts, self.n_rows)
        each = [deque(part) for part in zip(*self.parts, strict=True)]
        self.parts.clear()
        return tuple(_drained(parts, self.n_rows) for parts in each)


def _gather(function: Callable[[Chunk], Any], chunks: Iterable[Chunk]) -> _Found:
    """The results for some chunks."""
    return reduce(_Found.with_next, (_of_chunk(function, chunk) for chunk in chunks))


def _of_chunk(function: Callable[[Chunk], Any], chunk: Chunk) -> _Found:
    with collect_unseen() as unseen, in_chunk(chunk):
        result = function(chunk)
    return _Found(deque([result]), unseen, len(chunk.frame))


def _drained(parts: deque[Any], n_rows: int) -> np.ndarray:
    """One array of all parts, each of which is let go when it was copied: rows are in memory once."""
    whole = np.empty((n_rows, *parts[0].shape[1:]), parts[0].dtype)
    start = 0
    while parts:
        part = parts.popleft()
        whole[start : start + len(part)] = part
        start += len(part)
    return whole
