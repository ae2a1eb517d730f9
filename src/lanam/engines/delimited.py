"""The CSV reader, for files, compressed files and streams that can be read only once.

Errors in a file are reported in one line with the row, the column and the remedy.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from lanam.data.recognition import as_number, recognise
from lanam.engines.dialects import DELIMITERS, Dialect
from lanam.engines.formats import (
    FileBatch,
    FileInfo,
    Format,
    arrow,
    column_types,
    named_errors,
    open_file,
)
from lanam.engines.interface import Chunk, require_unique
from lanam.errors import InputError, Setting, numbered

#: Bytes to read at once.
BLOCK_SIZE = 1 << 22

#: Bytes from which the columns' types are inferred.
_HEAD = 1 << 20

#: Bytes to read at once in search of the header's end, and in all.
_STEP = 1 << 16
_LONGEST_HEADER = 1 << 24

#: Larger integers are not exact as floats.
LARGEST_WHOLE = 2**53

#: Compression by file suffix.
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}

_LINE_ENDS = b"\r\n"

#: Arrow's messages for a cell that does not have its column's type, and for a row of another length.
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
_ADJECTIVES = {"double": "numeric", "int64": "integer", "bool": "boolean"}


class PeekableStream(io.RawIOBase):
    """An open binary file that can be read once, with a look at its header before that."""

    def __init__(self, file: Any) -> None:
        self._take: Callable[[int], bytes] = getattr(file, "read1", file.read)
        self._head = b""

    def head(self) -> bytes:
        """The beginning, with all of the header."""
        self._head = _read_header(self._take, self._head)
        return self._head

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the whole buffer: Arrow needs each row to lie within two consecutive blocks."""
        filled, view = 0, memoryview(buffer)
        while filled < len(view):
            size = len(view) - filled
            part, self._head = self._head[:size], self._head[size:]
            if not (part := part or self._take(size)):
                break
            view[filled : filled + len(part)] = part
            filled += len(part)
        return filled


def _read_header(take: Callable[[int], bytes], head: bytes = b"") -> bytes:
    """The beginning of a stream, with at least the first line."""
    while next(_line_ends(head.lstrip(_LINE_ENDS)), None) is None and len(head) < _LONGEST_HEADER:
        if not (block := take(_STEP)):
            break
        head += block
    return head


def _line_ends(head: bytes) -> Iterator[int]:
    """Positions of line ends outside of quotes."""
    ends = (match.start() for match in re.finditer(rb"[\r\n]", head))
    return (end for end in ends if head[:end].count(b'"') % 2 == 0)


def usual_delimiter(path: str) -> str:
    r"""The default delimiter of a CSV file, by its name.

    Examples
    --------
    >>> usual_delimiter("a/b.TSV.gz"), usual_delimiter("a.tsv/b.csv")
    ('\t', ',')
    """
    name, ending = os.path.splitext(os.path.basename(path).lower())
    return "\t" if ending == ".tsv" or (ending in COMPRESSED and name.endswith(".tsv")) else ","


def find_delimiter(header: str, usual: str) -> str:
    """The delimiter that splits the header into most columns; in a tie the usual one.

    Examples
    --------
    >>> find_delimiter("age;height;weight, kg", ",")
    ';'
    """
    return max((usual, *DELIMITERS), key=lambda each: len(_split_header(header, each)))


def _split_header(header: str, delimiter: str) -> tuple[str, ...]:
    """The names in a header; none if one of them is longer than Python's reader takes."""
    try:
        return tuple(next(csv.reader(io.StringIO(header), delimiter=delimiter), ()))
    except csv.Error:
        return ()


@dataclass(frozen=True)
class _Header:
    """The header of a CSV file: blank lines before it, delimiter, names, and whether there are no rows."""

    n_blank: int
    delimiter: str
    names: tuple[str, ...]
    bare: bool

    @property
    def n_skipped(self) -> int:
        """The lines to skip: with one column, a blank line is a row whose only cell is empty."""
        return self.n_blank if len(self.names) == 1 else 0


@dataclass(frozen=True)
class Csv(Format):
    """CSV files with a header, or ``content`` that is read instead of a file.

    Columns have the ``given`` types, and others are strings; None: types are inferred from the head of a
    file.
    """

    dialect: Dialect = field(default_factory=Dialect)
    block_size: int | None = None
    given: Mapping[str, Any] | None = None
    content: PeekableStream | bytes | None = None

    title = "a CSV file"
    endings = tuple(
        kind + compressed for compressed in ("", *COMPRESSED) for kind in (".csv", ".tsv")
    )
    typed = False

    def inspect(self, path: str) -> FileInfo:
        """See `Format`; types are inferred from the head of the file, unless they are given."""
        pa = arrow()
        header = self._header(path)
        if self.given is not None:
            types = {name: self.given.get(name, pa.string()) for name in header.names}
            exact = frozenset(types).intersection(self.given)
            return FileInfo(types, (0 if header.bare else None,), exact)
        if header.bare:
            return FileInfo(dict.fromkeys(header.names, pa.null()), (0,))
        with self._translated_errors(path, header):
            with self._open(path, {}, header, _HEAD) as reader:
                types = column_types(reader.schema, path)
                batch = next(iter(reader), None)
            if batch is None or batch.num_rows == 0:
                return FileInfo(types, (0,))
            for name in (name for name, kind in types.items() if pa.types.is_binary(kind)):
                raise self._not_text(f"{path}, column {name!r}")
            missing = [name for name, kind in types.items() if kind == pa.null()]
            types |= self._infer_later(path, missing, header) if missing else {}
        cells = {name: batch.column(name) for name in types if name}
        exact = frozenset(name for name in cells if _is_beyond_floats(cells[name]))
        texts = [name for name in cells if types[name] == pa.string() and name not in missing]
        odd = {name: error for name in texts if (error := self._odd(name, cells[name], path))}
        return FileInfo(types, (None,), exact, odd)

    def _infer_later(self, path: str, names: Sequence[str], header: _Header) -> dict[str, Any]:
        """Types of columns that begin with missing values, from the first block with other values."""
        types: dict[str, Any] = {}
        strings = dict.fromkeys(names, arrow().string())
        with self._open(path, strings, header, self._size) as reader:
            for batch in reader:
                for name, cells in zip(names, batch.columns, strict=True):
                    if name not in types and cells.null_count < len(cells):
                        types[name] = self._infer(cells)
                if len(types) == len(names):
                    break
        return types

    def _infer(self, cells: Any) -> Any:
        """The type that Arrow would infer for strings in a CSV file."""
        pa = arrow()
        kinds = (pa.int64(), pa.float64(), pa.bool_())
        return next((kind for kind in kinds if self._cast(cells, kind) is not None), pa.string())

    def _odd(self, name: str, cells: Any, path: str) -> InputError | None:
        """The error for a string column most of whose distinct values are numbers; None for others."""
        pc, point = arrow().compute, self.dialect.point
        values = pc.unique(cells.drop_null())
        texts = values.filter(pc.invert(_are_numbers(values, point)))
        odd = texts.to_pylist()
        if odd and 2 * len(odd) < len(values):
            shown = ", ".join(map(repr, odd[:3])) + (", ..." if len(odd) > 3 else "")
            return InputError(
                "column {column!r} is numeric but for {shown}, first in row {number} of {path}",
                f"{_fix(odd[0], values.to_pylist())}, {{pass}} {{option}} if that stands for a missing "
                "value, or {categorical} if the column is categorical",
                column=name,
                shown=shown,
                number=_numbered(pc.index(cells, odd[0]).as_py()),
                path=path,
                option=_option("missing", [odd[0]]),
                categorical=Setting("categorical_features", [name]),
            )
        other = "." if point == "," else ","
        if odd and pc.all(_are_numbers(texts, other)).as_py():
            return InputError(
                "column {column!r} has numbers with a decimal {mark} (for example {value!r})",
                "{pass} {option}",
                column=name,
                mark="comma" if other == "," else "point",
                value=odd[0],
                option=_option("decimal", other),
            )
        return None

    def read(
        self, path: str, parts: Sequence[int], types: Mapping[str, Any]
    ) -> Iterator[FileBatch]:
        """See `Format`."""
        header, first = self._header(path), 0
        if header.bare:
            return
        texts = [name for name, kind in types.items() if kind == arrow().string()]
        verbatim = None in types.values()
        read_as = {name: kind or arrow().string() for name, kind in types.items()}
        with (
            self._translated_errors(path, header),
            self._open(path, read_as, header, self._size, not verbatim) as reader,
        ):
            for batch in reader:
                yield FileBatch(0, first, self._with_nulls(batch, texts) if verbatim else batch)
                first += batch.num_rows

    def parsed(self, types: Mapping[str, Any], chunk: Chunk) -> Chunk:
        """Parse columns of a chunk that were read verbatim."""
        frame = self._with_nulls(chunk.frame, list(types))
        for name, kind in types.items():
            cells = frame[name]
            values = self._cast(cells, kind)
            if values is None:
                each = (self._cast(cells[at : at + 1], kind) for at in range(len(cells)))
                at = next(at for at, value in enumerate(each) if value is None)
                row, value = chunk.first_row + at, chunk.frame[name][at].as_py()
                raise self._wrong_cell(chunk.place, row, name, str(kind), value)
            frame = frame.set_column(frame.column_names.index(name), name, values)
        return replace(chunk, frame=frame)

    def place(self, part: int, n_parts: int) -> str:
        """See `Format`."""
        return ""

    def found_delimiter(self, path: str) -> str | None:
        """The delimiter found in a file, if it is neither specified nor the usual one."""
        delimiter = self._header(path).delimiter
        expected = (self.dialect.delimiter, usual_delimiter(path))
        return None if delimiter in expected else delimiter

    @property
    def _size(self) -> int:
        return self.block_size or BLOCK_SIZE

    def _with_nulls(self, rows: Any, names: Sequence[str]) -> Any:
        """Replace the marks of missing values in string columns by nulls."""
        pa = arrow()
        marks, null = pa.array(self.dialect.missing_marks), pa.scalar(None, pa.string())
        for name in names:
            column = rows.column(name)
            missing = pa.compute.is_in(column, value_set=marks)
            values = pa.compute.if_else(missing, null, column)
            rows = rows.set_column(rows.schema.get_field_index(name), name, values)
        return rows

    def _cast(self, text: Any, kind: Any) -> Any:
        """Parse strings as Arrow's CSV reader does; None if one of them is not of this type."""
        pa, point = arrow(), self.dialect.point
        if kind not in (pa.bool_(), pa.string()):
            text = pa.compute.ascii_trim(text, " \t")
        if kind == pa.float64() and point != ".":
            # A point makes a number invalid then, as a zero byte does.
            text = pa.compute.replace_substring(text, ".", "\x00")
            text = pa.compute.replace_substring(text, point, ".")
        try:
            return text.cast(kind)
        except pa.ArrowInvalid:
            return None

    @contextmanager
    def _open(
        self, path: str, types: Mapping[str, Any], header: _Header, size: int, nulls: bool = True
    ) -> Iterator[Any]:
        """Arrow's reader; with ``nulls`` strings may be missing values."""
        options, dialect = arrow().csv, self.dialect
        # With a single thread errors have a row number.
        read = options.ReadOptions(use_threads=False, block_size=size, encoding=dialect.text)
        parse = options.ParseOptions(delimiter=header.delimiter, newlines_in_values=True)
        read.skip_rows, parse.ignore_empty_lines = header.n_skipped, len(header.names) > 1
        convert = options.ConvertOptions(
            include_columns=list(types),
            column_types=dict(types),
            null_values=dialect.missing_marks,
            decimal_point=dialect.point,
            strings_can_be_null=nulls,
        )
        with (
            self._stream(path) as stream,
            options.open_csv(stream, read, parse, convert) as reader,
        ):
            yield reader

    def _stream(self, path: str) -> Any:
        if isinstance(self.content, PeekableStream):
            return arrow().PythonFile(self.content, mode="r")
        if self.content is not None:
            return arrow().BufferReader(self.content)
        ending = os.path.splitext(path.lower())[1]
        return arrow().input_stream(open_file(path), compression=COMPRESSED.get(ending))

    def _header(self, path: str) -> _Header:
        if isinstance(self.content, PeekableStream):
            head = self.content.head()
        else:
            with named_errors(path, self.title), self._stream(path) as stream:
                head = _read_header(stream.read)
        n_blank = len(head[: len(head) - len(head.lstrip(_LINE_ENDS))].splitlines())
        head = head.lstrip(_LINE_ENDS)  # as Arrow does
        line = self._decoded(head, path)
        delimiter = self.dialect.delimiter or find_delimiter(line, usual_delimiter(path))
        names = _split_header(line, delimiter)
        if not names:
            raise InputError(
                "{path}: a name in the header is longer than {most:,} characters",
                "Is a quote not closed? If not, {pass another delimiter to csv_files}",
                path=path,
                most=csv.field_size_limit(),
            )
        require_unique([name for name in names if name], path)
        return _Header(n_blank, delimiter, names, bare=next(_line_ends(head), None) is None)

    def _decoded(self, head: bytes, path: str) -> str:
        """The decoded header."""
        utf8 = self.dialect.is_utf8
        if head.startswith(b"PAR1"):
            raise ValueError(f"{path} is a Parquet file: rename it to end in .parquet")
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and utf8:
            utf16 = _option("encoding", "utf-16")
            problem = "{path} is encoded in UTF-16"
            raise InputError(problem, "{pass} {option}", path=path, option=utf16)
        if not head.strip():
            raise ValueError(f"{path} is empty: a CSV file begins with a header")
        decoder = codecs.getincrementaldecoder("utf-8-sig" if utf8 else self.dialect.text)()
        try:
            line = decoder.decode(head[: next(_line_ends(head), len(head))] if utf8 else head)
        except UnicodeError as error:
            raise self._not_text(f"{path}: the header") from error
        if "\x00" in line:
            raise ValueError(f"{path} is not a text file: it has zero bytes")
        if not line.strip():
            raise ValueError(f"{path} has no header")
        return line

    @contextmanager
    def _translated_errors(self, path: str, header: _Header) -> Iterator[None]:
        """Translate Arrow's errors about cells and rows."""
        with named_errors(path, self.title):
            try:
                yield
            except UnicodeDecodeError as error:
                raise self._not_text(path) from error
            except arrow().ArrowInvalid as error:
                translated = self._translated(str(error), path, header)
                if translated is None:
                    raise
                raise translated from error

    def _translated(self, message: str, path: str, header: _Header) -> InputError | None:
        if match := _CONVERSION.search(message):
            row = _index(match["row"], header)
            name = header.names[int(match["column"])]
            # Bytes that are not text are replaced in Arrow's message.
            if match["text"] or "\N{REPLACEMENT CHARACTER}" in match["value"]:
                return self._not_text(f"{_place(path, row)}: column {name!r}")
            return self._wrong_cell(path, row, name, match["to"], match["value"])
        if match := _RAGGED.search(message):
            line = f" ({match['line'].strip()[:60]})" if match["line"] else ""
            return InputError(
                f"{{place}}: {match['got']} cells, but the header has {match['wanted']}{{begins}}",
                "fix the row, quote cells that contain the delimiter, or {pass another delimiter to "
                "csv_files}",
                place=_place(path, _index(match["row"], header)),
                begins=line,
            )
        if "straddl" in message:
            remedy = "" if self.block_size is None else " If not, increase {block_size}"
            problem = f"{{path}}: a row is longer than {self._size:,} bytes: is a quote not closed?"
            return InputError(problem + remedy, path=path)
        return None

    def _wrong_cell(self, path: str, row: int | None, name: str, to: str, value: str) -> InputError:
        holds = _ADJECTIVES.get(to, to)
        what = (
            f", column {{column!r}}: {{value!r}} is not {holds}, unlike the values above it"
            if self.given is None
            else f": column {{column!r}} is {holds} in the model, and {{value!r}} is not"
        )
        other = "." if self.dialect.point == "," else ","
        written = re.fullmatch(rf"\s*-?\d+{re.escape(other)}\d+\s*", value)
        if written and other == "." and self.given is not None:
            what += " with a decimal comma, which a model remembers of its training file"
        if_so = "that is how numbers are written" if written else "that stands for a missing value"
        return InputError(
            f"{{place}}{what}",
            f"fix the cell, or {{pass}} {{option}} if {if_so}",
            column=name,
            value=value,
            place=_place(path, row),
            option=_option("decimal", other) if written else _option("missing", [value]),
        )

    def _not_text(self, where: str) -> InputError:
        problem = "{place} is not encoded in {charset}"
        remedy = "specify the encoding, for example {by }{option}"
        latin, now = _option("encoding", "latin-1"), self.dialect.text
        return InputError(problem, remedy, place=where, charset=now, option=latin)


def _option(name: str, value: object) -> Setting:
    """An argument of `lanam.csv_files`."""
    return Setting(name, value, "csv_files")


def _fix(text: str, values: Sequence[str]) -> str:
    """What to do about a string among numbers, which may be a limit, <0.1, or a negative number, (12)."""
    found = recognise(values, len(values))
    if found is None or not (found.limit or found.negative):
        return "Fix it"
    number = as_number(text, found)
    return "Fix it" if number is None else f"Write numbers without marks ({number:g} for {text!r})"


def _numbered(row: int) -> str:
    return numbered(row, " after the header")


def _index(number: str | None, header: _Header) -> int | None:
    """The index of a row by its number in Arrow's messages, which counts the header and skipped lines."""
    return None if number is None else int(number) - 2 - header.n_skipped


def _place(path: str, row: int | None) -> str:
    """A file and the index of one of its rows, if that is known."""
    return path if row is None else f"{path}, row {_numbered(row)}"


def _is_beyond_floats(cells: Any) -> bool:
    """Whether there are integers that are not exact as floats."""
    pa = arrow()
    if not pa.types.is_integer(cells.type):
        return False
    ends = pa.compute.min_max(cells).as_py().values()
    return any(abs(end) > LARGEST_WHOLE for end in ends if end is not None)


def _are_numbers(texts: Any, point: str) -> Any:
    """Which strings are numbers with this decimal point."""
    mark = re.escape(point)
    pattern = rf"^\s*[-+]?(\d+({mark}\d*)?|{mark}\d+)([eE][-+]?\d+)?\s*$"
    return arrow().compute.match_substring_regex(texts, pattern)
