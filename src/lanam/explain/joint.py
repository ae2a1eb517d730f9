"""An interaction together with the main effects of its columns, as one function."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model import scoring
from lanam.data import CATEGORICAL, UNSEEN, Column
from lanam.explain.evaluation import ModelSource, deviations
from lanam.explain.ranges import is_inside
from lanam.explain.terms import MISSING, Surface, SurfaceAxis

#: Points of a numeric column of a pair and of a triple, in addition to those of the interaction: main
#: effects are finer.
_N_POINTS = {2: 81, 3: 21}


def with_main_effects(source: ModelSource, surface: Surface) -> Surface:
    """An interaction plus all terms of fewer of its columns, on a finer grid.

    Mean and standard deviation are those of the sum, under the joint posterior; there are no simultaneous
    bands.
    """
    columns = [source.schema.columns[feature] for feature in surface.features]
    n_points = _N_POINTS[len(columns)]
    finer = [_finer(*each, n_points) for each in zip(surface.axes, columns, strict=True)]
    axes, weights = zip(*finer, strict=True)
    codes = [_codes(axis, column) for axis, column in zip(axes, columns, strict=True)]
    rows = np.zeros((int(np.prod([len(each) for each in codes])), source.schema.n_columns))
    for feature, cells in zip(surface.features, np.meshgrid(*codes, indexing="ij"), strict=True):
        rows[:, feature] = cells.ravel()
    held = set(surface.features)
    terms = [
        k for k, t in enumerate(source.model.terms) if t.active and held.issuperset(t.features)
    ]
    mean, variance = scoring.sum_moments(source.model, terms, rows)
    shape = (*map(len, codes), *mean.shape[1:])
    density = _along_all(weights, surface.density)
    return replace(
        surface,
        axes=axes,
        mean=mean.reshape(shape),
        std=deviations(variance).reshape(shape),
        density=density / (density.sum() or 1.0),
        inside=reduce(np.logical_and.outer, [axis.inside for axis in axes]),
        edited=_along_all(weights, surface.edited.astype(np.float64)) > 0.0,
        largest_deviations=np.empty((0, *mean.shape[1:])),
    )


def _finer(axis: SurfaceAxis, column: Column, n_points: int) -> tuple[SurfaceAxis, Array]:
    """An axis with more points, and the weights (points, entries) that interpolate between its entries."""
    if axis.kind == CATEGORICAL:
        return axis, np.eye(len(axis.density))
    n_values = len(axis.values)
    points = np.unique([*axis.values, *np.linspace(column.lowest, column.highest, n_points)])
    weights = np.zeros((len(points) + len(axis.others), len(axis.density)))
    for k, row in enumerate(np.eye(n_values)):
        weights[: len(points), k] = np.interp(points, axis.values, row)
    weights[len(points) :, n_values:] = np.eye(len(axis.others))
    inside = np.concatenate([is_inside(points, column), axis.inside[n_values:]])
    return replace(axis, values=points, density=weights @ axis.density, inside=inside), weights


def _codes(axis: SurfaceAxis, column: Column) -> Array:
    """The entries of an axis, encoded as a column's values."""
    values = axis.values
    if axis.kind == CATEGORICAL:
        code_of = {level: code for code, level in enumerate(column.levels)}
        values = np.array([code_of[level] for level in values.tolist()], dtype=np.float64)
    others = [np.nan if name == MISSING else UNSEEN for name in axis.others]
    return np.concatenate([np.asarray(values, dtype=np.float64), others])


def _along_all(weights: tuple[Array, ...], table: Array) -> Array:
    """A table interpolated along each of its axes."""
    for place, each in enumerate(weights):
        table = np.moveaxis(np.tensordot(each, table, axes=(1, place)), 0, place)
    return table
