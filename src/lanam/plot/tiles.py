"""A table of a pair in colours: surfaces, tiles, contours and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.plot.common import EDITED, write_in_tile
from lanam.plot.layout import Part, View
from lanam.plot.words import VERBATIM, Look
from lanam.text import number_format

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.colorbar import Colorbar
    from matplotlib.patches import Rectangle

#: What is below zero, for those who see or print no colours.
_HATCH = "///"
_HATCH_COLOUR = (0.5, 0.5, 0.5, 0.6)

#: Dots of edits lie upon the colours.
_EDITED = EDITED | {"zorder": 1.5}


def draw_blocks(
    ax: Axes,
    view: View,
    table: Array,
    colours: str,
    limits: tuple[float, float],
    unit: str,
) -> Colorbar:
    """A table of a pair in its panel; its colour bar."""
    look: Look = {"vmin": limits[0], "vmax": limits[1], "cmap": colours, "rasterized": True}
    images = [
        (_draw_surface if across.smooth and up.smooth else _draw_tiles)(
            ax, view, (across, up), table, look
        )
        for across, up in view.blocks()
    ]
    bar = ax.figure.colorbar(images[0], ax=ax)
    bar.set_label(unit, **VERBATIM)
    return bar


def _draw_surface(
    ax: Axes, view: View, block: tuple[Part, Part], table: Array, look: Look
) -> QuadMesh:
    """The part of a pair where both columns are numbers."""
    image = ax.pcolormesh(*view.values, view.inner(table).T, shading="gouraud", **look)
    # A cell of the grid without data at any of its corners tells what the prior says, not the data.
    data = view.inner(view.surface.density) > 0.0
    seen = _cells(data) | _cells(view.inner(view.surface.edited))
    veil = _draw_veil(ax, *view.values, seen)
    if view.across.others or view.up.others:
        _clip(ax, *block, [image, veil])
    return image


def _cells(corners: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which cells of a grid have something at any of their corners."""
    return np.asarray(corners[1:, 1:] | corners[1:, :-1] | corners[:-1, 1:] | corners[:-1, :-1])


def _draw_tiles(
    ax: Axes, view: View, block: tuple[Part, Part], table: Array, look: Look
) -> QuadMesh:
    """A part of a pair with levels or missing values on one side or both."""
    across, up = block
    image = ax.pcolormesh(across.edges, up.edges, view.read(table, *block).T, **look)
    _draw_veil(ax, across.edges, up.edges, view.read(view.surface.density, *block) > 0.0)
    return image


def _draw_veil(ax: Axes, across: Array, up: Array, seen: NDArray[np.bool_]) -> QuadMesh:
    veil = np.ma.masked_array(np.ones(seen.T.shape), mask=seen.T)
    look: Look = {"cmap": "Greys", "vmin": 0.0, "vmax": 2.0, "alpha": 0.55, "linewidth": 0}
    return ax.pcolormesh(across, up, veil, rasterized=True, **look)


def _clip(ax: Axes, across: Part, up: Part, artists: Sequence[Artist]) -> None:
    """Keep what is drawn over all values within the part for which there is room."""
    from matplotlib.patches import Rectangle

    low, high = across.edges[[0, -1]], up.edges[[0, -1]]
    frame = Rectangle((low[0], high[0]), low[1] - low[0], high[1] - high[0])
    frame.set_transform(ax.transData)
    for artist in artists:
        artist.set_clip_path(frame)


def draw_signs(ax: Axes, view: View, table: Array, bar: Colorbar) -> None:
    """Hatching where a table is below zero: both ends of its colours are equally dark."""
    for across, up in view.blocks():
        if across.smooth and up.smooth:
            _hatch_surface(ax, view, (across, up), table)
            continue
        below = view.read(table, across, up) < 0.0
        for columns, rows in _areas(below.T, upright=up.smooth):
            left, right = across.edges[list(columns)]
            low, high = up.edges[list(rows)]
            ax.add_patch(_hatched((left, low), right - left, high - low))
    low, high = bar.ax.get_ylim()
    left, right = bar.ax.get_xlim()
    if low < 0.0 < high:
        bar.ax.add_patch(_hatched((left, low), right - left, -low))


def _hatch_surface(ax: Axes, view: View, block: tuple[Part, Part], table: Array) -> None:
    inner = view.inner(table)
    if inner.min() >= 0.0:
        return
    area = ax.contourf(
        *view.values,
        inner.T,
        # Not where it is zero, by hand.
        levels=[2.0 * float(inner.min()), 1e-9 * float(inner.min())],
        colors="none",
        hatches=[_HATCH],
    )
    area.set_edgecolor(_HATCH_COLOUR)
    area.set_linewidth(0.0)
    if view.across.others or view.up.others:
        _clip(ax, *block, [area])


def _areas(
    flags: NDArray[np.bool_], *, upright: bool
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The tiles that are true (up, across), in stretches: ends across, and ends up."""
    for k, line in enumerate(flags.T if upright else flags):
        turns = np.flatnonzero(np.diff(line.astype(int), prepend=0, append=0))
        for start, stop in turns.reshape(-1, 2).tolist():
            one, along = (k, k + 1), (start, stop)
            yield (one, along) if upright else (along, one)


def _hatched(
    corner: tuple[float, float], width: float, height: float, look: Look | None = None
) -> Rectangle:
    from matplotlib.patches import Rectangle

    own: Look = {"facecolor": "none", "hatch": _HATCH, "edgecolor": _HATCH_COLOUR, "linewidth": 0.0}
    return Rectangle(corner, width, height, **(own | (look or {})))


def draw_significance(ax: Axes, view: View, distance: Array) -> None:
    """Where the mean lies two standard deviations and more from zero."""
    for across, up in view.blocks():
        sure = np.abs(view.read(distance, across, up)) >= 2.0
        if across.smooth and up.smooth:
            _draw_contours(ax, view, (across, up), view.inner(distance))
        elif across.smooth:
            for place, along in zip(up.middles, sure.T, strict=True):
                line = np.where(along, place, np.nan)
                ax.plot(across.middles, line, color="0.15", linewidth=1.1)
        elif up.smooth:
            for place, along in zip(across.middles, sure, strict=True):
                line = np.where(along, place, np.nan)
                ax.plot(line, up.middles, color="0.15", linewidth=1.1)


def _draw_contours(ax: Axes, view: View, block: tuple[Part, Part], inner: Array) -> None:
    """Contours at two and four standard deviations."""
    levels = [level for level in (-4, -2, 2, 4) if inner.min() < level < inner.max()]
    if levels:
        lines = ax.contour(*view.values, inner.T, levels=levels, colors="0.2", linewidths=0.8)
        if view.across.others or view.up.others:
            _clip(ax, *block, [lines])
        ax.clabel(lines, fmt="%d sd", fontsize="x-small")


def draw_edited(ax: Axes, view: View) -> None:
    """Dots, and a line around them, where a pair was changed by hand."""
    from matplotlib.collections import LineCollection

    edited = view.surface.edited
    for across, up in view.blocks():
        if across.smooth and up.smooth:
            edges, cells = view.values, _cells(view.inner(edited))
        else:
            edges = across.edges, up.edges
            cells = view.read(edited.astype(float), across, up) > 0.0
        if not cells.any():
            continue
        lines = LineCollection(_borders(cells, *edges), colors="0.1", linewidths=1.0)
        marks: list[Artist] = [ax.add_collection(lines, autolim=False)]
        for columns, rows in _areas(cells.T, upright=False):
            left, right = edges[0][list(columns)]
            low, high = edges[1][list(rows)]
            marks.append(ax.add_patch(_hatched((left, low), right - left, high - low, _EDITED)))
        _clip(ax, across, up, marks)


def _borders(cells: NDArray[np.bool_], across: Array, up: Array) -> list[list[tuple[float, float]]]:
    """The lines between cells (across, up) that are true and those that are not."""
    framed = np.pad(cells, 1).astype(int)
    upright = np.argwhere(np.diff(framed, axis=0)[:, 1:-1])
    level = np.argwhere(np.diff(framed, axis=1)[1:-1])
    return [
        *([(across[i], up[j]), (across[i], up[j + 1])] for i, j in upright),
        *([(across[i], up[j]), (across[i + 1], up[j])] for i, j in level),
    ]


def write_numbers(
    ax: Axes,
    view: View,
    table: Array,
    largest: float,
    distance: Array | None = None,
    *,
    signed: bool = False,
) -> None:
    """The tables' numbers in their tiles, bold where they are sure."""
    form = ("+" if signed else "") + number_format(largest, 2)
    for across, up in view.blocks():
        block = view.read(table, across, up)
        sure = np.zeros(block.shape, dtype=bool)
        if distance is not None:
            sure = np.abs(view.read(distance, across, up)) >= 2.0
        for i, j in np.ndindex(*block.shape):
            dark = abs(block[i, j]) > 0.6 * largest if signed else block[i, j] < 0.6 * largest
            place = float(across.middles[i]), float(up.middles[j])
            colour, weight = "white" if dark else "0.15", "bold" if sure[i, j] else "normal"
            write_in_tile(ax, place, format(block[i, j], form), colour, weight)
