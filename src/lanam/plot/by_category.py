"""An interaction of a numeric and a categorical column: one curve per category, with bands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import IntArray
from lanam.explain.bands import around
from lanam.plot.common import (
    CLASS_COLOURS,
    EDITED,
    LINE_STYLES,
    MARKERS,
    MAX_NAME,
    SLOT,
    VERBATIM,
    Series,
    Style,
    add_slots,
    write_legend,
)
from lanam.plot.tiles import OTHER_NAMES, View
from lanam.text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Maximum number of categories shown, the most frequent: more curves cannot be told apart.
MAX_CURVES = 6

#: A value at which a curve was edited by hand.
_EDITED_LINE: Style = {
    "color": EDITED["edgecolor"],
    "linestyle": ":",
    "linewidth": 0.8,
    "zorder": 0.5,
}

#: Places of the markers along a curve, as fractions of its length, and their distance.
_FIRST_MARK, _MARK_STEP = 0.04, 0.2


def curve_series(view: View) -> list[Series]:
    """The categories to show, by their index along the categorical column, each with its style."""
    entries = _shown(view)
    axis = view.surface.axes[0 if view.swapped else 1]
    names = [*map(str, axis.values), *(OTHER_NAMES[name] for name in axis.others)]
    labels = cut([names[k] for k in entries], MAX_NAME)
    shifts = (np.arange(len(entries)) - 0.5 * (len(entries) - 1)) * 0.7 / len(entries)
    alpha = 0.3 if len(entries) < 3 else 0.16  # bands overlap
    return [
        Series(int(entry), label, colour, colour, alpha, float(shift), line, marker)
        for entry, label, colour, shift, line, marker in zip(
            entries,
            labels,
            cycle(CLASS_COLOURS),
            shifts,
            cycle(LINE_STYLES),
            cycle(MARKERS),
            strict=False,
        )
    ]


def _shown(view: View) -> IntArray:
    """The most frequent entries of the categorical column, in their order."""
    share = view.oriented(view.surface.density).sum(axis=0)
    most = np.argsort(-share, kind="stable")[:MAX_CURVES]
    return np.sort(most[share[most] > 0.0])


def draw_curves(ax: Axes, view: View, one: Series, curves: Sequence[Series]) -> None:
    """Draw the curves of the categories, for one class if there are several, within their data."""
    mean, std = (view.oriented(one.of(table, 2)) for table in (view.surface.mean, view.surface.std))
    density, edited = view.oriented(view.surface.density), view.oriented(view.surface.edited)
    values = np.asarray(view.across.values, dtype=np.float64)
    n_values, (low, high) = len(values), view.across.main
    ax.axhline(0.0, color="0.55", linewidth=0.8, zorder=1)
    ax.set_xlim(low, high)
    slot = SLOT * (high - low)
    if view.across.others:
        add_slots(ax, "x", (low, high), slot, view.across.others)
    for number, curve in enumerate(curves):
        entry = curve.class_index
        span = _span(density[:n_values, entry]) & (values >= low) & (values <= high)
        along = values[span], mean[:n_values, entry][span]
        ends = around(along[1], std[:n_values, entry][span], one.half)
        ax.fill_between(
            along[0], *ends, color=curve.band, alpha=curve.band_alpha, linewidth=0, zorder=2
        )
        every = (_FIRST_MARK + _MARK_STEP * number / len(curves), _MARK_STEP)
        look: Style = {
            "marker": curve.marker,
            "markersize": 4.5,
            "markevery": every,
            "label": curve.name,
        }
        ax.plot(*along, color=curve.curve, linestyle=curve.line, linewidth=1.7, zorder=3, **look)
        for place in values[span & edited[:n_values, entry]]:
            ax.axvline(place, **_EDITED_LINE)
        if view.across.others and density[n_values, entry] > 0.0:
            at = [high + (0.5 + curve.shift) * slot]
            moments = mean[n_values, [entry]], std[n_values, [entry]]
            ax.vlines(
                at,
                *around(*moments, one.half),
                color=curve.band,
                alpha=0.5,
                linewidth=3.0,
                zorder=2,
            )
            ax.plot(
                at, moments[0], marker=curve.marker, markersize=4.5, color=curve.curve, zorder=3
            )
    ax.spines[["top", "right"]].set_visible(False)


def _span(density: NDArray[np.float64]) -> NDArray[np.bool_]:
    """From the first to the last value with data."""
    seen = np.flatnonzero(density > 0.0)
    places = np.arange(len(density))
    return (places >= seen[0]) & (places <= seen[-1]) if len(seen) else np.zeros(len(density), bool)


def draw_curve_legend(ax: Axes, view: View) -> None:
    """The names of the categories, beside the panel."""
    legend = ax.legend(
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        fontsize="small",
        handlelength=3.0,
        title=cut([view.up.name], MAX_NAME)[0],
        title_fontsize="small",
    )
    legend.get_title().set(**VERBATIM)
    write_legend(legend)
