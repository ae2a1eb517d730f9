"""Rows at their positions among the terms' entries: in memory (``Rows``) or out of core (``StreamedRows``).

Statistics of all rows are map-reduce jobs: computed for parts of the rows, and merged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import iadd
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, Intercept
from lanam.core.blas import limited_threads
from lanam.core.rows.tables import EncodedRows, Log, Merge, Tables, Totals, Units, add
from lanam.core.terms.knots import Position, locate
from lanam.core.terms.repeats import Repeats
from lanam.core.terms.term import Term

#: A thread is worth starting for this many rows.
_ROWS_PER_THREAD = 1 << 15


@dataclass(frozen=True)
class Rows:
    """Rows in memory: a position in every term's table, a response, and its weight.

    Where missing values add noise (``missingness.py``), ``missing_noise`` is the variance that each column
    adds, in units of the noise of complete rows; where some responses are gross errors (``tails.py``),
    ``gross_errors`` has the ``reliability`` of each row. ``precision`` is that of each row relative to
    complete rows without errors, by both, and ``log_factor`` what its log-likelihood has besides weighted
    squares. ``offset`` is the known part of its prediction, None for zero. ``columns`` are kept to locate
    rows in further terms; ``repeats`` and ``times`` are as in ``EncodedRows``.
    """

    positions: tuple[Position, ...]
    sizes: tuple[int, ...]
    y: Array
    weight: Array
    precision: Array | None = None
    missing_noise: Array | None = None
    gross_errors: GrossErrors | None = None
    reliability: Array | None = None
    log_factor: Array | None = None
    offset: Array | None = None
    columns: Array = field(default_factory=lambda: np.empty((0, 0)))
    repeats: Repeats | None = None
    times: Array = field(default_factory=lambda: np.empty(0))
    n_threads: int = 1
    log: Log | None = None

    @classmethod
    def of(
        cls,
        table: EncodedRows,
        terms: Sequence[Term],
        units: Units,
        n_threads: int = 1,
        log: Log | None = None,
    ) -> Rows:
        """Rows of a table, located in all terms."""
        y = units.standard(table.response)
        empty = cls((), (), y, table.weight, columns=table.columns, n_threads=n_threads, log=log)
        empty = replace(empty, offset=table.offset, precision=table.precision)
        return replace(empty, repeats=table.repeats, times=table.times).with_terms(terms)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return int(self.columns.shape[1]) + (self.repeats is not None)

    @cached_property
    def missing_columns(self) -> tuple[int, ...]:
        """The columns with missing values."""
        return tuple(k for k in range(self.n_columns) if np.isnan(self.columns[:, k]).any())

    @cached_property
    def information(self) -> Array:
        """Weight times precision."""
        return self.weight if self.precision is None else self.weight * self.precision

    @cached_property
    def log_precision(self) -> float:
        """The part of a Gaussian log-likelihood due to the rows' precisions."""
        return 0.0 if self.log_factor is None else float(self.weight @ self.log_factor)

    @cached_property
    def count(self) -> float:
        """The number of observations: the total weight."""
        return float(self.weight.sum())

    def part(self, rows: slice | NDArray[np.bool_]) -> Rows:
        """Some of these rows."""

        def some(values: Array | None) -> Array | None:
            return None if values is None else values[rows]

        repeats, subjects = (None, rows) if self.repeats is None else self.repeats.part(rows)

        def located(position: Position) -> Position:
            if position.repeats is None:
                return position.rows(rows)
            return position.rows(subjects, repeats)

        return replace(
            self,
            positions=tuple(map(located, self.positions)),
            y=self.y[rows],
            weight=self.weight[rows],
            precision=some(self.precision),
            reliability=some(self.reliability),
            log_factor=some(self.log_factor),
            offset=some(self.offset),
            columns=self.columns[subjects],
            repeats=repeats,
            times=self.times if repeats is None else self.times[rows],
        )

    def parts(self, size: int) -> Iterator[Rows]:
        """These rows in parts of at most ``size``."""
        if len(self) <= size:
            yield self
            return
        for start in range(0, len(self), size):
            yield self.part(slice(start, start + size))

    def total(self, job: RowJob, merge: Merge = add, *, heavy: bool = False) -> Totals:
        """The job's total over all rows; a ``heavy`` job, of few long steps, is threaded."""
        if self.log is None:
            return self._total(job, merge, heavy)
        return self.log(job, lambda: self._total(job, merge, heavy))

    def _total(self, job: RowJob, merge: Merge, heavy: bool) -> Totals:
        n_parts = min(self.n_threads, len(self) // _ROWS_PER_THREAD) if heavy else 1
        if n_parts < 2:
            return job([self])
        ends = np.linspace(0, len(self), n_parts + 1).astype(int)
        parts = [self.part(slice(*pair)) for pair in pairwise(ends)]
        # Our threads or those of BLAS, not both.
        with limited_threads(1), ThreadPoolExecutor(n_parts) as pool:
            totals = pool.map(lambda part: job([part]), parts)
            return reduce(_add_to if merge is add else merge, totals)

    def with_terms(self, terms: Sequence[Term]) -> Rows:
        """These rows with more terms."""
        return replace(
            self,
            positions=(*self.positions, *map(self._locate, terms)),
            sizes=(*self.sizes, *(len(term.entries) for term in terms)),
        )

    def all_columns(self, features: Collection[int]) -> Array:
        """All columns (n, D) of the rows, of which only some ``features`` are needed."""
        if self.repeats is None:
            return self.columns
        result = np.empty((len(self), self.n_columns), order="F")
        for feature in features:
            varies = feature == self.columns.shape[1]
            result[:, feature] = self.times if varies else self.columns[self.repeats.owner, feature]
        return result

    def varies(self, features: Sequence[int]) -> bool:
        """Whether any of these columns differs between rows of a subject."""
        return self.repeats is None or self.columns.shape[1] in features

    def _locate(self, term: Term) -> Position:
        if self.repeats is None:
            return locate(term.entries, term.features, self.columns)
        if self.varies(term.features):
            return locate(term.entries, term.features, self.all_columns(term.features))
        return replace(locate(term.entries, term.features, self.columns), repeats=self.repeats)

    def keep_terms(self, kept: Sequence[int]) -> Rows:
        """These rows with some of the terms."""
        return replace(
            self,
            positions=tuple(self.positions[k] for k in kept),
            sizes=tuple(self.sizes[k] for k in kept),
        )

    def with_missing_noise(self, missing_noise: Array) -> Rows:
        """These rows with the noise that missing values add."""
        return self.with_noise(missing_noise, self.gross_errors)

    def with_noise(self, missing_noise: Array | None, gross_errors: GrossErrors | None) -> Rows:
        """These rows with the noise that missing values add, and with gross errors."""
        precision = np.ones(len(self))
        if missing_noise is not None:
            noisier = np.flatnonzero(missing_noise)
            precision /= 1.0 + np.isnan(self.columns[:, noisier]) @ missing_noise[noisier]
        log_factor, reliability = 0.5 * np.log(precision), None
        if gross_errors is not None:
            reliability, extra = gross_errors(self)
            precision, log_factor = precision * reliability, log_factor + extra
        return replace(
            self,
            precision=precision,
            missing_noise=missing_noise,
            gross_errors=gross_errors,
            reliability=reliability,
            log_factor=log_factor,
        )


#: The reliability of each row, its precision relative to rows without gross errors, and what that adds to
#: its log-likelihood; a function of columns, responses and weights of rows that can be pickled.
GrossErrors: TypeAlias = Callable[[Rows], tuple[Array, Array]]


def _add_to(first: Totals, second: Totals) -> Totals:
    """Sums in place, without another copy: totals may be large."""
    return tuple(map(iadd, first, second))


def chunks(parts: Iterable[Rows], size: int) -> Iterator[Rows]:
    """Parts of at most ``size`` rows."""
    for part in parts:
        yield from part.parts(size)


def added(parts: Iterable[Rows], size: int, of: Callable[[Rows], Totals]) -> Totals:
    """Sums of the arrays that ``of`` returns for at most ``size`` rows at a time."""
    return reduce(_add_to, map(of, chunks(parts, size)))


#: Goes over parts of the rows once; it can be pickled.
RowJob: TypeAlias = Callable[[Iterable[Rows]], Totals]


@dataclass(frozen=True)
class StreamedRows:
    """Rows of tables in chunks, each located when it is read.

    ``null_intercept`` is the intercept of the best constant model and ``null`` its log-likelihood at unit
    noise, if known: neither is worth a pass. The other fields are as in ``Rows``.
    """

    tables: Tables
    terms: tuple[Term, ...]
    units: Units
    count: float
    n_rows: int
    missing_columns: tuple[int, ...]
    null_intercept: Intercept
    null: float | None = None
    missing_noise: Array | None = None
    gross_errors: GrossErrors | None = None
    log_precision: float = 0.0

    def __len__(self) -> int:
        return self.n_rows

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return self.tables.n_columns

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of entries of each term."""
        return tuple(len(term.entries) for term in self.terms)

    def total(self, job: RowJob, merge: Merge = add, *, heavy: bool = False) -> Totals:
        """The job's total over all rows; the engine parallelises."""
        noise = self.missing_noise, self.gross_errors
        located = partial(_total_of_tables, job, self.terms, self.units, noise)
        return self.tables.total(located, merge)

    def with_terms(self, terms: Sequence[Term]) -> StreamedRows:
        """These rows with more terms."""
        return replace(self, terms=(*self.terms, *terms))

    def keep_terms(self, kept: Sequence[int]) -> StreamedRows:
        """These rows with some of the terms."""
        return replace(self, terms=tuple(self.terms[k] for k in kept))

    def with_missing_noise(self, missing_noise: Array) -> StreamedRows:
        """These rows with the noise that missing values add."""
        return self.with_noise(missing_noise, self.gross_errors)

    def with_noise(
        self, missing_noise: Array | None, gross_errors: GrossErrors | None
    ) -> StreamedRows:
        """These rows with the noise that missing values add, and with gross errors."""
        weighted = replace(self, missing_noise=missing_noise, gross_errors=gross_errors, null=None)
        (sums,) = weighted.keep_terms([]).total(_noise_sums)
        return replace(weighted, log_precision=float(sums[0]), null_intercept=sums[2] / sums[1])


AnyRows: TypeAlias = Rows | StreamedRows


def _total_of_tables(
    job: RowJob,
    terms: Sequence[Term],
    units: Units,
    noise: tuple[Array | None, GrossErrors | None],
    tables: Iterable[EncodedRows],
) -> Totals:
    """The job's total over tables, each of them located first."""
    parts = (Rows.of(table, terms, units) for table in tables)
    if any(part is not None for part in noise):
        parts = (part.with_noise(*noise) for part in parts)
    return job(parts)


def _noise_sums(parts: Iterable[Rows]) -> Totals:
    """The log-likelihood due to the rows' precisions, their total information, and that times response."""

    def of(part: Rows) -> Array:
        information = part.information
        return np.array([part.log_precision, information.sum(), information @ part.y])

    return (np.sum([of(part) for part in parts], axis=0),)
