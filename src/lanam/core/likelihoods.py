"""Likelihoods ``p(y | f)`` of the link-scale prediction: one small class each.

Each gives the log-density, its slope and its curvature in ``f`` (``gamma`` of the paper's eq. for
``Sigma_d``), all per row and without weights. Where there are several outputs, ``f`` and the slope have a
column each, and the curvature is a matrix a row.

``noise_bounds`` are those of a factor by which the variance of ``y`` exceeds what the likelihood says:
the noise variance of a Gaussian, the dispersion of counts. None where there is no such thing to learn.
``quadratic`` says whether the log-density is one in ``f``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import helmert
from scipy.special import expit, gammaln, log_expit, logsumexp, softmax, xlogy

from lanam.core.arrays import Array, sum_by

#: Rates up to ``exp`` of this can be multiplied by weights, squared and summed.
_LARGEST_LOG_RATE = 300.0


@dataclass(frozen=True)
class Gaussian:
    """``y = f + noise``. Slope and curvature are those of unit noise; the noise scales both."""

    name = "gaussian"
    quadratic = True
    #: in units of the response's variance
    noise_bounds = (1e-6, 4.0)
    n_outputs = 1

    def log_prob(self, y: Array, f: Array) -> Array:
        """Unit noise, without the constant ``-log(2 pi) / 2``."""
        return -0.5 * (y - f) ** 2

    def slope(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""
        return y - f

    def curvature(self, f: Array) -> Array:
        """Minus its second derivative."""
        return np.ones_like(f)

    def start(self, y: Array, weight: Array) -> float:
        """The intercept of the best constant model."""
        return float(weight @ y / weight.sum())


@dataclass(frozen=True)
class Bernoulli:
    """``y`` is 0 or 1 and ``f`` the log-odds."""

    name = "bernoulli"
    quadratic = False
    noise_bounds = None
    n_outputs = 1

    def log_prob(self, y: Array, f: Array) -> Array:
        """Log-density."""
        return np.asarray(y * f + log_expit(-f))

    def slope(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""
        return np.asarray(y - expit(f))

    def curvature(self, f: Array) -> Array:
        """Minus its second derivative."""
        p = expit(f)
        return np.asarray(p * (1.0 - p))

    def start(self, y: Array, weight: Array) -> float:
        """The intercept of the best constant model."""
        mean = float(weight @ y / weight.sum())
        return math.log(mean / (1.0 - mean))


@dataclass(frozen=True)
class Poisson:
    """``y`` is a count, or a count per unit of exposure, and ``f`` the logarithm of its rate.

    A count ``y`` with exposure ``e`` and weight ``w`` is the response ``y / e`` with weight ``w e``.

    Real counts vary more than a Poisson distribution says. Their variance is ``phi`` times their mean,
    and ``phi``, 1 at least, is learned as a noise is: the log-density is minus half the deviance, divided
    by ``phi``, less half the logarithm of ``2 pi phi`` (Nelder and Pregibon's extended quasi-likelihood).
    :meth:`constant` is what it then lacks to the counts' own with ``phi = 1``.
    """

    name = "poisson"
    quadratic = False
    noise_bounds = (1.0, 1e12)
    n_outputs = 1

    def log_prob(self, y: Array, f: Array) -> Array:
        """Minus half the deviance."""
        return np.asarray(y * f - _rate(f) - xlogy(y, y) + y)

    def slope(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""
        return np.asarray(y - _rate(f))

    def curvature(self, f: Array) -> Array:
        """Minus its second derivative."""
        return _rate(f)

    def start(self, y: Array, weight: Array) -> float:
        """The intercept of the best constant model."""
        return math.log(float(weight @ y / weight.sum()))

    def pearson(self, y: Array, f: Array) -> Array:
        """Squared deviations from the mean in units of it: the dispersion on average."""
        rate = _rate(f)
        return np.asarray((y - rate) ** 2 / np.maximum(rate, np.finfo(float).tiny))

    def constant(self, counts: Array, weight: Array) -> float:
        """What the evidence of the counts has besides: no part of it depends on ``f``."""
        saturated = xlogy(counts, counts) - counts - gammaln(counts + 1.0)
        return float(weight @ (saturated + 0.5 * math.log(2.0 * math.pi)))


def _rate(f: Array) -> Array:
    # A step that goes too far must find a bad value there, not infinity less infinity.
    return np.asarray(np.exp(np.minimum(f, _LARGEST_LOG_RATE)))


@dataclass(frozen=True)
class LogVariance:
    """``y`` is a squared residual and ``f`` the logarithm of its mean, the variance of a Gaussian.

    The log-density is that of the residual. Its second derivative depends on ``y``; the curvature is the
    expectation of that, which is the same everywhere.
    """

    name = "log-variance"
    quadratic = False
    noise_bounds = None
    n_outputs = 1

    def log_prob(self, y: Array, f: Array) -> Array:
        """Log-density of a residual, without the constant ``-log(2 pi) / 2``."""
        return np.asarray(-0.5 * (f + y * _rate(-f)))

    def slope(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""
        return np.asarray(0.5 * (y * _rate(-f) - 1.0))

    def curvature(self, f: Array) -> Array:
        """Minus the expectation of its second derivative."""
        return np.full_like(f, 0.5)

    def start(self, y: Array, weight: Array) -> float:
        """The intercept of the best constant model."""
        return math.log(float(weight @ y / weight.sum()))


@dataclass(frozen=True)
class Softmax:
    """``y`` is the number of a class, and the classes' log-probabilities are ``Q f`` up to a constant.

    Adding a function to all classes changes nothing, so there is one output less than classes: ``f`` are
    coordinates of what sums to zero over the classes, and the columns of ``Q`` are orthonormal. With equal
    priors of all outputs no class is special.
    """

    n_classes: int

    name = "softmax"
    quadratic = False
    noise_bounds = None

    @property
    def n_outputs(self) -> int:
        """One less than classes."""
        return self.n_classes - 1

    @cached_property
    def contrasts(self) -> Array:
        """``Q`` (C, C - 1): orthonormal, each column orthogonal to ones (Helmert's)."""
        return np.asarray(helmert(self.n_classes).T)

    def log_prob(self, y: Array, f: Array) -> Array:
        """Log-probability of the class."""
        links = f @ self.contrasts.T
        own = links[np.arange(len(y)), y.astype(np.intp)]
        return np.asarray(own - logsumexp(links, axis=1))

    def slope(self, y: Array, f: Array) -> Array:
        """Derivative of the log-probability in ``f`` (n, C - 1)."""
        probability = softmax(f @ self.contrasts.T, axis=1)
        return np.asarray(self.contrasts[y.astype(np.intp)] - probability @ self.contrasts)

    def curvature(self, f: Array) -> Array:
        """Minus its second derivatives (n, C - 1, C - 1): ``Q' (diag(p) - p p') Q``."""
        probability = softmax(f @ self.contrasts.T, axis=1)
        mean = probability @ self.contrasts
        squares = np.einsum(
            "nc,ci,cj->nij", probability, self.contrasts, self.contrasts, optimize=True
        )
        return np.asarray(squares - mean[:, :, None] * mean[:, None, :])

    def start(self, y: Array, weight: Array) -> Array:
        """The intercepts of the best constant model."""
        share = sum_by(y.astype(np.intp), weight, self.n_classes) / weight.sum()
        return np.asarray(np.log(share) @ self.contrasts)


Likelihood = Gaussian | Bernoulli | Poisson | LogVariance | Softmax

LIKELIHOODS: dict[str, Likelihood] = {
    known.name: known for known in (Gaussian(), Bernoulli(), Poisson())
}


def find_likelihood(name: str, n_classes: int) -> Likelihood:
    """The likelihood of a name; only that of several classes needs to know how many there are."""
    return Softmax(n_classes) if name == Softmax.name else LIKELIHOODS[name]
