"""Two classes: the log-odds of the second class are a sum of terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.families.labels import ClassFamily
from lanam.families.links import LOGIT, Words


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """``y`` is 0 or 1 and ``f`` the log-odds."""

    name = "bernoulli"

    def log_prob(self, y: Array, f: Array) -> Array:
        return np.asarray(y * f + log_expit(-f))

    def gradient(self, y: Array, f: Array) -> Array:
        return np.asarray(y - expit(f))

    def curvature(self, f: Array) -> Array:
        p = expit(f)
        return np.asarray(p * (1.0 - p))

    def fit_intercept_only(self, y: Array, weight: Array) -> float:
        events = float(weight @ y)
        others = float(weight.sum()) - events
        # A sample of many rows may lack a rare class, which counts as half a row.
        return math.log((events or 0.5) / (others or 0.5))


def moderated_log_odds(mean: Array, variance: Array) -> Array:
    """Log-odds of ``E[sigmoid(f)]`` for Gaussian ``f``, by MacKay's probit approximation."""
    return mean / np.sqrt(1.0 + math.pi / 8.0 * variance)


class BernoulliFamily(ClassFamily):
    """Two classes, with one function per term."""

    name = Bernoulli.name
    link = LOGIT
    words = Words(
        response="probability",
        total="log-odds",
        unit="log-odds of {}",
        scale="the log-odds",
        adds="to the log-odds of {}",
        ratio="odds ratio",
        factor="odds_ratio",
        reading=(
            "The log-odds of {} are the intercept plus the contributions of all terms: a contribution of "
            "0.7 about doubles the odds. Each curve below is one term with its 95% credible band, which is "
            "wide where there is little data."
        ),
    )

    def likelihood(self, n_classes: int = 2) -> Likelihood:
        return Bernoulli()

    def mean(self, mean: Array, variance: Array) -> Array:
        return np.asarray(expit(moderated_log_odds(mean, variance)))

    def decision(self, mean: Array, variance: Array) -> Array:
        """Log-odds of the second class (n,)."""
        return moderated_log_odds(mean, variance)

    def probability(self, decision: Array) -> Array:
        return np.column_stack([expit(-decision), expit(decision)])

    def log_prob(self, decision: Array, numbers: NDArray[Any]) -> Array:
        """From the log-odds themselves: a probability near one would be rounded."""
        return np.asarray(log_expit(np.where(numbers == 1, decision, -decision)))

    def n_normals(self, n_samples: int, n_classes: int) -> tuple[int, ...]:
        return (n_samples,)

    def draw(self, mean: Array, variance: Array, normal: Array) -> Array:
        second = expit(mean[:, None] + np.sqrt(variance[:, None]) * normal)
        return np.stack([1.0 - second, second], axis=-1)
