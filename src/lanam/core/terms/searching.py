"""``searchsorted`` of many numbers, several times faster.

A grid of cells over the points gives the few candidates for each number, among which one or two comparisons
decide. Cells are of even width or, where points crowd together, of floats with the same leading bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array

Integers = NDArray[np.int64]

#: Fewer numbers than this are left to ``searchsorted``.
_MANY = 4096

#: Numbers at a time: intermediate results stay in the cache.
_BLOCK = 1 << 14

#: Fraction of the points at either end that a grid leaves out: they are far apart, and hardly read.
_ENDS = 0.05

#: Cells of a grid per point, about, and the largest number of points in a cell.
_CELLS_PER_POINT = 16
_MOST_STEPS = 5


def _even_cell(low: float, density: float, numbers: Array) -> Integers:
    """The cell of each number among cells of even width."""
    return ((numbers - low) * density).astype(np.int64)


def _bit_cell(first: int, shift: int, numbers: Array) -> Integers:
    """The cell of each number among cells of floats with the same leading bits."""
    return (_ordered_bits(numbers) >> shift) - first


def _ordered_bits(numbers: Array) -> Integers:
    """Integers in the order of the floats."""
    bits = numbers.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


@dataclass(frozen=True)
class _SearchCells:
    """Cells from ``low`` to ``high``; ``before`` is the last point before each cell, or the first one."""

    low: float
    high: float
    cell_of: Callable[[Array], Integers]
    before: NDArray[np.int32]
    steps: int


@dataclass(frozen=True)
class SortedPoints:
    """Looks numbers up among ascending ``points``.

    Examples
    --------
    >>> SortedPoints(np.array([1.0, 2.0, 4.0])).last_at_most(
    ...     np.array([0.5, 2.0, 3.0, 9.0])
    ... ).tolist()
    [-1, 1, 1, 2]
    """

    points: Array

    @cached_property
    def _cells(self) -> _SearchCells | None:
        """The cells that need the fewest comparisons, or None where these are too many."""
        left_out = int(_ENDS * len(self.points))
        inner = self.points[left_out : len(self.points) - left_out] + 0.0
        if len(inner) == 0 or inner[0] == inner[-1]:
            return None
        n_cells = _CELLS_PER_POINT * len(self.points)
        low, high = inner[[0, -1]].tolist()
        first, last = _ordered_bits(inner[[0, -1]]).tolist()
        shift = max((last - first).bit_length() - n_cells.bit_length() + 1, 0)
        kinds: list[Callable[[Array], Integers]] = [partial(_bit_cell, first >> shift, shift)]
        with np.errstate(over="ignore"):
            density = float(n_cells / np.float64(high - low))
        if 0.0 < density < np.inf:
            kinds.insert(0, partial(_even_cell, low, density))
        grids = [self._filled(low, high, cell_of) for cell_of in kinds]
        best = min(grids, key=lambda cells: cells.steps)
        return best if best.steps <= _MOST_STEPS else None

    def _filled(
        self, low: float, high: float, cell_of: Callable[[Array], Integers]
    ) -> _SearchCells:
        number = np.flatnonzero((self.points >= low) & (self.points <= high))
        points_in = np.bincount(cell_of(self.points[number] + 0.0))
        before = number[0] - 1 + np.cumsum(points_in) - points_in
        return _SearchCells(
            low, high, cell_of, np.maximum(before, 0).astype(np.int32), points_in.max()
        )

    def last_at_most(self, numbers: Array) -> NDArray[np.intp]:
        """``searchsorted(points, numbers, side="right") - 1``."""
        cells = self._cells if len(numbers) >= _MANY else None
        if cells is None:
            return np.searchsorted(self.points, numbers, side="right") - 1
        result = np.empty(len(numbers), dtype=np.intp)
        after = np.append(self.points[1:], np.inf)
        for start in range(0, len(numbers), _BLOCK):
            block = slice(start, start + _BLOCK)
            result[block] = self._look_up(numbers[block] + 0.0, cells, after)
        return result

    def _look_up(self, numbers: Array, cells: _SearchCells, after: Array) -> NDArray[np.int32]:
        within = np.clip(numbers, cells.low, cells.high)
        index = np.take(cells.before, cells.cell_of(within))
        for _ in range(cells.steps):
            index += within >= np.take(after, index)
        beyond = within != numbers
        if beyond.any():
            index[beyond] = np.searchsorted(self.points, numbers[beyond], side="right") - 1
        return index
