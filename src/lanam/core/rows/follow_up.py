"""Times to an event as rates over intervals of follow-up (method.md, survival).

A subject at risk from ``entry`` to ``exit`` has a row for each interval in which it is at risk, with the
time at risk as its weight: a Poisson likelihood of these rows is that of a hazard that is constant within
intervals. Rows are made chunk by chunk, and thrown away once they are summed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import pairwise

import numpy as np

from lanam.core.arrays import Array, IntArray, sum_by
from lanam.core.blas import limited_threads
from lanam.core.rows import sketches
from lanam.core.rows.summaries import ColumnSummary, DataSummary, summarise_tables
from lanam.core.rows.tables import ArrayTables, EncodedRows, Job, Log, Merge, Tables, Totals, add
from lanam.core.terms.knots import Distribution, Knots, power_of_two_scale, weighted_quantiles
from lanam.core.terms.repeats import Repeats

#: Subjects whose rows are made at a time.
_SUBJECTS = 1 << 15

#: With ``n_intervals="auto"``: the most intervals, and the fewest events of each on average.
_MAX_INTERVALS = 20
_EVENTS_PER_INTERVAL = 3.0

#: Columns after a subject's own: when it entered, and when it left. Its response is the event then.
N_TIMES = 2


@dataclass(frozen=True)
class FollowUp:
    """What all subjects say of the times: events by code, their times, and the time at risk."""

    n_subjects: int
    weight: float
    at_risk: float
    first: float
    last: float
    codes: Array
    n_events: Array
    times: Distribution

    @classmethod
    def of(cls, subjects: Tables) -> FollowUp:
        """One pass over all subjects."""
        sums, ends, *parts = subjects.total(_survey, _merged)
        codes, times = (sketches.from_arrays(iter(part)) for part in (parts[:5], parts[5:]))
        events = codes.points > 0.0
        return cls(
            int(sums[0]),
            float(sums[1]),
            float(sums[2]),
            -float(ends[0]),
            float(ends[1]),
            codes.points[events],
            codes.mass[events],
            sketches.distribution(times),
        )

    def timeline(self, n_intervals: int | None = None) -> Timeline:
        """Intervals with about equally many events, at most ``n_intervals``; None chooses."""
        if n_intervals is None:
            n_intervals = int(min(self.n_events.sum() / _EVENTS_PER_INTERVAL, _MAX_INTERVALS))
        levels = np.arange(1, n_intervals) / max(n_intervals, 1)
        inner = self.times.scale * weighted_quantiles(self.times.values, self.times.mass, levels)
        inside = inner[(inner > self.first) & (inner < self.last)]
        edges = np.concatenate([[self.first], np.unique(inside), [self.last]])
        interval = np.clip(
            np.searchsorted(edges, self.times.values * self.times.scale) - 1, 0, len(edges) - 2
        )
        n_events = sum_by(interval, self.times.mass, len(edges) - 1)
        return Timeline(edges, self.at_risk / self.weight, n_events)


def _survey(tables: Iterable[EncodedRows]) -> Totals:
    def of(table: EncodedRows) -> Totals:
        entry, end = table.columns[:, -2:].T
        sums = np.array([len(table), table.weight.sum(), table.weight @ (end - entry)])
        events = table.response > 0.0
        return (
            sums,
            np.array([-entry.min(), end.max()]),
            *sketches.to_arrays(sketches.sketch_column(table.response, table.weight)),
            *sketches.to_arrays(sketches.sketch_column(end[events], table.weight[events])),
        )

    return reduce(_merged, map(of, tables))


def _merged(first: Totals, second: Totals) -> Totals:
    pairs = [
        sketches.merge(
            *(sketches.from_arrays(iter(totals[at : at + 5])) for totals in (first, second))
        )
        for at in (2, 7)
    ]
    arrays = (array for sketch in pairs for array in sketches.to_arrays(sketch))
    return first[0] + second[0], np.maximum(first[1], second[1]), *arrays


@dataclass(frozen=True, eq=False)
class Timeline:
    """Intervals of follow-up, ``(edge, next edge]``; the last one has no end.

    ``unit`` is the time at risk that counts as 1: the mean of the subjects. ``n_events`` is the weight of
    the events, of all causes, in each interval.
    """

    edges: Array
    unit: float
    n_events: Array

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def middles(self) -> Array:
        """The time by which each interval is known."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    def interval_of(self, times: Array) -> IntArray:
        """The interval of each time."""
        return np.clip(np.searchsorted(self.edges, times) - 1, 0, len(self) - 1)

    def at_risk(self, entry: Array, end: Array) -> Array:
        """Time from ``entry`` to ``end`` in each interval (n, J)."""
        ends = np.append(self.edges[1:-1], np.inf)
        later = np.minimum(end[:, None], ends) - np.maximum(entry[:, None], self.edges[:-1])
        return np.asarray(np.maximum(later, 0.0))

    def rows(self, subjects: EncodedRows, cause: float) -> Iterator[EncodedRows]:
        """The rows of subjects, some subjects at a time."""
        for start in range(0, len(subjects), _SUBJECTS):
            some = slice(start, start + _SUBJECTS)
            columns, codes = subjects.columns[some], subjects.response[some]
            part = EncodedRows(columns, codes, subjects.weight[some], subjects.number)
            yield self.rows_of_all(part, cause)

    def rows_of_all(self, subjects: EncodedRows, cause: float) -> EncodedRows:
        """The rows of all subjects at once."""
        entry, end = subjects.columns[:, -N_TIMES:].T
        at_risk = self.at_risk(entry, end) / self.unit
        owner, interval = np.nonzero(at_risk)
        exposure = at_risk[owner, interval]
        last = np.append(owner[1:] != owner[:-1], True)
        events = last & (subjects.response[owner] == cause)
        response = np.divide(1.0, exposure, out=np.zeros(len(owner)), where=events)
        return EncodedRows(
            subjects.columns[:, :-N_TIMES],
            response,
            subjects.weight[owner] * exposure,
            subjects.number,
            repeats=Repeats(owner),
            times=self.middles[interval],
        )

    @cached_property
    def column(self) -> ColumnSummary:
        """The time as a column: of the events, at knots that are evenly spaced among them."""
        scale, n_intervals = power_of_two_scale(self.edges), len(self)
        points = self.middles / scale
        knots = None
        if n_intervals > 1:
            evenly = np.sqrt(3.0) * np.linspace(-1.0, 1.0, n_intervals)  # of variance one
            knots = Knots(points, evenly, scale, slice(0, n_intervals))
        mass = np.maximum(self.n_events, np.finfo(float).tiny)
        return ColumnSummary(Distribution(points, mass, scale), n_intervals, np.empty(0), knots)


@dataclass(frozen=True)
class FollowUpTables:
    """Rows of subjects in their intervals, with the events of one cause as the response.

    The tables of ``subjects`` have their own columns, entry and exit, and the code of the event. The
    columns of a row are a subject's own and the time.
    """

    subjects: Tables
    timeline: Timeline
    cause: float
    log: Log | None = None
    #: for subjects in memory
    n_threads: int = 1

    @property
    def n_columns(self) -> int:
        """The number of columns, that of time included."""
        return self.subjects.n_columns - N_TIMES + 1

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """The job's total over all rows."""
        whole = partial(_over_rows, self.timeline, self.cause, job)
        if self.log is None:
            return self._total(whole, merge)
        return self.log(job, lambda: self._total(whole, merge))

    def _total(self, job: Job, merge: Merge) -> Totals:
        subjects = self.subjects
        if not isinstance(subjects, ArrayTables):
            return subjects.total(job, merge)
        n_parts = min(self.n_threads, len(subjects.table) // _SUBJECTS)
        if n_parts < 2:
            return subjects.total(job, merge)
        ends = np.linspace(0, len(subjects.table), n_parts + 1).astype(int)
        parts = [_part(subjects.table, slice(*pair)) for pair in pairwise(ends)]
        # Our threads or those of BLAS, not both.
        with limited_threads(1), ThreadPoolExecutor(n_parts) as pool:
            return reduce(merge, pool.map(lambda part: job([part]), parts))

    @property
    def n_rows(self) -> int:
        """The number of rows, of all subjects."""
        return int(self._sums[1])

    @property
    def constant(self) -> float:
        """What the log-likelihood of the rows lacks of that of the times, in the users' unit.

        The density of an event at a hazard ``h`` is ``h exp(-H)``; that of rates is relative to the rate
        ``1 / e`` of an event in the exposure ``e``.
        """
        return float(self._sums[0])

    @cached_property
    def _sums(self) -> Totals:
        return self.total(partial(_constant_and_count, self.timeline.unit))

    def summarise(self, n_levels: Sequence[int], n_sample: int, n_threads: int) -> DataSummary:
        """The summary of all subjects by their time at risk, with the rows of some as a sample."""
        levels = (*(n_levels or [-1] * self.n_columns)[:-1], *[-1] * N_TIMES)
        as_rates = partial(_as_rates, self.timeline.unit, self.cause)
        tables: Tables = _Rates(self.subjects, as_rates)
        if isinstance(self.subjects, ArrayTables):
            tables = ArrayTables(as_rates(self.subjects.table))
        few = max(n_sample // max(len(self.timeline), 1), 1)
        summary = summarise_tables(tables, levels, n_sample=few, n_threads=n_threads)
        own = {k: j for k, j in summary.duplicates.items() if k < self.n_columns - 1}
        columns = (*summary.columns[:-N_TIMES], self.timeline.column)
        sample = None if summary.sample is None else self._sampled(summary.sample)
        return replace(summary, columns=columns, duplicates=own, sample=sample)

    def _sampled(self, sample: EncodedRows) -> EncodedRows:
        """The rows of sampled subjects, with all columns."""
        entry, end = sample.columns[:, -2:].T
        subjects = EncodedRows(
            sample.columns,
            np.where(sample.response > 0.0, self.cause, 0.0),
            sample.weight * self.timeline.unit / (end - entry),
        )
        parts = [_with_all_columns(rows) for rows in self.timeline.rows(subjects, self.cause)]
        arrays = zip(*((part.columns, part.response, part.weight) for part in parts), strict=True)
        columns, response, weight = map(np.concatenate, arrays)
        return EncodedRows(np.asfortranarray(columns), response, weight)


def _part(table: EncodedRows, rows: slice) -> EncodedRows:
    return EncodedRows(table.columns[rows], table.response[rows], table.weight[rows], table.number)


def _over_rows(
    timeline: Timeline, cause: float, job: Job, subjects: Iterable[EncodedRows]
) -> Totals:
    return job(rows for table in subjects for rows in timeline.rows(table, cause))


def _constant_and_count(unit: float, tables: Iterable[EncodedRows]) -> Totals:
    total, n_rows = 0.0, 0
    for table in tables:
        n_rows += len(table)
        events = table.response > 0.0
        rate = table.response[events]
        # The weight of an event is that of its row by its exposure.
        total += float(table.weight[events] * rate @ (np.log(rate / unit) - 1.0))
    return np.array(total), np.array(n_rows)


def _as_rates(unit: float, cause: float, subjects: EncodedRows) -> EncodedRows:
    """Subjects with their rate of events over all of their time at risk."""
    entry, end = subjects.columns[:, -2:].T
    at_risk = (end - entry) / unit
    response = (subjects.response == cause) / at_risk
    return replace(subjects, response=response, weight=subjects.weight * at_risk)


@dataclass(frozen=True)
class _Rates:
    """Tables of rates."""

    subjects: Tables
    as_rates: partial[EncodedRows]

    @property
    def n_columns(self) -> int:
        return self.subjects.n_columns

    def total(self, job: Job, merge: Merge = add) -> Totals:
        return self.subjects.total(partial(_of_rates, self.as_rates, job), merge)


def _of_rates(as_rates: partial[EncodedRows], job: Job, tables: Iterable[EncodedRows]) -> Totals:
    return job(map(as_rates, tables))


def _with_all_columns(rows: EncodedRows) -> EncodedRows:
    assert rows.repeats is not None
    columns = np.column_stack([rows.columns[rows.repeats.owner], rows.times])
    return EncodedRows(columns, rows.response, rows.weight)
