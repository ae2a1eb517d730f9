"""Amounts that are often zero: Tweedie, sums of a Poisson number of Gamma amounts.

The mean is ``exp(f)`` per exposure and the variance ``dispersion mean^power`` over the exposure, with a
power between 1 (Poisson) and 2 (Gamma). The density is a series (Dunn and Smyth 2005) over the number of
amounts; it is summed around its largest term.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaln, ndtri

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood, bounded_exp
from lanam.core.model.fitted import FittedModel
from lanam.errors import InputError
from lanam.families.amounts import AMOUNT, Amount
from lanam.families.base import Encoding, Family, NewRows, Statistics
from lanam.families.checks import refuse
from lanam.families.links import LOG
from lanam.families.log_mean import LogMeanFamily
from lanam.families.over_link import PositiveOverLink, quantile

#: Terms of the series on either side of the largest, in widths of its peak; and the largest number of them.
_REACH = 9.0
_MOST_TERMS = 2000
#: Beyond this expected number of amounts, their sum is as good as Gamma distributed.
_MANY = 300.0
_CHUNK_VALUES = 1 << 20


@dataclass(frozen=True)
class Tweedie(Amount):
    """``log_prob`` has the part that scales with a row's precision, ``normaliser`` the series."""

    dispersion: float = 1.0
    power: float = 1.5
    fixed: bool = False

    name = "tweedie"
    learned = MappingProxyType({"dispersion": (1e-8, 1e12), "power": (1.01, 1.99)})

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        of_dispersion, of_power = self.learned.values()
        return of_dispersion, (self.power, self.power) if self.fixed else of_power

    def log_prob(self, y: Array, f: Array) -> Array:
        p = self.power
        kernel = y * bounded_exp((1.0 - p) * f) / (1.0 - p) - bounded_exp((2.0 - p) * f) / (2.0 - p)
        return np.asarray(kernel / self.dispersion)

    def normaliser(self, y: Array, precision: Array | None) -> Array:
        result, some = np.zeros(y.shape), y > 0.0
        phi = self.dispersion / (np.ones(y.shape) if precision is None else precision)
        result[some] = log_series(y[some], phi[some], self.power) - np.log(y[some])
        return result

    def deviance(self, y: Array, f: Array) -> Array:
        p, mean = self.power, bounded_exp(f)
        best = y ** (2.0 - p) / ((1.0 - p) * (2.0 - p))
        return np.asarray(
            2.0 * (best - y * mean ** (1.0 - p) / (1.0 - p) + mean ** (2.0 - p) / (2.0 - p))
        )

    def pearson(self, y: Array, f: Array) -> Array:
        mean = bounded_exp(f)
        return np.asarray(np.square(y - mean) / (self.dispersion * mean**self.power))

    def with_variance(self, ratio: float) -> Tweedie:
        return replace(self, dispersion=self.dispersion * ratio)

    def gradient(self, y: Array, f: Array) -> Array:
        p = self.power
        slope = y * bounded_exp((1.0 - p) * f) - bounded_exp((2.0 - p) * f)
        return np.asarray(slope / self.dispersion)

    def curvature(self, f: Array) -> Array:
        return bounded_exp((2.0 - self.power) * f) / self.dispersion

    def fit_intercept_only(self, y: Array, weight: Array) -> float:
        return float(np.log((float(weight @ y) or 0.5) / float(weight.sum())))


def log_series(y: Array, phi: Array, power: float) -> Array:
    """The logarithm of ``y`` times the series of the density of positive ``y``, by dispersion."""
    alpha = (2.0 - power) / (power - 1.0)
    log_z = alpha * np.log(y / (power - 1.0)) - (1.0 + alpha) * np.log(phi) - np.log(2.0 - power)
    # The largest term, and the width around it.
    peak = np.maximum(y ** (2.0 - power) / (phi * (2.0 - power)), 1.0)
    half = np.minimum(np.ceil(_REACH * np.sqrt(peak / (1.0 + alpha)) + 8.0), _MOST_TERMS / 2)
    result = np.empty(len(y))
    order = np.argsort(half)
    start = 0
    while start < len(y):  # rows that need about as many terms together
        widest = min(start + max(int(_CHUNK_VALUES // (2 * half[order[start]] + 1)), 1), len(y))
        within = np.searchsorted(half[order[start:widest]], 2.0 * half[order[start]], "right")
        part = order[start : start + max(int(within), 1)]
        first = np.maximum(np.floor(peak[part] - half[part].max()), 1.0)
        j = first[:, None] + np.arange(2.0 * half[part].max() + 1.0)
        terms = j * log_z[part, None] - gammaln(1.0 + j) - gammaln(alpha * j)
        largest = terms.max(axis=1)
        result[part] = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))
        start += len(part)
    return result


@dataclass(frozen=True)
class TweedieOverLink(PositiveOverLink):
    """Tweedie amounts over an exposure, whose log means are normal. Zero has a probability of its own.

    Examples
    --------
    >>> import numpy as np
    >>> rows = TweedieOverLink(np.zeros(1), np.zeros(1), np.ones(1), 2.0, 1.5)
    >>> rows.mean.round(6), (rows.std**2).round(6)
    (array([1.]), array([2.]))
    >>> rows.cdf(np.zeros(1)).round(6)  # exp(-1 / (2 * 0.5))
    array([0.367879])
    """

    exposure: Array
    dispersion: float
    power: float

    def width(self) -> Array:
        rate = LOG.inverse((2.0 - self.power) * self.link_mean) * self.exposure / self.dispersion
        return np.asarray(1.0 / np.sqrt(np.maximum(rate, 1e-300)))

    def mean_at(self, link: Array) -> Array:
        return np.asarray(self.exposure[:, None] * LOG.inverse(link))

    def variance_at(self, link: Array) -> Array:
        return np.asarray(self.dispersion * self.exposure[:, None] * LOG.inverse(self.power * link))

    def log_prob_at(self, y: Array, link: Array) -> Array:
        one = Tweedie(self.dispersion, self.power)
        rate, precision = y / self.exposure[:, None], self.exposure[:, None]
        rest = one.normaliser(rate[:, 0], self.exposure) - np.where(
            y[:, 0] > 0.0, np.log(self.exposure), 0.0
        )
        return np.asarray(precision * one.log_prob(rate, link) + rest[:, None])

    def _parts(self, link: Array, exposure: Array) -> tuple[Array, float, Array]:
        """Expected number of amounts, and shape and scale of each."""
        p, phi = self.power, self.dispersion
        number = exposure * LOG.inverse((2.0 - p) * link) / (phi * (2.0 - p))
        scale = phi * (p - 1.0) * LOG.inverse((p - 1.0) * link)
        return np.asarray(number), (2.0 - p) / (p - 1.0), np.asarray(scale)

    def tails_at(self, y: Array, link: Array) -> tuple[Array, Array]:
        number, shape, scale = self._parts(link, self.exposure[:, None])
        scaled = np.broadcast_to(np.maximum(y, 0.0) / scale, link.shape)
        below, few = np.exp(-number), np.minimum(number, _MANY)
        log_mass, last = -few, float(few.max(initial=0.0))
        log_few = np.log(np.maximum(few, 1e-300))
        for j in range(1, int(last + 8.0 * np.sqrt(last) + 15.0)):
            log_mass = log_mass + log_few - np.log(j)
            below = below + np.exp(log_mass) * gammainc(j * shape, scaled)
        many = number > _MANY
        if many.any():  # the Gamma distribution with mean and variance of the sum
            size, at = number * shape / (1.0 + shape), scaled / (1.0 + shape)
            below = np.where(many, gammainc(size, at), below)
        below = np.where(y < 0.0, 0.0, below)
        # Rounded to zero beyond eight standard deviations.
        return below, np.maximum(1.0 - below, 0.0)

    def ppf(self, probability: float) -> Array:
        result = np.zeros(len(self.link_mean))
        some = np.flatnonzero(self.cdf(result) < probability)
        if len(some):
            result[some] = quantile(self.part(some), float(ndtri(probability)))
        return result

    def score(self, y: Array) -> Array:
        """As of counts: the normal quantile of the smaller of ``P(Y <= y)`` and ``P(Y >= y)``."""
        below, above = self.tails(y)
        tail = np.minimum(below, np.where(y > 0.0, above, 1.0))
        return np.asarray(-ndtri(np.clip(tail, np.finfo(np.float64).tiny, 0.5)) + 0.0)

    def interval(self, score: float) -> Array:
        """Central intervals, both ends included."""
        return np.column_stack([self.at_score(-score), self.at_score(score)])

    def at_score(self, score: float) -> Array:
        nothing = np.zeros(len(self.link_mean))
        low = self.normal_score(nothing) >= score
        result, some = nothing, np.flatnonzero(~low)
        if len(some):
            result[some] = PositiveOverLink.at_score(self.part(some), score)
        return result

    def draw(self, link: Array, rng: np.random.Generator) -> Array:
        number, shape, scale = self._parts(link, self.exposure)
        count = rng.poisson(np.minimum(number, 1e15))
        amounts = rng.standard_gamma(np.where(count > 0, count * shape, 1.0)) * scale
        return np.where(count > 0, amounts, 0.0)


def read_power(value: Any) -> float | None:
    """The power of a variance, strictly between 1 and 2; None for "auto".

    Examples
    --------
    >>> read_power(1.5), read_power("auto")
    (1.5, None)
    """
    if isinstance(value, str) and value == "auto":
        return None
    real = isinstance(value, Real) and not isinstance(value, bool)
    low, high = Tweedie.learned["power"]
    if real and low <= float(value) <= high:
        return float(value)
    rule = f"must be 'auto' or a number from {low} to {high}"
    remedy = "{likelihood='poisson'} is the power 1, {likelihood='gamma'} the power 2"
    raise InputError(f"{{given}} {rule}", remedy, argument="tweedie_power", value=value)


class TweedieFamily(LogMeanFamily):
    """Amounts over an exposure, often zero; with a ``power`` that is given, or else learned."""

    name = Tweedie.name
    words = AMOUNT
    takes_exposure = True
    needs_statistics = True

    def __init__(self, power: float | None = None) -> None:
        self.power = power

    def configured(self, arguments: Mapping[str, Any]) -> Family:
        power = read_power(arguments["tweedie_power"])
        return self if power is None else TweedieFamily(power)

    def check(self, y: Array) -> Array:
        refuse(
            y,
            y < 0.0,
            self.name,
            "amounts that are zero or positive",
            "negative values",
            "Use {likelihood='gaussian'} for a target that can be negative.",
        )
        return y

    def statistics(self, target: NDArray[Any], weight: Array, exposure: Array) -> Statistics:
        sums = super().statistics(target, weight, exposure)
        positive = target > 0.0
        jacobian = -float(weight[positive] @ np.log(exposure[positive]))
        return replace(sums, constant=jacobian)

    def encoding(self, statistics: Statistics) -> Encoding:
        if statistics.total == 0.0:
            raise ValueError(
                "y is zero in every row with a positive weight: from no amounts a mean cannot be learned. "
                "Gather rows until there is one."
            )
        return Encoding(self, constant=statistics.constant)

    def respond(
        self, encoding: Encoding, target: NDArray[Any], weight: Array, exposure: Array
    ) -> tuple[Array, Array]:
        """Amounts per exposure."""
        return target / exposure, weight

    def precision(self, exposure: Array) -> Array:
        return exposure

    def likelihood(self, n_classes: int = 0) -> Likelihood:
        return Tweedie() if self.power is None else Tweedie(power=self.power, fixed=True)

    def predictive(self, model: FittedModel, rows: NewRows) -> TweedieOverLink:
        return TweedieOverLink(*rows.moments(model), rows.exposure, *model.parameters)

    def finished(self, model: FittedModel) -> FittedModel:
        """The model with its dispersion."""
        return replace(model, noise_variance=model.parameters[0])

    def dispersion(self, model: FittedModel) -> float:
        """The variance over a power of the mean, at an exposure of one."""
        return model.noise_variance

    def shown_parameters(self, model: FittedModel) -> dict[str, float]:
        return {"power": model.parameters[1]}
