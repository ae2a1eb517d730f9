"""An interaction as a picture: its columns as axes of tiles; surfaces, contours and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.explain import MISSING, OTHER_LEVELS, Surface, SurfaceAxis
from lanam.explain.ranges import trimmed
from lanam.explain.values import Values
from lanam.plot.common import EDITED, SLOT, VERBATIM, Style, write_in_tile
from lanam.text import number_format

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.colorbar import Colorbar
    from matplotlib.patches import Rectangle

_Cell = TypeVar("_Cell", np.float64, np.bool_)

#: Displayed names of entries that are not values.
OTHER_NAMES = {MISSING: "missing", OTHER_LEVELS: "other categories"}

#: Tiles along a numeric axis.
_N_TILES = 80

#: With at most this many tiles, numbers are written into them.
_MAX_TILES_WRITTEN = 42

#: Hatching of negative values, for print without colours.
_HATCHED: Style = {
    "facecolor": "none",
    "hatch": "///",
    "edgecolor": (0.5, 0.5, 0.5, 0.6),
    "linewidth": 0.0,
}

#: The dots of edited regions lie above the colours.
_EDITED = EDITED | {"zorder": 1.5}


@dataclass(frozen=True)
class Section:
    """A section of an axis: edges of its tiles, and interpolation weights (tiles, entries)."""

    edges: Array
    weights: Array
    smooth: bool = False

    @property
    def middles(self) -> Array:
        """The centres of the tiles."""
        return np.asarray(0.5 * (self.edges[1:] + self.edges[:-1]))


#: A combination of sections, (across, up).
Block: TypeAlias = tuple[Section, Section]


@dataclass(frozen=True)
class Side:
    """One column of an interaction as an axis: its values, then missing and other values."""

    name: str
    values: Values
    parts: tuple[Section, ...]
    others: tuple[str, ...]

    @property
    def smooth(self) -> bool:
        """Whether the column is numeric."""
        return self.parts[0].smooth

    @property
    def main(self) -> tuple[float, float]:
        """The limits of the section of the values."""
        edges = self.parts[0].edges
        return float(edges[0]), float(edges[-1])


@dataclass(frozen=True)
class View:
    """The layout of an interaction; with one numeric column, the categorical one is vertical."""

    surface: Surface
    across: Side
    up: Side
    swapped: bool

    def oriented(self, table: NDArray[_Cell]) -> NDArray[_Cell]:
        """A table of the interaction as (across, up)."""
        return table.T if self.swapped else table

    @property
    def values(self) -> tuple[Values, Values]:
        """The values of both columns, (across, up)."""
        return self.across.values, self.up.values

    def inner(self, table: NDArray[_Cell]) -> NDArray[_Cell]:
        """A table of the interaction at these values (across, up)."""
        return self.oriented(table)[: len(self.across.values), : len(self.up.values)]

    def blocks(self) -> Iterator[Block]:
        """All combinations of sections (across, up); that of the values is the first."""
        return product(self.across.parts, self.up.parts)

    def read(self, table: Array, across: Section, up: Section) -> Array:
        """A table of the interaction at the tiles of a block (across, up)."""
        return np.asarray(across.weights @ self.oriented(table) @ up.weights.T)

    @property
    def mixed(self) -> bool:
        """Whether one column is numeric and one categorical."""
        return self.across.smooth and not self.up.smooth

    @property
    def written(self) -> bool:
        """Whether all columns are categorical, with few enough tiles for numbers."""
        if self.across.smooth or self.up.smooth:
            return False
        sizes = [sum(len(part.middles) for part in side.parts) for side in (self.across, self.up)]
        return sizes[0] * sizes[1] <= _MAX_TILES_WRITTEN


def lay_out(surface: Surface) -> View:
    """The layout of an interaction."""
    first, second = map(_side, surface.axes)
    swapped = second.smooth and not first.smooth
    return View(surface, *((second, first) if swapped else (first, second)), swapped)


def _side(axis: SurfaceAxis) -> Side:
    values, others, density = axis.values, axis.others, axis.density
    n_values, eye = len(values), np.eye(len(density))
    if axis.kind == "categorical":
        main = Section(np.arange(n_values + 1, dtype=np.float64) - 0.5, eye[:n_values])
        step = 1.0
    else:
        low, high = trimmed(values, density[:n_values], values[axis.inside[:n_values]])
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, _N_TILES + 1)
        middles = 0.5 * (edges[1:] + edges[:-1])
        weights = [np.interp(middles, values, row) for row in eye[:n_values, :n_values]]
        blank = np.zeros((_N_TILES, len(others)))
        main = Section(edges, np.hstack([np.transpose(weights), blank]), smooth=True)
        step = 0.6 * SLOT * (high - low)
    occurring = [k for k in range(len(others)) if density[n_values + k] > 0.0]
    parts = [main]
    if occurring:
        edges = main.edges[-1] + step * np.arange(len(occurring) + 1, dtype=np.float64)
        parts.append(Section(edges, eye[[n_values + k for k in occurring]]))
    names = tuple(OTHER_NAMES[others[k]] for k in occurring)
    return Side(axis.name, values, tuple(parts), names)


def draw_blocks(
    ax: Axes,
    view: View,
    table: Array,
    colours: str,
    limits: tuple[float, float],
    unit: str,
) -> Colorbar:
    """Draw a table of an interaction; its colour bar."""
    look: Style = {"vmin": limits[0], "vmax": limits[1], "cmap": colours, "rasterized": True}
    images = [
        (_draw_surface if across.smooth and up.smooth else _draw_tiles)(
            ax, view, (across, up), table, look
        )
        for across, up in view.blocks()
    ]
    bar = ax.figure.colorbar(images[0], ax=ax)
    bar.set_label(unit, **VERBATIM)
    return bar


def _draw_surface(ax: Axes, view: View, block: Block, table: Array, look: Style) -> QuadMesh:
    """The block where both columns are numeric."""
    image = ax.pcolormesh(*view.values, view.inner(table).T, shading="gouraud", **look)
    # Without data at any corner of a grid cell the posterior is the prior.
    data = view.inner(view.surface.density) > 0.0
    seen = _cells(data) | _cells(view.inner(view.surface.edited))
    _clip(ax, *block, [image, _draw_mask(ax, *view.values, seen)])
    return image


def _cells(corners: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which cells of a grid have a true corner."""
    return np.asarray(corners[1:, 1:] | corners[1:, :-1] | corners[:-1, 1:] | corners[:-1, :-1])


def _draw_tiles(ax: Axes, view: View, block: Block, table: Array, look: Style) -> QuadMesh:
    """A block with categories or missing values along at least one column."""
    across, up = block
    image = ax.pcolormesh(across.edges, up.edges, view.read(table, *block).T, **look)
    _draw_mask(ax, across.edges, up.edges, view.read(view.surface.density, *block) > 0.0)
    return image


def _draw_mask(ax: Axes, across: Array, up: Array, seen: NDArray[np.bool_]) -> QuadMesh:
    mask = np.ma.masked_array(np.ones(seen.T.shape), mask=seen.T)
    look: Style = {"cmap": "Greys", "vmin": 0.0, "vmax": 2.0, "alpha": 0.55, "linewidth": 0}
    return ax.pcolormesh(across, up, mask, rasterized=True, **look)


def _clip(ax: Axes, across: Section, up: Section, artists: Sequence[Artist]) -> None:
    """Clip artists to a block."""
    frame = _rectangle(across.edges, up.edges, {})
    frame.set_transform(ax.transData)
    for artist in artists:
        artist.set_clip_path(frame)


def draw_signs(ax: Axes, view: View, table: Array, bar: Colorbar) -> None:
    """Hatch negative values: both ends of a diverging colour map are equally dark."""
    for across, up in view.blocks():
        if across.smooth and up.smooth:
            _hatch_surface(ax, view, (across, up), table)
            continue
        below = view.read(table, across, up) < 0.0
        for columns, rows in _areas(below.T, upright=up.smooth):
            ax.add_patch(_rectangle(across.edges[list(columns)], up.edges[list(rows)]))
    low, high = bar.ax.get_ylim()
    if low < 0.0 < high:
        bar.ax.add_patch(_rectangle(np.array(bar.ax.get_xlim()), np.array([low, 0.0])))


def _hatch_surface(ax: Axes, view: View, block: Block, table: Array) -> None:
    inner = view.inner(table)
    if inner.min() >= 0.0:
        return
    area = ax.contourf(
        *view.values,
        inner.T,
        # Not where it was set to zero.
        levels=[2.0 * float(inner.min()), 1e-9 * float(inner.min())],
        colors="none",
        hatches=[_HATCHED["hatch"]],
    )
    area.set_edgecolor(_HATCHED["edgecolor"])
    area.set_linewidth(0.0)
    _clip(ax, *block, [area])


def _areas(
    flags: NDArray[np.bool_], *, upright: bool
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Runs of true tiles (up, across): their ends across, and their ends up."""
    for k, line in enumerate(flags.T if upright else flags):
        turns = np.flatnonzero(np.diff(line.astype(int), prepend=0, append=0))
        for start, stop in turns.reshape(-1, 2).tolist():
            one, along = (k, k + 1), (start, stop)
            yield (one, along) if upright else (along, one)


def _rectangle(across: Array, up: Array, look: Style = _HATCHED) -> Rectangle:
    """A rectangle between the first and last of the edges."""
    from matplotlib.patches import Rectangle

    low, high = across[[0, -1]], up[[0, -1]]
    return Rectangle((low[0], high[0]), low[1] - low[0], high[1] - high[0], **look)


def draw_significance(ax: Axes, view: View, distance: Array) -> None:
    """Mark where the mean is two or more standard deviations from zero."""
    for across, up in view.blocks():
        significant = np.abs(view.read(distance, across, up)) >= 2.0
        if across.smooth and up.smooth:
            _draw_contours(ax, view, (across, up), view.inner(distance))
        elif across.smooth or up.smooth:
            grid = np.meshgrid(across.middles, up.middles, indexing="ij")
            x, y = (np.where(significant, table, np.nan) for table in grid)
            lines = (x, y) if across.smooth else (x.T, y.T)
            ax.plot(*lines, color="0.15", linewidth=1.1)


def _draw_contours(ax: Axes, view: View, block: Block, inner: Array) -> None:
    """Contours at two and four standard deviations."""
    levels = [level for level in (-4, -2, 2, 4) if inner.min() < level < inner.max()]
    if levels:
        lines = ax.contour(*view.values, inner.T, levels=levels, colors="0.2", linewidths=0.8)
        _clip(ax, *block, [lines])
        ax.clabel(lines, fmt="%d sd", fontsize="x-small")


def draw_levels(ax: Axes, view: View, std: Array) -> None:
    """Contours of the standard deviation on a map: half, 90% and 98% of the data are within."""
    weight = view.inner(view.surface.density)
    inner = view.inner(std)
    order = np.argsort(inner, axis=None)
    below = np.cumsum(weight.ravel()[order]) / max(float(weight.sum()), np.finfo(float).tiny)
    places = np.minimum(np.searchsorted(below, (0.5, 0.9, 0.98)), inner.size - 1)
    levels = np.unique(inner.ravel()[order][places])
    levels = levels[(levels > inner.min()) & (levels < inner.max())]
    if len(levels):
        lines = ax.contour(*view.values, inner.T, levels=levels, colors="0.2", linewidths=0.8)
        _clip(ax, *next(view.blocks()), [lines])
        ax.clabel(lines, fmt=f"%{number_format(float(levels[-1]), 2)}", fontsize="x-small")


def draw_edited(ax: Axes, view: View) -> None:
    """Mark where an interaction was edited by hand: dots within an outline."""
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
            area = _rectangle(edges[0][list(columns)], edges[1][list(rows)], _EDITED)
            marks.append(ax.add_patch(area))
        _clip(ax, across, up, marks)


def _borders(cells: NDArray[np.bool_], across: Array, up: Array) -> list[list[tuple[float, float]]]:
    """The outline of the true cells (across, up)."""
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
    """Write numbers into the tiles, bold where they are two standard deviations from zero."""
    form = ("+" if signed else "") + number_format(largest, 2)
    for across, up in view.blocks():
        block = view.read(table, across, up)
        significant = np.zeros(block.shape, dtype=bool)
        if distance is not None:
            significant = np.abs(view.read(distance, across, up)) >= 2.0
        for i, j in np.ndindex(*block.shape):
            dark = abs(block[i, j]) > 0.6 * largest if signed else block[i, j] < 0.6 * largest
            place = float(across.middles[i]), float(up.middles[j])
            colour, weight = "white" if dark else "0.15", "bold" if significant[i, j] else "normal"
            write_in_tile(ax, place, format(block[i, j], form), colour, weight)
