"""Tables in files that need not fit in memory: Parquet, CSV and Arrow, one file or many.

Files are read part by part and anew for every pass, by as many threads as are asked for; a thread has
one chunk in memory and the one that it made of it. Where rows are many, processes take the place of
threads: jobs are made of many short steps, and threads of Python would wait for each other between them.
"""

from __future__ import annotations

import glob
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
from lanam.engines.delimited import Csv, Once, usual_delimiter
from lanam.engines.dialects import CsvFiles, Dialect
from lanam.engines.formats import LARGEST_CHUNK, Format, arrow
from lanam.engines.interface import Chunk, Engine, Parse, Predicted, Reading, Result
from lanam.engines.kinds import FORMATS, format_of
from lanam.engines.local import LocalSource, Pass
from lanam.engines.types import folder_column, folder_types, folder_values, holds, unify
from lanam.errors import InputError

#: From so many rows on processes are worth starting; of files whose rows nobody has counted, bytes.
_MANY_ROWS = 1 << 20
_MANY_BYTES = 1 << 27

#: No part of a file is in more chunks than this, by which chunks get numbers before they are read.
_MOST_CHUNKS = 1 << 20


def open_files(path: Any, *, empty: bool = False, **how: Any) -> FileSource:
    """A table in one file or in many, of which only what it holds was read so far.

    Parameters
    ----------
    path : str, path-like, sequence of these, or CsvFiles
        A file, a folder with all data files in it and below, a pattern such as ``"sales/*.parquet"``,
        or several of these. Files whose name begins with a dot or an underscore are skipped in
        folders. They are read in the order of their names; the names of folders like ``year=2024`` are
        columns.
    empty : bool, default=False
        Whether a table without rows will do.
    **how
        How it may be read, as `Reading` has it.

    Raises
    ------
    ValueError
        If there are no such files, they are not of one kind or not whole, or their columns differ.
    ImportError
        Without pyarrow.

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
    return _open(path, Reading(**how), empty)


def _open(table: Any, reading: Reading, empty: bool = False) -> FileSource:
    arrow()
    n_jobs = reading.n_jobs
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs < 1:
        raise ValueError(f"n_jobs={n_jobs!r} is not known: give the number of threads, 1 or more")
    said = table.dialect if isinstance(table, CsvFiles) else None
    path = table.path if isinstance(table, CsvFiles) else table
    several = isinstance(path, Sequence) and not isinstance(path, str)
    asked = [os.fspath(each) for each in (path if several else [path])]
    if not asked:
        raise ValueError("an empty list of files: name a file or a folder")
    found = [pair for each in asked for pair in _found(each, csv=said is not None)]
    kind = _require_one_kind([file for file, _ in found]) if said is None else Csv()
    _require_once([file for file, _ in found])
    if isinstance(kind, Csv):
        dialect = (said or Dialect()).filled(reading.dialect)
        kind = Csv(dialect, reading.block_size, reading.types)
    title = asked[0] if len(asked) == 1 else f"{asked[0]} and {len(asked) - 1} more"
    source = _look(title, found, kind, reading)
    if not (source._units or empty):
        raise ValueError(f"{title} has no rows: is it the right one?")
    return source


def open_stream(stream: Once, title: str, dialect: Dialect, **how: Any) -> FileSource:
    """A table of CSV in a stream, which is read once if types are given; see `open_files`."""
    reading = Reading(**how)
    content = stream.readall() if reading.types is None else stream
    kind = Csv(dialect, reading.block_size, reading.types, content)
    return _look(title, [(title, title)], kind, reading)


def _found(path: str, *, csv: bool) -> list[tuple[str, str]]:
    """Files below a path, and their names below it; of CSV files names need not say what they are."""
    path = os.path.expanduser(path)
    if os.path.isfile(path):
        if format_of(path) is None and not csv:
            raise ValueError(
                f"{path}: the name does not say what the file is: {_endings()} are known"
            )
        return [(path, os.path.basename(path))]
    if os.path.isdir(path):
        files = _below(path, path)
        if not files:
            raise ValueError(
                f"the folder {path} has no data files: their names end in {_endings()}"
            )
        return files
    if not glob.has_magic(path):
        raise ValueError(f"there is no file or folder {path}: mind the spelling, and where you are")
    root = os.path.dirname(path[: next(k for k in range(len(path)) if glob.has_magic(path[k]))])
    matched = sorted(glob.glob(path, recursive=True))
    files = [
        pair
        for each in matched
        for pair in (
            _below(each, root)
            if os.path.isdir(each)
            else [(each, os.path.relpath(each, root or "."))]
        )
    ]
    known = {pair: None for pair in files if csv or format_of(pair[0]) is not None}
    if not known:
        raise ValueError(f"no data file matches {path}: their names end in {_endings()}")
    return list(known)


def _below(folder: str, root: str) -> list[tuple[str, str]]:
    """Data files in a folder and below, by name, and their names below ``root``."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        visible = (name for name in names if not name.startswith((".", "_")))
        found += [os.path.join(place, name) for name in visible if format_of(name) is not None]
    return sorted((path, os.path.relpath(path, root or ".")) for path in found)


def _endings() -> str:
    return ", ".join(ending for kind in FORMATS for ending in kind.endings)


def _require_one_kind(files: Sequence[str]) -> Format:
    """The kind of all files."""
    first: dict[Any, str] = {}
    for path in files:
        first.setdefault(format_of(path), path)
    kinds: list[Format] = list(first)
    if len(kinds) > 1:
        raise ValueError(
            f"{first[kinds[0]]} is {kinds[0].title}, and {first[kinds[1]]} is {kinds[1].title}: pass files "
            f"of one kind, for example by a pattern, *{kinds[0].endings[0]}"
        )
    return kinds[0]


def _require_once(files: Sequence[str]) -> None:
    seen: set[str] = set()
    for path in files:
        if (real := os.path.realpath(path)) in seen:
            raise ValueError(f"{path} is there twice, and its rows would count twice: pass it once")
        seen.add(real)


@dataclass(frozen=True)
class _File:
    """A file.

    Attributes
    ----------
    path, name
        Where it is, and what it is called below what was asked for.
    rows
        How many rows each of its parts has; None where only reading tells.
    own
        Names of its own columns.
    folders
        Values of columns that its folders are named for, and their types.
    """

    path: str
    name: str
    rows: tuple[int | None, ...]
    own: frozenset[str]
    folders: Mapping[str, tuple[str | None, Any]]


def _look(
    title: str, found: Sequence[tuple[str, str]], kind: Format, reading: Reading
) -> FileSource:
    """The table in some files, by what they hold."""
    values = [folder_values(name) for _, name in found]
    known = folder_types(values)
    files, types = [], []
    odd: dict[str, tuple[str, InputError]] = {}
    exact: set[str] = set()
    for (path, name), said in zip(found, values, strict=True):
        contents = kind.look(path)
        # What a file has itself goes before what its folders say.
        folders = {
            column: (value, known[column])
            for column, value in said.items()
            if column not in contents.types
        }
        files.append(_File(path, name, contents.rows, frozenset(contents.types), folders))
        types.append((path, {**contents.types, **{name: known[name] for name in folders}}))
        odd = {**{column: (path, error) for column, error in contents.odd.items()}, **odd}
        exact |= contents.exact
    refused = {column: _among(column, *where, types) for column, where in odd.items()}
    common, units = unify([(path, _texts(own, odd)) for path, own in types]), tuple(_units(files))
    whole = {name: common[name] for name in exact if name not in odd}
    return FileSource(title, kind, tuple(files), common, units, reading, _known=whole, _odd=refused)


def _among(
    column: str, path: str, error: InputError, types: Sequence[tuple[str, Mapping[str, Any]]]
) -> InputError:
    """The error for a few cells of text in a file, where others may have numbers only."""
    others = [other for other, own in types if column in own and holds(own[column]) == "numbers"]
    where = f"column {column!r} holds numbers in {others[0]} and text in {path}: " if others else ""
    return error.located(where)


def _texts(types: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The types of a file, whose numbers are text as well in these columns."""
    texts = [name for name in types if name in names and holds(types[name]) == "numbers"]
    return {**types, **dict.fromkeys(texts, arrow().string())}


@dataclass(frozen=True)
class _Unit:
    """A part of a file, which one thread reads; ``number`` is that of its first chunk."""

    file: _File
    part: int
    size: int
    number: int


def _units(files: Iterable[_File]) -> Iterator[_Unit]:
    """The parts of all files that have rows."""
    filled = (
        (file, part, n_rows)
        for file in files
        for part, n_rows in enumerate(file.rows)
        if n_rows != 0
    )
    for count, (file, part, n_rows) in enumerate(filled):
        size = n_rows or (os.path.getsize(file.path) if os.path.isfile(file.path) else 1)
        yield _Unit(file, part, size, count * _MOST_CHUNKS)


def _shared_out(units: Sequence[_Unit], n_groups: int) -> list[list[_Unit]]:
    """Neighbours together, in groups of about the same size."""
    ends = np.cumsum([unit.size for unit in units])
    middles = ends - 0.5 * np.array([unit.size for unit in units])
    group = (middles / ends[-1] * n_groups).astype(int).tolist()
    together = groupby(zip(group, units, strict=True), key=lambda pair: pair[0])
    return [[unit for _, unit in pairs] for _, pairs in together]


@dataclass(frozen=True, eq=False)
class FileSource(LocalSource):
    """A table in files, as `open_files` finds them."""

    title: str
    _format: Format
    _files: tuple[_File, ...]
    _types: Mapping[str, Any]
    _units: tuple[_Unit, ...]
    reading: Reading
    # Rows of files that only reading tells.
    _counted: dict[str, int] = field(default_factory=dict)
    # Types that columns of CSV files are read as, whatever they begin with.
    _known: Mapping[str, Any] = field(default_factory=dict)
    # Columns of CSV files whose text is read as it is written.
    _as_written: frozenset[str] = frozenset()
    # Columns of text that are numbers but for a few cells, and the error that says so.
    _odd: Mapping[str, InputError] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(self._types)

    @property
    def types(self) -> Mapping[str, Any]:
        """Arrow's types of the columns."""
        return self._types

    def typed(self, types: Mapping[str, Any]) -> FileSource:
        """The same table; of CSV files, which have no types, these columns are read as these."""
        known = {name: kind for name, kind in types.items() if name in self._own()}
        if self.has_types or not known:
            return self
        return replace(self, _types={**self._types, **known}, _known={**self._known, **known})

    @property
    def dialect(self) -> Dialect | None:
        """How CSV files are written, as far as that was said; None of others."""
        return self._format.dialect if isinstance(self._format, Csv) else None

    @property
    def found_delimiter(self) -> str | None:
        """What was found between the columns of the first CSV file, if it is not the usual."""
        if not isinstance(self._format, Csv) or self._format.dialect.delimiter is not None:
            return None
        path = self._files[0].path
        found = self._format.delimiter(path)
        return None if found == usual_delimiter(path) else found

    def require_numbers(self, names: Iterable[str]) -> None:
        """Refuse columns of CSV files that are text because of a few cells among numbers.

        Raises
        ------
        ValueError
            It names the column, the cell, its place and what to do.
        """
        for name in names:
            if name in self._odd and name not in self._known:
                raise self._odd[name]

    def verbatim(
        self, names: Iterable[str], parsed: Collection[str] = ()
    ) -> tuple[FileSource, Parse | None]:
        """See `Source`: only CSV files have text that would be parsed."""
        if not isinstance(self._format, Csv):
            return self, None
        own = self._own().intersection(names)
        source = replace(self.typed(dict.fromkeys(own, arrow().string())), _as_written=own)
        types = {name: self._types[name] for name in own.intersection(parsed)}
        return source, partial(self._format.parsed, types) if types else None

    def _own(self) -> frozenset[str]:
        """Columns that are in the files themselves."""
        return frozenset().union(*(file.own for file in self._files))

    @property
    def has_types(self) -> bool:
        """Whether the files say what their columns hold; CSV files do not."""
        return self._format.typed

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return tuple(file.path for file in self._files)

    @property
    def memory(self) -> int:
        """Bytes that may hold the encoded table: where processes read, nothing is kept here."""
        return 0 if self.large else self.reading.memory

    def write(
        self,
        rows: Predicted,
        output: Any,
        overwrite: bool,
        progress: Callable[[int], None] | None,
    ) -> int:
        """Write what is made of the rows: not over, or among, what is read."""
        target = os.path.realpath(output)
        for path in self.paths:
            read = os.path.realpath(path)
            if read == target or read.startswith(target + os.sep):
                raise ValueError(
                    f"{output} would be written over while it is read: choose another name"
                )
        return super().write(rows, output, overwrite, progress)

    def parts(self) -> list[tuple[str, LocalSource]]:
        """The table of each file, some perhaps without rows, and its name below what was asked for."""
        return [
            (
                file.name,
                replace(
                    self,
                    title=file.path,
                    _files=(file,),
                    _units=tuple(unit for unit in self._units if unit.file is file),
                ),
            )
            for file in self._files
        ]

    @property
    def n_rows(self) -> int | None:
        """How many rows there are; of CSV files None until they were read."""
        rows = [
            self._counted.get(file.path) if n_rows is None else n_rows
            for file in self._files
            for n_rows in file.rows
        ]
        known = [n_rows for n_rows in rows if n_rows is not None]
        return sum(known) if len(known) == len(rows) else None

    @property
    def fingerprint(self) -> str:
        """What is the same as long as the files are: of their names, sizes, times and numbers of rows."""
        told: list[Any] = []
        for file in self._files:
            about = os.stat(file.path)
            told.append((Path(file.name).as_posix(), about.st_size, about.st_mtime_ns, file.rows))
        if self.dialect is not None:
            told.append(repr(self.dialect))
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def empty(self) -> Any:
        """An arrow table of no rows with the columns' types."""
        return arrow().schema(list(self._types.items())).empty_table()

    def run(
        self, columns: Sequence[str], work: Callable[[Iterable[Chunk]], Result]
    ) -> list[Result]:
        """What ``work`` makes of each group of chunks, a thread or a process each; in order."""
        if self.large:
            return self._in_processes(partial(_made_of, columns, work))
        return super().run(columns, work)

    @property
    def large(self) -> bool:
        """Whether processes are worth starting."""
        n_rows = self.n_rows
        size = sum(unit.size for unit in self._units)
        return (
            self.reading.processes
            and self.reading.n_jobs > 1
            and (size >= _MANY_BYTES if n_rows is None else n_rows >= _MANY_ROWS)
        )

    def _in_processes(self, work: Callable[[FileSource], Result]) -> list[Result]:
        """What each of several processes returns, which has a group of neighbouring parts; in order."""
        from joblib import Parallel, delayed

        n_jobs, progress = self.reading.n_jobs, self.reading.progress
        groups = [
            replace(self, reading=Reading(), _units=tuple(group), _counted={})
            for group in _shared_out(self._units, n_jobs)
        ]
        # They stay for the next pass; what they are sent is not put on disk.
        answers = Parallel(n_jobs=n_jobs, backend="loky", max_nbytes=None)(
            delayed(_with_counts)(work, group, os.getcwd()) for group in groups
        )
        for _, counted in answers:
            self._counted.update(counted)
        if progress is not None and self.n_rows is not None:
            progress(self.n_rows, self.n_rows)
        return [answer for answer, _ in answers]

    def groups(self, columns: Sequence[str], run: Pass) -> list[Iterator[Chunk]]:
        """All chunks, a group for each thread."""
        groups = _shared_out(self._units, self.reading.n_jobs) if self._units else []
        return [self._read(columns, group, run) for group in groups]

    def _read(self, columns: Sequence[str], units: Sequence[_Unit], run: Pass) -> Iterator[Chunk]:
        for file, mine in groupby(units, key=lambda unit: unit.file):
            numbers = {unit.part: unit.number for unit in mine}
            types = {
                name: None if name in self._as_written else self._read_as(name)
                for name in columns
                if name in file.own
            }
            n_rows = 0
            for some in self._format.read(file.path, list(numbers), types):
                run.read(some.batch.num_rows)
                place = file.path + self._format.place(some.part, len(file.rows))
                for start in range(0, some.batch.num_rows, self._most_rows):
                    frame = _frame(file, columns, some.batch.slice(start, self._most_rows))
                    yield Chunk(frame, place, some.first_row + start, numbers[some.part])
                    numbers[some.part] += 1
                n_rows += some.batch.num_rows
            if None in file.rows:
                self._counted[file.path] = n_rows

    @property
    def _most_rows(self) -> int:
        """How many rows a chunk may have; of CSV files blocks are smaller already."""
        size = self.reading.block_size
        if size is None or not self.has_types:
            return LARGEST_CHUNK
        return min(max(size // (8 * len(self._types)), 1), LARGEST_CHUNK)

    def _read_as(self, name: str) -> Any:
        """Whole numbers of CSV files are floats: one further down may have a fraction."""
        pa = arrow()
        kind = self._types[name]
        if name in self._known:
            return kind
        return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


def _frame(file: _File, columns: Sequence[str], batch: Any) -> Any:
    arrays = [
        batch.column(name)
        if name in file.own
        else folder_column(*file.folders[name], batch.num_rows)
        for name in columns
    ]
    return arrow().Table.from_arrays(arrays, list(columns))


# What a process does with its parts of the files.


def _with_counts(
    work: Callable[[FileSource], Result], source: FileSource, folder: str
) -> tuple[Result, dict[str, int]]:
    """What was asked for, and the rows of files that only reading tells.

    Names of files are said from ``folder``, and this process may have been started in another. The
    process is joblib's, and others work in it as well: they find it as it was.
    """
    # The other cores are the other processes', whatever the environment says of threads.
    with _working_in(folder), freed_memory_kept(), limited_threads(1):
        return work(source), source._counted


@contextmanager
def _working_in(folder: str) -> Iterator[None]:
    """Stand in a folder meanwhile; where we stood before may be gone."""
    before = None
    with suppress(FileNotFoundError):
        before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        if before is not None:
            with suppress(FileNotFoundError):
                os.chdir(before)


def _made_of(
    columns: Sequence[str], work: Callable[[Iterable[Chunk]], Result], source: FileSource
) -> Result:
    return work(source.each(columns))


def _are_files(table: Any) -> bool:
    if isinstance(table, (list, tuple)):
        return bool(table) and all(_are_files(each) for each in table)
    return isinstance(table, (str, os.PathLike, CsvFiles))


ENGINE = Engine(
    _are_files,
    _open,
    lambda table: f"{table!r}: read some of them first, for example with pandas.read_parquet",
)
