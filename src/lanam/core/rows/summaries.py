"""Summaries of all rows, from which terms are placed: distributions, counts, duplicate columns.

In memory the distributions are exact. Out of core they are mergeable sketches (``sketches.py``): exact
for columns with few distinct values, and with a bounded rank error for others.
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
from lanam.core.rows.tables import ArrayTables, EncodedRows, Spread, Tables, Totals, add
from lanam.core.terms.knots import (
    Distribution,
    Knots,
    level_counts,
    standard_inputs,
    summarise,
)

#: From this number of rows on, columns are sorted in threads.
_MANY_ROWS = 1 << 16

#: The number of arrays per sketch.
_SKETCH_ARRAYS = 5


@dataclass(frozen=True)
class ColumnSummary:
    """One column: its distribution, and the number of distinct values, which may be an estimate.

    For a column of codes, ``mass`` is every code's weight. ``knots`` are those of a column whose place is
    not chosen by its distribution: of the time of follow-up.
    """

    distribution: Distribution
    n_values: float
    mass: Array
    knots: Knots | None = None

    @property
    def inputs(self) -> Array:
        """The distinct values as a network's inputs."""
        return standard_inputs(self.distribution) if self.knots is None else self.knots.inputs


@dataclass(frozen=True)
class DataSummary:
    """All rows: their number, the response, the number of distinct rows, the columns.

    ``duplicates`` maps columns to an earlier one with the same values, or with the same categories by other
    names; ``classes`` is the weight of every class. ``fingerprint`` is that of the columns, then that of
    the rows: the same in any order of the rows.
    """

    n_rows: int
    spread: Spread
    n_distinct: float
    columns: tuple[ColumnSummary, ...]
    duplicates: dict[int, int]
    classes: Array
    sample: EncodedRows | None = None
    fingerprint: str = ""

    @property
    def total_weight(self) -> float:
        """The number of observations."""
        return self.spread.total_weight

    def without_distributions(self) -> DataSummary:
        """The summary without the columns' distributions, which may be as large as all rows."""
        empty = np.empty(0)
        columns = (
            replace(column, distribution=replace(column.distribution, values=empty, mass=empty))
            for column in self.columns
        )
        return replace(self, columns=tuple(columns))

    @property
    def missing_columns(self) -> tuple[int, ...]:
        """The columns with missing values."""
        return tuple(k for k, column in enumerate(self.columns) if column.distribution.missing)


def summarise_tables(
    tables: Tables,
    n_levels: Sequence[int] = (),
    n_classes: int = 0,
    n_sample: int = 0,
    n_threads: int = 1,
) -> DataSummary:
    """Summarise all rows; ``n_levels`` is as in ``prepare``, and threads are for rows in memory.

    The sample has ``n_sample`` distinct rows, those with the smallest hashes: it depends neither on the
    order of the rows nor on the chunks.
    """
    levels = n_levels or [-1] * tables.n_columns
    if isinstance(tables, ArrayTables):
        head = _head(tables.table, n_classes, n_sample)
        columns = _exact_columns(tables.table, levels, n_threads)
        summary = replace(_summary(head, []), columns=columns)
    else:
        job = partial(_sketched, levels, n_classes, n_sample)
        summary = _summary(tables.total(job, partial(_merged, levels, n_sample)), levels)
    return replace(summary, duplicates=_duplicates(tables, summary.columns, levels))


def _exact_columns(
    table: EncodedRows, levels: Sequence[int], n_threads: int
) -> tuple[ColumnSummary, ...]:
    # One block, which is returned to the system as a whole; threads would keep theirs.
    space = np.empty(table.columns.shape[::-1])

    def of_column(column: Array, n_levels: int, buffer: Array) -> ColumnSummary:
        distribution = summarise(column, table.weight, buffer)
        counts = level_counts(column, table.weight, n_levels)
        return ColumnSummary(distribution, len(distribution.values), counts)

    if n_threads == 1 or len(table) < _MANY_ROWS:
        return tuple(map(of_column, table.columns.T, levels, space))
    with ThreadPoolExecutor(n_threads) as pool:  # sorting is one long step per column
        return tuple(pool.map(of_column, table.columns.T, levels, space))


# Totals of a pass: [rows, response's spread], classes, distinct rows, fingerprint, a sample, then for each
# column the arrays of a sketch and, if it has codes, every code's mass.


def _sketched(
    levels: Sequence[int], n_classes: int, n_sample: int, tables: Iterable[EncodedRows]
) -> Totals:
    def of(table: EncodedRows) -> Totals:
        parts = _head(table, n_classes, n_sample)
        for column, n_levels in zip(table.columns.T, levels, strict=True):
            parts += sketches.to_arrays(sketches.sketch_column(column, table.weight))
            if n_levels >= 0:
                parts.append(level_counts(column, table.weight, n_levels))
        return tuple(parts)

    return reduce(partial(_merged, levels, n_sample), map(of, tables))


def _head(table: EncodedRows, n_classes: int, n_sample: int) -> list[Array]:
    spread = Spread.of(table.response, table.weight)
    extras = table.extras
    # Rows that differ in their offset, or are of other groups, are different rows.
    columns = np.hstack([table.columns, *extras]) if any(e.size for e in extras) else table.columns
    hashes = sketches.hash_rows(columns, table.response)
    classes = level_counts(table.response, table.weight, n_classes)
    counts = [np.array([len(table), *astuple(spread)]), classes, sketches.count_distinct(hashes[1])]
    features = sketches.sum_features(table.columns)
    sums = np.array([features, sketches.sum_rows(hashes[1], table.weight)])
    counts.append(cast(Array, sums))
    # As floats, which have the same order.
    numbers = [(hash_ >> np.uint64(11)).astype(np.float64) for hash_ in hashes]
    rows = [*numbers, table.columns, table.response, table.weight, *extras]
    return counts + _smallest(rows, n_sample)


def _smallest(sample: Sequence[Array], n_sample: int) -> list[Array]:
    """Distinct rows with the smallest hashes: these, columns, response, the weight of all copies, extras.

    They are in the order of the first hash, which the columns' order does not change.
    """
    if n_sample == 0:
        return [array[:0] for array in sample]
    hashes, identity, columns, response, weight, *extras = sample
    candidates = np.arange(len(hashes))
    if len(hashes) > 4 * n_sample:
        # Sort few of them, unless many are copies.
        few = np.flatnonzero(hashes <= np.partition(hashes, 2 * n_sample)[2 * n_sample])
        candidates = few if len(np.unique(hashes[few])) >= n_sample else candidates
    order = candidates[np.lexsort((identity[candidates], hashes[candidates]))]
    numbers = np.stack([hashes[order], identity[order]])
    # Copies are one row with their total weight.
    starts = np.flatnonzero(np.r_[True, (numbers[:, 1:] != numbers[:, :-1]).any(axis=0)])
    mass = np.add.reduceat(weight[order], starts)[:n_sample]
    first = order[starts[:n_sample]]
    chosen = [part[first] for part in (hashes, identity, columns, response)]
    return [*chosen, mass, *(part[first] for part in extras)]


def _merged(levels: Sequence[int], n_sample: int, first: Totals, second: Totals) -> Totals:
    one, two = iter(first), iter(second)
    (n_rows, *spread), (n_more, *other) = next(one), next(two)
    total = Spread(*spread).merged(Spread(*other))
    merged = [np.array([n_rows + n_more, *astuple(total)]), next(one) + next(two)]
    merged.append(sketches.merge_counts(next(one), next(two)))
    merged.append(next(one) + next(two))  # of unsigned integers, modulo 2^64
    samples = [np.concatenate(pair) for pair in zip(islice(one, 8), islice(two, 8), strict=True)]
    merged += _smallest(samples, n_sample)
    for n_levels in levels:
        pair = [sketches.from_arrays(islice(part, _SKETCH_ARRAYS)) for part in (one, two)]
        merged += sketches.to_arrays(sketches.merge(*pair))
        if n_levels >= 0:
            merged.append(next(one) + next(two))
    return tuple(merged)


def _summary(totals: Iterable[Array], levels: Sequence[int]) -> DataSummary:
    parts = iter(totals)
    n_rows, *spread = next(parts).tolist()
    classes, smallest, sums, _, _, sampled, response, weight, *extras = islice(parts, 11)
    sample = None
    if len(response):
        sample = EncodedRows(np.asfortranarray(sampled), response, weight).with_extras(*extras)
    columns = []
    for n_levels in levels:
        sketch = sketches.from_arrays(islice(parts, _SKETCH_ARRAYS))
        mass = next(parts) if n_levels >= 0 else np.empty(0)
        distribution = sketches.distribution(sketch)
        columns.append(ColumnSummary(distribution, sketch.n_distinct, mass))
    moments, n_distinct = Spread(*spread), sketches.estimate_distinct(smallest)
    fingerprint = "".join(f"{int(part):016x}" for part in sums)
    return DataSummary(
        int(n_rows), moments, n_distinct, tuple(columns), {}, classes, sample, fingerprint
    )


def _duplicates(
    tables: Tables, columns: Sequence[ColumnSummary], levels: Sequence[int]
) -> dict[int, int]:
    """Duplicates of earlier columns; those with the same distribution are compared in another pass."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for feature, (column, n_levels) in enumerate(zip(columns, levels, strict=True)):
        alike.setdefault(_likeness(column, n_levels >= 0), []).append(feature)
    compared = sorted(chain.from_iterable(group for group in alike.values() if len(group) > 1))
    if not compared:
        return {}
    seen: dict[tuple[bool, int], int] = {}
    duplicates: dict[int, int] = {}
    totals = tables.total(partial(_signed, compared, levels))
    for feature, signature in zip(compared, totals, strict=True):
        hashes = cast(sketches.Hashes, signature)
        coded = levels[feature] >= 0
        number = sketches.sign_levels(hashes) if coded else int(hashes[0])
        first = seen.setdefault((coded, number), feature)
        if first != feature:
            duplicates[feature] = first
    return duplicates


def _likeness(column: ColumnSummary, coded: bool) -> tuple[object, ...]:
    """A key that duplicates share."""
    if coded:
        return True, hash(np.sort(column.mass[column.mass > 0.0]).tobytes())
    values = column.distribution.values
    return False, column.distribution.missing, column.distribution.scale, hash(values.tobytes())


def _signed(
    compared: Sequence[int], levels: Sequence[int], tables: Iterable[EncodedRows]
) -> Totals:
    """Signatures of some columns (``sketches.py``), which are equal for duplicates."""

    def of(table: EncodedRows) -> Totals:
        # Rows that agree in all of these columns need no hashes of their own.
        _, rows = sketches.hash_rows(table.columns[:, compared], np.zeros(len(table)))
        signatures = tuple(
            sketches.sign_codes(table.columns[:, feature], rows, levels[feature])
            if levels[feature] >= 0
            else sketches.sign_numbers(table.columns[:, feature], rows)
            for feature in compared
        )
        return cast(Totals, signatures)

    return reduce(add, map(of, tables))
