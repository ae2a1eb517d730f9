"""What placing the terms needs to know of all rows: distributions, counts, and columns that are the same.

Of rows at hand the distributions are exact. Of tables in chunks they are made in one pass of mergeable
sketches (``sketches.py``): exact too where a column has few distinct values, and otherwise with a rank
error that is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from functools import partial, reduce
from itertools import chain, islice
from typing import cast

import numpy as np

from lanam.core.arrays import Array
from lanam.core.rows import sketches
from lanam.core.rows.sketches import DistinctCount
from lanam.core.rows.tables import ArrayTables, Table, Tables, Totals, add
from lanam.core.rows.units import Spread
from lanam.core.terms.knots import Distribution, level_counts, summarise

#: From so many rows on, threads are worth starting.
_MANY_ROWS = 1 << 16

#: Arrays that a column's sketch is made of.
_SKETCH_ARRAYS = 5


@dataclass(frozen=True)
class ColumnSummary:
    """One column: its distribution, and about how many distinct values there are.

    Of a column of codes, ``mass`` and ``arrival`` are every code's weight, and where it first comes up.
    """

    distribution: Distribution
    n_values: float
    mass: Array
    arrival: Array


@dataclass(frozen=True)
class Summary:
    """All rows: how many, the response, about how many differ; the columns, and which are the same.

    ``classes`` is the weight of every class, where the response numbers them, and ``sample`` some rows,
    if they were wanted. ``twins`` maps columns to an earlier one with the same values, or the same
    levels by other names.
    """

    n_rows: int
    spread: Spread
    n_distinct: float
    columns: tuple[ColumnSummary, ...]
    twins: dict[int, int]
    classes: Array
    sample: Table | None = None

    @property
    def total_weight(self) -> float:
        """How many observations there are."""
        return self.spread.total_weight

    def without_distributions(self) -> Summary:
        """The same without the columns' distributions, which may be as large as all rows."""
        nothing = np.empty(0)
        columns = (
            replace(own, distribution=replace(own.distribution, values=nothing, mass=nothing))
            for own in self.columns
        )
        return replace(self, columns=tuple(columns))

    @property
    def gaps(self) -> tuple[int, ...]:
        """The columns with missing values."""
        return tuple(k for k, own in enumerate(self.columns) if own.distribution.missing)


@dataclass(frozen=True)
class Wanted:
    """What of the response and of the rows is to be summarised besides.

    The weight of so many classes (-1 for none), and a sample of so many different rows: of those whose
    hashes are the smallest, so that it is the same whatever order and chunks rows come in.
    """

    n_classes: int = -1
    n_sample: int = 0


_NOTHING_MORE = Wanted()


def summarise_tables(
    tables: Tables, n_levels: Sequence[int] = (), wanted: Wanted = _NOTHING_MORE, n_threads: int = 1
) -> Summary:
    """Summarise all rows; ``n_levels`` is as ``prepare`` has it. Threads are for rows at hand."""
    levels = n_levels or [-1] * tables.n_columns
    if isinstance(tables, ArrayTables):
        summary = _of_table(tables.table, levels, wanted, n_threads)
    else:
        job, merge = partial(_sketched, levels, wanted), partial(_merged, levels, wanted)
        summary = _read(tables.total(job, merge), levels)
    return replace(summary, twins=_twins(tables, summary.columns, levels))


def _of_table(table: Table, levels: Sequence[int], wanted: Wanted, n_threads: int) -> Summary:
    # In one block, which the system has back when nobody needs it; threads would keep theirs.
    space = np.empty(table.columns.shape[::-1])

    def of_column(column: Array, n_levels: int, own: Array) -> ColumnSummary:
        distribution = summarise(column, table.weight, own)
        mass, arrival = level_counts(column, table.weight, n_levels)
        return ColumnSummary(distribution, len(distribution.values), mass, arrival)

    if n_threads == 1 or len(table) < _MANY_ROWS:
        columns = list(map(of_column, table.columns.T, levels, space))
    else:  # sorting is one long step a column
        with ThreadPoolExecutor(n_threads) as pool:
            columns = list(pool.map(of_column, table.columns.T, levels, space))
    return replace(_read(_head(table, wanted), []), columns=tuple(columns))


# Totals of a pass: [rows, response's spread], classes, distinct rows, a sample, then of each column the
# arrays of a sketch and, if it has codes, every code's mass and arrival.


def _sketched(levels: Sequence[int], wanted: Wanted, tables: Iterable[Table]) -> Totals:
    merge = partial(_merged, levels, wanted)
    return reduce(merge, (_sketch(table, levels, wanted) for table in tables))


def _head(table: Table, wanted: Wanted) -> list[Array]:
    spread = Spread.of(table.response, table.weight)
    hashes = sketches.hash_rows(table.columns, table.response)
    distinct = sketches.count_distinct(hashes)
    classes, _ = level_counts(table.response, table.weight, wanted.n_classes)
    parts = [np.array([len(table), *astuple(spread)]), classes, distinct.smallest]
    # As floats, in whose order hashes are too.
    own = (hashes >> np.uint64(11)).astype(np.float64)
    return parts + _smallest([own, table.columns, table.response, table.weight], wanted.n_sample)


def _sketch(table: Table, levels: Sequence[int], wanted: Wanted) -> Totals:
    parts = _head(table, wanted)
    for column, n_levels in zip(table.columns.T, levels, strict=True):
        parts += sketches.to_arrays(sketches.sketch_column(column, table.weight))
        if n_levels >= 0:
            mass, arrival = level_counts(column, table.weight, n_levels)
            # Arrivals of an earlier chunk come first, wherever in it.
            parts += [mass, table.number + arrival / len(table)]
    return tuple(parts)


def _smallest(sample: Sequence[Array], n_sample: int) -> list[Array]:
    """Different rows with the smallest hashes: these, columns, response, and the weight of all copies."""
    if n_sample == 0:
        return [own[:0] for own in sample]
    hashes, columns, response, weight = sample
    candidates = np.arange(len(hashes))
    if len(hashes) > 4 * n_sample:
        # Few are worth sorting, unless there are many copies among them.
        few = np.flatnonzero(hashes <= np.partition(hashes, 2 * n_sample)[2 * n_sample])
        candidates = few if len(np.unique(hashes[few])) >= n_sample else candidates
    order = candidates[np.argsort(hashes[candidates])]
    ordered = hashes[order]
    # Copies are one row with their weight: where there are few others, all that is known of them.
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    mass = np.add.reduceat(weight[order], starts)[:n_sample]
    first = order[starts[:n_sample]]
    return [hashes[first], columns[first], response[first], mass]


def _merged(levels: Sequence[int], wanted: Wanted, first: Totals, second: Totals) -> Totals:
    one, two = iter(first), iter(second)
    (n_rows, *own), (n_more, *others) = next(one), next(two)
    spread = Spread(*own).merged(Spread(*others))
    merged = [np.array([n_rows + n_more, *astuple(spread)]), next(one) + next(two)]
    counts = [DistinctCount(next(part)) for part in (one, two)]
    merged.append(sketches.merge_counts(*counts).smallest)
    samples = [np.concatenate(pair) for pair in zip(islice(one, 4), islice(two, 4), strict=True)]
    merged += _smallest(samples, wanted.n_sample)
    for n_levels in levels:
        both = [sketches.from_arrays(islice(part, _SKETCH_ARRAYS)) for part in (one, two)]
        merged += sketches.to_arrays(sketches.merge(*both))
        if n_levels >= 0:
            (mass, arrival), (more, later) = islice(one, 2), islice(two, 2)
            merged += [mass + more, np.minimum(arrival, later)]
    return tuple(merged)


def _read(totals: Iterable[Array], levels: Sequence[int]) -> Summary:
    parts = iter(totals)
    n_rows, *spread = next(parts).tolist()
    classes, smallest, _, sampled, response, weight = islice(parts, 6)
    sample = Table(np.asfortranarray(sampled), response, weight) if len(response) else None
    columns = []
    for n_levels in levels:
        sketch = sketches.from_arrays(islice(parts, _SKETCH_ARRAYS))
        mass, arrival = islice(parts, 2) if n_levels >= 0 else (np.empty(0), np.empty(0))
        distribution = sketches.distribution(sketch)
        columns.append(ColumnSummary(distribution, sketch.n_distinct, mass, arrival))
    n_distinct, own = DistinctCount(smallest).estimate, tuple(columns)
    return Summary(int(n_rows), Spread(*spread), n_distinct, own, {}, classes, sample)


# --- columns that are the same ----------------------------------------------------------------------


def _twins(
    tables: Tables, columns: Sequence[ColumnSummary], levels: Sequence[int]
) -> dict[int, int]:
    """Columns with the same values, or the same levels by other names, as an earlier one.

    Only those with the same distribution are compared row by row, which takes another pass.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    for feature, column in enumerate(columns):
        alike.setdefault(_likeness(column, levels[feature] >= 0), []).append(feature)
    compared = sorted(chain.from_iterable(own for own in alike.values() if len(own) > 1))
    if not compared:
        return {}
    seen: dict[tuple[bool, int], int] = {}
    twins: dict[int, int] = {}
    totals = tables.total(partial(_signed, compared, levels))
    for feature, signature in zip(compared, totals, strict=True):
        own = cast(sketches.Hashes, signature)
        coded = levels[feature] >= 0
        number = sketches.sign_levels(own) if coded else int(own[0])
        first = seen.setdefault((coded, number), feature)
        if first != feature:
            twins[feature] = first
    return twins


def _likeness(column: ColumnSummary, coded: bool) -> tuple[object, ...]:
    """What columns that are the same have in common."""
    if coded:
        return True, hash(np.sort(column.mass[column.mass > 0.0]).tobytes())
    known = column.distribution
    return False, known.missing, known.scale, len(known.values), hash(known.values.tobytes())


def _signed(compared: Sequence[int], levels: Sequence[int], tables: Iterable[Table]) -> Totals:
    """Signatures of some columns (``sketches.py``), of which equal ones are of the same columns."""

    def of(table: Table) -> Totals:
        # Rows that have the same in all of these need not be told apart.
        rows = sketches.hash_rows(table.columns[:, compared], np.zeros(len(table)))
        own = tuple(
            sketches.sign_codes(table.columns[:, feature], rows, levels[feature])
            if levels[feature] >= 0
            else sketches.sign_numbers(table.columns[:, feature], rows)
            for feature in compared
        )
        return cast(Totals, own)

    return reduce(add, map(of, tables))
