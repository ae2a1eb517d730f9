"""What is asked of all rows: the log-likelihood, its slopes, and weights at the terms' entries.

Whatever is asked of all rows is a job over parts of them, of which ``Rows.total`` merges the answers:
where the parts are does not matter here (``rows.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from lanam.core.arrays import Array, IntArray, Intercept, sum_by
from lanam.core.likelihoods import Likelihood
from lanam.core.rows.located import AnyRows, Rows, StreamedRows, added
from lanam.core.rows.reading import read, spread
from lanam.core.rows.tables import Totals

#: Rows at a time: few enough for what is computed of each to stay in the cache, and for memory to be used
#: again.
CHUNK_ROWS = 1 << 13


def predict(rows: Rows, values: Sequence[Array], intercept: Intercept) -> Array:
    """The link-scale prediction of rows from the terms' tabulated values, all outputs at once."""
    f = np.empty((len(rows), *np.shape(intercept)))
    f[:] = intercept
    for position, table in zip(rows.positions, values, strict=True):
        f += read(position, table)
    return f


def entry_sums(rows: Rows, row_values: Array) -> list[Array]:
    """Sums of a row value per table entry, a vector a term."""
    return [
        spread(position, row_values, size)
        for position, size in zip(rows.positions, rows.sizes, strict=True)
    ]


def weigh_entries(null: tuple[Likelihood, Intercept], parts: Iterable[Rows]) -> Totals:
    """Weights at the entries, a vector a term, and the log-likelihood of a constant."""

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


def _value(
    part: Rows, likelihood: Likelihood, values: Sequence[Array], intercept: Intercept
) -> Array:
    """The log-likelihood of rows at hand."""
    f = predict(part, values, intercept)
    return np.array(part.information @ likelihood.log_prob(part.y, f))


def start(rows: AnyRows, likelihood: Likelihood) -> Intercept:
    """The intercept of the best constant model."""
    if isinstance(rows, StreamedRows):
        return rows.start
    (mass,) = rows.total(partial(_response_mass, likelihood))
    return best_constant(likelihood, mass if likelihood.n_classes else mass[:1] / mass[1:])


def best_constant(likelihood: Likelihood, known: Array) -> Intercept:
    """The same by what is known of the response: the classes' weights, or its mean (1,)."""
    if likelihood.n_classes:
        return likelihood.start(np.arange(likelihood.n_classes, dtype=np.float64), known)
    # The mean is all that matters.
    return likelihood.start(known, np.ones(1))


def _response_mass(likelihood: Likelihood, parts: Iterable[Rows]) -> Totals:
    """Weight of every class; otherwise, the weighted sum of the response and the weight."""
    if n_classes := likelihood.n_classes:
        masses = (sum_by(part.y.astype(np.intp), part.weight, n_classes) for part in parts)
        return (np.sum(list(masses), axis=0),)
    sums = (np.array([part.weight @ part.y, part.weight.sum()]) for part in parts)
    return (np.sum(list(sums), axis=0),)


def null_log_likelihood(rows: AnyRows, likelihood: Likelihood) -> float:
    """Log-likelihood at unit noise of the best constant model."""
    if isinstance(rows, StreamedRows) and rows.null is not None:
        return rows.null
    return log_likelihood(rows.keep_terms([]), likelihood, [], start(rows, likelihood))


def own_curvature(curvature: Array) -> Array:
    """The curvature of each output by itself: the rows' diagonals where there are several."""
    return curvature if curvature.ndim == 1 else np.diagonal(curvature, axis1=1, axis2=2)


def curved(curvature: Array, f: Array) -> Array:
    """``diag(gamma) f``; with several outputs ``gamma`` is a matrix a row."""
    return curvature * f if f.ndim == 1 else np.einsum("nij,nj->ni", curvature, f)


def output_places(widths: Sequence[int], n_outputs: int) -> IntArray:
    """Where each output's coordinates stand, and its intercept's (n_outputs, R + 1).

    All outputs of a term follow each other, so that a term has one block; the intercepts come last.
    """
    starts = np.cumsum([0, *widths]) * n_outputs
    places = [
        start + width * output + np.arange(width)
        for output in range(n_outputs)
        for start, width in zip(starts[:-1], widths, strict=True)
    ]
    own = np.concatenate([np.empty(0, np.intp), *places]).reshape(n_outputs, -1)
    return np.column_stack([own, starts[-1] + np.arange(n_outputs)])


def evaluate(table: Array, coordinates: Array, n_outputs: int) -> Array:
    """A term's function at its entries; a column for each of several outputs."""
    values = table @ coordinates.reshape(n_outputs, -1).T
    return values[:, 0] if n_outputs == 1 else values
