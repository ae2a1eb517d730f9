"""Ordered classes: one sum of terms, and cut points that divide its scale into grades (proportional odds).

``P(y <= k) = sigmoid(c_k - f)``, so that a larger ``f`` means higher grades. The first cut point is 0,
which the intercept makes up for; the others are learned by their distances. The log-odds of more than the
lowest grade are ``f`` itself: explanations are those of that event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.core.model.fitted import FittedModel
from lanam.families.base import Encoding, Family, Statistics
from lanam.families.labels import ClassFamily
from lanam.families.links import LOGIT, Words

#: Bounds of the distance of cut points, and its start.
_DISTANCES = (1e-6, 100.0)
_START = 1.0
#: Newton's steps to the intercept.
_STEPS = 100


@dataclass(frozen=True)
class Ordinal(Likelihood):
    """``y`` is the index of a grade; ``distances`` are those of the cut points."""

    distances: tuple[float, ...]

    name = "ordinal"

    @property
    def n_classes(self) -> int:
        return len(self.distances) + 2

    @property
    def parameters(self) -> tuple[float, ...]:
        return self.distances

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        return (_DISTANCES,) * len(self.distances)

    @property
    def named_parameters(self) -> dict[str, float | list[float]]:
        return {"cut_points": self.cuts[1:-1].tolist()}

    def with_parameters(self, values: Sequence[float]) -> Ordinal:
        return replace(self, distances=tuple(map(float, values)))

    @cached_property
    def cuts(self) -> Array:
        """All cut points, from minus to plus infinity (C + 1)."""
        inner = np.cumsum([0.0, *self.distances])
        return np.concatenate([[-math.inf], inner, [math.inf]])

    def _ends(self, y: Array, f: Array) -> tuple[Array, Array]:
        """``P(grade < y)`` and ``P(grade <= y)``."""
        number = np.asarray(y, dtype=np.intp)
        return expit(self.cuts[number] - f), expit(self.cuts[number + 1] - f)

    def log_prob(self, y: Array, f: Array) -> Array:
        number = np.asarray(y, dtype=np.intp)
        return _log_between(self.cuts[number] - f, self.cuts[number + 1] - f)

    def gradient(self, y: Array, f: Array) -> Array:
        below, upto = self._ends(y, f)
        return np.asarray(below + upto - 1.0)

    def curvature(self, f: Array) -> Array:
        """Expected: the mean over grades of the slopes at both of their ends."""
        upto = expit(self.cuts - np.asarray(f)[..., None])
        slopes, shares = upto * (1.0 - upto), np.diff(upto, axis=-1)
        return np.asarray((shares * (slopes[..., 1:] + slopes[..., :-1])).sum(axis=-1))

    def fit_intercept_only(self, y: Array, weight: Array) -> float:
        intercept = 0.0
        for _ in range(_STEPS):
            f = np.full_like(np.asarray(y, dtype=np.float64), intercept)
            total = float(weight @ self.curvature(f))
            step = float(weight @ self.gradient(y, f)) / total
            intercept += float(np.clip(step, -1.0, 1.0))
            if abs(step) < 1e-10:
                break
        return intercept


def _log_between(low: Array, high: Array) -> Array:
    """``log(sigmoid(high) - sigmoid(low))``, on the side where both are small."""
    flip = low > 0.0
    first, second = np.where(flip, -high, low), np.where(flip, -low, high)
    return np.asarray(np.log(np.maximum(expit(second) - expit(first), 1e-300)))


class OrdinalFamily(ClassFamily):
    """More than two classes in an order, with one function per term.

    ``order`` has all labels, lowest first; without it they are sorted. ``distances`` are those of a fitted
    model.
    """

    name = Ordinal.name
    link = LOGIT
    words = Words(
        response="probability",
        total="log-odds",
        unit="log-odds of {}",
        scale="the log-odds",
        adds="to the log-odds of {}, and of passing any other cut point",
        ratio="odds ratio",
        factor="odds_ratio",
        reading=(
            "The log-odds of passing a cut point between grades are the intercept plus the contributions "
            "of all terms, less the cut point: a contribution of 0.7 about doubles the odds of higher "
            "grades. Each curve below is one term with its 95% credible band; probabilities are of {}."
        ),
    )

    def __init__(self, order: Sequence[Any] = (), distances: Sequence[float] = ()) -> None:
        self.order, self._distances = tuple(order), tuple(distances)

    def of_model(self, model: FittedModel) -> Family:
        return OrdinalFamily(self.order, model.parameters)

    def encoding(self, statistics: Statistics) -> Encoding:
        """Labels are encoded in their order; two are the usual classes."""
        usual = super().encoding(statistics)
        if len(usual.classes) < 3:
            return usual
        known = {label: place for place, label in enumerate(self.order)}
        labels = usual.classes.tolist()
        if known and all(label in known for label in labels):
            places = np.argsort([known[label] for label in labels])
            return Encoding(self, usual.classes[places])
        return Encoding(self, usual.classes)

    def likelihood(self, n_classes: int = 3) -> Likelihood:
        return Ordinal(self._distances or (_START,) * (n_classes - 2))

    def likelihood_of(self, model: FittedModel) -> Likelihood:
        return Ordinal(model.parameters)

    def bounds_of(self, n_parameters: int) -> Sequence[tuple[float, float]]:
        return (_DISTANCES,) * max(n_parameters, 1)

    def n_classes(self, model: FittedModel) -> int:
        return len(model.parameters) + 2

    def explained(self, classes: NDArray[Any]) -> NDArray[Any]:
        """The lowest grade, and the others as one event."""
        lowest = classes.tolist()[0]
        return np.array([str(lowest), f"more than {lowest}"])

    def mean(self, mean: Array, variance: Array) -> Array:
        """The probability of more than the lowest grade."""
        return np.asarray(expit(mean / np.sqrt(1.0 + math.pi / 8.0 * variance)))

    def decision(self, mean: Array, variance: Array) -> Array:
        """Log-probability of every grade (n, C), by MacKay's approximation at every cut point."""
        scale = 1.0 / np.sqrt(1.0 + math.pi / 8.0 * variance)
        cuts = (self._cuts - mean[:, None]) * scale[:, None]
        return _log_between(cuts[:, :-1], cuts[:, 1:])

    def probability(self, decision: Array) -> Array:
        return np.asarray(np.exp(decision))

    def log_prob(self, decision: Array, numbers: NDArray[Any]) -> Array:
        return np.asarray(decision[np.arange(len(numbers)), numbers])

    def n_normals(self, n_samples: int, n_classes: int) -> tuple[int, ...]:
        return (n_samples,)

    def draw(self, mean: Array, variance: Array, normal: Array) -> Array:
        return self.at_link(mean[:, None] + np.sqrt(variance[:, None]) * normal)

    def at_link(self, link: Array) -> Array:
        return np.asarray(np.diff(expit(self._cuts - link[..., None]), axis=-1))

    @property
    def _cuts(self) -> Array:
        return Ordinal(self._distances).cuts
