"""Figures of predictive performance as functions of the rows' weights, with the influence of every row.

A figure ``T`` of weighted rows is asymptotically linear: its variance is ``sum_i w_i psi_i^2 / W^2``, where
``psi_i`` is the influence of a row, W times the derivative of ``T`` by the row's weight ``w_i``, and W the
total weight. This is the infinitesimal jackknife; for the AUROC it is DeLong's variance, for the mean of
the rows' losses that of a mean, for coefficients of a regression the sandwich. It has no random numbers,
and a weight of two is a repeated row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lanam.core.arrays import Array, IntArray

#: Newton steps of a calibration regression, and the change of the coefficients at which it has converged.
_MAX_STEPS = 100
_TOLERANCE = 1e-10


class Estimate(NamedTuple):
    """The value of a figure, and the influence of every row."""

    value: float
    influence: Array

    def std_error(self, weight: Array, group: IntArray | None = None) -> float:
        """Standard error, for frequency weights; of independent groups of rows, if some are numbered."""
        largest = float(np.abs(self.influence).max()) or 1.0  # whose square may overflow
        if group is not None:
            sums = np.bincount(group, weights=weight * (self.influence / largest))
            n_groups = len(sums)
            if n_groups == 1:
                return np.nan
            squares = np.square(sums).sum() * n_groups / (n_groups - 1.0)
            return largest * float(np.sqrt(squares) / weight.sum())
        return largest * float(np.sqrt(weight @ (self.influence / largest) ** 2) / weight.sum())


def undefined(n_rows: int) -> Estimate:
    """The estimate of a figure that these rows do not determine."""
    return Estimate(np.nan, np.full(n_rows, np.nan))


def mean_of(losses: Array, weight: Array) -> Estimate:
    """The mean of the rows' losses."""
    value = float(np.average(losses, weights=weight))
    return Estimate(value, losses - value)


def root(estimate: Estimate) -> Estimate:
    """The square root of an estimate."""
    value = float(np.sqrt(estimate.value))
    return Estimate(value, estimate.influence / (2.0 * value) if value else estimate.influence)


def ratio(above: Estimate, below: Estimate) -> Estimate:
    """The ratio of two estimates."""
    if not below.value:
        return undefined(len(below.influence))
    value = above.value / below.value
    return Estimate(value, (above.influence - value * below.influence) / below.value)


def explained(loss: Estimate, baseline: Estimate) -> Estimate:
    """The fraction of a baseline's loss that is explained."""
    value, influence = ratio(loss, baseline)
    return Estimate(1.0 - value, -influence)


def auroc(truth: NDArray[np.bool_], score: Array, weight: Array) -> Estimate:
    """Area under the ROC curve: the probability that an event has a higher score than a non-event."""
    total = weight.sum()
    events = float(weight @ truth) / total
    if not 0.0 < events < 1.0:
        return undefined(len(truth))
    order, group = np.unique(score, return_inverse=True)
    others = np.where(truth, 0.0, weight), np.where(truth, weight, 0.0)
    below = []
    for mass in others:  # of non-events, then of events: fraction with a lower score, ties half
        at = np.bincount(group, mass, len(order)) / mass.sum()
        below.append((np.cumsum(at) - 0.5 * at)[group])
    ranked = np.where(truth, below[0], 1.0 - below[1])
    value = float(np.average(below[0], weights=others[1]))
    return Estimate(value, (ranked - value) / np.where(truth, events, 1.0 - events))


def auprc(truth: NDArray[np.bool_], score: Array, weight: Array) -> Estimate:
    """Area under the precision-recall curve, as average precision: the mean precision at the events."""
    events = float(weight @ truth)
    if not events:
        return undefined(len(truth))
    order, group = np.unique(-score, return_inverse=True)  # highest scores first
    hits = np.bincount(group, weight * truth, len(order))
    found = np.cumsum(np.bincount(group, weight, len(order)))
    precision = np.cumsum(hits) / np.maximum(found, np.finfo(float).tiny)
    value = float(hits @ precision) / events
    # A row of a higher score changes the precision at every event at or below it.
    parts = hits / np.maximum(found, np.finfo(float).tiny)
    gained, lost = (np.cumsum(part[::-1])[::-1][group] for part in (parts, parts * precision))
    change = truth * (precision[group] - value + gained) - lost
    return Estimate(value, change * (weight.sum() / events))


def calibration_slope(truth: NDArray[np.bool_], logit: Array, weight: Array) -> Estimate:
    """The coefficient of the predicted log-odds in a logistic regression of the events on them (Cox)."""
    used = weight > 0.0
    events, others = logit[truth & used], logit[~truth & used]
    separated = (
        not len(events)
        or not len(others)
        or events.min() >= others.max()
        or events.max() <= others.min()
    )
    if separated:  # the slope is infinite, or there is none
        return undefined(len(truth))
    design = np.column_stack([np.ones(len(logit)), logit])
    return _logistic(design, np.zeros(len(logit)), truth, weight)


def calibration_intercept(truth: NDArray[np.bool_], logit: Array, weight: Array) -> Estimate:
    """Calibration in the large: the intercept of that regression if the slope is one."""
    if not 0.0 < float(weight @ truth) < weight.sum():
        return undefined(len(truth))
    return _logistic(np.ones((len(logit), 1)), logit, truth, weight)


def _logistic(design: Array, offset: Array, truth: NDArray[np.bool_], weight: Array) -> Estimate:
    """The last coefficient of a logistic regression, by Newton's method with step halving."""
    coefficients = np.zeros(design.shape[1])
    sign = np.where(truth, 1.0, -1.0)

    def loss(at: Array) -> float:
        return float(weight @ np.logaddexp(0.0, -sign * (offset + design @ at)))

    for _ in range(_MAX_STEPS):
        predicted = expit(offset + design @ coefficients)
        residual = truth - predicted
        hessian = (design.T * (weight * predicted * (1.0 - predicted))) @ design
        step, *_ = np.linalg.lstsq(hessian, design.T @ (weight * residual), rcond=None)
        most = loss(coefficients) * (1.0 + 1e-12)  # up to rounding
        while loss(coefficients + step) > most and np.abs(step).max() > _TOLERANCE:
            step = 0.5 * step
        coefficients = coefficients + step
        if np.abs(step).max() <= _TOLERANCE * (1.0 + np.abs(coefficients).max()):
            break
    solved, *_ = np.linalg.lstsq(hessian / weight.sum(), design.T * residual, rcond=None)
    return Estimate(float(coefficients[-1]), solved[-1])
