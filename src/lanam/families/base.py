"""A response family: everything specific to one kind of response, in one object.

The checks and the encoding of y, the link, the likelihood, the dispersion, the predictive distribution and
their names. No code outside this package branches on the family.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.core.model import scoring
from lanam.core.model.distributions import Predictive
from lanam.core.model.fitted import FittedModel
from lanam.core.rows.tables import EncodedRows
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


class Encoded(NamedTuple):
    """Response, weight, offset and precision of some rows, as the core fits them."""

    response: Array
    weight: Array
    offset: Array | None = None
    precision: Array | None = None

    def with_columns(self, columns: Array, number: int = 0) -> EncodedRows:
        """The rows with these columns."""
        return EncodedRows(columns, self.response, self.weight, number, self.offset, self.precision)


@dataclass(frozen=True)
class NewRows:
    """Rows to predict: encoded columns, exposures (or trials), and offsets on the link scale."""

    columns: Array
    exposure: Array
    offset: Array | None = None

    def part(self, rows: slice) -> NewRows:
        """Some of these rows."""
        offset = None if self.offset is None else self.offset[rows]
        return NewRows(self.columns[rows], self.exposure[rows], offset)

    def mean(self, model: FittedModel) -> Array:
        """Mean of the link."""
        return self._shifted(scoring.link_mean(model, self.columns))

    def moments(self, model: FittedModel) -> tuple[Array, Array]:
        """Mean and variance of the link."""
        mean, variance = scoring.link_moments(model, self.columns)
        return self._shifted(mean), variance

    def _shifted(self, mean: Array) -> Array:
        return mean if self.offset is None else np.asarray(mean + self.offset)


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

    def response(
        self,
        target: NDArray[Any],
        weight: Array,
        exposure: Array,
        offset: Array | None = None,
    ) -> Encoded:
        """Some rows as the core fits them."""
        response, weight = self.family.respond(self, target, weight, exposure)
        offset = self.family.known_link(exposure, offset)
        if offset is not None and self.likelihood.standardised:  # exactly
            return Encoded(response - offset, weight)
        return Encoded(response, weight, offset, self.family.precision(exposure))

    def to_user(self, model: FittedModel) -> FittedModel:
        """The core's model in the user's unit of exposure, with the evidence of y itself."""
        return self.family.finished(_moved(model, -self.log_unit, self.constant))

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
    #: whether exposures are in the weights of the core's rows
    weighs_exposure: ClassVar[bool] = False
    #: whether y counts successes among a number of trials, which then stand for exposures everywhere
    takes_trials: ClassVar[bool] = False
    #: whether encoding one target needs the statistics of all
    needs_statistics: ClassVar[bool] = False
    #: whether there is additive noise with a standard deviation in the unit of y
    has_noise: ClassVar[bool] = False
    #: lower bound of the fitted noise: a Gaussian variance is positive, a count's dispersion at least one
    least_noise: ClassVar[float] = 0.0
    #: upper bound of the noise, beyond which no fit comes
    most_noise: ClassVar[float] = math.inf

    def configured(self, arguments: Mapping[str, Any]) -> Family:
        """The family with what the estimator's arguments say of it."""
        return self

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

    def known_link(self, exposure: Array, offset: Array | None) -> Array | None:
        """The known part of the link in each row; None if it is zero everywhere."""
        return offset

    def precision(self, exposure: Array) -> Array | None:
        """What divides the dispersion of each row; None for one."""
        return None

    # the core

    @abstractmethod
    def likelihood(self, n_classes: int = 0) -> Likelihood:
        """The likelihood that the core fits."""

    def likelihood_of(self, model: FittedModel) -> Likelihood:
        """The likelihood with the parameters of a fitted model."""
        return self.likelihood(np.size(model.intercept)).with_parameters(model.parameters)

    def bounds_of(self, n_parameters: int) -> Sequence[tuple[float, float]]:
        """The bounds of the likelihood's own parameters, in units of the response."""
        return self.likelihood().bounds

    def of_model(self, model: FittedModel) -> Family:
        """The family as predictions of a fitted model need it."""
        return self

    def n_classes(self, model: FittedModel) -> int:
        """The number of classes of a fitted model; 0 for numeric responses."""
        if not self.link.classes:
            return 0
        return np.size(model.intercept) if self.link.several else 2

    def finished(self, model: FittedModel) -> FittedModel:
        """A fitted model with what follows from the likelihood's parameters."""
        return model

    def evidence_correction(self, model: FittedModel, rows: EncodedRows, *, exposed: bool) -> float:
        """What the log evidence of rows lacks to be that of a distribution, to compare families.

        Zero where the core maximises a log-density; the model and the rows are the core's.
        """
        return 0.0

    # predictions

    @abstractmethod
    def mean(self, mean: Array, variance: Array) -> Array:
        """Posterior mean of y at exposure 1, from mean and variance of the link."""

    def predict(self, model: FittedModel, rows: NewRows) -> Array:
        """Mean of y in each row."""
        return self.predictive(model, rows).mean

    def response(self, link: Array, exposure: Array) -> Array:
        """The response at points of the link scale."""
        return self.link.inverse(link)

    def expected(self, model: FittedModel, rows: NewRows, link: Array) -> Array:
        """Means of y at points of the link scale (..., n)."""
        return self.response(link, rows.exposure)

    def predictive(self, model: FittedModel, rows: NewRows) -> Predictive:
        """The predictive distributions of the rows."""
        raise TypeError(f"{self.name} has classes, and no distribution of numbers")

    # the noise

    def noise_std(self, model: FittedModel) -> float | None:
        """Standard deviation of homoscedastic noise; None if there is none."""
        return None

    def dispersion(self, model: FittedModel) -> float | None:
        """Ratio of the variance of y to that implied by its mean; None where it is not estimated."""
        return None

    def shown_parameters(self, model: FittedModel) -> dict[str, float]:
        """Parameters of the likelihood beside noise and dispersion, by the words of summaries."""
        return {}


def link_interval(model: FittedModel, rows: NewRows, scores: Array) -> Array:
    """Quantiles (n, k) of the link at normal scores (k,)."""
    mean, variance = rows.moments(model)
    return np.asarray(mean[:, None] + np.sqrt(variance)[:, None] * scores)
