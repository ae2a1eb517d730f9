"""Scores of predicted risks and survival curves, with censoring.

``event`` is whether a row's follow-up ended with an event, ``time`` when it ended. Where censoring is
weighted for, the probability ``G(t)`` of being uncensored is a Kaplan-Meier estimate, from the rows
themselves or from the training data, ``censoring=(event, time)`` or ``(event, time, sample_weight)``.
A row with the ``sample_weight`` 2 counts as two equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from lanam.core.arrays import Array
from lanam.metrics.checks import Weights, read_vector, read_weights

#: Events and times from which censoring is estimated, and perhaps weights.
Outcomes = tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike]

_N_BINS = 10


def harrell_c(
    event: ArrayLike, time: ArrayLike, risk: ArrayLike, *, sample_weight: Weights = None
) -> float:
    """Harrell's C: the proportion of comparable pairs whose risks are in the order of their events.

    Two rows are comparable if the one with the shorter time has an event; ties of risks count half.

    Examples
    --------
    >>> harrell_c([1, 1, 0], [1.0, 2.0, 3.0], [0.9, 0.2, 0.5])
    0.6666666666666666
    """
    events, times = _read_outcomes(event, time)
    rows = read_weights(sample_weight, len(times))
    return _concordance(events, times, read_vector("risk", risk, len(times)), rows, rows)


def uno_c(
    event: ArrayLike,
    time: ArrayLike,
    risk: ArrayLike,
    *,
    censoring: Outcomes | None = None,
    tau: float | None = None,
    sample_weight: Weights = None,
) -> float:
    """Uno's C: Harrell's, with pairs weighted so that it does not depend on the censoring.

    Pairs whose shorter time is ``t`` have the weight ``1 / G(t)^2``. Events from ``tau`` on, where few rows
    are still at risk and weights are large, do not count.

    Examples
    --------
    >>> round(uno_c([1, 1, 0, 1], [1.0, 2.0, 2.5, 3.0], [0.9, 0.2, 0.5, 0.1]), 3)
    0.8
    """
    events, times = _read_outcomes(event, time)
    rows = read_weights(sample_weight, len(times))
    weight = rows * _inverse(_uncensored(events, times, rows, censoring)(times)) ** 2
    counted = events if tau is None else events & (times < tau)
    risks = read_vector("risk", risk, len(times))
    return _concordance(counted, times, risks, weight, rows, seen=events)


def time_dependent_auc(
    event: ArrayLike,
    time: ArrayLike,
    risk: ArrayLike,
    times: ArrayLike,
    *,
    censoring: Outcomes | None = None,
    sample_weight: Weights = None,
) -> Array:
    """AUROC at each of some times, of rows with an event until then against those still at risk.

    Cases are weighted by ``1 / G`` at their time (cumulative cases, dynamic controls). ``risk`` has one
    value per row, or one per row and time.

    Examples
    --------
    >>> time_dependent_auc([1, 1, 0, 1], [1.0, 2.0, 2.5, 3.0], [0.9, 0.2, 0.5, 0.1], [1.5, 2.2])
    array([1.  , 0.75])
    """
    events, ends = _read_outcomes(event, time)
    grid = read_vector("times", times)
    risks = np.broadcast_to(
        np.asarray(risk, dtype=np.float64).reshape(len(ends), -1), (len(ends), len(grid))
    )
    rows = read_weights(sample_weight, len(ends))
    weight = rows * events * _inverse(_uncensored(events, ends, rows, censoring)(ends))
    result = np.full(len(grid), np.nan)
    for k, at in enumerate(grid):
        cases, controls = events & (ends <= at), ends > at
        total = weight[cases].sum() * rows[controls].sum()
        if total > 0.0:
            order = np.argsort(risks[controls, k])
            ordered = risks[controls, k][order]
            passed = np.r_[0.0, np.cumsum(rows[controls][order])]
            below = passed[np.searchsorted(ordered, risks[cases, k], "left")]
            upto = passed[np.searchsorted(ordered, risks[cases, k], "right")]
            result[k] = weight[cases] @ (0.5 * (below + upto)) / total
    return result


def survival_brier_score(
    event: ArrayLike,
    time: ArrayLike,
    survival: ArrayLike,
    times: ArrayLike,
    *,
    censoring: Outcomes | None = None,
    sample_weight: Weights = None,
) -> Array:
    """Mean squared error of predicted survival (n, T) at each of some times, weighted for censoring.

    Rows with an event until ``t`` have the weight ``1 / G`` at their time, those still at risk
    ``1 / G(t)``, and those censored before none.

    Examples
    --------
    >>> survival_brier_score([1, 0], [1.0, 3.0], [[0.5], [0.5]], [2.0])
    array([0.25])
    """
    events, ends = _read_outcomes(event, time)
    grid = read_vector("times", times)
    predicted = np.asarray(survival, dtype=np.float64)
    if predicted.shape != (len(ends), len(grid)):
        raise ValueError(
            f"survival must have {len(ends)} rows and a column for each of {len(grid)} times, and its "
            f"shape is {predicted.shape}"
        )
    rows = read_weights(sample_weight, len(ends))
    uncensored = _uncensored(events, ends, rows, censoring)
    gone = events[:, None] & (ends[:, None] <= grid)
    here = ends[:, None] > grid
    of_gone, of_here = _inverse(uncensored(ends))[:, None], _inverse(uncensored(grid))
    if ((gone & (of_gone == 0.0)) | (here & (of_here == 0.0))).any():
        raise ValueError("all rows are censored before the last of the times: leave out late times")
    errors = gone * predicted**2 * of_gone + here * (1.0 - predicted) ** 2 * of_here
    return np.asarray(rows @ errors / rows.sum())


def integrated_brier_score(
    event: ArrayLike,
    time: ArrayLike,
    survival: ArrayLike,
    times: ArrayLike,
    *,
    censoring: Outcomes | None = None,
    sample_weight: Weights = None,
) -> float:
    """Mean of :func:`survival_brier_score` over the range of ``times``, by the trapezoidal rule.

    Examples
    --------
    >>> curves = [[0.6, 0.4], [0.9, 0.8]]
    >>> round(integrated_brier_score([1, 0], [1.5, 3.0], curves, [1.0, 2.0]), 4)
    0.0925
    """
    grid = read_vector("times", times)
    scores = survival_brier_score(
        event, time, survival, times, censoring=censoring, sample_weight=sample_weight
    )
    if len(grid) < 2 or not (np.diff(grid) > 0.0).all():
        raise ValueError("times must be at least two, in ascending order")
    return float(np.trapezoid(scores, grid) / (grid[-1] - grid[0]))


@dataclass(frozen=True)
class DCalibration:
    """The result of :func:`d_calibration`.

    Attributes
    ----------
    statistic, p_value
        Pearson's statistic of the bins, and the probability of a larger one if the model is calibrated.
    proportions
        Proportion of rows in each bin of predicted survival, from 0 to 1; equal if it is calibrated.
    """

    statistic: float
    p_value: float
    proportions: Array


def d_calibration(
    event: ArrayLike,
    survival: ArrayLike,
    *,
    n_bins: int = _N_BINS,
    sample_weight: Weights = None,
) -> DCalibration:
    """Whether survival predicted at the rows' own times is uniform, as it is if curves are calibrated.

    Rows with an event belong to the bin of their predicted survival. A censored row with survival ``s`` has
    its event at some smaller survival, uniformly: it is spread over the bins below (Haider et al. 2020).

    Examples
    --------
    >>> found = d_calibration([1, 1, 1, 1], [0.1, 0.4, 0.6, 0.9], n_bins=2)
    >>> found.proportions, found.p_value
    (array([0.5, 0.5]), 1.0)
    """
    events = np.asarray(event).astype(bool)
    values = read_vector("survival", survival, len(events))
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bin_of = np.clip((values * n_bins).astype(int), 0, n_bins - 1)
    rows = read_weights(sample_weight, len(events))
    counts = np.bincount(bin_of[events], rows[events], minlength=n_bins)
    censored = np.maximum(values[~events], np.finfo(float).tiny)[:, None]
    below = np.clip((censored - edges[:-1]) * n_bins, 0.0, 1.0) / n_bins
    counts += rows[~events] @ (below / censored)
    expected = float(rows.sum()) / n_bins
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return DCalibration(statistic, float(chi2.sf(statistic, n_bins - 1)), counts / rows.sum())


def _inverse(probability: Array) -> Array:
    """Weights of rows by the probability of seeing them; none where it is zero."""
    return np.divide(1.0, probability, out=np.zeros_like(probability), where=probability > 0.0)


def _read_outcomes(event: ArrayLike, time: ArrayLike) -> tuple[NDArray[np.bool_], Array]:
    times = read_vector("time", time)
    events = np.asarray(event)
    if events.shape != times.shape:
        raise ValueError(f"event has the shape {events.shape}, and time {times.shape}")
    return events.astype(bool), times


class _Uncensored:
    """``G(t)``, the Kaplan-Meier estimate of being uncensored after ``t``; events come before censoring."""

    def __init__(self, event: NDArray[np.bool_], time: Array, weight: Array) -> None:
        self.times, number = np.unique(time, return_inverse=True)
        censored = np.bincount(number, ~event * weight)
        left = np.bincount(number, weight)
        at_risk = np.cumsum(left[::-1])[::-1]
        # Those with an event at a time are not at risk of being censored there.
        exposed = at_risk - np.bincount(number, event * weight)
        factors = np.divide(censored, exposed, out=np.zeros(len(left)), where=exposed > 0)
        self.steps = np.cumprod(1.0 - factors)

    def __call__(self, times: Array) -> Array:
        return np.asarray(np.r_[1.0, self.steps][np.searchsorted(self.times, times, "right")])


def _uncensored(
    event: NDArray[np.bool_], time: Array, weight: Array, censoring: Outcomes | None
) -> _Uncensored:
    if censoring is None:
        return _Uncensored(event, time, weight)
    events, times = _read_outcomes(*censoring[:2])
    return _Uncensored(events, times, read_weights((*censoring, None)[2], len(times)))


def _concordance(
    counted: NDArray[np.bool_],
    time: Array,
    risk: Array,
    weight: Array,
    rows: Array,
    seen: NDArray[np.bool_] | None = None,
) -> float:
    """Weighted proportion of concordant pairs whose first row is ``counted``.

    A pair has the ``weight`` of its first row times that of its second among ``rows``.
    """
    events = counted if seen is None else seen
    # Rows comparable with an event come after it: later ones, and censored ones at the same time.
    order = np.lexsort((~events, time))
    rank = np.unique(risk, return_inverse=True)[1][order]
    events, counted, times, weight = events[order], counted[order], time[order], weight[order]
    rows = rows[order]
    key = np.searchsorted(np.unique(times), times) * 2 + ~events
    first = np.flatnonzero(counted)
    starts = np.searchsorted(key, key[first], "right")
    below = _sum_below(rank, rows, starts, rank[first])
    upto = _sum_below(rank, rows, starts, rank[first] + 1)
    later = np.r_[np.cumsum(rows[::-1])[::-1], 0.0]
    total = float(weight[first] @ later[starts])
    if total == 0.0:
        raise ValueError("no two rows are comparable: none has an event before another's time")
    return float(weight[first] @ (0.5 * (below + upto))) / total


def _sum_below(
    ranks: NDArray[np.integer],
    weights: Array,
    starts: NDArray[np.integer],
    bounds: NDArray[np.integer],
) -> Array:
    """Sums of the ``weights`` of those ``ranks`` from each start on that are below each bound.

    Bit by bit, all queries at once (a wavelet matrix): ranks are sorted by their leading bits, stably.
    """
    values, low = ranks.copy(), starts.copy()
    high, result = np.full(len(starts), len(ranks)), np.zeros(len(starts))
    for bit in reversed(range(int(max(bounds.max(initial=0), 1)).bit_length())):
        ones = (values >> bit) & 1
        zeros_before = np.r_[0, np.cumsum(1 - ones)]
        of_low, of_high = zeros_before[low], zeros_before[high]
        passed = np.r_[0.0, np.cumsum(weights * (1 - ones))]
        larger = ((bounds >> bit) & 1).astype(bool)
        result += np.where(larger, passed[high] - passed[low], 0.0)
        n_zeros = zeros_before[-1]
        low = np.where(larger, n_zeros + low - of_low, of_low)
        high = np.where(larger, n_zeros + high - of_high, of_high)
        order = np.argsort(ones, kind="stable")
        values, weights = values[order], weights[order]
    return result
