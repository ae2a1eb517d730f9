"""What lies within a column's range, and how much of it a picture shows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.data import CATEGORICAL, Column
from lanam.explain.bands import around
from lanam.explain.terms import Shape
from lanam.explain.values import Values

#: The share of the data in either tail that may be left out of sight if it lies far out.
TAIL = 0.005


def central_range(values: Array, density: Array) -> tuple[float, float]:
    """The range of the middle 99% of the data."""
    below = np.cumsum(density)
    last = len(below) - 1
    ends = np.minimum(np.searchsorted(below, [TAIL * below[-1], (1.0 - TAIL) * below[-1]]), last)
    return float(values[ends[0]]), float(values[ends[1]])


def trimmed(values: Array, density: Array, inner: Array) -> tuple[float, float]:
    """The data's range, unless a few rows lie so far out that they would squeeze all others."""
    left, right = central_range(values, density)
    width = right - left
    lowest = inner[0] if left - inner[0] <= width else left
    highest = inner[-1] if inner[-1] - right <= width else right
    return float(lowest), float(highest)


def in_bulk(shape: Shape) -> NDArray[np.bool_]:
    """Which values of a term belong to the bulk of the data."""
    if shape.kind == "categorical" or not len(shape.values):
        return np.asarray(shape.density > TAIL)
    left, right = central_range(shape.values, shape.density)
    return np.asarray((shape.values >= left) & (shape.values <= right))


def vertical_range(shape: Shape) -> tuple[float, float]:
    """Room for a whole curve, and for the bands of nearly all data; zero is in it.

    A band that is wide because a few rows lie far out may leave the picture: it would flatten the rest.
    """
    bulk = in_bulk(shape)
    lower, upper = around(shape.mean[bulk], shape.std[bulk], 2.0)
    parts = [np.zeros(1), shape.mean[shape.inside], lower, upper]
    for _, mean, std, density in shape.others:
        if density > 0.0:
            parts += [np.atleast_1d(end) for end in around(mean, std, 2.0)]
    everything = np.concatenate([part.ravel() for part in parts])
    return float(everything.min()), float(everything.max())


def edited_ranges(shape: Shape) -> list[tuple[float, float]]:
    """The ranges of a numeric column in which its term was changed by hand.

    Of a curve, everything between two of its values of which one was; of single values, up to halfway to
    the next.
    """
    values, edited = shape.values, shape.edited
    if shape.kind == "level":
        ends = np.concatenate([values[:1], 0.5 * (values[1:] + values[:-1]), values[-1:]])
    else:
        ends, edited = values, edited[1:] | edited[:-1]
    turns = np.flatnonzero(np.diff(edited.astype(int), prepend=0, append=0))
    return [(float(ends[a]), float(ends[b])) for a, b in turns.reshape(-1, 2)]


def is_inside(values: Values, column: Column) -> NDArray[np.bool_]:
    """Which values lie within the data's range.

    Knots are computed, so the outermost data value and its knot may differ by rounding.
    """
    if column.kind == CATEGORICAL:
        return np.ones(len(values), dtype=bool)
    slack = 1e-9 * (column.highest / 2.0 - column.lowest / 2.0)
    return np.asarray((values >= column.lowest - slack) & (values <= column.highest + slack))


def is_beyond(values: Array, column: Column) -> NDArray[np.bool_]:
    """Which values are numbers below or above all of the training data."""
    known = np.isfinite(column.lowest) and np.isfinite(column.highest)
    return np.asarray(~is_inside(values, column) & ~np.isnan(values) & known)
