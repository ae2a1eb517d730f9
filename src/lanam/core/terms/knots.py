"""Columns to knots: where a term is tabulated, and how a row reads the table (method.md 2a).

A smooth term is evaluated at ``points`` and rows read it by linear interpolation; a level term has
one entry per level and rows read theirs. Either way a row's value is

    (1 - fraction) * table[index] + fraction * table[index + 1].

Several columns together have a grid of their entries, and rows read it by multilinear interpolation.

Columns are floats. A missing value is not a number and has an entry of its own; a column of categories
holds codes 0, 1, ..., and any other number for a level that was not seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray, sum_by
from lanam.core.terms.searching import SortedPoints

#: Rows that are located at a time: what is computed for them stays in the cache.
_BLOCK = 1 << 14

#: Beyond this many standard deviations a network's input grows logarithmically, so that an outlier
#: does not squeeze all other values into one point.
_TAIL = 2.0

#: A margin ends where the next knot would not be a finite number; and a spread this small, in units of
#: the largest value, is no unit to measure that value in.
_LARGEST_BEYOND = 700.0
_SMALLEST_SPREAD = 1e-307

#: Knots beyond the data on either side, in units of the spread of the network's input: bands widen
#: there instead of being cut off. Further out the outermost knot holds.
MARGINS = np.array([0.1, 0.25, 0.5, 1.0])


#: How many entries on the next one along an axis is, and how far towards it each row stands.
Step: TypeAlias = tuple[int, NDArray[np.float32]]


@dataclass(frozen=True)
class Position:
    """Where rows stand among the entries of a table.

    ``index`` is the entry at or before a row along every axis. ``steps`` are of the axes along which some
    rows stand between two entries, in the order of the axes; where all stand on one there is none.
    """

    index: IntArray
    steps: tuple[Step, ...] = ()

    def rows(self, part: slice) -> Position:
        """Positions of some of the rows."""
        steps = tuple((stride, fraction[part]) for stride, fraction in self.steps)
        return Position(self.index[part], steps)


class _Column:
    """Entries of one column: a table of one axis."""

    @property
    def axes(self) -> tuple[Self, ...]:
        """The entries of every column."""
        return (self,)


@dataclass(frozen=True)
class Knots(_Column):
    """The entries of a smooth term's table.

    ``points`` are the knots in units of ``scale`` (a power of two that keeps huge and tiny columns
    away from overflow), ``inputs`` what the network sees there; ``inside`` are those within the data's
    range. Where the data has missing values, one more entry is theirs: the last.
    """

    points: Array
    inputs: Array
    scale: float
    inside: slice
    missing: bool = False

    def __len__(self) -> int:
        return len(self.points) + self.missing

    @property
    def network_inputs(self) -> Array:
        """What the network sees at the knots (B, 1)."""
        return self.inputs[:, None]

    @property
    def n_single(self) -> int:
        """How many entries have an effect of their own: that of missing values."""
        return int(self.missing)

    def quantile_input(self, place: Array) -> Array:
        """Network inputs at places between 0 and 1 along the knots within the data's range."""
        inside = self.inputs[self.inside]
        return np.interp(place, np.linspace(0.0, 1.0, len(inside)), inside)

    @property
    def values(self) -> Array:
        """The knots in the column's own units."""
        with np.errstate(over="ignore"):
            return np.clip(self.points * self.scale, -np.finfo(float).max, np.finfo(float).max)

    def locate(self, column: Array) -> Position:
        """Positions of a column's values; beyond the outermost knots these hold.

        Missing values stand on their entry or, where there is none, on the first knot.
        """
        index = np.empty(len(column), dtype=_index_type(len(self)))
        fraction = np.empty(len(column), dtype=np.float32)
        between = False
        for start in range(0, len(column), _BLOCK):
            own = slice(start, start + _BLOCK)
            place, part = self._locate(column[own])
            index[own], fraction[own] = place, part
            between = between or bool(np.any((part != 0.0) & (part != 1.0)))
        if between:
            return Position(index, ((1, fraction),))
        return Position((index + (fraction == 1.0)).astype(index.dtype))

    def _locate(self, column: Array) -> tuple[IntArray, Array]:
        """The knot at or before every value, and how far it is towards the next."""
        with np.errstate(over="ignore"):
            scaled = np.clip(column / self.scale, self.points[0], self.points[-1])
        gone = np.isnan(scaled)
        some_gone = bool(gone.any())
        if some_gone:
            scaled[gone] = self.points[0]
        index = np.minimum(self._search.last_at_most(scaled), len(self.points) - 2)
        left = np.take(self.points, index)
        scaled -= left
        scaled /= np.take(self.points[1:], index) - left
        if some_gone and self.missing:
            index[gone] = len(self.points)
        return index, scaled

    @cached_property
    def _search(self) -> SortedPoints:
        return SortedPoints(self.points)


@dataclass(frozen=True)
class Levels(_Column):
    """The entries of a level term's table: one per unique value, or per bin between ``edges``.

    The last entry stands for values that were not seen: no row of the data reads it, so its
    posterior is its prior. Where the data has missing values, the one before it is theirs.
    """

    points: Array
    edges: Array
    scale: float
    exact: bool
    missing: bool = False

    def __len__(self) -> int:
        return len(self.points) + self.missing + 1

    @property
    def values(self) -> Array:
        """The levels (or the bins' middles) in the column's own units, the unseen one left out."""
        return self.points * self.scale

    def locate(self, column: Array) -> Position:
        """Positions of a column's values."""
        with np.errstate(over="ignore"):
            scaled = column / self.scale
        gone = np.isnan(scaled)
        scaled[gone] = 0.0
        index = self._search.last_at_most(scaled) + 1
        if self.exact:
            # The nearest level, if the number is the same to six digits: it may come back as float32.
            seen = np.abs(scaled - self.points[index]) <= 1e-6 * np.abs(self.points[index])
            index = np.where(seen, index, len(self) - 1)
        index[gone] = len(self.points)
        return Position(_compact(index, len(self)))

    @cached_property
    def _search(self) -> SortedPoints:
        """Among what divides the levels: their middles, or the bins' edges."""
        return SortedPoints(
            0.5 * (self.points[1:] + self.points[:-1]) if self.exact else self.edges
        )


@dataclass(frozen=True)
class Categories(_Column):
    """The entries of a column of categories: its levels, then missing values, then all other levels.

    ``entry_of`` is the entry of every code. Levels that share the last entry with those never seen are
    too rare to have one.
    """

    entry_of: IntArray
    n_own: int

    def __len__(self) -> int:
        return self.n_own + 2

    @property
    def n_single(self) -> int:
        """How many entries have an effect of their own: all."""
        return len(self)

    @property
    def missing(self) -> bool:
        """Missing values have an entry."""
        return True

    def locate(self, column: Array) -> Position:
        """Positions of a column's codes."""
        gone = np.isnan(column)
        known = (column >= 0.0) & (column < len(self.entry_of))
        index = np.full(len(column), self.n_own + 1)
        index[known] = self.entry_of[column[known].astype(np.intp)]
        index[gone] = self.n_own
        return Position(_compact(index, len(self)))


Axis = Knots | Categories

#: Where all columns are numeric.
NO_CATEGORIES: Mapping[int, Categories] = MappingProxyType({})


@dataclass(frozen=True)
class Grid:
    """The entries of a joint table: all combinations of its columns' entries, the last running fastest."""

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many entries every column has."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def smooth(self) -> bool:
        """Whether the grid is of knots only."""
        return all(axis.n_single == 0 for axis in self.axes)

    def __len__(self) -> int:
        return math.prod(self.shape)

    @property
    def network_inputs(self) -> Array:
        """What the network of columns of knots sees there, one column an axis."""
        inputs = [axis.inputs for axis in self.axes if isinstance(axis, Knots)]
        assert len(inputs) == len(self.axes)
        return np.column_stack([own.ravel() for own in np.meshgrid(*inputs, indexing="ij")])

    def locate(self, *columns: Array) -> Position:
        """Positions of the rows of the columns."""
        first, *others = [axis.locate(own) for axis, own in zip(self.axes, columns, strict=True)]
        index, steps = first.index.astype(np.int64), first.steps
        for size, along in zip(self.shape[1:], others, strict=True):
            index *= size
            index += along.index
            steps = (*((stride * size, fraction) for stride, fraction in steps), *along.steps)
        return Position(_compact(index, len(self)), steps)


Entries = Knots | Grid | Levels | Categories


def locate(entries: Entries, features: tuple[int, ...], columns: Array) -> Position:
    """Positions of the rows of ``columns`` (n, D) among the entries of a term over ``features``."""
    own = [columns[:, feature] for feature in features]
    return entries.locate(*own)


def _compact(index: IntArray, size: int) -> IntArray:
    """Indices in as few bytes as fit."""
    return index.astype(_index_type(size))


def _index_type(size: int) -> type[np.int16 | np.int32]:
    """Two bytes where they are enough: positions are most of what a fit keeps of its rows."""
    return np.int16 if size <= np.iinfo(np.int16).max else np.int32


def power_of_two_scale(column: Array) -> float:
    """The power of two below the largest magnitude: dividing by it is exact."""
    largest = max(float(np.max(column, initial=0.0)), -float(np.min(column, initial=0.0)))
    if largest == 0.0:
        return 1.0
    return float(2.0 ** np.clip(np.frexp(largest)[1] - 1, -1021, 1023))


def weighted_quantiles(values: Array, weight: Array, levels: Array) -> Array:
    """Quantiles of ascending ``values``: the first whose share of the weight reaches the level.

    Always one of the values, and the same whether a row is repeated or weighted.
    """
    share = np.cumsum(weight)
    # The tolerance keeps a share that reaches a level exactly from missing it by rounding.
    reached = np.searchsorted(share, levels * share[-1] * (1.0 - 1e-12), side="left")
    return np.asarray(values[np.minimum(reached, len(values) - 1)])


@dataclass(frozen=True)
class Distribution:
    """A column's distinct values, ascending and in units of ``scale``, and the weight at each.

    ``missing`` is the weight of the rows without a value.
    """

    values: Array
    mass: Array
    scale: float
    missing: float = 0.0


def summarise(column: Array, weight: Array, space: Array | None = None) -> Distribution:
    """Sort a column into its distribution, which may be made in a space of the column's size."""
    gone = np.isnan(column)
    if gone.any():
        lost = float(weight[gone].sum())
        return replace(summarise(column[~gone], weight[~gone], space), missing=lost)
    scale = power_of_two_scale(column)
    scaled = np.divide(column, scale, out=None if space is None else space[: len(column)])
    scaled += 0.0  # of two zeros one
    return Distribution(*distinct_values(*ascending(scaled, weight)), scale)


def ascending(values: Array, weight: Array) -> tuple[Array, Array]:
    """Values that nobody else has in their order, missing ones last, and the weight of each."""
    if len(values) == 0 or np.all(weight == weight[0]):
        values.sort()
        return values, weight
    order = np.argsort(values)
    return values[order], weight[order]


def distinct_values(ordered: Array, weight: Array) -> tuple[Array, Array]:
    """Distinct ones among ascending values, and the weight of each."""
    new = np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)]
    if new.all():  # nothing to sum, nor to copy
        return ordered, weight
    starts = np.flatnonzero(new)
    return ordered[starts], np.add.reduceat(weight, starts)


def _location_and_spread(distribution: Distribution) -> tuple[float, float]:
    """Mean and standard deviation, or median and quartiles where outliers make the latter."""
    share = distribution.mass / distribution.mass.sum()
    centre = float(share @ distribution.values)
    spread = float(np.sqrt(share @ (distribution.values - centre) ** 2))
    low, median, high = weighted_quantiles(
        distribution.values, distribution.mass, np.array([0.25, 0.5, 0.75])
    )
    # For a normal distribution the quartiles lie 1.35 standard deviations apart.
    robust = (high - low) / 1.35
    if _SMALLEST_SPREAD < robust < 0.5 * spread:
        return float(median), float(robust)
    return centre, spread or 1.0


def _compress_tails(standard: Array) -> Array:
    beyond = np.maximum(np.abs(standard) - _TAIL, 0.0)
    within = np.minimum(np.abs(standard), _TAIL)
    return np.asarray(np.sign(standard) * (within + np.log1p(beyond)))


def _expand_tails(inputs: Array) -> Array:
    beyond = np.clip(np.abs(inputs) - _TAIL, 0.0, _LARGEST_BEYOND)
    within = np.minimum(np.abs(inputs), _TAIL)
    return np.asarray(np.sign(inputs) * (within + np.expm1(beyond)))


def standard_inputs(distribution: Distribution) -> Array:
    """A column's distinct values in the units that networks see."""
    centre, spread = _location_and_spread(distribution)
    return _compress_tails((distribution.values - centre) / spread)


def place_knots(
    distribution: Distribution, max_knots: int, margins: Array = MARGINS
) -> Knots | None:
    """Knots for a column: its distinct values where there are few, else quantiles.

    Of the data (where the rows are) and an even spread over its range (where the shape is) in equal
    parts, so that no two knots nearly coincide. None where the column is constant: all missing, or none
    and all the same.
    """
    unique = distribution.values
    if len(unique) == 0 or (len(unique) == 1 and not distribution.missing):
        return None
    centre, spread = _location_and_spread(distribution)
    inputs = _compress_tails((unique - centre) / spread)
    if len(unique) > max_knots:
        below = np.cumsum(distribution.mass) - distribution.mass[0]
        evenly = (inputs - inputs[0]) / (inputs[-1] - inputs[0])
        places = 0.5 * (below / below[-1] + evenly)
        inputs = np.interp(np.linspace(0.0, 1.0, max_knots), places, inputs)
    margin = margins * ((inputs[-1] - inputs[0]) or 1.0)
    inputs = np.concatenate([inputs[0] - margin[::-1], inputs, inputs[-1] + margin])
    points = centre + spread * _expand_tails(inputs)
    first, last = len(margins), len(inputs) - len(margins)
    if len(unique) <= max_knots:
        points[first:last] = unique
    # Rounding must not put the data's own ends outside.
    points[first], points[last - 1] = unique[0], unique[-1]
    distinct = np.r_[True, np.diff(points) > 0.0]
    inside = slice(int(distinct[:first].sum()), int(distinct[:last].sum()))
    missing = distribution.missing > 0.0
    return Knots(points[distinct], inputs[distinct], distribution.scale, inside, missing)


def place_levels(distribution: Distribution, max_levels: int, n_bins: int) -> Levels:
    """Levels for a column: its distinct values, or quantile bins where they are too many."""
    unique, mass = distribution.values, distribution.mass
    missing = distribution.missing > 0.0
    if len(unique) <= max_levels:
        return Levels(unique, np.empty(0), distribution.scale, exact=True, missing=missing)
    edges = _bin_edges(unique, mass, n_bins)
    bin_of = np.searchsorted(edges, unique, side="right")
    total = np.bincount(bin_of, weights=mass)
    middles = np.bincount(bin_of, weights=mass * unique) / total
    return Levels(middles, edges, distribution.scale, exact=False, missing=missing)


def _bin_edges(unique: Array, mass: Array, n_bins: int) -> Array:
    """Where the bins after the first begin; about so many bins of equal weight.

    A value as heavy as a bin has one of its own (the zeros of amounts, of rain), and the others
    are split as if it were not there: quantiles alone would all fall on it.
    """
    spike = mass >= mass.sum() / n_bins
    n_left = n_bins - int(spike.sum())
    levels = np.linspace(0.0, 1.0, max(n_left, 1) + 1)[1:-1]
    inner = weighted_quantiles(unique[~spike], mass[~spike], levels) if n_left > 1 else unique[:0]
    after = np.flatnonzero(spike) + 1
    edges = np.unique(np.concatenate([inner, unique[spike], unique[after[after < len(unique)]]]))
    return np.asarray(edges[edges > unique[0]])


def level_counts(column: Array, weight: Array, n_levels: int) -> tuple[Array, Array]:
    """Weight of every code below ``n_levels``, and the row in which it first comes up."""
    if n_levels < 0:
        return np.empty(0), np.empty(0)
    known = np.flatnonzero((column >= 0.0) & (column < n_levels))
    codes = column[known].astype(np.intp)
    mass = sum_by(codes, weight[known], n_levels)
    arrival = np.full(n_levels, np.inf)
    # The earliest is written last.
    arrival[codes[::-1]] = known[::-1]
    return mass, arrival


def choose_categories(mass: Array, arrival: Array, max_own: int | None = None) -> Categories:
    """Entries for codes of which the weight and the row of arrival are known.

    Of more than ``max_own`` levels the most frequent have an entry of their own; of equally frequent ones
    those that come first in the data, so that their names do not matter.
    """
    n_levels = len(mass)
    if max_own is None or n_levels <= max_own:
        return Categories(np.arange(n_levels), n_levels)
    own = np.zeros(n_levels, dtype=bool)
    own[np.lexsort((arrival, -mass))[:max_own]] = True
    return Categories(np.where(own, np.cumsum(own) - 1, max_own + 1), max_own)
