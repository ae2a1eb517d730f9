"""Rows of which several belong to one subject, whose columns hold in all of them.

A subject's follow-up is cut into intervals, with a row for each. What depends on the subject alone is kept
once per subject: sums over rows are first sums over each subject's rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray

#: Some rows of an array.
Part: TypeAlias = slice | NDArray[np.bool_]


@dataclass(frozen=True)
class Repeats:
    """The subject of every row; a subject's rows follow each other, and each has at least one."""

    owner: IntArray

    def __len__(self) -> int:
        return len(self.owner)

    @cached_property
    def starts(self) -> IntArray:
        """The first row of each subject."""
        return np.flatnonzero(np.r_[True, self.owner[1:] != self.owner[:-1]][: len(self)])

    def sum(self, values: Array) -> Array:
        """Sums over the rows of each subject."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=0))

    def part(self, rows: Part) -> tuple[Repeats, slice | IntArray]:
        """Some of the rows, and the subjects that they belong to."""
        owner = self.owner[rows]
        if isinstance(rows, slice):  # subjects in between are complete
            first, last = (int(owner[0]), int(owner[-1])) if len(owner) else (0, -1)
            return Repeats(owner - first), slice(first, last + 1)
        subjects, owner = np.unique(owner, return_inverse=True)
        return Repeats(owner), subjects
