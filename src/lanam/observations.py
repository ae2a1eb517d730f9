"""What the core is given to fit, and the way back; what counts must be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lanam.core.arrays import Array
from lanam.core.likelihoods import Poisson
from lanam.core.model.fitted import FittedModel
from lanam.data import bad_row


class Units:
    """The way between the core's units and the user's.

    Attributes
    ----------
    log_unit
        Logarithm of the exposure that is one to the core.
    left_out
        What the core's log-density leaves out, summed over rows.
    """

    log_unit: float
    left_out: float

    def own(self, model: FittedModel) -> FittedModel:
        """What the core fitted to these, in the user's unit of exposure and with his evidence."""
        return _moved(model, -self.log_unit, self.left_out)

    def standard(self, model: FittedModel) -> FittedModel:
        """The other way round: a model in the user's units as the core would have fitted it."""
        return _moved(model, self.log_unit, -self.left_out)


@dataclass(frozen=True)
class Observations(Units):
    """Response, weights and likelihood as the core fits them.

    Attributes
    ----------
    response, weight
        One a row.
    likelihood
        Its name.
    log_unit, left_out
        See `Units`.
    n_classes
        How many classes the response numbers; 0 where it does not.
    """

    response: Array
    weight: Array
    likelihood: str
    log_unit: float = 0.0
    left_out: float = 0.0
    n_classes: int = 0


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


def observe_counts(counts: Array, weight: Array, exposure: Array) -> Observations:
    """Counts ``y`` with exposure ``e`` as rates ``y / e`` with weight ``w e`` (see ``Poisson``).

    Exposures are divided by their mean first. That moves the intercept and nothing else, and total weight
    stays what it was: by it the core knows copies of rows, whatever the unit of exposure.

    Examples
    --------
    >>> import numpy as np
    >>> hours = np.array([24.0, 72.0])
    >>> seen = observe_counts(np.array([1.0, 6.0]), np.ones(2), hours)
    >>> seen.response, seen.weight
    (array([2., 4.]), array([0.5, 1.5]))
    """
    likelihood = Poisson()
    unit = mean_exposure(float(weight @ exposure), float(weight.sum()))
    return Observations(
        *rates(counts, weight, exposure, unit),
        likelihood.name,
        math.log(unit),
        likelihood.constant(counts, weight),
    )


def mean_exposure(exposure: float, weight: float) -> float:
    """The exposure that is one to the core: the mean, or nearly so.

    Rounded to 40 bits: sums over rows in another order differ in the last ones, and rates should not.

    Examples
    --------
    >>> mean_exposure(96.0, 2.0), mean_exposure(1.0, 3.0)
    (48.0, 0.3333333333334849)
    """
    fraction, exponent = math.frexp(exposure / weight)
    return math.ldexp(round(fraction * 2**40), exponent - 40)


def rates(counts: Array, weight: Array, exposure: Array, unit: float) -> tuple[Array, Array]:
    """Rates in a unit of exposure, and their weights."""
    relative = exposure / unit
    return counts / relative, weight * relative


def require_counts(y: Array) -> Array:
    """Refuse a target that is not counts.

    Raises
    ------
    ValueError
        For negative numbers, and for numbers that are not whole.
    """
    _refuse(
        y,
        y < 0.0,
        "negative values",
        "A count is 0 or more; use likelihood='gaussian' for a target that can be negative.",
    )
    _refuse(
        y,
        y != np.floor(y),
        "values that are not whole numbers",
        "If these are rates, pass the counts as y and what they were counted over as exposure, for "
        "example fit(X, events, exposure=hours); for other targets use likelihood='gaussian'.",
    )
    return y


def _refuse(y: Array, bad: np.ndarray, what: str, remedy: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise bad_row(
            f"likelihood='poisson' is for counts, and y has {what}: {bad.sum()} of {len(y)}, the "
            f"first, {y[row]:g}, in row ",
            row,
            f". {remedy}",
        )


def require_an_event(counts: Array) -> None:
    """Refuse counts that are all zero.

    The logarithm of their rate is minus infinity: where a fit would stop on the way there, and how wide
    its bands would be, the data does not say.
    """
    if not counts.any():
        raise ValueError(
            "y is zero in every row with a positive weight: from no events a rate cannot be learned, "
            "only that it is small. Gather rows until there is an event."
        )


def mixed_labels() -> ValueError:
    """The error for labels that have no order."""
    return ValueError(
        "y mixes text and other labels, which have no order: make all of them text, for example with "
        "`y = [str(label) for label in y]`"
    )


def require_two_classes(classes: np.ndarray) -> None:
    """Refuse a target with one label only."""
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only ({classes.tolist()[0]!r}) among the rows with a positive weight: a "
            "classifier needs rows of two classes"
        )
