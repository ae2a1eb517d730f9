"""Tables to the inputs of a fit: terms, rows at their positions, standard units."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from lanam.core.arrays import Intercept
from lanam.core.blas import limited_threads
from lanam.core.fit.joint import grouped_terms
from lanam.core.fit.solvers import find_solver, has_networks
from lanam.core.fit.spatial import spatial_terms
from lanam.core.inference.options import Options
from lanam.core.inference.own_parameters import fit_null
from lanam.core.inference.problem import Problem, State
from lanam.core.inference.solver import Solver
from lanam.core.likelihoods import Likelihood
from lanam.core.model.fitted import CONSTANT, DUPLICATE, EMPTY
from lanam.core.rows.follow_up import FollowUpTables
from lanam.core.rows.located import AnyRows, Rows, StreamedRows
from lanam.core.rows.plan import Plan
from lanam.core.rows.quadratics import tables_pay
from lanam.core.rows.statistics import fit_intercept_only
from lanam.core.rows.summaries import DataSummary, summarise_tables
from lanam.core.rows.tables import ArrayTables, Tables, Units
from lanam.core.terms.knots import (
    SMOOTH,
    Categories,
    Distribution,
    Entries,
    Knots,
    Levels,
    choose_categories,
    place_circle,
    place_knots,
    place_levels,
    place_line,
)
from lanam.core.terms.term import LevelTerm, OrderedTerm, SmoothTerm, Term

#: Columns with at most this many distinct values get an effect per value: values that recur. Others get
#: bins, whose number matters little because their borders mean nothing.
_MAX_LEVELS = 1000
_N_BINS = 150

#: Rows to which a non-quadratic likelihood is fitted first, if there are several times as many.
SAMPLE_ROWS = 1 << 15
#: Rows from which heteroscedastic noise and the residual distribution are estimated.
NOISE_ROWS = 1 << 13

#: Rows with a larger mean weight (a bootstrap, frequency weights) are copies: a value that recurs in copies
#: only must not get an effect of its own, which would be their noise.
_REPEATED = 1.2

#: The dispersion of counts or amounts is not identified beside an effect per row, so values must recur this
#: often on average to get effects of their own.
_RECURRING = 5.0
#: And of amounts, whose tails are often heavier than the family's.
_RECURRING_AMOUNTS = 50.0

#: More categories than this are integrated out of the regression, which is possible for one column only.
#: The rarest of other columns are pooled (earlier with several classes).
_WIDE = 1000

#: About the largest number of coordinates of a numeric column.
COLUMN_WIDTH = 10

#: With fewer coordinates than this one BLAS thread is faster than several.
_THREADED_WIDTH = 1000


#: Called with the summary of all rows before the fit goes on.
OnSummary: TypeAlias = Callable[[DataSummary], object]


@dataclass(frozen=True)
class Prepared:
    """The inputs that all restarts share.

    ``unused`` maps columns without a term to the reason; ``levels`` are the values of numeric columns, and
    ``categories`` those of the others.
    """

    units: Units
    terms: tuple[Term, ...]
    rows: AnyRows
    levels: dict[int, Levels]
    categories: dict[int, Categories]
    unused: dict[int, str]
    summary: DataSummary
    solver: Solver


@dataclass(frozen=True)
class Run:
    """A fit in progress: its inputs and its history, the only mutable state."""

    prepared: Prepared
    options: Options
    history: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def announce(self, stage: str, n_terms: int, n_entries: int) -> None:
        """Report the plan of a stage."""
        if self.options.on_plan is not None:
            rows, memory = self.prepared.rows, self.options.memory
            in_tables = tables_pay(self.prepared.units.likelihood, len(rows), n_entries, memory)
            sizes = (len(rows), rows.n_columns, n_terms, n_entries)
            work = self._work() if stage == "columns" else ()
            self.options.on_plan(Plan(stage, *sizes, memory, in_tables, *work))

    def _work(self) -> tuple[int, int, int]:
        """Numbers of outputs, of all columns' coordinates and of pairs, about."""
        n_outputs, terms = self.prepared.units.likelihood.n_outputs, self.prepared.terms
        width = sum(_width(term, self.prepared.summary) for term in terms)
        n_pairs = len(terms) * (len(terms) - 1) // 2
        if not self.options.searches_interactions:
            n_pairs = 0
        return n_outputs, width * n_outputs, n_pairs

    def sample_in(self, problem: Problem) -> Rows:
        """The sampled rows located in a problem's terms, with its precisions."""
        sample = self.prepared.summary.sample
        assert sample is not None, "there is a sample unless there are no rows"
        rows = Rows.of(sample, problem.terms, self.prepared.units)
        noise = problem.rows.missing_noise, problem.rows.gross_errors
        return rows if all(part is None for part in noise) else rows.with_noise(*noise)

    def is_out_of_time(self) -> bool:
        """Whether the time budget is spent."""
        budget = self.options.time_budget
        return budget is not None and time.perf_counter() - self.began > budget

    def record(self, stage: str, state: State) -> None:
        """Append an iteration to the history, in the response's units, and report it.

        Where the time budget ends the search for interactions, training is interrupted.
        """
        units = self.prepared.units
        noise_std = float(np.sqrt(state.noise)) * units.scale
        entry = {
            "iteration": len(self.history) + 1,
            "stage": stage,
            "log_evidence": units.log_evidence(state.evidence),
            "noise_std": noise_std if units.likelihood.quadratic else None,
            "n_active": len(state.terms),
            "effective_parameters": state.n_effective,
            "seconds": time.perf_counter() - self.began,
        }
        self.history.append(entry)
        self._report(entry)
        if stage in ("pairs", "triples") and self.is_out_of_time():
            raise KeyboardInterrupt

    def end(self, log_evidence: float, noise_std: float) -> tuple[dict[str, Any], ...]:
        """The history, whose last record is that of the fitted model; reported once more."""
        if not self.history:
            return ()
        *before, last = self.history
        known = last["noise_std"] is not None
        last = {**last, "log_evidence": log_evidence, "noise_std": noise_std if known else None}
        with suppress(KeyboardInterrupt):  # the model is there
            self._report(last)
        return *before, last

    def _report(self, entry: dict[str, Any]) -> None:
        if self.options.on_iteration is not None:
            self.options.on_iteration(entry)


def _width(term: Term, summary: DataSummary) -> int:
    """The number of coordinates of a column's term, about."""
    if isinstance(term, LevelTerm):
        return 0 if term.high_cardinality else len(term.entries)
    return min(int(summary.columns[term.features[0]].n_values), COLUMN_WIDTH)


def threads(width: int, n_jobs: int) -> AbstractContextManager[Any]:
    """BLAS threads for matrices of a width: one where they are small."""
    return limited_threads(1 if width < _THREADED_WIDTH else n_jobs)


def summarise(
    tables: Tables,
    likelihood: Likelihood,
    options: Options,
    n_levels: Sequence[int],
    on_summary: OnSummary | None = None,
) -> tuple[DataSummary, Units]:
    """The summary of all rows with a sample of them, and the units they are fitted in.

    The units' likelihood has the own parameters of the best constant model of the sample.
    """
    n_sample = NOISE_ROWS if likelihood.quadratic else SAMPLE_ROWS
    if isinstance(tables, FollowUpTables):
        summary = tables.summarise(n_levels, n_sample, options.n_jobs)
    else:
        summary = summarise_tables(tables, n_levels, likelihood.n_classes, n_sample, options.n_jobs)
    if on_summary is not None:
        on_summary(summary)
    units = Units.of(summary.spread, likelihood)
    if summary.sample is not None:
        alone = Rows.of(summary.sample, (), units)
        units = replace(units, likelihood=fit_null(alone, likelihood))
    return summary, units


def prepare(
    tables: Tables,
    likelihood: Likelihood,
    options: Options,
    n_levels: Sequence[int] = (),
    on_summary: OnSummary | None = None,
) -> Prepared:
    """Place the entries of each column's term, and locate the rows among them.

    ``n_levels`` has each column's number of categories, -1 for numeric ones; empty if all are numeric.
    """
    summary, units = summarise(tables, likelihood, options, n_levels, on_summary)
    architecture, known = options.architecture(1), options.knowledge
    terms: list[Term] = []
    levels, categories, unused = {}, {}, {}
    surfaces = spatial_terms(summary, options)
    coordinates = {feature for term in surfaces for feature in term.features}
    widest = None
    if n_levels and likelihood.n_outputs == 1 and not has_networks(options):
        # The categories of one column can be integrated out: that with most of them.
        free = [-1 if k in known.ordered else n for k, n in enumerate(n_levels)]
        widest = int(np.argmax(free))
    repeated = summary.total_weight > _REPEATED * summary.n_distinct
    for feature, column in enumerate(summary.columns):
        if feature in summary.duplicates:
            unused[feature] = DUPLICATE
            continue
        if feature in coordinates:
            continue
        distribution = column.distribution
        knots = column.knots or _place(feature, distribution, options)
        if knots is None:
            unused[feature] = CONSTANT if len(distribution.values) else EMPTY
        elif n_levels and n_levels[feature] >= 0:
            most = None if feature == widest else _WIDE // likelihood.n_outputs
            entries = choose_categories(column.mass, most, ordered=feature in known.ordered)
            categories[feature] = entries
            terms.append(category_term(feature, entries))
        else:
            terms.append(SmoothTerm((feature,), knots, architecture, options.prior_groups))
            few = 0.5 * summary.n_distinct if repeated else np.inf
            dispersed = likelihood.noise_bounds is not None or bool(likelihood.parameters)
            if dispersed and not likelihood.quadratic:
                heavy = likelihood.with_variance(1.0) is not None
                few = summary.n_rows / (_RECURRING_AMOUNTS if heavy else _RECURRING)
            # A value that differs from its neighbours is no part of a line, nor of a cycle, nor of a curve
            # that only rises.
            smooth = knots.course != SMOOTH or feature in known.constrained
            if column.n_values <= few and not smooth:
                levels[feature] = place_levels(distribution, _MAX_LEVELS, _N_BINS)
    terms += [*surfaces, *grouped_terms(summary, options, categories, unused)]
    rows = rows_of(tables, terms, units, summary, options.n_jobs)
    if not options.searches_interactions:  # as large as the columns, and only pairs use them again
        summary = summary.without_distributions()
    solver = find_solver(options)
    return Prepared(units, tuple(terms), rows, levels, categories, unused, summary, solver)


def _place(feature: int, distribution: Distribution, options: Options) -> Knots | None:
    """The knots of a column's term; None for constant columns."""
    known = options.knowledge
    if feature in known.periods:
        return place_circle(distribution, known.periods[feature], options.max_knots)
    if feature in known.linear:
        return place_line(distribution)
    return place_knots(distribution, options.max_knots)


def category_term(feature: int, entries: Categories) -> LevelTerm | OrderedTerm:
    """The term of a column of categories."""
    if entries.ordered:
        return OrderedTerm((feature,), entries)
    return LevelTerm((feature,), entries, has_high_cardinality(entries))


def rows_of(
    tables: Tables, terms: Sequence[Term], units: Units, summary: DataSummary, n_threads: int = 1
) -> AnyRows:
    """All rows located among the terms' entries, at once if they are in memory."""
    if isinstance(tables, ArrayTables):
        return Rows.of(tables.table, terms, units, n_threads, tables.log)
    n_rows = tables.n_rows if isinstance(tables, FollowUpTables) else summary.n_rows
    weight = summary.total_weight
    start = _start(summary, units)
    return StreamedRows(tables, tuple(terms), units, weight, n_rows, summary.missing_columns, start)


def _start(summary: DataSummary, units: Units) -> Intercept:
    """The intercept of the best constant model: of the sample, where moments do not tell."""
    sample = summary.sample
    if sample is not None and (sample.offset is not None or units.likelihood.parameters):
        return fit_intercept_only(Rows.of(sample, (), units), units.likelihood)
    if n_classes := units.likelihood.n_classes:
        return units.likelihood.fit_intercept_only(
            np.arange(n_classes, dtype=np.float64), summary.classes
        )
    mean = np.array([summary.spread.mean * summary.spread.magnitude])
    return units.likelihood.fit_intercept_only(units.standard(mean), np.ones(1))


def has_high_cardinality(entries: Entries) -> bool:
    """Whether a column has too many categories for coordinates of their own."""
    return isinstance(entries, Categories) and entries.n_own > _WIDE and not entries.ordered
