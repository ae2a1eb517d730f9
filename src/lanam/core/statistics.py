"""The only code that touches rows: sums over chunks of rows (method.md 2c).

All that a fit needs of the data is its log-likelihood as a quadratic in the prediction,

    log p(y | f) ~ constant + h' f - 1/2 f' diag(gamma) f,

exact and made once for a Gaussian likelihood, made anew around each new prediction for others.
With ``f = Z z``, ``Z = [W_1 T_1, ..., W_D T_D, 1]``, that is ``Z' diag(gamma) Z`` and ``Z' h``. Two forms
with one interface:

- ``RowQuadratic`` keeps the rows and builds ``Z`` on each call; cheap for few rows;
- ``TableQuadratic`` sums the cross-tables ``W_d' diag(gamma) W_d'`` of entry pairs once; after that
  no call depends on the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from lanam.core.arrays import Array, IntArray, sum_by
from lanam.core.knots import Position
from lanam.core.likelihoods import Likelihood

#: One number, or one for each of several outputs.
Intercept: TypeAlias = float | Array

_CHUNK_ROWS = 1 << 17
_DESIGN_CHUNK_ROWS = 1 << 13

#: Cross-tables larger than this are not made.
_CROSS_TABLE_BYTES = 600e6


@dataclass(frozen=True)
class Rows:
    """Training rows as the core sees them: a position in every term's table, and a response.

    ``weight`` is how often a row was seen. Where gaps make some noisier than others (``gaps.py``),
    ``precision`` is how much each says compared to one without, and ``gap_noise`` what every column adds
    to the noise where it is missing, in units of it.
    """

    positions: tuple[Position, ...]
    sizes: tuple[int, ...]
    y: Array
    weight: Array
    precision: Array | None = None
    gap_noise: Array | None = None

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def information(self) -> Array:
        """How much every row says."""
        return self.weight if self.precision is None else self.weight * self.precision

    @cached_property
    def log_precision(self) -> float:
        """What the rows' precisions add to a Gaussian log-likelihood."""
        return 0.0 if self.precision is None else 0.5 * float(self.weight @ np.log(self.precision))

    @cached_property
    def count(self) -> float:
        """How many observations there are."""
        return float(self.weight.sum())

    def with_terms(self, positions: Sequence[Position], sizes: Sequence[int]) -> Rows:
        """The same rows with more terms."""
        return replace(self, positions=(*self.positions, *positions), sizes=(*self.sizes, *sizes))

    def keep_terms(self, kept: Sequence[int]) -> Rows:
        """The same rows with some of the terms."""
        return replace(
            self,
            positions=tuple(self.positions[k] for k in kept),
            sizes=tuple(self.sizes[k] for k in kept),
        )


def _chunks(n_rows: int, size: int) -> Iterator[slice]:
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


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
    left = table[position.index]
    if position.fraction is None:
        return left
    # Whoever stands on the last entry has no next one.
    step = np.diff(table, axis=0, append=table[-1:])[position.index]
    step *= position.fraction if table.ndim == 1 else position.fraction[:, None]
    left += step
    return left


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


def predict(
    rows: Rows, values: Sequence[Array], intercept: Intercept, part: slice = slice(None)
) -> Array:
    """The link-scale prediction of some rows from the terms' tabulated values, all outputs at once."""
    f = np.empty((len(rows.y[part]), *np.shape(intercept)))
    f[:] = intercept
    for position, table in zip(rows.positions, values, strict=True):
        f += read(position.rows(part), table)
    return f


def entry_sums(rows: Rows, row_values: Array) -> list[Array]:
    """Sums of a row value per table entry, a vector a term."""
    totals = [np.zeros(size) for size in rows.sizes]
    for part in _chunks(len(rows), _CHUNK_ROWS):
        for total, position in zip(totals, rows.positions, strict=True):
            total += spread(position.rows(part), row_values[part], len(total))
    return totals


def log_likelihood(
    rows: Rows, likelihood: Likelihood, values: Sequence[Array], intercept: Intercept
) -> float:
    """Weighted log-likelihood of all rows, at unit noise."""
    total = 0.0
    for part in _chunks(len(rows), _CHUNK_ROWS):
        f = predict(rows, values, intercept, part)
        total += float(rows.information[part] @ likelihood.log_prob(rows.y[part], f))
    return total


def slopes(
    rows: Rows, likelihood: Likelihood, values: Sequence[Array], intercept: Intercept
) -> tuple[Array, Array]:
    """Slope and curvature of every row's log-likelihood at unit noise."""
    return _slopes(likelihood, rows.y, rows.information, predict(rows, values, intercept))


def _slopes(likelihood: Likelihood, y: Array, weight: Array, f: Array) -> tuple[Array, Array]:
    slope, curvature = likelihood.slope(y, f), likelihood.curvature(f)
    # Weights are a row's, whatever it has.
    return (slope.T * weight).T, (curvature.T * weight).T


def own_curvature(curvature: Array) -> Array:
    """The curvature of each output by itself: the rows' diagonals where there are several."""
    return curvature if curvature.ndim == 1 else np.diagonal(curvature, axis1=1, axis2=2)


def curved(curvature: Array, f: Array) -> Array:
    """``diag(gamma) f``; with several outputs ``gamma`` is a matrix a row."""
    return curvature * f if f.ndim == 1 else np.einsum("nij,nj->ni", curvature, f)


def output_places(widths: Sequence[int], n_outputs: int) -> IntArray:
    """Where each output's coordinates stand, and its intercept's (n_outputs, R + 1).

    All outputs of a term follow each other, so that a term has one block; the intercepts come last.
    """
    starts = np.cumsum([0, *widths]) * n_outputs
    places = [
        start + width * output + np.arange(width)
        for output in range(n_outputs)
        for start, width in zip(starts[:-1], widths, strict=True)
    ]
    own = np.concatenate([np.empty(0, np.intp), *places]).reshape(n_outputs, -1)
    return np.column_stack([own, starts[-1] + np.arange(n_outputs)])


def evaluate(table: Array, coordinates: Array, n_outputs: int) -> Array:
    """A term's function at its entries; a column for each of several outputs."""
    values = table @ coordinates.reshape(n_outputs, -1).T
    return values[:, 0] if n_outputs == 1 else values


def design_matrix(rows: Rows, tables: Sequence[Array], part: slice = slice(None)) -> Array:
    """``Z`` of some rows, the intercept's column last."""
    widths = [table.shape[1] for table in tables]
    design = np.empty((len(rows.y[part]), sum(widths) + 1))
    start = 0
    for position, table, width in zip(rows.positions, tables, widths, strict=True):
        design[:, start : start + width] = read(position.rows(part), table)
        start += width
    design[:, -1] = 1.0
    return design


@dataclass(frozen=True)
class Expansion:
    """The quadratic of some rows: ``pseudo_response`` is ``h``, ``curvature`` is ``gamma``.

    With several outputs the first has a column each, the second a matrix a row.
    """

    pseudo_response: Array
    curvature: Array
    constant: float

    @property
    def n_outputs(self) -> int:
        """How many outputs there are."""
        return 1 if self.pseudo_response.ndim == 1 else self.pseudo_response.shape[1]


def expand(likelihood: Likelihood, y: Array, weight: Array, f: Array) -> Expansion:
    """Second-order expansion of the weighted log-likelihood around the prediction ``f``."""
    slope, curvature = _slopes(likelihood, y, weight, f)
    value = float(weight @ likelihood.log_prob(y, f))
    bent = curved(curvature, f)
    constant = value - float(np.vdot(f, slope)) - 0.5 * float(np.vdot(f, bent))
    return Expansion(slope + bent, curvature, constant)


@dataclass(frozen=True)
class RowQuadratic:
    """The quadratic kept as rows."""

    rows: Rows
    expansion: Expansion

    @property
    def constant(self) -> float:
        """Log-likelihood of the zero prediction."""
        return self.expansion.constant

    def entry_curvature(self) -> list[Array]:
        """Sums of ``gamma`` per table entry, a vector a term; over all outputs."""
        own = own_curvature(self.expansion.curvature)
        return entry_sums(self.rows, own if own.ndim == 1 else own.sum(axis=1))

    def keep_terms(self, kept: Sequence[int]) -> RowQuadratic:
        """The same quadratic for some of the terms."""
        return RowQuadratic(self.rows.keep_terms(kept), self.expansion)

    def normal_equations(self, tables: Sequence[Array]) -> tuple[Array, Array]:
        """``Z' diag(gamma) Z`` and ``Z' h``."""
        if self.expansion.n_outputs > 1:
            return self._joint_equations(tables)
        n_columns = sum(table.shape[1] for table in tables) + 1
        gram, target = np.zeros((n_columns, n_columns)), np.zeros(n_columns)
        for part in _chunks(len(self.rows), _DESIGN_CHUNK_ROWS):
            design = design_matrix(self.rows, tables, part)
            target += self.expansion.pseudo_response[part] @ design
            design *= np.sqrt(self.expansion.curvature[part])[:, None]
            gram += design.T @ design
        return gram, target

    def level_equations(self, k: int, tables: Sequence[Array]) -> tuple[Array, Array, Array]:
        """What the rows say of the levels of term ``k``.

        The diagonal of ``W_k' gamma W_k``, ``W_k' gamma Z`` and ``W_k' h``.
        """
        position, size = self.rows.positions[k], self.rows.sizes[k]
        cross = np.zeros((size, sum(table.shape[1] for table in tables) + 1))
        for part in _chunks(len(self.rows), _DESIGN_CHUNK_ROWS):
            design = design_matrix(self.rows, tables, part)
            index, weight = position.index[part], self.expansion.curvature[part]
            own = csr_array((weight, (index, np.arange(len(index)))), shape=(size, len(index)))
            cross += own @ design
        # The intercept's column of Z is one: its sums are the diagonal.
        return cross[:, -1].copy(), cross, spread(position, self.expansion.pseudo_response, size)

    def _joint_equations(self, tables: Sequence[Array]) -> tuple[Array, Array]:
        """The same for several outputs, each with its own coordinates in the same tables."""
        expansion, n_outputs = self.expansion, self.expansion.n_outputs
        places = output_places([table.shape[1] for table in tables], n_outputs)
        gram, target = np.zeros((places.size, places.size)), np.zeros(places.size)
        for part in _chunks(len(self.rows), _DESIGN_CHUNK_ROWS):
            design = design_matrix(self.rows, tables, part)
            for i, own in enumerate(places):
                target[own] += expansion.pseudo_response[part, i] @ design
                weighted = design * expansion.curvature[part, i, i, None]
                gram[np.ix_(own, own)] += design.T @ weighted
                for j in range(i):
                    weighted = design * expansion.curvature[part, i, j, None]
                    block = weighted.T @ design
                    gram[np.ix_(own, places[j])] += block
                    gram[np.ix_(places[j], own)] += block.T
        return gram, target


@dataclass(frozen=True)
class TableQuadratic:
    """The quadratic summed into cross-tables.

    ``cross`` holds ``W' diag(gamma) W`` over the entries that rows read, of all terms, and the intercept,
    upper blocks only; ``pseudo`` is ``W' h``. ``seen`` are each term's entries that are there, of so
    many as ``sizes`` says: a grid has many that no row reads.
    """

    cross: Array
    pseudo: Array
    constant: float
    seen: tuple[IntArray, ...]
    sizes: tuple[int, ...]

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each term's entries, and the intercept's, begin; and where all end."""
        return (0, *np.cumsum([*(len(own) for own in self.seen), 1]).tolist())

    def entry_curvature(self) -> list[Array]:
        """Sums of ``gamma`` per table entry, a vector a term."""
        result = [np.zeros(size) for size in self.sizes]
        for k, (sums, own) in enumerate(zip(result, self.seen, strict=True)):
            sums[own] = self.cross[self.offsets[k] : self.offsets[k + 1], -1]
        return result

    def keep_terms(self, kept: Sequence[int]) -> TableQuadratic:
        """The same quadratic for some of the terms."""
        parts = [np.arange(self.offsets[k], self.offsets[k + 1]) for k in kept]
        entries = np.concatenate([*parts, [self.offsets[-1] - 1]])
        return TableQuadratic(
            self.cross[np.ix_(entries, entries)],
            self.pseudo[entries],
            self.constant,
            tuple(self.seen[k] for k in kept),
            tuple(self.sizes[k] for k in kept),
        )

    def normal_equations(self, tables: Sequence[Array]) -> tuple[Array, Array]:
        """``Z' diag(gamma) Z`` and ``Z' h``."""
        read_tables = [table[own] for table, own in zip(tables, self.seen, strict=True)]
        blocks = [*read_tables, np.ones((1, 1))]
        ends = np.cumsum([block.shape[1] for block in blocks])
        gram, target = np.zeros((ends[-1], ends[-1])), np.zeros(ends[-1])
        for k, right in enumerate(blocks):
            columns = slice(ends[k] - right.shape[1], ends[k])
            here = slice(self.offsets[k], self.offsets[k + 1])
            target[columns] = self.pseudo[here] @ right
            product = self.cross[: here.stop, here] @ right
            for j, left in enumerate(blocks[: k + 1]):
                rows = slice(ends[j] - left.shape[1], ends[j])
                block = left.T @ product[self.offsets[j] : self.offsets[j + 1]]
                gram[rows, columns] = block
                gram[columns, rows] = block.T
        return gram, target

    def level_equations(self, k: int, tables: Sequence[Array]) -> tuple[Array, Array, Array]:
        """What the rows say of the levels of term ``k``, as ``RowQuadratic`` has it."""
        here = slice(self.offsets[k], self.offsets[k + 1])
        parts = []
        for j, (table, own) in enumerate(zip(tables, self.seen, strict=True)):
            there = slice(self.offsets[j], self.offsets[j + 1])
            # Upper blocks only are there.
            block = self.cross[there, here].T if j < k else self.cross[here, there]
            parts.append(block @ table[own])
        cross = np.zeros((self.sizes[k], sum(table.shape[1] for table in tables) + 1))
        target = np.zeros(self.sizes[k])
        cross[self.seen[k]] = np.column_stack([*parts, self.cross[here, -1]])
        target[self.seen[k]] = self.pseudo[here]
        return cross[:, -1].copy(), cross, target


Quadratic = RowQuadratic | TableQuadratic


def quadratic(
    rows: Rows, likelihood: Likelihood, values: Sequence[Array], intercept: Intercept
) -> Quadratic:
    """The log-likelihood around the given tabulated values, in the form that is cheaper here."""
    if likelihood.n_outputs > 1:
        return row_quadratic(rows, likelihood, values, intercept)
    seen = _seen_entries(rows)
    n_entries = sum(len(own) for own in seen) + 1
    if len(rows) > 2 * n_entries and 8 * n_entries**2 <= _CROSS_TABLE_BYTES:
        return table_quadratic(rows, likelihood, values, intercept, seen)
    return row_quadratic(rows, likelihood, values, intercept)


def _seen_entries(rows: Rows) -> tuple[IntArray, ...]:
    """Each term's entries that some row reads."""
    return tuple(np.flatnonzero(sums) for sums in entry_sums(rows, rows.weight))


def row_quadratic(
    rows: Rows, likelihood: Likelihood, values: Sequence[Array], intercept: Intercept
) -> RowQuadratic:
    """The expansion around the given tabulated values, kept as rows."""
    f = predict(rows, values, intercept)
    return RowQuadratic(rows, expand(likelihood, rows.y, rows.information, f))


def table_quadratic(
    rows: Rows,
    likelihood: Likelihood,
    values: Sequence[Array],
    intercept: Intercept,
    seen: tuple[IntArray, ...] | None = None,
) -> TableQuadratic:
    """The same expansion, summed into cross-tables chunk by chunk."""
    seen = _seen_entries(rows) if seen is None else seen
    offsets = (0, *np.cumsum([*(len(own) for own in seen), 1]).tolist())
    cross, pseudo = np.zeros((offsets[-1], offsets[-1])), np.zeros(offsets[-1])
    constant = 0.0
    for part in _chunks(len(rows), _CHUNK_ROWS):
        f = predict(rows, values, intercept, part)
        chunk = expand(likelihood, rows.y[part], rows.information[part], f)
        constant += chunk.constant
        positions = [position.rows(part) for position in rows.positions]
        for k, position in enumerate(positions):
            here = slice(offsets[k], offsets[k + 1])
            pseudo[here] += spread(position, chunk.pseudo_response, rows.sizes[k])[seen[k]]
            cross[here, -1] += spread(position, chunk.curvature, rows.sizes[k])[seen[k]]
            for j in range(k + 1):
                table = np.zeros((rows.sizes[j], rows.sizes[k]))
                _add_cross_table(table, positions[j], position, chunk.curvature)
                cross[offsets[j] : offsets[j + 1], here] += table[np.ix_(seen[j], seen[k])]
        pseudo[-1] += chunk.pseudo_response.sum()
        cross[-1, -1] += chunk.curvature.sum()
    return TableQuadratic(cross, pseudo, constant, seen, rows.sizes)


def _corners(position: Position) -> list[tuple[int, Array | None]]:
    """A row's entries as (offset from its index, weight)."""
    corners: list[tuple[int, Array | None]] = [(0, None)]
    for step, fraction in ((position.stride, position.across), (1, position.fraction)):
        if fraction is not None:
            on = fraction.astype(np.float64)
            corners = [
                (offset + more, part if weight is None else weight * part)
                for offset, weight in corners
                for more, part in ((0, 1.0 - on), (step, on))
            ]
    return corners


def _add_cross_table(block: Array, left: Position, right: Position, weight: Array) -> None:
    """Add ``W_left' diag(weight) W_right`` to ``block``."""
    n_left, n_right = block.shape
    cell = left.index.astype(np.int64) * n_right + right.index
    for left_step, left_weight in _corners(left):
        left_value = weight if left_weight is None else weight * left_weight
        for right_step, right_weight in _corners(right):
            value = left_value if right_weight is None else left_value * right_weight
            table = sum_by(cell, value, n_left * n_right)
            table = table.reshape(n_left, n_right)
            # A row's neighbours lie some entries on; a row on the last entry gives them nothing.
            block[left_step:, right_step:] += table[: n_left - left_step, : n_right - right_step]
