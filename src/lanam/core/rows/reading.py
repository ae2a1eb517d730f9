"""How rows read tables: by interpolation, one table after the other or all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanam.core.arrays import Array, Workspace, slices, sum_by
from lanam.core.rows.located import Rows
from lanam.core.terms.knots import Position


def read(position: Position, table: Array) -> Array:
    """Rows of a table, interpolated along every axis: ``W_d T_d`` without forming ``W_d``."""
    if not position.steps:
        index = position.index
        # Each is about twice as fast as the other for its kind of table.
        return table[index] if table.ndim == 1 else np.take(table, index.astype(np.intp), axis=0)
    (stride, fraction), *others = position.steps
    along_others = Position(position.index, tuple(others))
    value = read(along_others, table)
    change = read(along_others, _difference(table, stride))
    change *= fraction if table.ndim == 1 else fraction[:, None]
    value += change
    return value


def spread(position: Position, values: Array, size: int) -> Array:
    """Sums of row values per table entry: ``W_d' v``."""
    if not position.steps:
        return sum_by(position.index, values, size)
    (stride, fraction), *others = position.steps
    along_others = Position(position.index, tuple(others))
    beyond = values * fraction
    total = spread(along_others, values - beyond, size)
    total[stride:] += spread(along_others, beyond, size)[:-stride]
    return total


class Design:
    """Makes ``Z`` of some rows after others, the intercept's column last; each is valid until the next."""

    def __init__(self, tables: Sequence[Array]) -> None:
        self._columns = slices(table.shape[1] for table in tables)
        self._tables = tables
        self._stacked: dict[tuple[int, tuple[int, ...]], Array] = {}
        self._space = Workspace()

    def of(self, rows: Rows) -> Array:
        """``Z`` of these rows."""
        width = self._columns[-1].stop if self._columns else 0
        design = self._space.get("design", (len(rows), width + 1))
        for k, (position, own) in enumerate(zip(rows.positions, self._columns, strict=True)):
            self._read(k, position, design[:, own])
        design[:, -1] = 1.0
        return design

    def _read(self, k: int, position: Position, out: Array) -> None:
        """``W_k T_k``: what ``read`` says, with one look at the table for all that it needs."""
        strides = tuple(stride for stride, _ in position.steps)
        if (k, strides) not in self._stacked:
            self._stacked[k, strides] = _with_differences(self._tables[k], strides)
        stacked = self._stacked[k, strides]
        found = self._space.get("found", (len(position.index), stacked.shape[1]))
        # "clip" only because with it nothing is copied: all positions are within.
        np.take(stacked, position.index.astype(np.intp), axis=0, out=found, mode="clip")
        parts = found.reshape(len(found), 1 << len(strides), out.shape[1])
        fractions = [fraction.astype(np.float64)[:, None] for _, fraction in position.steps]
        # The later half are the earlier one's differences along an axis.
        for fraction in fractions[:-1]:
            parts, change = np.split(parts, 2, axis=1)
            change *= fraction[:, None]
            parts += change
        if not fractions:
            out[:] = parts[:, 0]
            return
        np.multiply(parts[:, 1], fractions[-1], out=out)
        out += parts[:, 0]


def _with_differences(table: Array, strides: Sequence[int]) -> Array:
    """A table beside its differences along the last axis, both beside theirs along the one before, ..."""
    parts = [table]
    for stride in reversed(strides):
        parts += [_difference(part, stride) for part in parts]
    return np.hstack(parts)


def _difference(table: Array, stride: int) -> Array:
    """Differences to the entries so far on; the last have none there, and no row asks for them."""
    change = np.zeros_like(table)
    np.subtract(table[stride:], table[:-stride], out=change[:-stride])
    return change
