"""Pure pairs: what is a pair's own, after its columns' main effects are taken out (method.md 6).

A table over a grid is pure if its mean over the data is zero in every row and every column of the
grid: nothing of it can be said by a function of either column alone. With the data's share ``S`` in
every cell, the pure part of a table ``t`` is ``t - a_i - b_j`` with

    sum_j S_ij (t_ij - a_i - b_j) = 0  for all i,     sum_i S_ij (t_ij - a_i - b_j) = 0  for all j,

the residual of the best additive fit (functional ANOVA for dependent columns). It is linear in ``t``,
so that tables of tangent features are made pure once, and means and draws are pure with them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lanam.core.arrays import Array

#: Rows and columns of a grid that hardly share data with the others have nearly their own
#: intercept; below this the additive fit leaves it out.
_DISCONNECTED = 1e-9


def purify(table: Array, share: Array, shape: tuple[int, int]) -> Array:
    """The pure part of every column of ``table`` (B, P) on a grid of ``shape``."""
    cells = share.reshape(shape)
    rows, columns = cells.sum(axis=1), cells.sum(axis=0)
    seen_rows, seen_columns = rows > 0.0, columns > 0.0
    # Where a row has no data, its mean is taken over the other column's own distribution.
    given_row = (
        np.where(seen_rows[:, None], cells, columns) / np.where(seen_rows, rows, 1.0)[:, None]
    )
    given_column = np.where(seen_columns, cells, rows[:, None]) / np.where(
        seen_columns, columns, 1.0
    )
    values = table.reshape(*shape, -1)
    solve = _solver(cells, rows, columns)
    # Twice: the second time removes what rounding left.
    for _ in range(2):
        row_means = np.einsum("ij,ijp->ip", given_row, values)
        column_means = np.einsum("ij,ijp->jp", given_column, values)
        # a = row_means - R b and b = column_means - C' a, where b is wanted at seen columns only.
        right = column_means - given_column.T @ row_means
        b = solve(right)
        a = row_means - given_row[:, seen_columns] @ b[seen_columns]
        unseen = ~seen_columns
        b[unseen] = column_means[unseen] - given_column.T[unseen] @ a
        values = values - a[:, None, :] - b[None, :, :]
    return np.asarray(values.reshape(table.shape))


def _solver(cells: Array, rows: Array, columns: Array) -> Callable[[Array], Array]:
    """What solves ``(I - C' R) b = right`` at seen columns, by the symmetric form of its matrix."""
    seen_rows, seen = rows > 0.0, columns > 0.0
    root = np.sqrt(columns[seen])
    scaled = cells[np.ix_(seen_rows, seen)] / np.sqrt(rows[seen_rows])[:, None] / root
    size, vectors = np.linalg.eigh(np.eye(len(root)) - scaled.T @ scaled)
    inverse = np.where(size > _DISCONNECTED, 1.0 / np.maximum(size, _DISCONNECTED), 0.0)
    inverse_matrix = (vectors * inverse) @ vectors.T * root / root[:, None]

    def solve(right: Array) -> Array:
        b = np.zeros_like(right)
        b[seen] = inverse_matrix @ right[seen]
        return b

    return solve
