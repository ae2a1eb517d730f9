"""Gross errors: responses whose noise is many times that of the others.

A residual ``r`` of a row left out, whose prediction has the variance ``v``, is taken as a scale mixture,

    r ~ sum_k p_k N(0, t_k^2 s^2 + v),    t_0 = 1,  t_k >= 6,

with the noise ``s^2`` of regular rows and a lattice of widths ``t_k`` for gross errors. Given its residual
a row is of width ``k`` with the probability ``q_k``, and counts with the precision ``sum_k q_k / t_k^2``
while the mean is learned (EM). Its log-likelihood is then at least that of weighted squares plus

    sum_k q_k log(p_k / (q_k t_k)),

so that the evidence of the weighted fit is a lower bound of the mixture's.

Noise often grows with the response. Rows whose predictions have neighbours with large residuals are no
gross errors: ``s^2`` is larger by what the median residual there is larger than usual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, softmax

from lanam.core.arrays import Array
from lanam.core.model.mixtures import NoiseShape, standardised
from lanam.core.terms.knots import weighted_quantiles

#: The least width of a gross error: noise that differs from row to row, or functions not yet in the model,
#: may well be three times as large in some rows as in others.
LEAST_WIDTH = 6.0
_LARGEST_WIDTH = 256.0 * LEAST_WIDTH
#: More gross errors than this are none, but noise that differs.
_MOST_ERRORS = 0.2
_FIRST_ERRORS = 0.01
_ITERATIONS = 100
#: The median of the square of a standard normal variate.
_MEDIAN_SQUARE = 0.455
#: Rows of a bin of similar predictions, and the number of bins.
_BIN_ROWS, _MOST_BINS = 50, 12
#: The largest factor of the noise variance there: errors that pull predictions towards themselves may be
#: most of a bin.
_LARGEST_FACTOR = 9.0
#: Components of fewer rows than this are not part of the noise of new observations.
_LEAST_ROWS = 0.5


@dataclass(frozen=True)
class Residuals:
    """Residuals of rows left out, the variances of their predictions, and weights.

    ``prediction`` is that of the fit to all rows: without itself, a row that is large has a smaller one.
    ``relative`` is each row's noise variance in units of that of complete rows.
    """

    values: Array
    prediction: Array
    variance: Array
    relative: Array
    weight: Array

    @property
    def standard(self) -> Array:
        """Residuals in units of typical noise, the predictions' variances counting as such."""
        typical = _typical(np.square(self.values) / self.relative, self.weight)
        return np.asarray(self.values / np.sqrt(typical * self.relative + self.variance))


@dataclass(frozen=True)
class LocalNoise:
    """Factors of the noise variance, at least 1, by a row's prediction: linear between points."""

    predictions: Array
    log_factors: Array

    @classmethod
    def of(cls, residuals: Residuals) -> LocalNoise:
        """By the median squares of rows with similar predictions, relative to that of all."""
        squares, weight, f = np.square(residuals.standard), residuals.weight, residuals.prediction
        n_bins = int(np.clip(weight.sum() / _BIN_ROWS, 1, _MOST_BINS))
        order = np.argsort(f, kind="stable")
        cuts = weighted_quantiles(f[order], weight[order], np.arange(1, n_bins) / n_bins)
        # Rows with equal predictions are in the same bin.
        bins, index = np.unique(np.searchsorted(cuts, f, side="right"), return_inverse=True)
        rows = [index == k for k in range(len(bins))]
        medians = np.array([_median(squares[part], weight[part]) for part in rows])
        middle = np.array([_median(f[part], weight[part]) for part in rows])
        usual = max(_median(squares, weight), 1e-12 * float(squares.max()), 1e-300)
        return cls(middle, np.log(np.clip(medians / usual, 1.0, _LARGEST_FACTOR)))

    def factors(self, residuals: Residuals) -> Array:
        """Of the rows' noise variances."""
        log_factors = np.interp(residuals.prediction, self.predictions, self.log_factors)
        return np.asarray(np.exp(log_factors))


@dataclass(frozen=True)
class Tails:
    """The noise of regular rows, the probability of each width, and where noise is larger.

    Examples
    --------
    >>> import numpy as np
    >>> r = np.random.default_rng(0).normal(size=300)
    >>> r[:9] += 40.0
    >>> zeros, ones = np.zeros(300), np.ones(300)
    >>> tails = fit_tails(Residuals(r, zeros, zeros, ones, ones))
    >>> round(float(1.0 - tails.probabilities[0]), 2)
    0.03
    """

    noise: float
    probabilities: Array
    widths: Array
    local: LocalNoise

    @property
    def too_many(self) -> bool:
        """Whether errors are so many that they are none, but noise that differs."""
        return 1.0 - float(self.probabilities[0]) > 0.99 * _MOST_ERRORS

    def log_likelihood(self, residuals: Residuals) -> float:
        """Of the residuals."""
        return float(residuals.weight @ logsumexp(self._joint(residuals), axis=1))

    def responsibilities(self, residuals: Residuals) -> Array:
        """Each row's probabilities of the widths (n, K)."""
        return np.asarray(softmax(self._joint(residuals), axis=1))

    def reliability(self, residuals: Residuals) -> tuple[Array, Array]:
        """Each row's precision relative to regular rows, and what its log-likelihood has besides."""
        q = self.responsibilities(residuals)
        ratio = np.log(np.maximum(self.probabilities, 1e-300)) - np.log(np.maximum(q, 1e-300))
        return q @ self.widths**-2.0, np.einsum("nk,nk->n", q, ratio - np.log(self.widths))

    def shape(self, regular: NoiseShape, noise: float, n_rows: float) -> tuple[float, NoiseShape]:
        """The residual distribution with gross errors, and its variance in units of the ``noise``.

        ``regular`` is the distribution of regular rows, whose variance is ``noise``.
        """
        errors = np.flatnonzero(self.probabilities[1:] * n_rows > _LEAST_ROWS) + 1
        widths = self.widths[errors] * math.sqrt(self.noise / noise)
        among = self.probabilities[errors]
        weights = np.append((1.0 - among.sum()) * regular.weights, among)
        means = np.append(regular.means, np.zeros(len(errors)))
        stds = np.append(regular.stds, widths)
        return float(weights @ (means**2 + stds**2)), standardised(weights, means, stds)

    def _joint(self, residuals: Residuals) -> Array:
        """Log-densities of residuals and widths (n, K)."""
        variance = self._noise(residuals) + residuals.variance[:, None]
        square = np.square(residuals.values)[:, None] / variance
        prior = np.log(np.maximum(self.probabilities, 1e-300))
        return np.asarray(prior - 0.5 * (square + np.log(2.0 * math.pi * variance)))

    def _improved(self, residuals: Residuals) -> Tails:
        """A step of EM, in which the noise itself of every row and width is unknown, too."""
        q = residuals.weight[:, None] * self.responsibilities(residuals)
        total = float(residuals.weight.sum())
        noise = self._noise(residuals)
        share = noise / (noise + residuals.variance[:, None])
        squares = share * (
            share * np.square(residuals.values)[:, None] + residuals.variance[:, None]
        )
        expected = float(np.sum(q * squares * self.noise / noise)) / total
        return replace(self, noise=expected, probabilities=_bounded(q.sum(axis=0) / total))

    def _noise(self, residuals: Residuals) -> Array:
        """Variances of the noise by rows and widths (n, K)."""
        regular = self.noise * residuals.relative * self.local.factors(residuals)
        return np.asarray(np.multiply.outer(regular, self.widths**2))


def fit_tails(residuals: Residuals, least_width: float = LEAST_WIDTH) -> Tails:
    """The mixture that maximises the likelihood of residuals, with errors of at least this width."""
    n_errors = 1 + int(2.0 * math.log2(_LARGEST_WIDTH / least_width))
    widths = np.append(1.0, least_width * 2.0 ** (0.5 * np.arange(n_errors)))
    first = np.append(1.0 - _FIRST_ERRORS, np.full(n_errors, _FIRST_ERRORS / n_errors))
    squares, local = np.square(residuals.values) / residuals.relative, LocalNoise.of(residuals)
    typical = _typical(squares / local.factors(residuals), residuals.weight)
    tails = Tails(typical, first, widths, local)
    for _ in range(_ITERATIONS):
        tails = tails._improved(residuals)
    return tails


def _typical(squares: Array, weight: Array) -> float:
    """The noise of most rows; positive where these are fitted exactly, so that nothing overflows."""
    median = _median(squares, weight) / _MEDIAN_SQUARE
    return max(median, 1e-12 * float(squares.max()), 1e-300)


def _median(values: Array, weight: Array) -> float:
    order = np.argsort(values)
    mass = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(mass, 0.5 * mass[-1])])


def _bounded(probabilities: Array) -> Array:
    """Probabilities of which errors have no more than their share."""
    errors = float(probabilities[1:].sum())
    if errors <= _MOST_ERRORS:
        return probabilities
    return np.append(1.0 - _MOST_ERRORS, _MOST_ERRORS / errors * probabilities[1:])
