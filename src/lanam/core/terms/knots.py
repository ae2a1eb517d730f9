"""Knots and other table entries of a term, and the rows' positions among them (method.md 2a).

A smooth term is tabulated at knots, between which rows interpolate linearly; a level term has one entry per
level. Either way a row's value is

    (1 - fraction) * table[index] + fraction * table[index + 1].

Several columns together have a grid of their entries, with multilinear interpolation. Columns are floats:
a missing value is NaN and has an entry of its own; a column of categories holds codes 0, 1, ..., and any
other number for an unseen category.
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
from lanam.core.terms.repeats import Repeats
from lanam.core.terms.searching import SortedPoints

#: Rows located at a time: intermediate results stay in the cache.
_BLOCK = 1 << 14

#: Beyond this many standard deviations a network's input grows logarithmically, so that an outlier
#: does not squeeze all other values into one point.
_TAIL = 2.0

#: A margin ends where the next knot would not be finite, and a spread this small, in units of the largest
#: value, is no unit for that value.
_LARGEST_BEYOND = 700.0
_SMALLEST_SPREAD = 1e-307

#: Knots beyond the data on either side, in ranges of the data: credible bands widen there (``beyond.py``).
#: Beyond the outermost knot the function is constant.
MARGINS = np.array([0.1, 0.5, 1.0, 4.0])


#: What is known of the function of a column: nothing, that it is periodic, or that it is a straight line.
COURSES = SMOOTH, CYCLIC, LINEAR = "smooth", "cyclic", "linear"

#: Knots along a period are at most this fraction of it apart, where there is no data, too.
_ARC = 1.0 / 24.0

#: The number of knots of a straight line: more would show nothing.
_LINE_KNOTS = 16

#: Ranges of a cyclic column may exceed the period by rounding.
_ROUNDING = 1e-9


#: The offset of the next entry along an axis, and the fraction of the way towards it, per row.
Step: TypeAlias = tuple[int, NDArray[np.float32]]


@dataclass(frozen=True)
class Position:
    """Positions of rows among the entries of a table.

    ``index`` is the entry at or before a row along every axis; ``steps`` are those of the axes, in their
    order, along which some rows lie between two entries. With ``repeats`` they are those of subjects, of
    which each has several rows.
    """

    index: IntArray
    steps: tuple[Step, ...] = ()
    repeats: Repeats | None = None

    def rows(
        self, part: slice | NDArray[np.bool_] | IntArray, repeats: Repeats | None = None
    ) -> Position:
        """Positions of some of the rows or, with their repeats, of some of the subjects."""
        steps = tuple((stride, fraction[part]) for stride, fraction in self.steps)
        return Position(self.index[part], steps, repeats)

    @property
    def of_subjects(self) -> Position:
        """One position per subject."""
        return Position(self.index, self.steps)

    @property
    def of_rows(self) -> Position:
        """One position per row."""
        return self if self.repeats is None else self.rows(self.repeats.owner)


class _SingleAxis:
    """Entries of one column."""

    @property
    def axes(self) -> tuple[Self, ...]:
        """The entries of every column."""
        return (self,)


@dataclass(frozen=True)
class Knots(_SingleAxis):
    """The entries of a smooth term's table.

    ``points`` are the knots in units of ``scale`` (a power of two that keeps huge and tiny columns
    away from overflow), ``inputs`` the network's inputs there; ``inside`` are those within the data's
    range. Where the data has missing values, the last entry is theirs. The ``course`` is what is known of
    the function; where it is cyclic, the knots are those of one period, of which both ends are the same
    point, and inputs are angles.
    """

    points: Array
    inputs: Array
    scale: float
    inside: slice
    missing: bool = False
    course: str = SMOOTH

    def __len__(self) -> int:
        return len(self.points) + self.missing

    @property
    def cyclic(self) -> bool:
        """Whether functions are periodic: the last knot is the first one."""
        return self.course == CYCLIC

    @property
    def network_inputs(self) -> Array:
        """The network's inputs at the knots (B, 1)."""
        return self.inputs[:, None]

    @property
    def n_single(self) -> int:
        """The number of entries with an independent effect: that of missing values."""
        return int(self.missing)

    @property
    def n_inputs(self) -> int:
        """The number of inputs of a joint network."""
        return 1 + self.n_single

    @property
    def joint_inputs(self) -> Array:
        """Inputs of a joint network at the entries: of the knots, and an indicator of missing values."""
        missing = self.n_single
        inputs = np.pad(self.network_inputs, ((0, missing), (0, missing)))
        inputs[len(self.points) :, 1:] = 1.0
        return inputs

    def thinned(self, n_knots: int) -> Knots:
        """At most ``n_knots`` of the knots, of data without a margin."""
        few = np.unique(np.linspace(0, len(self.points) - 1, n_knots).round().astype(int))
        return replace(
            self, points=self.points[few], inputs=self.inputs[few], inside=slice(0, len(few))
        )

    def quantile_input(self, place: Array) -> Array:
        """Network inputs at fractions of the knots within the data's range."""
        inside = self.inputs[self.inside]
        return np.interp(place, np.linspace(0.0, 1.0, len(inside)), inside)

    @property
    def values(self) -> Array:
        """The knots in the column's units."""
        with np.errstate(over="ignore"):
            return np.clip(self.points * self.scale, -np.finfo(float).max, np.finfo(float).max)

    def locate(self, column: Array) -> Position:
        """Positions of a column's values, clipped to the outermost knots.

        Missing values are at their entry or, where there is none, at the first knot.
        """
        index = np.empty(len(column), dtype=_index_type(len(self)))
        fraction = np.empty(len(column), dtype=np.float32)
        between = False
        for start in range(0, len(column), _BLOCK):
            block = slice(start, start + _BLOCK)
            knot, part = self._locate(column[block])
            index[block], fraction[block] = knot, part
            between = between or bool(np.any((part != 0.0) & (part != 1.0)))
        if between:
            return Position(index, ((1, fraction),))
        return Position((index + (fraction == 1.0)).astype(index.dtype))

    def _locate(self, column: Array) -> tuple[IntArray, Array]:
        """The knot at or before every value, and the fraction of the way to the next."""
        start, end = self.points[0], self.points[-1]
        with np.errstate(over="ignore"):
            scaled = column / self.scale
            if self.cyclic:
                outside = (scaled < start) | (scaled > end)
                scaled[outside] = start + (scaled[outside] - start) % (end - start)
            scaled = np.clip(scaled, start, end)
        missing = np.isnan(scaled)
        any_missing = bool(missing.any())
        if any_missing:
            scaled[missing] = self.points[0]
        index = np.minimum(self._search.last_at_most(scaled), len(self.points) - 2)
        left = np.take(self.points, index)
        scaled -= left
        scaled /= np.take(self.points[1:], index) - left
        if any_missing and self.missing:
            index[missing] = len(self.points)
        return index, scaled

    @cached_property
    def _search(self) -> SortedPoints:
        return SortedPoints(self.points)


@dataclass(frozen=True)
class Levels(_SingleAxis):
    """The entries of a level term's table: one per distinct value, or per bin between ``edges``.

    The last entry is that of unseen values: without data, its posterior is its prior. Where the data has
    missing values, the one before it is theirs.
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
        """The levels (or the bins' means) in the column's units, without that of unseen values."""
        return self.points * self.scale

    def locate(self, column: Array) -> Position:
        """Positions of a column's values."""
        with np.errstate(over="ignore"):
            scaled = column / self.scale
        missing = np.isnan(scaled)
        scaled[missing] = 0.0
        index = self._search.last_at_most(scaled) + 1
        if self.exact:
            # The nearest level, if it agrees to six digits: values may have been float32.
            seen = np.abs(scaled - self.points[index]) <= 1e-6 * np.abs(self.points[index])
            index = np.where(seen, index, len(self) - 1)
        index[missing] = len(self.points)
        return Position(_compact(index, len(self)))

    @cached_property
    def _search(self) -> SortedPoints:
        """The boundaries between levels, which belong to the upper one: midpoints, or the bins' edges."""
        if not self.exact:
            return SortedPoints(self.edges)
        lower, upper = self.points[:-1], self.points[1:]
        middles = 0.5 * (lower + upper)
        # Between adjacent floats there is none: it is rounded to one of them.
        return SortedPoints(np.where(middles > lower, middles, upper))


@dataclass(frozen=True)
class Categories(_SingleAxis):
    """The entries of a column of categories: ``n_own`` of them, then missing values, then all others.

    ``entry_of`` is the entry of every code; rare categories share the last one with unseen ones. Of
    ``ordered`` columns none is rare.
    """

    entry_of: IntArray
    n_own: int
    #: whether neighbours are alike
    ordered: bool = False

    def __len__(self) -> int:
        return self.n_own + 2

    @property
    def n_single(self) -> int:
        """The number of entries with an independent effect: all."""
        return len(self)

    @property
    def n_inputs(self) -> int:
        """The number of inputs of a joint network."""
        return self.n_single

    @property
    def joint_inputs(self) -> Array:
        """Inputs of a joint network at the entries: an indicator of each."""
        return np.eye(len(self))

    @property
    def missing(self) -> bool:
        """Missing values always have an entry."""
        return True

    def locate(self, column: Array) -> Position:
        """Positions of a column's codes."""
        seen = (column >= 0.0) & (column < len(self.entry_of))
        index = np.full(len(column), self.n_own + 1)
        index[seen] = self.entry_of[column[seen].astype(np.intp)]
        index[np.isnan(column)] = self.n_own
        return Position(_compact(index, len(self)))


Axis = Knots | Categories

#: Where all columns are numeric.
NO_CATEGORIES: Mapping[int, Categories] = MappingProxyType({})
#: Where none is cyclic.
NO_PERIODS: Mapping[int, float] = MappingProxyType({})


@dataclass(frozen=True)
class Grid:
    """The entries of a joint table: all combinations of its columns' entries, the last running fastest."""

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of entries of every column."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def smooth(self) -> bool:
        """Whether all entries are knots."""
        return all(axis.n_single == 0 for axis in self.axes)

    @property
    def bends(self) -> bool:
        """Whether functions are not known to be straight along some axis of knots."""
        return any(isinstance(axis, Knots) and axis.course != LINEAR for axis in self.axes)

    def __len__(self) -> int:
        return math.prod(self.shape)

    @property
    def n_inputs(self) -> int:
        """The number of inputs of a network of all entries."""
        return sum(axis.n_inputs for axis in self.axes)

    @property
    def network_inputs(self) -> Array:
        """The network's inputs at the entries: of knots one, and an indicator of every other entry."""
        places = np.indices(self.shape).reshape(len(self.axes), -1)
        inputs = [axis.joint_inputs[place] for axis, place in zip(self.axes, places, strict=True)]
        return np.concatenate(inputs, axis=1)

    def locate(self, *columns: Array) -> Position:
        """Positions of the rows of the columns."""
        pairs = zip(self.axes, columns, strict=True)
        first, *others = [axis.locate(column) for axis, column in pairs]
        index, steps = first.index.astype(np.int64), first.steps
        for size, along in zip(self.shape[1:], others, strict=True):
            index *= size
            index += along.index
            steps = (*((stride * size, fraction) for stride, fraction in steps), *along.steps)
        return Position(_compact(index, len(self)), steps)


Entries = Knots | Grid | Levels | Categories


def locate(entries: Entries, features: tuple[int, ...], columns: Array) -> Position:
    """Positions of the rows of ``columns`` (n, D) among the entries of a term over ``features``."""
    return entries.locate(*(columns[:, feature] for feature in features))


def _compact(index: IntArray, size: int) -> IntArray:
    """Indices in as few bytes as possible."""
    return index.astype(_index_type(size))


def _index_type(size: int) -> type[np.int16 | np.int32]:
    """Two bytes where they suffice: positions take most of the memory of a fit."""
    return np.int16 if size <= np.iinfo(np.int16).max else np.int32


def power_of_two_scale(column: Array) -> float:
    """The power of two below the largest magnitude: dividing by it is exact."""
    largest = max(float(np.max(column, initial=0.0)), -float(np.min(column, initial=0.0)))
    if largest == 0.0:
        return 1.0
    return float(2.0 ** np.clip(np.frexp(largest)[1] - 1, -1021, 1023))


def weighted_quantiles(values: Array, weight: Array, levels: Array) -> Array:
    """Quantiles of ascending ``values``, always one of these: the first that reaches the level."""
    below = np.cumsum(weight)
    # With a tolerance for weights that reach a level exactly but for rounding.
    reached = np.searchsorted(below, levels * below[-1] * (1.0 - 1e-12), side="left")
    return np.asarray(values[np.minimum(reached, len(values) - 1)])


@dataclass(frozen=True)
class Distribution:
    """A column's distinct values in units of ``scale``, ascending; their weights, and that of missing."""

    values: Array
    mass: Array
    scale: float
    missing: float = 0.0


def summarise(column: Array, weight: Array, space: Array | None = None) -> Distribution:
    """The distribution of a column; ``space`` is an array of the column's size to sort in."""
    missing = np.isnan(column)
    if missing.any():
        present = summarise(column[~missing], weight[~missing], space)
        return replace(present, missing=float(weight[missing].sum()))
    scale = power_of_two_scale(column)
    scaled = np.divide(column, scale, out=None if space is None else space[: len(column)])
    scaled += 0.0  # no negative zero
    return Distribution(*distinct_values(*ascending(scaled, weight)), scale)


def ascending(values: Array, weight: Array) -> tuple[Array, Array]:
    """Values in ascending order, sorted in place, missing ones last; and the weight of each."""
    if len(values) == 0 or np.all(weight == weight[0]):
        values.sort()
        return values, weight
    order = np.argsort(values)
    return values[order], weight[order]


def distinct_values(ordered: Array, weight: Array) -> tuple[Array, Array]:
    """The distinct values of ascending ones, and the weight of each."""
    new = np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)]
    if new.all():  # nothing to sum, nor to copy
        return ordered, weight
    starts = np.flatnonzero(new)
    return ordered[starts], np.add.reduceat(weight, starts)


def _location_and_spread(distribution: Distribution) -> tuple[float, float]:
    """Mean and standard deviation, or median and interquartile range where outliers dominate."""
    fraction = distribution.mass / distribution.mass.sum()
    centre = float(fraction @ distribution.values)
    spread = float(np.sqrt(fraction @ (distribution.values - centre) ** 2))
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
    """A column's distinct values as network inputs."""
    centre, spread = _location_and_spread(distribution)
    return _compress_tails((distribution.values - centre) / spread)


def place_knots(
    distribution: Distribution, max_knots: int, margins: Array = MARGINS
) -> Knots | None:
    """Knots for a column: its distinct values where these are few, else quantiles.

    Quantiles of an equal mixture of the data and a uniform distribution over its range, so that no two
    knots nearly coincide. None for constant columns.
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
    points = centre + spread * _expand_tails(inputs) if len(unique) > max_knots else unique.copy()
    # Rounding must not put the data's range outside.
    points[0], points[-1] = unique[0], unique[-1]
    margin = margins * ((points[-1] - points[0]) or 1.0)
    below, above = points[0] - margin[::-1], points[-1] + margin
    # A margin lost to rounding is none, and the data's ends stay inside.
    below, above = below[below < points[0]], above[above > points[-1]]
    first, last = len(below), len(below) + len(points)
    points = np.concatenate([below, points, above])
    outside = [_compress_tails((part - centre) / spread) for part in (below, above)]
    inputs = np.concatenate([outside[0], inputs, outside[1]])
    distinct = np.r_[True, np.diff(points) > 0.0]
    inside = slice(int(distinct[:first].sum()), int(distinct[:last].sum()))
    missing = distribution.missing > 0.0
    return Knots(points[distinct], inputs[distinct], distribution.scale, inside, missing)


def place_circle(distribution: Distribution, period: float, max_knots: int) -> Knots | None:
    """Knots of a cyclic column, around a whole period; None for constant columns.

    It begins at the multiple of the period below the data or, where data are on both sides of one, at the
    lowest value. Knots are the distinct values where these are few, else evenly spaced.
    """
    unique = distribution.values
    if len(unique) == 0 or (len(unique) == 1 and not distribution.missing):
        return None
    period = period / distribution.scale
    start = np.floor(unique[0] / period) * period
    if unique[-1] > start + period * (1.0 + _ROUNDING):
        start = unique[0]
    places = np.unique(np.r_[0.0, np.clip((unique - start) / period, 0.0, 1.0), 1.0])
    if len(places) > max_knots:
        places = np.linspace(0.0, 1.0, max_knots)
    else:
        pieces = np.ceil(np.diff(places) / _ARC - _ROUNDING).astype(int)
        ends = zip(places, places[1:], pieces, strict=False)
        arcs = [np.linspace(left, right, number + 1)[1:] for left, right, number in ends]
        places = np.concatenate([places[:1], *arcs])
    points = start + period * places
    # Values that are knots are equal to the bit.
    after = np.minimum(np.searchsorted(unique, points), len(unique) - 1)
    for value in (unique[np.maximum(after - 1, 0)], unique[after]):
        points = np.where(np.abs(points - value) <= _ROUNDING * period, value, points)
    inside = slice(0, len(points))
    missing = distribution.missing > 0.0
    return Knots(points, 2.0 * np.pi * places, distribution.scale, inside, missing, CYCLIC)


def place_line(
    distribution: Distribution, n_knots: int = _LINE_KNOTS, margins: Array = MARGINS
) -> Knots | None:
    """Knots of a straight line, with inputs that are linear in the column; None for constant columns."""
    knots = place_knots(distribution, n_knots, margins)
    if knots is None:
        return None
    centre, spread = _location_and_spread(distribution)
    return replace(knots, inputs=(knots.points - centre) / spread, course=LINEAR)


def place_levels(distribution: Distribution, max_levels: int, n_bins: int) -> Levels:
    """Levels for a column: its distinct values, or quantile bins where these are too many."""
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
    """Edges of about ``n_bins`` bins of equal weight.

    A value as heavy as a bin (the zeros of amounts, of rain) has its own, and the others are split without
    it: all quantiles would fall on it.
    """
    spike = mass >= mass.sum() / n_bins
    n_left = n_bins - int(spike.sum())
    levels = np.linspace(0.0, 1.0, max(n_left, 1) + 1)[1:-1]
    inner = weighted_quantiles(unique[~spike], mass[~spike], levels) if n_left > 1 else unique[:0]
    after = np.flatnonzero(spike) + 1
    edges = np.unique(np.concatenate([inner, unique[spike], unique[after[after < len(unique)]]]))
    return np.asarray(edges[edges > unique[0]])


def level_counts(column: Array, weight: Array, n_levels: int) -> Array:
    """Weight of every code below ``n_levels``."""
    if n_levels < 0:
        return np.empty(0)
    rows = np.flatnonzero((column >= 0.0) & (column < n_levels))
    return sum_by(column[rows].astype(np.intp), weight[rows], n_levels)


def choose_categories(
    mass: Array, max_own: int | None = None, *, ordered: bool = False
) -> Categories:
    """Entries for codes: one each, or for the ``max_own`` most frequent ones unless they are ordered.

    Of equally frequent ones the first codes: the order of the rows does not matter.
    """
    n_levels = len(mass)
    if max_own is None or n_levels <= max_own or ordered:
        return Categories(np.arange(n_levels), n_levels, ordered)
    frequent = np.zeros(n_levels, dtype=bool)
    frequent[np.argsort(-mass, kind="stable")[:max_own]] = True
    return Categories(np.where(frequent, np.cumsum(frequent) - 1, max_own + 1), max_own)
