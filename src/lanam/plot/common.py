"""What all drawings share: the series of a term, labels on axes, room for what is not a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanam.core.arrays import Array
from lanam.explain import GlobalExplanation, Shape, Surface
from lanam.plot.words import VERBATIM, Look

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes

_Curve = TypeVar("_Curve")

#: Across or up.
Direction: TypeAlias = Literal["x", "y"]

#: A line as matplotlib draws it: by its name, or by lengths of dashes and gaps.
LineStyle: TypeAlias = str | tuple[float, tuple[float, ...]]

#: With more characters in a row than a panel is wide, or more labels than this, they are turned.
_MAX_CHARACTERS = 30
_MANY_LABELS = 9

#: The room for missing values beside a curve or a surface, as a share of the panel's width.
SLOT = 0.17

_CURVE, _BAND = "#12436d", "#a9c4e0"

#: The line between values and what is not one.
SEPARATOR: Look = {
    "color": "0.75",
    "linewidth": 0.8,
    "linestyle": (0, (2, 2)),
    "zorder": 1,
}

#: The ground where a term was changed by hand.
EDITED: Look = {
    "facecolor": "none",
    "edgecolor": "#c28f2c",
    "hatch": "....",
    "linewidth": 0.0,
    "zorder": 0.5,
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
    """The drawing library, or how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib: install it with `pip install lanam[plot]`"
        ) from error
    return plt


def new_panel(width: float, height: float) -> Axes:
    """A figure of one panel, in inches."""
    _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
    return cast("Axes", ax)


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
    line: LineStyle = "-"
    marker: str = "o"
    half: float = 2.0
    outer: float | None = None

    def of(self, table: ArrayLike, n_axes: int = 1) -> Array:
        """The series' part of an array whose first axes are not those of classes."""
        array: Array = np.asarray(table, dtype=np.float64)
        return array if array.ndim == n_axes else np.asarray(array[..., self.place])


def series_of(
    explanation: GlobalExplanation,
    terms: Sequence[Shape | Surface],
    classes: Sequence[object] | None,
    most: int,
) -> list[Series]:
    """What there is to draw: one function, or one for each class."""
    if not explanation.family.link.several:
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


def require(explanation: object, kind: type, remedy: str) -> None:
    """Refuse an explanation of another kind."""
    if not isinstance(explanation, kind):
        found = type(explanation).__name__
        raise TypeError(f"this draws a {kind.__name__} and was given a {found}: {remedy}")


def require_axes(name: str, given: object) -> None:
    """Refuse to draw on what is no panel of matplotlib; None is a new figure."""
    from matplotlib.axes import Axes

    if given is None or isinstance(given, Axes):
        return
    panels = np.asarray(given, dtype=object)
    several = panels.ndim > 0
    found = f"{panels.size} in {type(given).__name__}" if several else repr(given)
    remedy = f"pass one of them, as {name}=axes[0]" if several else "as plt.subplots() returns them"
    raise TypeError(f"{name} must be one Axes of matplotlib, and is {found}: {remedy}")


def read_panels(given: object) -> NDArray[np.object_]:
    """The panels that are given, one Axes or several, in a row."""
    panels = np.atleast_1d(np.asarray(given, dtype=object)).ravel()
    for panel in panels:
        require_axes("every one of axes", panel)
    return panels


def require_terms(terms: Sequence[str] | None, max_terms: int | None) -> None:
    """Refuse a drawing of nothing: an empty list of terms, or none of them at most."""
    if isinstance(terms, str):
        raise TypeError(f"terms is one name: pass a list of them, as terms=[{terms!r}]")
    if terms is not None and not len(terms):
        raise ValueError(
            "terms is empty: name one at least, or leave it out for all that are active"
        )
    whole = isinstance(max_terms, int | np.integer) and not isinstance(max_terms, bool)
    if max_terms is not None and not (whole and max_terms >= 1):
        raise ValueError(
            f"max_terms={max_terms!r} must be a whole number, 1 or more, or None for all"
        )


def by_name(
    result: _Curve | Mapping[str, _Curve], kind: type[_Curve], remedy: str
) -> dict[str, _Curve]:
    """Curves with their names: one without, or several to compare."""
    several = result if isinstance(result, Mapping) else {"": result}
    curves = {str(name): curve for name, curve in several.items()}
    if not curves:
        raise ValueError(f"there is no {kind.__name__} to draw")
    if len(curves) > len(MARKERS):
        raise ValueError(f"no more than {len(MARKERS)} curves can be told apart")
    for curve in curves.values():
        require(curve, kind, remedy)
    return curves


def are_turned(labels: Sequence[str]) -> bool:
    """Whether labels below a panel must stand upright."""
    return len(labels) > _MANY_LABELS or sum(map(len, labels)) > _MAX_CHARACTERS


def write_labels(
    ax: Axes, axis: Direction, places: Sequence[float], labels: Sequence[str], n_levels: int
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
    ax: Axes, axis: Direction, limits: tuple[float, float], slot: float, names: Sequence[str]
) -> None:
    """Room beyond the end of a numeric axis for what is not a number, with its names below."""
    from matplotlib.ticker import MaxNLocator

    low, high = limits
    end = high + slot * len(names)
    places = [high + (k + 0.5) * slot for k in range(len(names))]
    own = ax.xaxis if axis == "x" else ax.yaxis
    ticks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    own.set_ticks([tick for tick in ticks if low <= tick <= high - 0.4 * slot])
    own.set_ticks(places, names, minor=True, fontsize="small", color="0.35", style="italic")
    ax.tick_params(axis=axis, which="minor", length=0)
    (ax.set_xlim if axis == "x" else ax.set_ylim)(low, end)
    (ax.axvline if axis == "x" else ax.axhline)(high, **SEPARATOR)


def hidden_classes(explanation: GlobalExplanation, series: Sequence[Series]) -> list[str]:
    """What is to be said of classes that are not drawn."""
    hidden = len(explanation.classes or ()) - len(series)
    several = explanation.family.link.several
    return [f"{hidden} classes are not shown."] if several and hidden > 0 else []


def write_in_tile(
    ax: Axes, place: tuple[float, float], text: str, colour: str, weight: str = "normal"
) -> None:
    """A number in the middle of its tile."""
    look: Look = {"ha": "center", "va": "center", "fontsize": "x-small", "fontweight": weight}
    ax.text(*place, text, color=colour, **look)
