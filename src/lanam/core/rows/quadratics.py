"""The quadratic in the cheaper form: as rows, or summed into cross-tables.

``RowQuadratic`` goes over the rows and builds ``Z`` on each call, which is cheap for few rows and for an
expansion that is used once; ``TableQuadratic`` (``cross_tables.py``) sums over the rows once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import combinations_with_replacement

import numpy as np
from scipy.sparse import csr_array

from lanam.core.arrays import Array, slices
from lanam.core.likelihoods import Likelihood
from lanam.core.rows.cross_tables import TableQuadratic, cross_table_bytes, summed
from lanam.core.rows.located import AnyRows, Rows, added, chunks
from lanam.core.rows.reading import Design, spread
from lanam.core.rows.statistics import (
    CHUNK_ROWS,
    Around,
    entry_sums,
    fit_intercept_only,
    output_places,
    own_curvature,
    same_arrays,
    weigh_entries,
)
from lanam.core.rows.tables import Totals, add

#: Rows of ``Z`` at a time.
_DESIGN_CHUNK_ROWS = 1 << 11

#: The same where rows are those of subjects, of which each has several.
_REPEATED_CHUNK_ROWS = 1 << 15

#: With this many rows, a pass over them costs more than all else.
MANY_ROWS = 1 << 18

#: Default limit of the cross-tables' memory.
CROSS_TABLE_BYTES = 600e6


@dataclass(frozen=True)
class RowQuadratic:
    """The quadratic as rows, for the terms ``kept`` of all that the expansion is around."""

    rows: AnyRows
    around: Around
    kept: tuple[int, ...]

    def is_around(self, values: Sequence[Array]) -> bool:
        """Whether it is the expansion around these arrays."""
        return same_arrays(self.around.values, values)

    @cached_property
    def _sums(self) -> Totals:
        return self.rows.total(partial(_expansion_sums, self.around))

    @property
    def constant(self) -> float:
        """Log-likelihood of the zero prediction."""
        return float(self._sums[-1][0])

    @property
    def value(self) -> float:
        """Log-likelihood at unit noise where it is expanded; at zero if it is exact."""
        return float(self._sums[-1][1])

    @property
    def total_curvature(self) -> float:
        """Sum of ``gamma`` over all rows and outputs."""
        return float(self._sums[-1][2])

    def entry_curvature(self) -> list[Array]:
        """Sums of ``gamma`` per table entry over all outputs, one vector per term."""
        return [self._sums[k] for k in self.kept]

    def keep_terms(self, kept: Sequence[int]) -> RowQuadratic:
        """The same quadratic for some of the terms."""
        return replace(self, kept=tuple(self.kept[k] for k in kept))

    def normal_equations(self, tables: Sequence[Array]) -> tuple[Array, Array]:
        """``Z' diag(gamma) Z`` and ``Z' h``."""
        job = _joint_equations if self.around.likelihood.n_outputs > 1 else _normal_equations
        gram, target = self.rows.total(partial(job, self.around, self.kept, tables), heavy=True)
        return gram, target

    def level_equations(self, k: int, tables: Sequence[Array]) -> tuple[Array, Array]:
        """``W_k' gamma Z`` and ``W_k' h`` for the levels of term ``k``.

        The last column, that of the intercept, is the diagonal of ``W_k' gamma W_k``. Of several outputs
        these are (levels, outputs, coordinates), with as many last columns, and (levels, outputs).
        """
        several = self.around.likelihood.n_outputs > 1
        of_levels = _joint_level_equations if several else _level_equations
        job = partial(of_levels, self.around, self.kept, tables, k)
        cross, target = self.rows.total(job, heavy=True)
        return cross, target


def _expansion_sums(around: Around, parts: Iterable[Rows]) -> Totals:
    """Curvature at every entry, one vector per term; then constant, value and total curvature."""

    def of(part: Rows) -> Totals:
        expansion = around.expand(part)
        gamma = own_curvature(expansion.curvature)
        gamma = gamma if gamma.ndim == 1 else gamma.sum(axis=1)
        scalars = np.array([expansion.constant, expansion.value, gamma.sum()])
        return *entry_sums(part, gamma), scalars

    return added(parts, CHUNK_ROWS, of)


def _normal_equations(
    around: Around, kept: Sequence[int], tables: Sequence[Array], parts: Iterable[Rows]
) -> Totals:
    designs = Design(tables)

    def of(part: Rows) -> Totals:
        if part.repeats is not None:
            return _repeated_equations(around, kept, tables, part)
        expansion, design = around.expand(part), designs.of(part.keep_terms(kept))
        target = expansion.pseudo_response @ design
        design *= np.sqrt(expansion.curvature)[:, None]
        return design.T @ design, target

    return reduce(add, (added([part], _chunk_rows(part), of) for part in parts))


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
        position, size, rows = (
            kept_part.positions[k].of_rows,
            kept_part.sizes[k],
            np.arange(len(part)),
        )
        weighted = csr_array((expansion.curvature, (position.index, rows)), shape=(size, len(part)))
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
        position, size = kept_part.positions[k].of_rows, kept_part.sizes[k]
        at_level = csr_array(
            (np.ones(len(part)), (position.index, np.arange(len(part)))), shape=(size, len(part))
        )
        design = designs.of(kept_part)
        cross = np.zeros((size, n_outputs, places.size))
        for i, j in combinations_with_replacement(range(n_outputs), 2):
            sums = at_level @ (expansion.curvature[:, i, j, None] * design)
            cross[:, i, places[j]] = cross[:, j, places[i]] = sums
        return cross, at_level @ expansion.pseudo_response

    return added(parts, _DESIGN_CHUNK_ROWS, of)


def _joint_equations(
    around: Around, kept: Sequence[int], tables: Sequence[Array], parts: Iterable[Rows]
) -> Totals:
    """Normal equations of several outputs with separate coordinates in the same tables."""
    places = output_places([table.shape[1] for table in tables], around.likelihood.n_outputs)
    gram, target = np.zeros((places.size, places.size)), np.zeros(places.size)
    designs = Design(tables)
    for part in chunks(parts, _DESIGN_CHUNK_ROWS):
        expansion, design = around.expand(part), designs.of(part.keep_terms(kept))
        for i, columns in enumerate(places):
            target[columns] += expansion.pseudo_response[:, i] @ design
            for j, rows in enumerate(places[: i + 1]):
                block = (design * expansion.curvature[:, i, j, None]).T @ design
                gram[np.ix_(columns, rows)] += block
                if j < i:
                    gram[np.ix_(rows, columns)] += block.T
    return gram, target


Quadratic = RowQuadratic | TableQuadratic


def weights_and_quadratic(
    rows: AnyRows,
    likelihood: Likelihood,
    memory: float = CROSS_TABLE_BYTES,
    on_decision: Callable[[int], None] = lambda n_entries: None,
) -> tuple[Totals, float, Quadratic | None]:
    """Weight at every entry, the log-likelihood of the intercept alone, and the quadratic if it is exact.

    ``memory`` limits the bytes of cross-tables. ``on_decision`` is called with the number of entries by
    which the form is decided (``tables_pay``), before rows are summed: all or, if too many, those that
    rows read.
    """
    null = (likelihood, fit_intercept_only(rows, likelihood))
    around = Around(likelihood, tuple(np.zeros(size) for size in rows.sizes), 0.0)
    n_entries = sum(rows.sizes) + 1
    whole = tables_pay(likelihood, len(rows), n_entries, memory)
    if whole:
        on_decision(n_entries)
    if whole and likelihood.quadratic:
        # Both at once; entries without rows are dropped afterwards.
        quadratic, weights = summed(rows, around)
        return weights, quadratic.of(around.values, null[1]), quadratic
    *sums, value = rows.total(partial(weigh_entries, null))
    seen = tuple(np.flatnonzero(weight) for weight in sums)
    n_entries = sum(map(len, seen)) + 1
    if not whole:
        on_decision(n_entries)
    exact: Quadratic | None = None
    if likelihood.quadratic:
        pay = tables_pay(likelihood, len(rows), n_entries, memory)
        exact = summed(rows, around, seen)[0] if pay else row_quadratic(rows, around)
    return tuple(sums), float(value), exact


def tables_pay(likelihood: Likelihood, n_rows: int, n_entries: int, memory: float) -> bool:
    """Whether rows are summed into cross-tables of ``n_entries``: the one place that decides it.

    They are summed several times if the likelihood is not quadratic, and not at all for several outputs.
    """
    many = n_rows > 2 * n_entries if likelihood.quadratic else n_rows >= MANY_ROWS
    return many and likelihood.n_outputs == 1 and cross_table_bytes(n_entries) <= memory


def row_quadratic(rows: AnyRows, around: Around) -> RowQuadratic:
    """The expansion around a point, as rows."""
    return RowQuadratic(rows, around, tuple(range(len(rows.sizes))))
