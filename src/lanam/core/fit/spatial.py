"""Spatial terms of a fit: knots and lengths as fine as its rows allow."""

from __future__ import annotations

import numpy as np

from lanam.core.arrays import Array
from lanam.core.inference.options import Options
from lanam.core.rows.summaries import DataSummary
from lanam.core.terms.knots import Grid, place_knots
from lanam.core.terms.spatial import SpatialTerm, choose_anchors, mass_of

#: The largest number of knots of each coordinate is this multiple of the root of the rows, within bounds,
#: and so is that of the anchors of each length.
_KNOTS, _FEWEST_KNOTS, _MOST_KNOTS = 0.5, 12, 64
_ANCHORS, _FEWEST_ANCHORS, _MOST_ANCHORS = 4.0, 30, 600

#: Knots beyond the data on either side, in ranges of the data.
_MARGINS = np.array([0.2, 1.0])


def spatial_terms(summary: DataSummary, options: Options) -> list[SpatialTerm]:
    """The surfaces of coordinates."""
    n_rows = summary.total_weight
    n_knots = int(np.clip(_KNOTS * np.sqrt(n_rows), _FEWEST_KNOTS, _MOST_KNOTS))
    terms = []
    for pair in options.knowledge.spatial:
        distributions = [summary.columns[feature].distribution for feature in pair]
        axes = [place_knots(distribution, n_knots, _MARGINS) for distribution in distributions]
        grid = Grid(tuple(axis for axis in axes if axis is not None))
        if len(grid.axes) < len(pair) or summary.sample is None:
            continue  # a constant coordinate, or no rows
        mass = mass_of(grid, summary.sample.columns[:, pair], summary.sample.weight)
        terms.append(spatial_term(pair, grid, mass, n_rows, options))
    return terms


def spatial_term(
    pair: tuple[int, ...], grid: Grid, mass: Array, n_rows: float, options: Options
) -> SpatialTerm:
    """The surface of a pair of coordinates, where the data with this ``mass`` per entry is."""
    most = int(np.clip(_ANCHORS * np.sqrt(n_rows), _FEWEST_ANCHORS, _MOST_ANCHORS))
    return SpatialTerm(pair, grid, choose_anchors(grid, mass, most), options.prior_groups)
