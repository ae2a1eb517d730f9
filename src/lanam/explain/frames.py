"""Explanations as the columns of a frame, with numbers and labels in separate columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.data import CATEGORICAL, make_frame
from lanam.explain.bands import Banded, around
from lanam.explain.terms import MISSING, Other, Shape, Surface, Term
from lanam.explain.values import PREFIXES, OnLinkScale, Values, object_array

#: Columns with one entry per class already.
_BY_CLASS = ("mean", "contribution", "std", "lower", "upper")


def explanation_frame(columns: dict[str, Any], explanation: OnLinkScale) -> Any:
    """Columns as a frame of the user's library, with one row per class if there are several."""
    classes = explanation.classes if explanation.family.link.several else None
    cells: dict[str, Any] = {}
    for name, column in columns.items():
        per_class = classes is None or name.removeprefix("simultaneous_") in _BY_CLASS
        spread = column if per_class else np.repeat(column, len(classes or ()))
        cells[name] = spread.tolist() if spread.dtype == object else spread
        if name == "term" and classes is not None:
            cells["class"] = list(classes) * len(column)
    return make_frame(cells, explanation.backend)


def term_cells(
    term: Shape | Surface, coverage: float, n_places: int, beyond: bool
) -> dict[str, Any]:
    """A tabulated term as columns, with values of ``n_places`` columns of the data.

    Values beyond the range of the training data are left out, unless ``beyond``.
    """
    others = term.others if isinstance(term, Shape) else ()
    densities = np.array([density for *_, density in others])
    edited = term.others_edited if isinstance(term, Shape) else ()
    if isinstance(term, Surface):
        sides = [axis_cells(axis.values, axis.others) for axis in term.axes]
    else:
        sides = [axis_cells(term.values, [name for name, *_ in others])]
    cells = {
        **_grid_cells(sides, n_places),
        **function_cells(term, others, coverage),
        "density": np.concatenate([term.density.ravel(), densities]),
        "inside": np.concatenate([term.inside.ravel(), densities > 0.0]),
        "edited": np.concatenate([term.edited.ravel(), np.array(edited, dtype=bool)]),
    }
    return cells if beyond else _within(cells, _in_range(term, len(others)))


def _in_range(term: Shape | Surface, n_others: int) -> NDArray[np.bool_]:
    """Which entries of a term are not of numbers beyond the range of the training data."""
    if not isinstance(term, Surface):
        return np.append(term.inside, np.ones(n_others, dtype=bool))
    sides = [axis.inside | (np.arange(len(axis.inside)) >= len(axis.values)) for axis in term.axes]
    return np.asarray(reduce(np.logical_and.outer, sides)).ravel()


def _within(cells: dict[str, Any], rows: NDArray[np.bool_]) -> dict[str, Any]:
    """Some rows of columns, of which those by class have several entries for each row."""
    return {
        name: column[np.repeat(rows, len(column) // max(len(rows), 1))]
        for name, column in cells.items()
    }


def _grid_cells(sides: Sequence[tuple[Array, Values]], n_places: int) -> dict[str, Any]:
    """Values and labels of all combinations of the sides' entries; blank for further columns."""
    blank = np.array([np.nan]), object_array([None])
    sides = [*sides, *[blank] * (n_places - len(sides))]
    entries = np.indices([len(numbers) for numbers, _ in sides]).reshape(n_places, -1)
    cells: dict[str, Any] = {}
    for prefix, (numbers, labels), own in zip(PREFIXES, sides, entries, strict=False):
        cells |= {f"{prefix}value": numbers[own], f"{prefix}level": labels[own]}
    return cells


def function_cells(function: Banded, others: Sequence[Other], coverage: float) -> dict[str, Array]:
    """Mean, standard deviation, pointwise and simultaneous band of a function, then of ``others``."""
    mean = np.concatenate([function.mean.ravel(), *(np.ravel(other[1]) for other in others)])
    std = np.concatenate([function.std.ravel(), *(np.ravel(other[2]) for other in others)])
    cells = {"mean": mean, "std": std}
    for prefix, simultaneous in (("", False), ("simultaneous_", True)):
        half = np.resize(
            function.half_width(coverage, simultaneous), mean.shape
        )  # cycles over classes
        cells[f"{prefix}lower"], cells[f"{prefix}upper"] = around(mean, std, half)
    return cells


def axis_cells(
    values: Values, others: Sequence[str] = (), labels: bool | None = None
) -> tuple[Array, Values]:
    """Values and further entries as numbers (NaN for labels), and as labels (None for numbers).

    By default values are labels where they are objects.
    """
    labels = values.dtype == object if labels is None else labels
    names = [
        MISSING if value is None or value != value else str(value) if labels else None
        for value in values.tolist()
    ]
    numbers = np.full(len(values), np.nan) if labels else values.astype(np.float64)  # None: NaN
    return np.append(numbers, np.full(len(others), np.nan)), object_array([*names, *others])


def row_cells(values: Values, term: Term, position: int) -> tuple[Array, Values]:
    """The rows' values of one of a term's columns, as :func:`axis_cells`; blank if it has fewer."""
    if position >= len(term.features):
        return np.full(len(values), np.nan), object_array([None] * len(values))
    return axis_cells(values, labels=term.feature_kinds[position] == CATEGORICAL)
