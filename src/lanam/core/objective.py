"""What Adam climbs: the log-likelihood of batches of rows plus the log prior of all networks.

Networks are evaluated at the entries of their tables (``stacked.py``) and rows read them there; a
row's slope goes back the same way. Everything per row is done for all terms at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lanam.core import statistics
from lanam.core.arrays import Array, IntArray
from lanam.core.gauss_newton import Problem
from lanam.core.knots import Position
from lanam.core.likelihoods import Likelihood
from lanam.core.stacked import Stack
from lanam.core.statistics import Rows
from lanam.core.terms import SmoothTerm

#: The paper's batch size.
BATCH_ROWS = 512


@dataclass(frozen=True)
class Batch:
    """Rows in the precision networks are trained in, each with a position in every term's table.

    ``position`` holds the rows' places in the stack of all tables, row by row.
    """

    position: Position
    y: Array
    weight: Array


@dataclass(frozen=True)
class Objective:
    """Log-likelihood plus log prior of all networks, per unit of the rows' weight.

    Parameters are those of all networks and, last, the intercept.
    """

    stack: Stack
    batch: Batch
    likelihood: Likelihood
    total_weight: float

    @classmethod
    def of(cls, problem: Problem, dtype: type[np.floating] = np.float32) -> Objective:
        """Single precision is enough for noisy gradients and takes half of the time."""
        terms = smooth_terms(problem)
        stack = Stack(
            tuple(term.architecture for term in terms),
            tuple(term.entries.network_inputs.astype(dtype) for term in terms),
        )
        rows = problem.rows
        position = _stack_positions(rows, stack)
        batch = Batch(position, rows.y.astype(dtype), rows.weight.astype(dtype))
        return cls(stack, batch, problem.likelihood, float(rows.weight.sum()))

    def batches(self, rng: np.random.Generator) -> Iterator[Batch]:
        """One epoch: all rows in shuffled batches of almost equal size."""
        whole = self.batch
        n_rows = len(whole.y)
        n_batches = -(-n_rows // BATCH_ROWS)
        if n_batches == 1:
            yield whole
            return
        shape = (n_rows, -1)
        index, fraction = whole.position.index.reshape(shape), whole.position.fraction
        for part in np.array_split(rng.permutation(n_rows), n_batches):
            own = None if fraction is None else fraction.reshape(shape)[part].ravel()
            yield Batch(Position(index[part].ravel(), own), whole.y[part], whole.weight[part])

    def gradient(self, parameters: Array, batch: Batch, precision: Array, noise: float) -> Array:
        """The gradient as a batch sees it; ``precision`` is every parameter's."""
        values, sweeps = self.stack.forward(parameters[:-1].astype(batch.y.dtype))
        # One more entry: the right neighbour, never read, of a row on the last one.
        table = np.append(values, values[-1:])
        n_rows = len(batch.y)
        f = statistics.read(batch.position, table).reshape(n_rows, -1).sum(axis=1)
        f += batch.y.dtype.type(parameters[-1])
        slope = batch.weight * self.likelihood.slope(batch.y, f)
        per_term = np.repeat(slope, len(self.stack.inputs))
        entry_slopes = statistics.spread(batch.position, per_term, len(table))[:-1]
        gradient = np.append(
            self.stack.pull_back(sweeps, entry_slopes.astype(slope.dtype)), slope.sum()
        ).astype(np.float64)
        gradient *= len(self.batch.y) / (n_rows * noise)
        gradient[:-1] -= precision * parameters[:-1]
        return gradient / self.total_weight


def smooth_terms(problem: Problem) -> list[SmoothTerm]:
    """The problem's terms, which must all be networks."""
    terms = [term for term in problem.terms if isinstance(term, SmoothTerm)]
    assert len(terms) == len(problem.terms), "Adam trains networks only"
    return terms


def _stack_positions(rows: Rows, stack: Stack) -> Position:
    """Rows' places in the stack of all tables, all terms of a row together."""
    first = [own.start for own in stack.entries]
    index: IntArray = np.stack(
        [
            position.index.astype(np.int32) + start
            for position, start in zip(rows.positions, first, strict=True)
        ],
        axis=1,
    )
    if all(position.fraction is None for position in rows.positions):
        return Position(index.ravel(), None)
    zeros = np.zeros(len(rows), dtype=np.float32)
    fraction = np.stack(
        [zeros if p.fraction is None else p.fraction for p in rows.positions], axis=1
    )
    return Position(index.ravel(), fraction.ravel())
