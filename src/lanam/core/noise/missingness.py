"""Missing inputs add residual variance.

The noise variance of a Gaussian response is ``s^2`` in complete rows, and column ``d`` adds ``g_d`` where
it is missing,

    v_i = s^2 + sum_d g_d [x_id is missing],

a regression of the squared residuals with non-negative coefficients. Rows are then weighted by
``s^2 / v_i``, and new rows with missing values have wider intervals than complete ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.optimize import nnls

from lanam.core.arrays import Array
from lanam.core.inference.problem import Problem, State
from lanam.core.rows import statistics
from lanam.core.rows.located import Rows, added
from lanam.core.rows.statistics import Around
from lanam.core.rows.tables import Totals

#: Required gain in log-likelihood per column with missing values, in nats.
_LEAST_GAIN = 1.0

#: A column that is missing in more of the rows than this tells little of the noise of complete ones.
_MOST_MISSING = 0.75

_ROUNDS = 3

#: Weights that change by less than this are left as they are.
_CLOSE = 0.05


def fit_missingness_noise(problem: Problem, state: State) -> tuple[Problem, State]:
    """The problem with rows weighted by the variance of their missing values, if the likelihood improves.

    The state's noise becomes that of complete rows.
    """
    rows, missing = problem.rows, problem.rows.missing_columns
    # A noise variance at its lower bound is no estimate.
    if not missing or not problem.likelihood.quadratic or state.noise <= 2e-6:
        return problem, state

    def totals(coefficients: Array) -> Totals:
        return rows.total(partial(_variance_sums, problem.around(state), missing, coefficients))

    # With equal variances, their size does not matter to the regression.
    gram, target, log_density = totals(np.append(1.0, np.zeros(len(missing))))
    usual = np.append(True, np.diag(gram)[1:] <= _MOST_MISSING * gram[0, 0])
    missing = tuple(column for column, kept in zip(missing, usual[1:], strict=True) if kept)
    gram, target = gram[np.ix_(usual, usual)], target[usual]
    if not missing:
        return problem, state
    constant = float(target[0]) / rows.count
    null = -0.5 * rows.count * (np.log(constant) + 1.0)
    for _ in range(_ROUNDS):
        try:
            solution = _nonnegative_solution(gram, target)
        except RuntimeError:  # columns that are missing together may make it cycle
            return problem, state
        coefficients = np.append(max(float(solution[0]), 1e-3 * constant), solution[1:])
        gram, target, log_density = totals(coefficients)
    if float(log_density) - null < _LEAST_GAIN * len(missing):
        return problem, state
    added_noise = np.zeros(rows.n_columns)
    added_noise[list(missing)] = coefficients[1:] / coefficients[0]
    before = rows.missing_noise
    if before is not None and np.allclose(added_noise, before, _CLOSE, _CLOSE):
        return problem, state
    weighted = problem.with_terms(problem.terms, rows.with_missing_noise(added_noise))
    return weighted, replace(state, noise=float(coefficients[0]))


def _variance_sums(
    around: Around, missing: Sequence[int], coefficients: Array, parts: Iterable[Rows]
) -> Totals:
    """Normal equations of the squared residuals, and the residuals' log-density, at given coefficients.

    A square's own variance is twice the square of its mean.
    """

    def of(part: Rows) -> Totals:
        squares = np.square(part.y - around.predict(part))
        if part.reliability is not None:
            squares *= part.reliability
        is_missing = np.isnan(part.columns[:, list(missing)])
        design = np.column_stack([np.ones(len(part)), is_missing])
        variance = design @ coefficients
        scaled = design * (part.weight / np.square(variance))[:, None]
        log_density = np.array(-0.5 * part.weight @ (np.log(variance) + squares / variance))
        return scaled.T @ design, scaled.T @ squares, log_density

    return added(parts, statistics.CHUNK_ROWS, of)


def _nonnegative_solution(gram: Array, target: Array) -> Array:
    """Non-negative least squares from normal equations; columns missing in the same rows share a sum."""
    size, vectors = np.linalg.eigh(gram)
    smallest = 1e-13 * size[-1]
    along = np.where(size > smallest, vectors.T @ target, 0.0)
    # Directions without data are pulled to zero: else rounding would decide.
    root = np.sqrt(np.maximum(size, smallest))
    solution, _ = nnls(root[:, None] * vectors.T, along / root)
    return np.asarray(solution)
