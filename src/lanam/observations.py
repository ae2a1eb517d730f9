"""What the core is given to fit, and the way back; counts and exposures as users pass them."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array

from lanam.core.arrays import Array
from lanam.core.likelihoods import Poisson
from lanam.core.model import FittedModel

#: Exposures beyond this, or below its inverse, are a unit gone wrong.
_LARGEST_EXPOSURE = 1e100


@dataclass(frozen=True)
class Observations:
    """Response, weights and likelihood as the core fits them.

    Attributes
    ----------
    response, weight
        One a row.
    likelihood
        Its name.
    log_unit
        Logarithm of the exposure that is one to the core.
    left_out
        What the core's log-density leaves out, summed over rows.
    n_classes
        How many classes the response numbers; 0 where it does not.
    """

    response: Array
    weight: Array
    likelihood: str
    log_unit: float = 0.0
    left_out: float = 0.0
    n_classes: int = 0

    def own(self, model: FittedModel) -> FittedModel:
        """What the core fitted to these, in the user's unit of exposure and with his evidence."""
        return _moved(model, -self.log_unit, self.left_out)

    def standard(self, model: FittedModel) -> FittedModel:
        """The other way round: a model in the user's units as the core would have fitted it."""
        return _moved(model, self.log_unit, -self.left_out)


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
    unit = float(weight @ exposure / weight.sum())
    relative = exposure / unit
    return Observations(
        counts / relative,
        weight * relative,
        likelihood.name,
        math.log(unit),
        likelihood.constant(counts, weight),
    )


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
        raise ValueError(
            f"likelihood='poisson' is for counts, and y has {what}: {bad.sum()} of {len(y)}, the "
            f"first, {y[row]:g}, in row {row}. {remedy}"
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


def read_exposure(exposure: Any, n_rows: int) -> Array:
    """What each row's count was counted over; ones where nothing is said.

    Raises
    ------
    ValueError
        For exposures that are not positive and finite, or not one a row.

    Examples
    --------
    >>> read_exposure(0.5, 3)
    array([0.5, 0.5, 0.5])
    >>> read_exposure([1.0, 0.0, 2.0], 3)
    Traceback (most recent call last):
        ...
    ValueError: exposure must be positive, and 1 of 3 values are not, the first, 0, in row 1. ...
    """
    if exposure is None:
        return np.ones(n_rows)
    if isinstance(exposure, numbers.Real):
        exposure = np.full(n_rows, float(exposure))
    values: Array = check_array(
        exposure,
        dtype=np.float64,
        ensure_2d=False,
        ensure_all_finite=True,
        input_name="exposure",
    )
    if values.shape != (n_rows,):
        raise ValueError(
            f"exposure must be one number, or one a row: X has {n_rows} rows, and exposure has the "
            f"shape {values.shape}"
        )
    bad = values <= 0.0
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"exposure must be positive, and {bad.sum()} of {n_rows} values are not, the first, "
            f"{values[row]:g}, in row {row}. Leave out rows in which nothing could be counted."
        )
    if values.max() > _LARGEST_EXPOSURE or values.min() < 1.0 / _LARGEST_EXPOSURE:
        raise ValueError(
            f"exposure has values from {values.min():.0e} to {values.max():.0e}: change its unit"
        )
    return values
