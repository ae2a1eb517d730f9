"""The quadratic summed once over the rows, into cross-tables ``W_d' diag(gamma) W_d'`` of entry pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from lanam.core.arrays import Array, IntArray, Intercept, Workspace, slices, sum_by
from lanam.core.rows.located import AnyRows, Rows
from lanam.core.rows.statistics import Around, entry_sums, same_arrays
from lanam.core.rows.tables import Totals
from lanam.core.terms.knots import Position

#: Rows at a time: many, because each addition to the large cross-tables is expensive.
_TABLE_CHUNK_ROWS = 1 << 17

#: Rows of a subject, about, where it has several.
_ROWS_PER_SUBJECT = 8

#: With more terms than this, fewer rows are summed at a time.
_TERMS_AT_ONCE = 16


def cross_table_bytes(n_entries: int) -> int:
    """Bytes of the cross-tables."""
    return 8 * n_entries**2


@dataclass(frozen=True)
class TableQuadratic:
    """The quadratic summed into cross-tables.

    ``cross`` holds the upper blocks of ``W' diag(gamma) W`` over the entries of all terms and the
    intercept; ``pseudo`` is ``W' h``. Of each term's entries, ``sizes`` many, only those ``seen`` by rows
    are included: a grid has many without rows.
    """

    cross: Array
    pseudo: Array
    constant: float
    seen: tuple[IntArray, ...]
    sizes: tuple[int, ...]
    #: where it is expanded, and the log-likelihood at unit noise there; at zero if it is exact
    around: tuple[Array, ...] = ()
    value: float = np.nan

    def is_around(self, values: Sequence[Array]) -> bool:
        """Whether it is the expansion around these arrays."""
        return same_arrays(self.around, values)

    def moved_to(self, values: Sequence[Array]) -> TableQuadratic:
        """The same quadratic, in place of that around other values."""
        return replace(self, around=tuple(values))

    def of(self, values: Sequence[Array], intercept: Intercept) -> float:
        """The quadratic's value for a prediction by tabulated values."""
        seen = [value[entries] for value, entries in zip(values, self.seen, strict=True)]
        whole = np.concatenate([*seen, [intercept]])
        total = self.constant + float(self.pseudo @ whole)
        for block in self.blocks:
            # Blocks above the diagonal count twice.
            product = whole[: block.stop] @ self.cross[: block.stop, block]
            before = whole[: block.start] @ self.cross[: block.start, block]
            total -= 0.5 * float((product + before) @ whole[block])
        return total

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Each term's entries and, last, that of the intercept."""
        return _blocks(self.seen)

    @property
    def total_curvature(self) -> float:
        """Sum of ``gamma`` over all rows."""
        return float(self.cross[-1, -1])

    def entry_curvature(self) -> list[Array]:
        """Sums of ``gamma`` per table entry, one vector per term."""
        result = [np.zeros(size) for size in self.sizes]
        for sums, entries, block in zip(result, self.seen, self.blocks, strict=False):
            sums[entries] = self.cross[block, -1]
        return result

    def keep_terms(self, kept: Sequence[int]) -> TableQuadratic:
        """The same quadratic for some of the terms."""
        entries = np.r_[tuple(self.blocks[k] for k in (*kept, -1))]
        return TableQuadratic(
            self.cross[np.ix_(entries, entries)],
            self.pseudo[entries],
            self.constant,
            tuple(self.seen[k] for k in kept),
            tuple(self.sizes[k] for k in kept),
            value=self.value,
        )

    def normal_equations(self, tables: Sequence[Array]) -> tuple[Array, Array]:
        """``Z' diag(gamma) Z`` and ``Z' h``."""
        read_tables = [table[entries] for table, entries in zip(tables, self.seen, strict=True)]
        blocks = [*read_tables, np.ones((1, 1))]
        parts = list(zip(blocks, slices(b.shape[1] for b in blocks), self.blocks, strict=True))
        n_columns = parts[-1][1].stop
        gram, target = np.zeros((n_columns, n_columns)), np.zeros(n_columns)
        for k, (right, columns, here) in enumerate(parts):
            target[columns] = self.pseudo[here] @ right
            product = self.cross[: here.stop, here] @ right
            for left, rows, there in parts[: k + 1]:
                gram[rows, columns] = left.T @ product[there]
                gram[columns, rows] = gram[rows, columns].T
        return gram, target

    def level_equations(self, k: int, tables: Sequence[Array]) -> tuple[Array, Array]:
        """``W_k' gamma Z`` and ``W_k' h`` for the levels of term ``k``."""
        here, parts = self.blocks[k], []
        for table, entries, there in zip(tables, self.seen, self.blocks, strict=False):
            # Only upper blocks are stored.
            before = there.start < here.start
            block = self.cross[there, here].T if before else self.cross[here, there]
            parts.append(block @ table[entries])
        cross = np.zeros((self.sizes[k], sum(table.shape[1] for table in tables) + 1))
        target = np.zeros(self.sizes[k])
        cross[self.seen[k]] = np.column_stack([*parts, self.cross[here, -1]])
        target[self.seen[k]] = self.pseudo[here]
        return cross, target


def summed(
    rows: AnyRows, around: Around, seen: tuple[IntArray, ...] | None = None
) -> tuple[TableQuadratic, Totals]:
    """The expansion in cross-tables of the entries ``seen`` by rows, and the weight at every entry.

    Without ``seen``, all are summed and those without rows dropped.
    """
    summed_entries = tuple(np.arange(size) for size in rows.sizes) if seen is None else seen
    totals = rows.total(partial(_cross_tables, around, rows.sizes, summed_entries), heavy=True)
    strips = totals[: len(summed_entries) + 1]
    pseudo, (constant, value), *weights = totals[len(summed_entries) + 1 :]
    if seen is None:
        seen = tuple(np.flatnonzero(weight) for weight in weights)
        kept = [*seen, np.zeros(1, dtype=int)]
    else:
        kept = [np.arange(len(strip)) for strip in strips]
    # Dropped entries are never part of the large square.
    starts = [block.start for block in _blocks(summed_entries)]
    entries = np.concatenate([start + within for start, within in zip(starts, kept, strict=True)])
    cross = np.zeros((len(entries), len(entries)))
    first = 0
    for start, within, strip in zip(starts, kept, strips, strict=True):
        cross[first : first + len(within), first:] = strip[np.ix_(within, entries[first:] - start)]
        first += len(within)
    quadratic = TableQuadratic(
        cross, pseudo[entries], float(constant), seen, rows.sizes, around.values, float(value)
    )
    return quadratic, tuple(weights)


def _blocks(seen: Sequence[IntArray]) -> tuple[slice, ...]:
    """Slices of each term's entries and, last, of the intercept."""
    return slices([*map(len, seen), 1])


def _cross_tables(
    around: Around, sizes: Sequence[int], seen: Sequence[IntArray], parts: Iterable[Rows]
) -> Totals:
    """Upper blocks, one strip per term from its diagonal block on: half the memory of a square."""
    blocks = _blocks(seen)
    end = blocks[-1].stop
    strips = [np.zeros((block.stop - block.start, end - block.start)) for block in blocks]
    pseudo = np.zeros(end)
    scalars, weights = np.zeros(2), [np.zeros(size) for size in sizes]
    spaces = Workspace(), Workspace()
    for part in _parts(parts, len(sizes)):
        chunk = around.expand_all(part)
        scalars += chunk.constant, chunk.value
        rows, subjects = _sides(part, chunk.curvature, spaces)
        row_values = part.weight, chunk.pseudo_response, chunk.curvature
        sums = zip(*(entry_sums(part, values) for values in row_values), strict=True)
        for k, (weight, response, curvature) in enumerate(sums):
            here = blocks[k]
            weights[k] += weight
            pseudo[here] += response[seen[k]]
            strips[k][:, -1] += curvature[seen[k]]
            for j in range(k + 1):
                # Terms that hold for all rows of a subject meet once per subject.
                side = subjects if j in subjects.readers and k in subjects.readers else rows
                table = side.table(j, k, sizes)
                some = len(seen[j]) < sizes[j] or len(seen[k]) < sizes[k]
                table = table[np.ix_(seen[j], seen[k])] if some else table
                first = blocks[j].start
                strips[j][:, here.start - first : here.stop - first] += table
        pseudo[-1] += chunk.pseudo_response.sum()
        strips[-1] += chunk.curvature.sum()
    return *strips, pseudo, scalars, *weights


def _parts(parts: Iterable[Rows], n_terms: int) -> Iterator[Rows]:
    """Some rows at a time, fewer where there are many terms; of subjects, about as many of these."""
    size = max(_TABLE_CHUNK_ROWS * _TERMS_AT_ONCE // max(n_terms, _TERMS_AT_ONCE), 1)
    for part in parts:
        yield from part.parts(size if part.repeats is None else _ROWS_PER_SUBJECT * size)


class _Side:
    """Rows, or subjects, at which some terms are read together."""

    def __init__(
        self, positions: Mapping[int, Position], curvature: Array, space: Workspace
    ) -> None:
        self.readers = {k: _reader(position, space, k) for k, position in positions.items()}
        self._curvature, self._space = curvature, space
        self._latest: tuple[int, _Weighted] | None = None

    def table(self, j: int, k: int, sizes: Sequence[int]) -> Array:
        """``W_j' diag(gamma) W_k``."""
        index, corners = self.readers[k]
        if self._latest is None or self._latest[0] != k:
            self._latest = k, (index, _weighted(corners, self._curvature, self._space))
        weighted = self._latest[1]
        if j == k:
            return _own_table(corners, weighted, sizes[k])
        return _cross_table(self.readers[j], weighted, (sizes[j], sizes[k]), self._space)


def _sides(
    part: Rows, curvature: Array, spaces: tuple[Workspace, Workspace]
) -> tuple[_Side, _Side]:
    """The rows and, where these are repeated, the subjects with their total curvature."""
    positions = dict(enumerate(part.positions))
    if part.repeats is None:
        return _Side(positions, curvature, spaces[0]), _Side({}, curvature, spaces[1])
    of_subjects = {k: p.of_subjects for k, p in positions.items() if p.repeats is not None}
    varying = len(of_subjects) < len(positions)
    of_rows = {k: position.of_rows for k, position in positions.items() if varying}
    total = part.repeats.sum(curvature)
    return _Side(of_rows, curvature, spaces[0]), _Side(of_subjects, total, spaces[1])


#: Interpolation weights of rows: (offset from a row's entry, the rows' weights there), None for ones.
_Corners: TypeAlias = list[tuple[int, Array | None]]

#: The same with the rows' curvature, and the rows' entries.
_Weighted: TypeAlias = tuple[IntArray, list[tuple[int, Array]]]


def _reader(position: Position, space: Workspace, term: int) -> tuple[IntArray, _Corners]:
    """The entry of each row in a term's table, and its interpolation weights there and beside it."""
    n_rows = len(position.index)
    index = space.get(("index", term), (n_rows,), np.intp)
    index[:] = position.index
    corners: _Corners = [(0, None)]
    for step, fraction in position.steps:
        # The fractions that belong to an entry and to the next one along this axis.
        near, far = (space.get((term, step, end), (n_rows,)) for end in range(2))
        far[:] = fraction
        np.subtract(1.0, far, out=near)
        corners = [
            (offset + shift, part if weight is None else weight * part)
            for offset, weight in corners
            for shift, part in ((0, near), (step, far))
        ]
    return index, corners


def _weighted(corners: _Corners, weight: Array, space: Workspace) -> list[tuple[int, Array]]:
    """All interpolation weights times one number per row."""
    products = [space.get(("weighted", k), weight.shape) for k in range(len(corners))]
    for (_, fraction), product in zip(corners, products, strict=True):
        np.multiply(1.0 if fraction is None else fraction, weight, out=product)
    return [(step, product) for (step, _), product in zip(corners, products, strict=True)]


def _cross_table(
    left: tuple[IntArray, _Corners], right: _Weighted, shape: tuple[int, int], space: Workspace
) -> Array:
    """``W_left' diag(gamma) W_right``."""
    n_rows = len(left[0])
    cell = np.multiply(left[0], shape[1], out=space.get("cell", (n_rows,), np.intp))
    cell += right[0]
    block = space.get("block", shape)
    block[:] = 0.0
    for down, one in left[1]:
        for along, two in right[1]:
            value = two
            if one is not None:
                value = np.multiply(one, two, out=space.get("product", (n_rows,)))
            table = sum_by(cell, value, shape[0] * shape[1]).reshape(shape)
            # Neighbours are at a fixed offset; a row on the last entry has no weight there.
            block[down:, along:] += table[: shape[0] - down, : shape[1] - along]
    return block


def _own_table(corners: _Corners, weighted: _Weighted, size: int) -> Array:
    """``W' diag(gamma) W`` of one term, which is banded: rows read few entries beside each other."""
    block, entry = np.zeros((size, size)), np.arange(size)
    for down, one in corners:
        for along, two in weighted[1]:
            sums = sum_by(weighted[0], two if one is None else one * two, size)
            inside = entry[: size - max(down, along)]
            block[inside + down, inside + along] += sums[: len(inside)]
    return block
