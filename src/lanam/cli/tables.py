"""Files that commands read and write, by their names; the library's engines do the work."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from lanam.cli.errors import CLIError, UsageError, in_flags
from lanam.cli.stopping import InterruptibleFile
from lanam.engines import writing
from lanam.engines.delimited import COMPRESSED, PeekableStream
from lanam.engines.dialects import CsvFiles, Dialect
from lanam.engines.files import FileSource, open_files, open_stream
from lanam.files import require_place

_CSV = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")


def are_files(path: str) -> bool:
    """Whether a path names several files: a folder, or a pattern such as ``"sales/*.parquet"``.

    Examples
    --------
    >>> are_files("sales/"), are_files("sales/*.parquet"), are_files("sales.parquet")
    (True, True, False)
    """
    pattern = glob.has_magic(path) and not os.path.exists(path)
    return pattern or os.path.isdir(path) or path.endswith(("/", os.sep))


def file_kind(path: str, endings: Sequence[str] = tuple(COMPRESSED)) -> str:
    """Whether a file is CSV or Parquet, by its name; ``endings`` are those of compressed files.

    Examples
    --------
    >>> file_kind("a/b.csv.gz"), file_kind("data.PARQUET")
    ('csv', 'parquet')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    compressed = bool(suffixes) and suffixes[-1] in COMPRESSED
    ending = "".join((suffixes[:-1] if compressed else suffixes)[-1:])
    if path == "-" or ending in _CSV:
        return "csv"
    if ending in _PARQUET and not compressed:
        return "parquet"
    raise UsageError(
        f"{path}: unknown file type: {', '.join(_CSV)} (and {', '.join(endings)} "
        f"after them) are CSV, {' and '.join(_PARQUET)} are Parquet"
    )


def open_source(
    path: str,
    dialect: Dialect,
    types: Mapping[str, pa.DataType] | None = None,
    block_size: int | None = None,
) -> FileSource:
    """Open a table: a file, several, or standard input.

    With ``types``, columns of CSV are read as these types and all others as strings; else types are
    inferred.
    """
    if are_files(path):
        return open_files(path, dialect=dialect, types=types)
    table = CsvFiles(path, dialect) if file_kind(path) == "csv" else path
    if path != "-" and not os.path.exists(path):
        raise CLIError(f"there is no file {path}")
    if path != "-" and os.path.isfile(path):
        return open_files(table, types=types, block_size=block_size, empty=True)
    # Standard input and pipes can be read once.
    file = _standard_input() if path == "-" else open(path, "rb")  # noqa: SIM115 (until the end)
    title = "standard input" if path == "-" else path
    stream = PeekableStream(InterruptibleFile(file))
    return open_stream(stream, title, dialect, types=types, block_size=block_size)


def _standard_input() -> BinaryIO:
    closed = sys.__stdin__ is None
    if closed or sys.stdin.isatty():
        what = "closed" if closed else "a terminal"
        raise UsageError(f"- reads a table from standard input, which is {what}: pipe a file in")
    return sys.stdin.buffer


def read_rows(source: FileSource, columns: Sequence[str]) -> pa.Table:
    """These columns of all rows, of which there must be some."""
    frames = [chunk.frame for chunk in source.each(list(dict.fromkeys(columns)))]
    if not frames:
        raise CLIError(f"{source.title} has a header and no rows")
    return pa.concat_tables(frames)


def require_new(path: str, *, force: bool, inputs: tuple[str, ...] = (), example: str) -> Path:
    """Check a path to write to before any work is done: no file that exists, or is read from."""
    for given in inputs:
        if given != "-" and os.path.exists(path) and os.path.samefile(path, given):
            raise CLIError(f"{path} would be overwritten while it is read: choose another name")
    try:
        return require_place(path, example, overwrite=force)
    except OSError as error:
        raise CLIError(in_flags(error)) from None


def require_table_name(path: str) -> str:
    """The format in which a table is written, by the file's name."""
    kind = file_kind(path, endings=(".gz", ".bz2"))
    if path.lower().endswith(".zst"):
        raise UsageError(f"{path}: .zst is read and not written; .gz and .bz2 are")
    return kind


@contextmanager
def open_writer(path: str, schema: pa.Schema, *, force: bool) -> Iterator[Any]:
    """A writer of tables with this schema into a file; ``"-"`` is standard output."""
    if path == "-":
        yield writing.CsvWriter(sys.stdout.buffer, schema, ",")
        sys.stdout.buffer.flush()
        return
    with writing.open_table(path, schema, overwrite=force) as writer:
        yield writer
