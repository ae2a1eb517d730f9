"""Edits of single terms after the fit.

An edit is a linear map ``A`` of a term's table, once the table has entries where the edit begins and ends.
Mean and coordinates' table become ``A mean`` and ``A table``: the posterior of the edited function is
exact, jointly with all other terms, and readers of a model need not know about edits. The intercept is
unchanged, and so are predictions elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.interpolate import BSpline, make_interp_spline

from lanam.core.arrays import Array, IntArray, fixed_point
from lanam.core.model.fitted import FittedModel, FittedTerm, importance_at
from lanam.core.terms.knots import Categories, Grid, Knots, Levels

#: A sparse matrix, for which scipy has no types.
Matrix = Any

Mask = NDArray[np.bool_]

#: The smallest distance between knots, in the column's scale, where its largest values are about one.
_SMALLEST_STEP = 2.0**-92

#: Values are equal to six digits, as where rows are located.
_SAME = 1e-6

#: Relative differences that count as rounding; tables keep 24 bits.
_ROUNDING = 1e-12
_CUT_OFF = 2.0**-20


@dataclass(frozen=True)
class Region:
    """A region of a column: the values of an interval, ends included, or of some ``codes`` (None: all).

    With ``missing`` values and ``others``, the unseen ones; without ``values`` only these.
    """

    low: float = -np.inf
    high: float = np.inf
    codes: IntArray | None = None
    values: bool = True
    missing: bool = False
    others: bool = False


WHOLE = Region(missing=True, others=True)


@dataclass(frozen=True)
class _Finer:
    """Refined entries: how they interpolate the old ones (``reads``), and the old ones' ``places``."""

    entries: Any
    reads: Matrix
    places: IntArray


def zero(model: FittedModel, index: int, regions: Sequence[Region]) -> tuple[FittedModel, Mask]:
    """A term that is exactly zero where all columns are in their regions, and the entries (B,) changed."""
    finer = [_refined(*side, jump=True) for side in zip(_axes(model, index), regions, strict=True)]
    chosen = [
        _closed(one.entries, _chosen(one.entries, region))
        for one, region in zip(finer, regions, strict=True)
    ]
    edited = _combined(chosen, np.logical_and)
    return _changed(model, index, finer, sparse.diags((~edited).astype(float)), edited)


def _closed(axis: Any, chosen: Mask) -> Mask:
    """Chosen entries, of a cyclic column both ends or none: they are one point."""
    if isinstance(axis, Knots) and axis.cyclic:
        ends = [0, len(axis.points) - 1]
        chosen = chosen.copy()
        chosen[ends] = chosen[ends].any()
    return chosen


def clamp(model: FittedModel, index: int, regions: Sequence[Region]) -> tuple[FittedModel, Mask]:
    """A term that is constant beyond its columns' regions; the result is that of `zero`."""
    finer = [_refined(*side) for side in zip(_axes(model, index), regions, strict=True)]
    nearest = [_nearest(one.entries, region) for one, region in zip(finer, regions, strict=True)]
    operators = [sparse.eye(len(index), format="csr")[index] for index in nearest]
    beyond = [index != np.arange(len(index)) for index in nearest]
    return _changed(model, index, finer, _product(operators), _combined(beyond, np.logical_or))


def smooth(
    model: FittedModel, index: int, region: Region, width: float | None = None
) -> tuple[FittedModel, Mask]:
    """A term of one column smoothed in a region of it; the result is that of `zero`.

    A numeric function becomes a straight line between the ends or, with a ``width``, a moving mean over
    that half-width, which shrinks towards the ends. Categories get their mean effect, weighted by the data.
    """
    (axis,) = _axes(model, index)
    if isinstance(axis, Categories):
        finer, edited = _refined(axis, region), _chosen(axis, region)
        operator = _pooling(model.terms[index].data_mass, edited)
        return _changed(model, index, [finer], operator, edited)
    if isinstance(axis, Knots):  # a line to the end of the data, not of the table
        first, last = axis.values[axis.inside][[0, -1]]
        region = replace(region, low=max(region.low, first), high=min(region.high, last))
    finer = _refined(axis, region)
    entries = finer.entries
    span = np.flatnonzero(within(entries, region))
    edited = np.zeros(len(entries), dtype=bool)
    edited[span[1:-1]] = True
    if not edited.any():  # two points are on a line already
        return _changed(model, index, [finer], sparse.eye(len(entries), format="csr"), edited)
    points = entries.points[span]
    rows = _line(points) if width is None else _moving_mean(points, width / entries.scale)
    operator = sparse.eye(len(entries), format="lil")
    operator[np.ix_(span, span)] = rows
    return _changed(model, index, [finer], operator.tocsr(), edited)


def _axes(model: FittedModel, index: int) -> tuple[Any, ...]:
    entries = model.terms[index].entries
    assert entries is not None
    return entries.axes


def _combined(masks: Sequence[Mask], how: np.ufunc) -> Mask:
    """Masks of the columns' entries as one of the grid's entries."""
    return np.asarray(reduce(how.outer, masks)).ravel()


def _product(matrices: Sequence[Matrix]) -> Matrix:
    """The operator on a grid's entries, from those on each column's."""
    return reduce(lambda first, second: sparse.kron(first, second, format="csr"), matrices)


def _changed(
    model: FittedModel, index: int, finer: Sequence[_Finer], operator: Matrix, edited: Mask
) -> tuple[FittedModel, Mask]:
    """The model with a term's function changed by an operator on its refined entries."""
    term = model.terms[index]
    reads = _product([one.reads for one in finer])
    change = (operator @ reads).tocsr()
    mean = np.asarray(change @ term.mean)
    if not _differs(term, change, reads):
        edited = np.zeros_like(edited)
    axes = [one.entries for one in finer]
    mass = np.zeros([len(axis) for axis in axes])
    # Rows between two entries are not known, so new entries have no weight.
    mass[np.ix_(*(one.places for one in finer))] = term.data_mass.reshape(
        [len(one.places) for one in finer]
    )
    before = 0.0 if term.edited is None else np.asarray(reads @ term.edited.astype(float))
    changed = replace(
        term,
        entries=Grid(tuple(axes)) if len(axes) > 1 else axes[0],
        data_mass=mass.ravel(),
        mean=mean,
        # Rounded like the tables of a fit.
        table=fixed_point(change @ term.table),
        coupling=None if term.coupling is None else fixed_point(change @ term.coupling),
        own_variance=None
        if term.own_variance is None
        else np.asarray(change.multiply(change) @ term.own_variance),
        importance=importance_at(term, mass.ravel(), mean),
        edited=edited | (before > 0.0),
    )
    terms = (*model.terms[:index], changed, *model.terms[index + 1 :])
    missing_variance = _missing_variance(model, terms, term.features)
    return replace(model, terms=terms, missing_variance=missing_variance), edited


def _differs(term: FittedTerm, change: Matrix, reads: Matrix) -> bool:
    """Whether the change is more than rounding."""

    def moved(values: Array | None, tolerance: float, squared: bool = False) -> bool:
        if values is None or not values.size:
            return False
        maps = [one.multiply(one) if squared else one for one in (reads, change)]
        before, after = (np.asarray(one @ values) for one in maps)
        return bool((np.abs(after - before) > tolerance * np.abs(before).max(axis=0)).any())

    return (
        moved(term.mean, _ROUNDING)
        or moved(term.table, _CUT_OFF)
        or moved(term.coupling, _CUT_OFF)
        or moved(term.own_variance, _ROUNDING, squared=True)
    )


def _missing_variance(
    model: FittedModel, terms: Sequence[FittedTerm], features: Sequence[int]
) -> Array | None:
    """The noise variance of missing values: zero for columns without any effect left."""
    if model.missing_variance is None:
        return None
    left = {feature for term in terms if _has_effect(term) for feature in term.features}
    result = model.missing_variance.copy()
    result[[feature for feature in features if feature not in left]] = 0.0
    return result


def _has_effect(term: FittedTerm) -> bool:
    tables = (term.mean, term.table, term.coupling, term.own_variance)
    return term.active and any(table is not None and bool(table.any()) for table in tables)


# entries


def _refined(axis: Knots | Levels | Categories, region: Region, jump: bool = False) -> _Finer:
    """Entries that separate a region from the rest of the column; ``jump`` allows a discontinuity."""
    if isinstance(axis, Categories) or not region.values:
        return _same(axis)
    low, high = region.low / axis.scale, region.high / axis.scale
    if isinstance(axis, Knots):
        beside = [_below(low), _above(high)] if jump else []
        wanted = _finite([low, high, *beside])
        if axis.cyclic:  # there is nothing beyond the ends, which are beside each other
            start, end = axis.points[[0, -1]]
            wanted = wanted[(start < wanted) & (wanted < end)]
            if jump and (low <= start or high >= end):
                wanted = np.r_[wanted, _above(start), _below(end)]
        return _with_knots(axis, wanted)
    return _same(axis) if axis.exact else _with_edges(axis, _finite([low, _above(high)]))


def _finite(numbers: Sequence[float]) -> Array:
    array = np.array(numbers)
    # No value lies beyond the largest float, and the neighbour of infinity is that.
    return np.asarray(array[np.abs(array) < np.finfo(float).max])


def _above(point: float) -> float:
    """The next float; around zero at a distance at which a slope does not overflow."""
    return max(float(np.nextafter(point, np.inf)), point + _SMALLEST_STEP)


def _below(point: float) -> float:
    return -_above(-point)


def _same(axis: Any) -> _Finer:
    return _Finer(axis, sparse.eye(len(axis), format="csr"), np.arange(len(axis)))


def _with_knots(knots: Knots, wanted: Array) -> _Finer:
    """Knots with further ones, at which the function is unchanged."""
    points = np.union1d(knots.points, wanted)
    clipped = np.clip(points, knots.points[0], knots.points[-1])
    ends = knots.points[[0, -1]]
    reads = BSpline.design_matrix(clipped, np.r_[ends[0], knots.points, ends[1]], 1)
    places = np.searchsorted(points, knots.points)
    inside = knots.inside
    finer = replace(
        knots,
        points=points,
        inputs=np.interp(points, knots.points, knots.inputs),
        inside=slice(int(places[inside.start]), int(places[inside.stop - 1]) + 1),
    )
    return _with_tail(finer, reads, places, int(knots.missing))


def _with_edges(levels: Levels, wanted: Array) -> _Finer:
    """Bins with further edges; a divided bin keeps its data at its old centre."""
    edges = np.union1d(levels.edges, wanted)
    bins = np.searchsorted(levels.edges, np.r_[-np.inf, edges], side="right")
    places = np.searchsorted(edges, levels.points, side="right")
    ends = np.r_[_below(edges[0]), edges, edges[-1]]
    points = 0.5 * (ends[1:] + ends[:-1])
    points[places] = levels.points
    reads = sparse.eye(len(levels.points), format="csr")[bins]
    return _with_tail(
        replace(levels, points=points, edges=edges), reads, places, levels.missing + 1
    )


def _with_tail(entries: Any, reads: Matrix, places: IntArray, n_tail: int) -> _Finer:
    """Appends the entries of missing and unseen values, which are unchanged."""
    reads = sparse.block_diag([reads, sparse.eye(n_tail)], format="csr")
    return _Finer(entries, reads, np.r_[places, len(entries) - n_tail + np.arange(n_tail)])


def within(axis: Knots | Levels | Categories, region: Region) -> Mask:
    """The values' entries that belong to a region."""
    if isinstance(axis, Categories):
        chosen = np.zeros(axis.n_own + 2, dtype=bool)
        chosen[axis.entry_of if region.codes is None else axis.entry_of[region.codes]] = True
        return chosen[: axis.n_own] & region.values
    low, high = region.low / axis.scale, region.high / axis.scale
    if isinstance(axis, Knots):
        chosen = (axis.points >= low) & (axis.points <= high)
    elif axis.exact:
        slack = _SAME * np.abs(axis.points)
        chosen = (axis.points >= low - slack) & (axis.points <= high + slack)
    else:
        chosen = np.r_[-np.inf, axis.edges] >= low
        chosen &= np.r_[axis.edges, np.inf] <= _above(high)
    return np.asarray(chosen & region.values)


def _chosen(axis: Knots | Levels | Categories, region: Region) -> Mask:
    """All entries that belong to a region."""
    values = within(axis, region)
    missing = [region.missing] if axis.missing else []
    others = [] if isinstance(axis, Knots) else [region.others]
    return np.concatenate([values, np.array([*missing, *others], dtype=bool)])


def _nearest(axis: Knots | Levels | Categories, region: Region) -> IntArray:
    """The entry of the region nearest to each entry; itself if there is none."""
    entries = np.arange(len(axis))
    if isinstance(axis, Categories) or not region.values:
        return entries
    values = entries[: len(axis.points)]
    if isinstance(axis, Levels) and axis.exact:
        # An end that is not a level itself is located like any row: it may be an unseen value.
        first, last = axis.locate(np.array([region.low, region.high])).index
        values[axis.points < region.low / axis.scale] = first
        values[axis.points > region.high / axis.scale] = last
        return entries
    inside = np.flatnonzero(within(axis, region))
    if len(inside):
        values[:] = np.clip(values, inside[0], inside[-1])
    return entries


# smoothing


def _pooling(data_mass: Array, chosen: Mask) -> Matrix:
    """Averages the chosen entries, weighted by the data or, without any, equally."""
    weight = np.where(chosen, data_mass, 0.0)
    if not weight.any():
        weight = chosen.astype(float)
    pooled = sparse.csr_matrix(chosen.astype(float)[:, None]) @ sparse.csr_matrix(
        weight[None, :] / weight.sum()
    )
    return sparse.diags((~chosen).astype(float)) + pooled


def _line(points: Array) -> Array:
    """Weights (n, n) of the straight line between the first point and the last."""
    result = np.zeros((len(points), len(points)))
    place = (points - points[0]) / (points[-1] - points[0])
    result[:, -1] = place
    result[:, 0] += 1.0 - place
    return result


def _moving_mean(points: Array, width: float) -> Array:
    """Weights (n, n) of the mean over ``width`` on either side, less towards the ends.

    The function is linear between the points: with ``C(t)`` its integral from the first to ``t``, as
    weights of its values, the mean at ``x`` is ``(C(x + w) - C(x - w)) / 2 w``.
    """
    result = np.eye(len(points))
    integral = make_interp_spline(points, result, k=1).antiderivative()
    widths = np.minimum(width, np.minimum(points - points[0], points[-1] - points))
    inner = widths > 0.0
    x, w = points[inner], widths[inner]
    result[inner] = (integral(x + w) - integral(x - w)) / (2.0 * w[:, None])
    return result
