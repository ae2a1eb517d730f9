"""What all drawings share: the series of a term, labels, room for what is not a number, notes."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from lanam.explain import GlobalExplanation, LocalExplanation, Shape, Surface, Term
from lanam.text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Labels on an axis are cut to this many characters; with more in a row than a panel is wide, or more
#: labels than this, they are turned.
MAX_LABEL = 16
_MAX_CHARACTERS = 30
_MANY_LABELS = 9

#: The room for missing values beside a curve or a surface, as a share of the panel's width.
SLOT = 0.17

_CURVE, _BAND = "#12436d", "#a9c4e0"

#: The line between values and what is not one.
SEPARATOR: dict[str, Any] = {
    "color": "0.75",
    "linewidth": 0.8,
    "linestyle": (0, (2, 2)),
    "zorder": 1,
}

#: One a class; more are not told apart.
CLASS_COLOURS = (
    "#12436d",
    "#d4351c",
    "#28a197",
    "#f46a25",
    "#801650",
    "#6f9bd1",
    "#8a8d0f",
    "#5b5b5b",
)

#: What tells lines apart that may be printed without colours.
MARKERS = ("o", "s", "^", "v", "P", "X", "*", "p")
LINE_STYLES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1.2)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1)),
    (0, (8, 2, 2, 2)),
    (0, (1, 3)),
    (0, (4, 1, 1, 1, 1, 1)),
)

#: Columns' names are words: two dollars in one are no formula.
VERBATIM: dict[str, Any] = {"parse_math": False}

#: Names of columns and classes are cut to this many characters.
MAX_NAME = 24

#: Where there is a line for each they may be longer, but not the two names of a pair; a note tells no
#: more than so many.
MAX_LONG_NAME = 40
MAX_SIDE = 20
_MAX_NAMED = 6


#: Inches that a line of a note is high, and a letter of a label wide.
_LINE_HEIGHT = 0.15
_CHARACTER_WIDTH = 0.09


def pyplot() -> Any:
    """The drawing library, or how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib: install it with `pip install lanam[plot]`"
        ) from error
    return plt


@dataclass(frozen=True)
class Series:
    """One of the functions that a term has: its place in the arrays' last axis, its name, its looks.

    A band reaches ``half`` standard deviations to either side, and one for the whole function, if there
    is one, ``outer``.
    """

    place: int
    name: str
    curve: str = _CURVE
    band: str = _BAND
    band_alpha: float = 1.0
    shift: float = 0.0
    line: Any = "-"
    marker: str = "o"
    half: float = 2.0
    outer: float | None = None

    def of(self, table: Any, n_axes: int = 1) -> np.ndarray:
        """The series' part of an array whose first axes are not those of classes."""
        array = np.asarray(table, dtype=float)
        return array if array.ndim == n_axes else np.asarray(array[..., self.place])


def series_of(
    explanation: GlobalExplanation,
    terms: Sequence[Shape | Surface],
    classes: Sequence[Any] | None,
    most: int,
) -> list[Series]:
    """What there is to draw: one function, or one for each class."""
    if explanation.link != "softmax":
        if classes is not None:
            raise ValueError("classes are told apart where there are more than two: leave it out")
        return [Series(0, "")]
    known = list(explanation.classes or ())
    if classes is None:
        places = _largest(terms, len(known), most)
    else:
        unknown = [name for name in classes if name not in known]
        if unknown or not len(classes):
            raise ValueError(f"classes={list(classes)!r} are not among the model's: {known}")
        places = [known.index(name) for name in classes]
    shifts = (np.arange(len(places)) - 0.5 * (len(places) - 1)) * 0.7 / len(places)
    alpha = 0.3 if len(places) < 3 else 0.15  # the bands of many lie upon each other
    return [
        Series(place, str(known[place]), colour, colour, alpha, float(shift), line, marker)
        for place, colour, shift, line, marker in zip(
            places, cycle(CLASS_COLOURS), shifts, cycle(LINE_STYLES), cycle(MARKERS), strict=False
        )
    ]


def _largest(terms: Sequence[Shape | Surface], n_classes: int, most: int) -> list[int]:
    """The classes with the largest effects, in their order."""
    size = np.zeros(n_classes)
    for term in terms:
        density = term.density.ravel()
        size += density @ np.abs(term.mean[: len(term.density)]).reshape(len(density), n_classes)
    return sorted(np.argsort(-size, kind="stable")[:most].tolist())


def in_percent(coverage: float) -> str:
    """A coverage as people say it."""
    return f"{100.0 * coverage:.4g}%"


def require(explanation: Any, kind: type, remedy: str) -> None:
    """Refuse an explanation of another kind."""
    if not isinstance(explanation, kind):
        found = type(explanation).__name__
        raise TypeError(f"this draws a {kind.__name__} and was given a {found}: {remedy}")


def by_name(result: Any, kind: type, remedy: str) -> dict[str, Any]:
    """Curves with their names: one without, or several to compare."""
    several = isinstance(result, Mapping)
    curves = {str(name): curve for name, curve in result.items()} if several else {"": result}
    if not curves:
        raise ValueError(f"there is no {kind.__name__} to draw")
    if len(curves) > len(MARKERS):
        raise ValueError(f"no more than {len(MARKERS)} curves can be told apart")
    for curve in curves.values():
        require(curve, kind, remedy)
    return curves


def unit_of(explanation: GlobalExplanation | LocalExplanation) -> str:
    """What contributions add to."""
    classes = explanation.classes
    if explanation.link == "logit":
        return f"log-odds of {shorten(str(classes[1]), MAX_NAME)}" if classes else "log-odds"
    if explanation.link == "softmax":
        return "score of each class"
    return "log rate" if explanation.link == "log" else "prediction"


def short(labels: np.ndarray) -> list[str]:
    """Labels for an axis, not too long."""
    return cut(labels.tolist(), MAX_LABEL)


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


def are_turned(labels: Sequence[str]) -> bool:
    """Whether labels below a panel must stand upright."""
    return len(labels) > _MANY_LABELS or sum(map(len, labels)) > _MAX_CHARACTERS


def write_labels(
    ax: Axes, axis: str, places: Sequence[float], labels: Sequence[str], n_levels: int
) -> None:
    """Names along an axis; those after the levels' are ours and not the data's, and look so."""
    turned = axis == "x" and are_turned(labels)
    (ax.set_xticks if axis == "x" else ax.set_yticks)(
        places,
        labels,
        rotation=90 if turned else 0,
        fontsize="x-small" if len(labels) > _MANY_LABELS else "small",
        **VERBATIM,
    )
    ax.tick_params(axis=axis, length=2)
    for text in (ax.get_xticklabels() if axis == "x" else ax.get_yticklabels())[n_levels:]:
        text.set(color="0.35", style="italic")


def add_slots(
    ax: Axes, axis: str, limits: tuple[float, float], slot: float, names: Sequence[str]
) -> None:
    """Room beyond the end of a numeric axis for what is not a number, with its names below."""
    from matplotlib.ticker import MaxNLocator

    low, high = limits
    end = high + slot * len(names)
    places = [high + (k + 0.5) * slot for k in range(len(names))]
    own = ax.xaxis if axis == "x" else ax.yaxis
    set_limits = ax.set_xlim if axis == "x" else ax.set_ylim
    ticks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    own.set_ticks([tick for tick in ticks if low <= tick <= high - 0.4 * slot])
    own.set_ticks(places, names, minor=True, fontsize="small", color="0.35", style="italic")
    ax.tick_params(axis=axis, which="minor", length=0)
    set_limits(low, end)
    draw_line = ax.axvline if axis == "x" else ax.axhline
    draw_line(high, **SEPARATOR)


def hidden_classes(explanation: GlobalExplanation, series: Sequence[Series]) -> list[str]:
    """What is to be said of classes that are not drawn."""
    hidden = len(explanation.classes or ()) - len(series)
    several = explanation.link == "softmax"
    return [f"{hidden} classes are not shown."] if several and hidden > 0 else []


def write_in_tile(
    ax: Axes, place: tuple[float, float], text: str, colour: str, **look: Any
) -> None:
    """A number in the middle of its tile."""
    ax.text(*place, text, ha="center", va="center", fontsize="x-small", color=colour, **look)


def term_names(terms: Sequence[Term]) -> list[str]:
    """Terms' names, cut; of a pair each of its two."""
    singles = [term.name for term in terms if term.kind != "pair"]
    columns = [name for term in terms if term.kind == "pair" for name in term.feature_names]
    short = dict(zip(singles, cut(singles, MAX_LONG_NAME), strict=True))
    sides = dict(zip(columns, cut(columns, MAX_SIDE), strict=True))
    return [
        " x ".join(sides[name] for name in term.feature_names)
        if term.kind == "pair"
        else short[term.name]
        for term in terms
    ]


def count(number: int, what: str, of: int | None = None) -> str:
    """So many terms are something, of all if their number is given."""
    some = f"{number} of {of} terms" if of is not None else f"{number} terms"
    if number == 1:
        return f"{some if of is not None else '1 term'} is {what}"
    return f"{some} are {what}"


def named(terms: Sequence[Term]) -> str:
    """Some terms' names for a note, and how many more there are."""
    few = ", ".join(term_names(terms[:_MAX_NAMED]))
    return few + (f" and {len(terms) - _MAX_NAMED} more" if len(terms) > _MAX_NAMED else "")


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
