"""Tables from CSV and Parquet files, whole or part by part."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from lanam.cli.errors import Complaint, Misuse

#: What stands for a missing value in a CSV file, besides what ``--missing`` adds.
MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL")

#: Bytes of a CSV file that are read at once; Arrow reads up to 32 such blocks ahead.
BLOCK_SIZE = 1 << 20

_DELIMITERS = (",", ";", "\t", "|")
_COMPRESSED = (".gz", ".bz2", ".zst")
_CSV = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")

#: Arrow counts the bytes of a block in 31 bits.
_LARGEST_BLOCK = (1 << 31) - (1 << 20)
_HEAD = 1 << 16
_LINE_ENDS = b"\r\n"
_LONGEST_HEADER = 1 << 24
_MAX_ROWS = 1 << 17


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written; ``delimiter=None`` finds it in the header."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()

    @property
    def gaps(self) -> list[str]:
        """What stands for a missing value."""
        return list(dict.fromkeys(MISSING + self.missing))


@dataclass(frozen=True)
class Source:
    """A table in a file, of which so far the header was read.

    Attributes
    ----------
    path
        The file, or ``"-"`` for standard input.
    kind
        ``"csv"`` or ``"parquet"``.
    names
        The columns' names.
    dialect
        With the delimiter that was given or found.
    stream
        What opens a CSV file, or goes on with standard input.
    found
        Whether the delimiter is not the usual one, and was found rather than given.
    bare
        Whether there is a header and nothing else, not even the end of its line.
    """

    path: str
    kind: str
    names: tuple[str, ...]
    dialect: Dialect
    stream: Callable[[], Any]
    found: bool = False
    bare: bool = False

    @property
    def title(self) -> str:
        """What messages call it."""
        return "standard input" if self.path == "-" else self.path

    def read(self, columns: Sequence[str]) -> pa.Table:
        """The columns of the whole table, each of the type that all its values have."""
        with _named_errors(self):
            if self.kind == "parquet":
                return parquet.read_table(self.path, columns=list(columns), partitioning=None)
            if self.bare:
                return pa.table({name: pa.nulls(0) for name in columns})
            data = pa.BufferReader(self.stream().read())
            # In one block, because types are found in the first.
            size = min(data.size() + 1, _LARGEST_BLOCK)
            return arrow_csv.read_csv(
                data, **self._options(columns, {}, size, strings_can_be_null=True)
            )

    def batches(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType], block_size: int = BLOCK_SIZE
    ) -> Iterator[pa.Table]:
        """The columns part by part. Of a CSV file, those without a type in ``types`` are text, as it is."""
        with _named_errors(self):
            if self.kind == "parquet":
                rows = min(max(block_size // (8 * max(len(columns), 1)), 1), _MAX_ROWS)
                with parquet.ParquetFile(self.path) as file:
                    for batch in file.iter_batches(rows, columns=list(columns)):
                        yield pa.Table.from_batches([batch])
                return
            if self.bare:
                return
            known = {name: types.get(name, pa.string()) for name in columns}
            texts = [name for name in columns if types.get(name) == pa.string()]
            options = self._options(columns, known, block_size, strings_can_be_null=False)
            gaps = pa.array(self.dialect.gaps)
            for batch in arrow_csv.open_csv(self.stream(), **options):
                yield _with_gaps(pa.Table.from_batches([batch]), texts, gaps)

    def _options(
        self, columns: Sequence[str], types: Mapping[str, pa.DataType], size: int, **convert: Any
    ) -> dict[str, Any]:
        dialect = self.dialect
        return {
            # One thread, because then errors know their row; two would hardly be faster.
            "read_options": arrow_csv.ReadOptions(
                use_threads=False, block_size=size, encoding=dialect.encoding
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=dialect.delimiter, newlines_in_values=True
            ),
            "convert_options": arrow_csv.ConvertOptions(
                include_columns=list(columns),
                column_types=dict(types),
                null_values=dialect.gaps,
                decimal_point=dialect.decimal,
                **convert,
            ),
        }


def _with_gaps(table: pa.Table, texts: Sequence[str], gaps: pa.Array) -> pa.Table:
    """The table with nulls for what stands for missing values in columns of text."""
    for name in texts:
        column = table[name]
        known = pc.if_else(pc.is_in(column, value_set=gaps), pa.scalar(None, pa.string()), column)
        table = table.set_column(table.column_names.index(name), name, known)
    return table


def is_text(kind: pa.DataType) -> bool:
    """Whether a column's values are text."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    views = getattr(pa.types, "is_string_view", lambda _: False)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or views(kind)


def file_kind(path: str) -> tuple[str, bool]:
    """Whether a file is CSV or Parquet, and whether it is compressed, all by its name.

    Examples
    --------
    >>> file_kind("a/b.csv.gz"), file_kind("data.PARQUET")
    (('csv', True), ('parquet', False))
    """
    if path == "-":
        return "csv", False
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    compressed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    last = (suffixes[:-1] if compressed else suffixes)[-1:]
    if last and last[0] in _CSV:
        return "csv", compressed
    if last and last[0] in _PARQUET and not compressed:
        return "parquet", False
    raise Misuse(
        f"{path}: the name does not say what the file is: {', '.join(_CSV)} (and {', '.join(_COMPRESSED)} "
        f"behind them) are CSV, {' and '.join(_PARQUET)} are Parquet"
    )


def open_source(path: str, dialect: Dialect | None = None) -> Source:
    """Look at a file: what it is, and what its columns are called.

    Raises
    ------
    Complaint
        If it cannot be read as a table; it says why and what to do.
    """
    dialect = Dialect() if dialect is None else dialect
    kind, compressed = file_kind(path)
    _require_file(path)
    if kind == "parquet":
        source = Source(path, kind, (), dialect, lambda: None)
        with _named_errors(source), parquet.ParquetFile(path) as file:
            names = tuple(file.schema_arrow.names)
        return replace(source, names=_distinct(names, path))
    if path == "-" or not os.path.isfile(path):  # what is read once: standard input, a pipe
        once = _standard_input() if path == "-" else open(path, "rb")  # noqa: SIM115 (until the end)
        head, rest = _read_head(once)

        def stream() -> Any:
            return pa.PythonFile(_Rejoined(head, rest), mode="r")
    else:

        def stream() -> Any:
            return pa.input_stream(path, compression="detect" if compressed else None)

        source = Source(path, kind, (), dialect, stream)
        with _named_errors(source), stream() as opened:
            head, _ = _read_head(opened)
    source = Source(path, kind, (), dialect, stream)
    header = _header(head, source)
    delimiter = dialect.delimiter or _find_delimiter(header, path)
    names = tuple(next(csv.reader(io.StringIO(header), delimiter=delimiter)))
    usual = "\t" if ".tsv" in path.lower() else ","
    return replace(
        source,
        names=_distinct(names, source.title),
        dialect=replace(dialect, delimiter=delimiter),
        found=dialect.delimiter is None and delimiter != usual,
        bare=not _has_line(head.lstrip(_LINE_ENDS)),
    )


def _require_file(path: str) -> None:
    if path == "-":
        return
    if os.path.isdir(path):
        raise Complaint(f"{path} is a folder: pass one file")
    if not os.path.exists(path):
        raise Complaint(f"there is no file {path}")
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise Complaint(f"{path} is empty")


def _standard_input() -> Any:
    if sys.stdin is None or sys.stdin.isatty():
        raise Misuse(
            "- reads a table from standard input, and that is the terminal: pipe a file in"
        )
    return sys.stdin.buffer


def _read_head(stream: Any) -> tuple[bytes, Any]:
    """The beginning of a file with all of its header, and the rest of it."""
    head, take = b"", getattr(stream, "read1", stream.read)
    while not _has_line(head.lstrip(_LINE_ENDS)) and len(head) < _LONGEST_HEADER:
        more = take(_HEAD)
        if not more:
            break
        head += more
    return head, stream


def _has_line(head: bytes) -> bool:
    """Whether a line ends outside of quotes."""
    return any(head[:end].count(b'"') % 2 == 0 for end in _line_ends(head))


def _line_ends(head: bytes) -> Iterator[int]:
    return (match.start() for match in re.finditer(rb"[\r\n]", head))


class _Rejoined(io.RawIOBase):
    """A stream of which the beginning was read before."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        if self._head:
            part, self._head = self._head[:size], self._head[size:]
        else:
            part = self._rest.read(size)
        buffer[: len(part)] = part
        return len(part)


def _header(head: bytes, source: Source) -> str:
    """The header as text."""
    encoding = source.dialect.encoding
    head = head.lstrip(_LINE_ENDS)  # as Arrow does
    if head.startswith(b"PAR1"):
        raise Complaint(f"{source.title} is a Parquet file: give it a name that ends in .parquet")
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and _is_utf8(encoding):
        raise Complaint(f"{source.title} is written in UTF-16: say --encoding utf-16")
    try:
        decoder = codecs.getincrementaldecoder("utf-8-sig" if _is_utf8(encoding) else encoding)()
    except LookupError:
        raise Misuse(f"--encoding {encoding} is not known: utf-8 and latin-1 are usual") from None
    ends = (end for end in _line_ends(head) if head[:end].count(b'"') % 2 == 0)
    first = head[: next(ends, len(head))] if _is_utf8(encoding) else head
    try:
        text = decoder.decode(first)
    except UnicodeDecodeError:
        raise Complaint(_not_text(f"{source.title}: the header", encoding)) from None
    if "\x00" in text:
        raise Complaint(f"{source.title} is not text: a CSV file has no zero bytes")
    if not text.strip():
        raise Complaint(
            f"{source.title} is empty" if not head.strip() else f"{source.title} has no header"
        )
    return text


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")


def _not_text(where: str, encoding: str) -> str:
    return (
        f"{where} is not text in {encoding}: say which it is, for example --encoding latin-1 or "
        "--encoding cp1252"
    )


def _find_delimiter(header: str, path: str) -> str:
    """What stands between the names: what makes most columns of them, a comma rather than another."""
    usual = ("\t", *_DELIMITERS) if ".tsv" in path.lower() else _DELIMITERS

    def n_columns(delimiter: str) -> int:
        return len(next(csv.reader(io.StringIO(header), delimiter=delimiter), []))

    return max(usual, key=n_columns)


def _distinct(names: tuple[str, ...], title: str) -> tuple[str, ...]:
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise Complaint(
            f"{title} has more than one column named {twice[0]!r}: columns are told apart by their "
            "names, so rename one of them"
        )
    return names


_CONVERSION = re.compile(
    r"In CSV column #(?P<column>\d+): (?:Row #(?P<row>\d+): )?CSV conversion error to (?P<to>\w+): "
    r"(?:invalid value '(?P<value>.*?)'|(?P<text>invalid UTF8 data))",
    re.DOTALL,
)
_RAGGED = re.compile(
    r"CSV parse error: (?:Row #(?P<row>\d+): )?Expected (?P<wanted>\d+) columns, got (?P<got>\d+)"
    r"(?:: (?P<line>.*))?",
    re.DOTALL,
)
_HOLDS = {"double": "numbers", "int64": "whole numbers", "bool": "truth values"}


@contextmanager
def _named_errors(source: Source) -> Iterator[None]:
    """Arrow's errors, with the file, the row and the column, and what to do."""
    try:
        yield
    except UnicodeDecodeError:
        raise Complaint(_not_text(source.title, source.dialect.encoding)) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowCapacityError) as error:
        raise Complaint(_in_words(str(error), source)) from error
    except OSError as error:
        if error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        reason = error.strerror or str(error)
        raise Complaint(f"{source.title} cannot be read: {reason}") from error


def _in_words(message: str, source: Source) -> str:
    title = source.title
    if source.kind == "parquet":
        return f"{title} cannot be read as a Parquet file; is it whole? ({message})"
    if found := _CONVERSION.search(message):
        name = source.names[int(found["column"])]
        row = f", row {found['row']} (the header is row 1)" if found["row"] else ""
        if found["text"]:
            return _not_text(f"{title}{row}: column {name!r}", source.dialect.encoding)
        value = found["value"]
        return (
            f"{title}{row}: column {name!r} holds {_HOLDS.get(found['to'], found['to'])} in the model, "
            f"and here {value!r}: mend the cell, or {_cure(value)}"
        )
    if found := _RAGGED.search(message):
        row = f", row {found['row']} (the header is row 1)" if found["row"] else ""
        line = f" ({found['line'].strip()[:60]})" if found["line"] else ""
        return (
            f"{title}{row}: {found['got']} cells, and the header has {found['wanted']}{line}: mend the "
            "row, put quotes around cells with the delimiter in them, or say another --delimiter"
        )
    if "straddl" in message:
        return (
            f"{title}: a row is longer than a block of the file: is a quote not closed? Else raise "
            "--block-size"
        )
    return f"{title}: {message}"


def _cure(value: str) -> str:
    if re.fullmatch(r"\s*-?\d+,\d+\s*", value):
        return "say --decimal , if that is how numbers are written"
    return f"say --missing {value!r} if that stands for a missing value"
