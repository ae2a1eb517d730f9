"""One panel of a term of one column: a curve, dots, or levels, and the data below."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from lanam.core.arrays import Array, IntArray, Intercept
from lanam.explain import MISSING, OTHER_LEVELS, Shape
from lanam.explain.bands import around
from lanam.explain.ranges import edited_ranges, trimmed
from lanam.plot.common import EDITED, SEPARATOR, SLOT, Series, add_slots, write_labels
from lanam.plot.words import VERBATIM, Look, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How far beyond the data a curve is drawn, as a share of the data's range.
_BEYOND = 0.08

#: The part of a panel's height that the histogram of the data takes.
STRIP = 0.14

_BINS = 40

#: A curve through so few values has a mark on each.
_FEW_VALUES = 12

#: More levels than this have smaller marks.
_MANY_LEVELS = 60

#: A name has two lines of so many characters below its panel; all of a name is no longer than this.
_MAX_WIDTH = 36
MAX_SHAPE_NAME = 2 * _MAX_WIDTH

#: The band of a whole curve, around that of single values.
_OUTLINE: Look = {"linewidth": 0.8, "linestyle": "-", "zorder": 2}

#: Of more levels of a categorical column the most frequent are drawn.
_MAX_LABELS = 20


def shown_levels(shape: Shape) -> IntArray:
    """The most frequent levels, in the data's order."""
    return np.sort(np.argsort(-shape.density, kind="stable")[:_MAX_LABELS])


def name_lines(name: str) -> list[str]:
    """A term's name as it stands below its panel."""
    return textwrap.wrap(name, _MAX_WIDTH)


def drawn_others(shape: Shape) -> list[tuple[str, Intercept, Intercept, float]]:
    """What has a mark beside the values: missing ones, and new levels of a categorical column."""
    return [other for other in shape.others if other[0] in (MISSING, OTHER_LEVELS)]


def slot_names(shape: Shape) -> list[str]:
    """The names below these marks."""
    unseen = "other levels" if shape.unseen_density else "new level"
    return ["missing" if name == MISSING else unseen for name, *_ in drawn_others(shape)]


def draw_shape(
    ax: Axes,
    shape: Shape,
    name: Sequence[str],
    limits: tuple[float, float],
    series: Sequence[Series],
) -> None:
    """A term in its panel, with its name in lines below."""
    ax.set_ylim(limits)
    ax.axhline(0.0, color="0.55", linewidth=0.8, zorder=1)
    if not len(shape.values):
        notes = [shape.status]
        ax.set_xticks([])
    elif shape.kind == "categorical":
        notes = _draw_categories(ax, shape, series)
    else:
        notes = _draw_numbers(ax, shape, series)
    if shape.missing_density is not None:
        notes.append(f"({_percent(shape.missing_density)} missing)")
    ax.set_xlabel("\n".join([*name, *notes]), **VERBATIM)
    ax.set_title(
        f"importance {shape.importance:.3g}", loc="left", fontsize="small", color="0.35", pad=3
    )
    ax.spines[["top", "right"]].set_visible(False)


def _draw_numbers(ax: Axes, shape: Shape, series: Sequence[Series]) -> list[str]:
    """The curves of a numeric column or of its single values, and what is to be said of them."""
    inner = shape.values[shape.inside]
    lowest, highest = trimmed(shape.values, shape.density, inner)
    margin = _BEYOND * (highest - lowest) or 0.5
    left, right = lowest - margin, highest + margin
    ax.set_xlim(left, right)
    for start, end in ((left, float(inner[0])), (float(inner[-1]), right)):
        if start < end:
            ax.axvspan(start, end, color="0.93", zorder=0, linewidth=0)
    for start, end in edited_ranges(shape):
        ax.axvspan(max(start, left), min(end, right), **EDITED)
    for one in series:
        (_draw_levels if shape.kind == "level" else _draw_curve)(ax, shape, one, right)
    tallest = _draw_density(ax, shape, lowest, highest)
    if shape.missing_density is not None:
        slot = SLOT * (right - left)
        add_slots(ax, "x", (left, right), slot, ["missing"])
        _draw_others(ax, shape, [right + 0.5 * slot], slot, series, tallest)
    if lowest > inner[0] or highest < inner[-1]:
        beyond = shape.density[(shape.values < lowest) | (shape.values > highest)].sum()
        return [f"({_percent(beyond)} of the data lie beyond)"]
    return []


def _percent(share: float) -> str:
    return f"{max(share, 0.001):.1%}" if share < 0.0995 else f"{share:.0%}"


def _draw_curve(ax: Axes, shape: Shape, one: Series, right: float) -> None:
    values, mean, std = _up_to(shape, one, right)
    ax.fill_between(
        values,
        *around(mean, std, one.half),
        color=one.band,
        alpha=one.band_alpha,
        linewidth=0,
        zorder=2,
    )
    seen = shape.inside & (shape.density > 0.0)
    few = seen.sum() <= _FEW_VALUES
    along: Look = _marks_along(one) if one.name and not few else {}
    ax.plot(values, mean, color=one.curve, linestyle=one.line, linewidth=1.8, zorder=3, **along)
    inside = shape.inside & ((shape.missing_density is None) | (shape.values <= right))
    if few:  # between them the curve is only a connection
        marks = one.of(shape.mean)[inside & seen]
        look: Look = {"marker": one.marker, "markersize": 4, "color": one.curve}
        ax.plot(shape.values[inside & seen], marks, linestyle="none", zorder=3, **look)
    if one.outer is not None:  # it promises nothing beyond the data
        for end in around(one.of(shape.mean), one.of(shape.std), one.outer):
            ax.plot(shape.values[inside], end[inside], **_OUTLINE, color=one.curve)


def _marks_along(one: Series) -> Look:
    """Marks that tell the curve of a class without its colour; not where another class has its own."""
    return {
        "marker": one.marker,
        "markersize": 4,
        "markevery": (0.1 * (one.shift + 0.5), 0.16),
    }


def _up_to(shape: Shape, one: Series, right: float) -> tuple[Array, ...]:
    """Values, mean and standard deviation; no further than the panel's end if missing values follow."""
    values, mean, std = shape.values, one.of(shape.mean), one.of(shape.std)
    if shape.missing_density is None or values[-1] <= right:
        return values, mean, std
    kept = values < right
    return tuple(
        np.append(table[kept], np.interp(right, values, table)) for table in (values, mean, std)
    )


def _draw_levels(ax: Axes, shape: Shape, one: Series, right: float) -> None:
    few = len(shape.values) <= _MANY_LEVELS
    kept = slice(None) if shape.missing_density is None else shape.values <= right
    mean, std = one.of(shape.mean)[kept], one.of(shape.std)[kept]
    _draw_marks(ax, shape.values[kept], mean, std, one, few=few)


def _draw_marks(
    ax: Axes,
    places: ArrayLike,
    mean: Array,
    std: Array,
    one: Series,
    style: Look | None = None,
    *,
    few: bool = True,
) -> None:
    """Dots with bars."""
    ax.vlines(
        places,
        *around(mean, std, one.half),
        color=one.band,
        alpha=one.band_alpha,
        linewidth=3.0 if few else 1.0,
        zorder=2,
    )
    if one.outer is not None:
        ax.vlines(places, *around(mean, std, one.outer), **_OUTLINE, color=one.curve)
    look: Look = {"marker": one.marker, "markersize": 4.0 if few else 1.5} | (style or {})
    ax.plot(places, mean, linestyle="none", color=one.curve, zorder=3, **look)


def _draw_categories(ax: Axes, shape: Shape, series: Sequence[Series]) -> list[str]:
    """The levels of a categorical column, and what is to be said of them."""
    shown = shown_levels(shape)
    names = slot_names(shape)
    places = np.arange(len(shown), dtype=float)
    slots = [len(shown) + 0.4 + k for k in range(len(names))]
    ax.set_xlim(-0.6, len(shown) + 0.4 + len(names) - 0.4)
    for place in places[shape.edited[shown]]:
        ax.axvspan(place - 0.5, place + 0.5, **EDITED)
    for one in series:
        mean, std = one.of(shape.mean)[shown], one.of(shape.std)[shown]
        _draw_marks(ax, places + one.shift, mean, std, one)
    tallest = float(shape.density.max())
    _draw_strip(ax, places - 0.4, shape.density[shown], 0.8, tallest)
    _draw_others(ax, shape, slots, 1.0, series, tallest)
    if names:
        ax.axvline(len(shown) - 0.3, **SEPARATOR)
    write_labels(ax, "x", [*places, *slots], [*short(shape.values[shown]), *names], len(shown))
    hidden = len(shape.values) - len(shown)
    if not hidden:
        return []
    share = _percent(float(shape.density[shown].sum()))
    return [f"({len(shown)} of {len(shape.values)} levels, {share} of the data)"]


def _draw_others(
    ax: Axes,
    shape: Shape,
    places: Sequence[float],
    width: float,
    series: Sequence[Series],
    tallest: float,
) -> None:
    """Marks of missing values and of new levels beside those of the values."""
    edited = dict(zip((name for name, *_ in shape.others), shape.others_edited, strict=True))
    for place, (name, mean, std, density) in zip(places, drawn_others(shape), strict=True):
        if edited[name]:
            ax.axvspan(place - 0.5 * width, place + 0.5 * width, **EDITED)
        for one in series:
            at = [place + one.shift * width]
            style = {"markerfacecolor": "white"}
            if name == MISSING:
                style = {} if one.name else {"marker": "D"}  # classes have marks of their own
            own = one if density > 0.0 else replace(one, outer=None)
            ends = one.of(np.asarray([mean])), one.of(np.asarray([std]))
            _draw_marks(ax, at, *ends, own, style)
        if density > 0.0:
            _draw_strip(
                ax, np.array([place - 0.4 * width]), np.array([density]), 0.8 * width, tallest
            )


def _draw_density(ax: Axes, shape: Shape, lowest: float, highest: float) -> float:
    """Bars along the bottom: how the training data is spread over the column's values."""
    if highest <= lowest:
        return float(shape.density.sum())
    seen = (shape.density > 0.0) & (shape.values >= lowest) & (shape.values <= highest)
    width = (highest - lowest) / _BINS
    if (np.diff(shape.values[seen]) >= 0.999 * width).all():  # each has its own bar, around it
        share = shape.density[seen]
        _draw_strip(ax, shape.values[seen] - 0.5 * width, share, width, float(share.max()))
        return float(share.max())
    share, edges = np.histogram(
        shape.values, bins=_BINS, range=(lowest, highest), weights=shape.density
    )
    _draw_strip(ax, edges[:-1], share, np.diff(edges), float(share.max()))
    return float(share.max())


def _draw_strip(ax: Axes, left: Array, share: Array, width: float | Array, tallest: float) -> None:
    ax.bar(
        left,
        np.minimum(share / (tallest or 1.0), 1.0) * (STRIP - 0.02),
        width=width,
        align="edge",
        color="#8c8c8c",
        linewidth=0,
        transform=ax.get_xaxis_transform(),
        zorder=1,
    )
