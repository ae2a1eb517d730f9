"""Joint terms of several columns: their grids of entries, and their networks (method.md 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from lanam.core.arrays import Array
from lanam.core.fit.solvers import has_networks
from lanam.core.inference.options import Options
from lanam.core.rows.summaries import ColumnSummary, DataSummary
from lanam.core.terms.knots import (
    NO_CATEGORIES,
    NO_PERIODS,
    Axis,
    Categories,
    Grid,
    Knots,
    choose_categories,
    place_circle,
    place_knots,
    place_line,
)
from lanam.core.terms.term import MixedTerm, SmoothTerm

#: The columns of an interaction, in ascending order.
Interaction: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class _Size:
    """The size of a grid along each of its axes.

    Fewer knots than for a column alone, because a grid has their product. And every knot takes a mean of
    its rows out of an interaction, which with few rows is noise: where a column has more values than knots
    there are no more than ``per_root`` times the square root of the rows, or of a triple the cube root.
    (Still fewer fit a little better, but between far knots an interaction is not pure.)
    """

    fewest_knots: int
    most_knots: int
    per_root: float
    #: knots beyond the data on either side, as for single columns but fewer
    margins: Array
    #: the most frequent categories that take part individually; the others are pooled
    most_levels: int


#: The scale of a finer pair's last band, in units of that before.
FINER = 4.0

#: By the number of columns.
_SIZES = {
    2: _Size(8, 16, 0.5, np.array([0.2, 1.0]), 24),
    3: _Size(5, 6, 0.5, np.array([0.5]), 6),
}


#: Knots of lines by group, and the largest numbers of groups with a line or a curve: their tables have
#: the square of it.
_SLOPE_KNOTS = 4
_MOST_LINES = 2000
_MOST_CURVES = 600


def joint_levels(column: ColumnSummary, order: int) -> Categories:
    """The entries of a categorical column within an interaction of ``order`` columns."""
    return choose_categories(column.mass, _SIZES[order].most_levels)


def place_grids(
    summary: DataSummary,
    interactions: Sequence[Interaction],
    categories: Mapping[int, Categories] = NO_CATEGORIES,
    periods: Mapping[int, float] = NO_PERIODS,
) -> list[Grid]:
    """A grid of entries for each interaction; ``categories`` are the categorical columns.

    A column that is a straight line alone may bend with another.
    """
    axes: dict[tuple[int, int], Axis] = {}

    def axis(feature: int, order: int) -> Axis:
        if (feature, order) not in axes:
            coded, period = feature in categories, periods.get(feature)
            axes[feature, order] = _axis(summary, feature, order, period, coded=coded)
        return axes[feature, order]

    return [Grid(tuple(axis(feature, len(each)) for feature in each)) for each in interactions]


def _axis(
    summary: DataSummary,
    feature: int,
    order: int,
    period: float | None,
    *,
    coded: bool,
    finest: int | None = None,
) -> Axis:
    column, size = summary.columns[feature], _SIZES[order]
    if finest is not None:
        size = replace(size, most_knots=finest)
    if coded:
        return joint_levels(column, order)
    few = len(column.distribution.values) <= size.most_knots
    affordable = int(size.per_root * summary.total_weight ** (1.0 / order))
    n_knots = size.most_knots if few else max(min(affordable, size.most_knots), size.fewest_knots)
    if column.knots is not None:
        return column.knots.thinned(n_knots)
    return _curve(column, period, n_knots, size.margins)


def _curve(column: ColumnSummary, period: float | None, n_knots: int, margins: Array) -> Knots:
    """Knots of a smooth function of a column, or of a cyclic one."""
    distribution = column.distribution
    if period is not None:
        knots = place_circle(distribution, period, n_knots)
    else:
        knots = place_knots(distribution, n_knots, margins)
    assert knots is not None, "a constant column cannot interact"
    return knots


def joint_terms(
    summary: DataSummary,
    interactions: Sequence[Interaction],
    options: Options,
    categories: Mapping[int, Categories] = NO_CATEGORIES,
) -> list[SmoothTerm | MixedTerm]:
    """A joint term for each interaction."""
    grids = place_grids(summary, interactions, categories, options.knowledge.periods)
    return [joint_term(*each, options) for each in zip(interactions, grids, strict=True)]


def finer_term(
    pair: Interaction,
    summary: DataSummary,
    options: Options,
    categories: Mapping[int, Categories],
    n_knots: int,
) -> SmoothTerm | MixedTerm:
    """The joint term of a pair with up to ``n_knots`` along its axes, and one more band of scales."""
    periods = options.knowledge.periods
    axes = [
        _axis(
            summary, feature, 2, periods.get(feature), coded=feature in categories, finest=n_knots
        )
        for feature in pair
    ]
    return joint_term(pair, Grid(tuple(axes)), finer_options(options))


def finer_options(options: Options) -> Options:
    """The options of finer pairs."""
    scales = options.pair_init_scales
    return replace(options, pair_init_scales=(*scales, FINER * scales[-1]))


def joint_term(features: Interaction, grid: Grid, options: Options) -> SmoothTerm | MixedTerm:
    """The joint term of columns on their grid: of one network where it is trained, or factored."""
    if grid.smooth or has_networks(options):
        architecture = options.architecture(grid.n_inputs)
        return SmoothTerm(features, grid, architecture, options.prior_groups, options.pure)
    architecture = options.architecture(len(grid.axes))
    if not grid.bends:  # a line has one scale
        architecture = replace(architecture, scales=architecture.scales[:1])
    grouped = features in options.knowledge.grouped
    return MixedTerm(features, grid, architecture, options.prior_groups, options.pure, grouped)


def grouped_terms(
    summary: DataSummary,
    options: Options,
    categories: Mapping[int, Categories],
    unused: Mapping[int, str],
) -> list[SmoothTerm | MixedTerm]:
    """The deviations of groups from the common curves, for the columns that are known to have some."""
    known = options.knowledge
    terms = []
    for curve, group in (*known.by, *known.slopes):
        if curve in unused or group in unused:
            continue
        straight = curve in known.linear or (curve, group) in known.slopes
        axes = {
            curve: _axis_of_groups(summary, curve, options, straight=straight),
            group: _groups(summary, group, straight)
            if group in categories
            else _axis_of_groups(summary, group, options, straight=True),
        }
        features = (min(curve, group), max(curve, group))
        terms.append(joint_term(features, Grid(tuple(axes[k] for k in features)), options))
    return terms


def _axis_of_groups(
    summary: DataSummary, feature: int, options: Options, *, straight: bool
) -> Knots:
    """The knots of a column whose curves differ between groups."""
    column, size = summary.columns[feature], _SIZES[2]
    if not straight:
        period = options.knowledge.periods.get(feature)
        return _curve(column, period, size.most_knots, size.margins)
    knots = place_line(column.distribution, _SLOPE_KNOTS, size.margins)
    assert knots is not None, "a constant column has no line"
    return knots


def _groups(summary: DataSummary, feature: int, straight: bool) -> Categories:
    """The groups that have curves or lines; the rarest of more share one."""
    most = _MOST_LINES if straight else _MOST_CURVES
    return choose_categories(summary.columns[feature].mass, most)
