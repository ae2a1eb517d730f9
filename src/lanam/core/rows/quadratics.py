"""The quadratic in the cheaper form: as rows, or summed into cross-tables.

``RowQuadratic`` goes over the rows on each call (``equations.py``), which is cheap for few rows and for an
expansion that is used once; ``TableQuadratic`` (``cross_tables.py``) sums over the rows once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.core.rows import equations
from lanam.core.rows.cross_tables import TableQuadratic, cross_table_bytes, summed
from lanam.core.rows.located import AnyRows, Rows, added
from lanam.core.rows.statistics import (
    CHUNK_ROWS,
    Around,
    entry_sums,
    fit_intercept_only,
    own_curvature,
    same_arrays,
    weigh_entries,
)
from lanam.core.rows.tables import Totals

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
        return equations.normal_equations(self.rows, self.around, self.kept, tables)

    def level_equations(self, k: int, tables: Sequence[Array]) -> tuple[Array, Array]:
        """``W_k' gamma Z`` and ``W_k' h`` for the levels of term ``k``.

        The last column, that of the intercept, is the diagonal of ``W_k' gamma W_k``. Of several outputs
        these are (levels, outputs, coordinates), with as many last columns, and (levels, outputs).
        """
        return equations.level_equations(self.rows, self.around, self.kept, tables, k)


def _expansion_sums(around: Around, parts: Iterable[Rows]) -> Totals:
    """Curvature at every entry, one vector per term; then constant, value and total curvature."""

    def of(part: Rows) -> Totals:
        expansion = around.expand(part)
        gamma = own_curvature(expansion.curvature)
        gamma = gamma if gamma.ndim == 1 else gamma.sum(axis=1)
        scalars = np.array([expansion.constant, expansion.value, gamma.sum()])
        return *entry_sums(part, gamma), scalars

    return added(parts, CHUNK_ROWS, of)


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
