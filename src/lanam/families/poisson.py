"""Counts over an exposure: the log rate is a sum of terms."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp, xlogy

from lanam.core.arrays import Array
from lanam.core.likelihoods import Likelihood, bounded_exp
from lanam.core.model import scoring
from lanam.core.model.distributions import Predictive
from lanam.core.model.fitted import FittedModel
from lanam.core.rows.tables import EncodedRows
from lanam.families.base import Encoding, Family, NewRows, Statistics
from lanam.families.checks import require_counts, require_some_events
from lanam.families.links import LOG, Words
from lanam.families.poisson_lognormal import PoissonLognormal


@dataclass(frozen=True)
class Poisson(Likelihood):
    """``y`` is a count, or a count per unit of exposure, and ``f`` the logarithm of its rate.

    A count ``y`` with exposure ``e`` and weight ``w`` is the response ``y / e`` with weight ``w e``.

    Counts are usually overdispersed. Their variance is ``phi`` times their mean, and ``phi``, at least 1,
    is estimated like a noise: the log-density is minus half the deviance, divided by ``phi``, less half the
    logarithm of ``2 pi phi`` (Nelder and Pregibon's extended quasi-likelihood). :meth:`constant` is the
    difference to the Poisson log-density at ``phi = 1``.
    """

    name = "poisson"
    noise_bounds: ClassVar[tuple[float, float] | None] = (1.0, 1e12)
    pearson_dispersion = True

    def log_prob(self, y: Array, f: Array) -> Array:
        """Minus half the deviance."""
        return np.asarray(y * f - bounded_exp(f) - xlogy(y, y) + y)

    def gradient(self, y: Array, f: Array) -> Array:
        return np.asarray(y - bounded_exp(f))

    def curvature(self, f: Array) -> Array:
        return bounded_exp(f)

    def fit_intercept_only(self, y: Array, weight: Array) -> float:
        # A sample of many rows may have no event: as if it had half a one.
        return math.log((float(weight @ y) or 0.5) / float(weight.sum()))

    def pearson(self, y: Array, f: Array) -> Array:
        """Squared Pearson residuals, whose mean is the dispersion."""
        rate = bounded_exp(f)
        return np.asarray((y - rate) ** 2 / np.maximum(rate, np.finfo(float).tiny))

    def constant(self, counts: Array, weight: Array) -> float:
        """The terms of the counts' log-density that do not depend on ``f``."""
        saturated = xlogy(counts, counts) - counts - gammaln(counts + 1.0)
        return float(weight @ (saturated + 0.5 * math.log(2.0 * math.pi)))


#: Counts over which the normaliser is summed, and means between which it is interpolated; beyond them it is
#: one to a thousandth.
_MOST_COUNTS = 2000
_MEANS = np.exp(np.linspace(math.log(1e-3), math.log(200.0), 120))


def log_normaliser(mean: Array, dispersion: float) -> Array:
    """The logarithm of the sum over all counts of the extended quasi-likelihood (Efron 1986).

    Examples
    --------
    >>> import numpy as np
    >>> log_normaliser(np.array([0.2, 2.0, 100.0]), 1.0).round(6) + 0.0
    array([0., 0., 0.])
    >>> log_normaliser(np.array([0.2, 2.0, 100.0]), 2.0).round(3)
    array([-0.134,  0.028,  0.001])
    """
    counts = np.arange(_MOST_COUNTS, dtype=np.float64)
    saturated = xlogy(counts, counts) - counts - gammaln(counts + 1.0)
    logs = saturated - 0.5 * _deviances(counts, _MEANS[:, None]) / dispersion
    sums = logsumexp(logs, axis=1) - 0.5 * math.log(dispersion)
    inside = np.interp(np.log(mean), np.log(_MEANS), sums)
    return np.where(mean > _MEANS[-1], 0.0, inside)


def _deviances(counts: Array, mean: Array) -> Array:
    return np.asarray(2.0 * (xlogy(counts, counts / mean) - counts + mean))


def _known(rows: EncodedRows) -> Array | float:
    return 0.0 if rows.offset is None else rows.offset


class PoissonFamily(Family):
    """Counts: the core fits rates ``y / e`` with weight ``w e``.

    Exposures are divided by their mean first. This changes only the intercept, and the total weight stays
    the same: the core detects copies of rows by it, whatever the unit of exposure.

    Examples
    --------
    >>> import numpy as np
    >>> family, hours, counts = PoissonFamily(), np.array([24.0, 72.0]), np.array([1.0, 6.0])
    >>> encoding = family.encoding(family.statistics(counts, np.ones(2), hours))
    >>> encoding.response(counts, np.ones(2), hours)[:2]
    (array([2., 4.]), array([0.5, 1.5]))
    """

    name = Poisson.name
    link = LOG
    words = Words(
        response="rate",
        total="log rate",
        unit="log rate",
        scale="the logarithm of the rate",
        ratio="rate ratio",
        factor="relativity",
        note="of an exposure of 1",
        expected="expected count",
        reading=(
            "The logarithm of the expected count is the intercept plus the contributions of all terms: a "
            "contribution of 0.1 makes the count about a tenth larger, whatever the other terms. Each "
            "curve below is one term with its 95% credible band, which is wide where there is little data."
        ),
    )
    discrete = True
    positive = True
    takes_exposure = True
    weighs_exposure = True
    needs_statistics = True
    least_noise, most_noise = 1.0, 1e15

    def check(self, y: Array) -> Array:
        """Integers of at least 0."""
        return require_counts(y, self.name)

    def statistics(self, target: NDArray[Any], weight: Array, exposure: Array) -> Statistics:
        sums = super().statistics(target, weight, exposure)
        return replace(sums, constant=Poisson().constant(target, weight))

    def encoding(self, statistics: Statistics) -> Encoding:
        """Rates in units of the mean exposure."""
        require_some_events(statistics.total)
        # Rounded to 40 bits: sums in another order differ in the last ones, and rates should not.
        fraction, exponent = math.frexp(statistics.exposure / statistics.weight)
        unit = math.ldexp(round(fraction * 2**40), exponent - 40)
        return Encoding(self, log_unit=math.log(unit), unit=unit, constant=statistics.constant)

    def respond(
        self, encoding: Encoding, target: NDArray[Any], weight: Array, exposure: Array
    ) -> tuple[Array, Array]:
        """Rates, and their weights."""
        relative = exposure / encoding.unit
        return target / relative, weight * relative

    def likelihood(self, n_classes: int = 0) -> Likelihood:
        return Poisson()

    def mean(self, mean: Array, variance: Array) -> Array:
        return PoissonLognormal(mean, variance, np.ones(1)).mean

    def response(self, link: Array, exposure: Array) -> Array:
        """Expected counts at points of the link scale."""
        return PoissonLognormal(link, np.zeros(1), exposure).mean

    def evidence_correction(self, model: FittedModel, rows: EncodedRows, *, exposed: bool) -> float:
        """The extended quasi-likelihood divided by its sum over all counts, at the best dispersion.

        Its sum is above one where counts are about two, and below where most are zero, so that it could not
        be compared with a distribution. With exposures, whose product with the weight is known, weights
        are one.
        """
        size = rows.weight if exposed else np.ones(len(rows))
        mean = size * bounded_exp(scoring.link_mean(model, rows.columns) + _known(rows))
        counts, weight = size * rows.response, rows.weight / size
        deviances, total = _deviances(counts, mean), float(weight.sum())
        freedom = total - 1.0 - sum(term.effective_parameters for term in model.terms)
        deviance = float(weight @ deviances)

        def log_likelihood(dispersion: float) -> float:
            return -0.5 * (deviance / dispersion + total * math.log(dispersion))

        def proper(log_dispersion: float) -> float:
            dispersion = math.exp(log_dispersion)
            return log_likelihood(dispersion) - float(weight @ log_normaliser(mean, dispersion))

        fitted = max(deviance / max(freedom, 1.0), 1.0)
        best = minimize_scalar(
            lambda log_dispersion: -proper(log_dispersion),
            bounds=(0.0, math.log(4.0 * fitted)),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return max(-float(best.fun), proper(0.0)) - log_likelihood(fitted)

    def predictive(self, model: FittedModel, rows: NewRows) -> Predictive:
        """Poisson-lognormal distributions with the dispersion of the training data."""
        moments = (*rows.moments(model), rows.exposure)
        return PoissonLognormal.dispersed(*moments, model.noise_variance)

    def dispersion(self, model: FittedModel) -> float:
        return float(model.noise_variance)
