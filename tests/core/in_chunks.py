"""Rows that are not at hand: a table cut into chunks, as engines have them."""

import pickle
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lanam.core.rows.tables import Table, add

#: Ways to cut rows, as shares of them, and how many chunks a job is given at once.
CUTS = {
    "one chunk": ((), 1),
    "odd ones": ((0.003, 0.011, 0.4, 0.41, 0.8), 1),
    "odd ones in groups": ((0.003, 0.011, 0.4, 0.41, 0.8), 4),
    "one pass": ((0.1, 0.2, 0.9), 9),
    "many": (tuple(np.arange(1, 29) / 29), 3),
}


@dataclass(frozen=True)
class Chunks:
    """A table in chunks that end at ``ends``; a job is given ``at_once`` of them.

    Jobs and merges are sent through ``pickle``, as to another machine; chunks can be gone over once; and
    totals are merged in the order of the rows, but as a tree.
    """

    table: Table
    ends: tuple[int, ...] = ()
    at_once: int = 1

    @property
    def n_columns(self):
        return self.table.columns.shape[1]

    def chunks(self):
        bounds = [0, *self.ends, len(self.table)]
        for number, (start, end) in enumerate(pairwise(bounds)):
            own = slice(start, end)
            # Numbers are in order, but need not be the next.
            parts = (self.table.columns[own], self.table.response[own], self.table.weight[own])
            yield Table(*(part.copy() for part in parts), number=3 * number + 1)

    def total(self, job, merge=add):
        job, merge = (pickle.loads(pickle.dumps(sent)) for sent in (job, merge))
        chunks = list(self.chunks())
        groups = [chunks[k : k + self.at_once] for k in range(0, len(chunks), self.at_once)]
        return _tree([job(iter(group)) for group in groups], merge)


def _tree(totals, merge):
    if len(totals) == 1:
        return totals[0]
    half = (len(totals) + 1) // 2
    return merge(_tree(totals[:half], merge), _tree(totals[half:], merge))


def cut(how, columns, y=None, weight=None):
    """Arrays in chunks, by the name of a way to cut them."""
    n_rows = len(columns)
    y = np.zeros(n_rows) if y is None else y
    weight = np.ones(n_rows) if weight is None else weight
    shares, at_once = CUTS[how]
    ends = tuple(dict.fromkeys(int(np.ceil(share * n_rows)) for share in shares))
    return Chunks(Table(columns, y, weight), ends, at_once)
