"""Joint networks of pairs of columns, added to a fitted model (method.md 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanam.core import gauss_newton
from lanam.core.arrays import Array
from lanam.core.gauss_newton import Problem, State
from lanam.core.knots import Grid, Knots, locate, place_knots, summarise
from lanam.core.options import Options
from lanam.core.terms import SmoothTerm

#: Knots of a column within a pair: fewer than for a column alone, because a grid has their square. And
#: every knot takes a mean of its rows out of the pair: with few rows that mean is noise, so where a
#: column has more values than knots there are no more than half the root of the rows. (Still fewer
#: fit a little better, but between far knots a pair is not pure.)
_MAX_KNOTS = 16
_MIN_KNOTS = 8

#: Knots beyond the data on either side of a pair's grid, as for single columns but fewer.
_MARGINS = np.array([0.2, 1.0])


def place_grids(columns: Array, weight: Array, pairs: Sequence[tuple[int, int]]) -> list[Grid]:
    """A grid of knots for every pair."""
    axes: dict[int, Knots] = {}
    affordable = int(np.clip(np.sqrt(weight.sum()) / 2.0, _MIN_KNOTS, _MAX_KNOTS))
    for feature in sorted({feature for pair in pairs for feature in pair}):
        distribution = summarise(columns[:, feature] + 0.0, weight)
        few = len(distribution.values) <= _MAX_KNOTS
        knots = place_knots(distribution, _MAX_KNOTS if few else affordable, _MARGINS)
        assert knots is not None, "a constant column cannot interact"
        axes[feature] = knots
    return [Grid(axes[first], axes[second]) for first, second in pairs]


def pair_terms(
    columns: Array, weight: Array, pairs: Sequence[tuple[int, int]], options: Options
) -> list[SmoothTerm]:
    """A joint network for every pair."""
    grids = place_grids(columns, weight, pairs)
    return [
        SmoothTerm(pair, grid, options.architecture(2), options.prior_groups)
        for pair, grid in zip(pairs, grids, strict=True)
    ]


def add_networks(
    problem: Problem,
    state: State,
    columns: Array,
    terms: Sequence[SmoothTerm],
    rng: np.random.Generator,
) -> tuple[Problem, State]:
    """The problem with more networks; what is known of the others stays as it is."""
    positions = [locate(term.entries, term.features, columns) for term in terms]
    return gauss_newton.widen(problem, state, terms, positions, rng)
