"""Selection of terms by their log evidence gain (method.md 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from lanam.core.arrays import Array
from lanam.core.inference.evidence import Posterior, at_noise
from lanam.core.inference.prior import Prior, inverse_and_log_det
from lanam.core.likelihoods import Likelihood
from lanam.core.rows import statistics
from lanam.core.rows.located import AnyRows
from lanam.core.rows.statistics import evaluate

#: Nats of log evidence that a term must gain. Tuned precisions alone give a useless term about this much.
MIN_LOG_EVIDENCE_GAIN = 3.0

#: A term with a smaller gain is dropped only if its effect is below this fraction of the model's spread:
#: with few rows, weak but visible terms predict better together than without them.
NEGLIGIBLE = 0.05

#: Columns per row at which prior odds count fully are the inverse of this.
_ODDS_WEIGHT = 2.0

#: Nats over the intercept-only model that a model must gain per effective parameter of its networks. Real
#: data has more than three (measured on the paper's sets), a fit to noise less than two.
_PER_PARAMETER = 2.0


#: The log evidence gain that a term must have, given its index and the indices of all terms left.
Threshold = Callable[[int, Sequence[int]], float]


def column_threshold(n_columns: int, n_rows: float) -> Threshold:
    """The threshold of single columns: prior odds against each, where columns are many for the rows.

    If any fraction of all columns is equally likely to be relevant, the odds of ``m`` of ``D`` against
    ``m - 1`` are ``m`` to ``D - m + 1``. With few columns per row there is none: weak terms predict better
    together than without them.
    """
    weight = min(_ODDS_WEIGHT * n_columns / n_rows, 1.0)

    def threshold(k: int, left: Sequence[int]) -> float:
        n_left = max(len(left), 1)
        return weight * max(math.log(max(n_columns - n_left + 1, 1) / n_left), 0.0)

    return threshold


def log_choices(n_columns: int, n_chosen: int) -> float:
    """The logarithm of the number of ways to choose some of all columns.

    Examples
    --------
    >>> round(log_choices(200, 14), 1)
    48.5
    """
    left = n_columns - n_chosen
    return math.lgamma(n_columns + 1) - math.lgamma(n_chosen + 1) - math.lgamma(left + 1)


class Elimination(NamedTuple):
    """The dropped terms in order, and all terms' gains and thresholds: when dropped, or at the end."""

    dropped: list[int]
    gains: list[float]
    thresholds: list[float]


def eliminate(
    prior: Prior,
    posterior: Posterior,
    tables: Sequence[Array],
    data_mass: Sequence[Array],
    threshold: Threshold | None = None,
    *,
    n_outputs: int = 1,
    outside: Mapping[int, float] = MappingProxyType({}),
    spreads: Mapping[int, float] = MappingProxyType({}),
    kept: Collection[int] = (),
) -> Elimination:
    """Drop the term with the smallest gain, update all others in closed form, repeat.

    ``prior`` must be at the hyperparameters its tables were made with (``W = I``). Removing block ``d``
    lowers the log evidence by ``(m_d' S_dd^-1 m_d + log |S_dd|) / 2``. Of two interchangeable terms only
    one is dropped, because the other's gain then rises. The ``threshold`` is zero by default, and at least
    ``MIN_LOG_EVIDENCE_GAIN`` for a negligible effect. ``outside`` has the gains of terms without
    coordinates, and ``spreads`` their standard deviations over the data: a weak one is dropped before any
    other is judged. ``kept`` terms stay.
    """
    mean, covariance = posterior.mean.copy(), posterior.covariance.copy()
    left, dropped = [k for k in range(len(tables)) if k not in outside], list[int]()
    gains = [outside.get(k, 0.0) for k in range(len(tables))]

    def spread(k: int) -> float:
        if k in outside:
            return spreads.get(k, math.inf)
        squares = np.square(evaluate(tables[k], mean[prior.blocks[k]], n_outputs))
        return float(np.sqrt((data_mass[k] @ squares).sum()))

    judged = [*left, *spreads]
    negligible = NEGLIGIBLE * float(np.sqrt(sum(spread(k) ** 2 for k in judged)))

    def least(k: int) -> float:
        bound = 0.0 if threshold is None else threshold(k, left)
        if bound >= 0.0 and spread(k) <= negligible:
            return max(bound, MIN_LOG_EVIDENCE_GAIN)
        return bound

    thresholds = [least(k) if k in outside else 0.0 for k in range(len(tables))]
    weak = [k for k in outside if k not in kept and gains[k] < thresholds[k]]
    if weak:
        return Elimination(weak, gains, thresholds)
    while left:
        for k in left:
            gains[k] = _log_evidence_gain(mean, covariance, prior.blocks[k])[0]
            thresholds[k] = least(k)
        # A term without coordinates left has nothing to judge.
        weak = [
            k for k in left if k not in kept and (gains[k] < thresholds[k] or prior.widths[k] == 0)
        ]
        if not weak:
            break
        weakest = min(weak, key=gains.__getitem__)
        block = prior.blocks[weakest]
        _, inverse = _log_evidence_gain(mean, covariance, block)
        regression = covariance[:, block] @ inverse
        mean = mean - regression @ mean[block]
        covariance = covariance - regression @ covariance[block, :]
        left.remove(weakest)
        dropped.append(weakest)
    return Elimination(dropped, gains, thresholds)


def min_model_gain(prior: Prior, posterior: Posterior) -> float:
    """The log evidence gain over the intercept alone below which a model is a fit to noise.

    Level effects, of which there may be one per few rows, share one precision and do not count: tuning
    hardly raises their evidence.
    """
    tuned = [groups for groups in prior.groups if groups.stop - groups.start > 1]
    effective = sum(float(posterior.effective[groups].sum()) for groups in tuned)
    return max(MIN_LOG_EVIDENCE_GAIN, _PER_PARAMETER * effective)


def term_log_evidence_gains(prior: Prior, posterior: Posterior) -> list[float]:
    """By how much the log evidence would fall without each term, at fixed noise and other precisions."""
    mean, covariance = posterior.mean, posterior.covariance
    return [_log_evidence_gain(mean, covariance, block)[0] for block in prior.blocks]


def null_evidence(rows: AnyRows, likelihood: Likelihood) -> float:
    """Log evidence of the intercept-only model."""
    value, noise = null_fit(rows, likelihood)
    if likelihood.noise_bounds is None:
        return value / noise
    return at_noise(value, rows.count, noise) + rows.log_precision


def null_fit(rows: AnyRows, likelihood: Likelihood) -> tuple[float, float]:
    """Log-likelihood of the intercept-only model at unit noise, and its noise."""
    value = statistics.null_log_likelihood(rows, likelihood)
    if likelihood.noise_bounds is None:
        return value, likelihood.excess
    return value, max(-2.0 * value / rows.count, likelihood.noise_bounds[0])


def _log_evidence_gain(mean: Array, covariance: Array, block: slice) -> tuple[float, Array]:
    """The gain of a block of coordinates, and the inverse of its covariance."""
    means = mean[block]
    if len(means) == 0:
        return 0.0, np.empty((0, 0))
    try:
        inverse, log_det = inverse_and_log_det(covariance[block, block])
    except np.linalg.LinAlgError:
        # Determined to the last digit, so that the covariance is rounding: certainly a large gain.
        return np.inf, np.zeros((len(means), len(means)))
    return 0.5 * (float(means @ inverse @ means) + log_det), inverse
