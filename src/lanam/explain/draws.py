"""Posterior draws of a term's function at its entries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import gammaincinv

from lanam.core.arrays import Array
from lanam.core.model.fitted import FittedModel

#: Draws of a function: 95% quantiles of its largest deviation are known to one or two per cent.
_MOST_DRAWS = 1000

#: Of a table of very many entries fewer are taken: these many values together, but so many draws at least.
_MOST_VALUES = 1 << 22
_LEAST_DRAWS = 256

#: Values that are held at once.
_CHUNK_VALUES = 1 << 20


def draw_count(n_values: int) -> int:
    """How many draws to take of functions at so many places.

    Examples
    --------
    >>> draw_count(250), draw_count(100_000)
    (1000, 256)
    """
    return int(np.clip(_MOST_VALUES // n_values, _LEAST_DRAWS, _MOST_DRAWS))


def term_draws(
    model: FittedModel, index: int, rng: np.random.Generator
) -> Iterator[tuple[slice, Array]]:
    """By how much an active term's function differs from its mean, in draws of it, part by part.

    Yields
    ------
    part
        Some of the term's entries, one after the other.
    deviations
        For every class, or for the one function that there is, and every entry of the part, what each
        draw adds to the mean (C, b, n_draws).
    """
    term, n_entries = model.terms[index], len(model.terms[index].mean)
    n_draws = draw_count(n_entries)
    if term.coupling is None:
        # A square factor of the term's own covariance: fewer numbers to draw than the model has.
        own = model.root[model.blocks[index]]
        table, root = term.table, np.asarray(np.linalg.qr(own.T, mode="r")).T
    else:
        table, root = term.coupling, model.root
    contrasts = np.ones((1, 1)) if model.contrasts is None else model.contrasts
    outputs = (root @ even_normals(root.shape[1], n_draws, rng)).reshape(
        contrasts.shape[1], table.shape[1], n_draws
    )
    coordinates = np.tensordot(contrasts, outputs, axes=1)
    size = max(_CHUNK_VALUES // (n_draws * len(contrasts)), 1)
    for start in range(0, n_entries, size):
        part = slice(start, start + size)
        deviations = table[part] @ coordinates
        if term.own_variance is not None:
            own = np.sqrt(term.own_variance[part])[:, None]
            deviations += own * rng.standard_normal(deviations.shape)
        yield part, deviations


def even_normals(size: int, n_draws: int, rng: np.random.Generator) -> Array:
    """Standard normal draws (size, n_draws) whose lengths leave nothing to chance, only directions.

    The lengths are quantiles of their distribution, evenly spaced: what depends on them most, as do the
    ends of a band, is then known from few draws; of one number alone, exactly.
    """
    draws = rng.standard_normal((size, n_draws))
    places = (np.arange(n_draws) + 0.5) / n_draws
    lengths = np.sqrt(2.0 * gammaincinv(0.5 * size, places))
    return np.asarray(draws * (lengths / np.linalg.norm(draws, axis=0)))
