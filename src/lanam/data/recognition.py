"""Strings that are something else than categories: numbers, amounts, dates, times, identifiers, free text.

A column is judged by its distinct values, so that rows in memory and rows in chunks are judged alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

#: Kinds of strings.
NUMBERS = "numbers"
SEPARATED = "numbers with thousands separators or a decimal comma"
AMOUNTS = "amounts of money"
PERCENT = "percentages"
UNITS = "numbers with a unit"
DATES = "dates"
TIMES = "times of day"
IDENTIFIERS = "identifiers"
FREE_TEXT = "free text"

#: The format of dates of ISO 8601 some of which have other fractions of a second than others.
ISO = "ISO8601"

#: This many distinct values, evenly spaced in their order, are looked at.
_MOST_EXAMINED = 1000
#: A column is of a kind if all but this fraction of its distinct values are.
_ODD = 0.1
#: Numbers in this many distinct values may be codes of categories.
_FEW_CODES = 20

#: Strings that differ from row to row are judged if there are more rows than this, ...
_LEAST_ROWS = 50
#: ... and more than this fraction of them is distinct; ...
_MOSTLY_DISTINCT = 0.9
#: ... they are free text if they have more characters than this on average. Identifiers are shorter.
_FREE_TEXT_LENGTH = 30.0
#: The number of distinct values out of core is an estimate.
_ALL_DISTINCT = 0.97

#: What stands for a missing value among other strings, in lower case.
_MISSING = frozenset(
    ("", "?", "-", "--", ".", "na", "n/a", "nan", "nil", "none", "null", "missing", "unknown")
)

_PLAIN = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_GROUPED = r"\d{1,3}(?:[.,'’\u00a0\u202f ]\d{3})+(?:[.,]\d+)?"
_NUMBER = rf"(?:{_GROUPED}|\d+,\d*|,\d+|{_PLAIN})"
_SIGN = r"[-+\u2212]?\s?"
_MONEY = (
    r"(?:[A-Z]{0,3}[$€£¥₹₽₩₺₫₪₴₦฿]|EUR|USD|GBP|CHF|JPY|CNY|RMB|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|"
    r"ZAR|Rs\.?|kr\.?|zł|Kč|Ft)"
)

#: Patterns of the kinds that one value is enough to tell, the most specific first.
_PATTERNS = (
    (NUMBERS, re.compile(_SIGN + _PLAIN)),
    (SEPARATED, re.compile(_SIGN + _NUMBER)),
    (PERCENT, re.compile(rf"{_SIGN}{_NUMBER}\s?%")),
    (AMOUNTS, re.compile(rf"{_SIGN}(?:{_MONEY}\s?{_SIGN}{_NUMBER}|{_NUMBER}\s?{_MONEY})")),
)
_WHOLE = re.compile(r"[-+]?\d+")
_PADDED = re.compile(r"0\d+")
_ACCOUNTING = re.compile(r"[^()]*\([^()]+\)[^()]*")
_LIMIT = re.compile(rf"[<>≤≥]=?\s?{_SIGN}{_NUMBER}")
#: What a negative number may have in place of a minus.
_NEGATIVE = "(\u2212"
_UNIT = re.compile(rf"{_SIGN}{_NUMBER}\s?([^\W\d_][^\s\d]{{0,9}})")

#: Formats of ``strptime``; where the day and the month could be exchanged, the day is first.
_DATE_FORMATS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y"),
    *("%d %b %Y", "%d %B %Y", "%d. %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %y", "%d%b%Y"),
    *("%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%a, %d %b %Y", "%A, %d %B %Y"),
    *("%b %Y", "%B %Y", "%b-%Y", "%b-%y", "%Y-%m", "%Y/%m", "%m/%Y"),
)
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p")
_TIMES = [
    between + clock + zone for between, clock, zone in product(" T", _CLOCKS, ("", "%z", " %z"))
]

_MONTHS = "January February March April May June July August September October November December"
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
#: The directives of these formats as regular expressions, faster than ``strptime`` and in English anywhere.
_DIRECTIVES = {
    "%Y": r"(?:1[89]|20)\d\d",
    "%y": r"\d\d",
    "%m": r"(?:0?[1-9]|1[0-2])",
    "%d": r"(?:0?[1-9]|[12]\d|3[01])",
    "%H": r"(?:[01]?\d|2[0-3])",
    "%I": r"(?:0?[1-9]|1[0-2])",
    "%M": r"[0-5]\d",
    "%S": r"[0-5]\d",
    "%f": r"\d{1,9}",
    "%p": r"[AP]M",
    "%z": r"(?:Z|[-+]\d\d:?\d\d)",
    "%b": f"(?:{'|'.join(month[:3] for month in _MONTHS.split())})",
    "%B": f"(?:{_MONTHS.replace(' ', '|')})",
    "%a": f"(?:{'|'.join(day[:3] for day in _WEEKDAYS.split())})",
    "%A": f"(?:{_WEEKDAYS.replace(' ', '|')})",
}

#: Numbers of digits that identifiers have: fewer are quantities, ten and more seconds since 1970.
_ID_DIGITS = range(7, 10)
#: Numbers that stand for missing values, and the number of rows that must have one.
_NINES = re.compile(r"-?9{2,}")
_FEWEST_CODES = 3

#: Names of columns that identify rows.
_ID_NAME = re.compile(r"(?i:^(?:id|key|uuid|index)$)|[\W_](?i:id|key|uuid)$|(?<=[a-z])(?:ID|Id)$")


@dataclass(frozen=True)
class Recognised:
    """What strings are, an example, and how to read them.

    ``decimal`` is the decimal point of numbers, ``format`` the one of ``strptime`` that fits dates and
    times (or `ISO`): "" if there is none that fits all. ``certain`` is False if they may be categories.

    What is no plain number becomes one if the characters ``negative`` are replaced by a minus and those
    of the regular expression ``marks`` are removed, or is ``lost``; ``limit`` is an example of ``<0.1``.
    """

    what: str
    example: str
    decimal: str = "."
    format: str = ""
    certain: bool = True
    marks: str = ""
    negative: str = ""
    limit: str = ""
    lost: tuple[str, ...] = ()


def recognise(levels: Sequence[str], n_values: int) -> Recognised | None:
    """What the distinct strings of a column are, of ``n_values`` in all; None for categories.

    Examples
    --------
    >>> recognise(["€48.965", "€1.234,50"], 2)
    Recognised(what='amounts of money', example='€48.965', decimal=',', ...)
    >>> recognise(["24/10/2023 09:30", "01/11/2023 17:00"], 2).format
    '%d/%m/%Y %H:%M'
    >>> recognise(["red", "green", "1"], 40)
    """
    step = -(-len(levels) // _MOST_EXAMINED) or 1
    examined = [text for level in levels[::step] if (text := level.strip()).lower() not in _MISSING]
    if len(examined) > 1:
        for judge in (_as_numbers, _as_units, _as_moments):
            if found := judge(examined):
                return found
    return _as_distinct(levels, n_values)


def _mostly(examined: Sequence[str], texts: Sequence[str]) -> bool:
    return len(texts) > 1 and len(texts) >= (1.0 - _ODD) * len(examined)


def _as_numbers(examined: Sequence[str]) -> Recognised | None:
    for what, pattern in _PATTERNS:
        texts = [text for text in examined if pattern.fullmatch(text)]
        # Accounting: (€1,009) is a negative amount.
        inverted = [
            text
            for text in examined
            if _ACCOUNTING.fullmatch(text) and pattern.fullmatch(re.sub("[()]", "", text))
        ]
        if not texts or not _mostly(examined, texts + inverted):
            continue
        if what != NUMBERS:
            plain = _PATTERNS[0][1]
            example = next((text for text in texts if not plain.fullmatch(text)), texts[0])
            return _marked(Recognised(what, example, _decimal_of(texts + inverted)), examined)
        whole = all(map(_WHOLE.fullmatch, texts))
        if whole and any(map(_PADDED.fullmatch, texts)):
            return None  # leading zeros: codes
        found = Recognised(what, texts[0], certain=not whole or len(texts) > _FEW_CODES)
        return _marked(found, examined)
    return None


def _marked(found: Recognised, examined: Sequence[str]) -> Recognised:
    """The marks of numbers: all but digits, points and signs, or those of negative numbers and limits."""
    negative = "".join(mark for mark in _NEGATIVE if any(mark in text for text in examined))
    limit = next(filter(_LIMIT.fullmatch, examined), "")
    marks = rf"[^\d{found.decimal}-]" if "(" in negative else rf"[^\d{found.decimal}()-]"
    if found.what == NUMBERS:
        marks = r"[)<>≤≥=\s]" if negative or limit else ""
    found = replace(found, marks=marks, negative=negative, limit=limit)
    lost = [text for text in examined if as_number(text, found) is None]
    return replace(found, lost=tuple(lost))


def as_number(text: str, found: Recognised) -> float | None:
    """The number in a string, by the marks of its column; None if there is none.

    Examples
    --------
    >>> as_number("(€1,009)", recognise(["€1,200", "(€1,009)"], 2))
    -1009.0
    """
    for mark in found.negative:
        text = text.replace(mark, "-")
    text = re.sub(found.marks, "", text) if found.marks else text
    try:
        return float(text.replace(found.decimal, "."))
    except ValueError:
        return None


def _decimal_of(texts: Iterable[str]) -> str:
    """The decimal point of numbers, some of which may have thousands separators."""
    marks = ".,"
    for text in texts:
        number = re.sub(r"[^\d.,]", "", text).strip(marks)
        last = max(marks, key=number.rfind)
        if last not in number:
            continue
        other = marks.replace(last, "")
        if number.count(last) > 1:
            return other
        if other in number or len(number) - number.index(last) != 4 or number.index(last) > 3:
            return last
    # Three digits after each mark: thousands.
    return "," if any("." in text for text in texts) else "."


def _as_units(examined: Sequence[str]) -> Recognised | None:
    matches = [match for text in examined if (match := _UNIT.fullmatch(text))]
    units = {match[1].lower() for match in matches}
    texts = [match[0] for match in matches]
    if len(units) != 1 or not _mostly(examined, texts) or len(texts) <= _FEW_CODES:
        return None
    return _marked(Recognised(UNITS, texts[0], _decimal_of(texts)), examined)


def _as_moments(examined: Sequence[str]) -> Recognised | None:
    """Dates, with times or without, and times of day."""
    probes = {examined[0], examined[len(examined) // 2], examined[-1]}
    for what, formats in ((TIMES, _CLOCKS), (DATES, None)):
        candidates = [
            each for each in formats or _date_formats(probes) if any(_fits(t, each) for t in probes)
        ]
        texts = [text for text in examined if any(_fits(text, each) for each in candidates)]
        if _mostly(examined, texts):
            common = (each for each in candidates if all(_fits(text, each) for text in texts))
            iso = all(each.startswith("%Y-%m-%d") for each in candidates)
            return Recognised(what, texts[0], format=next(common, ISO if iso else ""))
    return None


def _date_formats(probes: Collection[str]) -> Iterator[str]:
    for date in _DATE_FORMATS:
        if any(_pattern(date).match(text) for text in probes):
            yield from (date + time for time in ("", *_TIMES))


def _fits(text: str, format: str) -> bool:
    return _pattern(format).fullmatch(text) is not None


@cache
def _pattern(format: str) -> re.Pattern[str]:
    """The regular expression of a format."""
    parts = re.split(r"(%\w)", format)
    return re.compile("".join(_DIRECTIVES.get(part) or re.escape(part) for part in parts), re.I)


def _as_distinct(levels: Sequence[str], n_values: int) -> Recognised | None:
    """Identifiers and free text, which hardly ever are the same twice."""
    if n_values <= _LEAST_ROWS or len(levels) <= _MOSTLY_DISTINCT * n_values:
        return None
    long = sum(map(len, levels)) > _FREE_TEXT_LENGTH * len(levels)
    return Recognised(FREE_TEXT if long else IDENTIFIERS, levels[0])


def alike(levels: Iterable[str]) -> list[list[str]]:
    """Groups of strings that differ only in case, blanks and the representation of characters.

    Examples
    --------
    >>> alike(["Male", "female", "male ", "MALE"])
    [['Male', 'male ', 'MALE']]
    """
    groups: dict[str, list[str]] = {}
    for level in levels:
        plain = " ".join(unicodedata.normalize("NFKC", level).casefold().split())
        groups.setdefault(plain, []).append(level)
    return [group for group in groups.values() if len(group) > 1]


def numbers_rows(
    name: str, values: NDArray[np.float64], n_values: float, n_rows: int, highest: float
) -> bool:
    """Whether integers identify rows: no two are equal, and they count from zero, are named so, or look so.

    Those of seven to nine digits, all of the same length, look like numbers of contracts. ``values`` are a
    sample without missing ones, ``n_values`` is the number of distinct values, perhaps an estimate, and
    ``highest`` the largest of them. Days and years, one per row, do not count from zero.
    """
    if n_rows <= _LEAST_ROWS or n_values < _ALL_DISTINCT * n_rows or len(values) < 2:
        return False
    if not (values == np.round(values)).all() or len(np.unique(values)) < len(values):
        return False
    counted = values.min() >= 0.0 and highest < 2.0 * n_rows
    first, last = (len(str(int(end))) for end in (values.min(), highest))
    alike = values.min() > 0.0 and first == last and first in _ID_DIGITS
    return bool(counted or alike or _ID_NAME.search(name))


def code_of_missing(values: NDArray[np.float64]) -> int | None:
    """A number that may stand for missing values, such as -999 or 9999; None if there is none.

    It consists of nines, is held by several of the values, of which none is missing, and is farther from
    all others than these are from each other.

    Examples
    --------
    >>> code_of_missing(np.array([3.0, -99.0, 2.0, 7.0, -99.0, 4.0, -99.0]))
    -99
    """
    if not len(values):
        return None
    for end in (values.min(), values.max()):
        if not _NINES.fullmatch(f"{end:.0f}") or end != np.round(end):
            continue
        rest = values[values != end]
        if len(values) - len(rest) < _FEWEST_CODES or len(rest) < _FEWEST_CODES:
            continue
        if 0.0 < rest.max() - rest.min() <= np.abs(rest - end).min():
            return int(end)
    return None
