"""How sure a term's importance is, and how far its function may be from its mean: from draws of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.model.fitted import FittedModel, FittedTerm
from lanam.explain.bands import ascending, uncertain
from lanam.explain.draws import term_draws


def importance_std(model: FittedModel, index: int, rng: np.random.Generator) -> float:
    """Posterior standard deviation of a term's importance, from draws of its function."""
    term = model.terms[index]
    if not term.active:
        return 0.0
    parts = (_importances(term, part, draws) for part, draws in term_draws(model, index, rng))
    return _deviation(term, sum(parts, np.zeros(1)))


def importance_and_largest_deviations(
    model: FittedModel,
    index: int,
    std: Array,
    within: NDArray[np.bool_],
    rng: np.random.Generator,
) -> tuple[float, Array]:
    """What :func:`importance_std` says, and how far the same draws are from the mean at the most.

    Parameters
    ----------
    std : ndarray of shape (B,) or (B, C)
        Posterior standard deviation at the term's entries.
    within : ndarray of shape (B,)
        Which entries count for the largest deviation.

    Returns
    -------
    importance_std : float
    largest_deviations : ndarray of shape (n_draws,) or (n_draws, C)
        For each draw the largest deviation from the mean, in standard deviations; ascending, for each
        class by itself. Empty for a term that is switched off.
    """
    term = model.terms[index]
    if not term.active:
        return 0.0, np.empty((0, *std.shape[1:]))
    spread = std.reshape(len(std), -1)
    counts = within[:, None] & uncertain(spread)
    precision = np.divide(1.0, spread, out=np.zeros_like(spread), where=counts).T
    importances, largest = np.zeros(1), np.zeros(1)
    for part, draws in term_draws(model, index, rng):
        importances = importances + _importances(term, part, draws)
        standard = np.abs(draws, out=draws)
        standard *= precision[:, part, None]
        largest = np.maximum(largest, standard.max(axis=1))
    by_draw = largest.T.reshape(-1, *std.shape[1:])
    return _deviation(term, importances), ascending(by_draw)


def _importances(term: FittedTerm, part: slice, draws: Array) -> Array:
    """What a part of the entries adds to the importance in every draw."""
    mean = term.mean[part].reshape(draws.shape[1], -1).T
    return np.asarray((term.share[part] @ np.abs(mean[:, :, None] + draws)).mean(axis=0))


def _deviation(term: FittedTerm, importances: Array) -> float:
    # A mean over the entries is not quite one over the rows, which the importance is.
    means = term.mean.reshape(len(term.mean), -1)
    at_entries = float((term.share @ np.abs(means)).mean())
    ratio = term.importance / at_entries if at_entries > 0.0 else 1.0
    return ratio * float(np.std(importances))
