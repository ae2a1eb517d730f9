"""Successes among trials: the log-odds of a success are a sum of terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, expit, gammaln, log_expit, xlogy

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood
from lanam.core.model.fitted import FittedModel
from lanam.errors import InputError
from lanam.families.base import Encoding, Family, NewRows, Statistics
from lanam.families.bernoulli import Bernoulli, moderated_log_odds
from lanam.families.checks import refuse
from lanam.families.links import Link, Words
from lanam.families.over_link import CountsOverLink


@dataclass(frozen=True)
class Binomial(Bernoulli):
    """``y`` is a proportion of successes, and its weight counts the trials."""

    name = "binomial"

    def deviance(self, y: Array, f: Array) -> Array:
        best = xlogy(y, y) + xlogy(1.0 - y, 1.0 - y)
        return np.asarray(2.0 * (best - self.log_prob(y, f)))


def log_ways(successes: Array, trials: Array) -> Array:
    """The logarithm of the binomial coefficient."""
    ways = gammaln(trials + 1.0) - gammaln(successes + 1.0) - gammaln(trials - successes + 1.0)
    return np.asarray(ways)


@dataclass(frozen=True)
class BinomialOverLink(CountsOverLink):
    """Numbers of successes among trials whose log-odds are normal.

    Examples
    --------
    >>> import numpy as np
    >>> rows = BinomialOverLink(np.zeros(1), np.zeros(1), np.array([4.0]))
    >>> rows.mean.round(6), rows.std.round(6), rows.cdf(np.zeros(1)).round(6)
    (array([2.]), array([1.]), array([0.0625]))
    """

    trials: Array

    def width(self) -> Array:
        p = expit(self.link_mean)
        return np.asarray(1.0 / np.sqrt(np.maximum(self.trials * p * (1.0 - p), 1e-300)))

    @property
    def mean(self) -> Array:
        """By MacKay's approximation, as of classes."""
        odds = moderated_log_odds(self.link_mean, self.link_variance)
        return np.asarray(self.trials * expit(odds))

    @property
    def std(self) -> Array:
        """Of the trials at the mean probability, and of the probability that they share."""
        chance = self.mean / self.trials
        own = self._average(lambda rows, link: expit(link))
        squares = self._average(lambda rows, link: np.square(expit(link)))
        shared = self.trials * (self.trials - 1.0) * np.maximum(squares - own**2, 0.0)
        return np.asarray(np.sqrt(self.mean * (1.0 - chance) + shared))

    def mean_at(self, link: Array) -> Array:
        return np.asarray(self.trials[:, None] * expit(link))

    def variance_at(self, link: Array) -> Array:
        return np.asarray(self.trials[:, None] * expit(link) * expit(-link))

    def log_prob_at(self, y: Array, link: Array) -> Array:
        trials = self.trials[:, None]
        known = log_ways(y, trials)
        return np.asarray(known + y * link + trials * log_expit(-link))

    def tails_at(self, y: Array, link: Array) -> tuple[Array, Array]:
        count, trials = np.floor(y), self.trials[:, None]
        few, all_of_them = count < 0.0, count >= trials
        k = np.clip(count, 0.0, trials - 1.0)
        below = betainc(trials - k, k + 1.0, expit(-link))
        above = betainc(k + 1.0, trials - k, expit(link))
        below = np.where(few, 0.0, np.where(all_of_them, 1.0, below))
        return below, np.where(few, 1.0, np.where(all_of_them, 0.0, above))

    def draw(self, link: Array, rng: np.random.Generator) -> Array:
        return rng.binomial(self.trials.astype(np.int64), expit(link)).astype(np.float64)


class BinomialFamily(Family):
    """Successes among trials; predictions are expected successes, for one trial probabilities."""

    name = Binomial.name
    link = Link("logit")
    words = Words(
        response="probability",
        total="log-odds",
        unit="log-odds of a success",
        scale="the log-odds of a success",
        ratio="odds ratio",
        factor="odds_ratio",
        note="of a success in one trial",
        expected="expected successes",
        reading=(
            "The log-odds of a success are the intercept plus the contributions of all terms: a "
            "contribution of 0.7 about doubles the odds. Each curve below is one term with its 95% "
            "credible band, which is wide where there is little data."
        ),
    )
    discrete = True
    positive = True
    takes_trials = True
    needs_statistics = True

    def check(self, y: Array) -> Array:
        bad = (y < 0.0) | (y != np.floor(y))
        refuse(
            y,
            bad,
            self.name,
            "numbers of successes",
            "values that are no such numbers",
            "If these are proportions, pass the number of successes as y, and that of the trials as "
            "{trials=...}.",
        )
        return y

    def statistics(self, target: NDArray[Any], weight: Array, exposure: Array) -> Statistics:
        if (bad := target > exposure).any():
            row = int(np.argmax(bad))
            first = f"{target[row]:g} of {exposure[row]:g} in row {{row}}"
            problem = (
                f"y has more successes than {{argument}} in {bad.sum()} rows, the first, {first}"
            )
            remedy = (
                "{pass} the number of trials of each row as {trials=...}, and the successes as y"
            )
            raise InputError(problem, remedy, argument="trials", row=row)
        sums = super().statistics(target, weight, exposure)
        return replace(sums, constant=float(weight @ log_ways(target, exposure)))

    def encoding(self, statistics: Statistics) -> Encoding:
        if statistics.total == 0.0:
            raise ValueError(
                "y has no success in any row with a positive weight: a probability cannot be learned, only "
                "that it is small. Gather rows until there is one."
            )
        return Encoding(self, constant=statistics.constant)

    def respond(
        self, encoding: Encoding, target: NDArray[Any], weight: Array, exposure: Array
    ) -> tuple[Array, Array]:
        """Proportions, and their weights."""
        return target / exposure, weight * exposure

    def likelihood(self, n_classes: int = 0) -> Likelihood:
        return Binomial()

    def mean(self, mean: Array, variance: Array) -> Array:
        return np.asarray(expit(moderated_log_odds(mean, variance)))

    def response(self, link: Array, exposure: Array) -> Array:
        return np.asarray(exposure * expit(link))

    def predictive(self, model: FittedModel, rows: NewRows) -> BinomialOverLink:
        return BinomialOverLink(*rows.moments(model), rows.exposure)
