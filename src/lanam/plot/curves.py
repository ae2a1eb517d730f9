"""One panel of a univariate term: a curve, single values or categories, above the data."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from lanam.core.arrays import Array, IntArray
from lanam.explain import MISSING, OTHER_LEVELS, Shape
from lanam.explain.bands import around
from lanam.explain.ranges import data_histogram, edited_ranges, trimmed, two_values
from lanam.explain.terms import Other
from lanam.plot.common import (
    EDITED,
    SEPARATOR,
    SLOT,
    VERBATIM,
    Series,
    Style,
    add_slots,
    short_labels,
    write_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Extrapolated part of a curve on either side, as a fraction of the data's range.
_BEYOND = 0.08

#: Height of the histogram of the data, as a fraction of the panel.
STRIP = 0.14

_BINS = 40

#: Up to this many distinct values are marked on the curve.
_FEW_VALUES = 12

#: More single values than this have smaller markers.
_MANY_LEVELS = 60

#: Characters per line of the name below a panel, and of the whole name.
_MAX_WIDTH = 36
MAX_SHAPE_NAME = 2 * _MAX_WIDTH

#: The simultaneous band, around the pointwise one.
_OUTLINE: Style = {"linewidth": 0.8, "linestyle": "-", "zorder": 2}

#: Maximum number of categories shown, the most frequent.
_MAX_LABELS = 20


def shown_categories(shape: Shape) -> IntArray:
    """Indices of the most frequent categories, ascending."""
    return np.sort(np.argsort(-shape.density, kind="stable")[:_MAX_LABELS])


def name_lines(name: str) -> list[str]:
    """A term's name, wrapped for the space below its panel."""
    return textwrap.wrap(name, _MAX_WIDTH)


def slot_effects(shape: Shape) -> list[Other]:
    """The effects that have a slot: of missing values, and of other categories."""
    return [other for other in shape.others if other[0] in (MISSING, OTHER_LEVELS)]


def slot_names(shape: Shape) -> list[str]:
    """The names below these slots."""
    unseen = "other categories" if shape.unseen_density else "unseen"
    return ["missing" if name == MISSING else unseen for name, *_ in slot_effects(shape)]


def draw_shape(
    ax: Axes,
    shape: Shape,
    name: Sequence[str],
    limits: tuple[float, float],
    series: Sequence[Series],
) -> None:
    """Draw a term in its panel, with the lines of its name below."""
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
    """Draw a numeric column: curves or single values; returns notes."""
    if two_values(shape) is not None:
        _draw_two_values(ax, shape, series)
        return []
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
    kept = shape.values <= (np.inf if shape.missing_density is None else right)
    for one in series:
        if shape.kind == "level":
            moments = one.of(shape.mean)[kept], one.of(shape.std)[kept]
            few = len(shape.values) <= _MANY_LEVELS
            _draw_marks(ax, shape.values[kept], *moments, one, few=few)
        else:
            _draw_curve(ax, shape, one, right)
    draw_density(ax, shape, lowest, highest)
    if shape.missing_density is not None:
        slot = SLOT * (right - left)
        add_slots(ax, "x", (left, right), slot, ["missing"])
        _draw_others(ax, shape, [right + 0.5 * slot], slot, series, 1.0)
    if lowest > inner[0] or highest < inner[-1]:
        beyond = shape.density[(shape.values < lowest) | (shape.values > highest)].sum()
        return [f"({_percent(beyond)} of the data are not shown)"]
    return []


def _draw_two_values(ax: Axes, shape: Shape, series: Sequence[Series]) -> None:
    """Draw a column of two values, such as 0 and 1: there is nothing in between."""
    seen = two_values(shape)
    values, density = shape.values[seen], shape.density[seen]
    gap = float(values[1] - values[0])
    left, right = float(values[0]) - 0.5 * gap, float(values[1]) + 0.5 * gap
    ax.set_xlim(left, right)
    for start, end in edited_ranges(shape):
        ax.axvspan(max(start, left), min(end, right), **EDITED)
    for one in series:
        moments = one.of(shape.mean)[seen], one.of(shape.std)[seen]
        _draw_marks(ax, values + one.shift * gap, *moments, one)
    _draw_strip(ax, values - 0.2 * gap, density, 0.4 * gap, density.max() / _present(shape))
    if shape.missing_density is not None:
        slot = 0.5 * gap
        add_slots(ax, "x", (left, right), slot, ["missing"])
        _draw_others(ax, shape, [right + 0.5 * slot], slot, series, 1.0)
    ax.set_xticks(values, [f"{value:.6g}" for value in values])


def _percent(share: float) -> str:
    plain = 0.0995 <= share < 0.995 or share == 1.0
    return f"{share:.0%}" if plain else f"{min(max(share, 0.001), 0.999):.1%}"


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
    along: Style = {}
    if one.name and not few:  # markers identify the class, at places that differ between classes
        every = (0.1 * (one.shift + 0.5), 0.16)
        along = {"marker": one.marker, "markersize": 4, "markevery": every}
    ax.plot(values, mean, color=one.curve, linestyle=one.line, linewidth=1.8, zorder=3, **along)
    inside = shape.inside & ((shape.missing_density is None) | (shape.values <= right))
    if few:  # in between there is no data
        marks = one.of(shape.mean)[inside & seen]
        look: Style = {"marker": one.marker, "markersize": 4, "color": one.curve}
        ax.plot(shape.values[inside & seen], marks, linestyle="none", zorder=3, **look)
    if one.outer is not None:  # simultaneous within the data only
        for end in around(one.of(shape.mean), one.of(shape.std), one.outer):
            ax.plot(shape.values[inside], end[inside], **_OUTLINE, color=one.curve)


def _up_to(shape: Shape, one: Series, right: float) -> tuple[Array, ...]:
    """Values, mean and standard deviation, cut at ``right`` if a slot for missing values follows."""
    values, mean, std = shape.values, one.of(shape.mean), one.of(shape.std)
    if shape.missing_density is None or values[-1] <= right:
        return values, mean, std
    kept = values < right
    return tuple(
        np.append(table[kept], np.interp(right, values, table)) for table in (values, mean, std)
    )


def _draw_marks(
    ax: Axes,
    places: ArrayLike,
    mean: Array,
    std: Array,
    one: Series,
    style: Style | None = None,
    *,
    few: bool = True,
) -> None:
    """Draw markers with error bars."""
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
    look: Style = {"marker": one.marker, "markersize": 4.0 if few else 1.5} | (style or {})
    ax.plot(places, mean, linestyle="none", color=one.curve, zorder=3, **look)


def _draw_categories(ax: Axes, shape: Shape, series: Sequence[Series]) -> list[str]:
    """Draw the categories of a column; returns notes."""
    shown = shown_categories(shape)
    names = slot_names(shape)
    places = np.arange(len(shown), dtype=float)
    slots = [len(shown) + 0.4 + k for k in range(len(names))]
    ax.set_xlim(-0.6, len(shown) + 0.4 + len(names) - 0.4)
    for place in places[shape.edited[shown]]:
        ax.axvspan(place - 0.5, place + 0.5, **EDITED)
    for one in series:
        mean, std = one.of(shape.mean)[shown], one.of(shape.std)[shown]
        _draw_marks(ax, places + one.shift, mean, std, one)
    tallest = max(shape.density.max(), *(density for *_, density in shape.others), 0.0)
    _draw_strip(ax, places - 0.4, shape.density[shown], 0.8, tallest)
    _draw_others(ax, shape, slots, 1.0, series, tallest)
    if names:
        ax.axvline(len(shown) - 0.3, **SEPARATOR)
    write_labels(
        ax, "x", [*places, *slots], [*short_labels(shape.values[shown]), *names], len(shown)
    )
    if len(shown) == len(shape.values):
        return []
    share = _percent(float(shape.density[shown].sum()))
    return [f"({len(shown)} of {len(shape.values)} categories, {share} of the data)"]


def _draw_others(
    ax: Axes,
    shape: Shape,
    places: Sequence[float],
    width: float,
    series: Sequence[Series],
    tallest: float,
) -> None:
    """Draw the effects of missing values and of other categories in their slots."""
    edited = dict(zip((name for name, *_ in shape.others), shape.others_edited, strict=True))
    for place, (name, mean, std, density) in zip(places, slot_effects(shape), strict=True):
        if edited[name]:
            ax.axvspan(place - 0.5 * width, place + 0.5 * width, **EDITED)
        for one in series:
            at = [place + one.shift * width]
            style = {"markerfacecolor": "white"}
            if name == MISSING:
                style = {} if one.name else {"marker": "D"}  # classes have their own markers
            banded = one if density > 0.0 else replace(one, outer=None)
            ends = one.of(np.asarray([mean])), one.of(np.asarray([std]))
            _draw_marks(ax, at, *ends, banded, style)
        if density > 0.0:
            left = np.array([place - 0.4 * width])
            _draw_strip(ax, left, np.array([density]), 0.8 * width, tallest)


def _present(shape: Shape) -> float:
    """The fraction of rows with a value: the height of the strip's largest bar."""
    return 1.0 - (shape.missing_density or 0.0)


def draw_density(ax: Axes, shape: Shape, lowest: float, highest: float) -> None:
    """Draw a histogram of the training data along the bottom, the lower the more values are missing."""
    if highest <= lowest:
        return
    seen = (shape.density > 0.0) & (shape.values >= lowest) & (shape.values <= highest)
    width = (highest - lowest) / _BINS
    if (np.diff(shape.values[seen]) >= 0.999 * width).all():  # one bar per value, centred at it
        share, left = shape.density[seen], shape.values[seen] - 0.5 * width
    else:
        share, edges = data_histogram(shape, _BINS, (lowest, highest))
        left, width = edges[:-1], (highest - lowest) / len(share)
    _draw_strip(ax, left, share, width, share.max() / _present(shape))


def _draw_strip(ax: Axes, left: Array, share: Array, width: float, tallest: float) -> None:
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
