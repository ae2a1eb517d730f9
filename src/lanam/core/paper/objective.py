"""Adam's objective: the log-likelihood of batches of rows plus the log prior of all parameters.

Networks are evaluated at the entries of their tables and rows interpolate there: a row is a sparse row of
interpolation weights ``W``, its prediction is ``W`` times the values, and its gradient goes back by ``W'``.
All runs see the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from lanam.core.arrays import Array, IntArray, Rng
from lanam.core.inference.problem import Problem
from lanam.core.likelihoods import Likelihood
from lanam.core.paper.stack import Floats, Layout, Stack
from lanam.core.rows.located import Rows
from lanam.core.terms.linearise import centred

#: A row's gradient is taken to be no larger: rates beyond what single precision holds.
_LARGEST_GRADIENT = 1e12


@dataclass(frozen=True)
class Batch:
    """Rows of the interpolation weights, with responses, information, and known parts of predictions."""

    weights: csr_array
    y: Array
    information: Array
    offset: Array

    def rows(self, start: int, stop: int) -> Batch:
        """Some of the rows; each has the same number of weights."""
        size, width = stop - start, len(self.weights.indices) // len(self.y)
        part = slice(start * width, stop * width)
        arrays = self.weights.data[part], self.weights.indices[part]
        pointers = self.weights.indptr[: size + 1]
        weights = csr_array((*arrays, pointers), (size, self.weights.shape[1]))
        return Batch(weights, *(values[start:stop] for values in self._per_row))

    def shuffled(self, order: IntArray) -> Batch:
        """The rows in another order."""
        shape = (len(self.y), -1)
        indices = self.weights.indices.reshape(shape)[order].ravel()
        data = self.weights.data.reshape(shape)[order].ravel()
        weights = csr_array((data, indices, self.weights.indptr), self.weights.shape)
        return Batch(weights, *(values[order] for values in self._per_row))

    @property
    def _per_row(self) -> tuple[Array, Array, Array]:
        return self.y, self.information, self.offset

    @cached_property
    def transposed(self) -> csr_array:
        """``W'``, to go back by."""
        return self.weights.T


class Objective:
    """Log-likelihood plus log prior of all runs, per unit of the rows' weight.

    ``parameters`` (R K, P) are those of every run's outputs, the intercept last: training changes them in
    place. ``pure`` purify the values of joint networks at their entries.
    """

    def __init__(
        self,
        problem: Problem,
        layout: Layout,
        parameters: Array,
        batch_rows: int,
        dtype: type[np.floating] = np.float32,
    ) -> None:
        """Single precision suffices for noisy gradients and takes half of the time."""
        assert isinstance(problem.rows, Rows), "batches are drawn from rows in memory"
        self.problem, self.layout, self._batch_rows = problem, layout, batch_rows
        self.parameters = parameters.astype(dtype)
        self.stack = Stack(layout, self.parameters)
        rows = problem.rows
        weights = interpolation(rows, self.stack.columns, self.stack.values.shape[1], dtype)
        offset = np.zeros(len(rows)) if rows.offset is None else rows.offset
        self.whole = Batch(weights, rows.y, rows.information, offset)
        n_runs = len(parameters) // problem.likelihood.n_outputs
        #: of every run, as each learns its own parameters
        self.likelihoods: list[Likelihood] = [problem.likelihood] * n_runs
        terms = zip(problem.terms, layout.seen, self.stack.columns, problem.data_mass, strict=True)
        self._pure = [
            (columns[seen], centred(term, np.eye(len(columns)), mass)[np.ix_(seen, seen)])
            for term, seen, columns, mass in terms
            if term.joint and term.pure
        ]
        self._pure = [(columns, pure.astype(dtype)) for columns, pure in self._pure]

    def of(self, parameters: Floats) -> Objective:
        """The same with other runs."""
        dtype = type(parameters.flat[0])
        return Objective(self.problem, self.layout, parameters, self._batch_rows, dtype)

    def batches(self, rng: Rng) -> Iterator[Batch]:
        """One epoch: all rows in shuffled batches of almost equal size."""
        n_rows = len(self.whole.y)
        n_batches = -(-n_rows // self._batch_rows)
        if n_batches == 1:
            yield self.whole
            return
        shuffled = self.whole.shuffled(rng.permutation(n_rows))
        ends = np.linspace(0, n_rows, n_batches + 1).astype(int).tolist()
        for start, stop in pairwise(ends):
            yield shuffled.rows(start, stop)

    def gradient(self, batch: Batch, precision: Floats, noise: Floats) -> Floats:
        """The gradient (R K, P) estimated from a batch.

        ``precision`` is that of every parameter (R K, P), ``noise`` that of every copy (R K, 1).
        """
        stack = self.stack
        stack.forward()
        for columns, pure in self._pure:
            stack.values[:, columns] = stack.values[:, columns] @ pure.T
        pulls = self._row_gradients(batch, (batch.weights @ stack.values.T).T)
        stack.pull[:] = (batch.transposed @ np.ascontiguousarray(pulls.T, stack.pull.dtype)).T
        for columns, pure in self._pure:
            stack.pull[:, columns] = stack.pull[:, columns] @ pure
        stack.backward()
        count = self.problem.rows.count
        gradient = stack.gradient
        gradient *= len(self.whole.y) / (len(batch.y) * count * noise)
        prior = precision * self.parameters
        prior /= count
        gradient -= prior
        return gradient

    def _row_gradients(self, batch: Batch, f: Floats) -> Array:
        """Derivatives (R K, n) of the rows' log-likelihood in their predictions (R K, n)."""
        n_runs, n_rows = len(self.likelihoods), len(batch.y)
        by_run = f.reshape(n_runs, -1, n_rows).swapaxes(1, 2) + batch.offset[:, None]
        if all(likelihood is self.likelihoods[0] for likelihood in self.likelihoods):
            # Rows of all runs one after another.
            y = np.tile(batch.y, n_runs)
            found = _gradient(self.likelihoods[0], y, by_run.reshape(len(y), -1))
        else:
            pairs = zip(self.likelihoods, by_run, strict=True)
            found = np.stack([_gradient(likelihood, batch.y, own) for likelihood, own in pairs])
        found = np.clip(found, -_LARGEST_GRADIENT, _LARGEST_GRADIENT).reshape(by_run.shape)
        found *= batch.information[:, None]
        return np.asarray(found.swapaxes(1, 2).reshape(len(f), n_rows))


def _gradient(likelihood: Likelihood, y: Array, f: Array) -> Array:
    """Derivatives of the rows' log-likelihood at predictions (n, K)."""
    return likelihood.gradient(y, f[:, 0] if f.shape[1] == 1 else f)


def interpolation(
    rows: Rows, columns: Sequence[IntArray], n_columns: int, dtype: type[np.floating] = np.float64
) -> csr_array:
    """The rows' interpolation weights of all terms' entries; ``columns`` are those of a term's entries.

    A one for the intercept, in the last column, comes last. Every row has as many weights.
    """
    n_rows = len(rows)
    indices, data = list[IntArray](), list[Floats]()
    for of_subjects, own in zip(rows.positions, columns, strict=True):
        position = of_subjects.of_rows
        corners = [(0, np.ones(n_rows, np.float32))]
        for stride, fraction in position.steps:
            ends = ((0, 1.0 - fraction), (stride, fraction))
            corners = [(at + shift, part * end) for at, part in corners for shift, end in ends]
        for shift, part in corners:
            # A row on the last entry has no weight beyond it.
            entry = np.minimum(position.index.astype(np.intp) + shift, len(own) - 1)
            indices.append(own[entry])
            data.append(part)
    indices.append(np.full(n_rows, n_columns - 1))
    data.append(np.ones(n_rows))
    width = len(indices)
    return csr_array(
        (
            np.stack(data, axis=1).ravel().astype(dtype),
            np.stack(indices, axis=1).ravel().astype(np.int32),
            np.arange(0, width * n_rows + 1, width, dtype=np.int32),
        ),
        shape=(n_rows, n_columns),
    )
