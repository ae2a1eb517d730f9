"""Solvers, curvatures and updates by their names in the options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lanam.core.inference.evidence import UPDATES
from lanam.core.inference.gauss_newton import GaussNewton
from lanam.core.inference.options import Options
from lanam.core.inference.posterior import ExactCurvature
from lanam.core.inference.problem import Problem
from lanam.core.inference.solver import Curvature, Solver
from lanam.core.likelihoods import Likelihood
from lanam.core.paper.adam import Adam
from lanam.core.paper.kron import KronCurvature
from lanam.core.rows.located import AnyRows
from lanam.core.terms.term import Term

SOLVERS: Mapping[str, type[GaussNewton] | type[Adam]] = {"gauss-newton": GaussNewton, "adam": Adam}
CURVATURES: Mapping[str, Curvature] = {"exact": ExactCurvature(), "kron": KronCurvature()}


def find_solver(options: Options) -> Solver:
    """The solver selected by the options."""
    return SOLVERS[options.solver](options, CURVATURES[options.curvature])


def make_problem(
    terms: Sequence[Term],
    rows: AnyRows,
    likelihood: Likelihood,
    options: Options,
    on_decision: Callable[[int], None] = lambda n_entries: None,
    n_columns: int | None = None,
) -> Problem:
    """The problem of these terms with the posterior and update of the options.

    ``n_columns`` are those among which terms are selected, by default the terms'.
    """
    joint, update = options.posterior == "joint", UPDATES[options.evidence_update]
    settings = joint, update, options.memory, on_decision, n_columns
    return Problem.of(terms, rows, likelihood, *settings)


def has_networks(options: Options) -> bool:
    """Whether every term has its own parameters: it is trained, or its curvature is factored."""
    return SOLVERS[options.solver].trained or CURVATURES[options.curvature].factored
