"""More than two classes: softmax of one sum of terms per class, centred over the classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import logsumexp, softmax

from lanam.core.arrays import Array, sum_by
from lanam.core.likelihoods import Likelihood
from lanam.families.labels import ClassFamily
from lanam.families.links import SOFTMAX, Words


@dataclass(frozen=True)
class Softmax(Likelihood):
    """``y`` is the index of a class, and the classes' log-probabilities are ``Q f`` up to a constant.

    Adding a function to all classes changes nothing, so there is one output fewer than classes: ``f`` are
    coordinates of logits that sum to zero, and the columns of ``Q`` are orthonormal. With equal priors of
    all outputs, the classes are exchangeable.
    """

    size: int

    name = "softmax"

    @property
    def n_classes(self) -> int:
        return self.size

    @property
    def n_outputs(self) -> int:
        return self.size - 1

    @cached_property
    def contrasts(self) -> Array:
        """``Q`` (C, C - 1): orthonormal, each column orthogonal to ones (Helmert's)."""
        return np.asarray(helmert(self.size).T)

    def log_prob(self, y: Array, f: Array) -> Array:
        links = f @ self.contrasts.T
        observed = links[np.arange(len(y)), y.astype(np.intp)]
        return np.asarray(observed - logsumexp(links, axis=1))

    def gradient(self, y: Array, f: Array) -> Array:
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

    def fit_intercept_only(self, y: Array, weight: Array) -> Array:
        counts = sum_by(y.astype(np.intp), weight, self.size)
        # A sample of many rows may lack a rare class, which counts as half a row.
        return np.asarray(np.log(np.where(counts > 0.0, counts, 0.5)) @ self.contrasts)


def softmax_log_probability(mean: Array, covariance: Array) -> Array:
    """Logarithm of approximate ``E[softmax(f)]`` for Gaussian ``f``: (n, C) from (n, C) and (n, C, C).

    By the moderated log-odds of pairs of classes, ``p_c`` is proportional to
    ``1 / sum_c' exp(-(m_c - m_c') / sqrt(1 + pi / 8 Var(f_c - f_c')))``: the softmax itself without
    variance, and MacKay's probit approximation for two classes. Rows sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(softmax_log_probability(np.array([[2.0, 0.0, 0.0]]), np.zeros((1, 3, 3)))).round(3)
    array([[0.787, 0.107, 0.107]])
    >>> np.exp(softmax_log_probability(np.array([[2.0, 0.0, 0.0]]), 9.0 * np.eye(3)[None])).round(3)
    array([[0.503, 0.249, 0.249]])
    """
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    spread = variance[..., :, None] + variance[..., None, :] - 2.0 * covariance
    odds = (mean[..., :, None] - mean[..., None, :]) / np.sqrt(
        1.0 + math.pi / 8.0 * np.maximum(spread, 0.0)
    )
    log_odds = -logsumexp(-odds, axis=-1)
    return np.asarray(log_odds - logsumexp(log_odds, axis=-1, keepdims=True))


class SoftmaxFamily(ClassFamily):
    """More than two classes, with one function per class and term."""

    name = Softmax.name
    link = SOFTMAX
    words = Words(
        response="probability",
        total="centred logit",
        unit="centred logit of each class",
        scale="the centred logit",
        adds="to each class's centred logit",
        reading=(
            "Each class has a logit, its intercept plus the contributions of all terms, centred over the "
            "classes; the larger its logit, the more probable the class. Each plot below is one term with "
            "a curve per class and 95% credible bands."
        ),
    )

    def likelihood(self, n_classes: int = 3) -> Likelihood:
        return Softmax(n_classes)

    def mean(self, mean: Array, variance: Array) -> Array:
        return np.asarray(np.exp(softmax_log_probability(mean, variance)))

    def decision(self, mean: Array, variance: Array) -> Array:
        """Log-probability of every class (n, C)."""
        return softmax_log_probability(mean, variance)

    def probability(self, decision: Array) -> Array:
        return np.asarray(np.exp(decision))

    def log_prob(self, decision: Array, numbers: NDArray[Any]) -> Array:
        return np.asarray(decision[np.arange(len(numbers)), numbers])

    def n_normals(self, n_samples: int, n_classes: int) -> tuple[int, ...]:
        return n_samples, n_classes

    def draw(self, mean: Array, variance: Array, normal: Array) -> Array:
        # The symmetric root, because it treats all classes alike.
        size, vectors = np.linalg.eigh(variance)
        root = (vectors * np.sqrt(np.maximum(size, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
        return np.asarray(softmax(mean[:, None, :] + normal @ root, axis=-1))
