"""How rows read tables: by interpolation, one table after the other or all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray, sum_by
from lanam.core.rows.located import Rows
from lanam.core.terms.knots import Position
from lanam.core.workspace import Workspace


def read(position: Position, table: Array) -> Array:
    """Rows of a table, interpolated: ``W_d T_d`` without forming ``W_d``."""
    value = _read_along(position, table)
    if position.across is None:
        return value
    # The difference to the next row of the grid; the last one has no next, and no row reads it.
    change = np.zeros_like(table)
    np.subtract(table[position.stride :], table[: -position.stride], out=change[: -position.stride])
    step = _read_along(position, change)
    step *= position.across if table.ndim == 1 else position.across[:, None]
    value += step
    return value


def _read_along(position: Position, table: Array) -> Array:
    left = _take(table, position.index)
    if position.fraction is None:
        return left
    # Whoever stands on the last entry has no next one.
    step = _take(np.diff(table, axis=0, append=table[-1:]), position.index)
    step *= position.fraction if table.ndim == 1 else position.fraction[:, None]
    left += step
    return left


def _take(table: Array, index: IntArray) -> Array:
    # Either is about twice as fast as the other for its kind of table.
    return table[index] if table.ndim == 1 else np.take(table, index.astype(np.intp), axis=0)


def spread(position: Position, values: Array, size: int) -> Array:
    """Sums of row values per table entry: ``W_d' v``."""
    if position.across is not None:
        beyond = values * position.across
        here = replace(position, across=None)
        total = spread(here, values - beyond, size)
        total[position.stride :] += spread(here, beyond, size)[: -position.stride]
        return total
    if position.fraction is None:
        return sum_by(position.index, values, size)
    right = values * position.fraction
    total = sum_by(position.index, values - right, size)
    total[1:] += sum_by(position.index, right, size)[:-1]
    return total


def design_matrix(rows: Rows, tables: Sequence[Array]) -> Array:
    """``Z`` of rows, the intercept's column last."""
    return Design(tables).of(rows)


class Design:
    """Makes ``Z`` of some rows after others; each is valid until the next."""

    def __init__(self, tables: Sequence[Array]) -> None:
        ends = np.cumsum([0, *(table.shape[1] for table in tables)]).tolist()
        self._columns = [slice(*pair) for pair in pairwise(ends)]
        self._tables = tables
        self._stacked: dict[tuple[int, int], Array] = {}
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
        along = None if position.fraction is None else _column(position.fraction)
        across = None if position.across is None else _column(position.across)
        steps = [1] * (along is not None) + [position.stride] * (across is not None)
        # The table beside its differences to the next entries: T; T, dT; or T, dT, DT, dDT.
        key = (k, 0 if not steps else steps[-1] if len(steps) == 1 else -steps[-1])
        if key not in self._stacked:
            self._stacked[key] = _with_differences(self._tables[k], steps)
        stacked = self._stacked[key]
        shape = (len(position.index), 1 << len(steps), out.shape[1])
        found = self._space.get("found", (shape[0], stacked.shape[1]))
        # "clip" only because with it nothing is copied: all positions are within.
        np.take(stacked, position.index.astype(np.intp), axis=0, out=found, mode="clip")
        parts = found.reshape(shape)
        if not steps:
            out[:] = parts[:, 0]
            return
        if len(steps) == 2:
            assert along is not None
            parts[:, 3] *= along
            parts[:, 2] += parts[:, 3]
            parts[:, 2] *= across
            parts[:, 0] += parts[:, 2]
        first = across if along is None else along
        assert first is not None
        np.multiply(parts[:, 1], first, out=out)
        out += parts[:, 0]


def _column(fraction: NDArray[np.float32]) -> Array:
    return fraction.astype(np.float64)[:, None]


def _with_differences(table: Array, steps: Sequence[int]) -> Array:
    """A table beside its difference to the entries so many steps on; for two steps, beside both's too.

    The last entries have no next ones, and no row asks for them.
    """
    parts = [table]
    for step in steps:
        parts += [_difference(part, step) for part in parts]
    return np.hstack(parts)


def _difference(table: Array, step: int) -> Array:
    change = np.zeros_like(table)
    np.subtract(table[step:], table[:-step], out=change[:-step])
    return change
