"""Columns and a response to what a fit works on: terms, rows at their positions, standard units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lanam.core.arrays import Array
from lanam.core.knots import (
    Categories,
    Entries,
    Levels,
    locate,
    place_categories,
    place_knots,
    place_levels,
    power_of_two_scale,
    summarise,
)
from lanam.core.likelihoods import Likelihood
from lanam.core.model import CONSTANT, DUPLICATE, EMPTY
from lanam.core.options import Options
from lanam.core.statistics import Rows
from lanam.core.terms import LevelTerm, SmoothTerm, Term

#: Columns with at most this many distinct values have a level each: values that recur. Others have
#: bins, whose number matters little because their borders mean nothing.
_MAX_LEVELS = 1000
_N_BINS = 150

#: What stands for a missing value when rows are compared: a number that columns do not have.
_MISSING_MARK = -0.7390851332151607

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


def is_wide(entries: Entries) -> bool:
    """Whether a column's levels are too many to be coordinates."""
    return isinstance(entries, Categories) and entries.n_own > _WIDE


@dataclass(frozen=True)
class Units:
    """The response as the core sees it: a Gaussian one has mean 0 and variance 1."""

    likelihood: Likelihood
    y: Array
    shift: float
    scale: float
    total_weight: float

    @classmethod
    def of(cls, response: Array, weight: Array, likelihood: Likelihood) -> Units:
        """Standardise a response, with care for huge and tiny ones."""
        total = float(weight.sum())
        if not likelihood.quadratic:
            return cls(likelihood, response, 0.0, 1.0, total)
        magnitude = power_of_two_scale(response)
        scaled = response / magnitude
        share = weight / total
        shift = float(share @ scaled)
        spread = float(np.sqrt(share @ (scaled - shift) ** 2))
        # A constant response has rounding at most; its unit is small so that its noise is.
        if spread <= 1e-14 * abs(shift):
            spread = 1e-9 * max(abs(shift), 1.0)
        standard = (scaled - shift) / spread
        return cls(likelihood, standard, shift * magnitude, spread * magnitude, total)

    def log_evidence(self, standard: float) -> float:
        """Log evidence of the response in its own units."""
        if not self.likelihood.quadratic:
            return standard
        return standard - self.total_weight * float(np.log(self.scale))

    def standard_evidence(self, own: float) -> float:
        """The other way round."""
        return own - self.log_evidence(0.0)


@dataclass(frozen=True)
class Prepared:
    """Everything that is the same for all restarts.

    ``unused`` maps columns without a term to why; ``levels`` are the levels of numeric columns, and
    ``categories`` those of the others.
    """

    units: Units
    terms: tuple[Term, ...]
    rows: Rows
    levels: dict[int, Levels]
    categories: dict[int, Categories]
    unused: dict[int, str]


def prepare(
    columns: Array,
    response: Array,
    weight: Array,
    likelihood: Likelihood,
    options: Options,
    n_levels: Sequence[int] = (),
) -> Prepared:
    """Place every column's entries, and find the rows among them.

    ``n_levels`` has the number of levels of every column of categories, and -1 for numeric ones; none
    is given where all are numeric.
    """
    units = Units.of(response, weight, likelihood)
    architecture = options.architecture(1)
    terms: list[Term] = []
    levels, categories, unused = {}, {}, {}
    seen: dict[tuple[bool, int], int] = {}
    n_distinct = _distinct_rows(columns, units.y)
    widest = _widest(n_levels, likelihood, options)
    repeated = units.total_weight > _REPEATED * n_distinct
    for feature in range(columns.shape[1]):
        column = _clean(columns[:, feature])
        coded = bool(n_levels) and n_levels[feature] >= 0
        pattern = _by_arrival if coded else _clean
        own_pattern = pattern(column).tobytes()
        twin = seen.setdefault((coded, hash(own_pattern)), feature)
        if twin != feature and pattern(columns[:, twin]).tobytes() == own_pattern:
            unused[feature] = DUPLICATE
            continue
        distribution = summarise(column, weight)
        knots = place_knots(distribution, options.max_knots)
        if knots is None:
            unused[feature] = CONSTANT if len(distribution.values) else EMPTY
        elif coded:
            most = None if feature == widest else _WIDE // likelihood.n_outputs
            own = place_categories(column, weight, n_levels[feature], most)
            categories[feature] = own
            terms.append(LevelTerm((feature,), own, is_wide(own)))
        else:
            terms.append(SmoothTerm((feature,), knots, architecture, options.prior_groups))
            few = 0.5 * n_distinct if repeated else np.inf
            if likelihood.noise_bounds is not None and not likelihood.quadratic:
                few = len(column) / _RECURRING
            if len(distribution.values) <= few:
                levels[feature] = place_levels(distribution, _MAX_LEVELS, _N_BINS)
    positions = tuple(locate(term.entries, term.features, columns) for term in terms)
    sizes = tuple(len(term.entries) for term in terms)
    rows = Rows(positions, sizes, units.y, weight)
    return Prepared(units, tuple(terms), rows, levels, categories, unused)


def _widest(n_levels: Sequence[int], likelihood: Likelihood, options: Options) -> int | None:
    """The column whose levels may be integrated out: that with most of them."""
    if not n_levels or likelihood.n_outputs > 1 or options.curvature == "kron":
        return None
    return int(np.argmax(n_levels))


def _clean(column: Array) -> Array:
    """A contiguous copy in which equal values have equal bytes: one zero, and one that is no number."""
    copy = column + 0.0
    copy[np.isnan(copy)] = np.nan
    return copy


def _by_arrival(codes: Array) -> Array:
    """Codes anew, in the order in which they come: the same for the same levels under other names."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    renamed = np.argsort(np.argsort(first)).astype(np.float64)[inverse]
    renamed[np.isnan(codes)] = np.nan
    return renamed


def _distinct_rows(columns: Array, y: Array) -> int:
    """How many rows differ, by a random projection of each: equal rows have equal ones."""
    coefficients = np.random.default_rng(0).uniform(0.5, 1.5, size=(columns.shape[1],))
    mark = y.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for feature in range(columns.shape[1]):
            column = columns[:, feature]
            gone = np.isnan(column)
            # Any number will do for missing values, if it is not among the others.
            values = np.where(gone, _MISSING_MARK, column) if gone.any() else column
            mark = mark + (coefficients[feature] / power_of_two_scale(values)) * values
    return len(np.unique(mark))
