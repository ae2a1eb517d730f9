"""Adam's objective: the log-likelihood of batches of rows plus the log prior of all networks.

Networks are evaluated at the entries of their tables and rows interpolate there; a row's gradient goes back
the same way, and through the networks by one backward sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray, Rng, slices
from lanam.core.inference.problem import Problem
from lanam.core.rows import reading
from lanam.core.rows.located import Rows
from lanam.core.terms import networks
from lanam.core.terms.knots import Position
from lanam.core.terms.linearise import centred
from lanam.core.terms.term import SmoothTerm, Term

Single = NDArray[np.float32]

#: The paper's batch size.
BATCH_ROWS = 512


#: A bundle takes terms until it has this many entries. An activation is a dozen passes over its argument,
#: and with several thousand entries at once each number took several times longer.
_BUNDLE_ENTRIES = 256


@dataclass(frozen=True)
class Sweep:
    """Values at the entries, with the tensors and layers they came through."""

    values: Array
    tensors: tuple[list[Array], ...]
    activations: tuple[Array, ...]
    derivatives: tuple[Array, ...]


@dataclass(frozen=True)
class _Networks:
    """Networks and their inputs (B_d, n_inputs), stacked."""

    architectures: tuple[networks.Architecture, ...]
    inputs: tuple[Array, ...]

    @cached_property
    def entries(self) -> tuple[slice, ...]:
        """Each network's entries."""
        return slices(map(len, self.inputs))

    @cached_property
    def parameters(self) -> tuple[slice, ...]:
        """Each network's parameters in the vector of all."""
        return slices(architecture.n_parameters for architecture in self.architectures)


@dataclass(frozen=True)
class _Bundle(_Networks):
    """Networks with the same hidden layers and activation, swept together.

    A layer is one small matrix product per network, written into its part of the bundle, and one pass of
    the activation over all: no padding, and no Jacobian is formed.
    """

    def forward(self, theta: Array) -> Sweep:
        """Values of all networks at parameters ``theta``, and the intermediate results for derivatives."""
        hidden_sizes = self.architectures[0].finite
        activate = networks.ACTIVATIONS[self.architectures[0].activation]
        tensors = self._tensors(theta)
        n_entries = self.entries[-1].stop
        activations, derivatives = list[Array](), list[Array]()
        for layer, size in enumerate(hidden_sizes):
            before = np.empty((n_entries, size), dtype=theta.dtype)
            for k, rows in enumerate(self.entries):
                weight, bias = tensors[k][2 * layer : 2 * layer + 2]
                entering = activations[-1][rows] if layer else self.inputs[k]
                np.matmul(entering, weight, out=before[rows])
                before[rows] += bias
            value, derivative = activate(before)
            activations.append(value)
            derivatives.append(derivative)
        values = np.empty(n_entries, dtype=theta.dtype)
        for k, rows in enumerate(self.entries):
            np.matmul(activations[-1][rows], tensors[k][-1], out=values[rows])
        return Sweep(values, tensors, tuple(activations), tuple(derivatives))

    def pull_back(self, sweep: Sweep, entry_gradient: Array) -> Array:
        """The gradient in all parameters of ``entry_gradient' values``: a vector-Jacobian product."""
        gradient = np.empty(self.parameters[-1].stop, dtype=entry_gradient.dtype)
        parts = self._tensors(gradient)
        signal = np.empty_like(sweep.derivatives[-1])
        for k, rows in enumerate(self.entries):
            np.matmul(entry_gradient[rows], sweep.activations[-1][rows], out=parts[k][-1])
            np.multiply.outer(entry_gradient[rows], sweep.tensors[k][-1], out=signal[rows])
        for layer in reversed(range(len(sweep.derivatives))):
            signal *= sweep.derivatives[layer]
            below = np.empty_like(sweep.derivatives[layer - 1])
            for k, rows in enumerate(self.entries):
                entering = sweep.activations[layer - 1][rows] if layer else self.inputs[k]
                np.matmul(entering.T, signal[rows], out=parts[k][2 * layer])
                np.sum(signal[rows], axis=0, out=parts[k][2 * layer + 1])
                if layer:
                    np.matmul(signal[rows], sweep.tensors[k][2 * layer].T, out=below[rows])
            signal = below
        return gradient

    def _tensors(self, theta: Array) -> tuple[list[Array], ...]:
        return tuple(
            networks.unflatten(architecture, theta[part])
            for architecture, part in zip(self.architectures, self.parameters, strict=True)
        )


@dataclass(frozen=True)
class Stack(_Networks):
    """All terms' networks, in bundles that fit into the cache."""

    @cached_property
    def _bundles(self) -> list[tuple[slice, slice, _Bundle]]:
        """Each bundle's entries, its parameters, and itself."""

        def kind(k: int) -> tuple[object, ...]:
            # An interaction's network may have other layers than a column's.
            network, block = self.architectures[k], self.entries[k].start // _BUNDLE_ENTRIES
            return network.finite, network.activation, block

        bundles = []
        for _, group in groupby(range(len(self.inputs)), kind):
            members = list(group)
            terms = slice(members[0], members[-1] + 1)
            entries, parameters = self.entries[terms], self.parameters[terms]
            bundles.append(
                (
                    slice(entries[0].start, entries[-1].stop),
                    slice(parameters[0].start, parameters[-1].stop),
                    _Bundle(self.architectures[terms], self.inputs[terms]),
                )
            )
        return bundles

    def forward(self, theta: Array) -> tuple[Array, list[Sweep]]:
        """Values at all entries at parameters ``theta``, and the intermediate results for derivatives."""
        sweeps = [bundle.forward(theta[parameters]) for _, parameters, bundle in self._bundles]
        return np.concatenate([sweep.values for sweep in sweeps]), sweeps

    def pull_back(self, sweeps: Sequence[Sweep], entry_gradient: Array) -> Array:
        """The gradient in all parameters of ``entry_gradient' values``: a vector-Jacobian product."""
        swept = zip(self._bundles, sweeps, strict=True)
        parts = [
            bundle.pull_back(sweep, entry_gradient[rows]) for (rows, _, bundle), sweep in swept
        ]
        return np.concatenate(parts)


@dataclass(frozen=True)
class Batch:
    """Rows in the floating-point type of the networks, with their positions in the stack of all tables.

    Positions are row by row. A row has several in a grid, one at either side of it along every axis but the
    last; ``corner_weight`` is the interpolation weight of each, None without grids.
    """

    position: Position
    corner_weight: Single | None
    y: Array
    weight: Array


@dataclass(frozen=True)
class Objective:
    """Log-likelihood plus log prior of all networks, per unit of the rows' weight.

    Parameters are those of all networks and, last, the intercept. ``pure`` are the matrices that purify the
    values of joint networks at their entries.
    """

    problem: Problem
    stack: Stack
    batch: Batch
    pure: tuple[tuple[slice, Array], ...] = ()

    @classmethod
    def of(cls, problem: Problem, dtype: type[np.floating] = np.float32) -> Objective:
        """Single precision suffices for noisy gradients and takes half of the time."""
        terms = smooth_terms(problem.terms)
        stack = Stack(
            tuple(term.architecture for term in terms),
            tuple(term.entries.network_inputs.astype(dtype) for term in terms),
        )
        rows = problem.rows
        assert isinstance(rows, Rows), "batches are drawn from rows in memory"
        position, corner_weight = _stack_positions(rows, stack)
        batch = Batch(position, corner_weight, rows.y.astype(dtype), rows.weight.astype(dtype))
        pure = tuple(
            (entries, centred(term, np.eye(len(term.entries)), mass).astype(dtype))
            for term, entries, mass in zip(terms, stack.entries, problem.data_mass, strict=True)
            if term.joint
        )
        return cls(problem, stack, batch, pure)

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
            corner_weight = None if whole.corner_weight is None else whole.corner_weight[part]
            position = Position(index[part].ravel(), steps)
            yield Batch(position, corner_weight, whole.y[part], whole.weight[part])

    def gradient(self, parameters: Array, batch: Batch, precision: Array, noise: float) -> Array:
        """The gradient estimated from a batch; ``precision`` is that of every parameter."""
        values, sweeps = self.stack.forward(parameters[:-1].astype(batch.y.dtype))
        for entries, pure in self.pure:
            values[entries] = pure @ values[entries]
        # One more entry: the right neighbour, with weight zero, of a row on the last one.
        table = np.append(values, values[-1:])
        n_rows = len(batch.y)
        parts = reading.read(batch.position, table).reshape(n_rows, -1)
        f = (parts if batch.corner_weight is None else parts * batch.corner_weight).sum(axis=1)
        f += batch.y.dtype.type(parameters[-1])
        row_gradient = batch.weight * self.problem.likelihood.gradient(batch.y, f)
        per_place = np.broadcast_to(row_gradient[:, None], parts.shape)
        per_place = per_place if batch.corner_weight is None else per_place * batch.corner_weight
        entry_gradient = reading.spread(batch.position, per_place.ravel(), len(table))[:-1]
        for entries, pure in self.pure:
            entry_gradient[entries] = pure.T @ entry_gradient[entries]
        gradient = np.append(
            self.stack.pull_back(sweeps, entry_gradient.astype(row_gradient.dtype)),
            row_gradient.sum(),
        ).astype(np.float64)
        gradient *= len(self.batch.y) / (n_rows * noise)
        gradient[:-1] -= precision * parameters[:-1]
        return gradient / self.problem.rows.count


def smooth_terms(terms: Sequence[Term]) -> list[SmoothTerm]:
    """The terms, all of them networks."""
    smooth = [term for term in terms if isinstance(term, SmoothTerm)]
    assert len(smooth) == len(terms), "Adam trains networks only"
    return smooth


def _stack_positions(rows: Rows, stack: Stack) -> tuple[Position, Single | None]:
    """Positions in the stack of all tables, those of a row together, and their interpolation weights."""
    index, along, corner_weight = list[IntArray](), list[Single](), list[Single]()
    zeros, ones = np.zeros(len(rows), np.float32), np.ones(len(rows), np.float32)
    for position, entries in zip(rows.positions, stack.entries, strict=True):
        places = [(entries.start, ones)]
        for stride, fraction in position.steps:
            if stride > 1:
                ends = ((0, ones - fraction), (stride, fraction))
                places = [(at + shift, part * end) for at, part in places for shift, end in ends]
        for place, part in places:
            index.append(position.index.astype(np.int32) + place)
            along.append(dict(position.steps).get(1, zeros))
            corner_weight.append(part)
    strides = {stride for position in rows.positions for stride, _ in position.steps}
    steps = ((1, np.stack(along, axis=1).ravel()),) if 1 in strides else ()
    stacked = Position(np.stack(index, axis=1).ravel(), steps)
    return stacked, np.stack(corner_weight, axis=1) if max(strides, default=1) > 1 else None
