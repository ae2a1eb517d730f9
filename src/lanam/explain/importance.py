"""How sure a term's importance is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model import FittedModel, FittedTerm

#: Posterior draws behind the standard deviation of an importance: it is known to about 5%.
_N_DRAWS = 256


def importance_std(model: FittedModel, index: int, rng: np.random.Generator) -> float:
    """Posterior standard deviation of a term's importance, from draws of its function."""
    term = model.terms[index]
    if not term.active:
        return 0.0
    root = model.root[model.blocks[index]]
    draws = root @ rng.standard_normal((root.shape[1], _N_DRAWS))
    importances = np.mean([term.share @ np.abs(f) for f in _functions(model, term, draws)], axis=0)
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
