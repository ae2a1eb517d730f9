"""Rows with missing values are noisier: what the column would have said is noise to them.

The noise variance of a Gaussian response is ``s^2`` in rows without gaps, and column ``d`` adds ``g_d``
where it is missing,

    v_i = s^2 + sum_d g_d [x_id is missing].

The squared residuals say how much: a regression of them with coefficients that are not negative. Rows
are then weighed by ``s^2 / v_i``, and new rows with gaps have wider intervals than those without.
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
from lanam.core.rows.expansions import Around
from lanam.core.rows.located import Rows, added
from lanam.core.rows.tables import Totals

#: Nats for each column that the weights must bring.
_WORTH = 1.0

_ROUNDS = 3

#: Weights that change by less than this are left as they are.
_CLOSE = 0.05


def weigh(problem: Problem, state: State) -> tuple[Problem, State]:
    """The problem with its rows weighed by how noisy their gaps make them, if that pays.

    The state's noise becomes that of rows without gaps.
    """
    rows, gaps = problem.rows, problem.rows.gaps
    # Beyond its floor the noise is not to be believed.
    if not gaps or not problem.likelihood.quadratic or state.noise <= 2e-6:
        return problem, state

    def totals(coefficients: Array) -> Totals:
        return rows.total(partial(_gap_sums, problem.around(state), gaps, coefficients))

    # Where all variances are the same, their size does not matter to the regression.
    gram, target, log_density = totals(np.append(1.0, np.zeros(len(gaps))))
    constant = float(target[0]) / rows.count
    even = -0.5 * rows.count * (np.log(constant) + 1.0)
    for _ in range(_ROUNDS):
        try:
            found = _not_negative(gram, target)
        except RuntimeError:  # gaps that say the same of rows may keep it going in circles
            return problem, state
        coefficients = np.append(max(float(found[0]), 1e-3 * constant), found[1:])
        gram, target, log_density = totals(coefficients)
    gain = float(log_density) - even
    if gain < _WORTH * len(gaps):
        return problem, state
    noisier = np.zeros(rows.n_columns)
    noisier[list(gaps)] = coefficients[1:] / coefficients[0]
    if rows.gap_noise is not None and np.allclose(noisier, rows.gap_noise, _CLOSE, _CLOSE):
        return problem, state
    weighed = problem.with_terms(problem.terms, rows.weighed_by(noisier))
    return weighed, replace(state, noise=float(coefficients[0]))


def _gap_sums(
    around: Around, gaps: Sequence[int], coefficients: Array, parts: Iterable[Rows]
) -> Totals:
    """The squared residuals' regression where variances are as ``coefficients`` say.

    Its normal equations, and the residuals' log-density. A square's own variance is twice the square of
    its mean.
    """

    def of(part: Rows) -> Totals:
        squares = np.square(part.y - around.predict(part))
        gone = np.isnan(part.columns[:, list(gaps)])
        design = np.column_stack([np.ones(len(part)), gone])
        variance = design @ coefficients
        scaled = design * (part.weight / np.square(variance))[:, None]
        log_density = np.array(-0.5 * part.weight @ (np.log(variance) + squares / variance))
        return scaled.T @ design, scaled.T @ squares, log_density

    return added(parts, statistics.CHUNK_ROWS, of)


def _not_negative(gram: Array, target: Array) -> Array:
    """The coefficients, none of them negative, of a regression with these normal equations.

    Columns that are missing in the same rows share what is added there.
    """
    size, vectors = np.linalg.eigh(gram)
    smallest = 1e-13 * size[-1]
    along = np.where(size > smallest, vectors.T @ target, 0.0)
    # Along directions of which rows say nothing there is a pull to zero: else rounding would decide.
    root = np.sqrt(np.maximum(size, smallest))
    found, _ = nnls(root[:, None] * vectors.T, along / root)
    return np.asarray(found)
