"""Projections on cones: functions that obey linear inequalities (docs, method page).

Coordinates ``z = L u`` have the metric of their posterior covariance ``L L'``. With the inequalities
``G u >= 0`` the projection of ``u`` is the nearest point of a cone, whose dual problem is one of least
squares with coefficients that are not negative (Lawson and Hanson 1974, chapter 23):

    P(u) = u + G' l,    l = argmin_{l >= 0} |u + G' l|.

A function of several terms obeys an inequality at all values of the other columns: at the worst value of
each. So few rows of ``G`` are needed at a time, those that hold exactly and the worst of those that are
violated, until there are none of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from lanam.core.arrays import Array, IntArray

#: Rounds in which inequalities are added: few are needed, ten where a curve has only one convex form.
_MOST_ROUNDS = 100


@dataclass(frozen=True)
class Inequalities:
    """``sum_k parts[k][i, e_k] z[places[k]] >= 0`` for every row ``i`` and all choices of the ``e_k``.

    ``parts[k]`` (rows, E_k, r_k) are of a term, at each of the values ``e_k`` of its other columns.
    Violations of less than ``rounding`` are none.
    """

    places: tuple[slice, ...]
    parts: tuple[Array, ...]
    rounding: float = 0.0

    def values(self, points: Array) -> tuple[Array, IntArray]:
        """At each of the ``points`` (r, M): the least value of each row (rows, M), and where it is taken.

        The places have a last axis of terms.
        """
        of_terms = [
            np.tensordot(part, points[place], axes=1)
            for place, part in zip(self.places, self.parts, strict=True)
        ]
        where = np.stack([values.argmin(axis=1) for values in of_terms], axis=-1)
        least = np.sum([values.min(axis=1) for values in of_terms], axis=0)
        return np.asarray(least), where

    def rows(self, which: IntArray, where: IntArray, size: int) -> Array:
        """Rows of the matrix (n, size): inequalities ``which`` (n,) at values ``where`` (n, terms)."""
        result = np.zeros((len(which), size))
        for k, (place, part) in enumerate(zip(self.places, self.parts, strict=True)):
            result[:, place] = part[which, where[:, k]]
        return result


#: Of each point the inequalities that hold exactly, as columns of unit length in whitened coordinates.
Active: TypeAlias = list[Array]


def project(
    points: Array, root: Array, cone: Sequence[Inequalities], active: Active | None = None
) -> tuple[Array, Active]:
    """The points (r, M) as near as possible, in the metric of ``root root'``, that obey the inequalities.

    Also those that hold exactly, with which a projection of points nearby starts.
    """
    whitened = solve_triangular(root, points, lower=True)
    result = points.copy()
    active = [np.empty((len(root), 0))] * points.shape[1] if active is None else list(active)
    for k, columns in enumerate(active):
        if columns.size:
            active[k], result[:, k] = _nearest(whitened[:, k], columns, root)
    moving = np.arange(points.shape[1])
    for _ in range(_MOST_ROUNDS):
        violated = [_violated(part, result[:, moving]) for part in cone]
        left = np.flatnonzero(np.any([worst.any(axis=0) for worst, _ in violated], axis=0))
        if not len(left):
            break
        for j in left:
            k = moving[j]
            rows = [
                part.rows(np.flatnonzero(worst[:, j]), where[worst[:, j], j], len(root))
                for part, (worst, where) in zip(cone, violated, strict=True)
            ]
            new = root.T @ np.concatenate(rows).T
            columns = np.concatenate([active[k], new / np.linalg.norm(new, axis=0)], axis=1)
            active[k], result[:, k] = _nearest(whitened[:, k], columns, root)
        moving = moving[left]
    return result, active


def _nearest(whitened: Array, columns: Array, root: Array) -> tuple[Array, Array]:
    """The nearest point that obeys some inequalities, and those of them that hold exactly."""
    try:
        multipliers, _ = nnls(columns, -whitened, maxiter=100 * columns.shape[1])
    except RuntimeError:  # no convergence: zero obeys every inequality
        return columns[:, :0], np.zeros(len(root))
    held = columns[:, multipliers > 0.0]
    return held, root @ (whitened + held @ multipliers[multipliers > 0.0])


def _violated(cone: Inequalities, points: Array) -> tuple[NDArray[np.bool_], IntArray]:
    """The violated inequalities to add for each point: the worst of neighbours, and those beside it.

    And the values of the other columns at which they are violated.
    """
    values, where = cone.values(points)
    below = values < -cone.rounding
    padded = np.pad(values, ((1, 1), (0, 0)), constant_values=np.inf)
    worst = np.pad(below & (values <= padded[:-2]) & (values <= padded[2:]), ((1, 1), (0, 0)))
    return below & (worst[:-2] | worst[1:-1] | worst[2:]), where
