"""A response family: everything specific to one kind of response, in one object.

The checks and the encoding of y, the link, the likelihood, the dispersion, the predictive distribution and
their names. No code outside this package branches on the family.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.core.model import scoring
from lanam.core.model.distributions import Predictive
from lanam.core.model.fitted import FittedModel
from lanam.families.links import IDENTITY, Link, Words


@dataclass(frozen=True)
class Statistics:
    """Sums over the rows with a positive weight that the encoding of targets depends on."""

    n_rows: int = 0
    weight: float = 0.0
    #: of weight times exposure
    exposure: float = 0.0
    #: of the targets
    total: float = 0.0
    #: of the terms that the core's log-density omits
    constant: float = 0.0
    #: ascending
    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0))

    def merged(self, other: Statistics) -> Statistics:
        """The statistics of these rows and others."""
        values, others = vars(self), vars(other)
        sums = {name: values[name] + others[name] for name in values if name != "classes"}
        return Statistics(**sums, classes=_merge_classes(self.classes, other.classes))


def _merge_classes(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    if not (len(first) and len(second)):  # an empty array has an arbitrary dtype
        return first if len(first) else second
    if (first.dtype.kind in "OU") != (second.dtype.kind in "OU"):
        raise mixed_labels()
    return np.unique(np.concatenate([first, second]))


def mixed_labels() -> ValueError:
    """The error for labels that have no order."""
    return ValueError(
        "y mixes text and other labels, which have no order: make all of them text, for example with "
        "`y = [str(label) for label in y]`"
    )


@dataclass(frozen=True)
class Encoding:
    """The map between users' targets and the core's response."""

    #: chosen by the number of classes
    family: Family
    #: ascending
    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    #: the exposure that equals 1 in the core, and its logarithm
    unit: float = 1.0
    log_unit: float = 0.0
    #: sum of the terms that the core's log-density omits
    constant: float = 0.0

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood that the core fits."""
        return self.family.likelihood(len(self.classes))

    def response(self, target: NDArray[Any], weight: Array, exposure: Array) -> tuple[Array, Array]:
        """Response and weight of some rows, as the core fits them."""
        return self.family.respond(self, target, weight, exposure)

    def to_user(self, model: FittedModel) -> FittedModel:
        """The core's model in the user's unit of exposure, with the evidence of y itself."""
        return _moved(model, -self.log_unit, self.constant)

    def to_core(self, model: FittedModel) -> FittedModel:
        """The inverse of :meth:`to_user`."""
        return _moved(model, self.log_unit, -self.constant)


def _moved(model: FittedModel, link: float, evidence: float) -> FittedModel:
    if link == 0.0 and evidence == 0.0:
        return model
    records = ({**past, "log_evidence": past["log_evidence"] + evidence} for past in model.history)
    return replace(
        model,
        intercept=model.intercept + link,
        log_evidence=model.log_evidence + evidence,
        history=tuple(records),
    )


class Family(ABC):
    """A kind of response."""

    #: the value of ``likelihood=``, and the tag in fitted models and files
    name: ClassVar[str]
    #: the scale on which terms add up, and the names of its quantities
    link: ClassVar[Link] = IDENTITY
    words: ClassVar[Words] = Words()
    #: whether y is integer: intervals include both ends and have at least their nominal coverage
    discrete: ClassVar[bool] = False
    #: whether y is never negative
    positive: ClassVar[bool] = False
    takes_exposure: ClassVar[bool] = False
    #: whether encoding one target needs the statistics of all
    needs_statistics: ClassVar[bool] = False
    #: whether there is additive noise with a standard deviation in the unit of y
    has_noise: ClassVar[bool] = False
    #: lower bound of the fitted noise: a Gaussian variance is positive, a count's dispersion at least one
    least_noise: ClassVar[float] = 0.0
    #: upper bound of the noise, beyond which no fit comes
    most_noise: ClassVar[float] = math.inf

    # y

    def check(self, y: Array) -> Array:
        """Finite numeric targets, valid for this family; an error otherwise."""
        return y

    def statistics(self, target: NDArray[Any], weight: Array, exposure: Array) -> Statistics:
        """The statistics of some rows' targets."""
        return Statistics(
            len(weight), float(weight.sum()), float(weight @ exposure), float(target.sum())
        )

    def encoding(self, statistics: Statistics) -> Encoding:
        """The encoding by these statistics; an error if such targets cannot be fitted."""
        return Encoding(self)

    def respond(
        self, encoding: Encoding, target: NDArray[Any], weight: Array, exposure: Array
    ) -> tuple[Array, Array]:
        """Response and weight of some rows, as the core fits them."""
        return target, weight

    # the core

    @abstractmethod
    def likelihood(self, n_classes: int = 0) -> Likelihood:
        """The likelihood that the core fits."""

    # predictions

    @abstractmethod
    def mean(self, mean: Array, variance: Array) -> Array:
        """Posterior mean of y at exposure 1, from mean and variance of the link."""

    def predict(self, model: FittedModel, columns: Array, exposure: Array) -> Array:
        """Mean of y in each row."""
        return self.predictive(model, columns, exposure).mean

    def response(self, link: Array, exposure: Array) -> Array:
        """The response at points of the link scale."""
        return self.link.inverse(link)

    def predictive(self, model: FittedModel, columns: Array, exposure: Array) -> Predictive:
        """The predictive distributions of the rows."""
        raise TypeError(f"{self.name} has classes, and no distribution of numbers")

    # the noise

    def noise_std(self, model: FittedModel) -> float | None:
        """Standard deviation of homoscedastic noise; None if there is none."""
        return None

    def dispersion(self, model: FittedModel) -> float | None:
        """Ratio of the variance of y to that implied by its mean; None where it is not estimated."""
        return None


def link_interval(model: FittedModel, columns: Array, scores: Array) -> Array:
    """Quantiles (n, k) of the link at normal scores (k,)."""
    mean, variance = scoring.link_moments(model, columns)
    return np.asarray(mean[:, None] + np.sqrt(variance)[:, None] * scores)
