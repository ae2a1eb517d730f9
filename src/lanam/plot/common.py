"""Shared by all plots: series and their styles, checks, axes with slots, names, notes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
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

#: Width of a character, of a digit, and height of a line of a tick label in inches, with its margin.
_TICK_CHARACTER = 0.075
_DIGIT = 0.09
TICK_LINE = 0.13
_THIN_LINE = 0.095

#: Labels have at most this many lines, or are rotated; more labels than this are smaller.
_MAX_LINES = 2
_MANY_LABELS = 9

#: Width of the slot for missing values beside a curve or a surface, as a fraction of the panel.
SLOT = 0.17

_CURVE, _BAND = "#12436d", "#a9c4e0"

#: Of contributions above and below zero, as in maps of interactions and in the report.
UP, DOWN = "#b2182b", "#2166ac"

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


def fit_labels(labels: Sequence[str], pitch: float) -> tuple[list[str], bool]:
    """Labels below a panel that are ``pitch`` inches apart: wrapped, or else to be rotated."""
    width = max(int(pitch / _TICK_CHARACTER), 1)
    wrapped = ["\n".join(textwrap.wrap(label, width, break_long_words=False)) for label in labels]
    for texts in (list(labels), wrapped):
        sizes = [max(map(len, text.split("\n"))) for text in texts]
        apart = all(first + second <= 2 * width for first, second in pairwise(sizes))
        if apart and all(text.count("\n") < _MAX_LINES for text in texts):
            return texts, False
    return list(labels), True


def label_height(labels: Sequence[str], pitch: float) -> float:
    """Height in inches that such labels need beyond one line."""
    texts, rotated = fit_labels(labels, pitch)
    if rotated:
        return 0.065 * max(map(len, texts))
    return TICK_LINE * max((text.count("\n") for text in texts), default=0)


def inches_of(ax: Axes, axis: Direction) -> float:
    """The size of a panel along one of its axes."""
    extent = ax.get_window_extent()
    return float((extent.width if axis == "x" else extent.height) / ax.figure.dpi)


def write_labels(
    ax: Axes, axis: Direction, places: Sequence[float], labels: Sequence[str], n_levels: int
) -> None:
    """Tick labels of categories; those after the first ``n_levels`` are not of the data, and italic.

    They are wrapped, rotated or, in a very small panel, partly left out, so that none overlap. The limits
    of the axis are set before.
    """
    low, high = ax.get_xlim() if axis == "x" else ax.get_ylim()
    pitch = inches_of(ax, axis) / abs(high - low)
    labels, turned = fit_labels(labels, pitch) if axis == "x" else (list(labels), False)
    if turned or axis == "y":
        step = max(math.ceil(_THIN_LINE / pitch), 1)
        labels = [
            label if (len(labels) - 1 - k) % step == 0 else "" for k, label in enumerate(labels)
        ]
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
    low, high = limits
    end = high + slot * len(names)
    places = [high + (k + 0.5) * slot for k in range(len(names))]
    scale_axis = ax.xaxis if axis == "x" else ax.yaxis
    room = 0.5 * _TICK_CHARACTER * len(names[0]) if axis == "x" else 0.5 * TICK_LINE
    inches = inches_of(ax, axis) / (end - low)  # per unit
    scale_axis.set_ticks(_fitting_ticks(axis, limits, places[0] - room / inches, inches))
    scale_axis.set_ticks(places, names, minor=True, fontsize="small", color="0.35", style="italic")
    ax.tick_params(axis=axis, which="minor", length=0)
    (ax.set_xlim if axis == "x" else ax.set_ylim)(low, end)
    (ax.axvline if axis == "x" else ax.axhline)(high, **SEPARATOR)


def _fitting_ticks(
    axis: Direction, limits: tuple[float, float], end: float, inches: float
) -> list[float]:
    """As many ticks as there is space for, with labels that end before ``end``."""
    from matplotlib.ticker import MaxNLocator

    ticks: list[float] = []
    for most in (4, 3, 2, 1):
        places = MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=1).tick_values(*limits)
        places = [float(place) for place in places if limits[0] <= place <= limits[1]]
        wide = max((len(f"{place:.6g}") for place in places), default=1)
        size = (_DIGIT * (wide + 1) if axis == "x" else TICK_LINE) / inches
        ticks = [place for place in places if place + 0.5 * size <= end]
        if all(second - first >= size for first, second in pairwise(ticks)):
            break
    return ticks


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


def add_percent_axis(ax: Axes) -> None:
    """The same scale on the right, for logarithms: by how many percent the mean changes."""
    right = ax.secondary_yaxis("right")
    right.yaxis.set_major_formatter(lambda value, _: f"{math.expm1(value):+.0%}")
    right.tick_params(labelsize="x-small", colors="0.35", length=2.0)
    right.spines["right"].set_visible(False)


def write_left_label(ax: Axes, text: str, above: float, below: float) -> None:
    """A label left of all panels, centred between ``above`` and ``below`` inches of other text."""
    figure = own_figure(ax)
    height = figure.get_figheight()
    width = max(int((height - above - below) / _CHARACTER_WIDTH), 10)
    y = 0.5 * (1.0 + (below - above) / height)
    figure.supylabel(textwrap.fill(text, width), fontsize="medium", y=y, **VERBATIM)
