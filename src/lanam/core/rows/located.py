"""Rows as a fit sees them: at their positions among the terms' entries, wherever they live.

``Rows`` are at hand, as arrays. ``StreamedRows`` are tables in chunks (``tables.py``), of which each is
located when it comes up. Both answer jobs: what is asked of all rows is asked of parts of them, and the
answers are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import iadd
from typing import TypeAlias

import numpy as np

from lanam.core.arrays import Array, Intercept
from lanam.core.blas import limited_threads
from lanam.core.rows.tables import Log, Merge, Table, Tables, Totals, add
from lanam.core.rows.units import Units
from lanam.core.terms.knots import Position, locate
from lanam.core.terms.term import Term

#: Rows that each of several threads should have at least.
_ROWS_A_THREAD = 1 << 15


@dataclass(frozen=True)
class Rows:
    """Rows at hand: a position in every term's table, and a response.

    ``weight`` is how often a row was seen. Where gaps make some noisier than others (``gaps.py``),
    ``precision`` is how much each says compared to one without, and ``gap_noise`` what every column adds
    to the noise where it is missing, in units of it. ``columns`` are what positions were found in, for
    those who look for more.
    """

    positions: tuple[Position, ...]
    sizes: tuple[int, ...]
    y: Array
    weight: Array
    precision: Array | None = None
    gap_noise: Array | None = None
    columns: Array = field(default_factory=lambda: np.empty((0, 0)))
    n_threads: int = 1
    log: Log | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        terms: Sequence[Term],
        units: Units,
        n_threads: int = 1,
        log: Log | None = None,
    ) -> Rows:
        """Rows of a table, found among the entries of all terms."""
        y = units.standard(table.response)
        empty = cls((), (), y, table.weight, columns=table.columns, n_threads=n_threads, log=log)
        return empty.with_terms(terms)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return int(self.columns.shape[1])

    @cached_property
    def gaps(self) -> tuple[int, ...]:
        """The columns with missing values."""
        return tuple(k for k in range(self.n_columns) if np.isnan(self.columns[:, k]).any())

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

    def part(self, own: slice) -> Rows:
        """Some of these rows."""
        return replace(
            self,
            positions=tuple(position.rows(own) for position in self.positions),
            y=self.y[own],
            weight=self.weight[own],
            precision=None if self.precision is None else self.precision[own],
            columns=self.columns[own],
        )

    def parts(self, size: int) -> Iterator[Rows]:
        """These rows, so many at a time."""
        if len(self) <= size:
            yield self
            return
        for start in range(0, len(self), size):
            yield self.part(slice(start, start + size))

    def total(self, job: RowJob, merge: Merge = add, *, heavy: bool = False) -> Totals:
        """What a job says of all rows.

        A ``heavy`` job is shared by threads: it spends its time in few long steps. Between many short ones
        threads of Python would only wait for each other.
        """
        if self.log is None:
            return self._total(job, merge, heavy)
        return self.log(job, lambda: self._total(job, merge, heavy))

    def _total(self, job: RowJob, merge: Merge, heavy: bool) -> Totals:
        n_parts = min(self.n_threads, len(self) // _ROWS_A_THREAD) if heavy else 1
        if n_parts < 2:
            return job([self])
        ends = np.linspace(0, len(self), n_parts + 1).astype(int)
        parts = [self.part(slice(*pair)) for pair in pairwise(ends)]
        # Threads of ours or of BLAS, not both.
        with limited_threads(1), ThreadPoolExecutor(n_parts) as pool:
            totals = pool.map(lambda part: job([part]), parts)
            return reduce(_add_to if merge is add else merge, totals)

    def with_terms(self, terms: Sequence[Term]) -> Rows:
        """The same rows with more terms."""
        positions = [locate(term.entries, term.features, self.columns) for term in terms]
        return replace(
            self,
            positions=(*self.positions, *positions),
            sizes=(*self.sizes, *(len(term.entries) for term in terms)),
        )

    def keep_terms(self, kept: Sequence[int]) -> Rows:
        """The same rows with some of the terms."""
        return replace(
            self,
            positions=tuple(self.positions[k] for k in kept),
            sizes=tuple(self.sizes[k] for k in kept),
        )

    def weighed_by(self, gap_noise: Array) -> Rows:
        """The same rows, weighed by how noisy their gaps make them."""
        noisier = np.flatnonzero(gap_noise)
        relative = 1.0 + np.isnan(self.columns[:, noisier]) @ gap_noise[noisier]
        return replace(self, precision=1.0 / relative, gap_noise=gap_noise)


def _add_to(first: Totals, second: Totals) -> Totals:
    """Totals that are sums, the first of which nobody else has: tables may be large."""
    return tuple(map(iadd, first, second))


def chunks(parts: Iterable[Rows], size: int) -> Iterator[Rows]:
    """Parts of the rows, cut so that none has more rows than this."""
    for part in parts:
        yield from part.parts(size)


def added(parts: Iterable[Rows], size: int, of: Callable[[Rows], Totals]) -> Totals:
    """Sums of new arrays that are made of at most so many rows at a time."""
    return reduce(_add_to, map(of, chunks(parts, size)))


#: Goes over parts of the rows once, and can be sent elsewhere.
RowJob: TypeAlias = Callable[[Iterable[Rows]], Totals]


@dataclass(frozen=True)
class StreamedRows:
    """Rows of tables in chunks: of each its part is made when it comes up.

    ``start`` is the intercept of the best constant model and ``null`` its log-likelihood at unit noise, if
    that is known: nobody should go over all rows for these. ``log_precision`` is what the rows' precisions
    add to a Gaussian log-likelihood.
    """

    tables: Tables
    terms: tuple[Term, ...]
    units: Units
    count: float
    n_rows: int
    gaps: tuple[int, ...]
    start: Intercept
    null: float | None = None
    gap_noise: Array | None = None
    log_precision: float = 0.0

    def __len__(self) -> int:
        return self.n_rows

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return self.tables.n_columns

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many entries each term has."""
        return tuple(len(term.entries) for term in self.terms)

    def total(self, job: RowJob, merge: Merge = add, *, heavy: bool = False) -> Totals:
        """What a job says of all rows; whoever holds them knows how to share it."""
        own = partial(_located, job, self.terms, self.units, self.gap_noise)
        return self.tables.total(own, merge)

    def with_terms(self, terms: Sequence[Term]) -> StreamedRows:
        """The same rows with more terms."""
        return replace(self, terms=(*self.terms, *terms))

    def keep_terms(self, kept: Sequence[int]) -> StreamedRows:
        """The same rows with some of the terms."""
        return replace(self, terms=tuple(self.terms[k] for k in kept))

    def weighed_by(self, gap_noise: Array) -> StreamedRows:
        """The same rows, weighed by how noisy their gaps make them."""
        weighed = replace(self, gap_noise=gap_noise, null=None)
        (value,) = weighed.keep_terms([]).total(_log_precision)
        return replace(weighed, log_precision=float(value))


AnyRows: TypeAlias = Rows | StreamedRows


def _located(
    job: RowJob,
    terms: Sequence[Term],
    units: Units,
    gap_noise: Array | None,
    tables: Iterable[Table],
) -> Totals:
    """What a job says of tables, each made a part of the rows first."""

    def parts() -> Iterator[Rows]:
        for table in tables:
            part = Rows.of(table, terms, units)
            yield part if gap_noise is None else part.weighed_by(gap_noise)

    return job(parts())


def _log_precision(parts: Iterable[Rows]) -> Totals:
    return (np.array(sum(part.log_precision for part in parts)),)
