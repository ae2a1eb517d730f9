"""What drawings say: names that fit, counts, units, and notes."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lanam.explain import GlobalExplanation, LocalExplanation, Term
from lanam.text import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Columns' names are words: two dollars in one are no formula.
VERBATIM: dict[str, Any] = {"parse_math": False}

#: Labels of levels, and names of columns and classes, are cut to this many characters.
MAX_LABEL = 16
MAX_NAME = 24

#: Where there is a line for each they may be longer, but not the two names of a pair; a note tells no
#: more than so many.
MAX_LONG_NAME = 40
_MAX_SIDE = 20
_MAX_NAMED = 6

#: Inches that a line of a note is high, and a letter of a label wide.
_LINE_HEIGHT = 0.15
_CHARACTER_WIDTH = 0.09


def in_percent(coverage: float) -> str:
    """A coverage as people say it."""
    return f"{100.0 * coverage:.4g}%"


def count(number: int, what: str, of: int | None = None) -> str:
    """So many terms are something, of all if their number is given."""
    some = f"{number} of {of} terms" if of is not None else f"{number} terms"
    if number == 1:
        return f"{some if of is not None else '1 term'} is {what}"
    return f"{some} are {what}"


def one_line(name: Any) -> str:
    """A name in one line, to be seen even if there is nothing in it."""
    return " ".join(str(name).split()) or repr(str(name))


def cut(names: Sequence[Any], most: int) -> list[str]:
    """Names of at most so many characters: cut at the end, or in the middle where only the end differs."""
    lines = [one_line(name) for name in names]
    starts = [shorten(line, most) for line in lines]
    alike = Counter(shorten(line, most) for line in set(lines))
    tail = (most - 3) // 2
    return [
        start if start == line or alike[start] == 1 else shorten(line, most - tail) + line[-tail:]
        for start, line in zip(starts, lines, strict=True)
    ]


def short(labels: np.ndarray) -> list[str]:
    """Labels for an axis, not too long."""
    return cut(labels.tolist(), MAX_LABEL)


def term_names(terms: Sequence[Term]) -> list[str]:
    """Terms' names, cut; of a pair each of its two."""
    singles = [term.name for term in terms if term.kind != "pair"]
    columns = [name for term in terms if term.kind == "pair" for name in term.feature_names]
    short = dict(zip(singles, cut(singles, MAX_LONG_NAME), strict=True))
    sides = dict(zip(columns, cut(columns, _MAX_SIDE), strict=True))
    return [
        " x ".join(sides[name] for name in term.feature_names)
        if term.kind == "pair"
        else short[term.name]
        for term in terms
    ]


def named(terms: Sequence[Term]) -> str:
    """Some terms' names for a note, and how many more there are."""
    few = ", ".join(term_names(terms[:_MAX_NAMED]))
    return few + (f" and {len(terms) - _MAX_NAMED} more" if len(terms) > _MAX_NAMED else "")


def unit_of(explanation: GlobalExplanation | LocalExplanation) -> str:
    """What contributions add to."""
    classes = explanation.classes
    if explanation.link == "logit":
        return f"log-odds of {shorten(str(classes[1]), MAX_NAME)}" if classes else "log-odds"
    if explanation.link == "softmax":
        return "score of each class"
    return "log rate" if explanation.link == "log" else "prediction"


def write(figure: Figure, notes: Sequence[str]) -> float:
    """Notes below a figure's panels, which grows by as much; the inches that they take."""
    width = int(figure.get_figwidth() * 14)
    lines = [line for note in notes for line in textwrap.wrap(note, width)]
    figure.supxlabel(
        "\n".join(lines), fontsize="small", color="0.35", ha="left", x=0.02, **VERBATIM
    )
    height = _LINE_HEIGHT * len(lines)
    figure.set_figheight(figure.get_figheight() + height)
    return height


def write_aside(figure: Figure, text: str, above: float, below: float) -> None:
    """A label on the left of all panels, which have so many inches of other words around them."""
    height = figure.get_figheight()
    width = max(int((height - above - below) / _CHARACTER_WIDTH), 10)
    y = 0.5 * (1.0 + (below - above) / height)
    figure.supylabel(textwrap.fill(text, width), fontsize="medium", y=y, **VERBATIM)
