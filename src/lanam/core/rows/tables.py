"""Tables in chunks, and totals over them.

A fit needs only totals of its rows: a job is given some chunks of the table and returns arrays, and the
arrays of several jobs are merged, mostly by addition. Chunks may be views of an array, parts of files, or
partitions on other machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lanam.core.arrays import Array

#: What a job returns.
Totals: TypeAlias = tuple[Array, ...]


@dataclass(frozen=True)
class Table:
    """Rows: columns (n, D) as in ``knots.py``, response and positive weight; ``number`` is the chunk's."""

    columns: Array
    response: Array
    weight: Array
    number: int = 0

    def __len__(self) -> int:
        return len(self.response)


#: Goes over chunks once; it can be pickled: a function of a module, or a ``partial`` of one.
Job: TypeAlias = Callable[[Iterable[Table]], Totals]
Merge: TypeAlias = Callable[[Totals, Totals], Totals]


def add(first: Totals, second: Totals) -> Totals:
    """Totals that are sums."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


class Tables(Protocol):
    """All rows, in chunks."""

    @property
    def n_columns(self) -> int:
        """The number of columns."""

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """The job's total over all chunks.

        The job runs on one or more groups of consecutive chunks, none of them empty, and the results are
        merged in the order of the rows.
        """


#: Called with a job and a function that computes its totals, which a log may have already.
Log: TypeAlias = Callable[[Callable[..., Totals], Callable[[], Totals]], Totals]


@dataclass(frozen=True)
class LoggedTables:
    """Tables whose totals go through a log."""

    tables: Tables
    log: Log

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return self.tables.n_columns

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """The job's total over all chunks, through the log."""
        return self.log(job, lambda: self.tables.total(job, merge))


@dataclass(frozen=True)
class ArrayTables:
    """One table in memory; the fit's passes over its rows go through the log, if any."""

    table: Table
    log: Log | None = None

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return int(self.table.columns.shape[1])

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """The job's total over the table."""
        return job([self.table])
