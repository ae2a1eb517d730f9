"""Which files a command reads, by their names; the library's engine reads them."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from lanam.cli.errors import CLIError, UsageError
from lanam.cli.stopping import Waiting
from lanam.engines.delimited import COMPRESSED, PeekableStream
from lanam.engines.dialects import CsvFiles, Dialect
from lanam.engines.files import FileSource, open_files, open_stream

_CSV = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")


def are_files(path: str) -> bool:
    """Whether a path stands for several files: a folder, or a pattern such as ``"sales/*.parquet"``.

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
        f"{path}: the name does not say what the file is: {', '.join(_CSV)} (and {', '.join(endings)} "
        f"behind them) are CSV, {' and '.join(_PARQUET)} are Parquet"
    )


def open_table(
    path: str,
    dialect: Dialect,
    types: Mapping[str, pa.DataType] | None = None,
    block_size: int | None = None,
) -> FileSource:
    """Look at a table: a file, several, or standard input.

    With ``types`` columns of CSV are read as these, and others as text; without, as they look.
    """
    if are_files(path):
        return open_files(path, dialect=dialect, types=types)
    table = CsvFiles(path, dialect) if file_kind(path) == "csv" else path
    if path != "-" and not os.path.exists(path):
        raise CLIError(f"there is no file {path}")
    if path != "-" and os.path.isfile(path):
        return open_files(table, types=types, block_size=block_size, empty=True)
    # What is read once: standard input, a pipe.
    file = _standard_input() if path == "-" else open(path, "rb")  # noqa: SIM115 (until the end)
    title = "standard input" if path == "-" else path
    stream = PeekableStream(Waiting(file))
    return open_stream(stream, title, dialect, types=types, block_size=block_size)


def _standard_input() -> BinaryIO:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "- reads a table from standard input, and that is the terminal: pipe a file in"
        )
    return sys.stdin.buffer


def read_rows(source: FileSource, columns: Sequence[str]) -> pa.Table:
    """These columns of the whole table.

    Raises
    ------
    CLIError
        If it has no rows.
    """
    frames = [chunk.frame for chunk in source.each(list(dict.fromkeys(columns)))]
    if not frames:
        raise CLIError(f"{source.title} has a header and no rows")
    return pa.concat_tables(frames)
