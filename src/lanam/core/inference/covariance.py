"""A covariance of coordinates: as a matrix, or by a triangular root, which costs less to compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from lanam.core.arrays import Array, IntArray, quadratic_forms, times_lower


class Covariance(Protocol):
    """What a step of the hyperparameters depends on."""

    def block(self, columns: slice) -> Array:
        """The diagonal block of some coordinates."""

    def variances(self) -> Array:
        """Its diagonal."""

    def of_sum(self, columns: IntArray) -> float:
        """The variance of the sum of some coordinates."""

    def forms(self, rows: Array) -> Array:
        """The variance of each row's combination of coordinates."""


@dataclass(frozen=True)
class Dense:
    """The whole matrix."""

    matrix: Array

    def block(self, columns: slice) -> Array:
        """The diagonal block of some coordinates."""
        return self.matrix[columns, columns]

    def variances(self) -> Array:
        """Its diagonal."""
        return np.diag(self.matrix)

    def of_sum(self, columns: IntArray) -> float:
        """The variance of the sum of some coordinates."""
        return float(self.matrix[np.ix_(columns, columns)].sum())

    def forms(self, rows: Array) -> Array:
        """The variance of each row's combination of coordinates."""
        return quadratic_forms(rows, self.matrix)


@dataclass(frozen=True)
class InverseRoot:
    """``root' root`` with a lower triangular root: a third of the operations of the whole matrix."""

    root: Array

    def block(self, columns: slice) -> Array:
        """The diagonal block of some coordinates."""
        # Above the diagonal there are zeros.
        part = self.root[columns.start :, columns]
        return part.T @ part

    def variances(self) -> Array:
        """Its diagonal."""
        return np.asarray(np.einsum("ij,ij->j", self.root, self.root))

    def of_sum(self, columns: IntArray) -> float:
        """The variance of the sum of some coordinates."""
        return float(np.square(self.root[:, columns].sum(axis=1)).sum())

    def forms(self, rows: Array) -> Array:
        """The variance of each row's combination of coordinates."""
        return np.asarray(
            np.square(times_lower(rows[:, : len(self.root)], self.root, transposed=True)).sum(
                axis=1
            )
        )


@dataclass(frozen=True)
class Factored:
    """The Cholesky factor ``L`` of a positive definite precision ``A = L L'``."""

    factor: Array

    @classmethod
    def of(cls, precision: Array) -> Factored:
        """Factor a precision."""
        # LAPACK's order is column by column: the transpose of a symmetric matrix needs no reordering.
        factor, info = lapack.dpotrf(precision.T, lower=1, clean=1)
        if info != 0:
            raise np.linalg.LinAlgError("the posterior precision is not positive definite")
        return cls(factor)

    def solve(self, target: Array) -> Array:
        """``A^-1 t``."""
        return np.asarray(lapack.dpotrs(self.factor, target, lower=1)[0])

    def leading(self, size: int) -> tuple[InverseRoot, float]:
        """The covariance of the first coordinates given the others, and its inverse's log-determinant."""
        factor = self.factor[:size, :size].copy(order="F")
        log_det = 2.0 * float(np.log(np.diag(factor)).sum())
        root = lapack.dtrtri(factor, lower=1, overwrite_c=1)[0] if size else factor
        return InverseRoot(root), log_det
