"""Links from the additive scale to the response, and the names of quantities on both scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from lanam.core.arrays import Array
from lanam.text import shorten

#: The largest logarithm of a mean: more would be infinite.
LARGEST_LOG = 700.0

#: The name of a class is cut to this many characters where a unit is named.
_MAX_CLASS = 24


@dataclass(frozen=True)
class Link:
    """The scale on which terms add up."""

    #: in explanations and exports
    name: str
    #: whether the response is the probability of a class
    classes: bool = False
    #: whether each class has its own function, so that arrays have a class axis
    several: bool = False
    #: whether ``exp`` of a contribution is a ratio of means
    relative: bool = False

    @property
    def identity(self) -> bool:
        """Whether contributions have the unit of the response."""
        return self == IDENTITY

    def inverse(self, link: Array) -> Array:
        """The response at points of the link scale."""
        return np.asarray(_INVERSES[self.name](link))


def _exp(link: Array) -> Array:
    """Finite: as large as a mean of counts can be."""
    return np.asarray(np.exp(np.minimum(link, LARGEST_LOG)))


_INVERSES = {
    "identity": np.asarray,
    "log": _exp,
    "logit": expit,
    "softmax": partial(softmax, axis=-1),
}

IDENTITY = Link("identity")
LOG = Link("log", relative=True)
LOGIT = Link("logit", classes=True)
SOFTMAX = Link("softmax", classes=True, several=True)


@dataclass(frozen=True)
class Words:
    """A family's terminology in plots, reports, summaries and on the command line.

    ``{}`` stands for the class.
    """

    #: the predicted quantity: "prediction", "rate", "probability"
    response: str = "prediction"
    #: the sum of contributions in an equation: "log-odds -1.2 = ..."
    total: str = "prediction"
    #: the same as an axis label
    unit: str = "prediction"
    #: the same in a sentence, "adds 0.3 to ..."
    scale: str = "the prediction"
    #: the same on the command line; by default "to" and ``scale``
    adds: str = ""
    #: the name of ``exp`` of a difference; "" where it has no meaning
    ratio: str = ""
    #: the column of a rating table with ``exp`` of each contribution; "" for none
    factor: str = ""
    #: after the response, in parentheses
    note: str = ""
    #: the mean of the target, in a report; "" where it says nothing
    average: str = "mean of {}"
    #: the prediction of the what-if page
    expected: str = "prediction"
    #: how to read terms, in a report
    reading: str = (
        "A prediction is the intercept plus the contributions of all terms, in the target's unit. Each "
        "curve below is one term: the contribution of each value of the column, with its 95% credible "
        "band. The band is wide where there is little data; if it includes zero everywhere, the column may "
        "well have no effect."
    )

    def unit_of(self, classes: Sequence[Any] | None) -> str:
        """The unit of contributions, by the name of the second of two classes if it has one."""
        if "{}" not in self.unit:
            return self.unit
        return self.unit.format(shorten(str(classes[1]), _MAX_CLASS)) if classes else self.total

    def adds_to(self, classes: Sequence[Any] | None) -> str:
        """Where contributions go."""
        return (self.adds or f"to {self.scale}").format(classes[1] if classes else "")

    def reading_of(self, classes: Sequence[Any] | None) -> str:
        """How to read terms."""
        return self.reading.format(classes[1] if classes else "")
