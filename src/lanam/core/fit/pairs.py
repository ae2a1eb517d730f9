"""Joint networks of pairs of columns: where they are tabulated (method.md 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lanam.core.fit.interactions import Pair, pair_levels
from lanam.core.inference.options import Options
from lanam.core.rows.summaries import Summary
from lanam.core.terms.knots import NO_CATEGORIES, Axis, Categories, Grid, place_knots
from lanam.core.terms.term import MixedTerm, SmoothTerm

#: Knots of a column within a pair: fewer than for a column alone, because a grid has their square. And
#: every knot takes a mean of its rows out of the pair: with few rows that mean is noise, so where a
#: column has more values than knots there are no more than half the root of the rows. (Still fewer
#: fit a little better, but between far knots a pair is not pure.)
_MAX_KNOTS = 16
_MIN_KNOTS = 8

#: Knots beyond the data on either side of a pair's grid, as for single columns but fewer.
_MARGINS = np.array([0.2, 1.0])


def place_grids(
    summary: Summary, pairs: Sequence[Pair], categories: Mapping[int, Categories] = NO_CATEGORIES
) -> list[Grid]:
    """A grid of entries for every pair; ``categories`` are the columns of codes."""
    axes: dict[int, Axis] = {}
    affordable = int(np.clip(np.sqrt(summary.total_weight) / 2.0, _MIN_KNOTS, _MAX_KNOTS))
    for feature in sorted({feature for pair in pairs for feature in pair}):
        column = summary.columns[feature]
        if feature in categories:
            axes[feature] = pair_levels(column)
            continue
        distribution = column.distribution
        few = len(distribution.values) <= _MAX_KNOTS
        knots = place_knots(distribution, _MAX_KNOTS if few else affordable, _MARGINS)
        assert knots is not None, "a constant column cannot interact"
        axes[feature] = knots
    return [Grid(tuple(axes[feature] for feature in pair)) for pair in pairs]


def pair_terms(
    summary: Summary,
    pairs: Sequence[Pair],
    options: Options,
    categories: Mapping[int, Categories] = NO_CATEGORIES,
) -> list[SmoothTerm | MixedTerm]:
    """A joint term for every pair."""
    grids = place_grids(summary, pairs, categories)
    return [pair_term(pair, grid, options) for pair, grid in zip(pairs, grids, strict=True)]


def pair_term(pair: tuple[int, ...], grid: Grid, options: Options) -> SmoothTerm | MixedTerm:
    """The joint term of columns on their grid."""
    joint = options.architecture(len(grid.axes))
    if grid.smooth:
        return SmoothTerm(pair, grid, joint, options.prior_groups)
    return MixedTerm(pair, grid, joint, options.prior_groups)
