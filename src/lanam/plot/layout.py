"""How a pair is laid out: its two columns as axes of tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.explain import MISSING, OTHER_LEVELS, Surface, SurfaceAxis
from lanam.explain.ranges import trimmed
from lanam.explain.values import Values
from lanam.plot.common import SLOT

_Cell = TypeVar("_Cell", np.float64, np.bool_)

#: Cells along a numeric axis of a pair that is drawn in tiles.
_N_TILES = 80

#: Numbers are written into so many tiles.
_MAX_TILES_WRITTEN = 42


@dataclass(frozen=True)
class Part:
    """A stretch of an axis: the edges of its tiles, and how each reads the entries (tiles, entries)."""

    edges: Array
    weights: Array
    smooth: bool = False

    @property
    def middles(self) -> Array:
        """The middles of the tiles."""
        return np.asarray(0.5 * (self.edges[1:] + self.edges[:-1]))


@dataclass(frozen=True)
class Side:
    """One of a pair's columns as an axis: its values, and then what else has entries."""

    name: str
    values: Values
    parts: tuple[Part, ...]
    others: tuple[str, ...]

    @property
    def smooth(self) -> bool:
        """Whether the values run on."""
        return self.parts[0].smooth

    @property
    def main(self) -> tuple[float, float]:
        """The ends of the values' part."""
        edges = self.parts[0].edges
        return float(edges[0]), float(edges[-1])


@dataclass(frozen=True)
class View:
    """How a pair is laid out; beside a numeric column a categorical one runs upwards."""

    surface: Surface
    across: Side
    up: Side
    swapped: bool

    def oriented(self, table: NDArray[_Cell]) -> NDArray[_Cell]:
        """A table of the pair as (across, up)."""
        return table.T if self.swapped else table

    @property
    def values(self) -> tuple[Values, Values]:
        """The values of both columns, (across, up)."""
        return self.across.values, self.up.values

    def inner(self, table: NDArray[_Cell]) -> NDArray[_Cell]:
        """A table of the pair at these values (across, up)."""
        return self.oriented(table)[: len(self.across.values), : len(self.up.values)]

    def blocks(self) -> Iterator[tuple[Part, Part]]:
        """The parts that the drawing is made of, (across, up); that of the values is the first."""
        return product(self.across.parts, self.up.parts)

    def read(self, table: Array, across: Part, up: Part) -> Array:
        """A table of the pair at the tiles of a block (across, up)."""
        return np.asarray(across.weights @ self.oriented(table) @ up.weights.T)

    @property
    def written(self) -> bool:
        """Whether there are only tiles, and few enough to write numbers into them."""
        if self.across.smooth or self.up.smooth:
            return False
        sizes = [sum(len(part.middles) for part in side.parts) for side in (self.across, self.up)]
        return sizes[0] * sizes[1] <= _MAX_TILES_WRITTEN


def lay_out(surface: Surface) -> View:
    """The axes of a pair's drawing."""
    first, second = map(_side, surface.axes)
    swapped = second.smooth and not first.smooth
    return View(surface, *((second, first) if swapped else (first, second)), swapped)


def _side(axis: SurfaceAxis) -> Side:
    values, others, density = axis.values, axis.others, axis.density
    n_values, eye = len(values), np.eye(len(density))
    if axis.kind == "categorical":
        main = Part(np.arange(n_values + 1, dtype=np.float64) - 0.5, eye[:n_values])
        step = 1.0
    else:
        low, high = trimmed(values, density[:n_values], values[axis.inside[:n_values]])
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, _N_TILES + 1)
        middles = 0.5 * (edges[1:] + edges[:-1])
        weights = [np.interp(middles, values, row) for row in eye[:n_values, :n_values]]
        blank = np.zeros((_N_TILES, len(others)))
        main = Part(edges, np.hstack([np.transpose(weights), blank]), smooth=True)
        step = 0.6 * SLOT * (high - low)
    found = [k for k in range(len(others)) if density[n_values + k] > 0.0]
    parts = [main]
    if found:
        edges = main.edges[-1] + step * np.arange(len(found) + 1, dtype=np.float64)
        parts.append(Part(edges, eye[[n_values + k for k in found]]))
    words = {MISSING: "missing", OTHER_LEVELS: "other levels"}
    names = tuple(words[others[k]] for k in found)
    return Side(axis.name, values, tuple(parts), names)
