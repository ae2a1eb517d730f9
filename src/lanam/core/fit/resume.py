"""Restores the end of a fit from the fitted model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lanam.core.fit.joint import finer_options, joint_term
from lanam.core.fit.prepare import (
    OnSummary,
    Prepared,
    category_term,
    rows_of,
    summarise,
)
from lanam.core.fit.solvers import find_solver, make_problem
from lanam.core.fit.spatial import spatial_term
from lanam.core.inference.gauss_newton import refit_posterior
from lanam.core.inference.options import Options
from lanam.core.inference.problem import State, TermState
from lanam.core.inference.solver import Dropped, Solver, Stage
from lanam.core.likelihoods import Likelihood
from lanam.core.model.fitted import COORDINATE, FittedModel, FittedTerm
from lanam.core.rows.tables import Tables
from lanam.core.terms.knots import Categories, Grid, Levels
from lanam.core.terms.spatial import SpatialTerm
from lanam.core.terms.term import LevelTerm, OrderedTerm, SmoothTerm, Term


def resume(
    model: FittedModel,
    tables: Tables,
    likelihood: Likelihood,
    options: Options,
    on_summary: OnSummary | None = None,
) -> tuple[Prepared, Stage]:
    """The end of the fit of ``model`` on these rows, with its knots, terms and precisions."""
    categories = {
        t.features[0]: t.entries for t in model.terms if isinstance(t.entries, Categories)
    }
    n_levels = [
        len(categories[k].entry_of) if k in categories else -1 for k in range(tables.n_columns)
    ]
    solver = find_solver(options)
    summary, units = summarise(tables, likelihood, options, n_levels, on_summary)
    active = [term for term in model.terms if term.active]
    n_outputs = likelihood.n_outputs
    weight = summary.total_weight
    terms = tuple(_term(fitted, options, solver, n_outputs, weight) for fitted in active)
    rows = rows_of(tables, terms, units, summary, options.n_jobs)
    if model.missing_variance is not None:
        rows = rows.with_missing_noise(model.missing_variance / model.noise_variance)
    usable = {feature for t in model.terms if t.entries is not None for feature in t.features}
    problem = make_problem(terms, rows, units.likelihood, options, n_columns=len(usable))

    def outputs(values: Any) -> Any:
        """Values of several classes as those of the outputs."""
        return values if model.contrasts is None else values @ model.contrasts

    noisy = units.likelihood.noise_bounds is not None
    noise = model.noise_variance / units.scale**2 if noisy else units.likelihood.excess
    estimates = tuple(
        replace(
            TermState.at_zero(term, fitted.expansion, mass),
            precision=fitted.precision,
            values=outputs(fitted.mean / units.scale),
        )
        for term, fitted, mass in zip(terms, active, problem.data_mass, strict=True)
    )
    intercept = outputs((model.intercept - units.shift) / units.scale)
    evidence = units.standard_evidence(model.log_evidence)
    own = units.likelihood.with_parameters(model.parameters).in_unit(1.0 / units.scale)
    own = own.with_excess(units.likelihood.excess)
    state = replace(State(estimates, intercept, noise, evidence), likelihood=own)
    if not solver.trained:
        state = refit_posterior(problem, state)
    unused = {
        t.features[0]: t.status for t in model.terms if t.entries is None and t.status != COORDINATE
    }
    dropped = tuple(
        Dropped(term_of(t, options, weight), t.data_mass, t.evidence)
        for t in model.terms
        if not t.active and t.entries is not None
    )
    prepared = Prepared(units, (), rows, {}, categories, unused, summary, solver)
    return prepared, Stage(problem, state, dropped, model.stop_reason)


def _term(
    fitted: FittedTerm, options: Options, solver: Solver, n_outputs: int, weight: float
) -> Term:
    term = term_of(fitted, options, weight)
    if solver.trained and len(fitted.expansion) != n_outputs * len(term.group_index):
        raise ValueError(
            f'the model has terms without parameters that solver="{options.solver}" can train: set '
            "solver back to what it was, or fit again"
        )
    if isinstance(term, LevelTerm | OrderedTerm):
        return term
    same = term.architecture == fitted.architecture
    if not same or term.group_index.max() + 1 != len(fitted.precision):
        raise ValueError(
            "the networks were changed since the model was fitted: set hidden_sizes, "
            "pair_hidden_sizes, activation, init_scales and prior_groups back to what they were, or "
            "fit again"
        )
    return term


def term_of(fitted: FittedTerm, options: Options, weight: float) -> Term:
    """The term that was fitted to rows of this total weight, whether dropped or not."""
    entries = fitted.entries
    if isinstance(entries, Categories):
        return category_term(fitted.features[0], entries)
    if isinstance(entries, Levels):
        return LevelTerm(fitted.features, entries)
    if isinstance(entries, Grid) and fitted.kind == SpatialTerm.kind:
        return spatial_term(fitted.features, entries, fitted.data_mass, weight, options)
    if isinstance(entries, Grid):
        finer = finer_options(options)
        architecture = fitted.architecture
        was_refined = (
            architecture is not None
            and architecture.scales == finer.pair_init_scales != options.pair_init_scales
        )
        return joint_term(fitted.features, entries, finer if was_refined else options)
    assert entries is not None
    return SmoothTerm(fitted.features, entries, options.architecture(1), options.prior_groups)
