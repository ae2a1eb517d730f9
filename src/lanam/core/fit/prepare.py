"""Tables to what a fit works on: terms, rows at their positions, standard units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lanam.core.arrays import Intercept
from lanam.core.fit.solvers import CURVATURES, find_solver
from lanam.core.inference.options import Options
from lanam.core.inference.solver import Solver
from lanam.core.likelihoods import Likelihood
from lanam.core.model.fitted import CONSTANT, DUPLICATE, EMPTY
from lanam.core.rows.located import AnyRows, Rows, StreamedRows
from lanam.core.rows.summaries import Summary, Wanted, summarise_tables
from lanam.core.rows.tables import ArrayTables, Tables
from lanam.core.rows.units import Units
from lanam.core.terms.knots import (
    Categories,
    Entries,
    Levels,
    choose_categories,
    place_knots,
    place_levels,
)
from lanam.core.terms.term import LevelTerm, SmoothTerm, Term

#: Columns with at most this many distinct values have a level each: values that recur. Others have
#: bins, whose number matters little because their borders mean nothing.
_MAX_LEVELS = 1000
_N_BINS = 150

#: A likelihood that is no quadratic is fitted to so many rows first, if there are several times as many.
SAMPLE_ROWS = 1 << 15
#: How noisy rows are is learned from so many: the size of the noise needs no more.
NOISE_ROWS = 1 << 13

#: Rows that count more often than this on average (a bootstrap, weights that are counts) are copies: a
#: value that recurs in copies only must not have an effect of its own, which would be their noise.
_REPEATED = 1.2

#: The dispersion of counts cannot be told from an effect per row, so values of counts' columns must recur
#: this often on average to have effects of their own.
_RECURRING = 5.0

#: More levels than this are integrated out of the regression; that can be done for one column only, and
#: the others' are at most so many (fewer where there are several classes): their rarest are taken
#: together.
_WIDE = 1000


#: Shown the summary of all rows, before anything else is made of it.
Look: TypeAlias = Callable[[Summary], object]


def is_wide(entries: Entries) -> bool:
    """Whether a column's levels are too many to be coordinates."""
    return isinstance(entries, Categories) and entries.n_own > _WIDE


@dataclass(frozen=True)
class Prepared:
    """Everything that is the same for all restarts.

    ``unused`` maps columns without a term to why; ``levels`` are the levels of numeric columns, and
    ``categories`` those of the others.
    """

    units: Units
    terms: tuple[Term, ...]
    rows: AnyRows
    levels: dict[int, Levels]
    categories: dict[int, Categories]
    unused: dict[int, str]
    summary: Summary
    solver: Solver


def prepare(
    tables: Tables,
    likelihood: Likelihood,
    options: Options,
    n_levels: Sequence[int] = (),
    look: Look | None = None,
) -> Prepared:
    """Place every column's entries, and find the rows among them.

    ``n_levels`` has the number of levels of every column of categories, and -1 for numeric ones; none
    is given where all are numeric. Whoever wants to ``look`` at the summary of the rows is shown it.
    """
    summary = summarise_tables(tables, n_levels, wanted(likelihood), options.n_jobs)
    if look is not None:
        look(summary)
    units = Units.of(summary.spread, likelihood)
    architecture = options.architecture(1)
    terms: list[Term] = []
    levels, categories, unused = {}, {}, {}
    widest = None
    if n_levels and likelihood.n_outputs == 1 and not CURVATURES[options.curvature].factored:
        # The levels of one column may be integrated out: of that with most of them.
        widest = int(np.argmax(n_levels))
    repeated = summary.total_weight > _REPEATED * summary.n_distinct
    for feature, column in enumerate(summary.columns):
        if feature in summary.twins:
            unused[feature] = DUPLICATE
            continue
        distribution = column.distribution
        knots = place_knots(distribution, options.max_knots)
        if knots is None:
            unused[feature] = CONSTANT if len(distribution.values) else EMPTY
        elif n_levels and n_levels[feature] >= 0:
            most = None if feature == widest else _WIDE // likelihood.n_outputs
            own = choose_categories(column.mass, column.arrival, most)
            categories[feature] = own
            terms.append(LevelTerm((feature,), own, is_wide(own)))
        else:
            terms.append(SmoothTerm((feature,), knots, architecture, options.prior_groups))
            few = 0.5 * summary.n_distinct if repeated else np.inf
            if likelihood.noise_bounds is not None and not likelihood.quadratic:
                few = summary.n_rows / _RECURRING
            if column.n_values <= few:
                levels[feature] = place_levels(distribution, _MAX_LEVELS, _N_BINS)
    rows = rows_of(tables, terms, units, summary, options.n_jobs)
    if options.interactions in (0, ()):  # as large as the columns, and only pairs would ask again
        summary = summary.without_distributions()
    solver = find_solver(options)
    return Prepared(units, tuple(terms), rows, levels, categories, unused, summary, solver)


def wanted(likelihood: Likelihood) -> Wanted:
    """What of the response must be known, and a sample of rows to go over again and again."""
    return Wanted(likelihood.n_classes or -1, NOISE_ROWS if likelihood.quadratic else SAMPLE_ROWS)


def rows_of(
    tables: Tables, terms: Sequence[Term], units: Units, summary: Summary, n_threads: int = 1
) -> AnyRows:
    """All rows, found among the entries of the terms: at once if they are at hand."""
    if isinstance(tables, ArrayTables):
        return Rows.of(tables.table, terms, units, n_threads, tables.log)
    return StreamedRows(
        tables,
        tuple(terms),
        units,
        summary.total_weight,
        summary.n_rows,
        summary.gaps,
        _start(summary, units),
    )


def _start(summary: Summary, units: Units) -> Intercept:
    """The intercept of the best constant model."""
    if n_classes := units.likelihood.n_classes:
        return units.likelihood.start(np.arange(n_classes, dtype=np.float64), summary.classes)
    mean = np.array([summary.spread.mean * summary.spread.magnitude])
    return units.likelihood.start(units.standard(mean), np.ones(1))
