"""The importance of a term, split: due to its column's values, and to whether they are missing."""

from __future__ import annotations

import numpy as np

from lanam.core.model.fitted import FittedTerm
from lanam.core.terms.knots import Categories, Grid


def importance_of_missingness(term: FittedTerm) -> float:
    """The part of a term's importance that is due to whether a value is missing.

    The function of a column is a step between missing and other values, plus what varies among the latter.
    The importance is split in proportion to the mean absolute values of these two; an interaction's is
    not.
    """
    missing = _missing_entry(term)
    if missing is None or not term.active:
        return 0.0
    means = term.mean.reshape(len(term.mean), -1)
    mass = term.data_mass / term.data_mass.sum()
    of_missing = float(mass[missing])
    values = np.arange(len(mass)) != missing
    if not 0.0 < of_missing < 1.0:
        return term.importance * of_missing
    centre = mass[values] @ means[values] / mass[values].sum()
    step = 2.0 * of_missing * (1.0 - of_missing) * np.abs(means[missing] - centre).mean()
    among_values = (mass[values] @ np.abs(means[values] - centre)).mean()
    return float(term.importance * step / (step + among_values or 1.0))


def _missing_entry(term: FittedTerm) -> int | None:
    """The entry of missing values of a term of one column."""
    if term.entries is None or isinstance(term.entries, Grid):
        return None
    if isinstance(term.entries, Categories):
        return term.entries.n_own
    return len(term.entries.points) if term.entries.missing else None
