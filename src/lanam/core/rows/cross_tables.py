"""The quadratic summed into cross-tables ``W_d' diag(gamma) W_d'`` of entry pairs.

They are summed once over the rows; after that nothing depends on how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from lanam.core.arrays import Array, IntArray, Intercept, slices, sum_by
from lanam.core.rows.expansions import Around, same_arrays
from lanam.core.rows.located import AnyRows, Rows, chunks
from lanam.core.rows.reading import spread
from lanam.core.rows.tables import Totals
from lanam.core.terms.knots import Position
from lanam.core.workspace import Workspace

#: Rows at a time: cross-tables are large themselves, so that it pays to have many for each.
_TABLE_CHUNK_ROWS = 1 << 17

#: Of more terms than this fewer rows are summed at once.
_TERMS_AT_ONCE = 16


def cross_table_bytes(n_entries: int) -> int:
    """Bytes of the cross-tables of so many entries."""
    return 8 * n_entries**2


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
    #: what it was made around, and the log-likelihood at unit noise there; of zero where it is exact
    around: tuple[Array, ...] = ()
    value: float = np.nan

    def is_around(self, values: Sequence[Array]) -> bool:
        """Whether it was made around just these arrays."""
        return same_arrays(self.around, values)

    def moved_to(self, values: Sequence[Array]) -> TableQuadratic:
        """The same, to be taken for that around other values."""
        return replace(self, around=tuple(values))

    def of(self, values: Sequence[Array], intercept: Intercept) -> float:
        """The quadratic's value for a prediction by tabulated values."""
        known = [value[own] for value, own in zip(values, self.seen, strict=True)]
        whole = np.concatenate([*known, [intercept]])
        total = self.constant + float(self.pseudo @ whole)
        for own in self.blocks:
            # Upper blocks only are there; those beside the diagonal count twice.
            product = whole[: own.stop] @ self.cross[: own.stop, own]
            before = whole[: own.start] @ self.cross[: own.start, own]
            total -= 0.5 * float((product + before) @ whole[own])
        return total

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Each term's entries and, last, the intercept's."""
        return _blocks(self.seen)

    @property
    def total_curvature(self) -> float:
        """Sum of ``gamma`` over all rows."""
        return float(self.cross[-1, -1])

    def entry_curvature(self) -> list[Array]:
        """Sums of ``gamma`` per table entry, a vector a term."""
        result = [np.zeros(size) for size in self.sizes]
        for sums, own, block in zip(result, self.seen, self.blocks, strict=False):
            sums[own] = self.cross[block, -1]
        return result

    def of_constant(self, f: Intercept) -> float:
        """The quadratic's value where the same is predicted for all rows."""
        return float(self.constant + self.pseudo[-1] * f - 0.5 * self.cross[-1, -1] * f**2)

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
        read_tables = [table[own] for table, own in zip(tables, self.seen, strict=True)]
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

    def level_equations(self, k: int, tables: Sequence[Array]) -> tuple[Array, Array, Array]:
        """What the rows say of the levels of term ``k``, as ``RowQuadratic`` has it."""
        here, parts = self.blocks[k], []
        for table, own, there in zip(tables, self.seen, self.blocks, strict=False):
            # Upper blocks only are there.
            before = there.start < here.start
            block = self.cross[there, here].T if before else self.cross[here, there]
            parts.append(block @ table[own])
        cross = np.zeros((self.sizes[k], sum(table.shape[1] for table in tables) + 1))
        target = np.zeros(self.sizes[k])
        cross[self.seen[k]] = np.column_stack([*parts, self.cross[here, -1]])
        target[self.seen[k]] = self.pseudo[here]
        return cross[:, -1].copy(), cross, target


def summed(
    rows: AnyRows, around: Around, seen: tuple[IntArray, ...] | None = None
) -> tuple[TableQuadratic, Totals]:
    """The expansion in cross-tables of some entries, and the weight at every entry.

    Without ``seen`` they are those that rows read, which is known when all are summed.
    """
    asked = tuple(np.arange(size) for size in rows.sizes) if seen is None else seen
    totals = rows.total(partial(_cross_tables, around, rows.sizes, asked), heavy=True)
    strips = totals[: len(asked) + 1]
    pseudo, (constant, value), *weights = totals[len(asked) + 1 :]
    if seen is None:
        seen = tuple(np.flatnonzero(own) for own in weights)
        kept = [*seen, np.zeros(1, dtype=int)]
    else:
        kept = [np.arange(len(strip)) for strip in strips]
    # What is left out is never part of the square, which is large.
    starts = [own.start for own in _blocks(asked)]
    entries = np.concatenate([start + own for start, own in zip(starts, kept, strict=True)])
    cross = np.zeros((len(entries), len(entries)))
    first = 0
    for start, own, strip in zip(starts, kept, strips, strict=True):
        cross[first : first + len(own), first:] = strip[np.ix_(own, entries[first:] - start)]
        first += len(own)
    made = TableQuadratic(
        cross, pseudo[entries], float(constant), seen, rows.sizes, around.values, float(value)
    )
    return made, tuple(weights)


def _blocks(seen: Sequence[IntArray]) -> tuple[slice, ...]:
    """Where each term's entries are and, last, the intercept's."""
    return slices([*map(len, seen), 1])


def _cross_tables(
    around: Around, sizes: Sequence[int], seen: Sequence[IntArray], parts: Iterable[Rows]
) -> Totals:
    """Upper blocks, a strip for each term from its own block on: half of what a square would move."""
    blocks = _blocks(seen)
    end = blocks[-1].stop
    strips = [np.zeros((own.stop - own.start, end - own.start)) for own in blocks]
    pseudo = np.zeros(end)
    scalars, weights = np.zeros(2), [np.zeros(size) for size in sizes]
    space = Workspace()
    for part in chunks(parts, _table_chunk(len(sizes))):
        chunk = around.expand_all(part)
        scalars += chunk.constant, chunk.value
        readers = [_Reader.of(position, space, k) for k, position in enumerate(part.positions)]
        for k, (position, right) in enumerate(zip(part.positions, readers, strict=True)):
            here = blocks[k]
            weights[k] += spread(position, part.weight, sizes[k])
            pseudo[here] += spread(position, chunk.pseudo_response, sizes[k])[seen[k]]
            strips[k][:, -1] += spread(position, chunk.curvature, sizes[k])[seen[k]]
            weighted = right.times(chunk.curvature, space)
            for j, left in enumerate(readers[: k + 1]):
                if j == k:
                    table = _own_table(left, weighted, sizes[k])
                else:
                    table = _cross_table(left, weighted, (sizes[j], sizes[k]), space)
                some = len(seen[j]) < sizes[j] or len(seen[k]) < sizes[k]
                table = table[np.ix_(seen[j], seen[k])] if some else table
                first = blocks[j].start
                strips[j][:, here.start - first : here.stop - first] += table
        pseudo[-1] += chunk.pseudo_response.sum()
        strips[-1] += chunk.curvature.sum()
    return *strips, pseudo, scalars, *weights


def _table_chunk(n_terms: int) -> int:
    """Rows of which all readers are made at once: fewer where there are many terms."""
    return max(_TABLE_CHUNK_ROWS * _TERMS_AT_ONCE // max(n_terms, _TERMS_AT_ONCE), 1)


@dataclass(frozen=True)
class _Reader:
    """How rows read a table: the entry of each, and its weight there and at the entries beside it.

    ``corners`` are (steps from a row's index, weights); None are ones.
    """

    index: IntArray
    corners: tuple[tuple[int, Array | None], ...]

    @classmethod
    def of(cls, position: Position, space: Workspace, number: int) -> _Reader:
        """That of rows at a position, the term's with this number."""
        n_rows = len(position.index)
        index = space.get(("index", number), (n_rows,), np.intp)
        index[:] = position.index
        corners: list[tuple[int, Array | None]] = [(0, None)]
        for step, fraction in position.steps:
            # How much of it stays with an entry, and how much goes to the next.
            shares = [space.get((number, step, end), (n_rows,)) for end in range(2)]
            shares[1][:] = fraction
            np.subtract(1.0, shares[1], out=shares[0])
            corners = [
                (offset + more, part if weight is None else weight * part)
                for offset, weight in corners
                for more, part in zip((0, step), shares, strict=True)
            ]
        return cls(index, tuple(corners))

    def times(self, weight: Array, space: Workspace) -> _Reader:
        """The same with all weights times a number a row."""
        corners = list[tuple[int, Array | None]]()
        for k, (step, own) in enumerate(self.corners):
            product = space.get(("weighted", k), weight.shape)
            np.multiply(1.0 if own is None else own, weight, out=product)
            corners.append((step, product))
        return replace(self, corners=tuple(corners))


def _cross_table(
    left: _Reader, weighted: _Reader, shape: tuple[int, int], space: Workspace
) -> Array:
    """``W_left' diag(weight) W_right``, of the right reader with its weights."""
    n_rows = len(left.index)
    cell = np.multiply(left.index, shape[1], out=space.get("cell", (n_rows,), np.intp))
    cell += weighted.index
    block = space.get("block", shape)
    block[:] = 0.0
    for down, one in left.corners:
        for along, two in weighted.corners:
            assert two is not None
            value = two
            if one is not None:
                value = np.multiply(one, two, out=space.get("product", (n_rows,)))
            table = sum_by(cell, value, shape[0] * shape[1]).reshape(shape)
            # A row's neighbours lie some entries on; a row on the last entry gives them nothing.
            block[down:, along:] += table[: shape[0] - down, : shape[1] - along]
    return block


def _own_table(reader: _Reader, weighted: _Reader, size: int) -> Array:
    """``W' diag(weight) W`` of one term: rows read few entries beside each other."""
    block, entry = np.zeros((size, size)), np.arange(size)
    for down, one in reader.corners:
        for along, two in weighted.corners:
            assert two is not None
            sums = sum_by(reader.index, two if one is None else one * two, size)
            own = entry[: size - max(down, along)]
            block[own + down, own + along] += sums[: len(own)]
    return block
