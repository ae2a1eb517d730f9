"""Ranges of columns: the range of the data, its bulk, and the range to plot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanam.core.arrays import Array
from lanam.data import CATEGORICAL, Column
from lanam.explain.bands import around
from lanam.explain.terms import Shape
from lanam.explain.values import Values

#: Fraction of the data in either tail that may be cut off if it lies far out.
TAIL = 0.005


def central_range(values: Array, density: Array) -> tuple[float, float]:
    """The range of the middle 99% of the data."""
    below = np.cumsum(density)
    last = len(below) - 1
    ends = np.minimum(np.searchsorted(below, [TAIL * below[-1], (1.0 - TAIL) * below[-1]]), last)
    return float(values[ends[0]]), float(values[ends[1]])


def trimmed(values: Array, density: Array, inner: Array) -> tuple[float, float]:
    """The data's range without far outlying tails, which would compress the rest of a plot."""
    left, right = central_range(values, density)
    width = right - left
    lowest = inner[0] if left - inner[0] <= width else left
    highest = inner[-1] if inner[-1] - right <= width else right
    return float(lowest), float(highest)


def data_histogram(shape: Shape, n_bins: int, ends: tuple[float, float]) -> tuple[Array, Array]:
    """The data's share in equal bins of a range, and their edges; fewer bins where floats are sparse."""
    spacing = float(np.spacing(np.abs(ends).max()))
    n_bins = int(np.clip((ends[1] - ends[0]) / (2.0 * spacing), 1, n_bins))
    shares, edges = np.histogram(shape.values, n_bins, ends, weights=shape.density)
    return shares, edges


def in_bulk(shape: Shape) -> NDArray[np.bool_]:
    """Which points of a term belong to the bulk of the data."""
    if shape.kind == "categorical" or not len(shape.values):
        return np.asarray(shape.density > TAIL)
    left, right = central_range(shape.values, shape.density)
    return np.asarray((shape.values >= left) & (shape.values <= right))


def vertical_range(
    shape: Shape,
    shown: NDArray[np.bool_] | None = None,
    half: float | Array = 2.0,
    classes: Sequence[int] | None = None,
) -> tuple[float, float]:
    """The range of a whole curve, of its band within the bulk of the data, and of zero.

    Bands that are wide because there is little data, such as those of unseen categories, do not count.
    ``shown`` are the points to count (by default those in the range to plot), ``half`` the width of
    the band in standard deviations, for each of ``classes`` if only some are shown.
    """

    def picked(table: ArrayLike) -> Array:
        array = np.asarray(table, dtype=np.float64)
        return array if classes is None else array[..., list(classes)]

    visible = _in_plot(shape) if shown is None else shown
    bulk = in_bulk(shape) & visible
    parts = [np.zeros(1), picked(shape.mean[visible])]
    parts += around(picked(shape.mean[bulk]), picked(shape.std[bulk]), half)
    for _, mean, std, density in shape.others:
        if density > 0.0:
            parts += around(picked(mean), picked(std), half if density > TAIL else 0.0)
    everything = np.concatenate([np.ravel(part) for part in parts])
    return float(everything.min()), float(everything.max())


def _in_plot(shape: Shape) -> NDArray[np.bool_]:
    """Which points of a term are in the range to plot."""
    if shape.kind == "categorical" or not shape.inside.any():
        return shape.inside
    low, high = trimmed(shape.values, shape.density, shape.values[shape.inside])
    return np.asarray(shape.inside & (shape.values >= low) & (shape.values <= high))


def two_values(shape: Shape) -> NDArray[np.bool_] | None:
    """Where the two values of a numeric column are, or None if it has more: a curve would mislead."""
    seen = np.asarray(shape.density > 0.0)
    return seen if shape.kind == "smooth" and seen.sum() == 2 else None


def edited_ranges(shape: Shape) -> list[tuple[float, float]]:
    """The ranges of a numeric column in which its term was edited.

    For a curve, up to the neighbouring points; for single values, halfway to the next ones.
    """
    values, edited = shape.values, shape.edited
    if shape.kind == "level":
        ends = np.concatenate([values[:1], 0.5 * values[1:] + 0.5 * values[:-1], values[-1:]])
    else:
        ends, edited = values, edited[1:] | edited[:-1]
    turns = np.flatnonzero(np.diff(edited.astype(int), prepend=0, append=0))
    return [(float(ends[a]), float(ends[b])) for a, b in turns.reshape(-1, 2)]


def is_inside(values: Values, column: Column) -> NDArray[np.bool_]:
    """Which values lie within the data's range, up to the rounding of knots."""
    if column.kind == CATEGORICAL:
        return np.ones(len(values), dtype=bool)
    slack = 1e-9 * (column.highest / 2.0 - column.lowest / 2.0)
    return np.asarray((values >= column.lowest - slack) & (values <= column.highest + slack))


def is_beyond(values: Array, column: Column) -> NDArray[np.bool_]:
    """Which values are numbers outside the range of the training data."""
    has_range = np.isfinite(column.lowest) and np.isfinite(column.highest)
    return np.asarray(~is_inside(values, column) & ~np.isnan(values) & has_range)
