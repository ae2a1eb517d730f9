"""A fitted model's tables, in the units of the columns."""

from __future__ import annotations

from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray, Intercept
from lanam.core.model import scoring
from lanam.core.model.draws import JointRoot, joint_root
from lanam.core.model.fitted import CONSTANT, EMPTY, FittedModel, FittedTerm
from lanam.core.terms.knots import Axis, Categories, Grid, Knots, Levels
from lanam.data import CATEGORICAL, Column, Schema
from lanam.explain.bands import importance_and_largest_deviations
from lanam.explain.missingness import importance_of_missingness
from lanam.explain.ranges import is_inside
from lanam.explain.terms import MISSING, OTHER_LEVELS, Shape, Surface, SurfaceAxis, Term
from lanam.explain.values import Values, object_array, scalar
from lanam.text import term_name

#: An entry: mean, standard deviation, density, and whether it was edited.
_Entry: TypeAlias = tuple[Intercept, Intercept, float, bool]


def describe_terms(model: FittedModel, schema: Schema) -> tuple[Term, ...]:
    """The terms of a fitted model."""
    return tuple(Term(**_facts(term, schema)) for term in model.terms)


def _facts(term: FittedTerm, schema: Schema) -> dict[str, Any]:
    columns = [schema.columns[feature] for feature in term.features]
    names = tuple(column.name for column in columns)
    # A column without entries has a smooth term, whatever its kind.
    categorical = term.kind == "smooth" and columns[0].kind == CATEGORICAL
    return {
        "name": term_name(names, schema.names, " (levels)" if term.kind == "level" else ""),
        "kind": "categorical" if categorical else term.kind,
        "features": term.features,
        "feature_names": names,
        "feature_kinds": tuple(column.kind for column in columns),
        "status": term.status,
        "active": term.active,
        "importance": float(term.importance),
        "importance_of_missingness": importance_of_missingness(term),
        "effective_parameters": float(term.effective_parameters),
        "evidence": float(term.evidence),
        "was_edited": term.edited is not None,
    }


def shape_of(model: FittedModel, index: int, schema: Schema) -> Shape:
    """A univariate term in the unit of its column."""
    term = model.terms[index]
    column = schema.columns[term.features[0]]
    if term.entries is None:
        return _flat_shape(model, term, schema)
    assert not isinstance(term.entries, Grid)
    mean, std = _moments(model, index)
    edited = _edited(term)

    def entry(entry_index: int) -> _Entry:
        facts = scalar(mean[entry_index]), scalar(std[entry_index])
        return *facts, float(term.data_mass[entry_index]), bool(edited[entry_index])

    value_entries, missing, unseen = _places(term.entries)
    if missing is not None and term.data_mass[missing] == 0.0:
        missing = None
    of_unseen = None if unseen is None else entry(unseen)
    if unseen is None and missing is None:  # no entry: like a random value of the data
        anything = _unknown(term, mean, std)
        of_unseen = scalar(anything[0]), scalar(anything[1]), 0.0, bool(edited.all())
    values = axis_values(term.entries, column)
    within = term.data_mass > 0.0
    within[value_entries] = inside = is_inside(values, column)
    importance_std, largest = importance_and_largest_deviations(model, index, std, within)
    return Shape(
        **_facts(term, schema),
        importance_std=importance_std,
        values=values,
        mean=mean[value_entries],
        std=std[value_entries],
        density=term.data_mass[value_entries],
        inside=inside,
        largest_deviations=largest,
        edited=edited[value_entries],
        **_entry_facts("missing", None if missing is None else entry(missing)),
        **_entry_facts("unseen", of_unseen),
        posterior=_curve_posterior(model, index, len(values)),
    )


def _curve_posterior(model: FittedModel, index: int, n_values: int) -> JointRoot | None:
    """The joint posterior of an active term at its knots, which come first among its entries."""
    term = model.terms[index]
    if not (term.active and isinstance(term.entries, Knots)):
        return None
    return joint_root(model, index).at(slice(0, n_values))


def _entry_facts(name: str, entry: _Entry | None) -> dict[str, Any]:
    """Fields of a :class:`Shape` about missing or unseen values; None without an entry."""
    fields = [f"{name}_{fact}" for fact in ("mean", "std", "density", "edited")]
    return dict(zip(fields, entry or [None] * 4, strict=True))


def _flat_shape(model: FittedModel, term: FittedTerm, schema: Schema) -> Shape:
    """The zero function of a column that is constant, empty or a duplicate."""
    column = schema.columns[term.features[0]]
    values: Values = object_array(()) if column.kind == CATEGORICAL else np.empty(0)
    if term.status == CONSTANT:
        values = (
            object_array(column.levels) if column.kind == CATEGORICAL else np.array([column.lowest])
        )
    zeros = np.zeros((len(values), *np.shape(model.intercept)))
    nothing = scalar(np.zeros(np.shape(model.intercept)))
    return Shape(
        **_facts(term, schema),
        importance_std=0.0,
        values=values,
        mean=zeros,
        std=zeros.copy(),
        density=np.full(len(values), 1.0 / max(len(values), 1)),
        inside=np.ones(len(values), dtype=bool),
        largest_deviations=np.empty((0, *np.shape(model.intercept))),
        edited=np.zeros(len(values), dtype=bool),
        **_entry_facts("missing", (nothing, nothing, 1.0, False) if term.status == EMPTY else None),
        **_entry_facts("unseen", None),
    )


def surface_of(model: FittedModel, index: int, schema: Schema) -> Surface:
    """An interaction in the units of its columns."""
    term = model.terms[index]
    grid = term.entries
    assert isinstance(grid, Grid)
    mean, std = _moments(model, index)
    density = term.data_mass.reshape(grid.shape).copy()
    axes = tuple(
        _surface_axis(axis, schema.columns[feature], np.moveaxis(density, place, 0))
        for place, (axis, feature) in enumerate(zip(grid.axes, term.features, strict=True))
    )
    inside = reduce(np.logical_and.outer, [axis.inside for axis in axes])
    importance_std, largest = importance_and_largest_deviations(model, index, std, inside.ravel())
    return Surface(
        **_facts(term, schema),
        importance_std=importance_std,
        axes=axes,
        mean=mean.reshape(*grid.shape, *mean.shape[1:]).copy(),
        std=std.reshape(*grid.shape, *std.shape[1:]),
        density=density,
        inside=inside,
        largest_deviations=largest,
        edited=_edited(term).reshape(grid.shape),
        unseen_std=None
        if all(axis.missing for axis in grid.axes)
        else scalar(_unknown(term, mean, std)[1]),
    )


def _moments(model: FittedModel, index: int) -> tuple[Array, Array]:
    """Mean and standard deviation of a term at its entries, (B,) or (B, classes)."""
    term = model.terms[index]
    if term.active:
        mean, variance = scoring.entry_moments(model, index)
        return mean, np.sqrt(variance)
    zeros = np.zeros((len(term.data_mass), *np.shape(model.intercept)))
    possible = term.dropped_variance
    return zeros, zeros.copy() if possible is None else np.sqrt(possible)


def _edited(term: FittedTerm) -> NDArray[np.bool_]:
    """Which of a term's entries were edited."""
    return np.zeros(len(term.data_mass), dtype=bool) if term.edited is None else term.edited


def _unknown(term: FittedTerm, mean: Array, std: Array) -> tuple[Array, Array]:
    """Moments for a missing value without an entry: those of a random value of the training data."""
    spread = np.sqrt(term.data_mass @ (np.square(mean) + np.square(std)))
    return np.zeros_like(spread), spread


def _places(entries: Knots | Levels | Categories) -> tuple[IntArray, int | None, int | None]:
    """The entries of the values, of missing ones and of unseen ones."""
    if isinstance(entries, Categories):
        value_entries = entries.entry_of[entries.entry_of < entries.n_own]
        return value_entries, entries.n_own, entries.n_own + 1
    n_points = len(entries.points)
    missing = n_points if entries.missing else None
    # Bins cover all values; only missing ones may have no entry.
    leaves = isinstance(entries, Levels) and (entries.exact or not entries.missing)
    return np.arange(n_points), missing, len(entries) - 1 if leaves else None


def axis_values(axis: Axis | Levels, column: Column) -> Values:
    """Numbers in the column's unit, or the labels of the categories with their own entry."""
    if isinstance(axis, Categories):
        codes = np.flatnonzero(axis.entry_of < axis.n_own)
        return object_array([column.levels[code] for code in codes])
    return axis.values.copy()


def _surface_axis(axis: Axis, column: Column, density: Array) -> SurfaceAxis:
    """One column of an interaction; the first axis of ``density`` is this column."""
    others = (MISSING, OTHER_LEVELS) if isinstance(axis, Categories) else (MISSING,) * axis.missing
    values, share = axis_values(axis, column), density.reshape(len(axis), -1).sum(axis=1)
    inside = np.concatenate([is_inside(values, column), share[len(values) :] > 0.0])
    return SurfaceAxis(column.name, column.kind, values, others, share, inside)
