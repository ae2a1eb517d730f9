"""Numbers and texts into a page: small, exact enough, and never mistaken for markup."""

from __future__ import annotations

import base64
import gzip
import hashlib

import numpy as np
from numpy.typing import ArrayLike

from lanam.core.arrays import Array

#: What JavaScript reads them as, in little-endian bytes.
_KINDS = {"f4": "<f4", "f8": "<f8", "i4": "<i4"}


def pack(array: ArrayLike | None, kind: str = "f8") -> dict[str, str] | None:
    """An array as base64 of its bytes: single or double precision, or whole numbers; None stays None.

    First all first bytes, then all second ones, and so on: those of signs and exponents are much alike,
    and what is alike side by side is compressed to half.

    Examples
    --------
    >>> pack([1.0, 0.5], "f4")
    {'kind': 'f4', 'data': 'AAAAAIAAPz8='}
    """
    if array is None:
        return None
    numbers = np.ascontiguousarray(array, dtype=_KINDS[kind]).ravel()
    sorted_bytes = numbers.view(np.uint8).reshape(-1, numbers.itemsize).T.tobytes()
    return {"kind": kind, "data": base64.b64encode(sorted_bytes).decode("ascii")}


def rounded(array: object, digits: int = 6) -> object:
    """Nested lists of numbers with so many digits: what a drawing needs; None for what is not a number.

    Examples
    --------
    >>> rounded([1 / 3, 2e-9 / 3, float("nan")])
    [0.333333, 6.66667e-10, None]
    """
    if isinstance(array, list | tuple | np.ndarray):
        return [rounded(item, digits) for item in np.asarray(array).tolist()]
    if array is None or array != array:
        return None
    return float(f"{array:.{digits}g}") if isinstance(array, float) else array


def lower_triangle(factor: Array) -> Array:
    """The rows of a lower triangular matrix one after the other, without the zeros."""
    return np.asarray(factor[np.tril_indices(len(factor))])


def compressed(text: str) -> str:
    """A text as base64 of its compressed bytes, the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode("ascii")


def script_source(text: str) -> str:
    """What a content security policy calls a script of just this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
