"""The columns of a rating table in bands: numbers in ranges of similar frequency, categories one by one.

Only what occurs in the training data has a band. The most frequent band of a column is its base level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lanam.data import CATEGORICAL, UNSEEN, Column
from lanam.explain.portable import TableAxis
from lanam.explain.values import cell_words, plain
from lanam.export.complete import Array, CompleteTerm


@dataclass(frozen=True, eq=False)
class Band:
    """A range of a column, a single value, a category, or missing or other values.

    ``values`` are the encoded values that represent it, ``shares`` their shares of the training data.
    """

    cells: tuple[str, str, str]
    meaning: str
    values: Array
    shares: Array

    @property
    def share(self) -> float:
        """The band's share of the training data."""
        return float(self.shares.sum())

    def weights(self, axis: TableAxis) -> Array:
        """The weights of an axis' entries in the band's mean."""
        return np.asarray(self.shares @ _located(axis, self.values)) / self.share


def base_of(bands: Sequence[Band]) -> Band:
    """The most frequent band, which is not that of missing values unless there is no other."""
    return max(bands, key=lambda band: (band.cells[0] != "missing", band.share))


def bands_of(
    terms: Sequence[CompleteTerm], feature: int, column: Column, n_bands: int
) -> list[Band]:
    """The bands of a column, from the term that tells most of its distribution."""
    sources = [(term, term.features.index(feature)) for term in terms if feature in term.features]
    term, place = max(
        sources, key=lambda one: (one[0].axes[one[1]].kind == "knots", one[0].shape[one[1]])
    )
    axis = term.axes[place]
    others = tuple(k for k in range(len(term.shape)) if k != place)
    shares = term.share.reshape(term.shape).sum(axis=others)
    if column.kind == CATEGORICAL:
        bands = _categories(axis, column, shares)
    else:
        bands = _ranges(*_distribution(axis, column, shares), column, n_bands)
    special = [("missing", axis.missing, np.nan, "is missing")]
    if column.kind == CATEGORICAL:
        special.append(("other", axis.other, float(UNSEEN), "is any other level"))
    for kind, entry, code, words in special:
        if entry is not None and shares[entry] > 0.0:
            cells, meaning = (kind, "", ""), f"{column.name} {words}"
            bands.append(Band(cells, meaning, np.array([code]), shares[[entry]]))
    return bands


def cell_shares(term: CompleteTerm, columns: Sequence[Sequence[Band]]) -> Array:
    """The shares of the training data in the cells of a term's bands."""
    shares = term.share.reshape(term.shape)
    for place, (axis, bands) in enumerate(zip(term.axes, columns, strict=True)):
        held = np.stack([band.share * band.weights(axis) for band in bands])
        whole = held.sum(axis=0)
        fractions = np.divide(held, whole, out=np.zeros_like(held), where=whole > 0.0)
        shares = np.moveaxis(np.tensordot(fractions, shares, axes=(1, place)), 0, place)
    return shares


def _categories(axis: TableAxis, column: Column, shares: Array) -> list[Band]:
    bands = []
    for code, entry in enumerate(axis.points.tolist()):
        if entry not in (axis.missing, axis.other) and shares[entry] > 0.0:
            label = str(plain(column.levels[code]))
            cells, meaning = ("level", label, ""), f"{column.name} is {label}"
            bands.append(Band(cells, meaning, np.array([float(code)]), shares[[entry]]))
    return bands


def _distribution(axis: TableAxis, column: Column, shares: Array) -> tuple[Array, Array]:
    """Values of a numeric column, ascending, with their shares of the training data."""
    values = np.asarray(axis.points, dtype=np.float64)
    if axis.kind == "bins":
        inner = values[(values > column.lowest) & (values < column.highest)]
        ends = np.concatenate([[column.lowest], inner, [column.highest]])
        values = 0.5 * (ends[:-1] + ends[1:])
        shares = shares[np.searchsorted(axis.points, values, side="right")]
    kept = np.flatnonzero(shares[: len(values)] > 0.0)
    return np.clip(values[kept], column.lowest, column.highest), shares[kept]


def _ranges(values: Array, shares: Array, column: Column, n_bands: int) -> list[Band]:
    """Single values if there are few, or else ranges of about the same share."""
    if len(values) <= n_bands:
        return [
            Band(
                ("value", repr(float(value)), ""),
                f"{column.name} is {cell_words(float(value))}",
                *each,
            )
            for value, *each in zip(values, values[:, None], shares[:, None], strict=True)
        ]
    middles = (np.cumsum(shares) - 0.5 * shares) / shares.sum()
    starts = np.flatnonzero(np.diff(np.floor(n_bands * middles), prepend=-1.0))
    edges = [float(column.lowest)]
    edges += [_roundest(float(values[k - 1]), float(values[k])) for k in starts[1:]]
    edges.append(float(column.highest))
    bands = []
    for number, k in enumerate(starts):
        low, high = edges[number : number + 2]
        last = number == len(starts) - 1
        words = f"from {cell_words(low)} to {'' if last else 'below '}{cell_words(high)}"
        part = slice(k, None if last else starts[number + 1])
        cells = ("from", repr(low), repr(high))
        bands.append(Band(cells, f"{column.name} {words}", values[part], shares[part]))
    return bands


def _roundest(low: float, high: float) -> float:
    """The number above ``low`` and not above ``high`` with the fewest digits."""
    first = math.floor(math.log10(high - low))
    for digits in range(-first - 1, 16 - first):
        rounded = math.floor(round(high, 15 - first) * 10.0**digits) / 10.0**digits
        if low < rounded <= high:
            return rounded
    return high


def _located(axis: TableAxis, values: Array) -> Array:
    """The weights (values, entries) with which encoded values read an axis."""
    points, weights = axis.points, np.zeros((len(values), axis.n_entries))
    for row, value in zip(weights, values.tolist(), strict=True):
        if value != value:
            row[axis.missing] = 1.0
        elif axis.kind == "codes":
            row[axis.other if value == UNSEEN else points[int(value)]] = 1.0
        elif axis.kind == "bins":
            row[np.searchsorted(points, value, side="right")] = 1.0
        elif axis.kind == "levels":
            equal = np.flatnonzero(np.isclose(points, value, rtol=1e-6, atol=0.0))
            row[equal[0] if len(equal) else axis.other] = 1.0
        else:
            at = float(np.interp(value, points, np.arange(len(points))))
            left = min(int(at), max(len(points) - 2, 0))
            row[left] = 1.0 + left - at
            if at > left:
                row[left + 1] = at - left
    return weights
