"""Noise learned from residuals: its variance as a second additive model, and its distribution.

The noise of a Gaussian response is ``N(0, s^2 exp(g(x)))`` plus the variance that missing values add.
``s^2`` comes from a fit with constant noise; ``g`` is additive and fitted to the squared residuals like any
mean (``LogVariance``), so that its smoothness and its columns follow from the evidence. A row pulls the
mean towards itself: the expectation of its squared residual is ``(1 - h) s^2`` with the leverage ``h``, the
variance of the mean there in units of the noise's, and squares are divided by that.

The residual distribution is one for all rows: a mixture of Gaussians on a lattice of means and widths. It
comes near any distribution that is not too sharp, and its likelihood is concave in the weights, most of
which EM sends to zero (Kiefer and Wolfowitz's estimator on a lattice).

Either is kept only if its cross-validated log-likelihood improves on a constant, or on a Gaussian: under
heavy tails a few large residuals look like the effect of a column, and raise the evidence of ``g`` too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood, bounded_exp
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.core.model.mixtures import NoiseShape, standardised
from lanam.core.rows.tables import EncodedRows

#: With fewer residuals, cross-validation decides nothing.
LEAST_ROWS = 60
#: Required gain in log-likelihood, in nats over all folds: under Student's t chance has brought up to four.
LEAST_GAIN = 5.0
#: Few rows need folds that leave nearly all of them to train on; of many, half is plenty.
_FEW_FOLDS, _MANY_FOLDS = 2, 8
_MANY_ROWS = 2000

#: The residual of a row with more leverage than this carries no information on the noise.
_MOST_LEVERAGE = 0.95

#: The lattice of the mixture, in standard deviations of the noise.
_MEANS = np.arange(-2.0, 2.01, 0.5)
_STDS = 2.0 ** np.arange(-2.0, 3.01)
#: Pseudo-rows of the standard Gaussian.
_GAUSSIAN_ROWS = 10.0
_ITERATIONS = 1000
#: Residuals are binned to a fraction of the smallest width.
_WIDTH = 1.0 / 64.0
#: A component is dropped unless it explains this many rows.
_LEAST_COMPONENT_ROWS = 1.0


class FittedSquares(Protocol):
    """An additive model of the log of squared residuals."""

    @property
    def model(self) -> FittedModel:
        """The model of all rows."""

    @property
    def n_effective(self) -> float:
        """Its effective degrees of freedom."""

    def scores(self) -> Array:
        """Log-density of each row left out, with the precisions of all rows."""

    def without(self, held_out: NDArray[np.bool_]) -> Array:
        """Log variances of some rows by a fit to the others."""


@dataclass(frozen=True)
class LogVariance(Likelihood):
    """``y`` is a squared residual and ``f`` the logarithm of its mean, the variance of a Gaussian.

    The log-density is that of the residual. Its second derivative depends on ``y``; the curvature is the
    expectation, which is constant.
    """

    name = "log-variance"

    def log_prob(self, y: Array, f: Array) -> Array:
        """Log-density of a residual, without the constant ``-log(2 pi) / 2``."""
        return np.asarray(-0.5 * (f + y * bounded_exp(-f)))

    def gradient(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""
        return np.asarray(0.5 * (y * bounded_exp(-f) - 1.0))

    def curvature(self, f: Array) -> Array:
        """Minus the expectation of its second derivative."""
        return np.full_like(f, 0.5)

    def fit_intercept_only(self, y: Array, weight: Array) -> float:
        """The intercept of the best constant model."""
        return math.log(float(weight @ y / weight.sum()))


def learn_noise(
    residuals: EncodedRows, fit: Callable[[EncodedRows], FittedSquares]
) -> FittedModel | None:
    """The model of ``log(variance / s^2)``, or None where constant noise describes the residuals as well.

    ``residuals`` are standardised by constant noise, in random order.
    """
    rows = replace(residuals, response=np.square(residuals.response))
    if np.count_nonzero(rows.response) < LEAST_ROWS:
        return None
    fitted = fit(rows)
    noise = fitted.model
    if not any(term.active for term in noise.terms):
        return None
    if not _is_supported(rows, fitted):
        return None
    # The mean of a log-normal variance; one correction for all rows keeps the model additive.
    _, uncertainty = scoring.link_moments(noise, rows.columns)
    correction = 0.5 * float(np.average(uncertainty, weights=rows.weight))
    return replace(noise, intercept=noise.intercept + correction, history=())


def learn_shape(residuals: Array, weight: Array, group: Array | None = None) -> NoiseShape | None:
    """The residual distribution, or None where a Gaussian describes the residuals as well.

    Residuals are in units of the noise's standard deviation in their row, in random order; those of one
    ``group`` are held out together.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> learn_shape(rng.normal(size=500), np.ones(500)) is None
    True
    >>> shape = learn_shape(rng.exponential(size=500) - 1.0, np.ones(500))
    >>> bool(1.0 < shape.skewness < 3.0)
    True
    """
    if np.count_nonzero(residuals) < LEAST_ROWS:
        return None
    if _shape_gain(residuals, weight, group) <= LEAST_GAIN:
        return None
    return _mixture(residuals, weight)


def standard_residuals(model: FittedModel, sample: EncodedRows) -> EncodedRows:
    """Rows with residuals standardised by constant noise as response.

    ``model`` is the mean with constant noise. Rows that missing values make noisier are left out.
    """
    rows = _subset(sample, scoring.noise_variances(model, sample.columns) == model.noise_variance)
    mean, variance = scoring.link_moments(model, rows.columns)
    leverage = np.minimum(variance / model.noise_variance, _MOST_LEVERAGE)
    size = np.sqrt(model.noise_variance * (1.0 - leverage))
    return replace(rows, response=(rows.response - mean) / size)


def _is_supported(rows: EncodedRows, fitted: FittedSquares) -> bool:
    """Whether left-out rows are described better than by constant noise.

    In closed form they are left out of the fit, and not of its precisions. What these gain from them is
    at most about the edf (measured: -12 to 26 nats at 6 to 45 edf): only closer calls are cross-validated.
    """
    if rows.group is not None:  # rows of one group say what the others are like
        return _variance_gain(rows, fitted) > LEAST_GAIN
    optimistic = _left_out_gain(rows, fitted)
    if not LEAST_GAIN < optimistic <= LEAST_GAIN + fitted.n_effective:
        return optimistic > LEAST_GAIN
    return _variance_gain(rows, fitted) > LEAST_GAIN


def _left_out_gain(rows: EncodedRows, fitted: FittedSquares) -> float:
    """The gain over the mean of the squares, all rows left out one by one."""
    one = np.minimum(rows.weight, 1.0)
    others = rows.weight @ rows.response - one * rows.response
    mean = others / (rows.weight.sum() - one)
    constant = LogVariance().log_prob(rows.response, np.log(mean))
    return float(rows.weight @ (fitted.scores() - constant))


def _variance_gain(rows: EncodedRows, fitted: FittedSquares) -> float:
    """Cross-validated gain in log-likelihood of a model of the squares over their mean."""
    likelihood, total = LogVariance(), 0.0
    for held_out in _folds(len(rows), rows.group):
        square, weight = rows.response, rows.weight
        mean = np.average(square[~held_out], weights=weight[~held_out])
        tested = square[held_out]
        constant = likelihood.log_prob(tested, np.full(len(tested), np.log(mean)))
        varying = likelihood.log_prob(tested, fitted.without(held_out))
        total += float(weight[held_out] @ (varying - constant))
    return total


def _shape_gain(residuals: Array, weight: Array, group: Array | None) -> float:
    """Cross-validated gain in log-likelihood of a mixture over a Gaussian of the same variance."""
    total = 0.0
    for held_out in _folds(len(residuals), group):
        train, train_weight = residuals[~held_out], weight[~held_out]
        shape = _mixture(train, train_weight)
        z = residuals[held_out] / math.sqrt(np.average(np.square(train), weights=train_weight))
        gain = np.log(_densities(z, shape.means, shape.stds) @ shape.weights) + 0.5 * z**2
        total += float(weight[held_out] @ gain)
    return total


def _folds(n_rows: int, group: Array | None = None) -> Iterator[NDArray[np.bool_]]:
    """Masks of the held-out rows, whole groups if there are some; none of a single group."""
    n_folds = _MANY_FOLDS if n_rows < _MANY_ROWS else _FEW_FOLDS
    number = np.arange(n_rows)
    if group is not None:  # numbers of groups are hashes: their order is random
        distinct, number = np.unique(group, return_inverse=True)
        n_folds = min(n_folds, len(distinct)) if len(distinct) > 1 else 0
    for k in range(n_folds):
        yield number % n_folds == k


def _subset(table: EncodedRows, rows: NDArray[np.bool_]) -> EncodedRows:
    columns = np.asfortranarray(table.columns[rows])
    group = None if table.group is None else table.group[rows]
    return EncodedRows(columns, table.response[rows], table.weight[rows], group=group)


def _mixture(residuals: Array, weight: Array) -> NoiseShape:
    """Weights of the lattice's Gaussians by EM, without negligible components."""
    places, index = np.unique(np.round(residuals / _WIDTH), return_inverse=True)
    count = np.bincount(index, weights=weight)
    means, stds = (grid.ravel() for grid in np.meshgrid(_MEANS, _STDS))
    pseudo_rows = np.where((means == 0.0) & (stds == 1.0), _GAUSSIAN_ROWS, 0.0)
    weights = np.full(len(means), 1.0 / len(means))
    density = _densities(places * _WIDTH, means, stds)
    for _ in range(_ITERATIONS):
        rows = weights * (density.T @ (count / (density @ weights))) + pseudo_rows
        weights = rows / rows.sum()
    kept = weights * count.sum() > _LEAST_COMPONENT_ROWS
    return standardised(weights[kept], means[kept], stds[kept])


def _densities(values: Array, means: Array, stds: Array) -> Array:
    """Densities of values under Gaussians (n, K), up to the constant and bounded away from zero."""
    distance = (values[:, None] - means) / stds
    return np.asarray(np.exp(-0.5 * np.square(distance)) / stds + 1e-300)
