"""Which terms the evidence pays for: dropping weak ones (method.md 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from lanam.core.arrays import Array
from lanam.core.inference.evidence import Posterior, at_noise
from lanam.core.inference.prior import Prior, inverse_and_log_det
from lanam.core.likelihoods import Likelihood
from lanam.core.rows import statistics
from lanam.core.rows.located import AnyRows
from lanam.core.rows.statistics import evaluate

#: A term stays if it is worth this many nats of evidence. Its precisions were tuned, which by itself
#: makes a useless term look worth up to about this much.
WORTH = 3.0

#: A term that is worth less stays only if its effect is more than this share of the model's spread:
#: with few rows, weak terms that are not negligible predict better together than without them.
NEGLIGIBLE = 0.05

#: Nats over its intercept alone that a model must be worth for each effective parameter of its networks.
#: Real data has more than three (measured on the paper's sets), a fit to noise less than two.
_PER_PARAMETER = 2.0


#: What a term must be worth to stay, given its number and the numbers of all that are left.
Needed = Callable[[int, Sequence[int]], float]


def eliminate(
    prior: Prior,
    posterior: Posterior,
    tables: Sequence[Array],
    shares: Sequence[Array],
    needed: Needed | None = None,
    *,
    n_outputs: int = 1,
    outside: Mapping[int, float] = MappingProxyType({}),
) -> tuple[list[int], list[float]]:
    """Drop the term that is worth least, update all others in closed form, repeat.

    ``prior`` must be at the hyperparameters its tables were made with (``W = I``). Removing block ``d``
    lowers the log evidence by ``(m_d' S_dd^-1 m_d + log |S_dd|) / 2``. Of two terms that can stand in
    for each other only one goes, because the other's worth rises when it has gone. ``needed`` is what a
    term must be worth to stay among the terms that are left, by default not less than nothing; where
    its effect is negligible it is ``WORTH`` at least. ``outside`` are terms that are not among the
    coordinates, and what they are worth: where one of them is weak, it goes and no other is judged.

    Returns
    -------
    dropped
        Terms in the order they went.
    worth
        What every term was worth: when it went, or at the end.
    """
    mean, covariance = posterior.mean.copy(), posterior.covariance.copy()
    left, dropped = [k for k in range(len(tables)) if k not in outside], list[int]()
    worth = [outside.get(k, 0.0) for k in range(len(tables))]
    gone = [k for k in outside if worth[k] < (0.0 if needed is None else needed(k, left))]
    if gone:
        return gone, worth

    def spread(k: int) -> float:
        squares = np.square(evaluate(tables[k], mean[prior.blocks[k]], n_outputs))
        return float(np.sqrt((shares[k] @ squares).sum()))

    negligible = NEGLIGIBLE * float(np.sqrt(sum(spread(k) ** 2 for k in left)))

    def least(k: int) -> float:
        if prior.widths[k] == 0:
            return np.inf  # nothing is left of it
        own = 0.0 if needed is None else needed(k, left)
        return max(own, WORTH) if own >= 0.0 and spread(k) <= negligible else own

    while left:
        for k in left:
            worth[k] = _worth(mean, covariance, prior.blocks[k])[0]
        weak = [k for k in left if worth[k] < least(k)]
        if not weak:
            break
        weakest = min(weak, key=worth.__getitem__)
        block = prior.blocks[weakest]
        _, inverse = _worth(mean, covariance, block)
        gain = covariance[:, block] @ inverse
        mean = mean - gain @ mean[block]
        covariance = covariance - gain @ covariance[block, :]
        left.remove(weakest)
        dropped.append(weakest)
    return dropped, worth


def enough(prior: Prior, posterior: Posterior) -> float:
    """What a model must be worth over its intercept alone not to be made of noise.

    Levels, of which there may be one for every few rows, share one precision and do not count: their
    evidence is not what tuning made of it.
    """
    tuned = [groups for groups in prior.groups if groups.stop - groups.start > 1]
    effective = sum(float(posterior.effective[groups].sum()) for groups in tuned)
    return max(WORTH, _PER_PARAMETER * effective)


def term_worth(prior: Prior, posterior: Posterior) -> list[float]:
    """By how much the log evidence would fall without each term, all else as it is."""
    return [_worth(posterior.mean, posterior.covariance, block)[0] for block in prior.blocks]


def null_evidence(rows: AnyRows, likelihood: Likelihood) -> float:
    """Log evidence of the intercept alone: what a model must beat."""
    value, noise = null_fit(rows, likelihood)
    if likelihood.noise_bounds is None:
        return value
    return at_noise(value, rows.count, noise) + rows.log_precision


def null_fit(rows: AnyRows, likelihood: Likelihood) -> tuple[float, float]:
    """Log-likelihood of the intercept alone at unit noise, and the noise around it."""
    value = statistics.null_log_likelihood(rows, likelihood)
    if likelihood.noise_bounds is None:
        return value, 1.0
    return value, max(-2.0 * value / rows.count, likelihood.noise_bounds[0])


def _worth(mean: Array, covariance: Array, block: slice) -> tuple[float, Array]:
    own = mean[block]
    if len(own) == 0:
        return 0.0, np.empty((0, 0))
    try:
        inverse, log_det = inverse_and_log_det(covariance[block, block])
    except np.linalg.LinAlgError:
        # Determined to the last digit, so that rounding is all that is left: certainly worth keeping.
        return np.inf, np.zeros((len(own), len(own)))
    return 0.5 * (float(own @ inverse @ own) + log_det), inverse
