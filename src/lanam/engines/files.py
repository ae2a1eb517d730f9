"""Tables in files that need not fit in memory: Parquet, CSV and Arrow, one file or many.

Files are read part by part and again in every pass; each thread holds one chunk and the table encoded from
it. Large tables are read by processes instead of threads: jobs consist of many short steps, between which
threads would wait for Python's lock.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from lanam.core.blas import limited_threads
from lanam.engines.allocation import freed_memory_kept
from lanam.engines.delimited import Csv, PeekableStream
from lanam.engines.dialects import CsvFiles, Dialect
from lanam.engines.finding import common_format, find_files
from lanam.engines.formats import LARGEST_CHUNK, Format, arrow
from lanam.engines.interface import Chunk, Engine, Parse, ReadOptions, Result, RowOutput
from lanam.engines.local import LocalSource, Pass
from lanam.engines.types import File, folder_column, inspect_files
from lanam.errors import InputError

#: Tables of at least this many rows, or bytes where the rows are not counted yet, are read by processes.
_MANY_ROWS = 1 << 20
_MANY_BYTES = 1 << 27

#: More chunks than any part of a file has: it numbers chunks before they are read.
_MOST_CHUNKS = 1 << 20


def open_files(path: Any, *, empty: bool = False, **options: Any) -> FileSource:
    """Open a table in one file or in many; only headers and metadata are read.

    Parameters
    ----------
    path : str, path-like, sequence of these, or CsvFiles
        A file, a folder, a pattern such as ``"sales/*.parquet"``, or several of these. Folders are searched
        recursively, without files whose name begins with a dot or an underscore. Files are read in the
        order of their names; names of folders like ``year=2024`` become columns.
    empty : bool, default=False
        Whether the table may have no rows.
    **options
        See `ReadOptions`.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> table = pa.table({"age": [40, 61, 50], "city": ["Rome", "Bonn", None]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/a.parquet", row_group_size=2)
    ...     source = open_files(folder)
    ...     source.names, source.n_rows
    (('age', 'city'), 3)
    """
    return _open(path, ReadOptions(**options), empty)


def _open(table: Any, options: ReadOptions, empty: bool = False) -> FileSource:
    arrow()
    n_jobs = options.n_jobs
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs < 1:
        raise ValueError(f"n_jobs={n_jobs!r} must be a positive integer")
    csv = table if isinstance(table, CsvFiles) else None
    path = table if csv is None else csv.path
    several = isinstance(path, Sequence) and not isinstance(path, str)
    paths = [os.fspath(each) for each in (path if several else [path])]
    if not paths:
        raise ValueError("the list of files is empty: pass a file or a folder")
    files = find_files(paths, any_name=csv is not None)
    kind = common_format([file for file, _ in files]) if csv is None else Csv()
    if isinstance(kind, Csv):
        dialect = (Dialect() if csv is None else csv.dialect).filled(options.dialect)
        kind = Csv(dialect, options.block_size, options.types)
    title = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    source = FileSource(title, kind, options, *inspect_files(files, kind))
    if not (source._units or empty):
        raise ValueError(f"{title} has no rows: is it the right table?")
    return source


def open_stream(stream: PeekableStream, title: str, dialect: Dialect, **options: Any) -> FileSource:
    """Open a stream of CSV, which is read only once if types are given; see `open_files`."""
    read = ReadOptions(**options)
    content = stream.readall() if read.types is None else stream
    kind = Csv(dialect, read.block_size, read.types, content)
    return FileSource(title, kind, read, *inspect_files([(title, title)], kind))


@dataclass(frozen=True)
class _Unit:
    """A part of a file, which one thread reads; ``number`` is that of its first chunk."""

    file: File
    part: int
    size: int
    number: int


def _units(files: Iterable[File]) -> Iterator[_Unit]:
    """The parts of all files that have rows."""
    parts = (
        (file, part, n_rows)
        for file in files
        for part, n_rows in enumerate(file.rows)
        if n_rows != 0
    )
    for count, (file, part, n_rows) in enumerate(parts):
        size = n_rows or (os.path.getsize(file.path) if os.path.isfile(file.path) else 1)
        yield _Unit(file, part, size, count * _MOST_CHUNKS)


def _split(units: Sequence[_Unit], n_groups: int) -> list[list[_Unit]]:
    """Groups of consecutive units, of about the same size."""
    sizes = np.array([unit.size for unit in units])
    middles = np.cumsum(sizes) - 0.5 * sizes
    group = (middles / sizes.sum() * n_groups).astype(int).tolist()
    together = groupby(zip(group, units, strict=True), key=lambda pair: pair[0])
    return [[unit for _, unit in pairs] for _, pairs in together]


@dataclass(frozen=True, eq=False)
class FileSource(LocalSource):
    """A table in files, as `open_files` returns it; ``types`` are Arrow types of the columns."""

    title: str
    _format: Format
    options: ReadOptions
    _files: tuple[File, ...]
    types: Mapping[str, Any]
    # Of CSV files: types that replace inferred ones, errors for string columns that are numeric but for a
    # few cells, columns to read as unparsed strings, and the number of rows of files that were read.
    _given: Mapping[str, Any]
    _odd: Mapping[str, InputError]
    _verbatim: frozenset[str] = frozenset()
    _counted: dict[str, int] = field(default_factory=dict)
    # The parts of files to read; None for all.
    _group: tuple[_Unit, ...] | None = None

    def empty(self) -> Any:
        """An Arrow table without rows that has the columns' types."""
        return arrow().schema(list(self.types.items())).empty_table()

    @property
    def has_types(self) -> bool:
        """Whether the files have types; CSV files have none."""
        return self._format.typed

    @property
    def dialect(self) -> Dialect | None:
        """The dialect of CSV files as far as it was specified; None for other files."""
        return self._format.dialect if isinstance(self._format, Csv) else None

    @property
    def found_delimiter(self) -> str | None:
        """The delimiter found in the first CSV file, if it is neither specified nor the usual one."""
        return (
            self._format.found_delimiter(self.paths[0]) if isinstance(self._format, Csv) else None
        )

    def with_types(self, types: Mapping[str, Any]) -> FileSource:
        """See `Source`."""
        given = {name: kind for name, kind in types.items() if name in self._file_columns}
        if self.has_types or not given:
            return self
        return replace(self, types={**self.types, **given}, _given={**self._given, **given})

    def require_numeric(self, names: Iterable[str]) -> None:
        """See `Source`; the error names the column, the cell, its place and the remedy."""
        for name in names:
            if name in self._odd and name not in self._given:
                raise self._odd[name]

    def verbatim(
        self, names: Iterable[str], parsed: Collection[str] = ()
    ) -> tuple[FileSource, Parse | None]:
        """See `Source`."""
        if not isinstance(self._format, Csv):
            return self, None
        columns = self._file_columns.intersection(names)
        source = self.with_types(dict.fromkeys(columns, arrow().string()))
        source = replace(source, _verbatim=columns)
        types = {name: self.types[name] for name in columns.intersection(parsed)}
        return source, partial(self._format.parsed, types) if types else None

    @property
    def _units(self) -> tuple[_Unit, ...]:
        return tuple(_units(self._files)) if self._group is None else self._group

    @property
    def _file_columns(self) -> frozenset[str]:
        """The columns that are in the files themselves."""
        return frozenset().union(*(file.columns for file in self._files))

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return tuple(file.path for file in self._files)

    @property
    def changed(self) -> tuple[str, ...]:
        """The files that were changed or replaced since they were opened."""
        return tuple(file.path for file in self._files if file.is_changed)

    @property
    def memory(self) -> int:
        """Bytes available for keeping the encoded table: none here if processes read it."""
        return 0 if self.large else self.options.memory

    def write(
        self,
        rows: RowOutput,
        output: Any,
        overwrite: bool,
        progress: Callable[[int], None] | None,
    ) -> int:
        """Write the output for all rows, but not over the files that are read."""
        target = os.path.realpath(output)
        for read in map(os.path.realpath, self.paths):
            if read == target or read.startswith(target + os.sep):
                raise ValueError(
                    f"{output} would be overwritten while it is read: choose another name"
                )
        return super().write(rows, output, overwrite, progress)

    def parts(self) -> list[tuple[str, LocalSource]]:
        """The table of each file, which may have no rows, and the file's name."""
        return [(file.name, replace(self, title=file.path, _files=(file,))) for file in self._files]

    @property
    def n_rows(self) -> int | None:
        """The number of rows; None for CSV files that have not been read yet."""
        rows = [
            self._counted.get(file.path) if n_rows is None else n_rows
            for file in self._files
            for n_rows in file.rows
        ]
        counts = [n_rows for n_rows in rows if n_rows is not None]
        return sum(counts) if len(counts) == len(rows) else None

    @property
    def fingerprint(self) -> str:
        """A hash of the files' names, sizes, times and numbers of rows, and of the dialect."""
        content: list[Any] = []
        for file in self._files:
            stat = os.stat(file.path)
            content.append((Path(file.name).as_posix(), stat.st_size, stat.st_mtime_ns, file.rows))
        if self.dialect is not None:
            content.append(repr(self.dialect))
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def run(
        self, columns: Sequence[str], work: Callable[[Iterable[Chunk]], Result]
    ) -> list[Result]:
        """Apply ``work`` to each group of chunks, one thread or process per group; results in order."""
        try:
            return self._in_processes(columns, work) if self.large else super().run(columns, work)
        except Exception:  # values that no earlier pass has seen are in a file that was changed
            for file in self._files:
                file.require_unchanged()
            raise

    @property
    def large(self) -> bool:
        """Whether to read the table with processes."""
        n_rows = self.n_rows
        size = sum(unit.size for unit in self._units)
        return (
            self.options.processes
            and self.options.n_jobs > 1
            and (size >= _MANY_BYTES if n_rows is None else n_rows >= _MANY_ROWS)
        )

    def _in_processes(
        self, columns: Sequence[str], work: Callable[[Iterable[Chunk]], Result]
    ) -> list[Result]:
        from joblib import Parallel, delayed

        n_jobs, progress = self.options.n_jobs, self.options.progress
        groups = [
            replace(self, options=ReadOptions(), _group=tuple(group), _counted={})
            for group in _split(self._units, n_jobs)
        ]
        # The processes stay for the next pass; arguments are not memory-mapped to disk.
        results = Parallel(n_jobs=n_jobs, backend="loky", max_nbytes=None)(
            delayed(_in_process)(columns, work, group, os.getcwd()) for group in groups
        )
        for _, counted in results:
            self._counted.update(counted)
        if progress is not None and self.n_rows is not None:
            progress(self.n_rows, self.n_rows)
        return [result for result, _ in results]

    def groups(self, columns: Sequence[str], run: Pass) -> list[Iterator[Chunk]]:
        """All chunks, one group per thread."""
        groups = _split(self._units, self.options.n_jobs) if self._units else []
        return [self._read(columns, group, run) for group in groups]

    def _read(self, columns: Sequence[str], units: Sequence[_Unit], run: Pass) -> Iterator[Chunk]:
        for file, of_file in groupby(units, key=lambda unit: unit.file):
            numbers = {unit.part: unit.number for unit in of_file}
            types = {name: self._read_as(name) for name in columns if name in file.columns}
            n_rows = 0
            with file.unchanged():
                for batch in self._format.read(file.path, list(numbers), types):
                    rows = batch.rows
                    run.count(rows.num_rows)
                    place = file.path + self._format.place(batch.part, len(file.rows))
                    for start in range(0, rows.num_rows, self._chunk_size):
                        frame = _frame(file, columns, rows.slice(start, self._chunk_size))
                        yield Chunk(frame, place, batch.first_row + start, numbers[batch.part])
                        numbers[batch.part] += 1
                    n_rows += rows.num_rows
            if None in file.rows:
                self._counted[file.path] = n_rows

    @property
    def _chunk_size(self) -> int:
        """The maximum number of rows of a chunk; blocks of CSV files are of the right size already."""
        size = self.options.block_size
        if size is None or not self.has_types:
            return LARGEST_CHUNK
        return min(max(size // (8 * len(self.types)), 1), LARGEST_CHUNK)

    def _read_as(self, name: str) -> Any:
        """The type that a column of a CSV file is parsed as; None for unparsed strings."""
        pa, kind = arrow(), self.types[name]
        if name in self._verbatim:
            return None
        if name in self._given:
            return kind
        # The head of a file may have integers, and the rest fractions.
        return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


def _frame(file: File, columns: Sequence[str], batch: Any) -> Any:
    arrays = [
        batch.column(name)
        if name in file.columns
        else folder_column(*file.folders[name], batch.num_rows)
        for name in columns
    ]
    return arrow().Table.from_arrays(arrays, list(columns))


def _in_process(
    columns: Sequence[str],
    work: Callable[[Iterable[Chunk]], Result],
    source: FileSource,
    folder: str,
) -> tuple[Result, dict[str, int]]:
    """Apply ``work`` to a group of chunks in a worker process; also returns the rows it counted.

    Paths are relative to ``folder``; joblib's workers may have started elsewhere, and also run the user's
    tasks: their state is restored.
    """
    # The other processes use the other cores, whatever the number of threads in the environment.
    with _working_in(folder), freed_memory_kept(), limited_threads(1):
        return work(source.each(columns)), source._counted


@contextmanager
def _working_in(folder: str) -> Iterator[None]:
    """`contextlib.chdir`, for a process whose current folder may have been removed."""
    try:
        before = os.getcwd()
    except FileNotFoundError:
        before = folder
    os.chdir(folder)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.chdir(before)


def _are_files(table: Any) -> bool:
    if isinstance(table, (list, tuple)):
        return bool(table) and all(_are_files(each) for each in table)
    return isinstance(table, (str, os.PathLike, CsvFiles))


ENGINE = Engine(
    _are_files,
    _open,
    lambda table: f"{table!r}: load some rows first, for example with pandas.read_parquet",
)
