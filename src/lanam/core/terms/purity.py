"""Purification of joint terms: removing all effects of fewer columns (method.md 6).

A table over a grid is pure if its mean over the data along any axis is zero at every entry of the others.
With the fraction ``S`` of the data in every cell, the pure part of a table ``t`` of two columns is
``t - a_i - b_j`` with

    sum_j S_ij (t_ij - a_i - b_j) = 0  for all i,     sum_i S_ij (t_ij - a_i - b_j) = 0  for all j,

the residual of the best additive fit (functional ANOVA for dependent columns); of three columns it is
``t - a_ij - b_ik - c_jk``, and so on. It is linear in ``t``: with pure tangent features, means and draws
are pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from string import ascii_lowercase

import numpy as np

from lanam.core.arrays import Array

#: Eigenvalue below which parts of a grid count as disconnected: the additive fit leaves out their own
#: intercepts.
_DISCONNECTED = 1e-9


def purify(table: Array, data_mass: Array, shape: tuple[int, ...]) -> Array:
    """The pure part of every column of ``table`` (B, P) on a grid of ``shape``."""
    letters = ascii_lowercase[: len(shape)]
    cells = data_mass.reshape(shape)
    # Functions of all columns but one, the last first.
    masses = [cells.sum(axis=k, keepdims=True) for k in reversed(range(len(shape)))]
    weights = [_given_others(cells, mass) for mass in masses]
    solution = _solution(weights, masses)
    ends = np.cumsum([mass.size for mass in masses])[:-1]
    values = table.reshape(*shape, -1).copy()
    # Twice: the second pass removes rounding errors.
    for _ in range(2):
        means = [
            np.einsum(f"{letters},{letters}P->{letters.replace(axis, '')}P", weight, values)
            for axis, weight in zip(reversed(letters), weights, strict=True)
        ]
        stacked = np.concatenate([mean.reshape(-1, values.shape[-1]) for mean in means])
        functions = solution @ stacked
        for mass, function in zip(masses, np.split(functions, ends), strict=True):
            values -= function.reshape(*mass.shape, -1)
    return np.asarray(values.reshape(table.shape))


def _given_others(cells: Array, mass: Array) -> Array:
    """The data's conditional distribution along the axis that ``mass`` is summed over, or the marginal one.

    The latter where the entries of the other axes have no data together.
    """
    others = tuple(k for k, size in enumerate(mass.shape) if size == cells.shape[k])
    seen = mass > 0.0
    return np.where(seen, cells, cells.sum(axis=others, keepdims=True)) / np.where(seen, mass, 1.0)


def _solution(weights: Sequence[Array], masses: Sequence[Array]) -> Array:
    """The matrix from the means along all axes to the functions of fewer columns with these means.

    It solves ``a_i + sum_j R_ij b_j = mean_i``. Cells with data depend on such cells only and are solved in
    symmetric form; the others follow.
    """
    matrix = _mean_matrix(weights, masses)
    mass = np.concatenate([margin.ravel() for margin in masses])
    seen, unseen = np.flatnonzero(mass > 0.0), np.flatnonzero(mass <= 0.0)
    root = np.sqrt(mass[seen])
    inverse = _inverse(matrix[np.ix_(seen, seen)] * root[:, None] / root, masses[0])
    result = np.zeros_like(matrix)
    result[np.ix_(seen, seen)] = inverse * root / root[:, None]
    inverse_unseen = np.linalg.pinv(matrix[np.ix_(unseen, unseen)], rcond=_DISCONNECTED)
    result[np.ix_(unseen, unseen)] = inverse_unseen
    result[unseen] -= inverse_unseen @ matrix[np.ix_(unseen, seen)] @ result[seen]
    return result


def _inverse(symmetric: Array, first_mass: Array) -> Array:
    """The inverse by elimination of the first function, whose block is the identity."""
    n_first = int((first_mass > 0.0).sum())
    lift = symmetric[:n_first, n_first:]
    size, vectors = np.linalg.eigh(symmetric[n_first:, n_first:] - lift.T @ lift)
    inverse = np.where(size > _DISCONNECTED, 1.0 / np.maximum(size, _DISCONNECTED), 0.0)
    rest = (vectors * inverse) @ vectors.T
    beside = -lift @ rest
    return np.block([[np.eye(n_first) - beside @ lift.T, beside], [beside.T, rest]])


def _mean_matrix(weights: Sequence[Array], masses: Sequence[Array]) -> Array:
    """The dependence of the means along every axis on every function of the others."""
    ends = np.cumsum([mass.size for mass in masses])
    matrix = np.eye(ends[-1])
    places = [
        np.arange(end - mass.size, end).reshape(mass.shape)
        for end, mass in zip(ends, masses, strict=True)
    ]
    for (place, weight), other in product(zip(places, weights, strict=True), places):
        if place is not other:
            # Broadcast together, the two index one cell.
            matrix[place, other] = weight
    return matrix
