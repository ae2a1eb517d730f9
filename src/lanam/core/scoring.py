"""Fitted model and rows to predictions: looking up tables (method.md 3).

``columns`` is the (n, D) float array of a model's columns. Rows are scored in chunks, so memory does
not grow with their number beyond the result.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanam.core.arrays import Array
from lanam.core.knots import locate
from lanam.core.model import FittedModel, FittedTerm
from lanam.core.statistics import read

_CHUNK_ROWS = 1 << 14


def _chunks(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _CHUNK_ROWS):
        yield slice(start, start + _CHUNK_ROWS)


def _read(term: FittedTerm, columns: Array, table: Array) -> Array:
    """A term's table read by rows; zero where a value is missing that never was in the data."""
    assert term.entries is not None
    rows = read(locate(term.entries, term.features, columns), table)
    unknown = term.unknown(columns)
    if unknown.any():
        rows[unknown] = 0.0
    return rows


def link_mean(model: FittedModel, columns: Array) -> Array:
    """Mean of the link-scale prediction."""
    result = np.full(len(columns), model.intercept)
    for part in _chunks(len(columns)):
        for term in model.terms:
            if term.active:
                result[part] += _read(term, columns[part], term.mean)
    return result


def link_moments(model: FittedModel, columns: Array) -> tuple[Array, Array]:
    """Mean and variance of the link-scale prediction."""
    mean, variance = np.empty(len(columns)), np.empty(len(columns))
    for part in _chunks(len(columns)):
        mean[part], design = _mean_and_design(model, columns[part])
        variance[part] = np.square(design @ model.root).sum(axis=1)
        variance[part] += _unknown_variances(model, columns[part]).sum(axis=1)
    return mean, variance


def _mean_and_design(model: FittedModel, columns: Array) -> tuple[Array, Array]:
    mean = np.full(len(columns), model.intercept)
    design = np.empty((len(columns), len(model.covariance)))
    for term, block in zip(model.terms, model.blocks, strict=True):
        if term.active:
            mean += _read(term, columns, term.mean)
            design[:, block] = _read(term, columns, term.table)
    design[:, -1] = 1.0
    return mean, design


def _unknown_variances(model: FittedModel, columns: Array) -> Array:
    """What missing values add to every term's variance where the data had none (n, n_terms).

    Whatever the value is, it was drawn as the others were: the term's mean is zero, and its variance
    that of its function over the data.
    """
    result = np.zeros((len(columns), len(model.terms)))
    for k, term in enumerate(model.terms):
        unknown = term.unknown(columns)
        if term.active and unknown.any():
            mean, variance = entry_moments(model, k)
            result[unknown, k] = term.share @ (np.square(mean) + variance)
    return result


def term_means(model: FittedModel, columns: Array) -> Array:
    """Every term's contribution (n, n_terms); with the intercept they sum to ``link_mean``."""
    result = np.zeros((len(columns), len(model.terms)))
    for part in _chunks(len(columns)):
        for k, term in enumerate(model.terms):
            if term.active:
                result[part, k] = _read(term, columns[part], term.mean)
    return result


def term_variances(model: FittedModel, columns: Array) -> Array:
    """Posterior variance of every term's contribution (n, n_terms)."""
    result = np.zeros((len(columns), len(model.terms)))
    for part in _chunks(len(columns)):
        for k, (term, block) in enumerate(zip(model.terms, model.blocks, strict=True)):
            if term.active:
                rows = _read(term, columns[part], term.table)
                result[part, k] = _variance(rows, model.covariance[block, block])
        result[part] += _unknown_variances(model, columns[part])
    return result


def _variance(rows: Array, covariance: Array) -> Array:
    """The diagonal of ``rows @ covariance @ rows.T``, not below zero by rounding."""
    variance = np.einsum("ij,jk,ik->i", rows, covariance, rows, optimize=True)
    return np.asarray(np.maximum(variance, 0.0))


def sample_links(
    model: FittedModel, columns: Array, n_samples: int, rng: np.random.Generator
) -> Array:
    """Posterior draws of the link-scale prediction (n_samples, n), one function a draw."""
    draws = model.root @ rng.standard_normal((len(model.covariance), n_samples))
    result = np.empty((n_samples, len(columns)))
    for part in _chunks(len(columns)):
        mean, design = _mean_and_design(model, columns[part])
        result[:, part] = mean + (design @ draws).T
        unknown = _unknown_variances(model, columns[part]).sum(axis=1)
        if unknown.any():
            result[:, part] += np.sqrt(unknown) * rng.standard_normal((n_samples, len(unknown)))
    return result


def entry_moments(model: FittedModel, index: int) -> tuple[Array, Array]:
    """Mean and variance of one term at its entries."""
    term, block = model.terms[index], model.blocks[index]
    return term.mean, _variance(term.table, model.covariance[block, block])
