"""Networks as whitened, centred, rank-compressed tables (method.md 2b).

A term's function is linear in its tangent features: ``f = J theta`` with ``J`` the network's Jacobian
at the expansion point, centred over the data, and ``theta ~ N(0, Lambda^-1)``. (The network itself is
one such function, because its output is linear in the last layer.) ``Phi = J Lambda^(-1/2)`` has a
small numerical rank as seen by the data: ``Phi ~ T V'`` with orthonormal ``V`` (P x r). In the
coordinates ``z = V' Lambda^(1/2) theta`` the prior is ``N(0, I)`` and the function is ``T z``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from lanam.core.arrays import Array
from lanam.core.terms.knots import Grid, Knots
from lanam.core.terms.purity import purify
from lanam.core.terms.term import LevelTerm, Term

#: Directions whose squared prior size, in units of the noise and summed over the data, is below this are
#: not identifiable and are left to the prior.
RANK_TOLERANCE = 1e-3

#: The same for a pair, and for a triple, which have more and more directions near the threshold.
PAIR_TOLERANCE = 1e-2
TRIPLE_TOLERANCE = 0.1

#: The same in a term's first pass, before its prior was tuned, and where coordinates are many, until passes
#: have converged; unless the direction exceeds a hundredth of the largest.
COARSE_TOLERANCE = 0.1

#: A group is without data if its variance over the data is below this fraction of that over its entries.
_UNSEEN = 1e-8

#: What a factorisation may leave out of a direction's squared size, relative to the tolerance.
_LEFT_OUT = 1e-5


@dataclass(frozen=True)
class Compressed:
    """A term's prior in few coordinates: ``Phi ~ table @ basis.T``, and ``group_grams[g] = V_g' V_g``.

    ``sizes`` are the data's information on the coordinates if the term is alone.
    """

    table: Array
    basis: Array
    group_grams: Array
    sizes: Array

    @classmethod
    def whole(cls, table: Array, basis: Array) -> Compressed:
        """A term of independent levels, whose coordinates are all needed."""
        return cls(table, basis, np.ones((1, 1, 1)), np.full(basis.shape[1], np.inf))

    def coarser(self) -> Compressed:
        """The larger directions only, as in a term's first pass."""
        keep = self.sizes > _floor(self.sizes, coarse=True, tolerance=0.0)
        if keep.all():
            return self
        grams = (
            self.group_grams
            if len(self.group_grams) == 1
            else self.group_grams[:, keep][:, :, keep]
        )
        return Compressed(self.table[:, keep], self.basis[:, keep], grams, self.sizes[keep])


def tangent(term: Term, expansion: Array, data_mass: Array) -> Array:
    """The Jacobian at the entries, of the function centred over the data."""
    return centred(term, term.jacobian(expansion), data_mass)


def centred(term: Term, table: Array, data_mass: Array) -> Array:
    """A table without its mean over the data; of a pure joint term, its pure part."""
    if isinstance(term.entries, Grid) and term.pure:
        return _pure(term.entries, table, data_mass)
    return table - data_mass @ table


def _pure(grid: Grid, table: Array, data_mass: Array) -> Array:
    """The pure part, for which both ends of a period are one entry."""
    ends = [
        (k, len(axis.points) - 1)
        for k, axis in enumerate(grid.axes)
        if isinstance(axis, Knots) and axis.cyclic
    ]
    values, mass = table.reshape(*grid.shape, -1), data_mass.reshape(grid.shape)
    for k, end in ends:
        moved = np.moveaxis(mass, k, 0).copy()
        moved[0] += moved[end]
        mass = np.delete(np.moveaxis(moved, 0, k), end, axis=k)
        values = np.delete(values, end, axis=k)
    pure = purify(values.reshape(mass.size, -1), mass.ravel(), mass.shape)
    pure = pure.reshape(*mass.shape, -1)
    for k, end in reversed(ends):
        pure = np.insert(pure, end, np.take(pure, 0, axis=k), axis=k)
    return np.asarray(pure.reshape(table.shape))


def initial_precision(term: Term, jacobian: Array, mass: Array, prior_variance: float) -> Array:
    """Precisions that give every group an equal part of a prior variance averaged over the data."""
    if isinstance(term, LevelTerm) and term.high_cardinality:
        # The sum of mass @ square(eye - mass), without making the matrix.
        return np.array([(1.0 - float(mass @ mass)) / prior_variance])
    per_parameter = mass @ np.square(jacobian)
    per_group = np.bincount(term.group_index, weights=per_parameter)
    # A group without data is scaled over the entries: an unbounded variance would dominate the others where
    # the posterior is the prior.
    everywhere = np.bincount(term.group_index, weights=np.square(jacobian).mean(axis=0))
    per_group = np.where(per_group > _UNSEEN * everywhere, per_group, everywhere)
    return np.maximum(per_group, np.finfo(float).tiny) * (len(per_group) / prior_variance)


def compress(
    term: Term,
    jacobian: Array,
    precision: Array,
    curvature: Array,
    coarse: bool = False,
    dropped: bool = False,
) -> Compressed:
    """Whiten and compress; ``curvature`` is the data's precision per entry, in units of the noise.

    ``coarse`` keeps the larger directions only; a ``dropped`` term, without any, stays without.
    """
    if isinstance(term, LevelTerm) and term.high_cardinality:
        return Compressed.whole(jacobian, np.empty((0, 0)))
    if dropped:
        basis, n_groups = np.empty((jacobian.shape[1], 0)), int(term.group_index.max()) + 1
        grams = np.ones((1, 1, 1)) if n_groups == 1 else np.empty((n_groups, 0, 0))
        return Compressed(np.empty((len(jacobian), 0)), basis, grams, np.empty(0))
    root = np.sqrt(precision[term.group_index])
    phi = jacobian / root
    if isinstance(term, LevelTerm):
        return Compressed.whole(phi, np.eye(len(root)))
    tolerance = (RANK_TOLERANCE, PAIR_TOLERANCE, TRIPLE_TOLERANCE)[len(term.features) - 1]
    seen = np.flatnonzero(curvature)  # of a map these are few
    visible = phi[seen] * np.sqrt(curvature[seen])[:, None]
    basis, sizes = _visible_directions(visible, coarse, tolerance)
    return Compressed(phi @ basis, basis, _group_grams(term, basis), sizes)


def _group_grams(term: Term, basis: Array) -> Array:
    n_groups = int(term.group_index.max()) + 1
    if n_groups == 1:
        return np.ones((1, 1, 1))  # stands for the identity
    rows = [basis[term.group_index == group] for group in range(n_groups)]
    return np.stack([group.T @ group for group in rows])


def _visible_directions(seen: Array, coarse: bool, tolerance: float) -> tuple[Array, Array]:
    """Right singular vectors of ``seen`` whose squared singular value is above the tolerance, and these.

    By a pivoted Cholesky factorisation of the smaller Gram matrix, which ends where nothing visible is
    left, and the singular vectors of its few columns.
    """
    wide = seen.shape[0] < seen.shape[1]
    gram = seen @ seen.T if wide else seen.T @ seen
    largest = float(np.diag(gram).max(initial=0.0))
    smallest = max(_LEFT_OUT * tolerance, 1e-14 * largest)
    factor, pivots, rank, _ = lapack.dpstrf(gram, lower=1, tol=smallest)
    lower = np.empty((len(gram), rank))
    lower[pivots - 1] = np.tril(factor)[:, :rank]
    size, vectors = np.linalg.eigh(lower.T @ lower)
    keep = size > _floor(size, coarse, tolerance)
    left = (lower @ vectors[:, keep]) / np.sqrt(size[keep])
    basis = np.asarray(seen.T @ left / np.sqrt(size[keep])) if wide else left
    return basis, size[keep]


def _floor(size: Array, coarse: bool, tolerance: float) -> float:
    """Eigenvalues below this are invisible, or rounding of the largest one."""
    largest = float(size.max(initial=0.0))
    if coarse:
        tolerance = min(COARSE_TOLERANCE, 0.01 * largest)
    return max(tolerance, 1e-13 * largest)
