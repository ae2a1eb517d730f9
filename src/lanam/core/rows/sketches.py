"""Columns and rows that are not in memory, in short: summaries of chunks that can be merged.

A `ColumnSketch` is a column's distribution: its distinct values and the weight at each, as long as they
are few, and buckets of values otherwise. Buckets are nested or apart, never across each other: all
floats in their order are the leaves of one binary tree of 64 levels, and a bucket is one of its nodes
(a q-digest: Shrivastava et al. 2004; mergeable: Agarwal et al. 2012). So buckets of two chunks merge
without loss, in whatever order, and only taking small buckets together costs precision: at most
``PRECISION`` of the weight, however many chunks there are.

The rest is made of hashes: how many values or rows are distinct (`DistinctCount`), and which columns
are the same (signatures).
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

#: A column with at most this many distinct values is known exactly; of others so many points are kept,
#: which is 0.4 MB. As many hashes tell how many distinct values there are, to 0.8%.
EXACT_VALUES = 16384

#: Buckets around any place hold at most this share of the weight.
PRECISION = 1.0 / 2048.0

#: Numbers are mixed in blocks that stay in the cache.
_BLOCK = 16384

_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class DistinctCount:
    """How many different hashes were seen: the smallest of them, ascending and as shares of the largest.

    There are at most ``EXACT_VALUES``. Below that they are all; otherwise the last tells how close
    together all are. Its one array is all there is to send.

    Examples
    --------
    >>> first = count_distinct(hash_values(np.arange(60_000.0)))
    >>> second = count_distinct(hash_values(np.arange(50_000.0, 100_000.0)))
    >>> both = merge_counts(first, second)
    >>> abs(both.estimate - 100_000) < 3 * both.relative_error * 100_000
    True
    """

    smallest: Array

    @property
    def estimate(self) -> float:
        """How many there are; exact below ``EXACT_VALUES``."""
        if len(self.smallest) < EXACT_VALUES:
            return float(len(self.smallest))
        return (EXACT_VALUES - 1) / float(self.smallest[-1])

    @property
    def relative_error(self) -> float:
        """The standard error of the estimate, as a share of it."""
        return 0.0 if len(self.smallest) < EXACT_VALUES else (EXACT_VALUES - 2) ** -0.5


@dataclass(frozen=True)
class ColumnSketch:
    """The distribution of a column's values, by weight.

    ``points`` are distinct values where ``level`` is 0; otherwise the mean of the values in a bucket,
    a node that many levels above the floats. They are in the order of the nodes' first floats, larger
    nodes first. The smallest and the largest value are always points of their own, and so is the value
    of any row that has more than ``PRECISION`` of the weight.

    ``n_rows`` have a value; rows without one weigh ``missing``. ``distinct`` counts values once there are
    too many to know all.

    The share of the weight up to any value is that of ``points`` but for an error, and so is the rank of
    any quantile. The error is at most ``PRECISION`` (0.05%), whatever the number of rows and
    chunks and the order in which they are merged, unless more than ``EXACT_VALUES`` buckets would be
    needed for that (continuous columns need about 3000, and up to 10,000 where chunks differ); then it is
    larger.
    """

    points: Array
    mass: Array
    level: Bytes
    n_rows: int
    missing: float
    distinct: DistinctCount

    @property
    def exact(self) -> bool:
        """Whether the points are all values there are."""
        return not self.level.any()

    @property
    def scale(self) -> float:
        """The power of two below the largest magnitude."""
        return power_of_two_scale(self.points)

    @property
    def n_distinct(self) -> float:
        """How many distinct values there are: exact, or to ``distinct.relative_error``."""
        return float(len(self.points)) if self.exact else self.distinct.estimate


def sketch_column(values: Array, weight: Array) -> ColumnSketch:
    """Sort a chunk of a column into its sketch; a missing value is not a number.

    Examples
    --------
    >>> sketch = sketch_column(np.array([2.0, 5.0, np.nan, 2.0]), np.ones(4))
    >>> sketch.points, sketch.mass, sketch.missing
    (array([2., 5.]), array([2., 1.]), 1.0)
    """
    ordered, weight = ascending(values + 0.0, weight)  # one zero
    n_rows = int(np.searchsorted(ordered, np.nan))
    missing = float(weight[n_rows:].sum())
    points, mass = distinct_values(ordered[:n_rows], weight[:n_rows])
    level = np.zeros(len(points), dtype=np.uint8)
    distinct = _NO_HASHES
    if len(points) > EXACT_VALUES:
        distinct = count_distinct(_mix(points.view(np.uint64)))
        points, mass, level = _compress(points, mass, level)
    return ColumnSketch(points, mass, level, n_rows, missing, distinct)


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
    distinct = _NO_HASHES
    if len(points) > EXACT_VALUES or level.any():
        distinct = merge_counts(_distinct_of(first), _distinct_of(second))
    if len(points) > EXACT_VALUES:
        points, mass, level = _compress(points, mass, level)
    n_rows = first.n_rows + second.n_rows
    return ColumnSketch(points, mass, level, n_rows, missing, distinct)


def distribution(sketch: ColumnSketch) -> Distribution:
    """The points of a sketch, as ``summarise`` gives those of a column in memory.

    Their ends are the column's ends, and their mean is its mean; they spread a little less, by what
    values within a bucket differ.
    """
    points = ascending(sketch.points / sketch.scale, sketch.mass)
    return Distribution(*distinct_values(*points), sketch.scale, sketch.missing)


def to_arrays(sketch: ColumnSketch) -> tuple[Array, ...]:
    """A sketch as five arrays."""
    level, numbers = (
        sketch.level.astype(np.float64),
        np.array([sketch.n_rows, sketch.missing], float),
    )
    return sketch.points, sketch.mass, level, sketch.distinct.smallest, numbers


def from_arrays(arrays: Iterable[Array]) -> ColumnSketch:
    """The other way round."""
    points, mass, level, smallest, (n_rows, missing) = arrays
    distinct = DistinctCount(smallest)
    return ColumnSketch(points, mass, level.astype(np.uint8), int(n_rows), float(missing), distinct)


def hash_values(column: Array) -> Hashes:
    """A number of 64 bits for every value: the same for the same value, on any machine.

    Zeros are the same whatever their sign, and so are missing values.
    """
    return _mix(_bits(column))


def hash_rows(columns: Array, response: Array) -> Hashes:
    """A number of 64 bits for every row of columns (n, D) and its response."""
    hashes = np.empty(len(response), dtype=np.uint64)
    for start in range(0, len(response), _BLOCK):
        part = slice(start, start + _BLOCK)
        mixed = _mix(_bits(response[part]))
        for feature in range(columns.shape[1]):
            mixed = _mix(mixed ^ _bits(columns[part, feature]))
        hashes[part] = mixed
    return hashes


def count_distinct(hashes: Hashes) -> DistinctCount:
    """Count the different ones among hashes."""
    # Hashes are spread evenly: how many lie below a bound can be told beforehand, if they differ.
    share = 1.1 * EXACT_VALUES / max(len(hashes), 1)
    while True:
        found = hashes if share >= 1.0 else hashes[hashes < np.uint64(share * 2.0**64)]
        # The leading 53 bits are exact as a float.
        smallest = _sorted_set((found >> np.uint64(11)).astype(np.float64) * 2.0**-53)
        if len(smallest) >= EXACT_VALUES or share >= 1.0:
            return DistinctCount(smallest[:EXACT_VALUES])
        share *= 8.0


def merge_counts(first: DistinctCount, second: DistinctCount) -> DistinctCount:
    """The count of two chunks together."""
    both = np.concatenate([first.smallest, second.smallest])
    return DistinctCount(_sorted_set(both)[:EXACT_VALUES])


def sign_numbers(column: Array, row_hash: Hashes) -> Hashes:
    """The signature (1,) of a numeric column, by the hashes of its whole rows.

    Signatures of chunks add up, and are the same for columns that have the same value in every row.

    Examples
    --------
    >>> table = np.array([[1.0, 1.0, 2.0], [2.0, 2.0, 1.0]])
    >>> rows = hash_rows(table, np.zeros(2))
    >>> first, twin, other = (sign_numbers(table[:, feature], rows) for feature in range(3))
    >>> first == twin, first == other
    (array([ True]), array([False]))
    """
    return np.array([_mix(hash_values(column) ^ row_hash).sum()])


def sign_codes(column: Array, row_hash: Hashes, n_levels: int) -> Hashes:
    """What the signature of a column of codes below ``n_levels`` is made of: sums of every level's rows.

    The last entry of the array (K + 1,) is of rows without a level. Those of chunks add up, and all are
    one number by ``sign_levels``.
    """
    sums = np.zeros(n_levels + 1, dtype=np.uint64)
    known = (column >= 0.0) & (column < n_levels)
    np.add.at(sums, np.where(known, column, n_levels).astype(np.intp), _mix(row_hash))
    return sums


def sign_levels(sums: Hashes) -> int:
    """The signature of a column of codes: the same where the same rows share a level.

    Whatever the levels' codes, and whether there are more that no row has. Rows without a level are
    the rest.
    """
    levels = sums[:-1]
    return int(_mix(levels[levels != 0]).sum())


def _sorted_set(numbers: Array) -> Array:
    """Distinct ones among numbers, ascending (``np.unique`` is slower by far)."""
    ordered = np.sort(numbers)
    return np.delete(ordered, np.flatnonzero(ordered[1:] == ordered[:-1]))


_NO_HASHES = DistinctCount(np.empty(0))


def _distinct_of(sketch: ColumnSketch) -> DistinctCount:
    """The count of a sketch's values, which one that is exact does not keep."""
    if len(sketch.distinct.smallest):
        return sketch.distinct
    return count_distinct(_mix(sketch.points.view(np.uint64)))


# The tree. A leaf is a float, numbered in the order of their values; a node of level l has the 2^l
# leaves whose numbers agree in all but the last l bits. Arrays of points are in the order of the first
# leaf, larger nodes first: then what is below a node is one run of the array, and the node that holds
# all of a run has the first leaf and the last one's in common, or is the run's first.


def _leaf(values: Array) -> Hashes:
    """The numbers of floats in the order of their values."""
    # Of negative numbers all bits are turned, of others the sign.
    leaf = (values.view(np.int64) >> 63).view(np.uint64)
    leaf |= _SIGN
    leaf ^= values.view(np.uint64)
    return leaf


def _float(leaf: Hashes) -> Array:
    """The other way round; what is beyond the largest floats is those.

    Minus zero, which is none of the values, is the float before it.
    """
    leaf = np.clip(leaf - (leaf == _SIGN - np.uint64(1)), _ENDS[0], _ENDS[1])
    return np.where(leaf >= _SIGN, leaf ^ _SIGN, ~leaf).view(np.float64)


_ENDS = _leaf(np.array([-1.0, 1.0]) * np.finfo(np.float64).max)


def _upper_bits(level: Bytes) -> Hashes:
    """What the leaves of a node have in common, as a mask."""
    return ~np.uint64(0) << level.astype(np.uint64)


def _first_leaf(points: Array, level: Bytes) -> Hashes:
    """The first leaf of the nodes that hold some points."""
    leaf = _leaf(points)
    return leaf & _upper_bits(level) if level.any() else leaf


def _n_bits(numbers: Hashes) -> Bytes:
    """How many bits whole numbers have."""
    # Without the bit next to the leading one, conversion cannot round up to the next power of two.
    return np.frexp((numbers & ~(numbers >> np.uint64(1))).astype(np.float64))[1].astype(np.uint8)


def _join(
    points: Array, mass: Array, level: Bytes, leaf: Hashes, starts: IntArray
) -> tuple[Array, Array, Bytes]:
    """One point for every run of an array of points: their mean, in the node that holds all."""
    ends = np.append(starts[1:], len(points)) - 1
    joint = np.maximum(level[starts], _n_bits(leaf[starts] ^ leaf[ends]))
    scale = power_of_two_scale(points)
    total = np.add.reduceat(mass, starts)
    moment = points / scale
    moment *= mass
    with np.errstate(over="ignore"):
        mean = np.add.reduceat(moment, starts) / total * scale
    # Rounding must not put the mean of a node outside (beyond all floats, for the largest), nor change
    # the only value of a leaf.
    upper = _upper_bits(joint)
    first = leaf[starts] & upper
    return np.clip(mean, _float(first), _float(first | ~upper)) + 0.0, total, joint


def _in_order(points: Array, mass: Array, level: Bytes) -> tuple[Array, Array, Bytes]:
    """Points in the order of their nodes, one a node."""
    leaf = _first_leaf(points, level)
    order = np.lexsort((~level, leaf))
    points, mass, level, leaf = points[order], mass[order], level[order], leaf[order]
    new = (leaf[1:] != leaf[:-1]) | (level[1:] != level[:-1])
    return _join(points, mass, level, leaf, np.flatnonzero(np.append(True, new)))


def _compress(points: Array, mass: Array, level: Bytes) -> tuple[Array, Array, Bytes]:
    """Take points together until there are at most ``EXACT_VALUES``."""
    limit = PRECISION * float(mass.sum())
    while len(points) > EXACT_VALUES:
        own = (mass > limit) | (points == points.min()) | (points == points.max())
        own &= level == 0
        loose = mass.copy()
        loose[own] = 0.0
        leaf = _first_leaf(points, level)
        runs = _light_runs(leaf, level, loose, limit)
        starts = own.copy()
        starts[1:] |= own[:-1]
        starts[runs] = True
        points, mass, level = _in_order(*_join(points, mass, level, leaf, np.flatnonzero(starts)))
        limit *= 2.0
    return points, mass, level


def _light_runs(leaf: Hashes, level: Bytes, mass: Array, limit: float) -> IntArray:
    """Where runs begin that are the largest nodes which, with what is above them, are within the limit.

    All runs are split at once, from the root downwards, as long as they are too heavy.
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
        # What the node itself holds stays there.
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
    """The bits of floats, the same for equal ones."""
    clean = column + 0.0
    clean[np.isnan(clean)] = np.nan
    return clean.view(np.uint64)


def _mix(numbers: Hashes) -> Hashes:
    """Whole numbers scattered: one to one, and every bit depends on all (splitmix64)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    for start in range(0, len(mixed), _BLOCK):
        part = mixed[start : start + _BLOCK]
        part ^= part >> np.uint64(30)
        part *= np.uint64(0xBF58476D1CE4E5B9)
        part ^= part >> np.uint64(27)
        part *= np.uint64(0x94D049BB133111EB)
        part ^= part >> np.uint64(31)
    return mixed
