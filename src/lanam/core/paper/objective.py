"""What Adam climbs: the log-likelihood of batches of rows plus the log prior of all networks.

Networks are evaluated at the entries of their tables (``stacked.py``) and rows read them there; a
row's slope goes back the same way. Everything per row is done for all terms at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray, Rng
from lanam.core.inference.problem import Problem
from lanam.core.likelihoods import Likelihood
from lanam.core.paper.stacked import Stack
from lanam.core.rows import reading
from lanam.core.rows.located import Rows
from lanam.core.terms.knots import Position
from lanam.core.terms.linearise import centred
from lanam.core.terms.term import SmoothTerm, Term

Single = NDArray[np.float32]

#: The paper's batch size.
BATCH_ROWS = 512


@dataclass(frozen=True)
class Batch:
    """Rows in the precision networks are trained in, each with a position in every term's table.

    ``position`` holds the rows' places in the stack of all tables, row by row. A row reads a grid in
    several places, one at either side of it along every axis but the last; ``share`` is the part each
    place has, None where there are no grids.
    """

    position: Position
    share: Single | None
    y: Array
    weight: Array


@dataclass(frozen=True)
class Objective:
    """Log-likelihood plus log prior of all networks, per unit of the rows' weight.

    Parameters are those of all networks and, last, the intercept. ``pure`` are the maps from a joint
    network's values at its entries to their pure part, which is what rows read.
    """

    stack: Stack
    batch: Batch
    likelihood: Likelihood
    total_weight: float
    pure: tuple[tuple[slice, Array], ...] = ()

    @classmethod
    def of(cls, problem: Problem, dtype: type[np.floating] = np.float32) -> Objective:
        """Single precision is enough for noisy gradients and takes half of the time."""
        terms = smooth_terms(problem.terms)
        stack = Stack(
            tuple(term.architecture for term in terms),
            tuple(term.entries.network_inputs.astype(dtype) for term in terms),
        )
        rows = problem.rows
        assert isinstance(rows, Rows), "batches are drawn from rows at hand"
        position, share = _stack_positions(rows, stack)
        batch = Batch(position, share, rows.y.astype(dtype), rows.weight.astype(dtype))
        pure = tuple(
            (own, centred(term, np.eye(len(term.entries)), data).astype(dtype))
            for term, own, data in zip(terms, stack.entries, problem.shares, strict=True)
            if term.joint
        )
        return cls(stack, batch, problem.likelihood, rows.count, pure)

    def batches(self, rng: Rng) -> Iterator[Batch]:
        """One epoch: all rows in shuffled batches of almost equal size."""
        whole = self.batch
        n_rows = len(whole.y)
        n_batches = -(-n_rows // BATCH_ROWS)
        if n_batches == 1:
            yield whole
            return
        shape = (n_rows, -1)
        index = whole.position.index.reshape(shape)
        for part in np.array_split(rng.permutation(n_rows), n_batches):
            steps = tuple(
                (stride, fraction.reshape(shape)[part].ravel())
                for stride, fraction in whole.position.steps
            )
            share = None if whole.share is None else whole.share[part]
            position = Position(index[part].ravel(), steps)
            yield Batch(position, share, whole.y[part], whole.weight[part])

    def gradient(self, parameters: Array, batch: Batch, precision: Array, noise: float) -> Array:
        """The gradient as a batch sees it; ``precision`` is every parameter's."""
        values, sweeps = self.stack.forward(parameters[:-1].astype(batch.y.dtype))
        for own, pure in self.pure:
            values[own] = pure @ values[own]
        # One more entry: the right neighbour, never read, of a row on the last one.
        table = np.append(values, values[-1:])
        n_rows = len(batch.y)
        parts = reading.read(batch.position, table).reshape(n_rows, -1)
        f = (parts if batch.share is None else parts * batch.share).sum(axis=1)
        f += batch.y.dtype.type(parameters[-1])
        slope = batch.weight * self.likelihood.slope(batch.y, f)
        per_place = np.broadcast_to(slope[:, None], parts.shape)
        per_place = per_place if batch.share is None else per_place * batch.share
        entry_slopes = reading.spread(batch.position, per_place.ravel(), len(table))[:-1]
        for own, pure in self.pure:
            entry_slopes[own] = pure.T @ entry_slopes[own]
        gradient = np.append(
            self.stack.pull_back(sweeps, entry_slopes.astype(slope.dtype)), slope.sum()
        ).astype(np.float64)
        gradient *= len(self.batch.y) / (n_rows * noise)
        gradient[:-1] -= precision * parameters[:-1]
        return gradient / self.total_weight


def smooth_terms(terms: Sequence[Term]) -> list[SmoothTerm]:
    """The terms, which must all be networks."""
    networks = [term for term in terms if isinstance(term, SmoothTerm)]
    assert len(networks) == len(terms), "Adam trains networks only"
    return networks


def _stack_positions(rows: Rows, stack: Stack) -> tuple[Position, Single | None]:
    """Rows' places in the stack of all tables, all places of a row together, and their parts."""
    index, along, share = list[IntArray](), list[Single](), list[Single]()
    zeros, ones = np.zeros(len(rows), np.float32), np.ones(len(rows), np.float32)
    for position, own in zip(rows.positions, stack.entries, strict=True):
        places = [(own.start, ones)]
        for stride, fraction in position.steps:
            if stride > 1:
                ends = ((0, ones - fraction), (stride, fraction))
                places = [(at + more, part * end) for at, part in places for more, end in ends]
        for place, part in places:
            index.append(position.index.astype(np.int32) + place)
            along.append(dict(position.steps).get(1, zeros))
            share.append(part)
    strides = {stride for position in rows.positions for stride, _ in position.steps}
    steps = ((1, np.stack(along, axis=1).ravel()),) if 1 in strides else ()
    stacked = Position(np.stack(index, axis=1).ravel(), steps)
    return stacked, np.stack(share, axis=1) if max(strides, default=1) > 1 else None
