"""Mergeable summaries of chunks of a column.

A `ColumnSketch` is a column's distribution: its distinct values and the weight at each if they are few,
and buckets of values otherwise. All floats in their order are the leaves of one binary tree of 64 levels,
and a bucket is one of its nodes (a q-digest: Shrivastava et al. 2004; mergeable: Agarwal et al. 2012), so
that any two buckets are nested or disjoint. Buckets of two chunks merge without loss, in any order; only
joining small buckets costs precision: at most ``PRECISION`` of the weight, for any number of chunks.

Hashes give the number of distinct values or rows (`count_distinct`), and which columns are duplicates
(signatures).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray
from lanam.core.terms.knots import Distribution, ascending, distinct_values, power_of_two_scale

Hashes: TypeAlias = NDArray[np.uint64]
Bytes: TypeAlias = NDArray[np.uint8]

#: A column with at most this many distinct values is exact; of others this many points are kept (0.4 MB).
#: As many hashes estimate the number of distinct values to a standard error of 0.8%.
EXACT_VALUES = 16384

#: Buckets around any value hold at most this fraction of the weight.
PRECISION = 1.0 / 2048.0

#: Numbers are hashed in blocks that stay in the cache.
_BLOCK = 16384

_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class ColumnSketch:
    """The distribution of a column's values, by weight.

    ``points`` are distinct values where ``level`` is 0; otherwise the mean of the values in a bucket,
    a node that many levels above the floats. They are in the order of the nodes' first floats, larger
    nodes first. The smallest and the largest value are always points of their own, and so is the value
    of any row that has more than ``PRECISION`` of the weight. ``n_rows`` have a value; rows without one
    weigh ``missing``. ``hashes`` estimate the number of distinct values once these are too many to keep.

    The error of any rank is at most ``PRECISION`` (0.05%), whatever the number of rows and chunks and the
    order in which they are merged, unless that takes more than ``EXACT_VALUES`` buckets (continuous columns
    need about 3000, and up to 10,000 where chunks differ).
    """

    points: Array
    mass: Array
    level: Bytes
    n_rows: int
    missing: float
    hashes: Array

    @property
    def exact(self) -> bool:
        """Whether the points are all distinct values."""
        return not self.level.any()

    @property
    def scale(self) -> float:
        """The power of two below the largest magnitude."""
        return power_of_two_scale(self.points)

    @property
    def n_distinct(self) -> float:
        """Number of distinct values, exact or estimated."""
        return float(len(self.points)) if self.exact else estimate_distinct(self.hashes)


def sketch_column(values: Array, weight: Array) -> ColumnSketch:
    """The sketch of a chunk of a column; missing values are NaN.

    Examples
    --------
    >>> sketch = sketch_column(np.array([2.0, 5.0, np.nan, 2.0]), np.ones(4))
    >>> sketch.points, sketch.mass, sketch.missing
    (array([2., 5.]), array([2., 1.]), 1.0)
    """
    ordered, weight = ascending(values + 0.0, weight)  # no negative zero
    n_rows = int(np.searchsorted(ordered, np.nan))
    missing = float(weight[n_rows:].sum())
    points, mass = distinct_values(ordered[:n_rows], weight[:n_rows])
    level = np.zeros(len(points), dtype=np.uint8)
    hashes = np.empty(0)
    if len(points) > EXACT_VALUES:
        hashes = count_distinct(_mix(points.view(np.uint64)))
        points, mass, level = _compress(points, mass, level)
    return ColumnSketch(points, mass, level, n_rows, missing, hashes)


def merge(first: ColumnSketch, second: ColumnSketch) -> ColumnSketch:
    """The sketch of two chunks together."""
    missing = first.missing + second.missing
    if first.n_rows == 0 or second.n_rows == 0:
        return replace(first if second.n_rows == 0 else second, missing=missing)
    points, mass, level = _in_order(
        np.concatenate([first.points, second.points]),
        np.concatenate([first.mass, second.mass]),
        np.concatenate([first.level, second.level]),
    )
    hashes = np.empty(0)
    if len(points) > EXACT_VALUES or level.any():
        hashes = merge_counts(_hashes_of(first), _hashes_of(second))
    if len(points) > EXACT_VALUES:
        points, mass, level = _compress(points, mass, level)
    n_rows = first.n_rows + second.n_rows
    return ColumnSketch(points, mass, level, n_rows, missing, hashes)


def distribution(sketch: ColumnSketch) -> Distribution:
    """The points of a sketch as a distribution.

    Its range and its mean are the column's; its variance is smaller by that within buckets.
    """
    points = ascending(sketch.points / sketch.scale, sketch.mass)
    return Distribution(*distinct_values(*points), sketch.scale, sketch.missing)


def to_arrays(sketch: ColumnSketch) -> tuple[Array, ...]:
    """A sketch as five arrays."""
    numbers = np.array([sketch.n_rows, sketch.missing], float)
    return sketch.points, sketch.mass, sketch.level.astype(np.float64), sketch.hashes, numbers


def from_arrays(arrays: Iterable[Array]) -> ColumnSketch:
    """The inverse of ``to_arrays``."""
    points, mass, level, hashes, (n_rows, missing) = arrays
    return ColumnSketch(points, mass, level.astype(np.uint8), int(n_rows), float(missing), hashes)


def hash_values(column: Array) -> Hashes:
    """A 64-bit hash of every value, the same on any machine; of either zero, and of any NaN, the same."""
    return _mix(_bits(column))


def hash_rows(columns: Array, response: Array) -> tuple[Hashes, Hashes]:
    """Two 64-bit hashes of every row of columns (n, D) and its response.

    The first does not depend on the columns' order; the second tells rows with permuted values apart.
    """
    unordered, ordered = np.empty((2, len(response)), dtype=np.uint64)
    for start in range(0, len(response), _BLOCK):
        part = slice(start, start + _BLOCK)
        of_response = _mix(_bits(response[part]))
        total, chained = of_response.copy(), of_response
        for feature in range(columns.shape[1]):
            bits = _bits(columns[part, feature])
            total += _mix(bits)
            # No weighted sum: in columns of few values different rows would often have the same one.
            chained = _mix(chained ^ bits)
        # The response has the place of no column.
        unordered[part], ordered[part] = _mix(total ^ of_response), chained
    return unordered, ordered


def count_distinct(hashes: Hashes) -> Array:
    """The smallest distinct hashes, at most ``EXACT_VALUES``, ascending and as fractions of the largest.

    Examples
    --------
    >>> first = count_distinct(hash_values(np.arange(60_000.0)))
    >>> second = count_distinct(hash_values(np.arange(50_000.0, 100_000.0)))
    >>> abs(estimate_distinct(merge_counts(first, second)) - 100_000) < 2500
    True
    """
    # Hashes are uniform: if they differ, the number below a bound is known beforehand.
    fraction = 1.1 * EXACT_VALUES / max(len(hashes), 1)
    while True:
        below = hashes if fraction >= 1.0 else hashes[hashes < np.uint64(fraction * 2.0**64)]
        # The leading 53 bits are exact as a float.
        smallest = _sorted_set((below >> np.uint64(11)).astype(np.float64) * 2.0**-53)
        if len(smallest) >= EXACT_VALUES or fraction >= 1.0:
            return smallest[:EXACT_VALUES]
        fraction *= 8.0


def merge_counts(first: Array, second: Array) -> Array:
    """The smallest hashes of two chunks together."""
    return _sorted_set(np.concatenate([first, second]))[:EXACT_VALUES]


def estimate_distinct(smallest: Array) -> float:
    """The number of distinct values: exact below ``EXACT_VALUES``, then by the density of hashes."""
    if len(smallest) < EXACT_VALUES:
        return float(len(smallest))
    return (EXACT_VALUES - 1) / float(smallest[-1])


def sign_numbers(column: Array, row_hash: Hashes) -> Hashes:
    """The signature (1,) of a numeric column: additive over chunks, and the same for equal columns.

    Examples
    --------
    >>> table = np.array([[1.0, 1.0, 2.0], [2.0, 2.0, 1.0]])
    >>> _, rows = hash_rows(table, np.zeros(2))
    >>> first, copy, other = (sign_numbers(table[:, feature], rows) for feature in range(3))
    >>> first == copy, first == other
    (array([ True]), array([False]))
    """
    return np.array([_mix(hash_values(column) ^ row_hash).sum()])


def sign_codes(column: Array, row_hash: Hashes, n_levels: int) -> Hashes:
    """Sums of the rows' hashes per code below ``n_levels``: additive over chunks, for ``sign_levels``."""
    sums = np.zeros(n_levels, dtype=np.uint64)
    valid = (column >= 0.0) & (column < n_levels)
    np.add.at(sums, column[valid].astype(np.intp), _mix(row_hash[valid]))
    return sums


def sign_levels(sums: Hashes) -> int:
    """The signature of a column of codes: equal if codes partition the rows in the same way."""
    return int(_mix(sums[sums != 0]).sum())


def sum_features(columns: Array) -> Hashes:
    """The sum of the hashes of rows: additive over chunks, and the same in any order of the rows."""
    return np.asarray(hash_rows(columns, np.zeros(len(columns)))[1].sum())


def sum_rows(row_hash: Hashes, weight: Array) -> Hashes:
    """The same of rows with weights, given their hashes."""
    return np.asarray(_mix(row_hash ^ hash_values(weight)).sum())


def _sorted_set(numbers: Array) -> Array:
    """Distinct numbers, ascending (``np.unique`` is much slower)."""
    ordered = np.sort(numbers)
    return np.delete(ordered, np.flatnonzero(ordered[1:] == ordered[:-1]))


def _hashes_of(sketch: ColumnSketch) -> Array:
    """The smallest hashes of a sketch's values, which an exact sketch does not keep."""
    if len(sketch.hashes):
        return sketch.hashes
    return count_distinct(_mix(sketch.points.view(np.uint64)))


# The tree. Leaves are floats, numbered in their order; a node of level l has the 2^l leaves whose numbers
# agree in all but the last l bits. Arrays of points are ordered by the first leaf, larger nodes first: then
# the descendants of a node are one run of the array, and the smallest node that contains a run is given by
# the common bits of its first and last leaf, or is the first of the run.


def _leaf(values: Array) -> Hashes:
    """The numbers of floats in their order."""
    # Flip all bits of negative numbers, and the sign of others.
    leaf = (values.view(np.int64) >> 63).view(np.uint64)
    leaf |= _SIGN
    leaf ^= values.view(np.uint64)
    return leaf


def _float(leaf: Hashes) -> Array:
    """The inverse of ``_leaf``, clipped to finite floats; minus zero becomes the float before it."""
    leaf = np.clip(leaf - (leaf == _SIGN - np.uint64(1)), _ENDS[0], _ENDS[1])
    return np.where(leaf >= _SIGN, leaf ^ _SIGN, ~leaf).view(np.float64)


_ENDS = _leaf(np.array([-1.0, 1.0]) * np.finfo(np.float64).max)


def _upper_bits(level: Bytes) -> Hashes:
    """The mask of the bits that the leaves of a node share."""
    return ~np.uint64(0) << level.astype(np.uint64)


def _first_leaf(points: Array, level: Bytes) -> Hashes:
    """The first leaf of each point's node."""
    leaf = _leaf(points)
    return leaf & _upper_bits(level) if level.any() else leaf


def _n_bits(numbers: Hashes) -> Bytes:
    """The bit length of integers."""
    # Without the bit next to the leading one, conversion to float cannot round up to a power of two.
    return np.frexp((numbers & ~(numbers >> np.uint64(1))).astype(np.float64))[1].astype(np.uint8)


def _join(
    points: Array, mass: Array, level: Bytes, leaf: Hashes, starts: IntArray
) -> tuple[Array, Array, Bytes]:
    """One point per run: the mean, in the smallest node that contains the run."""
    ends = np.append(starts[1:], len(points)) - 1
    joint = np.maximum(level[starts], _n_bits(leaf[starts] ^ leaf[ends]))
    scale = power_of_two_scale(points)
    total = np.add.reduceat(mass, starts)
    moment = points / scale
    moment *= mass
    with np.errstate(over="ignore"):
        mean = np.add.reduceat(moment, starts) / total * scale
    # Rounding must not put a mean outside of its node, nor change the only value of a leaf.
    upper = _upper_bits(joint)
    first = leaf[starts] & upper
    return np.clip(mean, _float(first), _float(first | ~upper)) + 0.0, total, joint


def _in_order(points: Array, mass: Array, level: Bytes) -> tuple[Array, Array, Bytes]:
    """Points in the order of their nodes, one per node."""
    leaf = _first_leaf(points, level)
    order = np.lexsort((~level, leaf))
    points, mass, level, leaf = points[order], mass[order], level[order], leaf[order]
    new = (leaf[1:] != leaf[:-1]) | (level[1:] != level[:-1])
    return _join(points, mass, level, leaf, np.flatnonzero(np.append(True, new)))


def _compress(points: Array, mass: Array, level: Bytes) -> tuple[Array, Array, Bytes]:
    """Join points until there are at most ``EXACT_VALUES``."""
    limit = PRECISION * float(mass.sum())
    while len(points) > EXACT_VALUES:
        kept = (mass > limit) | (points == points.min()) | (points == points.max())
        kept &= level == 0
        loose = mass.copy()
        loose[kept] = 0.0
        leaf = _first_leaf(points, level)
        runs = _light_runs(leaf, level, loose, limit)
        starts = kept.copy()
        starts[1:] |= kept[:-1]
        starts[runs] = True
        points, mass, level = _in_order(*_join(points, mass, level, leaf, np.flatnonzero(starts)))
        limit *= 2.0
    return points, mass, level


def _light_runs(leaf: Hashes, level: Bytes, mass: Array, limit: float) -> IntArray:
    """Starts of the largest nodes whose weight, with that of their ancestors, is within the limit.

    All runs that are too heavy are split at once, from the root downwards.
    """
    below = np.zeros(len(mass) + 1)
    np.cumsum(mass, out=below[1:])
    first, end, above = np.array([0]), np.array([len(leaf)]), np.zeros(1)
    starts = []
    while len(first):
        light = (above + below[end] - below[first] <= limit) | (end - first == 1)
        starts.append(first[light])
        first, end, above = first[~light], end[~light], above[~light]
        height = np.maximum(level[first], _n_bits(leaf[first] ^ leaf[end - 1]))
        half = np.uint64(1) << (height - np.uint8(1)).astype(np.uint64)
        middle = (leaf[first] & ~(half - np.uint64(1))) | half
        # Points of the node itself stay there.
        held = level[first] == height
        starts.append(first[held])
        above = above + np.where(held, mass[first], 0.0)
        cut = np.searchsorted(leaf, middle)
        first, end = np.concatenate([first + held, cut]), np.concatenate([cut, end])
        above = np.concatenate([above, above])
        filled = first < end
        first, end, above = first[filled], end[filled], above[filled]
    return np.concatenate(starts)


def _bits(column: Array) -> Hashes:
    """The bits of floats, equal for equal ones."""
    clean = column + 0.0
    clean[np.isnan(clean)] = np.nan
    return clean.view(np.uint64)


def _mix(numbers: Hashes) -> Hashes:
    """A bijective hash of integers (splitmix64)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    for start in range(0, len(mixed), _BLOCK):
        part = mixed[start : start + _BLOCK]
        part ^= part >> np.uint64(30)
        part *= np.uint64(0xBF58476D1CE4E5B9)
        part ^= part >> np.uint64(27)
        part *= np.uint64(0x94D049BB133111EB)
        part ^= part >> np.uint64(31)
    return mixed
