"""What drawings say: names that fit, counts, units, and notes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from lanam.explain import Term
from lanam.explain.terms import term_names
from lanam.explain.values import Values
from lanam.text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

#: How something is drawn: keyword arguments of matplotlib.
Look: TypeAlias = dict[str, Any]

#: Columns' names are words: two dollars in one are no formula.
VERBATIM: Look = {"parse_math": False}

#: Labels of levels, and names of columns and classes, are cut to this many characters.
MAX_LABEL = 16
MAX_NAME = 24

#: A note names no more terms than so many.
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


def short(labels: Values) -> list[str]:
    """Labels for an axis, not too long."""
    return cut(labels.tolist(), MAX_LABEL)


def named(terms: Sequence[Term]) -> str:
    """Some terms' names for a note, and how many more there are."""
    few = ", ".join(term_names(terms[:_MAX_NAMED]))
    return few + (f" and {len(terms) - _MAX_NAMED} more" if len(terms) > _MAX_NAMED else "")


def own_figure(ax: Axes) -> Figure:
    """The figure of a panel that we made: it is no part of another."""
    return cast("Figure", ax.figure)


def write_legend(legend: Legend) -> None:
    """The names in a legend as they are."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def write(ax: Axes, notes: Sequence[str]) -> float:
    """Notes below a figure's panels, which grows by as much; the inches that they take."""
    figure = own_figure(ax)
    width = int(figure.get_figwidth() * 14)
    lines = [line for note in notes for line in textwrap.wrap(note, width)]
    figure.supxlabel(
        "\n".join(lines), fontsize="small", color="0.35", ha="left", x=0.02, **VERBATIM
    )
    height = _LINE_HEIGHT * len(lines)
    figure.set_figheight(figure.get_figheight() + height)
    return height


def write_aside(ax: Axes, text: str, above: float, below: float) -> None:
    """A label on the left of all panels, which have so many inches of other words around them."""
    figure = own_figure(ax)
    height = figure.get_figheight()
    width = max(int((height - above - below) / _CHARACTER_WIDTH), 10)
    y = 0.5 * (1.0 + (below - above) / height)
    figure.supylabel(textwrap.fill(text, width), fontsize="medium", y=y, **VERBATIM)
