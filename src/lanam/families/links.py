"""From the link scale, on which terms add up, to the response; and what both are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from lanam.core.arrays import Array
from lanam.text import shorten

#: The name of a class is cut to this many characters where a unit is named.
_MAX_CLASS = 24


@dataclass(frozen=True)
class Link:
    """The scale on which terms add up.

    Attributes
    ----------
    name
        What explanations and exports call it.
    classes
        Whether the response is the probability of a class.
    several
        Whether every class has a function of its own, so that arrays have an axis of classes.
    """

    name: str
    classes: bool = False
    several: bool = False

    @property
    def identity(self) -> bool:
        """Whether contributions have the unit of the response."""
        return self == IDENTITY

    def inverse(self, link: Array) -> Array:
        """The response at points of the link scale."""
        return np.asarray(_INVERSES[self.name](link))


def _exp(link: Array) -> Array:
    with np.errstate(over="ignore"):  # a mean beyond all floats is infinite
        return np.asarray(np.exp(link))


def _softmax(link: Array) -> Array:
    return np.asarray(softmax(link, axis=-1))


_INVERSES = {"identity": np.asarray, "log": _exp, "logit": expit, "softmax": _softmax}

IDENTITY = Link("identity")
LOG = Link("log")
LOGIT = Link("logit", classes=True)
SOFTMAX = Link("softmax", classes=True, several=True)


@dataclass(frozen=True)
class Words:
    """What a family's numbers are called, in plots, reports, summaries and on the command line.

    Attributes
    ----------
    response
        What is predicted: "prediction", "rate", "probability".
    total
        What contributions sum to, for an equation: "log-odds -1.2 = ...".
    unit
        The same as an axis' label, ``{}`` standing for the class.
    scale
        The same in a sentence, "adds 0.3 to ...".
    adds
        Where contributions go, on the command line: "to ...", ``{}`` standing for the class.
    ratio
        What ``exp`` of a difference is called; "" where it means nothing.
    factor
        The column of a rating table that has ``exp`` of every contribution; "" for none.
    note
        What is said behind the response, in parentheses.
    expected
        What the what-if page predicts.
    reading
        How to read terms, for a report's reader; ``{}`` stands for the class.
    """

    response: str = "prediction"
    total: str = "prediction"
    unit: str = "prediction"
    scale: str = "the prediction"
    adds: str = ""
    ratio: str = ""
    factor: str = ""
    note: str = ""
    expected: str = "prediction"
    reading: str = (
        "A prediction is the intercept plus what every term adds, in the target's own unit. Each curve "
        "below is one term: what a value of the column adds, with a band of two standard deviations. "
        "Where the band is wide, the data says little; where it includes zero, the term may add nothing."
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
