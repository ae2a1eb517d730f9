"""The normal equations of the terms' coordinates, summed over the rows.

Terms are read as columns of ``Z`` and multiplied. One column per level would be nearly all zeros: such
terms are summed by level instead, and their tables applied to the sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import combinations, combinations_with_replacement

import numpy as np
from scipy.sparse import csr_array

from lanam.core.arrays import Array, IntArray, slices, sum_by
from lanam.core.rows.located import AnyRows, Rows, added
from lanam.core.rows.reading import Design, spread
from lanam.core.rows.statistics import Around, output_places
from lanam.core.rows.tables import Totals, add
from lanam.core.terms.knots import Position

#: Rows of ``Z`` at a time.
_DESIGN_CHUNK_ROWS = 1 << 11

#: The same where rows are those of subjects, of which each has several.
_REPEATED_CHUNK_ROWS = 1 << 15

#: Terms of fewer levels are columns of ``Z``.
_MANY_LEVELS = 32


def normal_equations(
    rows: AnyRows, around: Around, kept: Sequence[int], tables: Sequence[Array]
) -> tuple[Array, Array]:
    """``Z' diag(gamma) Z`` and ``Z' h`` of the terms ``kept``; outputs have coordinates of their own."""
    by_level = _summed_by_level(rows, kept, tables)
    sums = rows.total(partial(_sums, around, kept, tables, by_level), heavy=True)
    places = output_places([table.shape[1] for table in tables], around.likelihood.n_outputs)
    gram, target = np.empty((places.size, places.size)), np.empty(places.size)
    parts = _Parts.of(tables, by_level)
    n_outputs = len(places)
    for number, (i, j) in enumerate(combinations_with_replacement(range(n_outputs), 2)):
        block = parts.gram([each[number] for each in sums[: parts.n_grams]])
        gram[np.ix_(places[i], places[j])] = gram[np.ix_(places[j], places[i])] = block
    for i in range(n_outputs):
        target[places[i]] = parts.target([each[i] for each in sums[parts.n_grams :]])
    return gram, target


def level_equations(
    rows: AnyRows, around: Around, kept: Sequence[int], tables: Sequence[Array], k: int
) -> tuple[Array, Array]:
    """``W_k' gamma Z`` and ``W_k' h`` for the levels of term ``k`` (``RowQuadratic``)."""
    several = around.likelihood.n_outputs > 1
    of_levels = _joint_level_equations if several else _level_equations
    cross, target = rows.total(partial(of_levels, around, kept, tables, k), heavy=True)
    return cross, target


def _summed_by_level(
    rows: AnyRows, kept: Sequence[int], tables: Sequence[Array]
) -> tuple[int, ...]:
    """The terms of many levels, of rows in memory; those of subjects would save nothing."""
    if not isinstance(rows, Rows) or rows.repeats is not None:
        return ()
    return tuple(
        number
        for number, (k, table) in enumerate(zip(kept, tables, strict=True))
        if not rows.positions[k].steps and table.shape[1] == len(table) >= _MANY_LEVELS
    )


def _sums(
    around: Around,
    kept: Sequence[int],
    tables: Sequence[Array],
    by_level: Sequence[int],
    parts: Iterable[Rows],
) -> Totals:
    """What ``_Parts`` makes the normal equations of: for each pair of outputs, then for each output."""
    n_outputs = around.likelihood.n_outputs
    others = [k for k in range(len(tables)) if k not in by_level]
    designs = Design([tables[k] for k in others])
    outputs = list(combinations_with_replacement(range(n_outputs), 2))

    def of(part: Rows) -> Totals:
        if part.repeats is not None:
            gram, target = _repeated_equations(around, kept, tables, part)
            return gram[None], target[None]
        expansion = around.expand(part)
        gamma = expansion.curvature.reshape(-1, n_outputs, n_outputs)
        pull = expansion.pseudo_response.reshape(-1, n_outputs)
        design = designs.of(part.keep_terms([kept[k] for k in others]))
        levels = [_Level.of(part.positions[kept[k]], len(tables[k])) for k in by_level]
        pairs = [_weighted_sums(design, gamma[:, i, j], i == j, levels) for i, j in outputs]
        pulls = pull.T @ design, *((level.indicators @ pull).T for level in levels)
        return *map(np.stack, zip(*pairs, strict=True)), *pulls

    return reduce(add, (added([part], _chunk_rows(part), of) for part in parts))


class _Level:
    """The level of each row."""

    def __init__(self, index: IntArray, size: int) -> None:
        self.index, self.size = index, size
        shape = size, len(index)
        self.indicators = csr_array((np.ones(len(index)), (index, np.arange(len(index)))), shape)

    @classmethod
    def of(cls, position: Position, size: int) -> _Level:
        """At the rows' positions."""
        return cls(position.of_rows.index.astype(np.intp), size)


def _weighted_sums(design: Array, gamma: Array, own: bool, levels: Sequence[_Level]) -> Totals:
    """Weighted products of the design with itself and the levels, and of levels of two terms.

    Of an output with itself (``own``) the weights are positive, and a matrix times its own transpose takes
    half of the time of other products.
    """
    # Of certain classes it may be negative by rounding.
    root_of = np.sqrt(np.maximum(gamma, 0.0))[:, None] if own else None
    if root_of is not None and not levels:
        root = design * root_of
        return (root.T @ root,)
    weighted = design * gamma[:, None]
    sums = [level.indicators @ weighted for level in levels]
    cells = [
        sum_by(one.index * two.size + two.index, gamma, one.size * two.size).reshape(one.size, -1)
        for one, two in combinations(levels, 2)
    ]
    if root_of is not None:
        root = np.multiply(design, root_of, out=weighted)
        return root.T @ root, *sums, *cells
    return weighted.T @ design, *sums, *cells


@dataclass(frozen=True)
class _Parts:
    """Where the columns of ``Z`` and the terms that are summed by level have their coordinates."""

    tables: Sequence[Array]
    by_level: tuple[int, ...]
    places: tuple[slice, ...]

    @classmethod
    def of(cls, tables: Sequence[Array], by_level: tuple[int, ...]) -> _Parts:
        """The terms' places, and last that of the intercept."""
        return cls(tables, by_level, slices([*(table.shape[1] for table in tables), 1]))

    @property
    def n_grams(self) -> int:
        """The number of sums from which a Gram matrix is made."""
        n_levels = len(self.by_level)
        return 1 + n_levels + n_levels * (n_levels - 1) // 2

    @cached_property
    def columns(self) -> IntArray:
        """The coordinates that are columns of the design."""
        kept = [place for k, place in enumerate(self.places) if k not in self.by_level]
        return np.concatenate([np.arange(place.start, place.stop) for place in kept])

    def gram(self, sums: Sequence[Array]) -> Array:
        """The Gram matrix of a pair of outputs."""
        n_levels, size = len(self.by_level), self.places[-1].stop
        of_design, crosses, cells = sums[0], sums[1 : 1 + n_levels], sums[1 + n_levels :]
        result = np.empty((size, size))
        result[np.ix_(self.columns, self.columns)] = of_design
        for k, cross in zip(self.by_level, crosses, strict=True):
            table, place = self.tables[k], self.places[k]
            result[place, self.columns] = table.T @ cross
            result[self.columns, place] = result[place, self.columns].T
            # The last column of the design is ones.
            result[place, place] = table.T @ (cross[:, -1:] * table)
        for (j, k), of_cells in zip(combinations(self.by_level, 2), cells, strict=True):
            block = self.tables[j].T @ of_cells @ self.tables[k]
            result[self.places[j], self.places[k]] = block
            result[self.places[k], self.places[j]] = block.T
        return result

    def target(self, sums: Sequence[Array]) -> Array:
        """The target of an output."""
        of_design, *of_levels = sums
        result = np.empty(self.places[-1].stop)
        result[self.columns] = of_design
        for k, of_level in zip(self.by_level, of_levels, strict=True):
            result[self.places[k]] = of_level @ self.tables[k]
        return result


def _chunk_rows(part: Rows) -> int:
    return _DESIGN_CHUNK_ROWS if part.repeats is None else _REPEATED_CHUNK_ROWS


def _repeated_equations(
    around: Around, kept: Sequence[int], tables: Sequence[Array], part: Rows
) -> Totals:
    """The same for rows of subjects, whose own terms ``S`` are evaluated once per subject.

    With the other terms ``V``, sums over each subject's rows in brackets: ``S' [gamma] S``,
    ``S' [gamma V]`` and ``V' gamma V``.
    """
    assert part.repeats is not None
    expansion, positions = around.expand(part), part.keep_terms(kept).positions
    gamma, total = expansion.curvature, part.repeats.sum
    own = [k for k, position in enumerate(positions) if position.repeats is not None]
    other = [k for k, position in enumerate(positions) if position.repeats is None]
    of_subjects = [positions[k].of_subjects for k in own]
    subjects = Design([tables[k] for k in own]).at(of_subjects, len(part.repeats.starts))
    rows = Design([tables[k] for k in other]).at([positions[k] for k in other], len(part))[:, :-1]
    response = expansion.pseudo_response
    target = np.r_[total(response) @ subjects, response @ rows]
    cross = subjects.T @ total(gamma[:, None] * rows)
    # A matrix times its own transpose takes half of the time of other products.
    rows *= np.sqrt(gamma)[:, None]
    subjects *= np.sqrt(total(gamma))[:, None]
    gram = np.block([[subjects.T @ subjects, cross], [cross.T, rows.T @ rows]])
    # From the subjects' terms, the intercept and the others to the order of the terms.
    blocks = slices([*(tables[k].shape[1] for k in own), 1, *(tables[k].shape[1] for k in other)])
    place = dict(zip([*own, len(positions), *other], blocks, strict=True))
    order = np.r_[tuple(place[k] for k in range(len(positions) + 1))]
    return gram[np.ix_(order, order)], target[order]


def _level_equations(
    around: Around,
    kept: Sequence[int],
    tables: Sequence[Array],
    k: int,
    parts: Iterable[Rows],
) -> Totals:
    designs = Design(tables)

    def of(part: Rows) -> Totals:
        expansion, kept_part = around.expand(part), part.keep_terms(kept)
        position, size = kept_part.positions[k].of_rows, kept_part.sizes[k]
        at_level = (position.index, np.arange(len(part)))
        weighted = csr_array((expansion.curvature, at_level), shape=(size, len(part)))
        return weighted @ designs.of(kept_part), spread(position, expansion.pseudo_response, size)

    return added(parts, _DESIGN_CHUNK_ROWS, of)


def _joint_level_equations(
    around: Around,
    kept: Sequence[int],
    tables: Sequence[Array],
    k: int,
    parts: Iterable[Rows],
) -> Totals:
    """The same of several outputs, which are coupled at every level."""
    n_outputs = around.likelihood.n_outputs
    places = output_places([table.shape[1] for table in tables], n_outputs)
    designs = Design(tables)

    def of(part: Rows) -> Totals:
        expansion, kept_part = around.expand(part), part.keep_terms(kept)
        size = kept_part.sizes[k]
        at_level = _Level.of(kept_part.positions[k], size).indicators
        design = designs.of(kept_part)
        cross = np.zeros((size, n_outputs, places.size))
        for i, j in combinations_with_replacement(range(n_outputs), 2):
            sums = at_level @ (expansion.curvature[:, i, j, None] * design)
            cross[:, i, places[j]] = cross[:, j, places[i]] = sums
        return cross, at_level @ expansion.pseudo_response

    return added(parts, _DESIGN_CHUNK_ROWS, of)
