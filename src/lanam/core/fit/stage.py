"""Where a stage of a fit ends, and how to stand there again with nothing but the fitted model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lanam.core.fit.pairs import pair_term
from lanam.core.fit.prepare import Look, Prepared, is_wide, rows_of, wanted
from lanam.core.inference import gauss_newton
from lanam.core.inference.gauss_newton import Problem, State
from lanam.core.inference.options import Options
from lanam.core.likelihoods import Likelihood
from lanam.core.model.fitted import FittedModel, FittedTerm
from lanam.core.rows.summaries import summarise_tables
from lanam.core.rows.tables import Tables
from lanam.core.rows.units import Units
from lanam.core.terms.knots import Categories, Grid, Levels
from lanam.core.terms.term import LevelTerm, SmoothTerm, Term


@dataclass(frozen=True)
class Stage:
    """What was fitted, the terms that went on the way, and why it ended."""

    problem: Problem
    state: State
    off: tuple[FittedTerm, ...]
    reason: str

    @property
    def width(self) -> int:
        """How many coordinates the terms have, in all outputs."""
        own = sum(
            len(known.values) if known.basis is None else known.basis.shape[1]
            for known in self.state.terms
        )
        return own * self.problem.likelihood.n_outputs


def resume(
    model: FittedModel,
    tables: Tables,
    likelihood: Likelihood,
    options: Options,
    look: Look | None = None,
) -> tuple[Prepared, Stage]:
    """The end of the fit that made ``model``, on these rows: its own knots, terms and precisions.

    Raises
    ------
    ValueError
        If ``options`` describe other networks than those of the model.
    """
    categories = {
        t.features[0]: t.entries for t in model.terms if isinstance(t.entries, Categories)
    }
    n_levels = [
        len(categories[k].entry_of) if k in categories else -1 for k in range(tables.n_columns)
    ]
    summary = summarise_tables(tables, n_levels, wanted(likelihood), options.n_jobs)
    if look is not None:
        look(summary)
    units = Units.of(summary.spread, likelihood)
    active = [term for term in model.terms if term.active]
    terms = tuple(_term(fitted, options) for fitted in active)
    rows = rows_of(tables, terms, units, summary, options.n_jobs)
    if model.gap_variance is not None:
        rows = rows.weighed_by(model.gap_variance / model.noise_variance)
    problem = gauss_newton.make_problem(
        terms,
        rows,
        units.likelihood,
        options.posterior == "joint",
        options.evidence_update,
        options.memory,
    )

    def outputs(values: Any) -> Any:
        """What several classes have in terms of the outputs behind them."""
        return values if model.contrasts is None else values @ model.contrasts

    noise = model.noise_variance / units.scale**2 or 1.0
    known = tuple(
        replace(
            gauss_newton.start_at(term, fitted.expansion, share),
            precision=fitted.precision,
            values=outputs(fitted.mean / units.scale),
        )
        for term, fitted, share in zip(terms, active, problem.shares, strict=True)
    )
    intercept = outputs((model.intercept - units.shift) / units.scale)
    evidence = units.standard_evidence(model.log_evidence)
    state = State(known, intercept, noise, evidence)
    if options.solver != "adam":
        state = gauss_newton.settle(problem, state, np.random.default_rng(0))
    unused = {t.features[0]: t.status for t in model.terms if t.entries is None}
    off = tuple(t for t in model.terms if not t.active and t.entries is not None)
    prepared = Prepared(units, (), rows, {}, categories, unused, summary)
    return prepared, Stage(problem, state, off, model.stop_reason)


def _term(fitted: FittedTerm, options: Options) -> Term:
    term = term_of(fitted, options)
    if isinstance(term, LevelTerm):
        if options.solver == "adam":
            raise ValueError(
                'the model has level effects, which solver="adam" cannot train: set solver back to '
                "what it was, or fit again"
            )
        return term
    same = term.architecture == fitted.architecture
    if not same or term.group_index.max() + 1 != len(fitted.precision):
        raise ValueError(
            "the networks were changed since the model was fitted: set hidden_sizes, "
            "pair_hidden_sizes, activation, init_scales and prior_groups back to what they were, or "
            "fit again"
        )
    return term


def term_of(fitted: FittedTerm, options: Options) -> Term:
    """What a fitted term was before it was fitted, switched off or not."""
    entries = fitted.entries
    if isinstance(entries, Levels | Categories):
        return LevelTerm(fitted.features, entries, is_wide(entries))
    if isinstance(entries, Grid):
        return pair_term(fitted.features, entries, options)
    assert entries is not None
    return SmoothTerm(fitted.features, entries, options.architecture(1), options.prior_groups)
