"""Likelihoods ``p(y | f)`` of the link-scale prediction, as the core sees them.

Each family (``lanam.families``) has one: the log-density, its slope and its curvature in ``f`` (``gamma``
of the paper's eq. for ``Sigma_d``), all per row and without weights. With several outputs, ``f`` and the
slope have a column each, and the curvature is a matrix per row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from lanam.core.arrays import Array, Intercept

#: Rates up to ``exp`` of this can be multiplied by weights, squared and summed.
_LARGEST_LOG = 300.0


class Likelihood(ABC):
    """What the core must know of a likelihood.

    Attributes
    ----------
    name
        The family's tag, in fitted models and in files.
    quadratic
        Whether the log-density is quadratic in ``f``, so that one expansion is exact.
    noise_bounds
        Bounds of a factor by which the variance of ``y`` exceeds what the likelihood says: the noise
        variance of a Gaussian (in units of the response's), the dispersion of counts. None where there is
        nothing of the kind to learn.
    heteroscedastic
        Whether a second additive model may say how the noise differs between rows.
    pearson_dispersion
        Whether the dispersion is at least Pearson's estimate, by :meth:`pearson`.
    n_classes
        How many classes the response numbers; 0 where it is a number itself.
    contrasts
        ``Q`` (C, C - 1), from outputs to classes, where there are several outputs.
    """

    name: ClassVar[str]
    quadratic: ClassVar[bool] = False
    noise_bounds: ClassVar[tuple[float, float] | None] = None
    heteroscedastic: ClassVar[bool] = False
    pearson_dispersion: ClassVar[bool] = False

    @property
    def n_classes(self) -> int:
        """See the class."""
        return 0

    @property
    def n_outputs(self) -> int:
        """How many functions a term has."""
        return 1

    @property
    def contrasts(self) -> Array | None:
        """See the class."""
        return None

    @abstractmethod
    def log_prob(self, y: Array, f: Array) -> Array:
        """Log-density at unit noise, without what does not depend on ``f``."""

    @abstractmethod
    def slope(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""

    @abstractmethod
    def curvature(self, f: Array) -> Array:
        """Minus its second derivative, or the expectation of that."""

    @abstractmethod
    def start(self, y: Array, weight: Array) -> Intercept:
        """The intercept of the best constant model."""

    def pearson(self, y: Array, f: Array) -> Array:
        """Squared deviations from the mean in units of the variance at dispersion one."""
        raise AssertionError(f"{self.name} has no dispersion of Pearson's")


def bounded_exp(f: Array) -> Array:
    """``exp`` that a step too far finds large, and not infinite less infinite."""
    return np.asarray(np.exp(np.minimum(f, _LARGEST_LOG)))
