"""Interpolation: rows of tables, one table at a time or as a design matrix, and the adjoint sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanam.core.arrays import Array, Workspace, slices, sum_by
from lanam.core.rows.located import Rows
from lanam.core.terms.knots import Position


def read(position: Position, table: Array) -> Array:
    """Rows of a table, interpolated along every axis: ``W_d T_d`` without forming ``W_d``."""
    if position.repeats is not None:
        return np.asarray(read(position.of_subjects, table)[position.repeats.owner])
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
    if position.repeats is not None:
        return spread(position.of_subjects, position.repeats.sum(values), size)
    if not position.steps:
        return sum_by(position.index, values, size)
    (stride, fraction), *others = position.steps
    along_others = Position(position.index, tuple(others))
    beyond = values * fraction
    total = spread(along_others, values - beyond, size)
    total[stride:] += spread(along_others, beyond, size)[:-stride]
    return total


class Design:
    """Computes ``Z``, with the intercept's column last, part by part; each is valid until the next."""

    def __init__(self, tables: Sequence[Array]) -> None:
        self._columns = slices(table.shape[1] for table in tables)
        self._tables = tables
        self._stacked: dict[tuple[int, tuple[int, ...]], Array] = {}
        self._space = Workspace()

    def of(self, rows: Rows) -> Array:
        """``Z`` of these rows."""
        return self.at([position.of_rows for position in rows.positions], len(rows))

    def at(self, positions: Sequence[Position], n_rows: int) -> Array:
        """``Z`` of rows at these positions."""
        width = self._columns[-1].stop if self._columns else 0
        design = self._space.get("design", (n_rows, width + 1))
        for k, (position, columns) in enumerate(zip(positions, self._columns, strict=True)):
            self._read(k, position, design[:, columns])
        design[:, -1] = 1.0
        return design

    def _read(self, k: int, position: Position, out: Array) -> None:
        """``W_k T_k`` as ``read`` computes it, with one indexing of the table."""
        strides = tuple(stride for stride, _ in position.steps)
        if (k, strides) not in self._stacked:
            self._stacked[k, strides] = _with_differences(self._tables[k], strides)
        stacked = self._stacked[k, strides]
        taken = self._space.get("taken", (len(position.index), stacked.shape[1]))
        # "clip" avoids a copy; all positions are within.
        np.take(stacked, position.index.astype(np.intp), axis=0, out=taken, mode="clip")
        parts = taken.reshape(len(taken), 1 << len(strides), out.shape[1])
        fractions = [fraction.astype(np.float64)[:, None] for _, fraction in position.steps]
        # The second half holds the first one's differences along an axis.
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
    """A table beside its differences along the last axis, both beside theirs along the previous one, ..."""
    parts = [table]
    for stride in reversed(strides):
        parts += [_difference(part, stride) for part in parts]
    return np.hstack(parts)


def _difference(table: Array, stride: int) -> Array:
    """Differences to the entries ``stride`` further on; zero for the last ones, which no row needs."""
    change = np.zeros_like(table)
    np.subtract(table[stride:], table[:-stride], out=change[:-stride])
    return change
