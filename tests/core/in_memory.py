"""The core's functions for rows in memory, from arrays."""

from functools import partial

import numpy as np

from lanam.core.fit import fitting, interactions, joint, prepare
from lanam.core.fit import resume as resuming
from lanam.core.rows import cross_tables, quadratics, statistics
from lanam.core.rows.statistics import Around
from lanam.core.rows.summaries import summarise_tables
from lanam.core.rows.tables import ArrayTables, EncodedRows, Spread, Units
from lanam.core.terms.knots import NO_CATEGORIES, choose_categories, level_counts
from tests.likelihoods import LIKELIHOODS, find_likelihood


def tables(columns, y=None, weight=None):
    """The core's table of arrays."""
    n_rows = len(columns)
    y = np.zeros(n_rows) if y is None else y
    return ArrayTables(EncodedRows(columns, y, np.ones(n_rows) if weight is None else weight))


def levels_of(columns, categories):
    """The number of categories of each column, -1 for numeric ones."""
    return [len(categories[k].entry_of) if k in categories else -1 for k in range(columns.shape[1])]


def summary(columns, weight=None, categories=NO_CATEGORIES):
    """The summary from which terms are placed."""
    return summarise_tables(tables(columns, weight=weight), levels_of(columns, categories))


def fit(columns, y, weight, likelihood, options, seed, n_levels=()):
    """``fitting.fit``."""
    known = find_likelihood(likelihood, int(y.max()) + 1)
    return fitting.fit(tables(columns, y, weight), known, options, seed, n_levels)


def _of(model):
    return find_likelihood(model.likelihood, model.n_outputs + 1)


def fit_on(model, columns, y, weight, options, seed):
    """``fitting.fit_on``."""
    return fitting.fit_on(model, tables(columns, y, weight), _of(model), options, seed)


def prepared(columns, y, weight, likelihood, options, n_levels=()):
    """``prepare.prepare``."""
    return prepare.prepare(tables(columns, y, weight), likelihood, options, n_levels)


def resume(model, columns, y, weight, options):
    """``resume.resume``."""
    return resuming.resume(model, tables(columns, y, weight), _of(model), options)


def place_categories(column, weight, n_levels, max_own=None):
    """Entries for a column of codes below ``n_levels``."""
    return choose_categories(level_counts(column, weight, n_levels), max_own)


def entry_weights(rows):
    """Weight at every table entry, one vector per term."""
    null = (LIKELIHOODS["gaussian"], 0.0)
    return rows.total(partial(statistics.weigh_entries, null))[:-1]


def table_quadratic(rows, likelihood, values, intercept):
    """The expansion around these values in cross-tables of the entries that rows read."""
    return cross_tables.summed(rows, Around(likelihood, tuple(values), intercept))[0]


def row_quadratic(rows, likelihood, values, intercept):
    """The same as rows."""
    return quadratics.row_quadratic(rows, Around(likelihood, tuple(values), intercept))


def units(y, weight, likelihood):
    """Standard units of a response."""
    return Units.of(Spread.of(y, weight), likelihood)


def place_grids(columns, weight, own, categories=NO_CATEGORIES):
    """``joint.place_grids``."""
    return joint.place_grids(summary(columns, weight, categories), own, categories)


def joint_terms(columns, weight, own, options, categories=NO_CATEGORIES):
    """``joint.joint_terms``."""
    return joint.joint_terms(summary(columns, weight, categories), own, options, categories)


def evidence_scores(columns, weight, slope, curvature, own, categories=NO_CATEGORIES):
    """``interactions.evidence_scores`` of rows with these slopes and curvatures."""
    binned = interactions.bin_columns(summary(columns, weight, categories), own, categories)
    cells = {feature: (one.entries, one.number) for feature, one in binned.items()}
    sums = interactions.cell_sums(columns, slope, curvature, cells, own)
    return interactions.evidence_scores(binned, own, sums)


def score(kind, problem, state, columns, own, categories=NO_CATEGORIES):
    """``interactions.score``."""
    known = summary(columns, problem.rows.weight, categories)
    return interactions.score(kind, problem, state, known, own, categories)
