"""Where numbers stand among sorted points: what ``searchsorted`` says, several times faster for many.

A grid over the points says between which few of them a number lies, and a step or two settles it. Cells
are of even width or, where points crowd together, of floats that begin with the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array

Integers = NDArray[np.int64]

#: Fewer numbers than this are looked up one by one.
_MANY = 4096

#: Numbers at a time: what is computed for them stays in the cache.
_BLOCK = 1 << 14

#: Points at either end that a grid leaves out, as a share: they are far apart, and hardly read.
_ENDS = 0.05

#: Cells of a grid for every point, about, and how many points a cell may have at most.
_CELLS_A_POINT = 16
_MOST_STEPS = 5


@dataclass(frozen=True)
class _EvenCells:
    """Cells of even width from ``low`` on, so many per unit."""

    low: float
    density: float

    @classmethod
    def over(cls, low: float, high: float, n_cells: int) -> _EvenCells | None:
        """So many cells over a range; None where floats cannot tell them apart."""
        with np.errstate(over="ignore"):
            density = n_cells / (high - low)
        return cls(low, density) if 0.0 < density < np.inf else None

    def of(self, numbers: Array) -> Integers:
        """The cell of every number, none of which is below the first."""
        return ((numbers - self.low) * self.density).astype(np.int64)


@dataclass(frozen=True)
class _BitCells:
    """Floats in the same cell begin with the same bits: as many cells for every power of two."""

    first: int
    shift: int

    @classmethod
    def over(cls, low: float, high: float, n_cells: int) -> _BitCells:
        """Up to so many cells over a range."""
        ends = _ordered_bits(np.array([low, high]))
        width = int(ends[1]) - int(ends[0])
        shift = max(width.bit_length() - n_cells.bit_length() + 1, 0)
        return cls(int(ends[0]) >> shift, shift)

    def of(self, numbers: Array) -> Integers:
        """The cell of every number, none of which is below the first."""
        return (_ordered_bits(numbers) >> self.shift) - self.first


def _ordered_bits(numbers: Array) -> Integers:
    """Whole numbers in the order of the floats."""
    bits = numbers.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


@dataclass(frozen=True)
class _Grid:
    low: float
    high: float
    cells: _EvenCells | _BitCells
    before: NDArray[np.int32]
    steps: int


@dataclass(frozen=True)
class Search:
    """Looks numbers up among ascending ``points``.

    Examples
    --------
    >>> Search(np.array([1.0, 2.0, 4.0])).last_at_most(np.array([0.5, 2.0, 3.0, 9.0])).tolist()
    [-1, 1, 1, 2]
    """

    points: Array

    @cached_property
    def _grid(self) -> _Grid | None:
        """The grid that needs fewest steps, or None where all need too many or there are no points."""
        if len(self.points) == 0:
            return None
        left_out = int(_ENDS * len(self.points))
        inner = self.points[left_out : len(self.points) - left_out] + 0.0
        low, high = float(inner[0]), float(inner[-1])
        if not low < high:
            return None
        n_cells = _CELLS_A_POINT * len(self.points)
        kinds = (_EvenCells.over(low, high, n_cells), _BitCells.over(low, high, n_cells))
        grids = [self._made(low, high, kind) for kind in kinds if kind is not None]
        best = min(grids, key=lambda grid: grid.steps)
        return best if best.steps <= _MOST_STEPS else None

    def _made(self, low: float, high: float, cells: _EvenCells | _BitCells) -> _Grid:
        inside = (self.points >= low) & (self.points <= high)
        number = np.flatnonzero(inside)
        cell = cells.of(self.points[inside] + 0.0)
        n_cells = int(cell[-1]) + 1
        # In any cell, the last point of the cells before it; the first itself is in the first.
        points_in = np.bincount(cell, minlength=n_cells)
        before = number[0] - 1 + np.cumsum(points_in) - points_in
        return _Grid(low, high, cells, np.maximum(before, 0).astype(np.int32), points_in.max())

    def last_at_most(self, numbers: Array) -> NDArray[np.intp]:
        """``searchsorted(points, numbers, side="right") - 1``."""
        grid = self._grid if len(numbers) >= _MANY else None
        if grid is None:
            return np.searchsorted(self.points, numbers, side="right") - 1
        result = np.empty(len(numbers), dtype=np.intp)
        after = np.append(self.points[1:], np.inf)
        for start in range(0, len(numbers), _BLOCK):
            own = slice(start, start + _BLOCK)
            result[own] = self._block(numbers[own] + 0.0, grid, after)
        return result

    def _block(self, numbers: Array, grid: _Grid, after: Array) -> NDArray[np.int32]:
        within = np.clip(numbers, grid.low, grid.high)
        index = np.take(grid.before, grid.cells.of(within))
        for _ in range(grid.steps):
            index += within >= np.take(after, index)
        beyond = within != numbers
        if beyond.any():
            index[beyond] = np.searchsorted(self.points, numbers[beyond], side="right") - 1
        return index
