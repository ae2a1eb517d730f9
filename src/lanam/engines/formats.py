"""Kinds of files and their parts: what columns a file has, and its rows part by part.

Parts are what a file was written in: row groups of Parquet, record batches of Arrow. A CSV file is one
part. Arrow reads each in the calling thread, so that as many threads work as were asked for.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from lanam.engines import delimited

#: The most rows that are read at once.
LARGEST_PIECE = 1 << 18

#: Bytes of a CSV file that are read at once.
BLOCK_SIZE = 1 << 22

#: Bytes of a column of a Parquet file that are read at once.
_BUFFER = 1 << 16

#: Bytes of a CSV file by which its columns are known.
_HEAD = 1 << 20


@dataclass(frozen=True)
class Contents:
    """What is known of a file before its rows are read.

    Attributes
    ----------
    types
        Arrow's types of its columns.
    rows
        How many rows each part has; None where only reading it tells.
    """

    types: Mapping[str, Any]
    rows: tuple[int | None, ...]


@dataclass(frozen=True)
class Part:
    """Some rows of a part of a file: which part, the number of their first row in it, and the rows."""

    part: int
    first_row: int
    batch: Any


class Format(Protocol):
    """A kind of files."""

    @property
    def title(self) -> str:
        """What messages call such a file."""

    @property
    def endings(self) -> tuple[str, ...]:
        """How their names end."""

    @property
    def typed(self) -> bool:
        """Whether such a file says what its columns hold."""

    def look(self, path: str) -> Contents:
        """What a file holds."""

    def read(self, path: str, parts: Sequence[int], types: Mapping[str, Any]) -> Iterator[Part]:
        """The columns named in ``types``, in any order; those of a CSV file become what is said there."""

    def place(self, part: int, n_parts: int) -> str:
        """Where a part is in its file, in words that go behind the file's name."""


def arrow() -> Any:
    """Arrow with the modules that are needed here."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "tables in files are read by pyarrow, which is not installed: "
            '`pip install "lanam[files]"`'
        ) from error
    return pyarrow


class Parquet:
    """Parquet files, by row group."""

    title = "a Parquet file"
    endings = (".parquet", ".pq")
    typed = True

    def look(self, path: str) -> Contents:
        """See `Format`."""
        with _named_errors(path, self.title), arrow().parquet.ParquetFile(path) as file:
            groups = (file.metadata.row_group(k) for k in range(file.metadata.num_row_groups))
            rows = tuple(group.num_rows for group in groups)
            return Contents(_types(file.schema_arrow, path), rows)

    def read(self, path: str, parts: Sequence[int], types: Mapping[str, Any]) -> Iterator[Part]:
        """See `Format`."""
        names = list(types)
        with (
            _named_errors(path, self.title),
            # As it is needed, and not a whole row group at once, however large that is.
            arrow().parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file,
        ):
            for part in parts:
                first = 0
                for batch in file.iter_batches(
                    LARGEST_PIECE, row_groups=[part], columns=names, use_threads=False
                ):
                    yield Part(part, first, batch)
                    first += batch.num_rows

    def place(self, part: int, n_parts: int) -> str:
        """See `Format`."""
        return f", row group {part}" + _of(n_parts)


class Ipc:
    """Files in Arrow's own format, which Feather is too, by record batch."""

    title = "an Arrow file"
    endings = (".arrow", ".feather", ".ipc")
    typed = True

    def look(self, path: str) -> Contents:
        """See `Format`."""
        with _named_errors(path, self.title), self._open(path) as file:
            types = _types(file.schema, path)
        # Without their columns batches are not even decompressed.
        with _named_errors(path, self.title), self._open(path, []) as file:
            batches = map(file.get_batch, range(file.num_record_batches))
            return Contents(types, tuple(batch.num_rows for batch in batches))

    def read(self, path: str, parts: Sequence[int], types: Mapping[str, Any]) -> Iterator[Part]:
        """See `Format`."""
        names = list(types)
        with _named_errors(path, self.title):
            with self._open(path) as file:
                indices = [file.schema.get_field_index(name) for name in names]
            with self._open(path, indices) as file:
                for part in parts:
                    batch = file.get_batch(part)
                    for first in range(0, batch.num_rows, LARGEST_PIECE):
                        yield Part(part, first, batch.slice(first, LARGEST_PIECE))

    def place(self, part: int, n_parts: int) -> str:
        """See `Format`."""
        return f", record batch {part}" + _of(n_parts)

    @contextmanager
    def _open(self, path: str, indices: list[int] | None = None) -> Iterator[Any]:
        pa = arrow()
        options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=indices)
        with pa.OSFile(path) as stream, pa.ipc.open_file(stream, options=options) as file:
            yield file


@dataclass(frozen=True)
class _Header:
    """The header of a CSV file: what is between cells, names, and whether there is nothing else."""

    delimiter: str
    names: tuple[str, ...]
    bare: bool


class Csv:
    """CSV files with a header, in UTF-8; numbers are floats, and gaps are as ``delimited`` has them."""

    title = "a CSV file"
    endings = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
    typed = False

    def look(self, path: str) -> Contents:
        """See `Format`; types are by the beginning of the file."""
        pa = arrow()
        header = self._header(path)
        with _named_errors(path, self.title), _csv_words(path, header):
            if header.bare:
                return Contents(dict.fromkeys(header.names, pa.null()), (0,))
            with self._open(path, {}, header, _HEAD) as reader:
                types = _types(reader.schema, path)
                batch = next(iter(reader), None)
            if batch is None or batch.num_rows == 0:
                return Contents(types, (0,))
            for name in (name for name, kind in types.items() if pa.types.is_binary(kind)):
                raise ValueError(_not_utf8(f"{path}, column {name!r}"))
            unknown = [name for name, kind in types.items() if kind == pa.null()]
            return Contents({**types, **self._later(path, unknown, header)}, (None,))

    def _later(self, path: str, names: Sequence[str], header: _Header) -> dict[str, Any]:
        """Types of columns that begin with gaps, by the first block in which they have values."""
        found: dict[str, Any] = {}
        if not names:
            return found
        with self._open(path, dict.fromkeys(names, arrow().string()), header, BLOCK_SIZE) as reader:
            for batch in reader:
                for name, cells in zip(names, batch.columns, strict=True):
                    if name not in found and cells.null_count < len(cells):
                        found[name] = _judge(cells)
                if len(found) == len(names):
                    break
        return found

    def read(self, path: str, parts: Sequence[int], types: Mapping[str, Any]) -> Iterator[Part]:
        """See `Format`."""
        header, first = self._header(path), 2  # the header is row 1
        if header.bare:
            return
        with (
            _named_errors(path, self.title),
            _csv_words(path, header),
            self._open(path, types, header, BLOCK_SIZE) as reader,
        ):
            for batch in reader:
                for start in range(0, batch.num_rows, LARGEST_PIECE):
                    yield Part(0, first + start, batch.slice(start, LARGEST_PIECE))
                first += batch.num_rows

    def place(self, part: int, n_parts: int) -> str:
        """See `Format`."""
        return " (the header is row 1)"

    @contextmanager
    def _open(
        self, path: str, types: Mapping[str, Any], header: _Header, block_size: int
    ) -> Iterator[Any]:
        arrow_csv = arrow().csv
        with (
            self._stream(path) as stream,
            arrow_csv.open_csv(
                stream,
                # In one thread errors know their row.
                arrow_csv.ReadOptions(use_threads=False, block_size=block_size),
                arrow_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    include_columns=list(types),
                    column_types=dict(types),
                    null_values=list(delimited.MISSING),
                    strings_can_be_null=True,
                ),
            ) as reader,
        ):
            yield reader

    def _stream(self, path: str) -> Any:
        compressed = path.lower().endswith(".gz")
        return arrow().input_stream(path, compression="gzip" if compressed else None)

    def _header(self, path: str) -> _Header:
        with _named_errors(path, self.title), self._stream(path) as stream:
            head: bytes = stream.read(_HEAD)
        head = head.lstrip(delimited.LINE_ENDS).removeprefix(codecs.BOM_UTF8)
        if not head.strip():
            raise ValueError(f"{path} is empty: a CSV file begins with the names of its columns")
        try:
            line = head[: next(delimited.line_ends(head), len(head))].decode()
        except UnicodeDecodeError as error:
            raise ValueError(_not_utf8(path)) from error
        usual = "\t" if ".tsv" in os.path.basename(path).lower() else ","
        delimiter = delimited.find_delimiter(line, usual)
        names = tuple(next(csv.reader(io.StringIO(line), delimiter=delimiter)))
        return _Header(delimiter, names, bare=not delimited.has_line(head))


FORMATS: tuple[Format, ...] = (Parquet(), Csv(), Ipc())


def format_of(path: str) -> Format | None:
    """The kind of a file by its name; None where the name does not say.

    Examples
    --------
    >>> format_of("sales.CSV.gz").title, format_of("notes.txt")
    ('a CSV file', None)
    """
    name = os.path.basename(path).lower()
    return next((kind for kind in FORMATS if name.endswith(kind.endings)), None)


def _of(n_parts: int) -> str:
    """How many there are, in words that say from where they count."""
    return f" (of 0 to {n_parts - 1})"


def _types(schema: Any, path: str) -> dict[str, Any]:
    """Types of columns, without what pandas keeps of the index."""
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{path} has more than one column named {twice[0]!r}: columns are told apart by their "
            "names, so write it anew with another name for one of them"
        )
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    kept = [field for field in schema if field.name not in index]
    return {field.name: field.type for field in kept}


def _judge(cells: Any) -> Any:
    """The type that text would have had as a CSV file's."""
    pa = arrow()
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            cells.cast(kind)
        except pa.ArrowInvalid:
            continue
        return kind
    return pa.string()


@contextmanager
def _named_errors(path: str, what: str) -> Iterator[None]:
    """Arrow's errors, and the system's, with the file and what to do."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if (
            isinstance(error, OSError) and error.errno is not None
        ):  # the system's, and not about what is in it
            raise ValueError(f"{path} cannot be read: {os.strerror(error.errno)}") from error
        raise ValueError(
            f"{path} cannot be read as {what}: is it whole, and is it one? Write or copy it again, or "
            f"leave it out ({error})"
        ) from error


@contextmanager
def _csv_words(path: str, header: _Header) -> Iterator[None]:
    """Arrow's errors on cells and rows in words."""
    try:
        yield
    except arrow().ArrowInvalid as error:
        message = str(error)
        if found := delimited.CONVERSION.search(message):
            where = f"{path}{_row(found['row'])}, column {header.names[int(found['column'])]!r}"
            if found["text"]:
                raise ValueError(_not_utf8(where)) from error
            holds = {"double": "numbers", "bool": "truth values"}.get(found["to"], found["to"])
            raise ValueError(
                f"{where}: {found['value']!r} is none of the {holds} that the column begins with: mend "
                "the cell, or leave it empty if the value is missing"
            ) from error
        if found := delimited.RAGGED.search(message):
            raise ValueError(
                f"{path}{_row(found['row'])}: {found['got']} cells, and the header has "
                f"{found['wanted']}: mend the row, or put quotes around cells with the delimiter in them"
            ) from error
        if "straddl" in message:
            raise ValueError(
                f"{path}: a row is longer than {BLOCK_SIZE >> 20} MB: is a quote not closed?"
            ) from error
        raise


def _row(number: str | None) -> str:
    return f", row {number} (the header is row 1)" if number else ""


def _not_utf8(where: str) -> str:
    return f"{where} is not text in UTF-8: write the file in that encoding"
