"""Rows wherever they live: tables in chunks, and totals over them.

A fit asks for nothing of its rows but totals: a job is given some chunks of the table and returns
arrays, and the arrays of several jobs are merged, mostly by adding them up. Whether chunks are views of
an array, parts of files, or partitions on other machines is for those who hold them to know.
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
    """Some rows: columns (n, D) as ``knots.py`` wants them, a response and a positive weight each.

    ``number`` is which chunk of the whole they are: chunks are in the order of the rows.
    """

    columns: Array
    response: Array
    weight: Array
    number: int = 0

    def __len__(self) -> int:
        return len(self.response)


#: Goes over chunks once. It can be sent elsewhere: a function of a module, or a ``partial`` of one.
Job: TypeAlias = Callable[[Iterable[Table]], Totals]
Merge: TypeAlias = Callable[[Totals, Totals], Totals]


def add(first: Totals, second: Totals) -> Totals:
    """Totals that are sums."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


class Tables(Protocol):
    """All rows, in chunks."""

    @property
    def n_columns(self) -> int:
        """How many columns there are."""

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """What a job says of all chunks.

        It is given one group of chunks or several, each with a chunk at least and in the order of the
        rows; what it says of these is merged in that order, the earlier first.
        """


#: Told of a job and of what computes its totals, which it may know already.
Log: TypeAlias = Callable[[Callable[..., Totals], Callable[[], Totals]], Totals]


@dataclass(frozen=True)
class LoggedTables:
    """Tables whose totals go through a log."""

    tables: Tables
    log: Log

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return self.tables.n_columns

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """What a job says of all chunks."""
        return self.log(job, lambda: self.tables.total(job, merge))


@dataclass(frozen=True)
class ArrayTables:
    """Rows at hand: one table, and no other; what is asked of its rows goes through the log, if any."""

    table: Table
    log: Log | None = None

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return int(self.table.columns.shape[1])

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """What a job says of the table."""
        return job([self.table])
