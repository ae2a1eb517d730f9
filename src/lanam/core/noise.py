"""How noisy each row is: a second additive model, of the size of the residuals of the first.

The noise of a Gaussian response is ``N(0, s^2 exp(g(x)))``. ``s^2`` is what a fit finds that takes it to be
the same everywhere, and ``g`` is a sum of functions of single columns as the mean is, fitted to the
squared residuals in the same way (``LogVariance``): its smoothness and which columns it needs follow
from the evidence. Without a column that it needs the noise is the same everywhere.

A row pulls the mean towards itself, so that its residual is too small: the expectation of its square is
``(1 - h) s^2`` with the leverage ``h``, the variance of the mean there in units of the noise's. What is
fitted to are the squares divided by that.

The evidence of ``g`` takes residuals for Gaussian. Where their tails are heavy, a few large ones look
like a column's doing, however well the evidence pays for it. So rows have the last word: what one half of
them says of the noise must describe the other better than a constant does, by more than the standard
error of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lanam.core import scoring
from lanam.core.arrays import Array
from lanam.core.likelihoods import LogVariance
from lanam.core.model import FittedModel
from lanam.core.tables import Table

#: Rows of a sample that are used: the size of the noise needs no more.
_MOST_ROWS = 1 << 13
#: With fewer rows halves of them could not tell.
_LEAST_ROWS = 60
#: Residuals of rows that nothing but themselves determines say nothing.
_MOST_LEVERAGE = 0.95

#: Fits an additive model to the squares of a table with these of the columns.
Fit = Callable[[Table, Sequence[int]], FittedModel]


def learn_noise(model: FittedModel, sample: Table, fit: Fit) -> FittedModel | None:
    """The model of ``log(variance / s^2)`` that a sample of the training rows asks for, if it does.

    Parameters
    ----------
    model
        The mean, with noise that is the same everywhere.
    sample
        In an order that has nothing to do with what is in them.
    fit
        How to fit squared residuals.
    """
    rows = _squared_residuals(model, sample)
    halves = [_part(rows, slice(start, None, 2)) for start in (0, 1)]
    if len(rows) < _LEAST_ROWS or not all(half.response.any() for half in halves):
        return None
    noise = fit(rows, range(rows.columns.shape[1]))
    needed = sorted({term.features[0] for term in noise.terms if term.active})
    if not needed:
        return None
    halves = [replace(half, columns=np.asfortranarray(half.columns[:, needed])) for half in halves]
    learned = [fit(half, needed) for half in halves]
    gains = np.append(_gains(learned[0], *halves), _gains(learned[1], *halves[::-1]))
    pays = gains.sum() > np.sqrt(np.square(gains).sum())
    return replace(noise, history=()) if pays else None


def _squared_residuals(model: FittedModel, sample: Table) -> Table:
    """Rows whose response is the squared residual in units of what it would be on average."""
    few = _part(sample, slice(_MOST_ROWS))
    mean, variance = scoring.link_moments(model, few.columns)
    noise = scoring.noise_variances(replace(model, noise=None), few.columns)
    known = np.minimum(variance / noise, _MOST_LEVERAGE)
    squares = np.square((few.response - mean) / np.sqrt(noise)) / (1.0 - known)
    return Table(few.columns, squares, few.weight)


def _part(table: Table, rows: slice) -> Table:
    columns = np.asfortranarray(table.columns[rows])
    return Table(columns, table.response[rows], table.weight[rows])


def _gains(learned: FittedModel, own: Table, other: Table) -> Array:
    """By how much each of the other half's squares is likelier by what was learned than by the mean."""
    mean = np.average(own.response, weights=own.weight)
    varying = scoring.log_noise_factors(learned, other.columns)
    likelihood = LogVariance()
    constant = likelihood.log_prob(other.response, np.full(len(other), np.log(mean)))
    return np.asarray(other.weight * (likelihood.log_prob(other.response, varying) - constant))
