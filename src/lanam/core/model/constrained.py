"""The posterior of functions that obey constraints: draws of the free one, projected (docs, method page).

Without the constraints the coordinates of all constrained columns' terms are normal, ``z ~ N(m, S)``. A
draw is projected on the cone of functions that obey them, in the metric of ``S``; the other coordinates
follow by their regression on these. A truncated posterior would obey them, too, but it has no mass where a
curve is flat, and its bands miss the flat parts.

The model's means are the projection of ``m``, the mode under the constraints. Its covariance stays ``S``:
where the truth obeys the constraints the projected mean is nearer to it in the metric of ``S``, so bands of
this width cover it at least as often as those around ``m``. Draws are projected whenever they are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve

from lanam.core.arrays import Array, IntArray, fixed_point, slices
from lanam.core.model.cones import Active, Inequalities, project
from lanam.core.model.draws import JointRoot
from lanam.core.terms.constraints import Constraint, inequalities
from lanam.core.terms.knots import Entries

#: Draws of questions to a curve: a probability of 5% is known to .7%.
_N_DRAWS = 1000

#: Where columns are correlated in the posterior, each is projected in turn until none moves by more than
#: this many standard deviations: a mean, and a draw.
SETTLED = 1e-6
_SETTLED_DRAW = 0.01
_MOST_SWEEPS = 50

#: Of draws of free curves, the fraction that is most of them.
_MOST = 0.5

#: Violations below this fraction of a function's size are rounding.
_ROUNDING = 1e-13
#: The same where tables were truncated to 24 bits: of models fitted without constraints.
_TRUNCATION = 2.0**-20


@dataclass(frozen=True)
class ConstrainedTerm:
    """A term of a constrained column as it was fitted: its coordinates, entries and table."""

    place: slice
    features: tuple[int, ...]
    entries: Entries
    table: Array

    def along(self, feature: int, matrix: Array) -> Array:
        """A matrix of the entries of one column times the table (rows, entries of the others, r)."""
        axis = self.features.index(feature)
        table = self.table.reshape(*(len(one) for one in self.entries.axes), -1)
        product = np.tensordot(matrix, table, axes=(1, axis))
        values = product.reshape(len(matrix), -1, self.table.shape[1])
        if len(self.features) == 1:
            return np.asarray(values)
        # An interaction may say nothing, too: the main effect by itself obeys the constraint.
        return np.concatenate([values, np.zeros_like(values[:, :1])], axis=1)


@dataclass(frozen=True)
class ConstrainedPosterior:
    """The posterior of a model with ``R`` coordinates, and the constraints on ``r`` of them.

    ``terms`` are those of the constrained columns. ``free_mean`` (r,) is the mean of their coordinates
    without the constraints, ``mean`` (r,) under them, and ``cov_cholesky`` (R + 1, R + 1) the factor of all
    coordinates' covariance.
    """

    constraints: tuple[Constraint, ...]
    terms: tuple[ConstrainedTerm, ...]
    free_mean: Array
    cov_cholesky: Array
    mean: Array

    @cached_property
    def places(self) -> IntArray:
        """The constrained coordinates among all."""
        return np.concatenate([np.arange(t.place.start, t.place.stop) for t in self.terms])

    @cached_property
    def covariance(self) -> Array:
        """The covariance (r, r) of the constrained coordinates."""
        rows = self.cov_cholesky[self.places]
        return np.asarray(rows @ rows.T)

    @cached_property
    def regression(self) -> Array:
        """All coordinates' regression (R + 1, r) on the constrained ones."""
        rows = self.cov_cholesky[self.places]
        factor = np.linalg.cholesky(self.covariance), True
        return np.asarray(cho_solve(factor, rows @ self.cov_cholesky.T).T)

    @cached_property
    def _groups(self) -> tuple[_Group, ...]:
        """Constraints that share terms, together."""
        groups: list[tuple[set[int], list[Constraint]]] = []
        for constraint in self.constraints:
            own = {k for k, t in enumerate(self.terms) if constraint.feature in t.features}
            joined = [group for group in groups if group[0] & own]
            groups = [group for group in groups if not group[0] & own]
            members = own.union(*(terms for terms, _ in joined))
            groups.append((members, [c for _, found in joined for c in found] + [constraint]))
        widths = slices(term.table.shape[1] for term in self.terms)
        return tuple(self._group(sorted(terms), found, widths) for terms, found in groups if terms)

    def _group(
        self, members: Sequence[int], constraints: Sequence[Constraint], widths: Sequence[slice]
    ) -> _Group:
        places = np.concatenate([np.arange(widths[k].start, widths[k].stop) for k in members])
        within = slices(self.terms[k].table.shape[1] for k in members)
        cone = []
        for constraint in constraints:
            feature = constraint.feature
            own = [k for k, member in enumerate(members) if feature in self.terms[member].features]
            terms = [self.terms[members[k]] for k in own]
            axes = [term.entries.axes[term.features.index(feature)] for term in terms]
            matrices = inequalities(constraint, axes)
            parts = (term.along(feature, one) for term, one in zip(terms, matrices, strict=True))
            rounding = max(self._rounding(members[k], widths) for k in own)
            cone.append(Inequalities(tuple(within[k] for k in own), tuple(parts), rounding))
        root = np.linalg.cholesky(self.covariance[np.ix_(places, places)])
        columns = frozenset(constraint.feature for constraint in constraints)
        return _Group(places, root, tuple(cone), columns)

    def _rounding(self, k: int, widths: Sequence[slice]) -> float:
        """The rounding of a term's largest value: of its mean, and a standard deviation."""
        table, place = self.terms[k].table, widths[k]
        spread = np.linalg.norm(table @ self.cov_cholesky[self.terms[k].place], axis=1)
        size = float(np.max(np.abs(table @ self.free_mean[place]) + spread))
        truncated = np.array_equal(table, fixed_point(table))
        return size * (_TRUNCATION if truncated else _ROUNDING)

    def project(self, points: Array, tol: float = _SETTLED_DRAW) -> Array:
        """The nearest constrained coordinates (r, M) that obey all constraints, exactly.

        They are the nearest up to ``tol`` standard deviations.
        """
        if len(self._groups) > 1:
            points = self._settled(points, tol)
        result = points.copy()
        for group in self._groups:
            result[group.places], _ = project(points[group.places], group.root, group.cone)
        return result

    def _settled(self, points: Array, tol: float) -> Array:
        """The projection up to rounding, by groups in turn (block coordinate ascent in the dual)."""
        result, covariance = points.copy(), self.covariance
        pushes = [np.zeros((len(group.places), points.shape[1])) for group in self._groups]
        active: list[Active | None] = [None] * len(self._groups)
        for _ in range(_MOST_SWEEPS):
            moved = 0.0
            for k, group in enumerate(self._groups):
                own = group.places
                without = result - covariance[:, own] @ pushes[k]
                free = without[own]
                projected, active[k] = project(free, group.root, group.cone, active[k])
                push = cho_solve((group.root, True), projected - free)
                moved = max(moved, float(np.abs(group.root.T @ (push - pushes[k])).max()))
                result, pushes[k] = without + covariance[:, own] @ push, push
            if moved < tol:
                break
        return result

    def deviations(self, free: Array) -> Array:
        """Draws of all coordinates from the model's means (R + 1, M), of free ones from the free means."""
        own = free[self.places]
        projected = self.project(self.free_mean[:, None] + own)
        return np.asarray(free + self.regression @ (projected - self.mean[:, None] - own))

    @cached_property
    def draws(self) -> Array:
        """A fixed set of draws of the constrained coordinates (r, M), projected."""
        return self.project(self.free_mean[:, None] + self._free_draws)

    @cached_property
    def _free_draws(self) -> Array:
        """Fixed draws from ``N(0, S)``, which do not depend on the choice of coordinates.

        They are by symmetric roots, as all draws of functions (`draws`), and each comes with its negative.
        """
        numbers = []
        # Not in the order of the columns, which is arbitrary.
        order = np.argsort(
            np.argsort([-np.linalg.norm(term.table) for term in self.terms])
        ).tolist()
        for term, seed in zip(self.terms, order, strict=True):
            root, rng = (
                JointRoot(term.table, np.eye(term.table.shape[1])[None]),
                np.random.default_rng(seed),
            )
            numbers.append(root.normals(_N_DRAWS // 2, rng))
        size, vectors = np.linalg.eigh(self.covariance)
        root = (vectors * np.sqrt(np.maximum(size, 0.0))) @ vectors.T
        half = root @ np.concatenate(numbers)
        return np.concatenate([half, -half], axis=1)

    @property
    def violated(self) -> frozenset[int]:
        """The columns whose constraints are violated by most draws of the free curves."""
        free = self.free_mean[:, None] + self._free_draws
        found: set[int] = set()
        for group in self._groups:
            least = [
                part.values(free[group.places])[0].min(axis=0) + part.rounding
                for part in group.cone
            ]
            if np.mean(np.min(least, axis=0) < 0.0) > _MOST:
                found.update(group.columns)
        return frozenset(found)

    @property
    def binds(self) -> bool:
        """Whether any draw had violated a constraint."""
        free = self.free_mean[:, None] + self._free_draws
        return not np.array_equal(self.draws, free)

    def deviations_of(self, place: slice) -> Array | None:
        """The draws' deviations from the mean (r, M) in one of the terms; None for others."""
        starts = [term.place for term in self.terms]
        if place not in starts:
            return None
        own = slices(term.table.shape[1] for term in self.terms)[starts.index(place)]
        return np.asarray(self.draws[own] - self.mean[own, None])


@dataclass(frozen=True)
class _Group:
    """Constrained coordinates that share constraints, the root of their covariance, and their columns."""

    places: IntArray
    root: Array
    cone: tuple[Inequalities, ...]
    columns: frozenset[int]
