"""Likelihoods ``p(y | f)`` of the link-scale prediction.

Each family (``lanam.families``) has one: the log-density, its gradient and its curvature in ``f``
(``gamma`` of the paper's eq. for ``Sigma_d``), all per row and without weights. With several outputs,
``f`` and the gradient have one column per output, and the curvature is one matrix per row.

A likelihood is a value: its own parameters (the shape of a Gamma distribution, the cut points of grades)
are fields, which are learned with the functions (``core/inference/own_parameters.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Self, cast

import numpy as np

from lanam.core.arrays import Array, Intercept

#: Rates up to ``exp`` of this can be weighted, squared and summed without overflow.
_LARGEST_LOG = 300.0


class Likelihood(ABC):
    """What the core must know of a likelihood."""

    #: the family's tag, in fitted models and in files
    name: ClassVar[str]
    #: whether the log-density is quadratic in ``f``, so that one expansion is exact
    quadratic: ClassVar[bool] = False
    #: whether ``f`` has the unit of ``y``, which is then standardised for the fit
    standardised: ClassVar[bool] = False
    #: its own parameters that are learned, all positive: names of fields, and their bounds
    learned: ClassVar[Mapping[str, tuple[float, float]]] = MappingProxyType({})
    #: bounds of the factor by which the variance of ``y`` exceeds the likelihood's own: a Gaussian's noise
    #: variance (in units of the response's), the dispersion of counts; None where there is none to learn
    noise_bounds: ClassVar[tuple[float, float] | None] = None
    #: whether the noise may be heteroscedastic, by a second additive model
    heteroscedastic: ClassVar[bool] = False
    #: whether the dispersion is at least Pearson's estimate, by :meth:`pearson`
    pearson_dispersion: ClassVar[bool] = False

    @property
    def n_classes(self) -> int:
        """How many classes the response encodes; 0 for numeric responses."""
        return 0

    @property
    def n_outputs(self) -> int:
        """How many functions a term has."""
        return 1

    @property
    def contrasts(self) -> Array | None:
        """``Q`` (C, C - 1), from outputs to classes, where there are several outputs."""
        return None

    # its own parameters

    @property
    def parameters(self) -> tuple[float, ...]:
        """The values of the parameters that are learned; empty where there are none."""
        return tuple(float(getattr(self, name)) for name in self.learned)

    @property
    def named_parameters(self) -> dict[str, float | list[float]]:
        """The same by name."""
        return dict(zip(self.learned, self.parameters, strict=True))

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """The bounds of the parameters."""
        return tuple(self.learned.values())

    def with_parameters(self, values: Sequence[float]) -> Self:
        """The same likelihood with other parameters."""
        named = dict(zip(self.learned, values, strict=True))
        return cast(Self, replace(cast(Any, self), **named)) if named else self

    def in_unit(self, scale: float) -> Self:
        """The likelihood of ``scale * y`` and ``scale * f``, where these have the same unit."""
        return self

    def with_variance(self, ratio: float) -> Self | None:
        """The likelihood with this many times the variance; None if the variance is not a parameter."""
        return None

    @property
    def excess(self) -> float:
        """The factor by which residuals vary more than the family: it divides what rows tell of ``f``.

        Parameters and predictions are the family's own, the posterior that of a quasi-likelihood.
        """
        return 1.0

    def with_excess(self, excess: float) -> Self:
        """The likelihood with another excess."""
        return self

    # of rows

    @abstractmethod
    def log_prob(self, y: Array, f: Array) -> Array:
        """Log-density at unit noise, up to terms that do not depend on ``f``."""

    def normaliser(self, y: Array, precision: Array | None) -> Array | None:
        """What a log-density that scales with the row's ``precision`` has besides; None for nothing."""
        return None

    @abstractmethod
    def gradient(self, y: Array, f: Array) -> Array:
        """Derivative of the log-density in ``f``."""

    @abstractmethod
    def curvature(self, f: Array) -> Array:
        """Minus its second derivative, or the expectation of that."""

    @abstractmethod
    def fit_intercept_only(self, y: Array, weight: Array) -> Intercept:
        """The intercept of the best constant model."""

    def deviance(self, y: Array, f: Array) -> Array:
        """Twice what the best prediction of each row alone would gain, in units of the dispersion."""
        return np.asarray(-2.0 * self.log_prob(y, f))

    def pearson(self, y: Array, f: Array) -> Array:
        """Squared deviations from the mean in units of the variance, of counts at dispersion one."""
        raise AssertionError(f"{self.name} has no Pearson dispersion")


def bounded_exp(f: Array) -> Array:
    """``exp`` without overflow, so that a step too far gives a large number instead of NaN."""
    return np.asarray(np.exp(np.minimum(f, _LARGEST_LOG)))
