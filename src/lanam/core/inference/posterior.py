"""The posterior a fit ends with, whatever found it: means, tables and a covariance (method.md 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lanam.core.arrays import Array, Intercept
from lanam.core.inference import gauss_newton, selection
from lanam.core.inference.evidence import LevelPosterior, Posterior
from lanam.core.inference.gauss_newton import Problem, Regression, State


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
    noise: float
    evidence: float
    effective: tuple[float, ...]
    worth: tuple[float, ...]
    precisions: tuple[Array, ...]
    levels: WideSolution | None = None


@dataclass(frozen=True)
class WideSolution:
    """A wide term's function, centred: ``means[d] + coupling z + sqrt(own) e`` with independent ``e``."""

    term: int
    coupling: Array
    own: Array


def exact(problem: Problem, state: State, rng: np.random.Generator) -> Solution:
    """The posterior at a state's hyperparameters, with the prior kept where there is no data."""
    linear = gauss_newton.regression(problem, state, rng, gauss_newton.UNSEEN_PRECISION)
    return of_regression(problem, state, linear, gauss_newton.solve_as_made(problem, state, linear))


def of_regression(
    problem: Problem, state: State, linear: Regression, posterior: Posterior
) -> Solution:
    """A regression's posterior at the hyperparameters its tables were made with, as a solution."""
    prior = linear.model.prior
    worth = selection.term_worth(prior, posterior)
    for k, own in gauss_newton.worth_outside(problem, state, linear, posterior).items():
        worth[k] = own
    solution = Solution(
        means=tuple(gauss_newton.values_of(problem, state, linear, posterior)),
        tables=tuple(part.table for part in linear.compressed),
        covariance=posterior.covariance,
        intercept=gauss_newton.intercept_of(posterior.mean, problem.likelihood.n_outputs),
        noise=state.noise,
        evidence=posterior.evidence,
        effective=tuple(float(posterior.effective[groups].sum()) for groups in prior.groups),
        worth=tuple(worth),
        precisions=tuple(known.precision for known in state.terms),
    )
    if problem.wide is None or posterior.levels is None:
        return solution
    return _centred_levels(problem, problem.wide, solution, posterior.levels)


def _centred_levels(
    problem: Problem, wide: int, solution: Solution, levels: LevelPosterior
) -> Solution:
    """The solution with a wide term's function centred over the data; the intercept takes its mean.

    With ``l`` the mean of the coupling over the data, the new intercept's error is ``b + l' z``: all
    errors are ``L z`` with ``L = I + e l'``, ``e`` the intercept's unit vector.
    """
    share = problem.shares[wide]
    scale = 1.0 / np.sqrt(solution.precisions[wide][0])
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
