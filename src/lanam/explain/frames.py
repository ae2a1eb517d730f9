"""Explanations as the columns of a frame: numbers apart from text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lanam.core.arrays import Array
from lanam.data import CATEGORICAL
from lanam.explain.terms import MISSING, Shape, Surface, Term
from lanam.explain.values import PLACES, Labels, Values
from lanam.families import Family

#: Columns of a term's frame that have a row for each class already.
BY_CLASS = ("mean", "std", "lower", "upper", "simultaneous_lower", "simultaneous_upper")


def term_cells(term: Shape | Surface, coverage: float, n_places: int) -> dict[str, Any]:
    """A term's tables as columns, with one entry for each place where it is tabulated.

    There are columns of values for so many of the term's columns.
    """
    others = term.others if isinstance(term, Shape) else ()
    means = [np.ravel(mean) for _, mean, _, _ in others]
    stds = [np.ravel(std) for _, _, std, _ in others]
    densities = [density for *_, density in others]
    edited = term.others_edited if isinstance(term, Shape) else ()
    if isinstance(term, Surface):
        sides = [_axis_cells(axis.values, axis.others) for axis in term.axes]
    else:
        sides = [_axis_cells(term.values, [name for name, *_ in others])]
    return {
        **_grid_cells(sides, n_places),
        "mean": np.concatenate([term.mean.ravel(), *means]),
        "std": np.concatenate([term.std.ravel(), *stds]),
        **_bands(term, coverage),
        "density": np.concatenate([term.density.ravel(), densities]),
        "inside": np.concatenate([term.inside.ravel(), np.array(densities) > 0.0]),
        "edited": np.concatenate([term.edited.ravel(), np.array(edited, dtype=bool)]),
    }


def _grid_cells(sides: Sequence[tuple[Array, list[str | None]]], n_places: int) -> dict[str, Any]:
    """Values and levels of all combinations of the sides' entries; nothing of sides that there are not."""
    blank: tuple[Array, list[str | None]] = (np.array([np.nan]), [None])
    sides = [*sides, *[blank] * (n_places - len(sides))]
    entries = np.indices([len(numbers) for numbers, _ in sides]).reshape(n_places, -1)
    cells: dict[str, Any] = {}
    for place, ((numbers, levels), own) in enumerate(zip(sides, entries, strict=True)):
        cells[f"{PLACES[place]}value"] = numbers[own]
        cells[f"{PLACES[place]}level"] = [levels[entry] for entry in own]
    return cells


def _bands(term: Shape | Surface, coverage: float) -> dict[str, Array]:
    """Both kinds of band, of values and of others."""
    result = {}
    for prefix, simultaneous in (("", False), ("simultaneous_", True)):
        ends = term.band(coverage, simultaneous)
        others = term.others_band(coverage, simultaneous) if isinstance(term, Shape) else {}
        for k, name in enumerate(("lower", "upper")):
            parts = [ends[k], *(band[k] for band in others.values())]
            result[f"{prefix}{name}"] = np.concatenate([np.ravel(part) for part in parts])
    return result


def _axis_cells(values: Values, others: Sequence[str]) -> tuple[Array, list[str | None]]:
    """Values and other entries as numbers, and as text where they are none."""
    numbers, levels = value_cells(values)
    return np.concatenate([numbers, np.full(len(others), np.nan)]), [*levels, *others]


def value_cells(values: Values) -> tuple[Array, list[str | None]]:
    """A column's values as numbers, and as text where they are levels, which come as objects."""
    return _numbers_and_levels(values, values.dtype == object)


def row_cells(values: Values, term: Term, place: int) -> tuple[Array, list[str | None]]:
    """Rows' values of one of a term's columns as numbers, and as text where they are none."""
    if place >= len(term.features):
        return np.full(len(values), np.nan), [None] * len(values)
    return _numbers_and_levels(values, term.feature_kinds[place] == CATEGORICAL)


def _numbers_and_levels(values: Values, categorical: bool) -> tuple[Array, list[str | None]]:
    """Values as numbers, not a number where they are none, and as text where they are none."""
    levels: list[str | None] = [
        MISSING if value is None or value != value else str(value) if categorical else None
        for value in values.tolist()
    ]
    if categorical:
        return np.full(len(values), np.nan), levels
    return values.astype(np.float64), levels  # None becomes NaN


def by_class(
    columns: dict[str, Any], family: Family, classes: Labels, spread: Sequence[str]
) -> dict[str, Any]:
    """Columns with a row for each class, if there are several; those of ``spread`` have it already."""
    if not family.link.several or classes is None:
        return columns
    result: dict[str, Any] = {}
    for name, column in columns.items():
        if name in spread:
            result[name] = column
        elif isinstance(column, list):
            result[name] = [cell for cell in column for _ in classes]
        else:
            result[name] = np.repeat(column, len(classes))
        if name == "term":
            result["class"] = list(classes) * len(column)
    return result


def concatenate(parts: list[Any]) -> Any:
    """One column of several, lists or arrays."""
    if isinstance(parts[0], list):
        return [cell for part in parts for cell in part]
    return np.concatenate(parts)
