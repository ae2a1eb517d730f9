"""Fitted model and rows to predictions: looking up tables (method.md 3).

``columns`` is the (n, D) float array of a model's columns. Rows are scored in chunks, so memory does
not grow with their number beyond the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, quadratic_forms
from lanam.core.model.fitted import FittedModel, FittedTerm
from lanam.core.model.mixtures import GAUSSIAN, Mixture
from lanam.core.rows.reading import read
from lanam.core.rows.statistics import output_places
from lanam.core.terms.knots import Knots, locate

_CHUNK_ROWS = 1 << 14


def _chunks(model: FittedModel, n_rows: int) -> Iterator[slice]:
    # Every output has a design of its own, with coordinates of every output.
    size = max(_CHUNK_ROWS // model.n_outputs**2, 1)
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


#: What reads the rows of a term's table, or of any other over its entries.
Reader = Callable[[Array], Array]


def _reader(term: FittedTerm, columns: Array) -> Reader:
    """Reads a term's tables by rows; zero where a value is missing that never was in the data."""
    assert term.entries is not None
    position = locate(term.entries, term.features, columns)
    unknown = np.flatnonzero(term.unknown(columns))

    def rows_of(table: Array) -> Array:
        rows = read(position, table)
        rows[unknown] = 0.0
        return rows

    return rows_of


def link_mean(model: FittedModel, columns: Array) -> Array:
    """Mean of the link-scale prediction; of each class where there are several (n, C)."""
    result = _intercepts(model, len(columns))
    for part, k, rows_of in _by_term(model, columns):
        result[part] += rows_of(model.terms[k].mean)
    return result


def _by_term(
    model: FittedModel, columns: Array, terms: Sequence[int] | None = None
) -> Iterator[tuple[slice, int, Reader]]:
    """Some rows after others, and what reads the tables of every active term there, or of some."""
    for part in _chunks(model, len(columns)):
        for k in range(len(model.terms)) if terms is None else terms:
            if model.terms[k].active:
                yield part, k, _reader(model.terms[k], columns[part])


def _intercepts(model: FittedModel, n_rows: int) -> Array:
    result = np.empty((n_rows, *np.shape(model.intercept)))
    result[:] = model.intercept
    return result


def link_moments(model: FittedModel, columns: Array) -> tuple[Array, Array]:
    """Mean and variance of the link-scale prediction.

    With several classes, each row's mean of every class (n, C) and their covariance (n, C, C).
    """
    return _moments(model, None, columns, None)


def sum_moments(
    model: FittedModel, terms: Sequence[int], columns: Array, reference: Array | None = None
) -> tuple[Array, Array]:
    """Mean and variance of the sum of some terms, without the intercept, in the form of `link_moments`.

    With the rows of ``reference``, as many as those of ``columns`` or a single one for all, of what the
    sum is in ``columns`` beyond what it is there: errors that both rows share cancel. Missing values
    where the data had none may be anything in either row. Columns that no term reads may hold anything.
    """
    return _moments(model, terms, columns, reference)


def _moments(
    model: FittedModel, terms: Sequence[int] | None, columns: Array, reference: Array | None
) -> tuple[Array, Array]:
    """The same of some terms or, where none are named, of all and the intercept."""
    mean = np.empty((len(columns), *np.shape(model.intercept)))
    variance = np.empty((len(columns), *np.shape(model.intercept) * 2))
    for part in _chunks(model, len(columns)):
        sides = [columns[part]]
        if reference is not None:
            sides.append(reference[part] if len(reference) == len(columns) else reference)
        readers = [_readers(model, side, terms) for side in sides]
        told = [
            _mean_and_design(model, rows, len(side), float(terms is None))
            for rows, side in zip(readers, sides, strict=True)
        ]
        mean[part] = reduce(np.subtract, [own for own, _ in told])
        variance[part] = _design_variances(model, reduce(np.subtract, [own for _, own in told]))
        for side in sides:
            for _, unknown, spread in _unknown_spreads(model, side, terms):
                variance[part] += np.multiply.outer(unknown, spread)
        for k in readers[0]:
            if model.terms[k].own_variance is not None:
                variance[part] += _own_variance(model.terms[k], [rows[k] for rows in readers])
    return mean, variance


def _own_variance(term: FittedTerm, readers: Sequence[Reader]) -> Array:
    """Variance of the errors of a term's own in a row, or in the difference of two: same, same errors."""
    assert term.own_variance is not None
    total = reduce(np.add, [rows_of(term.own_variance) for rows_of in readers])
    entries = [rows_of(np.arange(len(term.mean), dtype=np.float64)) for rows_of in readers]
    return total if len(entries) == 1 else np.where(entries[0] == entries[1], 0.0, total)


def _design_variances(model: FittedModel, design: Array) -> Array:
    """Variances of ``design`` times the model's coordinates; of classes, their covariances."""
    if model.contrasts is None:
        return np.asarray(np.square(design @ model.root).sum(axis=1))
    factor = _class_factors(model, design, model.root)
    return np.asarray(factor @ factor.transpose(0, 2, 1))


def _class_factors(model: FittedModel, design: Array, factor: Array) -> Array:
    """Rows of ``design @ factor`` for each class (n, C, ...), from those of the outputs behind them."""
    assert model.contrasts is not None
    widths = [term.table.shape[1] for term in model.terms]
    places = output_places(widths, model.n_outputs)
    outputs = np.stack([design @ factor[own] for own in places], axis=1)
    return np.asarray(np.einsum("ck,nkr->ncr", model.contrasts, outputs))


def _readers(
    model: FittedModel, columns: Array, terms: Sequence[int] | None = None
) -> dict[int, Reader]:
    """What reads the tables of every active term, or of those among some."""
    chosen = range(len(model.terms)) if terms is None else terms
    return {k: _reader(model.terms[k], columns) for k in chosen if model.terms[k].active}


def _mean_and_design(
    model: FittedModel, readers: dict[int, Reader], n_rows: int, intercept: float = 1.0
) -> tuple[Array, Array]:
    """Sum of the terms' means in each row, and what the coordinates of one output are multiplied by.

    ``intercept`` is how often that counts.
    """
    mean = intercept * _intercepts(model, n_rows)
    design = np.zeros((n_rows, sum(term.table.shape[1] for term in model.terms) + 1))
    design[:, -1] = intercept
    start = 0
    for k, term in enumerate(model.terms):
        end = start + term.table.shape[1]
        if k in readers:
            mean += readers[k](term.mean)
            design[:, start:end] = readers[k](term.table)
        start = end
    for k, rows_of in readers.items():
        coupling = model.terms[k].coupling
        if coupling is not None:
            design += rows_of(coupling)
    return mean, design


def _unknown_spreads(
    model: FittedModel, columns: Array, terms: Sequence[int] | None = None
) -> Iterator[tuple[int, NDArray[np.bool_], Array]]:
    """Terms with rows whose value is missing where the data had none: which rows, and what that adds."""
    for k in range(len(model.terms)) if terms is None else terms:
        unknown = model.terms[k].unknown(columns)
        if model.terms[k].active and unknown.any():
            yield k, unknown, unknown_spread(model, k)


def unknown_spread(model: FittedModel, index: int) -> Array:
    """The variance of a term where a value is missing and the data had none.

    Whatever the value is, it was drawn as the others were: the term's mean is zero, and its variance
    that of its function over the data; with several classes, their covariance (C, C).
    """
    term = model.terms[index]
    if model.contrasts is None:
        mean, variance = entry_moments(model, index)
        return np.asarray(term.share @ (np.square(mean) + variance))
    second_moments = term.table.T @ (term.table * term.share[:, None])
    outputs = np.einsum("kilj,ij->kl", _output_parts(model, index), second_moments)
    spread = model.contrasts @ outputs @ model.contrasts.T
    return np.asarray(term.mean.T @ (term.mean * term.share[:, None]) + spread)


def _output_parts(model: FittedModel, index: int) -> Array:
    """Covariance of a term's coordinates of every pair of outputs (M, r, M, r)."""
    n_outputs, width = model.n_outputs, model.terms[index].table.shape[1]
    return model.block_covariances[index].reshape(n_outputs, width, n_outputs, width)


def _of_terms(model: FittedModel, n_rows: int) -> Array:
    return np.zeros((n_rows, len(model.terms), *np.shape(model.intercept)))


def term_means(model: FittedModel, columns: Array) -> Array:
    """Every term's contribution (n, n_terms); with the intercept they sum to ``link_mean``.

    With several classes, to each of them (n, n_terms, C).
    """
    result = _of_terms(model, len(columns))
    for part, k, rows_of in _by_term(model, columns):
        result[part, k] = rows_of(model.terms[k].mean)
    return result


def term_variances(model: FittedModel, columns: Array) -> Array:
    """Posterior variance of every term's contribution, in the form of ``term_means``."""
    result = _of_terms(model, len(columns))
    for part, k, rows_of in _by_term(model, columns):
        result[part, k] = _variance(model, k, rows_of)
    for k, unknown, spread in _unknown_spreads(model, columns):
        result[unknown, k] += spread if model.contrasts is None else np.diagonal(spread)
    return result


def edited_rows(model: FittedModel, columns: Array) -> NDArray[np.bool_]:
    """Whether what every term adds to a row was changed by hand (n, n_terms)."""
    result = np.zeros((len(columns), len(model.terms)), dtype=bool)
    edited = {k: term.edited for k, term in enumerate(model.terms) if term.edited is not None}
    for part, k, rows_of in _by_term(model, columns, list(edited)):
        result[part, k] = rows_of(edited[k].astype(float)) > 0.0
        # What is not known to be any value was changed if all of them were.
        result[part, k] |= model.terms[k].unknown(columns[part]) & edited[k].all()
    return result


def _variance(model: FittedModel, index: int, rows_of: Reader) -> Array:
    """Posterior variance of a term where ``rows_of`` reads its tables, not below zero by rounding."""
    term = model.terms[index]
    if term.coupling is not None and term.own_variance is not None:
        return _design_variances(model, rows_of(term.coupling)) + rows_of(term.own_variance)
    rows = rows_of(term.table)
    if model.contrasts is None:
        return np.maximum(quadratic_forms(rows, model.block_covariances[index]), 0.0)
    of_class = np.einsum(
        "ck,cl,kilj->cij",
        model.contrasts,
        model.contrasts,
        _output_parts(model, index),
        optimize=True,
    )
    own = [quadratic_forms(rows, covariance) for covariance in of_class]
    return np.maximum(np.stack(own, axis=1), 0.0)


def noise_variances(model: FittedModel, columns: Array) -> Array:
    """Noise variance of every row.

    Larger where a value is missing that would have said something, and where columns say so.
    """
    result = np.full(len(columns), model.noise_variance)
    if model.noise is not None:
        result *= np.exp(log_noise_factors(model.noise, columns))
    if model.gap_variance is not None:
        for feature in np.flatnonzero(model.gap_variance):
            gone = np.isnan(columns[:, feature])
            result[gone] += model.gap_variance[feature]
    return result


def predictive(model: FittedModel, columns: Array) -> Mixture:
    """The distribution of a new observation in every row, of a Gaussian response."""
    mean, variance = link_moments(model, columns)
    return Mixture(mean, variance, noise_variances(model, columns), model.shape or GAUSSIAN)


def log_noise_factors(noise: FittedModel, columns: Array) -> Array:
    """Logarithm of the factor of every row's noise variance."""
    result = _intercepts(noise, len(columns))
    tables = {k: held_table(term) for k, term in enumerate(noise.terms) if term.active}
    for part, k, rows_of in _by_term(noise, columns):
        result[part] += rows_of(tables[k])
    return result


def held_table(term: FittedTerm) -> Array:
    """A term's mean that beyond the data is what it is at their edge: a line would be an exponential."""
    result = term.mean.copy()
    if isinstance(term.entries, Knots):
        first, last = term.entries.inside.start, term.entries.inside.stop - 1
        result[:first] = result[first]
        result[last : len(term.entries.points)] = result[last]
    return result


def sample_links(
    model: FittedModel,
    columns: Array,
    n_samples: int,
    rng: np.random.Generator,
    terms: Sequence[int] | None = None,
) -> Array:
    """Posterior draws of the link-scale prediction (n_samples, n), one function a draw.

    Of the sum of some terms, without the intercept, where these are named.
    """
    draws = model.root @ rng.standard_normal((len(model.root), n_samples))
    own = {
        k: np.sqrt(term.own_variance)[:, None] * rng.standard_normal((len(term.mean), n_samples))
        for k, term in enumerate(model.terms)
        if term.own_variance is not None and (terms is None or k in terms)
    }
    result = np.empty((n_samples, len(columns), *np.shape(model.intercept)))
    for part in _chunks(model, len(columns)):
        readers = _readers(model, columns[part], terms)
        mean, design = _mean_and_design(
            model, readers, len(columns[part]), intercept=float(terms is None)
        )
        if model.contrasts is None:
            result[:, part] = mean + (design @ draws).T
        else:
            result[:, part] = mean + np.moveaxis(_class_factors(model, design, draws), 2, 0)
        for k, levels in own.items():
            result[:, part] += readers[k](levels).T
        for _, unknown, spread in _unknown_spreads(model, columns[part], terms):
            values = rng.standard_normal((n_samples, int(unknown.sum()), *spread.shape[:1]))
            root = np.sqrt(spread) if model.contrasts is None else _root(spread).T
            result[:, part][:, unknown] += values @ root if spread.ndim else values * root
    return result


def _root(covariance: Array) -> Array:
    """A factor ``F`` with ``covariance = F F'`` of a matrix that may be singular."""
    size, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.where(size > 1e-12 * size[-1], size, 0.0)))


def entry_moments(model: FittedModel, index: int) -> tuple[Array, Array]:
    """Mean and variance of one term at its entries, for each class where there are several."""
    term = model.terms[index]
    return term.mean, _variance(model, index, lambda table: table)
