"""Rows with missing values are noisier: what the column would have said is noise to them.

The noise variance of a Gaussian response is ``s^2`` in rows without gaps, and column ``d`` adds ``g_d``
where it is missing,

    v_i = s^2 + sum_d g_d [x_id is missing].

The squared residuals say how much: a regression of them with coefficients that are not negative. Rows
are then weighed by ``s^2 / v_i``, and new rows with gaps have wider intervals than those without.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from lanam.core import gauss_newton, statistics
from lanam.core.arrays import Array
from lanam.core.gauss_newton import Problem, State
from lanam.core.statistics import Rows

#: Nats for each column that the weights must bring.
_WORTH = 1.0

_ROUNDS = 3

#: Weights that change by less than this are left as they are.
_CLOSE = 0.05


@dataclass(frozen=True)
class Gaps:
    """Where rows have missing values: ``columns`` that have any, and which rows lack them (n, k)."""

    n_columns: int
    columns: tuple[int, ...]
    missing: Array

    @classmethod
    def of(cls, columns: Array) -> Gaps:
        """Of a table (n, D)."""
        gone = [k for k in range(columns.shape[1]) if np.isnan(columns[:, k]).any()]
        return cls(columns.shape[1], tuple(gone), np.isnan(columns[:, gone]).astype(np.float64))


def weigh(problem: Problem, state: State, gaps: Gaps) -> tuple[Problem, State]:
    """The problem with its rows weighed by how noisy their gaps make them, if that pays.

    The state's noise becomes that of rows without gaps.
    """
    rows = problem.rows
    # Beyond its floor the noise is not to be believed.
    if not gaps.columns or not problem.likelihood.quadratic or state.noise <= 2e-6:
        return problem, state
    residual = rows.y - statistics.predict(rows, state.values, state.intercept)
    squares, weight = np.square(residual), rows.weight
    constant = float(weight @ squares / weight.sum())
    design = np.column_stack([np.ones(len(squares)), gaps.missing])
    variance = np.full(len(squares), constant)
    for _ in range(_ROUNDS):
        # A square's own variance is twice the square of its mean.
        root = np.sqrt(weight) / variance
        try:
            coefficients, _ = nnls(root[:, None] * design, root * squares)
        except RuntimeError:  # gaps that say the same of rows may keep it going in circles
            return problem, state
        least = max(float(coefficients[0]), 1e-3 * constant)
        variance = least + gaps.missing @ coefficients[1:]
    gain = 0.5 * float(
        weight @ (np.log(constant / variance) + squares / constant - squares / variance)
    )
    if gain < _WORTH * len(gaps.columns):
        return problem, state
    noisier = np.zeros(gaps.n_columns)
    noisier[list(gaps.columns)] = coefficients[1:] / least
    if rows.gap_noise is not None and np.allclose(noisier, rows.gap_noise, _CLOSE, _CLOSE):
        return problem, state
    precise = weighed_by(rows, noisier, gaps)
    weighed = gauss_newton.make_problem(
        problem.terms, precise, problem.likelihood, problem.joint, problem.evidence_update
    )
    return weighed, replace(state, noise=least)


def weighed_by(rows: Rows, gap_noise: Array, gaps: Gaps) -> Rows:
    """Rows weighed by how noisy their gaps make them."""
    relative = 1.0 + gaps.missing @ gap_noise[list(gaps.columns)]
    return replace(rows, precision=1.0 / relative, gap_noise=gap_noise)
