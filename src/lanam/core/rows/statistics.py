"""Statistics of all rows: the log-likelihood, its quadratic expansion, and weights at the terms' entries.

All that a fit needs of the data is the log-likelihood as a quadratic in the prediction (method.md 2c),

    log p(y | f) ~ constant + h' f - 1/2 f' diag(gamma) f,

exact and computed once for a Gaussian likelihood, recomputed around each new prediction for others. With
``f = Z z``, ``Z = [W_1 T_1, ..., W_D T_D, 1]``, that is ``Z' diag(gamma) Z`` and ``Z' h``, in two forms
with one interface (``quadratics.py``, ``cross_tables.py``).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lanam.core.arrays import Array, IntArray, Intercept
from lanam.core.likelihoods import Likelihood
from lanam.core.rows.located import AnyRows, Rows, StreamedRows, added
from lanam.core.rows.reading import read, spread
from lanam.core.rows.tables import Totals

#: Rows at a time: intermediate results stay in the cache, and memory is reused.
CHUNK_ROWS = 1 << 13

#: Newton's steps to the intercept of a constant model, and the last one.
_NEWTON_STEPS = 100
_NEWTON_TOL = 1e-10


def predict(rows: Rows, values: Sequence[Array], intercept: Intercept) -> Array:
    """The link-scale prediction of rows from the terms' tabulated values, all outputs at once."""
    shape = np.shape(intercept)
    f = np.empty((len(rows), *shape))
    f[:] = intercept
    if rows.offset is not None:
        f += rows.offset
    # What depends on a subject alone is summed once per subject.
    own = np.zeros((0 if rows.repeats is None else len(rows.repeats.starts), *shape))
    for position, table in zip(rows.positions, values, strict=True):
        if position.repeats is None:
            f += read(position, table)
        else:
            own += read(position.of_subjects, table)
    if rows.repeats is not None:
        f += own[rows.repeats.owner]
    return f


def entry_sums(rows: Rows, row_values: Array) -> list[Array]:
    """Sums of a row value per table entry, one vector per term."""
    own = None if rows.repeats is None else rows.repeats.sum(row_values)
    return [
        spread(position, row_values, size)
        if own is None or position.repeats is None
        else spread(position.of_subjects, own, size)
        for position, size in zip(rows.positions, rows.sizes, strict=True)
    ]


def weigh_entries(null: tuple[Likelihood, Intercept], parts: Iterable[Rows]) -> Totals:
    """Weights at the entries, one vector per term, and the log-likelihood of a constant."""

    def of(part: Rows) -> Totals:
        return *entry_sums(part, part.weight), _value(part.keep_terms([]), null[0], [], null[1])

    return added(parts, CHUNK_ROWS, of)


def log_likelihood(
    rows: AnyRows, likelihood: Likelihood, values: Sequence[Array], intercept: Intercept
) -> float:
    """Weighted log-likelihood of all rows, at unit noise."""
    (total,) = rows.total(partial(_log_likelihood, likelihood, values, intercept))
    return float(total)


def _log_likelihood(
    likelihood: Likelihood, values: Sequence[Array], intercept: Intercept, parts: Iterable[Rows]
) -> Totals:
    return added(parts, CHUNK_ROWS, lambda part: (_value(part, likelihood, values, intercept),))


def log_densities(part: Rows, likelihood: Likelihood, f: Array) -> Array:
    """The log-density of each row's observation, with the row's precision, at unit noise."""
    values, rest = likelihood.log_prob(part.y, f), likelihood.normaliser(part.y, part.precision)
    values = values if part.precision is None else part.precision * values
    return values if rest is None else values + rest


def _value(
    part: Rows, likelihood: Likelihood, values: Sequence[Array], intercept: Intercept
) -> Array:
    """The log-likelihood of rows in memory."""
    f = predict(part, values, intercept)
    return np.array(part.weight @ log_densities(part, likelihood, f))


def fit_intercept_only(rows: AnyRows, likelihood: Likelihood) -> Intercept:
    """The intercept of the best constant model, beside the offsets."""
    if isinstance(rows, StreamedRows):
        return rows.null_intercept
    start = likelihood.fit_intercept_only(rows.y, rows.information)
    if rows.offset is None or not isinstance(start, float):
        return start
    return _fit_beside_offset(rows, likelihood, start)


def _fit_beside_offset(rows: Rows, likelihood: Likelihood, start: float) -> float:
    """Newton's steps from the intercept without offsets, less their mean."""
    assert rows.offset is not None
    intercept = start - float(np.average(rows.offset, weights=rows.information))
    for _ in range(_NEWTON_STEPS):
        f = intercept + rows.offset
        gradient = float(rows.information @ likelihood.gradient(rows.y, f))
        curvature = float(rows.information @ likelihood.curvature(f))
        step = float(np.clip(gradient / max(curvature, np.finfo(float).tiny), -1.0, 1.0))
        intercept += step
        if abs(step) < _NEWTON_TOL:
            break
    return intercept


def null_log_likelihood(rows: AnyRows, likelihood: Likelihood) -> float:
    """Log-likelihood at unit noise of the best constant model."""
    if isinstance(rows, StreamedRows) and rows.null is not None:
        return rows.null
    return log_likelihood(rows.keep_terms([]), likelihood, [], fit_intercept_only(rows, likelihood))


def own_curvature(curvature: Array) -> Array:
    """The curvature of each output by itself: the diagonals where there are several."""
    return curvature if curvature.ndim == 1 else np.diagonal(curvature, axis1=1, axis2=2)


def curved(curvature: Array, f: Array) -> Array:
    """``diag(gamma) f``; with several outputs ``gamma`` is one matrix per row."""
    return curvature * f if f.ndim == 1 else np.einsum("nij,nj->ni", curvature, f)


def output_places(widths: Sequence[int], n_outputs: int) -> IntArray:
    """Indices of each output's coordinates and of its intercept (n_outputs, R + 1).

    All outputs of a term are consecutive, so that a term has one block; the intercepts come last.
    """
    starts = np.cumsum([0, *widths]) * n_outputs
    outputs = np.arange(n_outputs)[:, None]
    blocks = [
        start + width * outputs + np.arange(width)
        for start, width in zip(starts[:-1], widths, strict=True)
    ]
    return np.hstack([*blocks, starts[-1] + outputs])


def evaluate(table: Array, coordinates: Array, n_outputs: int) -> Array:
    """A term's function at its entries; one column per output where there are several."""
    values = table @ coordinates.reshape(n_outputs, -1).T
    return values[:, 0] if n_outputs == 1 else values


@dataclass(frozen=True)
class Expansion:
    """The quadratic of some rows: ``h``, ``gamma``, its constant, and its value where it is expanded."""

    pseudo_response: Array
    curvature: Array
    constant: float
    value: float


@dataclass(frozen=True)
class Around:
    """The point around which the log-likelihood is expanded."""

    likelihood: Likelihood
    values: tuple[Array, ...]
    intercept: Intercept

    def predict(self, part: Rows) -> Array:
        """The link-scale prediction of some rows."""
        return predict(part, self.values, self.intercept)

    def derivatives(self, part: Rows, f: Array | None = None) -> tuple[Array, Array]:
        """Gradient and curvature of every row's weighted log-likelihood, at ``f`` or at the prediction."""
        f = self.predict(part) if f is None else f
        gradient, curvature = self.likelihood.gradient(part.y, f), self.likelihood.curvature(f)
        # One weight per row, whatever the shape.
        return (gradient.T * part.information).T, (curvature.T * part.information).T

    def expand(self, part: Rows) -> Expansion:
        """The quadratic of some rows: a second-order expansion of their weighted log-likelihood."""
        # An exact quadratic is the same around any point.
        exact = self.likelihood.quadratic
        f = np.zeros(len(part)) if exact else self.predict(part)
        gradient, curvature = self.derivatives(part, f)
        value = float(part.weight @ log_densities(part, self.likelihood, f))
        if part.offset is not None:  # the quadratic is one in what is added to it
            f = f - part.offset
        bent = curved(curvature, f)
        constant = value - float(np.vdot(f, gradient)) - 0.5 * float(np.vdot(f, bent))
        return Expansion(gradient + bent, curvature, constant, value)

    def expand_all(self, part: Rows) -> Expansion:
        """The same for many rows, chunk by chunk."""
        chunks = [self.expand(chunk) for chunk in part.parts(CHUNK_ROWS)]
        return Expansion(
            np.concatenate([chunk.pseudo_response for chunk in chunks]),
            np.concatenate([chunk.curvature for chunk in chunks]),
            sum(chunk.constant for chunk in chunks),
            sum(chunk.value for chunk in chunks),
        )


def same_arrays(first: Sequence[Array], second: Sequence[Array]) -> bool:
    """Whether these are identical objects."""
    return len(first) == len(second) and all(map(operator.is_, first, second))
