"""Times to an event: the log hazard is a sum of terms, of which one is a function of time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.errors import InputError
from lanam.families.base import Encoding, Family
from lanam.families.links import LOG, Words
from lanam.families.poisson import Poisson

#: More codes than this are no causes.
_MAX_CAUSES = 20


class PiecewiseExponential(Poisson):
    """Rates of events over intervals of follow-up, and ``f`` the log hazard.

    An event, or none, during the exposure ``e`` with weight ``w`` is the response ``1 / e`` or zero with
    weight ``w e``, as for counts; their dispersion is one, because a subject has one event at most.
    """

    name = "survival"
    noise_bounds = None
    pearson_dispersion = False


class SurvivalFamily(Family):
    """Events by code: 0 is censored, and every positive integer a cause.

    Examples
    --------
    >>> import numpy as np
    >>> SurvivalFamily().check(np.array([0.0, 1.0, 2.0]))
    array([0., 1., 2.])
    """

    name = PiecewiseExponential.name
    link = LOG
    words = Words(
        response="hazard",
        total="log hazard",
        unit="log hazard",
        scale="the logarithm of the hazard",
        ratio="hazard ratio",
        factor="hazard ratio",
        note="events per unit of time",
        average="",  # of codes
        expected="expected number of events",
        reading=(
            "The logarithm of the hazard, the rate of events among those still at risk, is the intercept "
            "plus the contributions of all terms: a contribution of 0.1 makes the hazard about a tenth "
            "larger, whatever the other terms. The term of time is the baseline hazard, and an interaction "
            "with time is an effect that changes during follow-up. Each curve below is one term with its "
            "95% credible band, which is wide where there is little data."
        ),
    )
    positive = True

    def check(self, y: Array) -> Array:
        """Integers of at least 0, of which few differ."""
        bad = (y < 0.0) | (y != np.floor(y))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                "{argument} must be 0 for censored rows and a positive integer, the code of the cause, for "
                f"others; {bad.sum()} of {len(y)} values are not, the first, {y[row]:g}, in row {{row}}",
                "for one kind of event use 0 and 1, or False and True",
                argument="event",
                row=row,
            )
        codes = np.unique(y[y > 0.0])
        if len(codes) > _MAX_CAUSES:
            raise InputError(
                f"{{argument}} has {len(codes)} different codes of events, which look like times",
                "pass the event, 0 for censored, as event=... and the time of follow-up as time=...",
                argument="event",
            )
        return y

    def likelihood(self, n_classes: int = 0) -> Likelihood:
        return PiecewiseExponential()

    def mean(self, mean: Array, variance: Array) -> Array:
        """The hazard at the posterior mean of its logarithm: its posterior median, as curves have it."""
        return self.link.inverse(mean)

    def respond(
        self, encoding: Encoding, target: NDArray[Any], weight: Array, exposure: Array
    ) -> tuple[Array, Array]:
        """Codes of events; the core has rates of each cause (``core.rows.follow_up``)."""
        return target, weight
