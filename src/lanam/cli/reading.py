"""Tables from CSV and Parquet files, whole or part by part."""

from __future__ import annotations

import codecs
import csv
import glob
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from lanam.cli.errors import Complaint, Misuse
from lanam.cli.stopping import wait_for_input
from lanam.engines.delimited import (
    CONVERSION,
    LINE_ENDS,
    MISSING,
    RAGGED,
    find_delimiter,
    has_line,
    line_ends,
)

#: Bytes of a CSV file that are read at once; Arrow reads up to 32 such blocks ahead.
BLOCK_SIZE = 1 << 20

_COMPRESSED = (".gz", ".bz2", ".zst")
_CSV = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")

#: Arrow counts the bytes of a block in 31 bits.
_LARGEST_BLOCK = (1 << 31) - (1 << 20)
_HEAD = 1 << 16
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
    types
        Of a Parquet file, the columns' types.
    """

    path: str
    kind: str
    names: tuple[str, ...]
    dialect: Dialect
    stream: Callable[[], Any]
    found: bool = False
    bare: bool = False
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What messages call it."""
        return "standard input" if self.path == "-" else self.path

    def read(self, columns: Sequence[str]) -> tuple[pa.Table, dict[str, str]]:
        """The columns of the whole table, each of the type that all its values have.

        And of those that are numbers by that, but whose text begins with zeros, such a cell: ``"01234"``.
        """
        with _named_errors(self):
            if self.kind == "parquet":
                table = parquet.read_table(self.path, columns=list(columns), partitioning=None)
                return table, {}
            if self.bare:
                return pa.table({name: pa.nulls(0) for name in columns}), {}
            content = self.stream().read()
            # In one block, because types are found in the first.
            size = min(len(content) + 1, _LARGEST_BLOCK)
            options = self._options(columns, {}, size, strings_can_be_null=True)
            table = arrow_csv.read_csv(pa.BufferReader(content), **options)
            whole = [name for name in columns if pa.types.is_integer(table.schema.field(name).type)]
            return table, self._padded(content, whole)

    def _padded(self, content: bytes, names: Sequence[str]) -> dict[str, str]:
        """Which columns have whole numbers with zeros in front, with an example; by the first block."""
        if not names:
            return {}
        types = {name: pa.string() for name in names}
        options = self._options(names, types, BLOCK_SIZE, strings_can_be_null=False)
        try:
            first = arrow_csv.open_csv(pa.BufferReader(content), **options).read_next_batch()
        except (pa.ArrowInvalid, StopIteration):  # a row that is longer than a block, or none
            return {}
        padded = {}
        for name in names:
            cells = first.column(name)
            found = cells.filter(pc.match_substring_regex(cells, r"^\s*-?0\d+\s*$"))
            if len(found):
                padded[name] = found[0].as_py().strip()
        return padded

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

    def converted(
        self, part: pa.Table, types: Mapping[str, pa.DataType], n_before: int = 0
    ) -> pa.Table:
        """A part of a CSV file that was read as text, with ``types`` as if they had been read so.

        ``n_before`` rows came before the part.
        """
        gaps = pa.array(self.dialect.gaps)
        part = _with_gaps(part, list(types), gaps)
        for name, kind in types.items():
            if kind == pa.string():
                continue
            text = part[name]
            if kind != pa.bool_():
                text = pc.ascii_trim(text, " \t")
            if kind == pa.float64() and self.dialect.decimal != ".":
                # A point is then no part of a number, and a zero byte is in none.
                text = pc.replace_substring(text, ".", "\x00")
                text = pc.replace_substring(text, self.dialect.decimal, ".")
            try:
                values = text.cast(kind)
            except pa.ArrowInvalid:
                at = next(at for at, cell in enumerate(text) if not _is_cast(cell, kind))
                raise Complaint(
                    _wrong_cell(self, str(n_before + at + 2), name, kind, part[name][at].as_py())
                ) from None
            part = part.set_column(part.column_names.index(name), name, values)
        return part

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


def _is_cast(cell: pa.Scalar, kind: pa.DataType) -> bool:
    try:
        cell.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def is_text(kind: pa.DataType) -> bool:
    """Whether a column's values are text."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    views = getattr(pa.types, "is_string_view", lambda _: False)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or views(kind)


def are_files(path: str) -> bool:
    """Whether a path stands for several files: a folder, or a pattern such as ``"sales/*.parquet"``.

    Examples
    --------
    >>> are_files("sales/"), are_files("sales/*.parquet"), are_files("sales.parquet")
    (True, True, False)
    """
    pattern = glob.has_magic(path) and not os.path.exists(path)
    return pattern or os.path.isdir(path) or path.endswith(("/", os.sep))


def file_kind(path: str, endings: Sequence[str] = _COMPRESSED) -> tuple[str, bool]:
    """Whether a file is CSV or Parquet, and whether it is compressed, all by its name.

    ``endings`` are those of compressed files.

    Examples
    --------
    >>> file_kind("a/b.csv.gz"), file_kind("data.PARQUET")
    (('csv', True), ('parquet', False))
    """
    if path == "-":
        return "csv", False
    ending, compressed = _ending(path)
    if ending in _CSV:
        return "csv", compressed
    if ending in _PARQUET and not compressed:
        return "parquet", False
    raise Misuse(
        f"{path}: the name does not say what the file is: {', '.join(_CSV)} (and {', '.join(endings)} "
        f"behind them) are CSV, {' and '.join(_PARQUET)} are Parquet"
    )


def _ending(path: str) -> tuple[str, bool]:
    """How the file's own name ends, without what says that it is compressed, and whether it is."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    compressed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    return "".join((suffixes[:-1] if compressed else suffixes)[-1:]), compressed


def usual_delimiter(path: str) -> str:
    r"""What stands between columns of a CSV file of this name, if nobody says otherwise.

    Examples
    --------
    >>> usual_delimiter("a/b.TSV.gz"), usual_delimiter("a.tsv/b.csv")
    ('\t', ',')
    """
    return "\t" if _ending(path)[0] == ".tsv" else ","


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
            schema = file.schema_arrow
        names = _distinct(tuple(schema.names), path)
        return replace(source, names=names, types=dict(zip(names, schema.types, strict=True)))
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
    delimiter = dialect.delimiter or find_delimiter(header, usual_delimiter(path))
    names = tuple(next(csv.reader(io.StringIO(header), delimiter=delimiter)))
    return replace(
        source,
        names=_distinct(names, source.title),
        dialect=replace(dialect, delimiter=delimiter),
        found=dialect.delimiter is None and delimiter != usual_delimiter(path),
        bare=not has_line(head.lstrip(LINE_ENDS)),
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
    head, take = b"", _take(stream)
    while not has_line(head.lstrip(LINE_ENDS)) and len(head) < _LONGEST_HEADER:
        more = take(_HEAD)
        if not more:
            break
        head += more
    return head, stream


def _take(stream: Any) -> Callable[[int], bytes]:
    """Reads what a stream has, and does not wait until it has all that was asked for."""
    return getattr(stream, "read1", stream.read)


class _Rejoined(io.RawIOBase):
    """A stream of which the beginning was read before."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # Filled to the brim: a row of a table must not be scattered over several blocks.
        filled, view = 0, memoryview(buffer)
        while filled < len(view):
            part = self._next(len(view) - filled)
            if not part:
                break
            view[filled : filled + len(part)] = part
            filled += len(part)
        return filled

    def _next(self, size: int) -> bytes:
        """What can be had at once, but something; nothing at the end."""
        if self._head:
            part, self._head = self._head[:size], self._head[size:]
            return part
        return _take(self._rest)(size) if wait_for_input(self._rest) else b""


def _header(head: bytes, source: Source) -> str:
    """The header as text."""
    encoding = source.dialect.encoding
    head = head.lstrip(LINE_ENDS)  # as Arrow does
    if head.startswith(b"PAR1"):
        raise Complaint(f"{source.title} is a Parquet file: give it a name that ends in .parquet")
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and _is_utf8(encoding):
        raise Complaint(f"{source.title} is written in UTF-16: say --encoding utf-16")
    try:
        decoder = codecs.getincrementaldecoder("utf-8-sig" if _is_utf8(encoding) else encoding)()
    except LookupError:
        raise Misuse(f"--encoding {encoding} is not known: utf-8 and latin-1 are usual") from None
    first = head[: next(line_ends(head), len(head))] if _is_utf8(encoding) else head
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


def _distinct(names: tuple[str, ...], title: str) -> tuple[str, ...]:
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise Complaint(
            f"{title} has more than one column named {twice[0]!r}: columns are told apart by their "
            "names, so rename one of them"
        )
    return names


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
    if found := CONVERSION.search(message):
        name = source.names[int(found["column"])]
        if found["text"]:
            where = f"{title}{_row(found['row'])}: column {name!r}"
            return _not_text(where, source.dialect.encoding)
        return _wrong_cell(source, found["row"], name, found["to"], found["value"])
    if found := RAGGED.search(message):
        line = f" ({found['line'].strip()[:60]})" if found["line"] else ""
        return (
            f"{title}{_row(found['row'])}: {found['got']} cells, and the header has {found['wanted']}{line}"
            ": mend the row, put quotes around cells with the delimiter in them, or say another --delimiter"
        )
    if "straddl" in message:
        return (
            f"{title}: a row is longer than a block of the file: is a quote not closed? Else raise "
            "--block-size"
        )
    return f"{title}: {message}"


def _row(number: str | None) -> str:
    return f", row {number} (the header is row 1)" if number else ""


def _wrong_cell(
    source: Source, row: str | None, name: str, kind: str | pa.DataType, value: str
) -> str:
    return (
        f"{source.title}{_row(row)}: column {name!r} holds {_HOLDS.get(str(kind), kind)} in the model, and "
        f"here {value!r}: mend the cell, or {_cure(value)}"
    )


def _cure(value: str) -> str:
    if re.fullmatch(r"\s*-?\d+,\d+\s*", value):
        return "say --decimal , if that is how numbers are written"
    return f"say --missing {value!r} if that stands for a missing value"
