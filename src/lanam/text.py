"""Names and numbers formatted for printed tables and plots."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Collection, Sequence
from unicodedata import category


def shorten(name: str, most: int) -> str:
    """A name cut to at most this many characters.

    Examples
    --------
    >>> shorten("temperature of the oven", 14)
    'temperature...'
    """
    name = visible(name)
    return name if len(name) <= most else name[: most - 3] + "..."


def visible(text: str, keep: str = "") -> str:
    r"""A text with control characters escaped: names in a file may contain terminal sequences.

    Examples
    --------
    >>> visible("red \x1b[31m") == r"red \x1b[31m"
    True
    """
    return "".join(
        repr(letter)[1:-1]
        if letter not in keep and category(letter) in ("Cc", "Zl", "Zp")
        else letter
        for letter in text
    )


def one_line(name: object) -> str:
    """A name in one line; an empty one is quoted."""
    return visible(" ".join(str(name).split())) or repr(str(name))


def few(names: Collection[str], most: int) -> str:
    """A list of names, cut after ``most``.

    Examples
    --------
    >>> few(["age", "sex", "bmi"], 2)
    'age, sex and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(list(names)[:most]) + more


def cut(names: Sequence[object], most: int) -> list[str]:
    """Names of at most this many characters: cut at the end, or in the middle where only the ends differ.

    Examples
    --------
    >>> cut(["pressure before the pump", "pressure before the mill", "age"], 16)
    ['pressur...e pump', 'pressur...e mill', 'age']
    """
    lines = [one_line(name) for name in names]
    starts = [shorten(line, most) for line in lines]
    alike = Counter(shorten(line, most) for line in set(lines))
    tail = (most - 3) // 2
    return [
        start if start == line or alike[start] == 1 else shorten(line, most - tail) + line[-tail:]
        for start, line in zip(starts, lines, strict=True)
    ]


def aligned(table: Sequence[Sequence[str]], words: Collection[int] = ()) -> list[str]:
    """The lines of a table, right-aligned but for the columns of words.

    Examples
    --------
    >>> print(*aligned([("term", "adds"), ("bmi", "1.5"), ("age", "12")], words=[0]), sep=chr(10))
    term  adds
    bmi    1.5
    age     12
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k in words else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in table
    ]


def html_table(table: Sequence[Sequence[str]]) -> str:
    """A table as HTML, the first row being its header.

    Examples
    --------
    >>> html_table([["a"], ["<1"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;1</td></tr></tbody></table>'
    """
    head, *body = table
    header = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    records = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        for cells in body
    )
    return f"<table><thead><tr>{header}</tr></thead><tbody>{records}</tbody></table>"


def number_format(largest: float, digits: int) -> str:
    """One format for numbers up to ``largest``, with this many significant digits of it.

    Examples
    --------
    >>> form = number_format(12.345, 3)
    >>> format(12.345, form), format(0.0678, form)
    ('12.3', '0.1')
    """
    if not 10.0 ** -(digits + 1) < largest < 10.0 ** (digits + 3):
        return f".{digits - 1}e"
    return f".{max(digits - 1 - math.floor(math.log10(largest)), 0)}f"
