"""CSV files as text: what separates their cells, what stands for a missing one, what Arrow says of them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

#: What stands for a missing value.
MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL")

DELIMITERS = (",", ";", "\t", "|")

LINE_ENDS = b"\r\n"

#: Arrow's words for a cell that is not of its column's type, and for a row of more or fewer cells.
CONVERSION = re.compile(
    r"In CSV column #(?P<column>\d+): (?:Row #(?P<row>\d+): )?CSV conversion error to (?P<to>\w+): "
    r"(?:invalid value '(?P<value>.*?)'|(?P<text>invalid UTF8 data))",
    re.DOTALL,
)
RAGGED = re.compile(
    r"CSV parse error: (?:Row #(?P<row>\d+): )?Expected (?P<wanted>\d+) columns, got (?P<got>\d+)"
    r"(?:: (?P<line>.*))?",
    re.DOTALL,
)


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


def has_line(head: bytes) -> bool:
    """Whether a line ends outside of quotes."""
    return next(line_ends(head), None) is not None


def line_ends(head: bytes) -> Iterator[int]:
    """Where lines end outside of quotes."""
    ends = (match.start() for match in re.finditer(rb"[\r\n]", head))
    return (end for end in ends if head[:end].count(b'"') % 2 == 0)
