"""A surface of two coordinates that is alike in all directions: spatial terms (method.md 6).

Its prior is a sum of isotropic Gaussian processes, one for each of a few lengths and each with its own
precision, so that the evidence chooses how rough the surface is. A process is known by its values at
``anchors``, entries of the grid (Nystroem): with kernel matrices ``K`` its features are

    K(entries, anchors) R^-1,     R' R = K(anchors, anchors),

and anchors are chosen where the data is, those first that leave most of it unexplained (pivoted Cholesky).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from lanam.core.arrays import Array, IntArray, Rng, sum_by
from lanam.core.terms.knots import Grid, Knots

#: Lengths of the processes, relative to the extent of the coordinates.
LENGTHS = (0.5, 0.15, 0.05, 0.017)

#: A process is known well enough where its anchors leave less than this fraction of its variance.
_UNEXPLAINED = 1e-2

#: Fractions of the knots between which the extent of a coordinate is measured.
_ENDS = (0.1, 0.9)

_JITTER = 1e-8


@dataclass(frozen=True)
class SpatialTerm:
    """An isotropic surface of two numeric columns in the same unit, main effects included.

    ``anchors`` are entries of the grid, for each length. Rows without a position have an effect of their
    own, with its own precision.
    """

    features: tuple[int, ...]
    entries: Grid
    anchors: tuple[tuple[int, ...], ...]
    prior_groups: str = "layer"

    kind = "spatial"
    joint = True
    pure = False
    architecture = None

    @cached_property
    def _missing(self) -> NDArray[np.bool_]:
        """Entries without a position."""
        return np.asarray(np.isnan(_positions(self.entries)).any(axis=1))

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """A group for each length, and one for rows without a position."""
        index = np.repeat(np.arange(len(self.anchors)), [len(some) for some in self.anchors])
        if self.prior_groups == "network":
            index = np.zeros_like(index)
        return np.append(index, index.max() + 1) if self._missing.any() else index

    def initial(self, rng: Rng | None) -> Array:
        """Surfaces are linear and have no expansion point."""
        return np.empty(0)

    def jacobian(self, expansion: Array) -> Array:
        """Features of all lengths at the entries (B, P)."""
        return self._features

    def prior_variance(self, precision: Array) -> Array:
        """The variance of the processes themselves at the entries, for one precision per group."""
        variance = 1.0 / precision[self.group_index]
        own = [variance[start] for start in np.cumsum([0, *map(len, self.anchors)])[:-1]]
        return np.where(self._missing, variance[-1], float(np.sum(own)))

    @cached_property
    def _features(self) -> Array:
        places = _positions(self.entries) / extent(self.entries)
        known = ~self._missing
        n_missing = int(self._missing.any())
        result = np.zeros((len(places), len(self.group_index)))
        parts = []
        for length, anchors in zip(LENGTHS, self.anchors, strict=True):
            at = places[list(anchors)]
            root = np.linalg.cholesky(_kernel(at, at, length) + _JITTER * np.eye(len(at)))
            parts.append(solve_triangular(root, _kernel(at, places[known], length), lower=True).T)
        result[np.ix_(known, np.arange(result.shape[1] - n_missing))] = np.hstack(parts)
        if n_missing:
            result[self._missing, -1] = 1.0
        return result


def choose_anchors(grid: Grid, mass: Array, most: int) -> tuple[tuple[int, ...], ...]:
    """For each length, at most ``most`` entries, where the data with this ``mass`` per entry is."""
    places = _positions(grid) / extent(grid)
    seen = np.flatnonzero((mass > 0.0) & ~np.isnan(places).any(axis=1))
    return tuple(
        tuple(seen[_pivots(places[seen], mass[seen], length, most)].tolist()) for length in LENGTHS
    )


def mass_of(grid: Grid, columns: Array, weight: Array) -> Array:
    """The weight of rows per entry of the grid, each at the nearest."""
    position = grid.locate(*columns.T)
    index = position.index.astype(np.int64)
    for stride, fraction in position.steps:
        index += stride * (fraction > 0.5)
    return sum_by(index, weight, len(grid))


def _pivots(places: Array, mass: Array, length: float, most: int) -> IntArray:
    """The points that explain most of a process, weighted by their mass, the best first."""
    left, total = np.ones(len(places)), float(mass.sum())
    columns = np.empty((len(places), min(most, len(places))))
    chosen = np.empty(columns.shape[1], dtype=np.intp)
    for k in range(len(chosen)):
        pivot = int(np.argmax(left * mass))
        if float(left @ mass) < _UNEXPLAINED * total:
            return chosen[:k]
        column = _kernel(places, places[pivot : pivot + 1], length)[:, 0]
        column -= columns[:, :k] @ columns[pivot, :k]
        columns[:, k] = column / np.sqrt(left[pivot])
        left = np.maximum(left - columns[:, k] ** 2, 0.0)
        left[pivot] = 0.0
        chosen[k] = pivot
    return chosen


def extent(grid: Grid) -> float:
    """The larger extent of the two coordinates, in their unit, without their tails."""
    return max(float(np.diff(np.quantile(axis.values, _ENDS))[0]) for axis in _coordinates(grid))


def _coordinates(grid: Grid) -> Sequence[Knots]:
    return [axis for axis in grid.axes if isinstance(axis, Knots)]


def _positions(grid: Grid) -> Array:
    """Both coordinates of every entry (B, 2), NaN where they are missing."""
    axes = [np.append(axis.values, [np.nan] * axis.n_single) for axis in _coordinates(grid)]
    return np.stack([places.ravel() for places in np.meshgrid(*axes, indexing="ij")], axis=1)


def _kernel(first: Array, second: Array, length: float) -> Array:
    """Matern's kernel of smoothness 3/2 between points."""
    squares = (
        np.square(first).sum(axis=1)[:, None]
        + np.square(second).sum(axis=1)
        - 2.0 * first @ second.T
    )
    distance = np.sqrt(3.0 * np.maximum(squares, 0.0)) / length
    return np.asarray((1.0 + distance) * np.exp(-distance))
