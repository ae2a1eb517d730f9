"""Tables to CSV and Parquet files, part by part; a file is there when it is whole."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from lanam.cli.errors import Complaint, Misuse
from lanam.cli.reading import file_kind, is_text, usual_delimiter
from lanam.files import open_atomically, require_place


def require_new(path: str, *, force: bool, inputs: tuple[str, ...] = (), example: str) -> Path:
    """The path of a file that may be written: before anybody works for it.

    Raises
    ------
    Complaint
        If it is there and not to be replaced, or if it is read from as well.
    """
    for given in inputs:
        if given != "-" and os.path.exists(path) and os.path.samefile(path, given):
            raise Complaint(f"{path} would be written over while it is read: choose another name")
    special = os.path.exists(path) and not os.path.isfile(path)  # a pipe or a terminal
    try:
        return require_place(path, example, overwrite=force or special)
    except OSError as error:
        raise Complaint(str(error).replace("pass overwrite=True", "say --force")) from None


def require_table_name(path: str) -> str:
    """Whether a table is written as CSV or Parquet, by the file's name."""
    kind, _ = file_kind(path, endings=(".gz", ".bz2"))
    if path.lower().endswith(".zst"):
        raise Misuse(f"{path}: .zst is read and not written; .gz and .bz2 are")
    return kind


@contextmanager
def open_table(path: str, schema: pa.Schema) -> Iterator[Any]:
    """What ``write`` puts parts of a table into the file with; ``"-"`` is standard output."""
    kind = require_table_name(path)
    if path == "-":
        yield _CsvWriter(sys.stdout.buffer, schema, ",")
        sys.stdout.buffer.flush()
        return
    try:
        with open_atomically(path) as file:
            if kind == "parquet":
                with parquet.ParquetWriter(file, schema) as writer:
                    yield writer
            else:
                with _compressed(file, path) as sink:
                    yield _CsvWriter(sink, schema, usual_delimiter(path))
    except OSError as error:
        if error.filename is not None:
            raise
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"not written: {reason}", path) from error


@contextmanager
def _compressed(file: Any, path: str) -> Iterator[Any]:
    """What compresses on the way into the file; the file itself is not closed."""
    if path.lower().endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as sink:
            yield sink
    elif path.lower().endswith(".bz2"):
        with bz2.BZ2File(file, "wb") as sink:
            yield sink
    else:
        yield file


class _CsvWriter:
    """Writes parts of a table as CSV, with quotes only where text needs them."""

    def __init__(self, sink: Any, schema: pa.Schema, delimiter: str) -> None:
        self._sink, self._delimiter = sink, delimiter
        self._special = f'[{re.escape(delimiter)}"\r\n]'
        line = io.StringIO()
        csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(schema.names)
        sink.write(line.getvalue().encode("utf-8"))

    def write_table(self, table: pa.Table) -> None:
        # Arrow puts quotes around all text or around none, and refuses none where they are needed.
        options = arrow_csv.WriteOptions(
            include_header=False,
            delimiter=self._delimiter,
            quoting_style="needed" if self._needs_quotes(table) else "none",
        )
        arrow_csv.write_csv(table, self._sink, write_options=options)

    def _needs_quotes(self, table: pa.Table) -> bool:
        texts = (column for column in table.columns if is_text(column.type))
        return any(
            pc.any(pc.match_substring_regex(column.cast(pa.string()), self._special)).as_py()
            for column in texts
        )
