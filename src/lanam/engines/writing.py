"""Tables to CSV and Parquet files; a file appears once it is complete."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path, PurePath
from typing import Any

from lanam.engines.delimited import Csv, usual_delimiter
from lanam.engines.finding import format_of
from lanam.engines.formats import Ipc, Parquet, arrow
from lanam.engines.types import holds
from lanam.errors import FileThereError
from lanam.files import open_atomically
from lanam.text import utf8

#: The suffix of files in a folder.
ENDING = ".parquet"


def output_format(output: Any) -> str | None:
    """``"parquet"`` or ``"csv"`` by the name of a file; None for a folder."""
    path = os.fspath(output)
    file_format = format_of(path)
    if isinstance(file_format, Ipc):
        raise ValueError(
            f"{output}: predictions are written as Parquet or CSV: the name of a file must end in .parquet "
            "or .csv"
        )
    if file_format is None and PurePath(path).suffix.lower() in (".txt", ".json", ".xlsx", ".gz"):
        raise ValueError(
            f"{output}: the name of a file must end in .parquet or .csv; other names are folders"
        )
    if path.lower().endswith(".zst"):
        raise ValueError(f"{output}: .zst is read and not written; .gz and .bz2 are")
    return None if file_format is None else "csv" if isinstance(file_format, Csv) else "parquet"


def parquet_names(names: Sequence[str]) -> list[str]:
    """Unique names of Parquet files, given the names of input files.

    Examples
    --------
    >>> parquet_names(["a.csv.gz", "year=2024/a.parquet", "a.tsv"])
    ['a.parquet', 'year=2024/a.parquet', 'a-2.parquet']
    """
    unique: list[str] = []
    for name in names:
        file_format = format_of(name)
        endings = () if file_format is None else sorted(file_format.endings, key=len, reverse=True)
        stem = name[: -len(next(end for end in endings if name.lower().endswith(end)))]
        tries = (f"{stem}-{k}{ENDING}" if k > 1 else stem + ENDING for k in count(1))
        unique.append(next(each for each in tries if each not in unique))
    return unique


@contextmanager
def open_table(path: str | Path, schema: Any, *, overwrite: bool = True) -> Iterator[Any]:
    """Open a file for ``write_table``: Parquet or CSV, gzip or bzip2, by its name.

    The file appears when the ``with`` block ends without an error; an error names the file. See
    `lanam.files.open_atomically` for ``overwrite``.

    Examples
    --------
    >>> import pyarrow as pa, tempfile
    >>> table = pa.table({"city": ["Rome", "Paris, TX"], "prediction": [1.5, 2.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_table(f"{folder}/a.csv", table.schema) as writer:
    ...         writer.write_table(table)
    ...     print(Path(folder, "a.csv").read_text())
    city,prediction
    "Rome",1.5
    "Paris, TX",2
    """
    try:
        with open_atomically(path, overwrite=overwrite) as file:
            if str(path).lower().endswith(Parquet.endings):
                with arrow().parquet.ParquetWriter(file, schema) as writer:
                    yield writer
            else:
                with _compressed(file, str(path).lower()) as sink:
                    yield CsvWriter(sink, schema, usual_delimiter(str(path)))
    except OSError as error:
        if error.filename is not None or isinstance(error, FileThereError):
            raise
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"not written: {reason}", str(path)) from error


@contextmanager
def _compressed(file: Any, path: str) -> Iterator[Any]:
    """Compress what is written to the file, which stays open."""
    if path.endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as sink:
            yield sink
    elif path.endswith(".bz2"):
        with bz2.BZ2File(file, "wb") as sink:
            yield sink
    else:
        yield file


class CsvWriter:
    """Writes tables as CSV, with quotes only where strings need them."""

    def __init__(self, sink: Any, schema: Any, delimiter: str) -> None:
        self._sink, self._delimiter = sink, delimiter
        self._special = f'[{re.escape(delimiter)}"\r\n]'
        line = io.StringIO()
        csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(schema.names)
        sink.write(utf8(line.getvalue()))

    def write_table(self, table: Any) -> None:
        """Append rows."""
        # Arrow quotes all strings or none; with "none" it refuses strings that need quotes.
        arrow_csv = arrow().csv
        options = arrow_csv.WriteOptions(
            include_header=False,
            delimiter=self._delimiter,
            quoting_style="needed" if self._needs_quotes(table) else "none",
        )
        arrow_csv.write_csv(table, self._sink, write_options=options)

    def _needs_quotes(self, table: Any) -> bool:
        pa = arrow()
        texts = (column for column in table.columns if holds(column.type) == "string")
        return any(
            pa.compute.any(
                pa.compute.match_substring_regex(column.cast(pa.string()), self._special)
            ).as_py()
            for column in texts
        )
