"""Checked access to the values and arrays of a file's content."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from lanam.core.arrays import Array, unit_exponents
from lanam.storage.errors import DamageError, require

#: The largest magnitude of numbers that predictions depend on: squares stay finite.
LARGEST = 1e150
#: The same for all other numbers: differences stay finite. Knots far beyond the data come close.
_LARGEST_OF_ALL = 8e307
#: Rows of a matrix that are computed at a time.
_BLOCK = 256

_DATE = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z"


class Fields:
    """An object with exactly these keys and some that it may lack; ``what`` names it in messages."""

    def __init__(
        self, values: object, what: str, keys: Collection[str], optional: Collection[str] = ()
    ) -> None:
        if not (isinstance(values, dict) and set(values) - set(optional) == set(keys)):
            raise DamageError(what)
        self.values: dict[str, Any] = values
        self.what = what

    def require(self, fits: bool, key: str) -> None:
        """Reject a field that is not valid."""
        require(fits, f"{key!r} of {self.what}")

    def text(self, key: str, allowed: Collection[str] | None = None) -> str:
        """A string, one of those that are allowed."""
        value = self.values[key]
        self.require(isinstance(value, str) and (allowed is None or value in allowed), key)
        return str(value)

    def date(self, key: str) -> str:
        """A time in UTC, such as "2024-05-01T12:00:00Z"."""
        value = self.text(key)
        self.require(re.fullmatch(_DATE, value, re.ASCII) is not None, key)
        return value

    def flag(self, key: str) -> bool:
        """A boolean."""
        self.require(type(self.values[key]) is bool, key)
        return bool(self.values[key])

    def whole(self, key: str, least: int = 0, most: int = 1 << 53) -> int:
        """An integer within limits, both included."""
        value = self.values[key]
        self.require(type(value) is int and least <= value <= most, key)
        return int(value)

    def wholes(self, key: str, least: int, most: int) -> tuple[int, ...]:
        """A list of such integers."""
        return tuple(each.whole(key, least, most) for each in self._split(key))

    def number(self, key: str, least: float = -math.inf, largest: float = _LARGEST_OF_ALL) -> float:
        """A finite number, bounded below and in magnitude."""
        value = self.values[key]
        self.require(type(value) in (int, float), key)
        self.require(least <= value and abs(value) <= largest, key)
        return float(value)

    def numbers(
        self, key: str, least: float = -math.inf, largest: float = _LARGEST_OF_ALL
    ) -> tuple[float, ...]:
        """A list of such numbers."""
        return tuple(each.number(key, least, largest) for each in self._split(key))

    def _split(self, key: str) -> Iterator[Fields]:
        """Each item of a list as a field of the same name."""
        return (Fields({key: item}, self.what, [key]) for item in self.items(key))

    def items(self, key: str) -> list[Any]:
        """A list of anything."""
        value = self.values[key]
        self.require(isinstance(value, list), key)
        return list(value)


class Arrays:
    """The arrays of a file, each of which must be taken once."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._left = dict(arrays)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(
        self,
        name: str,
        dtype: str,
        shape: tuple[int | None, ...],
        largest: float = _LARGEST_OF_ALL,
    ) -> np.ndarray:
        """An array of this type and shape (None is any length), its floats bounded in magnitude."""
        require(name in self._left, f"it has no {name!r}")
        array = self._left.pop(name)
        fits = array.dtype == np.dtype(dtype) and array.ndim == len(shape)
        require(fits, f"the type of {name!r}")
        same = all(n is None or n == m for n, m in zip(shape, array.shape, strict=True))
        require(same, f"the shape of {name!r}")
        if array.dtype.kind == "f":
            _require_magnitude(array, largest, name)
        return array

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of an array that is not taken yet."""
        require(name in self._left, f"it has no {name!r}")
        return tuple(self._left[name].shape)

    def take_matrix(self, name: str, shape: tuple[int, int], *, triangle: bool = False) -> Array:
        """A matrix written by `put_matrix`."""
        n_stored = shape[0] * (shape[0] + 1) // 2
        stored: tuple[int, ...] = (n_stored,) if triangle else shape[::-1]
        if name in self:
            numbers = self.take(name, "f8", stored, LARGEST)
            return _spread(numbers, shape[0]) if triangle else np.ascontiguousarray(numbers.T)
        digits = self.take(f"{name} digits", "i4", stored)
        rows = self.take(f"{name} rows", "i2", shape[:1]).astype(np.int32)
        columns = self.take(f"{name} columns", "i2", shape[1:]).astype(np.int32)
        matrix = _spread(digits, shape[0]) if triangle else digits.T.astype(np.float64, order="C")
        for start in range(0, len(matrix), _BLOCK):  # no second matrix of that size
            block = slice(start, start + _BLOCK)
            with np.errstate(over="ignore"):
                np.ldexp(matrix[block], rows[block, None] + columns, out=matrix[block])
        _require_magnitude(matrix, LARGEST, name)
        return matrix

    def within(self, prefix: str) -> Arrays:
        """Take the arrays whose names have a prefix; the prefix is removed."""
        names = [name for name in self._left if name.startswith(prefix)]
        return Arrays({name.removeprefix(prefix): self._left.pop(name) for name in names})

    def require_none_left(self) -> None:
        """Reject arrays that were not taken."""
        require(not self._left, "it has arrays that belong to nothing")


def put_matrix(
    arrays: dict[str, np.ndarray], name: str, matrix: Array, *, triangle: bool = False
) -> None:
    """Add a matrix, as integer multiples of powers of two where that is exact (see ``fixed_point``).

    Column by column, which compresses better; of a triangular one, the lower triangle row by row.
    """

    def kept(numbers: np.ndarray) -> np.ndarray:
        return numbers[np.tril_indices(len(matrix))] if triangle else numbers.T

    rows, columns = unit_exponents(matrix)
    units = rows[:, None] + columns
    digits = np.rint(np.ldexp(matrix, -units))
    exact = np.array_equal(np.ldexp(digits, units), matrix)
    if not exact or np.abs(digits).max(initial=0.0) >= 2.0**31:
        arrays[name] = kept(matrix)
        return
    arrays[f"{name} digits"] = kept(digits).astype(np.int32)
    arrays[f"{name} rows"] = rows.astype(np.int16)
    arrays[f"{name} columns"] = columns.astype(np.int16)


def _spread(numbers: np.ndarray, size: int) -> Array:
    """A lower triangular matrix from the rows of its triangle."""
    matrix, start = np.zeros((size, size)), 0
    for k in range(size):  # indices of all elements would take more memory than the matrix
        matrix[k, : k + 1] = numbers[start : start + k + 1]
        start += k + 1
    return matrix


def _require_magnitude(array: np.ndarray, largest: float, name: str) -> None:
    """Reject NaN and numbers beyond a magnitude."""
    ends = array.min(initial=0.0), array.max(initial=0.0)
    require(all(abs(end) <= largest for end in ends), f"a number in {name!r}")


def each(values: object, what: str) -> Iterator[tuple[int, Any]]:
    """The items of a list, enumerated."""
    if not isinstance(values, list):
        raise DamageError(what)
    return enumerate(values)
