"""Tables to CSV and Parquet files, part by part; a file is there when it is whole."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lanam.engines.delimited import usual_delimiter
from lanam.engines.formats import Parquet, arrow
from lanam.engines.types import holds
from lanam.files import open_atomically


@contextmanager
def open_table(path: str | Path, schema: Any) -> Iterator[Any]:
    """What puts parts of a table into a file, by ``write_table``; after an error there is none.

    Parameters
    ----------
    path : str or path-like
        A Parquet file, if its name says so, or a CSV file, which is compressed if the name ends in
        ``.gz`` or ``.bz2``.
    schema : pyarrow.Schema
        The table's columns.

    Raises
    ------
    OSError
        If it cannot be written, say because the disk is full; it names the file.

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
        with open_atomically(path) as file:
            if str(path).lower().endswith(Parquet.endings):
                with arrow().parquet.ParquetWriter(file, schema) as writer:
                    yield writer
            else:
                with _compressed(file, str(path)) as sink:
                    yield CsvWriter(sink, schema, usual_delimiter(str(path)))
    except OSError as error:
        if error.filename is not None:
            raise
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"not written: {reason}", str(path)) from error


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


class CsvWriter:
    """Writes parts of a table as CSV, with quotes only where text needs them."""

    def __init__(self, sink: Any, schema: Any, delimiter: str) -> None:
        self._sink, self._delimiter = sink, delimiter
        self._special = f'[{re.escape(delimiter)}"\r\n]'
        line = io.StringIO()
        csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(schema.names)
        sink.write(line.getvalue().encode("utf-8"))

    def write_table(self, table: Any) -> None:
        """Write some rows."""
        # Arrow puts quotes around all text or around none, and refuses none where they are needed.
        arrow_csv = arrow().csv
        options = arrow_csv.WriteOptions(
            include_header=False,
            delimiter=self._delimiter,
            quoting_style="needed" if self._needs_quotes(table) else "none",
        )
        arrow_csv.write_csv(table, self._sink, write_options=options)

    def _needs_quotes(self, table: Any) -> bool:
        pa = arrow()
        texts = (column for column in table.columns if holds(column.type) == "text")
        return any(
            pa.compute.any(
                pa.compute.match_substring_regex(column.cast(pa.string()), self._special)
            ).as_py()
            for column in texts
        )
