"""The posterior a fit ends with, whatever found it: means, tables and a covariance (method.md 3).

And the exact curvature that it is made of by default: the Gauss-Newton matrix ``H``, at unit noise, of all
terms together or of each term alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from lanam.core.arrays import Array, Intercept, Rng
from lanam.core.inference import selection
from lanam.core.inference.evidence import LevelPosterior, LinearModel, Posterior
from lanam.core.inference.prior import block_inverse, inverse_and_log_det
from lanam.core.inference.problem import UNSEEN_PRECISION, Problem, Regression, State

#: Determinants are made for precisions that may still fall by this factor.
_HEADROOM = 20.0


#: The evidence's determinant at networks that stay, by log precisions and the noise variance:
#: ``log |H / noise + Lambda| - log |Lambda|``, and every group's effective parameters.
Determinant = Callable[[Array, float], tuple[float, Array]]


@dataclass(frozen=True)
class Solution:
    """All terms' functions: ``means[d] + tables[d] z_d`` with ``z`` and the intercept ``N(0, covariance)``.

    In the core's own units (a Gaussian response has mean 0 and variance 1); one item a term of the
    problem. ``worth`` is by how much the log evidence would fall without the term. The levels of a wide
    term have no coordinates of their own but what ``levels`` says.
    """

    means: tuple[Array, ...]
    tables: tuple[Array, ...]
    covariance: Array
    intercept: Intercept
    evidence: float
    effective: tuple[float, ...]
    worth: tuple[float, ...]
    levels: WideSolution | None = None


@dataclass(frozen=True)
class Functions:
    """All terms' functions around a state: ``tables[d] z_d``, with the intercept ``z ~ N(0, covariance)``.

    ``effective`` are every term's effective parameters, ``log_dets`` what its determinant costs.
    """

    tables: tuple[Array, ...]
    covariance: Array
    effective: tuple[float, ...]
    log_dets: tuple[float, ...]


@dataclass(frozen=True)
class WideSolution:
    """A wide term's function, centred: ``means[d] + coupling z + sqrt(own) e`` with independent ``e``."""

    term: int
    coupling: Array
    own: Array


def of_regression(linear: Regression, posterior: Posterior) -> Solution:
    """A regression's posterior at the hyperparameters its tables were made with, as a solution."""
    worth = selection.term_worth(linear.model.prior, posterior)
    for k, own in linear.worth_outside(posterior).items():
        worth[k] = own
    solution = Solution(
        means=tuple(linear.values(posterior)),
        tables=linear.tables,
        covariance=posterior.covariance,
        intercept=linear.intercept(posterior),
        evidence=posterior.evidence,
        effective=linear.effective(posterior),
        worth=tuple(worth),
    )
    wide = linear.problem.wide
    if wide is None or posterior.levels is None:
        return solution
    return _centred_levels(linear, wide, solution, posterior.levels)


def _centred_levels(
    linear: Regression, wide: int, solution: Solution, levels: LevelPosterior
) -> Solution:
    """The solution with a wide term's function centred over the data; the intercept takes its mean.

    With ``l`` the mean of the coupling over the data, the new intercept's error is ``b + l' z``: all
    errors are ``L z`` with ``L = I + e l'``, ``e`` the intercept's unit vector.
    """
    share = linear.problem.shares[wide]
    scale = 1.0 / np.sqrt(linear.state.terms[wide].precision[0])
    coupling = scale * levels.coupling
    mean_coupling = share @ coupling
    change = np.eye(len(mean_coupling))
    change[-1] += mean_coupling
    level = float(share @ solution.means[wide])
    means = list(solution.means)
    means[wide] = means[wide] - level
    return replace(
        solution,
        means=tuple(means),
        intercept=solution.intercept + level,
        covariance=change @ solution.covariance @ change.T,
        levels=WideSolution(
            wide, np.linalg.solve(change.T, (coupling - mean_coupling).T).T, scale**2 * levels.own
        ),
    )


class ExactCurvature:
    """The Gauss-Newton matrix itself, in compressed coordinates: joint, or in blocks of terms."""

    factored: ClassVar[bool] = False

    def solution(self, problem: Problem, state: State, rng: Rng) -> Solution:
        """The posterior of the tuned regression, with the prior kept where there is no data."""
        linear = Regression.of(problem, state, rng, UNSEEN_PRECISION)
        return of_regression(linear, linear.solve())

    def functions(self, problem: Problem, state: State, rng: Rng) -> Functions:
        """The posterior around networks that were trained."""
        linear = Regression.of(problem, state, rng, UNSEEN_PRECISION, fine=True)
        found = linear.solve()
        log_dets = [
            -inverse_and_log_det(found.covariance[block, block])[1]
            for block in linear.model.prior.blocks
        ]
        return Functions(linear.tables, found.covariance, linear.effective(found), tuple(log_dets))

    def determinant(self, problem: Problem, state: State, rng: Rng) -> Determinant:
        """The determinant around networks that were trained, to be asked near their precisions."""
        # Directions count as visible at a fraction of the noise, because precisions may fall.
        quieter = replace(state, noise=state.noise / _HEADROOM)
        model = Regression.of(problem, quieter, rng, fine=True).model
        made_at = np.concatenate([np.empty(0), *(np.log(known.precision) for known in state.terms)])
        return partial(_tangent_determinant, model, made_at, problem.joint)


def _tangent_determinant(
    model: LinearModel, made_at: Array, joint: bool, log_precision: Array, noise: float
) -> tuple[float, Array]:
    """In coordinates compressed at the log precisions ``made_at``."""
    prior, terms = model.prior.precision(made_at - log_precision), slice(0, model.intercepts.start)
    precision = model.gram[terms, terms] / noise
    prior.add_to(precision)
    covariance, log_det = block_inverse(precision, (terms,) if joint else model.prior.blocks)
    effective, _ = prior.group_sums(np.zeros(len(precision)), covariance)
    return log_det + prior.log_det_covariance, effective
