"""The posterior a fit ends with, whatever found it: means, tables and a covariance (method.md 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanam.core import gauss_newton, selection
from lanam.core.arrays import Array
from lanam.core.evidence import Posterior
from lanam.core.gauss_newton import Problem, Regression, State
from lanam.core.statistics import Intercept, evaluate


@dataclass(frozen=True)
class Solution:
    """All terms' functions: ``means[d] + tables[d] z_d`` with ``z`` and the intercept ``N(0, covariance)``.

    In the core's own units (a Gaussian response has mean 0 and variance 1); one item a term of the
    problem. ``worth`` is by how much the log evidence would fall without the term.
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


def exact(problem: Problem, state: State, rng: np.random.Generator) -> Solution:
    """The posterior at a state's hyperparameters, with the prior kept where there is no data."""
    linear = gauss_newton.regression(problem, state, rng, gauss_newton.UNSEEN_PRECISION)
    found = gauss_newton.solve_as_made(problem, state, linear)
    return of_regression(state, linear, found, problem.likelihood.n_outputs)


def of_regression(
    state: State, linear: Regression, posterior: Posterior, n_outputs: int = 1
) -> Solution:
    """A regression's posterior at the hyperparameters its tables were made with, as a solution."""
    prior = linear.model.prior
    return Solution(
        means=tuple(
            evaluate(part.table, posterior.mean[block], n_outputs)
            for part, block in zip(linear.compressed, prior.blocks, strict=True)
        ),
        tables=tuple(part.table for part in linear.compressed),
        covariance=posterior.covariance,
        intercept=gauss_newton.intercept_of(posterior.mean, n_outputs),
        noise=state.noise,
        evidence=posterior.evidence,
        effective=tuple(float(posterior.effective[groups].sum()) for groups in prior.groups),
        worth=tuple(selection.term_worth(prior, posterior)),
        precisions=tuple(known.precision for known in state.terms),
    )
