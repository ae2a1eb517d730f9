"""Names and numbers formatted for printed tables and plots."""

from __future__ import annotations

import html
import json
import math
from collections import Counter
from collections.abc import Collection, Sequence, Sized
from difflib import get_close_matches
from itertools import accumulate
from unicodedata import category

#: Columns of a printed line.
WIDTH = 100

#: Longer texts, and lists of more items, are not shown whole in a ``repr``.
_MAX_BRIEF = 60
_MAX_LISTED = 8
#: Names in a message are cut to this many characters.
MAX_QUOTED = 60


def shorten(name: str, most: int) -> str:
    """A name cut to at most this many characters.

    Examples
    --------
    >>> shorten("temperature of the oven", 14)
    'temperature...'
    """
    name = visible(name)
    return name if len(name) <= most else name[: most - 3] + "..."


#: Categories of characters that a terminal obeys or that cannot be printed: controls, formats such as those
#: of bidirectional text, surrogates, separators of lines and paragraphs. Joiners are part of words.
_OBEYED = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"


def visible(text: str, keep: str = "") -> str:
    r"""A text with control characters escaped: names in a file may contain terminal sequences.

    Examples
    --------
    >>> visible("red \x1b[31m, \u202edesrever") == r"red \x1b[31m, \u202edesrever"
    True
    """
    if text.isprintable():
        return text
    return "".join(
        _escaped(letter)
        if letter not in keep and letter not in _JOINERS and category(letter) in _OBEYED
        else letter
        for letter in text
    )


def _escaped(letter: str) -> str:
    r"""As Python and JSON escape it: beyond four digits as two surrogates."""
    return repr(letter)[1:-1] if ord(letter) < 1 << 16 else json.dumps(letter)[1:-1]


def printable(text: object) -> str:
    """A text of several lines, as all that is printed: without what a terminal would obey."""
    return visible(str(text), keep="\n\t")


def utf8(text: str) -> bytes:
    r"""The bytes of a text. Half of a surrogate pair, which no file can contain, is escaped.

    Examples
    --------
    >>> utf8("na\xefve \ud800")
    b'na\xc3\xafve \\ud800'
    """
    return text.encode("utf-8", "backslashreplace")


def one_line(name: object) -> str:
    """A name in one line; an empty one is quoted."""
    return visible(" ".join(str(name).split())) or repr(str(name))


def term_name(columns: Sequence[str], others: Collection[str] = (), suffix: str = "") -> str:
    """The name of a term by those of its columns, which differs from the names of all ``others``.

    Names that contain the sign between two columns are quoted in an interaction.

    Examples
    --------
    >>> term_name(["a", "b"]), term_name(["a"], suffix=" (levels)")
    ('a x b', 'a (levels)')
    >>> term_name(["a", "b"], ["a", "b", "a x b"]), term_name(["a x b", "c"])
    ('a x b (interaction)', "'a x b' x c")
    """
    several = len(columns) > 1
    name = " x ".join(repr(each) if several and " x " in each else each for each in columns)
    name += suffix
    while (several or suffix) and name in others:
        name += " (interaction)" if several else " (per value)"
    return name


def few(names: Collection[str], most: int) -> str:
    """A list of names, cut after ``most``.

    Examples
    --------
    >>> few(["age", "sex", "bmi"], 2)
    'age, sex and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(list(names)[:most]) + more


def similar(name: str, names: Collection[str]) -> list[str]:
    """At most three of the names that are similar to one, in upper or lower case.

    Examples
    --------
    >>> similar("BMI", ["age", "bmi"])
    ['bmi']
    """
    folded = {each.casefold(): each for each in names}
    return [folded[each] for each in get_close_matches(name.casefold(), list(folded), n=3)]


def did_you_mean(name: object, names: Collection[str], what: str = "there are") -> str:
    """A hint for a name that is not among ``names``: similar ones, in upper or lower case, or all of them.

    Examples
    --------
    >>> did_you_mean("BMI", ["age", "bmi"]), did_you_mean("weight", ["age", "bmi"])
    ("did you mean 'bmi'?", "there are 'age', 'bmi'")
    """
    columns = name if isinstance(name, (tuple, list)) else [name]
    near = similar(" x ".join(map(str, columns)), names)
    close = [repr(shorten(each, MAX_QUOTED)) for each in near]
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"{what} {few([repr(shorten(each, MAX_QUOTED)) for each in names], _MAX_LISTED)}"


def few_in(names: Collection[str], room: int) -> str:
    """A list of names, cut after those that have room, but not before the first.

    Examples
    --------
    >>> few_in(["age", "sex", "bmi"], room=12)
    'age, sex and 1 more'
    """
    ends = accumulate(len(name) + 2 for name in names)
    return few(names, max(sum(end <= room for end in ends), 1))


def not_shown(n_categories: int) -> str:
    """How many rarer categories a plot leaves out; nothing if none.

    Examples
    --------
    >>> not_shown(1), not_shown(2), not_shown(0)
    ('1 rarer category is not shown', '2 rarer categories are not shown', '')
    """
    if not n_categories:
        return ""
    return (
        f"{n_categories} rarer "
        + ("category is" if n_categories == 1 else "categories are")
        + " not shown"
    )


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


def brief(record: object, *names: str) -> str:
    """A record in one line for ``repr``: attributes by name, long values by their size.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> brief(SimpleNamespace(name="bmi", importance=24.31234567, values=[1.0] * 300))
    "SimpleNamespace(name='bmi', importance=24.3123, values=<300 values>)"
    """
    chosen = names or tuple(vars(record))
    parts = [f"{name}={_brief_value(getattr(record, name))}" for name in chosen]
    return f"{type(record).__name__}({', '.join(parts)})"


def _brief_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    shape = getattr(value, "shape", None)
    if shape:
        return f"<{' x '.join(map(str, shape))} values>"
    if isinstance(value, str):
        return repr(shorten(value, _MAX_BRIEF))
    if isinstance(value, Sized):
        words = repr(value) if len(value) <= _MAX_LISTED else ""
        return words if 0 < len(words) <= _MAX_BRIEF else f"<{len(value)} values>"
    return visible(repr(value))


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


def narrowed(table: Sequence[tuple[str, ...]], least: int, most: int) -> list[tuple[str, ...]]:
    """A table with the names in its first column cut such that a line has room, but not below ``least``.

    Examples
    --------
    >>> narrowed([("temperature", "status"), ("age", "a" * 86)], least=8, most=20)[0]
    ('tempera...', 'status')
    """
    rest = max(len(line) for line in aligned([("", *cells[1:]) for cells in table], [0]))
    names = cut([cells[0] for cells in table], min(max(WIDTH - rest, least), most))
    return [(name, *cells[1:]) for name, cells in zip(names, table, strict=True)]


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


def duration(seconds: float) -> str:
    """A time in its largest unit, rounded.

    Examples
    --------
    >>> duration(44), duration(130), duration(9000)
    ('44 seconds', '2 minutes', '2.5 hours')
    """
    if seconds < 60.0:
        return f"{seconds:.0f} seconds"
    if seconds < 3600.0:
        minutes = f"{seconds / 60.0:.0f}"
        return f"{minutes} minute{'' if minutes == '1' else 's'}"
    return f"{seconds / 3600.0:.2g} hours"
