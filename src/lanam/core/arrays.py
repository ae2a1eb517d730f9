"""The array types of the core."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.signedinteger[Any]]


def sum_by(index: NDArray[np.integer[Any]], values: Array, size: int) -> Array:
    """Sums of ``values`` per index below ``size``."""
    return np.asarray(np.bincount(index, weights=values, minlength=size), dtype=np.float64)


def quadratic_forms(rows: Array, covariance: Array) -> Array:
    """The diagonal of ``rows @ covariance @ rows.T``."""
    return np.asarray(((rows @ covariance) * rows).sum(axis=1))
