"""Constraints on a column: linear inequalities of the tables of all its terms (docs, method page).

A function of a column increases if it does from each entry to the next, and is convex if its slope does.
Both are inequalities ``A f >= 0`` at the entries of its main effect. With interactions they are of the sum,

    A [f_a(x) + sum_b f_ab(x, b)] >= 0    at every x, and for all values b of the other columns,

and of the main effect alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lanam.core.arrays import Array
from lanam.core.terms.knots import Categories, Entries, Knots

#: Knots that agree to this fraction of their range are one.
_SAME = 1e-12


@dataclass(frozen=True)
class Constraint:
    """What is known of the effect of a column between ``low`` and ``high``, in the column's unit.

    ``monotone`` is 1 (increasing), -1 (decreasing) or 0, ``curved`` 1 (convex), -1 (concave) or 0.
    Categories have the order of their codes.
    """

    feature: int
    monotone: int = 0
    curved: int = 0
    low: float = -np.inf
    high: float = np.inf


def inequalities(constraint: Constraint, axes: Sequence[Entries]) -> list[Array]:
    """The matrices ``A`` of a column in each of its terms, given its entries there.

    They have a row per inequality, in one order for all terms, and a column per entry.
    """
    points = _points(axes)
    if isinstance(axes[0], Knots):  # the ends of the range lie between two knots
        ends = np.clip([constraint.low, constraint.high], points[0], points[-1])
        points = np.union1d(points, ends)
    points = points[(points >= constraint.low) & (points <= constraint.high)]
    differences = _differences(points, constraint)
    return [differences @ _reads(axis, points) for axis in axes]


def _points(axes: Sequence[Entries]) -> Array:
    """The codes of a column of categories, or the knots of all its terms."""
    first = axes[0]
    if isinstance(first, Categories):
        return np.arange(len(first.entry_of), dtype=np.float64)
    points = np.unique(np.concatenate([axis.values for axis in axes if isinstance(axis, Knots)]))
    distinct = np.diff(points, prepend=-np.inf) > _SAME * (points[-1] - points[0])
    return np.asarray(points[distinct])


def _reads(axis: Entries, points: Array) -> Array:
    """The values at the points, as weights (P, B) of the entries."""
    if isinstance(axis, Categories):
        return np.eye(len(axis))[axis.entry_of[points.astype(np.intp)]]
    assert isinstance(axis, Knots), "single values have no neighbours"
    unit = np.eye(len(axis))[:, : len(axis.points)]
    return np.stack([np.interp(points, axis.values, row) for row in unit], axis=1)


def _differences(points: Array, constraint: Constraint) -> Array:
    """The rows of ``A`` for a function that is linear between the points."""
    steps = np.diff(np.eye(len(points)), axis=0)
    parts = []
    if constraint.monotone:
        parts.append(constraint.monotone * steps)
    if constraint.curved:
        # By how much a point lies below the line of its neighbours: in the function's unit, as a step is.
        left, right = np.diff(points)[:-1, None], np.diff(points)[1:, None]
        below = left * steps[1:] - right * steps[:-1]
        parts.append(constraint.curved * below / (left + right))
    return np.concatenate(parts)
