"""Shared by all plots: series and their styles, checks, axes with slots, names, notes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanam.core.arrays import Array
from lanam.explain import GlobalExplanation, Shape, Surface, Term
from lanam.explain.terms import term_names
from lanam.text import cut, few

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

_Curve = TypeVar("_Curve")

#: An axis of a panel.
Direction: TypeAlias = Literal["x", "y"]

#: A line style of matplotlib: a name, or an offset and lengths of dashes and gaps.
LineStyle: TypeAlias = str | tuple[float, tuple[float, ...]]

#: Keyword arguments of matplotlib.
Style: TypeAlias = dict[str, Any]

#: Names are text: dollar signs do not start a formula.
VERBATIM: Style = {"parse_math": False}

#: Maximum numbers of characters of category labels, and of names of columns and classes.
MAX_LABEL = 16
MAX_NAME = 24

#: Maximum number of terms that a note names.
_MAX_NAMED = 6

#: Height of a line of a note and width of a character of a label, in inches.
_LINE_HEIGHT = 0.15
_CHARACTER_WIDTH = 0.09

#: Tick labels are rotated if they have more characters in total, or if there are more labels.
_MAX_CHARACTERS = 30
_MANY_LABELS = 9

#: Width of the slot for missing values beside a curve or a surface, as a fraction of the panel.
SLOT = 0.17

_CURVE, _BAND = "#12436d", "#a9c4e0"

#: The line between values and slots.
SEPARATOR: Style = {
    "color": "0.75",
    "linewidth": 0.8,
    "linestyle": (0, (2, 2)),
    "zorder": 1,
}

#: The background where a term was edited by hand.
EDITED: Style = {
    "facecolor": "none",
    "edgecolor": "#c28f2c",
    "hatch": "....",
    "linewidth": 0.0,
    "zorder": 0.5,
}

#: One colour per class; further classes cannot be distinguished.
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

#: Markers and line styles distinguish lines in print without colours.
MARKERS = ("o", "s", "^", "v", "P", "X", "*", "p")
LINE_STYLES: tuple[LineStyle, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1.2)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1)),
    (0, (8, 2, 2, 2)),
    (0, (1, 3)),
    (0, (4, 1, 1, 1, 1, 1)),
)


def pyplot() -> ModuleType:
    """matplotlib.pyplot, or an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib: install it with `pip install lanam[plot]`"
        ) from error
    return plt


def panel_or_new(name: str, ax: Axes | None, width: float, height: float) -> tuple[Axes, bool]:
    """The given Axes or, if there are none, those of a new figure in inches; and whether they are new."""
    require_axes(name, ax)
    if ax is not None:
        return ax, False
    return cast("Axes", pyplot().subplots(figsize=(width, height), layout="constrained")[1]), True


@dataclass(frozen=True)
class Series:
    """One function of a term: its index in the arrays' last axis (the class), its name and its style.

    The pointwise band has a half-width of ``half`` standard deviations, the simultaneous one, if any,
    of ``outer``.
    """

    class_index: int
    name: str
    curve: str = _CURVE
    band: str = _BAND
    band_alpha: float = 1.0
    shift: float = 0.0
    line: LineStyle = "-"
    marker: str = "o"
    half: float = 2.0
    outer: float | None = None

    def of(self, table: ArrayLike, n_axes: int = 1) -> Array:
        """The series' slice of an array with ``n_axes`` axes before that of the classes."""
        array: Array = np.asarray(table, dtype=np.float64)
        return array if array.ndim == n_axes else np.asarray(array[..., self.class_index])


def series_of(
    explanation: GlobalExplanation,
    terms: Sequence[Shape | Surface],
    classes: Sequence[object] | None,
    most: int,
) -> list[Series]:
    """The functions to plot: one, or one per class."""
    if not explanation.family.link.several:
        if classes is not None:
            raise ValueError(
                "classes selects among more than two classes, and the model has fewer: leave it out"
            )
        return [Series(0, "")]
    labels = list(explanation.classes or ())
    if classes is None:
        places = _largest(terms, len(labels), most)
    else:
        unknown = [name for name in classes if name not in labels]
        if unknown or not len(classes):
            raise ValueError(f"classes={list(classes)!r} are not among the model's: {labels}")
        places = [labels.index(name) for name in classes]
    shifts = (np.arange(len(places)) - 0.5 * (len(places) - 1)) * 0.7 / len(places)
    alpha = 0.3 if len(places) < 3 else 0.15  # many bands overlap
    return [
        Series(place, str(labels[place]), colour, colour, alpha, float(shift), line, marker)
        for place, colour, shift, line, marker in zip(
            places, cycle(CLASS_COLOURS), shifts, cycle(LINE_STYLES), cycle(MARKERS), strict=False
        )
    ]


def _largest(terms: Sequence[Shape | Surface], n_classes: int, most: int) -> list[int]:
    """Indices of the classes with the largest effects, ascending."""
    size = np.zeros(n_classes)
    for term in terms:
        density = term.density.ravel()
        size += density @ np.abs(term.mean[: len(term.density)]).reshape(len(density), n_classes)
    return sorted(np.argsort(-size, kind="stable")[:most].tolist())


def require(explanation: object, kind: type, remedy: str) -> None:
    """Refuse an explanation of another kind."""
    if not isinstance(explanation, kind):
        given = type(explanation).__name__
        raise TypeError(f"expected {kind.__name__}, got {given}: {remedy}")


def require_axes(name: str, given: object) -> None:
    """Refuse anything but one Axes of matplotlib, or None."""
    from matplotlib.axes import Axes

    if given is None or isinstance(given, Axes):
        return
    panels = np.asarray(given, dtype=object)
    several = panels.ndim > 0
    got = f"{panels.size} in {type(given).__name__}" if several else repr(given)
    remedy = f"pass one of them, as {name}=axes[0]" if several else "as plt.subplots() returns them"
    raise TypeError(f"{name} must be one Axes of matplotlib, and is {got}: {remedy}")


def read_panels(given: object) -> NDArray[np.object_]:
    """The given Axes, one or several, as a one-dimensional array."""
    panels = np.atleast_1d(np.asarray(given, dtype=object)).ravel()
    for panel in panels:
        require_axes("every one of axes", panel)
    return panels


def require_terms(terms: Sequence[str] | None, max_terms: int | None) -> None:
    """Refuse an empty list of terms, and a maximum below one."""
    if isinstance(terms, str):
        raise TypeError(f"terms is a string: pass a list of names, as terms=[{terms!r}]")
    if terms is not None and not len(terms):
        raise ValueError("terms is empty: pass at least one name, or None for all active terms")
    whole = isinstance(max_terms, int | np.integer) and not isinstance(max_terms, bool)
    if max_terms is not None and not (whole and max_terms >= 1):
        raise ValueError(
            f"max_terms={max_terms!r} must be an integer of at least 1, or None for all"
        )


def by_name(
    result: _Curve | Mapping[str, _Curve], kind: type[_Curve], remedy: str
) -> dict[str, _Curve]:
    """Curves by name: one without a name, or several to compare."""
    several = result if isinstance(result, Mapping) else {"": result}
    curves = {str(name): curve for name, curve in several.items()}
    if not curves:
        raise ValueError(f"there is no {kind.__name__} to plot")
    if len(curves) > len(MARKERS):
        raise ValueError(
            f"at most {len(MARKERS)} curves can be distinguished, and there are {len(curves)}"
        )
    for curve in curves.values():
        require(curve, kind, remedy)
    return curves


def are_rotated(labels: Sequence[str]) -> bool:
    """Whether the tick labels below a panel are rotated."""
    return len(labels) > _MANY_LABELS or sum(map(len, labels)) > _MAX_CHARACTERS


def write_labels(
    ax: Axes, axis: Direction, places: Sequence[float], labels: Sequence[str], n_levels: int
) -> None:
    """Tick labels of categories; those after the first ``n_levels`` are not of the data, and italic."""
    turned = axis == "x" and are_rotated(labels)
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
    ax: Axes, axis: Direction, limits: tuple[float, float], slot: float, names: Sequence[str]
) -> None:
    """Slots beyond the end of a numeric axis for missing values and the like, with their names."""
    from matplotlib.ticker import MaxNLocator

    low, high = limits
    end = high + slot * len(names)
    places = [high + (k + 0.5) * slot for k in range(len(names))]
    scale_axis = ax.xaxis if axis == "x" else ax.yaxis
    ticks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    scale_axis.set_ticks([tick for tick in ticks if low <= tick <= high - 0.4 * slot])
    scale_axis.set_ticks(places, names, minor=True, fontsize="small", color="0.35", style="italic")
    ax.tick_params(axis=axis, which="minor", length=0)
    (ax.set_xlim if axis == "x" else ax.set_ylim)(low, end)
    (ax.axvline if axis == "x" else ax.axhline)(high, **SEPARATOR)


def hidden_classes(explanation: GlobalExplanation, series: Sequence[Series]) -> list[str]:
    """A note on classes that are not shown, if any."""
    hidden = len(explanation.classes or ()) - len(series)
    several = explanation.family.link.several
    return [f"{hidden} classes are not shown."] if several and hidden > 0 else []


def write_in_tile(
    ax: Axes, place: tuple[float, float], text: str, colour: str, weight: str = "normal"
) -> None:
    """A number in the centre of its tile."""
    look: Style = {"ha": "center", "va": "center", "fontsize": "x-small", "fontweight": weight}
    ax.text(*place, text, color=colour, **look)


def in_percent(coverage: float) -> str:
    """A coverage in per cent."""
    return f"{100.0 * coverage:.4g}%"


def term_count(number: int, what: str, of: int | None = None) -> str:
    """A clause such as "2 of 5 terms are dropped"."""
    terms = "term" if number == 1 and of is None else "terms"
    some = f"{number} of {of}" if of is not None else f"{number}"
    return f"{some} {terms} {'is' if number == 1 else 'are'} {what}"


def short_labels(labels: NDArray[Any]) -> list[str]:
    """Shortened tick labels."""
    return cut(labels.tolist(), MAX_LABEL)


def term_list(terms: Sequence[Term]) -> str:
    """The names of some terms, and the number of the others."""
    return few(term_names(terms), _MAX_NAMED)


def own_figure(ax: Axes) -> Figure:
    """The figure of Axes that were created here, and are not part of a subfigure."""
    return cast("Figure", ax.figure)


def write_legend(legend: Legend) -> None:
    """Show the names in a legend verbatim."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def write_notes(ax: Axes, notes: Sequence[str]) -> float:
    """Write notes below the panels of a figure, which grows by their height; that height in inches."""
    figure = own_figure(ax)
    width = int(figure.get_figwidth() * 14)
    lines = [line for note in notes for line in textwrap.wrap(note, width, break_on_hyphens=False)]
    figure.supxlabel(
        "\n".join(lines), fontsize="small", color="0.35", ha="left", x=0.02, **VERBATIM
    )
    height = _LINE_HEIGHT * len(lines)
    figure.set_figheight(figure.get_figheight() + height)
    return height


def write_left_label(ax: Axes, text: str, above: float, below: float) -> None:
    """A label left of all panels, centred between ``above`` and ``below`` inches of other text."""
    figure = own_figure(ax)
    height = figure.get_figheight()
    width = max(int((height - above - below) / _CHARACTER_WIDTH), 10)
    y = 0.5 * (1.0 + (below - above) / height)
    figure.supylabel(textwrap.fill(text, width), fontsize="medium", y=y, **VERBATIM)
