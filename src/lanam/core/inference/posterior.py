"""The posterior of a fit as means, tables and a covariance (method.md 3).

And its default curvature, the exact Gauss-Newton matrix ``H`` at unit noise: joint, or of each term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from lanam.core.arrays import Array, Intercept
from lanam.core.inference import selection, uncertainty
from lanam.core.inference.covariance import Dense
from lanam.core.inference.evidence import LevelPosterior, LinearModel, Posterior
from lanam.core.inference.prior import block_inverse, inverse_and_log_det
from lanam.core.inference.problem import UNSEEN_PRECISION, Problem, Regression, State

#: Determinants are valid for precisions down to this fraction.
_HEADROOM = 20.0


#: The evidence's determinant at fixed networks, by log precisions and the noise variance:
#: ``log |H / noise + Lambda| - log |Lambda|``, and each group's edf.
Determinant = Callable[[Array, float], tuple[float, Array]]


@dataclass(frozen=True)
class Solution:
    """All terms' functions: ``means[d] + tables[d] z_d`` with ``z`` and the intercept ``N(0, covariance)``.

    In the core's units (a Gaussian response has mean 0 and variance 1), one item per term. A
    high-cardinality term has no coordinates; its posterior, centred over the data, is in ``levels``.
    """

    means: tuple[Array, ...]
    tables: tuple[Array, ...]
    covariance: Array
    intercept: Intercept
    evidence: float
    effective: tuple[float, ...]
    log_evidence_gains: tuple[float, ...]
    levels: LevelPosterior | None = None
    #: degrees of freedom of the noise variance
    noise_df: float = np.inf
    #: the same posterior given the hyperparameters, if the covariance includes their uncertainty
    given: Solution | None = None
    #: the regression that it is of, and its posterior given the hyperparameters
    regression: tuple[Regression, Posterior] | None = None


@dataclass(frozen=True)
class Functions:
    """All terms' functions around a state: ``tables[d] z_d``, with the intercept ``z ~ N(0, covariance)``.

    ``effective`` has each term's edf, ``log_dets`` its part of the evidence's determinant.
    """

    tables: tuple[Array, ...]
    covariance: Array
    effective: tuple[float, ...]
    log_dets: tuple[float, ...]


def of_regression(
    linear: Regression,
    posterior: Posterior,
    integrated: Posterior | None = None,
    gains: Sequence[float] | None = None,
) -> Solution:
    """The posterior of a regression at the hyperparameters its tables were made with.

    ``integrated`` is the same with the hyperparameters' uncertainty, for the errors only; ``gains`` are the
    terms' log evidence gains, if they are known.
    """
    errors = posterior if integrated is None else integrated
    if gains is None:
        gains = selection.term_log_evidence_gains(linear.model.prior, posterior)
        for k, gain in linear.gains_outside(posterior).items():
            gains[k] = gain
    solution = Solution(
        means=tuple(linear.values(posterior)),
        tables=linear.tables,
        covariance=errors.covariance,
        intercept=linear.intercept(posterior),
        evidence=posterior.evidence,
        effective=linear.effective(posterior),
        log_evidence_gains=tuple(gains),
    )
    term = linear.problem.high_cardinality
    if term is None or errors.levels is None:
        return solution
    return _centred_levels(linear, term, solution, errors.levels)


def _centred_levels(
    linear: Regression, k: int, solution: Solution, levels: LevelPosterior
) -> Solution:
    """The solution with term ``k`` centred over the data; the intercept absorbs its mean.

    With ``l`` the mean of the coupling over the data, the new intercept's error is ``b + l' z``: all
    errors are ``L z`` with ``L = I + e l'``, ``e`` the intercept's unit vector.
    """
    mass = linear.problem.data_mass[k]
    scale = 1.0 / np.sqrt(linear.state.terms[k].precision[0])
    coupling = scale * levels.coupling
    mean_coupling = mass @ coupling
    change = np.eye(len(mean_coupling))
    change[-1] += mean_coupling
    means = list(solution.means)
    level = float(mass @ means[k])
    means[k] = means[k] - level
    coupling = np.linalg.solve(change.T, (coupling - mean_coupling).T).T
    return replace(
        solution,
        means=tuple(means),
        intercept=solution.intercept + level,
        covariance=change @ solution.covariance @ change.T,
        levels=LevelPosterior(means[k], scale**2 * levels.variance, coupling),
    )


class ExactCurvature:
    """The Gauss-Newton matrix in compressed coordinates: joint, or block-diagonal by terms."""

    factored: ClassVar[bool] = False

    def solution(self, problem: Problem, state: State, *, quick: bool = False) -> Solution:
        """The posterior of the tuned regression, which keeps the prior where there is no data."""
        linear = Regression.of(problem, state, unseen_precision=UNSEEN_PRECISION)
        posterior = linear.solve()
        given = replace(of_regression(linear, posterior), regression=(linear, posterior))
        if quick or not problem.joint:
            return given
        integrated, noise_df = uncertainty.integrate(linear.model, state.noise, posterior)
        solution = of_regression(linear, posterior, integrated, given.log_evidence_gains)
        return replace(solution, noise_df=noise_df, given=given, regression=given.regression)

    def functions(self, problem: Problem, state: State) -> Functions:
        """The posterior around trained networks."""
        linear = Regression.of(problem, state, unseen_precision=UNSEEN_PRECISION)
        posterior = linear.solve()
        covariance = posterior.covariance
        log_dets = tuple(
            -inverse_and_log_det(covariance[block, block])[1] for block in linear.model.prior.blocks
        )
        return Functions(linear.tables, covariance, linear.effective(posterior), log_dets)

    def determinant(self, problem: Problem, state: State) -> Determinant:
        """The determinant around trained networks, valid near their precisions."""
        # Compressed at a fraction of the noise, because precisions may fall.
        quieter = replace(state, noise=state.noise / _HEADROOM)
        model = Regression.of(problem, quieter).model
        made_at = np.concatenate([np.empty(0), *(np.log(term.precision) for term in state.terms)])
        return partial(_tangent_determinant, model, made_at, problem.joint)


def _tangent_determinant(
    model: LinearModel, made_at: Array, joint: bool, log_precision: Array, noise: float
) -> tuple[float, Array]:
    """The determinant in coordinates compressed at the log precisions ``made_at``."""
    prior, terms = model.prior.precision(made_at - log_precision), slice(0, model.intercepts.start)
    precision = model.gram[terms, terms] / noise
    prior.add_to(precision)
    covariance, log_det = block_inverse(precision, (terms,) if joint else model.prior.blocks)
    return log_det + prior.log_det_covariance, prior.effective(Dense(covariance))
