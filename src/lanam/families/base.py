"""A response family: all that is particular to one kind of response, in one object.

What y may be and how it is encoded for the core, the link, the likelihood, the dispersion, the
predictive distribution, and the words for all of these. Estimators, calibration, metrics, storage, exports
and reports ask the family of a model; none of them knows which families there are.
"""

from __future__ import annotations

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
    """What of all targets must be known before they can be encoded: sums, which merge.

    Attributes
    ----------
    n_rows, weight
        How many rows have a positive weight, and their weight.
    exposure
        Sum of weight times exposure.
    total
        Sum of the targets.
    constant
        What the core's log-density leaves out, summed over rows.
    classes
        The labels that occur, ascending.
    """

    n_rows: int = 0
    weight: float = 0.0
    exposure: float = 0.0
    total: float = 0.0
    constant: float = 0.0
    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0))

    def merged(self, other: Statistics) -> Statistics:
        """Of these rows and others."""
        return Statistics(
            self.n_rows + other.n_rows,
            self.weight + other.weight,
            self.exposure + other.exposure,
            self.total + other.total,
            self.constant + other.constant,
            merge_classes(self.classes, other.classes),
        )


def merge_classes(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """The labels that occur in either."""
    if not (len(first) and len(second)):  # the dtype of nothing says nothing
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
    """The way between users' targets and what the core fits.

    Attributes
    ----------
    family
        The family, once the number of classes is known.
    classes
        A classifier's labels, ascending.
    unit, log_unit
        The exposure that is one to the core, and its logarithm.
    constant
        What the core's log-density leaves out, summed over rows.
    """

    family: Family
    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    unit: float = 1.0
    log_unit: float = 0.0
    constant: float = 0.0

    @property
    def likelihood(self) -> Likelihood:
        """What the core fits."""
        return self.family.likelihood(len(self.classes))

    def response(self, target: NDArray[Any], weight: Array, exposure: Array) -> tuple[Array, Array]:
        """Response and weight of some rows, as the core fits them."""
        return self.family.respond(self, target, weight, exposure)

    def to_user(self, model: FittedModel) -> FittedModel:
        """What the core fitted, in the user's unit of exposure and with the evidence of y itself."""
        return _moved(model, -self.log_unit, self.constant)

    def to_core(self, model: FittedModel) -> FittedModel:
        """The inverse: a model in the user's units as the core would have fitted it."""
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
    """A kind of response.

    Attributes
    ----------
    name
        The value of ``likelihood=`` that asks for it, and the tag of fitted models and files.
    link, words
        The scale on which terms add up, and what its numbers are called.
    discrete
        Whether y is whole numbers: intervals have both ends inside, and hold at least their coverage.
    positive
        Whether y may not be negative.
    takes_exposure
        Whether y is counted over an exposure.
    needs_statistics
        Whether all targets must be seen before one can be encoded.
    has_noise
        Whether there is an additive noise, with a standard deviation in the unit of y.
    least_noise
        No fit ends below: the variance of numbers is never nothing, that of counts at least their mean.
    """

    name: ClassVar[str]
    link: ClassVar[Link] = IDENTITY
    words: ClassVar[Words] = Words()
    discrete: ClassVar[bool] = False
    positive: ClassVar[bool] = False
    takes_exposure: ClassVar[bool] = False
    needs_statistics: ClassVar[bool] = False
    has_noise: ClassVar[bool] = False
    least_noise: ClassVar[float] = 0.0

    # y

    def check(self, y: Array) -> Array:
        """Finite numbers as targets of this family; an error for those that cannot be."""
        return y

    def statistics(self, target: NDArray[Any], weight: Array, exposure: Array) -> Statistics:
        """What must be known of some rows' targets."""
        return Statistics(
            len(weight), float(weight.sum()), float(weight @ exposure), float(target.sum())
        )

    def encoding(self, statistics: Statistics) -> Encoding:
        """How targets with these statistics are encoded; an error where they cannot be fitted."""
        return Encoding(self)

    def respond(
        self, encoding: Encoding, target: NDArray[Any], weight: Array, exposure: Array
    ) -> tuple[Array, Array]:
        """Response and weight of some rows, as the core fits them."""
        return target, weight

    # the core

    @abstractmethod
    def likelihood(self, n_classes: int = 0) -> Likelihood:
        """What the core fits."""

    # predictions

    @abstractmethod
    def mean(self, mean: Array, variance: Array) -> Array:
        """Mean of y over the posterior, by mean and variance of the link, at an exposure of one."""

    def predict(self, model: FittedModel, columns: Array, exposure: Array) -> Array:
        """Mean of y in some rows."""
        return self.predictive(model, columns, exposure).mean

    def response(self, link: Array, exposure: Array) -> Array:
        """The response at points of the link scale."""
        return self.link.inverse(link)

    def predictive(self, model: FittedModel, columns: Array, exposure: Array) -> Predictive:
        """The distributions of new observations in some rows."""
        raise TypeError(f"{self.name} has classes, and no distribution of numbers")

    # the noise

    def noise_std(self, model: FittedModel) -> float | None:
        """Standard deviation of the noise; None where there is none of one size."""
        return None

    def dispersion(self, model: FittedModel) -> float | None:
        """By how much the variance of y exceeds what its mean says; None where nothing is learned."""
        return None


def link_interval(model: FittedModel, columns: Array, scores: Array) -> Array:
    """Quantiles (n, k) of the link at normal scores (k,)."""
    mean, variance = scoring.link_moments(model, columns)
    return np.asarray(mean[:, None] + np.sqrt(variance)[:, None] * scores)
