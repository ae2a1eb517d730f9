"""How sure a term's importance is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model import FittedModel, FittedTerm

#: Posterior draws behind the standard deviation of an importance: it is known to about 5%.
_N_DRAWS = 256

#: Entries of a long table that are drawn at once.
_CHUNK_ENTRIES = 1 << 12


def importance_std(model: FittedModel, index: int, rng: np.random.Generator) -> float:
    """Posterior standard deviation of a term's importance, from draws of its function."""
    term = model.terms[index]
    if not term.active:
        return 0.0
    if term.coupling is None:
        root = model.root[model.blocks[index]]
        draws = root @ rng.standard_normal((root.shape[1], _N_DRAWS))
        functions = _functions(model, term, draws)
        importances = np.mean([term.share @ np.abs(f) for f in functions], axis=0)
    else:
        importances = _wide_importances(model, term, rng)
    # A mean over the entries is not quite one over the rows, which the importance is.
    means = term.mean.reshape(len(term.mean), -1)
    at_entries = float((term.share @ np.abs(means)).mean())
    ratio = term.importance / at_entries if at_entries > 0.0 else 1.0
    return ratio * float(np.std(importances))


def _functions(model: FittedModel, term: FittedTerm, draws: Array) -> Iterator[Array]:
    """A term's function at its entries (B, n_draws) for draws of its coordinates, class by class."""
    if model.contrasts is None:
        yield term.mean[:, None] + term.table @ draws
        return
    outputs = draws.reshape(model.contrasts.shape[1], term.table.shape[1], -1)
    for mean, weights in zip(term.mean.T, model.contrasts, strict=True):
        yield mean[:, None] + term.table @ np.tensordot(weights, outputs, axes=1)


def _wide_importances(model: FittedModel, term: FittedTerm, rng: np.random.Generator) -> Array:
    """Draws of the importance of very many levels, whose errors are partly the other terms'."""
    assert term.coupling is not None
    assert term.own_variance is not None
    draws = model.root @ rng.standard_normal((model.root.shape[1], _N_DRAWS))
    result = np.zeros(_N_DRAWS)
    for start in range(0, len(term.mean), _CHUNK_ENTRIES):
        part = slice(start, start + _CHUNK_ENTRIES)
        own = np.sqrt(term.own_variance[part])[:, None]
        levels = term.coupling[part] @ draws + own * rng.standard_normal((len(own), _N_DRAWS))
        result += term.share[part] @ np.abs(term.mean[part, None] + levels)
    return result
