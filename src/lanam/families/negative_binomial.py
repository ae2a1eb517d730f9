"""Counts in clusters: their variance is the mean plus a learned multiple of its square."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from scipy.special import betainc, betaln, xlogy

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood, bounded_exp
from lanam.core.model.fitted import FittedModel
from lanam.families.base import Encoding, NewRows, Statistics
from lanam.families.checks import require_counts, require_some_events
from lanam.families.links import LOG
from lanam.families.log_mean import LogMeanFamily
from lanam.families.over_link import CountsOverLink
from lanam.families.poisson import PoissonFamily


@dataclass(frozen=True)
class NegativeBinomial(Likelihood):
    """``y`` has the mean ``mu = exp(f)`` and the variance ``mu + dispersion mu^2``.

    Its curvature is the expected one, ``mu / (1 + dispersion mu)``.
    """

    dispersion: float = 1.0

    name = "negative_binomial"
    learned = MappingProxyType({"dispersion": (1e-6, 1e6)})

    def log_prob(self, y: Array, f: Array) -> Array:
        size = 1.0 / self.dispersion
        # log C(y + size - 1, y) = -log y - log B(y, size), which does not cancel where size is large.
        some = np.maximum(y, 1.0)
        ways = np.where(y > 0.0, -np.log(some) - betaln(some, size), 0.0)
        excess = np.log1p(self.dispersion * bounded_exp(f))
        return np.asarray(ways + y * (np.log(self.dispersion) + f - excess) - size * excess)

    def deviance(self, y: Array, f: Array) -> Array:
        mean, k = bounded_exp(f), self.dispersion
        logs = np.log1p(k * y) - np.log1p(k * mean)
        return np.asarray(2.0 * (xlogy(y, y) - y * f - (y + 1.0 / k) * logs))

    def gradient(self, y: Array, f: Array) -> Array:
        mean = bounded_exp(f)
        return np.asarray((y - mean) / (1.0 + self.dispersion * mean))

    def curvature(self, f: Array) -> Array:
        mean = bounded_exp(f)
        return np.asarray(mean / (1.0 + self.dispersion * mean))

    def fit_intercept_only(self, y: Array, weight: Array) -> float:
        # A sample of many rows may have no event: as if it had half a one.
        return float(np.log((float(weight @ y) or 0.5) / float(weight.sum())))


@dataclass(frozen=True)
class NegativeBinomialOverLink(CountsOverLink):
    """Negative binomial counts whose log means are normal.

    Examples
    --------
    >>> import numpy as np
    >>> rows = NegativeBinomialOverLink(np.log([4.0]), np.zeros(1), 0.5)
    >>> rows.mean.round(6), (rows.std**2).round(6)  # 4 + 0.5 * 4^2
    (array([4.]), array([12.]))
    >>> rows.cdf(np.array([0.0])).round(6)  # (1 + 0.5 * 4)^-2
    array([0.111111])
    """

    dispersion: float

    def width(self) -> Array:
        curvature = NegativeBinomial(self.dispersion).curvature(self.link_mean)
        return np.asarray(1.0 / np.sqrt(np.maximum(curvature, 1e-300)))

    def mean_at(self, link: Array) -> Array:
        return LOG.inverse(link)

    def variance_at(self, link: Array) -> Array:
        mean = LOG.inverse(link)
        return np.asarray(mean + self.dispersion * LOG.inverse(2.0 * link))

    def log_prob_at(self, y: Array, link: Array) -> Array:
        return NegativeBinomial(self.dispersion).log_prob(y, link)

    def tails_at(self, y: Array, link: Array) -> tuple[Array, Array]:
        count = np.floor(y) + 1.0
        odds = self.dispersion * LOG.inverse(link)
        size, more = 1.0 / self.dispersion, np.maximum(count, 1.0)
        below = np.where(count > 0.0, betainc(size, more, 1.0 / (1.0 + odds)), 0.0)
        above = np.where(count > 0.0, betainc(more, size, odds / (1.0 + odds)), 1.0)
        return below, above

    def draw(self, link: Array, rng: np.random.Generator) -> Array:
        size = 1.0 / self.dispersion
        rate = LOG.inverse(link) * rng.standard_gamma(size, link.shape) / size
        return rng.poisson(np.minimum(rate, 1e18)).astype(np.float64)


class NegativeBinomialFamily(LogMeanFamily):
    """Counts in clusters, over an exposure ``e``: the mean is ``e exp(f)``."""

    name = NegativeBinomial.name
    words = PoissonFamily.words
    discrete = True
    takes_exposure = True
    needs_statistics = True

    def check(self, y: Array) -> Array:
        return require_counts(y, self.name)

    def encoding(self, statistics: Statistics) -> Encoding:
        require_some_events(statistics.total)
        return Encoding(self)

    def known_link(self, exposure: Array, offset: Array | None) -> Array | None:
        """Exposures are offsets: clusters make counts over twice the time other than twice the rows."""
        logs = np.log(exposure)
        return logs if offset is None else np.asarray(logs + offset)

    def likelihood(self, n_classes: int = 0) -> Likelihood:
        return NegativeBinomial()

    def predictive(self, model: FittedModel, rows: NewRows) -> NegativeBinomialOverLink:
        mean, variance = rows.moments(model)
        return NegativeBinomialOverLink(np.log(rows.exposure) + mean, variance, model.parameters[0])

    def finished(self, model: FittedModel) -> FittedModel:
        """The model with its dispersion."""
        return replace(model, noise_variance=model.parameters[0])

    def dispersion(self, model: FittedModel) -> float:
        """The excess of the variance over the mean, as a multiple of its square."""
        return model.noise_variance
