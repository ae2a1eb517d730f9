"""Array types of the core, and small functions of arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.signedinteger[Any]]

Rng: TypeAlias = np.random.Generator

#: One number, or one per output.
Intercept: TypeAlias = float | Array


def sum_by(index: NDArray[np.integer[Any]], values: Array, size: int) -> Array:
    """Sums of ``values`` per index below ``size``."""
    return np.asarray(np.bincount(index, weights=values, minlength=size), dtype=np.float64)


def slices(sizes: Iterable[int]) -> tuple[slice, ...]:
    """Slices of consecutive parts of these sizes."""
    return tuple(slice(*ends) for ends in pairwise(accumulate(sizes, initial=0)))


def quadratic_forms(rows: Array, covariance: Array) -> Array:
    """The diagonal of ``rows @ covariance @ rows.T``."""
    return np.asarray(((rows @ covariance) * rows).sum(axis=1))


def times_lower(rows: Array, root: Array, *, transposed: bool = False) -> Array:
    """``rows @ root`` for a lower triangular matrix: half of the operations of other products.

    Examples
    --------
    >>> root = np.array([[2.0, 0.0], [1.0, 3.0]])
    >>> times_lower(np.ones((1, 2)), root)
    array([[3., 3.]])
    >>> times_lower(np.ones((1, 2)), root, transposed=True)
    array([[2., 4.]])
    """
    if not rows.size:
        return np.zeros((len(rows), len(root)))
    # Column by column, as BLAS reads them, the product is that of the transposed.
    product = blas.dtrmm(1.0, root, rows.T, lower=1, trans_a=int(not transposed))
    return np.asarray(product.T)


#: Rows of a symmetric product that are computed at a time.
_SYMMETRIC_ROWS = 256


def symmetric_product(left: Array, right: Array) -> Array:
    """``left @ right`` where it is symmetric: blocks above the diagonal are not computed.

    Examples
    --------
    >>> matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> symmetric_product(matrix, matrix.T)
    array([[ 5., 11.],
           [11., 25.]])
    """
    result = np.empty((len(left), right.shape[1]))
    for start in range(0, len(left), _SYMMETRIC_ROWS):
        rows = slice(start, start + _SYMMETRIC_ROWS)
        result[rows, : rows.stop] = left[rows] @ right[:, : rows.stop]
        result[: rows.start, rows] = result[rows, : rows.start].T
    return result


#: Bits of numbers that only variances depend on: standard deviations change by a millionth.
_VARIANCE_BITS = 24


def fixed_point(matrix: Array) -> Array:
    """A matrix truncated to 24 bits, for what only variances depend on: a third of the bytes in a file.

    Numbers are integer multiples of ``2 ** (row + column)``, with one exponent per row and column. They are
    truncated, not rounded, which keeps the exponents; and row-major, as read from a file, so that products
    with them are the same to the bit.

    Examples
    --------
    >>> table = np.array([[1.0 / 3.0, 1e-9], [2000.0 / 3.0, 1e-6]])
    >>> (np.abs(fixed_point(table) - table) <= 2.0**-22 * table).all()
    np.True_
    >>> np.array_equal(fixed_point(fixed_point(table)), fixed_point(table))
    True
    """
    rows, columns = unit_exponents(matrix)
    units = rows[:, None] + columns
    # Adding zero turns minus zero into zero.
    return np.ascontiguousarray(np.ldexp(np.trunc(np.ldexp(matrix, -units)), units) + 0.0)


def unit_exponents(matrix: Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Exponents of rows and of columns, which add up to those of the numbers' units."""
    rows = np.frexp(np.max(np.abs(matrix), axis=1, initial=0.0))[1]
    relative = np.ldexp(np.abs(matrix), -rows[:, None])
    columns = np.frexp(np.max(relative, axis=0, initial=0.0))[1] - _VARIANCE_BITS
    return rows, columns


class Workspace:
    """Reusable arrays by name: memory that is new to a process costs more than the arithmetic in it.

    Not safe to share between threads.

    Examples
    --------
    >>> space = Workspace()
    >>> first = space.get("square", (2, 3))
    >>> second = space.get("square", (3, 2))
    >>> np.shares_memory(first, second), second.shape
    (True, (3, 2))
    """

    def __init__(self) -> None:
        self._arrays: dict[Hashable, NDArray[Any]] = {}

    def get(self, name: Hashable, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """An uninitialised array of this shape; it invalidates the previous one of this name."""
        size = int(np.prod(shape))
        buffer = self._arrays.get(name)
        if buffer is None or len(buffer) < size or buffer.dtype != dtype:
            buffer = self._arrays[name] = np.empty(size, dtype)
        return buffer[:size].reshape(shape)
