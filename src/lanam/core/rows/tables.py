"""Tables in chunks, totals over them, and the units of their response.

A fit needs only totals of its rows: a job is given some chunks of the table and returns arrays, and the
arrays of several jobs are merged, mostly by addition. Chunks may be views of an array, parts of files, or
partitions on other machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import numpy as np

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.core.terms.knots import power_of_two_scale
from lanam.core.terms.repeats import Repeats

#: What a job returns.
Totals: TypeAlias = tuple[Array, ...]


@dataclass(frozen=True)
class EncodedRows:
    """Rows: columns (n, D) as in ``knots.py``, response and positive weight; ``number`` is the chunk's.

    ``offset`` is the known part of the prediction on the link scale; None if it is zero everywhere.
    ``precision`` divides the likelihood's dispersion (the exposure of an amount); None if it is one.
    Rows with the same number as ``group`` are not independent; None if all are.
    With ``repeats``, columns are those of subjects, of which each has rows at several ``times``: the time
    is a further column, the last.
    """

    columns: Array
    response: Array
    weight: Array
    number: int = 0
    offset: Array | None = None
    precision: Array | None = None
    repeats: Repeats | None = None
    times: Array = field(default_factory=lambda: np.empty(0))
    group: Array | None = None

    def __len__(self) -> int:
        return len(self.response)

    @property
    def extras(self) -> list[Array]:
        """Offset, precision and group as columns (n, 1); (n, 0) where there is none."""
        parts = (self.offset, self.precision, self.group)
        return [np.empty((len(self), 0)) if part is None else part[:, None] for part in parts]

    def with_extras(self, *extras: Array) -> EncodedRows:
        """These rows with the extras of such."""
        offset, precision, group = (each[:, 0] if each.shape[1] else None for each in extras)
        return replace(self, offset=offset, precision=precision, group=group)


#: Goes over chunks once; it can be pickled: a function of a module, or a ``partial`` of one.
Job: TypeAlias = Callable[[Iterable[EncodedRows]], Totals]
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

    table: EncodedRows
    log: Log | None = None

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return int(self.table.columns.shape[1])

    def total(self, job: Job, merge: Merge = add) -> Totals:
        """The job's total over the table."""
        return job([self.table])


@dataclass(frozen=True)
class Spread:
    """Total weight, mean and variance of a response in units of ``magnitude``, a power of two."""

    total_weight: float
    magnitude: float
    mean: float
    variance: float

    @classmethod
    def of(cls, response: Array, weight: Array) -> Spread:
        """The spread of rows in memory, without overflow for huge responses or underflow for tiny ones."""
        total = float(weight.sum())
        magnitude = power_of_two_scale(response)
        scaled = response / magnitude
        fraction = weight / total
        mean = float(fraction @ scaled)
        return cls(total, magnitude, mean, float(fraction @ (scaled - mean) ** 2))

    @property
    def constant(self) -> bool:
        """Whether there is one value only, up to rounding."""
        return bool(np.sqrt(self.variance) <= 1e-14 * abs(self.mean))

    def merged(self, other: Spread) -> Spread:
        """The spread of these rows and others."""
        # Zeros alone have no magnitude: theirs must not make others vanish.
        nonzero = [part.magnitude for part in (self, other) if part.mean or part.variance]
        magnitude = max(nonzero, default=1.0)
        one, two = (min(part.magnitude / magnitude, 1.0) for part in (self, other))
        total = self.total_weight + other.total_weight
        fraction = other.total_weight / total
        step = other.mean * two - self.mean * one
        within = (1.0 - fraction) * self.variance * one**2 + fraction * other.variance * two**2
        between = fraction * (1.0 - fraction) * step**2
        return Spread(total, magnitude, self.mean * one + fraction * step, within + between)


@dataclass(frozen=True)
class Units:
    """The core's units of the response: one in the unit of the prediction has mean 0 and variance 1."""

    likelihood: Likelihood
    shift: float
    scale: float
    total_weight: float

    @classmethod
    def of(cls, spread: Spread, likelihood: Likelihood) -> Units:
        """Standard units of a response."""
        total = spread.total_weight
        if not likelihood.standardised:
            return cls(likelihood, 0.0, 1.0, total)
        shift, size = spread.mean, float(np.sqrt(spread.variance))
        # A constant response varies by rounding only; a small unit keeps its noise small.
        if spread.constant:
            size = 1e-9 * max(abs(shift), 1.0)
        return cls(likelihood, shift * spread.magnitude, size * spread.magnitude, total)

    def standard(self, response: Array) -> Array:
        """A response in these units."""
        if not self.likelihood.standardised:
            return response
        # In two steps, the first of them exact: squares of neither result may overflow or underflow.
        magnitude = power_of_two_scale(np.array([self.scale]))
        centred = response / magnitude - self.shift / magnitude
        return np.asarray(centred / (self.scale / magnitude))

    def log_evidence(self, standard: float) -> float:
        """Log evidence of the response in its original units."""
        if not self.likelihood.standardised:
            return standard
        return standard - self.total_weight * float(np.log(self.scale))

    def standard_evidence(self, original: float) -> float:
        """The inverse of ``log_evidence``."""
        return original - self.log_evidence(0.0)
