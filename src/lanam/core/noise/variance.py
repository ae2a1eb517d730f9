"""How noisy each row is: a second additive model, of the size of the residuals of the first.

The noise of a Gaussian response is ``N(0, s^2 exp(g(x)))``, and what gaps add to its variance. ``s^2`` is
what a fit finds that takes it to be the same everywhere, and ``g`` is a sum of functions of single
columns as the mean is, fitted to the squared residuals in the same way (``LogVariance``): its smoothness
and which columns it needs follow from the evidence. Without a column that it needs the noise is the same
everywhere.

A row pulls the mean towards itself, so that its residual is too small: the expectation of its square is
``(1 - h) s^2`` with the leverage ``h``, the variance of the mean there in units of the noise's. What is
fitted to are the squares divided by that.

The evidence of ``g`` takes residuals for Gaussian. Where their tails are heavy, a few large ones look
like a column's doing, however well the evidence pays for it. So rows have the last word: what most of
them say of the noise must describe the others better than a constant does (cross-validation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood, bounded_exp
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.core.noise.held_out import LEAST_ROWS, WORTH, parts
from lanam.core.rows.tables import Table

#: Residuals of rows that nothing but themselves determines say nothing.
_MOST_LEVERAGE = 0.95

#: Fits an additive model to the squares of a table with these of the columns.
Fit = Callable[[Table, Sequence[int]], FittedModel]


@dataclass(frozen=True)
class LogVariance(Likelihood):
    """``y`` is a squared residual and ``f`` the logarithm of its mean, the variance of a Gaussian.

    The log-density is that of the residual. Its second derivative depends on ``y``; the curvature is the
    expectation of that, which is the same everywhere.
    """

    name = "log-variance"

    def log_prob(self, y: Array, f: Array) -> Array:
        """Log-density of a residual, without the constant ``-log(2 pi) / 2``."""
        return np.asarray(-0.5 * (f + y * bounded_exp(-f)))

    def slope(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""
        return np.asarray(0.5 * (y * bounded_exp(-f) - 1.0))

    def curvature(self, f: Array) -> Array:
        """Minus the expectation of its second derivative."""
        return np.full_like(f, 0.5)

    def start(self, y: Array, weight: Array) -> float:
        """The intercept of the best constant model."""
        return math.log(float(weight @ y / weight.sum()))


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
    residuals = standard_residuals(model, sample)
    rows = replace(residuals, response=np.square(residuals.response))
    if np.count_nonzero(rows.response) < LEAST_ROWS:
        return None
    noise = fit(rows, range(rows.columns.shape[1]))
    needed = sorted({term.features[0] for term in noise.terms if term.active})
    if not needed:
        return None
    narrow = replace(rows, columns=rows.columns[:, needed])
    if _gain(narrow, lambda part: fit(part, needed)) <= WORTH:
        return None
    # The mean of a variance whose logarithm is uncertain; on average, so that what remains is a sum.
    _, uncertainty = scoring.link_moments(noise, rows.columns)
    more = 0.5 * float(np.average(uncertainty, weights=rows.weight))
    return replace(noise, intercept=noise.intercept + more, history=())


def _gain(rows: Table, fit: Callable[[Table], FittedModel]) -> float:
    """By how much squares are likelier by what the other rows say of them than by the others' mean."""
    likelihood, total = LogVariance(), 0.0
    for chosen in parts(len(rows)):
        others, own = _some(rows, ~chosen), _some(rows, chosen)
        mean = np.average(others.response, weights=others.weight)
        constant = likelihood.log_prob(own.response, np.full(len(own), np.log(mean)))
        varying = scoring.log_noise_factors(fit(others), own.columns)
        total += float(own.weight @ (likelihood.log_prob(own.response, varying) - constant))
    return total


def standard_residuals(model: FittedModel, sample: Table) -> Table:
    """Rows whose response is the residual, in units of what its size would be on average.

    Of rows whose gaps add no noise: what these add is known already, and no column's value does it.

    Parameters
    ----------
    model
        The mean; if its noise differs from row to row, the unit is that of the row.
    sample
        Training rows.
    """
    gaps = replace(model, noise=None)
    rows = _some(sample, scoring.noise_variances(gaps, sample.columns) == model.noise_variance)
    mean, variance = scoring.link_moments(model, rows.columns)
    known = np.minimum(variance / model.noise_variance, _MOST_LEVERAGE)
    size = np.sqrt(scoring.noise_variances(model, rows.columns) * (1.0 - known))
    return Table(rows.columns, (rows.response - mean) / size, rows.weight)


def _some(table: Table, rows: NDArray[np.bool_]) -> Table:
    columns = np.asfortranarray(table.columns[rows])
    return Table(columns, table.response[rows], table.weight[rows])
