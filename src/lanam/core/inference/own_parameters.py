"""The likelihood's own parameters: the shape of amounts, the dispersion of counts, cut points of grades.

They maximise the evidence beside the functions. At fixed functions and precisions that is, by the log
determinant ``log |H + W^-1|`` of Laplace's approximation,

    sum_i w_i [log p(y_i | f_i, a) - h_i / 2 log gamma(f_i, a)]

where ``h_i`` is the leverage of row ``i``, whose sum is the model's effective degrees of freedom. It is
taken as equal in all rows. For Gaussian noise this would be the residual sum of squares over ``N - edf``.

Newton's steps in the parameters' logarithms, with derivatives from the sums at neighbouring parameters: one
pass over the rows each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np

from lanam.core.arrays import Array
from lanam.core.inference.problem import Problem, State
from lanam.core.likelihoods import Likelihood
from lanam.core.rows.located import AnyRows, Rows, added
from lanam.core.rows.statistics import (
    CHUNK_ROWS,
    Around,
    fit_intercept_only,
    log_densities,
    own_curvature,
)
from lanam.core.rows.tables import Totals

#: The largest and smallest distance of neighbouring parameters in logarithms. In between it is one standard
#: deviation: the objective bends over more, and rounding matters over less.
_STEP = 0.02
_LEAST_STEP = 1e-4
#: The largest step, and the number of steps.
_REACH = 1.5
_MOST_STEPS = 20
#: Steps end when they promise less than this many nats.
_TOL = 1e-3
#: The factor by which the residuals may exceed the variance: that of a sample is uncertain.
_TOLERATED = 1.2
#: Rounds of the constant model: its intercept, then the parameters.
_ROUNDS = 3


def tuned(problem: Problem, state: State) -> State:
    """The state with the best parameters of its likelihood."""
    around = problem.around(state)
    if not around.likelihood.parameters:
        return state
    effective = state.n_effective + problem.likelihood.n_outputs
    likelihood = fit_parameters(problem.rows, around, effective / problem.rows.count)
    return replace(state, likelihood=likelihood, quadratic=None)


def fit_null(rows: Rows, likelihood: Likelihood) -> Likelihood:
    """The likelihood with the parameters of the best constant model."""
    if not likelihood.parameters:
        return likelihood
    alone = rows.keep_terms([])
    around = Around(likelihood, (), fit_intercept_only(alone, likelihood))
    if likelihood.with_variance(1.0) is not None:  # from the residuals' variance on
        (squares,) = alone.total(partial(_pearson_sum, around))
        likelihood = likelihood.with_variance(float(squares) / alone.count) or likelihood
    for _ in range(_ROUNDS):
        around = Around(likelihood, (), fit_intercept_only(alone, likelihood))
        likelihood = fit_parameters(alone, around, likelihood.n_outputs / alone.count)
    if likelihood.with_variance(1.0) is None:
        return likelihood
    # Tails heavier than the family's: the likelihood would take them for signal.
    around = Around(likelihood, (), fit_intercept_only(alone, likelihood))
    (squares,) = alone.total(partial(_pearson_sum, around))
    return likelihood.with_excess(max(float(squares) / (alone.count * _TOLERATED), 1.0))


def fit_parameters(rows: AnyRows, around: Around, leverage: float) -> Likelihood:
    """The likelihood with the best parameters around a prediction; rows have this mean leverage."""
    likelihood = around.likelihood
    low, high = np.log(np.array(likelihood.bounds)).T
    free = np.flatnonzero(low < high)
    whole = np.clip(np.log(likelihood.parameters), low, high)
    # Neighbours are within the bounds as well.
    low, high = low[free] + _STEP, high[free] - _STEP
    logs = np.clip(whole[free], low, high)

    def at(logs: Array) -> Likelihood:
        moved = whole.copy()
        moved[free] = logs
        return likelihood.with_parameters(np.exp(moved).tolist())

    best, value = logs, -np.inf
    steps, gradient = np.full(len(logs), _STEP), np.zeros(len(logs))
    for _ in range(_MOST_STEPS):
        candidates = list(map(at, _neighbours(logs, steps)))
        (sums,) = rows.total(partial(_objectives, around, candidates, leverage))
        if np.isfinite(sums).all() and sums[0] >= value:
            best, value = logs, float(sums[0])
            gradient, hessian = _derivatives(sums, steps)
            logs = np.clip(best + _newton(gradient, hessian), low, high)
            curvature = np.maximum(np.abs(np.diag(hessian)), np.finfo(float).tiny)
            steps = np.clip(1.0 / np.sqrt(curvature), _LEAST_STEP, _STEP)
        else:  # too far
            logs = 0.5 * (best + logs)
        if gradient @ (logs - best) < _TOL:
            break
    return at(best)


def _newton(gradient: Array, hessian: Array) -> Array:
    """A step uphill, whether or not the objective is concave here."""
    curvature, vectors = np.linalg.eigh(-hessian)
    size = np.maximum(np.abs(curvature), 1e-9 * np.abs(curvature).max(initial=1e-300))
    step = vectors @ (vectors.T @ gradient / size)
    return np.asarray(step * min(1.0, _REACH / max(float(np.abs(step).max(initial=0.0)), 1e-300)))


def _neighbours(logs: Array, steps: Array) -> list[Array]:
    """The point itself; one step down and up along each axis; and up along each pair of axes."""
    moves = np.diag(steps)
    along = [logs + sign * move for move in moves for sign in (-1.0, 1.0)]
    return [logs, *along, *(logs + first + second for first, second in combinations(moves, 2))]


def _derivatives(values: Array, steps: Array) -> tuple[Array, Array]:
    """Gradient and Hessian from the values at the neighbours."""
    size = len(steps)
    centre, down, up = values[0], values[1 : 2 * size + 1 : 2], values[2 : 2 * size + 1 : 2]
    # In units of the steps first.
    gradient, hessian = 0.5 * (up - down), np.diag(up - 2.0 * centre + down)
    for (i, j), both in zip(combinations(range(size), 2), values[2 * size + 1 :], strict=True):
        # Of both steps at once: f + g_i + g_j + (h_ii + h_jj + 2 h_ij) / 2.
        bend = both - centre - gradient[i] - gradient[j]
        hessian[i, j] = hessian[j, i] = bend - 0.5 * (hessian[i, i] + hessian[j, j])
    return gradient / steps, hessian / np.outer(steps, steps)


def _pearson_sum(around: Around, parts: Iterable[Rows]) -> Totals:
    """The sum of squared residuals in units of their variance."""

    def of(part: Rows) -> Totals:
        squares = around.likelihood.pearson(part.y, around.predict(part))
        return (np.array(part.information @ squares),)

    return added(parts, CHUNK_ROWS, of)


def _objectives(
    around: Around, candidates: Sequence[Likelihood], leverage: float, parts: Iterable[Rows]
) -> Totals:
    """The objective of each candidate."""

    def of(part: Rows) -> Totals:
        f = around.predict(part)

        def objective(likelihood: Likelihood) -> float:
            gamma = own_curvature(likelihood.curvature(f))
            log_gamma = np.log(np.maximum(gamma, np.finfo(float).tiny))
            each = log_gamma if log_gamma.ndim == 1 else log_gamma.sum(axis=1)
            values = log_densities(part, likelihood, f) - 0.5 * leverage * each
            return float(part.weight @ values)

        return (np.array([objective(likelihood) for likelihood in candidates]),)

    return added(parts, CHUNK_ROWS, of)
