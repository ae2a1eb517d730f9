"""Where results go: files that may be written, and standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from lanam.cli.errors import CLIError, UsageError, in_flags
from lanam.cli.reading import file_kind
from lanam.engines import writing
from lanam.files import require_place


def require_new(path: str, *, force: bool, inputs: tuple[str, ...] = (), example: str) -> Path:
    """The path of a file that may be written: before anybody works for it.

    Raises
    ------
    CLIError
        If it is there and not to be replaced, or if it is read from as well.
    """
    for given in inputs:
        if given != "-" and os.path.exists(path) and os.path.samefile(path, given):
            raise CLIError(f"{path} would be written over while it is read: choose another name")
    special = os.path.exists(path) and not os.path.isfile(path)  # a pipe or a terminal
    try:
        return require_place(path, example, overwrite=force or special)
    except OSError as error:
        raise CLIError(in_flags(error)) from None


def require_table_name(path: str) -> str:
    """Whether a table is written as CSV or Parquet, by the file's name."""
    kind = file_kind(path, endings=(".gz", ".bz2"))
    if path.lower().endswith(".zst"):
        raise UsageError(f"{path}: .zst is read and not written; .gz and .bz2 are")
    return kind


@contextmanager
def open_table(path: str, schema: pa.Schema) -> Iterator[Any]:
    """What ``write_table`` puts parts of a table into the file with; ``"-"`` is standard output."""
    if path == "-":
        yield writing.CsvWriter(sys.stdout.buffer, schema, ",")
        sys.stdout.buffer.flush()
        return
    with writing.open_table(path, schema) as writer:
        yield writer
