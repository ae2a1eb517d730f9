"""CSV files: how they are written, and their rows part by part.

The one reader of text: of files, of several, of compressed ones and of streams that can be read but once,
for the library and for the command line. Whatever is wrong with a file is said in a line that names the
row, the column and the remedy.
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

from lanam.engines.dialects import DELIMITERS, Dialect
from lanam.engines.formats import LARGEST_CHUNK, Contents, Part, arrow, columns_of, named_errors
from lanam.engines.interface import Chunk
from lanam.errors import InputError, Setting

#: Bytes of a CSV file that are read at once.
BLOCK_SIZE = 1 << 22

#: Bytes of a CSV file by which its columns are known.
_HEAD = 1 << 20

#: Bytes in which a header is looked for, and how many such steps it may take.
_STEP = 1 << 16
_LONGEST_HEADER = 1 << 24

#: Beyond this floats do not tell whole numbers apart.
LARGEST_WHOLE = 2**53

#: How text is compressed, by the ends of files' names.
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}

_LINE_ENDS = b"\r\n"

#: Arrow's words for a cell that is not of its column's type, and for a row of more or fewer cells.
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


class Once(io.RawIOBase):
    """A stream that can be read but once, whose beginning may be looked at before.

    Parameters
    ----------
    file
        An open binary file. ``read1`` is asked, where there is one, for what can be had at once.
    """

    def __init__(self, file: Any) -> None:
        self._take: Callable[[int], bytes] = getattr(file, "read1", file.read)
        self._head = b""

    def head(self) -> bytes:
        """Its beginning, with all of the header."""
        self._head = _read_header(self._take, self._head)
        return self._head

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer to the brim: a row of a table must not be scattered over several blocks."""
        filled, view = 0, memoryview(buffer)
        while filled < len(view):
            size = len(view) - filled
            part, self._head = self._head[:size], self._head[size:]
            part = part or self._take(size)
            if not part:
                break
            view[filled : filled + len(part)] = part
            filled += len(part)
        return filled


def _read_header(take: Callable[[int], bytes], head: bytes = b"") -> bytes:
    """The beginning of a stream until its first line is whole."""
    while next(_line_ends(head.lstrip(_LINE_ENDS)), None) is None and len(head) < _LONGEST_HEADER:
        more = take(_STEP)
        if not more:
            break
        head += more
    return head


def _line_ends(head: bytes) -> Iterator[int]:
    """Where lines end outside of quotes."""
    ends = (match.start() for match in re.finditer(rb"[\r\n]", head))
    return (end for end in ends if head[:end].count(b'"') % 2 == 0)


def usual_delimiter(path: str) -> str:
    r"""What stands between columns of a CSV file of this name, if nobody says otherwise.

    Examples
    --------
    >>> usual_delimiter("a/b.TSV.gz"), usual_delimiter("a.tsv/b.csv")
    ('\t', ',')
    """
    name, ending = os.path.splitext(os.path.basename(path).lower())
    return "\t" if ending == ".tsv" or (ending in COMPRESSED and name.endswith(".tsv")) else ","


def find_delimiter(header: str, usual: str) -> str:
    """What stands between the names: what makes most columns of them, the usual one rather than another.

    Examples
    --------
    >>> find_delimiter("age;height;weight, kg", ",")
    ';'
    """

    def n_columns(delimiter: str) -> int:
        return len(next(csv.reader(io.StringIO(header), delimiter=delimiter), []))

    return max((usual, *DELIMITERS), key=n_columns)


@dataclass(frozen=True)
class _Header:
    """The header of a CSV file: what is between cells, names, and whether there is nothing else."""

    delimiter: str
    names: tuple[str, ...]
    bare: bool


@dataclass(frozen=True)
class Csv:
    """CSV files with a header; numbers are floats, and missing values are as the dialect has them.

    Attributes
    ----------
    dialect
        How they are written.
    block_size
        How many bytes are read at once.
    known
        What columns are read as, whatever they look like; others are text then. Where nothing is known
        the beginning of a file tells.
    content
        What is read in place of a file: a stream, or all of it.
    """

    dialect: Dialect = field(default_factory=Dialect)
    block_size: int | None = None
    known: Mapping[str, Any] | None = None
    content: Once | bytes | None = None

    title = "a CSV file"
    endings = tuple(
        kind + compressed for compressed in ("", *COMPRESSED) for kind in (".csv", ".tsv")
    )
    typed = False

    def look(self, path: str) -> Contents:
        """See `Format`; types are by the beginning of the file, unless they are known."""
        pa = arrow()
        header = self._header(path)
        if self.known is not None:
            types = {name: self.known.get(name, pa.string()) for name in header.names}
            own = frozenset(types).intersection(self.known)
            return Contents(types, (0 if header.bare else None,), own)
        if header.bare:
            return Contents(dict.fromkeys(header.names, pa.null()), (0,))
        with self._words(path, header):
            with self._open(path, {}, header, _HEAD) as reader:
                types = columns_of(reader.schema, path)
                batch = next(iter(reader), None)
            if batch is None or batch.num_rows == 0:
                return Contents(types, (0,))
            for name in (name for name, kind in types.items() if pa.types.is_binary(kind)):
                raise self._not_text(f"{path}, column {name!r}")
            unknown = [name for name, kind in types.items() if kind == pa.null()]
            types |= self._later(path, unknown, header)
        cells = {name: batch.column(name) for name in types if name}
        exact = {name for name in cells if _is_beyond_floats(cells[name])}
        texts = (name for name in cells if types[name] == pa.string())
        odd = {name: self._odd(name, cells[name], path) for name in texts if name not in unknown}
        return Contents(
            types, (None,), frozenset(exact), {name: said for name, said in odd.items() if said}
        )

    def _later(self, path: str, names: Sequence[str], header: _Header) -> dict[str, Any]:
        """Types of columns that begin with missing values, by the first block in which they have others."""
        found: dict[str, Any] = {}
        if not names:
            return found
        texts = dict.fromkeys(names, arrow().string())
        with self._open(path, texts, header, self._size) as reader:
            for batch in reader:
                for name, cells in zip(names, batch.columns, strict=True):
                    if name not in found and cells.null_count < len(cells):
                        found[name] = self._judge(cells)
                if len(found) == len(names):
                    break
        return found

    def _judge(self, cells: Any) -> Any:
        """The type that text would have had as a CSV file's."""
        pa = arrow()
        for kind in (pa.int64(), pa.float64(), pa.bool_()):
            try:
                self._cast(cells, kind)
            except pa.ArrowInvalid:
                continue
            return kind
        return pa.string()

    def _odd(self, name: str, cells: Any, path: str) -> InputError | None:
        """An error for text most of whose different values are numbers, most likely by a slip in a cell."""
        pc, point = arrow().compute, self.dialect.point
        values = pc.unique(cells.drop_null())
        strange = values.filter(pc.invert(_are_numbers(values, point)))
        odd = strange.to_pylist()
        if odd and 2 * len(odd) < len(values):
            row = pc.index(cells, odd[0]).as_py() + 2
            shown = ", ".join(map(repr, odd[:3])) + (", ..." if len(odd) > 3 else "")
            return InputError(
                "column {column!r} holds text among numbers: {shown}, first in row {number} of {path} (the "
                "header is row 1)",
                "Mend it, {pass} {option} if that stands for a missing value, or {categorical} if all its "
                "values are categories",
                column=name,
                shown=shown,
                number=row,
                path=path,
                option=_option("missing", [odd[0]]),
                categorical=Setting("categorical_features", [name]),
            )
        other = "." if point == "," else ","
        if odd and pc.all(_are_numbers(strange, other)).as_py():
            return InputError(
                "column {column!r} holds numbers with a decimal {mark} (for example {value!r})",
                "{pass} {option}",
                column=name,
                mark="comma" if other == "," else "point",
                value=odd[0],
                option=_option("decimal", other),
            )
        return None

    def read(self, path: str, parts: Sequence[int], types: Mapping[str, Any]) -> Iterator[Part]:
        """See `Format`."""
        header, first = self._header(path), 2  # the header is row 1
        if header.bare:
            return
        texts = [name for name, kind in types.items() if kind == arrow().string()]
        verbatim = None in types.values()
        read_as = {name: kind or arrow().string() for name, kind in types.items()}
        with (
            self._words(path, header),
            self._open(path, read_as, header, self._size, verbatim) as reader,
        ):
            for batch in reader:
                rows = self._with_gaps(batch, texts) if verbatim else batch
                for start in range(0, rows.num_rows, LARGEST_CHUNK):
                    yield Part(0, first + start, rows.slice(start, LARGEST_CHUNK))
                first += rows.num_rows

    def parsed(self, types: Mapping[str, Any], chunk: Chunk) -> Chunk:
        """A chunk whose columns of these types were read as written."""
        pa, frame = arrow(), self._with_gaps(chunk.frame, list(types))
        for name, kind in types.items():
            text = frame[name]
            try:
                values = self._cast(text, kind)
            except pa.ArrowInvalid:
                at = next(at for at in range(len(text)) if not self._casts(text[at : at + 1], kind))
                row, value = str(chunk.first_row + at), chunk.frame[name][at].as_py()
                path = chunk.place.removesuffix(self.place(0, 1))
                raise self._wrong_cell(path, row, name, str(kind), value) from None
            frame = frame.set_column(frame.column_names.index(name), name, values)
        return replace(chunk, frame=frame)

    def place(self, part: int, n_parts: int) -> str:
        """See `Format`."""
        return " (the header is row 1)"

    def delimiter(self, path: str) -> str:
        """What stands between the columns of a file."""
        return self._header(path).delimiter

    @property
    def _size(self) -> int:
        return self.block_size or BLOCK_SIZE

    def _with_gaps(self, rows: Any, texts: Sequence[str]) -> Any:
        """Rows with nulls for what stands for missing values in columns of text."""
        pa = arrow()
        gaps, nothing = pa.array(self.dialect.gaps), pa.scalar(None, pa.string())
        for name in texts:
            column = rows.column(name)
            missing = pa.compute.is_in(column, value_set=gaps)
            known = pa.compute.if_else(missing, nothing, column)
            rows = rows.set_column(rows.schema.get_field_index(name), name, known)
        return rows

    def _cast(self, text: Any, kind: Any) -> Any:
        """Text as if it had been read as this type."""
        pa, point = arrow(), self.dialect.point
        if kind not in (pa.bool_(), pa.string()):
            text = pa.compute.ascii_trim(text, " \t")
        if kind == pa.float64() and point != ".":
            # A point is then no part of a number, and a zero byte is in none.
            text = pa.compute.replace_substring(text, ".", "\x00")
            text = pa.compute.replace_substring(text, point, ".")
        return text.cast(kind)

    def _casts(self, text: Any, kind: Any) -> bool:
        try:
            self._cast(text, kind)
        except arrow().ArrowInvalid:
            return False
        return True

    @contextmanager
    def _open(
        self,
        path: str,
        types: Mapping[str, Any],
        header: _Header,
        block_size: int,
        verbatim: bool = False,
    ) -> Iterator[Any]:
        arrow_csv = arrow().csv
        with (
            self._stream(path) as stream,
            arrow_csv.open_csv(
                stream,
                # In one thread errors know their row.
                arrow_csv.ReadOptions(
                    use_threads=False, block_size=block_size, encoding=self.dialect.text
                ),
                arrow_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    include_columns=list(types),
                    column_types=dict(types),
                    null_values=self.dialect.gaps,
                    decimal_point=self.dialect.point,
                    strings_can_be_null=not verbatim,
                ),
            ) as reader,
        ):
            yield reader

    def _stream(self, path: str) -> Any:
        if isinstance(self.content, Once):
            return arrow().PythonFile(self.content, mode="r")
        if self.content is not None:
            return arrow().BufferReader(self.content)
        ending = os.path.splitext(path.lower())[1]
        return arrow().input_stream(path, compression=COMPRESSED.get(ending))

    def _header(self, path: str) -> _Header:
        if isinstance(self.content, Once):
            head = self.content.head()
        else:
            with named_errors(path, self.title), self._stream(path) as stream:
                head = _read_header(stream.read)
        head = head.lstrip(_LINE_ENDS)  # as Arrow does
        line = self._decoded(head, path)
        delimiter = self.dialect.delimiter or find_delimiter(line, usual_delimiter(path))
        names = tuple(next(csv.reader(io.StringIO(line), delimiter=delimiter)))
        if twice := sorted({name for name in names if name and names.count(name) > 1}):
            columns_of(arrow().schema([(twice[0], arrow().null())] * 2), path)  # which refuses it
        return _Header(delimiter, names, bare=next(_line_ends(head), None) is None)

    def _decoded(self, head: bytes, path: str) -> str:
        """The header as text."""
        utf8 = self.dialect.is_utf8
        if head.startswith(b"PAR1"):
            raise ValueError(f"{path} is a Parquet file: give it a name that ends in .parquet")
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and utf8:
            utf16 = _option("encoding", "utf-16")
            problem = "{path} is written in UTF-16"
            raise InputError(problem, "{pass} {option}", path=path, option=utf16)
        if not head.strip():
            raise ValueError(f"{path} is empty: a CSV file begins with the names of its columns")
        decoder = codecs.getincrementaldecoder("utf-8-sig" if utf8 else self.dialect.text)()
        try:
            line = decoder.decode(head[: next(_line_ends(head), len(head))] if utf8 else head)
        except UnicodeDecodeError as error:
            raise self._not_text(f"{path}: the header") from error
        if "\x00" in line:
            raise ValueError(f"{path} is not text: a CSV file has no zero bytes")
        if not line.strip():
            raise ValueError(f"{path} has no header")
        return line

    @contextmanager
    def _words(self, path: str, header: _Header) -> Iterator[None]:
        """Arrow's errors on cells and rows in words."""
        with named_errors(path, self.title):
            try:
                yield
            except UnicodeDecodeError as error:
                raise self._not_text(path) from error
            except arrow().ArrowInvalid as error:
                said = self._said_of(str(error), path, header)
                if said is None:
                    raise
                raise said from error

    def _said_of(self, message: str, path: str, header: _Header) -> InputError | None:
        if found := _CONVERSION.search(message):
            name = header.names[int(found["column"])]
            if found["text"]:
                return self._not_text(f"{path}{_row(found['row'])}: column {name!r}")
            return self._wrong_cell(path, found["row"], name, found["to"], found["value"])
        if found := _RAGGED.search(message):
            line = f" ({found['line'].strip()[:60]})" if found["line"] else ""
            return InputError(
                f"{{place}}: {found['got']} cells, and the header has {found['wanted']}{{begins}}",
                "mend the row, put quotes around cells with the delimiter in them, or {pass another "
                "delimiter to csv_files}",
                place=f"{path}{_row(found['row'])}",
                begins=line,
            )
        if "straddl" in message:
            more = "" if self.block_size is None else " Else raise {block_size}"
            problem = (
                f"{{path}}: a row is longer than {self._size:,} bytes: is a quote not closed?{more}"
            )
            return InputError(problem, path=path)
        return None

    def _wrong_cell(self, path: str, row: str | None, name: str, to: str, value: str) -> InputError:
        holds = _HOLDS.get(to, to)
        what = (
            f", column {{column!r}}: {{value!r}} is none of the {holds} that the column begins with"
            if self.known is None
            else f": column {{column!r}} holds {holds} in the model, and here {{value!r}}"
        )
        comma = re.fullmatch(r"\s*-?\d+,\d+\s*", value)
        if_so = "that is how numbers are written" if comma else "that stands for a missing value"
        return InputError(
            f"{{place}}{what}",
            f"mend the cell, or {{pass}} {{option}} if {if_so}",
            column=name,
            value=value,
            place=f"{path}{_row(row)}",
            option=_option("decimal", ",") if comma else _option("missing", [value]),
        )

    def _not_text(self, where: str) -> InputError:
        problem = "{place} is not text in {charset}"
        remedy = "say which it is, for example {by }{option}"
        latin, now = _option("encoding", "latin-1"), self.dialect.text
        return InputError(problem, remedy, place=where, charset=now, option=latin)


def _option(name: str, value: object) -> Setting:
    """How files are written, as users say it."""
    return Setting(name, value, "csv_files")


def _row(number: str | None) -> str:
    return f", row {number} (the header is row 1)" if number else ""


def _is_beyond_floats(cells: Any) -> bool:
    """Whether there are integers that floats do not tell apart."""
    pa = arrow()
    if not pa.types.is_integer(cells.type):
        return False
    ends = pa.compute.min_max(cells).as_py().values()
    return any(abs(end) > LARGEST_WHOLE for end in ends if end is not None)


def _are_numbers(texts: Any, point: str) -> Any:
    """Which texts are numbers with this decimal point."""
    mark = re.escape(point)
    pattern = rf"^\s*[-+]?(\d+({mark}\d*)?|{mark}\d+)([eE][-+]?\d+)?\s*$"
    return arrow().compute.match_substring_regex(texts, pattern)
