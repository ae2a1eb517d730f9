"""A table in chunks, as engines provide them."""

import pickle
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lanam.core.rows.tables import EncodedRows, add

#: Ends of chunks as fractions of the rows, and the number of chunks per job.
CUTS = {
    "one chunk": ((), 1),
    "odd ones": ((0.003, 0.011, 0.4, 0.41, 0.8), 1),
    "odd ones in groups": ((0.003, 0.011, 0.4, 0.41, 0.8), 4),
    "one pass": ((0.1, 0.2, 0.9), 9),
    "many": (tuple(np.arange(1, 29) / 29), 3),
}


@dataclass(frozen=True)
class Chunks:
    """A table in chunks that end at ``ends``; a job has ``at_once`` of them.

    Jobs and merges are pickled, as for another machine; chunks can be iterated once; totals are merged in
    the order of the rows, as a tree.
    """

    table: EncodedRows
    ends: tuple[int, ...] = ()
    at_once: int = 1

    @property
    def n_columns(self):
        return self.table.columns.shape[1]

    def chunks(self):
        bounds = [0, *self.ends, len(self.table)]
        for number, (start, end) in enumerate(pairwise(bounds)):
            rows = slice(start, end)
            # Numbers are ascending, not necessarily consecutive.
            parts = (self.table.columns[rows], self.table.response[rows], self.table.weight[rows])
            yield EncodedRows(*(part.copy() for part in parts), number=3 * number + 1)

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
    """Arrays in chunks, cut by a named scheme."""
    n_rows = len(columns)
    y = np.zeros(n_rows) if y is None else y
    weight = np.ones(n_rows) if weight is None else weight
    fractions, at_once = CUTS[how]
    ends = tuple(dict.fromkeys(int(np.ceil(fraction * n_rows)) for fraction in fractions))
    return Chunks(EncodedRows(columns, y, weight), ends, at_once)
