"""Predictions of a fitted model by table lookup (method.md 3).

``columns`` is the (n, D) float array of a model's columns. Rows are scored in chunks, so memory does
not grow with their number beyond the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, quadratic_forms, slices, times_lower
from lanam.core.model.fitted import FittedModel, FittedTerm
from lanam.core.model.mixtures import GAUSSIAN, Mixture, integrated_noise
from lanam.core.rows.reading import read
from lanam.core.rows.statistics import output_places
from lanam.core.terms.knots import LINEAR, Knots, locate

_CHUNK_ROWS = 1 << 14


def _chunks(model: FittedModel, n_rows: int) -> Iterator[slice]:
    # Each output has a design matrix over the coordinates of all outputs.
    size = max(_CHUNK_ROWS // model.n_outputs**2, 1)
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


#: Reads a table over a term's entries at the rows' positions.
Reader = Callable[[Array], Array]


def _reader(term: FittedTerm, columns: Array) -> Reader:
    """Reads a term's tables by rows; zero for missing values in a column without any in training."""
    assert term.entries is not None
    position = locate(term.entries, term.features, columns)
    unknown = np.flatnonzero(term.unknown(columns))

    def rows_of(table: Array) -> Array:
        rows = read(position, table)
        rows[unknown] = 0.0
        return rows

    return rows_of


def _readers(
    model: FittedModel, columns: Array, terms: Sequence[int] | None = None
) -> dict[int, Reader]:
    """The readers of all active terms, or of the active ones among ``terms``."""
    chosen = range(len(model.terms)) if terms is None else terms
    return {k: _reader(model.terms[k], columns) for k in chosen if model.terms[k].active}


def _by_term(
    model: FittedModel, columns: Array, terms: Sequence[int] | None = None
) -> Iterator[tuple[slice, int, Reader]]:
    """The readers of one chunk of rows after another."""
    for part in _chunks(model, len(columns)):
        for k, rows_of in _readers(model, columns[part], terms).items():
            yield part, k, rows_of


def _intercepts(model: FittedModel, n_rows: int) -> Array:
    return np.full((n_rows, *np.shape(model.intercept)), model.intercept)


def link_mean(model: FittedModel, columns: Array) -> Array:
    """Mean of the link-scale prediction (n,), or (n, C) for several classes."""
    result = _intercepts(model, len(columns))
    for part, k, rows_of in _by_term(model, columns):
        result[part] += rows_of(model.terms[k].mean)
    return result


def link_moments(model: FittedModel, columns: Array) -> tuple[Array, Array]:
    """Mean and variance of the link-scale prediction; (n, C) and (n, C, C) for several classes."""
    return sum_moments(model, None, columns)


def sum_moments(
    model: FittedModel,
    terms: Sequence[int] | None,
    columns: Array,
    reference: Array | None = None,
) -> tuple[Array, Array]:
    """Mean and variance of the sum of some terms without the intercept (None: all, with it).

    With the rows of ``reference``, one for each of ``columns`` or one for all, of the difference between
    the sums in ``columns`` and there: shared errors cancel. Missing values in a column without any in
    training may differ between the two. Columns that no term reads are ignored.
    """
    mean = np.empty((len(columns), *np.shape(model.intercept)))
    variance = np.empty((len(columns), *np.shape(model.intercept) * 2))
    for part in _chunks(model, len(columns)):
        sides = [columns[part]]
        if reference is not None:
            sides.append(reference[part] if len(reference) == len(columns) else reference)
        readers = [_readers(model, side, terms) for side in sides]
        means, designs = zip(
            *(
                _mean_and_design(model, rows, len(side), float(terms is None))
                for rows, side in zip(readers, sides, strict=True)
            ),
            strict=True,
        )
        mean[part] = reduce(np.subtract, means)
        variance[part] = _design_variances(model, reduce(np.subtract, designs))
        for side in sides:
            for _, unknown, spread in _unknown_spreads(model, side, terms):
                variance[part] += np.multiply.outer(unknown, spread)
        for k in readers[0]:
            if model.terms[k].own_variance is not None:
                variance[part] += _own_variance(model.terms[k], [rows[k] for rows in readers])
    return mean, variance


def grouped_variances(model: FittedModel, columns: Array, weights: Array) -> Array:
    """Variances (n, T) of weighted sums of link-scale predictions; ``weights`` are (n, T, J).

    ``columns`` has ``J`` rows of each of ``n`` groups, which agree in all columns but the last.
    """
    n_groups, _, n_rows = weights.shape
    _, design = _mean_and_design(model, _readers(model, columns), len(columns))
    sums = weights @ design.reshape(n_groups, n_rows, -1)
    result = np.square(sums @ model.cov_cholesky).sum(axis=2)
    # What is not in the coordinates is the same in all rows of a group.
    common = np.zeros(len(columns))
    for _, unknown, spread in _unknown_spreads(model, columns):
        common[unknown] += spread
    for k, rows_of in _readers(model, columns).items():
        own = model.terms[k].own_variance
        if own is not None:
            common += rows_of(own)
    return np.asarray(result + np.square(weights.sum(axis=2)) * common[::n_rows, None])


def _own_variance(term: FittedTerm, readers: Sequence[Reader]) -> Array:
    """Variance of the independent errors in a row, or in the difference of two rows' entries."""
    assert term.own_variance is not None
    total = reduce(np.add, [rows_of(term.own_variance) for rows_of in readers])
    entries = [rows_of(np.arange(len(term.mean), dtype=np.float64)) for rows_of in readers]
    return total if len(entries) == 1 else np.where(entries[0] == entries[1], 0.0, total)


def _design_variances(model: FittedModel, design: Array) -> Array:
    """Variances of ``design`` times the model's coordinates; covariances of several classes."""
    if model.contrasts is None:
        return np.asarray(np.square(times_lower(design, model.cov_cholesky)).sum(axis=1))
    factor = _class_factors(model, design, model.cov_cholesky)
    return np.asarray(factor @ factor.transpose(0, 2, 1))


def _class_factors(model: FittedModel, design: Array, factor: Array) -> Array:
    """Rows of ``design @ factor`` for each class (n, C, ...), by the contrasts of the outputs."""
    assert model.contrasts is not None
    widths = [term.table.shape[1] for term in model.terms]
    places = output_places(widths, model.n_outputs)
    outputs = np.stack([design @ factor[place] for place in places], axis=1)
    return np.asarray(np.einsum("ck,nkr->ncr", model.contrasts, outputs))


def _mean_and_design(
    model: FittedModel, readers: dict[int, Reader], n_rows: int, intercept: float = 1.0
) -> tuple[Array, Array]:
    """Sum of the terms' means, and the design matrix of one output's coordinates.

    ``intercept`` is its multiplier.
    """
    mean = intercept * _intercepts(model, n_rows)
    blocks = slices(term.table.shape[1] for term in model.terms)
    design = np.zeros((n_rows, sum(term.table.shape[1] for term in model.terms) + 1))
    design[:, -1] = intercept
    # In the order of the terms, whatever that of the readers: sums round alike.
    for k in sorted(readers):
        mean += readers[k](model.terms[k].mean)
        design[:, blocks[k]] = readers[k](model.terms[k].table)
    for k, rows_of in readers.items():
        coupling = model.terms[k].coupling
        if coupling is not None:
            design += rows_of(coupling)
    return mean, design


def _unknown_spreads(
    model: FittedModel, columns: Array, terms: Sequence[int] | None = None
) -> Iterator[tuple[int, NDArray[np.bool_], Array]]:
    """Active terms with missing values that training had none of: rows, and the added variance."""
    for k in range(len(model.terms)) if terms is None else terms:
        unknown = model.terms[k].unknown(columns)
        if model.terms[k].active and unknown.any():
            yield k, unknown, unknown_spread(model, k)


def prior_std(term: FittedTerm) -> float:
    """The standard deviation of a term's function by its prior, averaged over the data.

    Where the term is straight along a column, of its slope, per unit of the column. Tables are made for
    coordinates whose prior is standard normal.
    """
    assert term.entries is not None
    axes = term.entries.axes
    shape = tuple(map(len, axes))
    table, mass = term.table.reshape(*shape, -1), term.data_mass.reshape(shape)
    for k, axis in enumerate(axes):
        if isinstance(axis, Knots) and axis.course == LINEAR:
            first, last = axis.inside.start, axis.inside.stop - 1
            run = float(axis.values[last] - axis.values[first])
            rise = np.take(table, [last], axis=k) - np.take(table, [first], axis=k)
            table, mass = rise / run, mass.sum(axis=k, keepdims=True)
    return float(np.sqrt(np.sum(mass * np.square(table).sum(axis=-1))))


def unknown_spread(model: FittedModel, index: int) -> Array:
    """The variance of a term at a missing value if training had none; (C, C) for several classes.

    The value is a draw from the training distribution: the mean is zero, the variance that of the
    term's function over the data.
    """
    term = model.terms[index]
    if model.contrasts is None:
        mean, variance = entry_moments(model, index)
        return np.asarray(term.data_mass @ (np.square(mean) + variance))
    second_moments = term.table.T @ (term.table * term.data_mass[:, None])
    outputs = np.einsum("kilj,ij->kl", _output_parts(model, index), second_moments)
    spread = model.contrasts @ outputs @ model.contrasts.T
    return np.asarray(term.mean.T @ (term.mean * term.data_mass[:, None]) + spread)


def _output_parts(model: FittedModel, index: int) -> Array:
    """Covariance of a term's coordinates of every pair of outputs (M, r, M, r)."""
    n_outputs, width = model.n_outputs, model.terms[index].table.shape[1]
    return model.block_covariances[index].reshape(n_outputs, width, n_outputs, width)


def term_means(model: FittedModel, columns: Array) -> Array:
    """Contributions (n, n_terms), or (n, n_terms, C), that sum with the intercept to ``link_mean``."""
    result = np.zeros((len(columns), len(model.terms), *np.shape(model.intercept)))
    for part, k, rows_of in _by_term(model, columns):
        result[part, k] = rows_of(model.terms[k].mean)
    return result


def term_variances(model: FittedModel, columns: Array) -> Array:
    """Posterior variances of the contributions, in the shape of ``term_means``."""
    result = np.zeros((len(columns), len(model.terms), *np.shape(model.intercept)))
    for part, k, rows_of in _by_term(model, columns):
        result[part, k] = _variance(model, k, rows_of)
    for k, unknown, spread in _unknown_spreads(model, columns):
        result[unknown, k] += spread if model.contrasts is None else np.diagonal(spread)
    return result


def edited_rows(model: FittedModel, columns: Array) -> NDArray[np.bool_]:
    """Whether each contribution (n, n_terms) was edited after the fit."""
    result = np.zeros((len(columns), len(model.terms)), dtype=bool)
    edited = {k: term.edited for k, term in enumerate(model.terms) if term.edited is not None}
    for part, k, rows_of in _by_term(model, columns, list(edited)):
        result[part, k] = rows_of(edited[k].astype(float)) > 0.0
        # An unknown value is edited if all values are.
        result[part, k] |= model.terms[k].unknown(columns[part]) & edited[k].all()
    return result


def _variance(model: FittedModel, index: int, rows_of: Reader) -> Array:
    """Posterior variance of a term where ``rows_of`` reads its tables; never negative."""
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
    variances = [quadratic_forms(rows, covariance) for covariance in of_class]
    return np.maximum(np.stack(variances, axis=1), 0.0)


def noise_variances(model: FittedModel, columns: Array) -> Array:
    """Noise variance of each row, with that of missing values and of the heteroscedastic model."""
    result = np.full(len(columns), model.noise_variance)
    if model.noise is not None:
        result *= np.exp(log_noise_factors(model.noise, columns))
    if model.missing_variance is not None:
        for feature in np.flatnonzero(model.missing_variance):
            missing = np.isnan(columns[:, feature])
            result[missing] += model.missing_variance[feature]
    return result


def predictive(model: FittedModel, columns: Array, offset: Array | None = None) -> Mixture:
    """The predictive distributions of rows of a Gaussian response, with the noise integrated out."""
    mean, variance = link_moments(model, columns)
    mean = mean if offset is None else mean + offset
    factor, shape = integrated_noise(model.shape or GAUSSIAN, model.noise_df)
    return Mixture(mean, variance, factor * noise_variances(model, columns), shape)


def log_noise_factors(noise: FittedModel, columns: Array) -> Array:
    """Logarithm of each row's noise variance, relative to the model's."""
    result = _intercepts(noise, len(columns))
    tables = {k: held_table(term) for k, term in enumerate(noise.terms) if term.active}
    for part, k, rows_of in _by_term(noise, columns):
        result[part] += rows_of(tables[k])
    return result


def held_table(term: FittedTerm) -> Array:
    """A term's mean, constant beyond the data: on a log scale a line would extrapolate exponentially."""
    result = term.mean.copy()
    if isinstance(term.entries, Knots):
        first, last = term.entries.inside.start, term.entries.inside.stop - 1
        result[:first] = result[first]
        result[last : len(term.entries.points)] = result[last]
    return result


def coordinate_draws(model: FittedModel, n_samples: int, rng: np.random.Generator) -> Array:
    """Posterior draws of all coordinates (R + 1, n_samples), relative to the means."""
    normal = rng.standard_normal((len(model.cov_cholesky), n_samples))
    draws = np.asarray(model.cov_cholesky @ normal)
    return draws if model.constrained is None else model.constrained.deviations(draws)


def sample_links(
    model: FittedModel,
    columns: Array,
    n_samples: int,
    rng: np.random.Generator,
    terms: Sequence[int] | None = None,
) -> Array:
    """Posterior draws of the link-scale prediction (n_samples, n), one function per draw.

    Of the sum of some ``terms`` without the intercept, if these are given.
    """
    draws = coordinate_draws(model, n_samples, rng)
    independent = {
        k: np.sqrt(term.own_variance)[:, None] * rng.standard_normal((len(term.mean), n_samples))
        for k, term in enumerate(model.terms)
        if term.own_variance is not None and (terms is None or k in terms)
    }
    result = np.empty((n_samples, len(columns), *np.shape(model.intercept)))
    for part in _chunks(model, len(columns)):
        readers = _readers(model, columns[part], terms)
        mean, design = _mean_and_design(model, readers, len(columns[part]), float(terms is None))
        if model.contrasts is None:
            result[:, part] = mean + (design @ draws).T
        else:
            result[:, part] = mean + np.moveaxis(_class_factors(model, design, draws), 2, 0)
        for k, levels in independent.items():
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
    """Mean and variance of one term at its entries, for each of several classes."""
    term = model.terms[index]
    return term.mean, _variance(model, index, lambda table: table)
