"""Input fields of the what-if page, one per column."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lanam.core.arrays import IntArray
from lanam.data import CATEGORICAL, UNSEEN
from lanam.explain import Shape
from lanam.explain.ranges import trimmed
from lanam.report.material import Material
from lanam.text import one_line

#: Maximum number of categories to choose from, the most frequent.
_MAX_LEVELS = 300

#: Up to this many values have their own knots; for more, this many rows are a sufficient sample.
_FEW_KNOTS = 250
_ENOUGH_ROWS = 20


def fields(material: Material) -> tuple[list[dict[str, object]], dict[int, IntArray]]:
    """The input field of every column, and the codes to choose from for categorical columns."""
    used = material.used
    result, offered = [], {}
    for index, column in enumerate(material.schema.columns):
        terms = (t for t in material.explanation.shapes if t.features == (index,))
        shape = _with_values(next(term for term in terms if term.kind != "level"), material)
        facts: dict[str, object] = {
            "name": one_line(column.name),
            "index": index,
            "kind": column.kind,
            "used": index in used,
        }
        if column.kind == CATEGORICAL:
            codes = _codes(material, index, shape)
            offered[index] = codes
            labels = [str(column.levels[code]) for code in codes]
            # Blank labels are quoted.
            labels = [name if name.strip() else repr(name) for name in labels]
            facts["levels"] = [list(pair) for pair in zip(codes.tolist(), labels, strict=True)]
            facts["n_levels"] = len(column.levels)
            facts["typical"] = _most_frequent(shape, column.levels, codes)
        else:
            facts |= _numbers(material, index, shape)
        result.append(facts)
    return result, offered


def _with_values(shape: Shape, material: Material) -> Shape:
    """A coordinate has no curve: its values are those of its surface."""
    (index,) = shape.features
    for surface in material.explanation.pairs:
        if surface.spatial and index in surface.features:
            axis = surface.axes[surface.features.index(index)]
            numbers = slice(len(axis.values))
            missing = float(axis.density[len(axis.values) :].sum())
            density, inside = axis.density[numbers], axis.inside[numbers]
            return replace(
                shape,
                values=axis.values,
                density=density,
                inside=inside,
                missing_density=missing or None,
            )
    return shape


def _codes(material: Material, index: int, shape: Shape) -> IntArray:
    """The categories to choose from: the most frequent, and those of the example rows."""
    levels = material.schema.columns[index].levels
    if len(levels) <= _MAX_LEVELS:
        return np.arange(len(levels))
    code_of = {level: code for code, level in enumerate(levels)}
    common = np.argsort(-shape.density, kind="stable")[:_MAX_LEVELS]
    codes = [code_of[level] for level in shape.values[common].tolist()]
    if material.rows is not None:
        cells = material.rows.cells[:, index]
        codes += cells[np.isfinite(cells) & (cells != UNSEEN)].astype(int).tolist()
    return np.unique(codes)


def _most_frequent(shape: Shape, levels: tuple[object, ...], codes: IntArray) -> float | None:
    """The code of the most frequent category; None if missing values are more frequent."""
    if not len(codes):
        return None
    if not len(shape.density):
        return float(codes[0])
    if (shape.missing_density or 0.0) > shape.density.max():
        return None
    return float(levels.index(shape.values.tolist()[int(np.argmax(shape.density))]))


def _numbers(material: Material, index: int, shape: Shape) -> dict[str, object]:
    """Range, step and initial value of a numeric column's slider.

    The initial value is the median; ``typical`` is None, for missing, if most rows have no value.
    """
    column = material.schema.columns[index]
    inner = shape.values[shape.inside] if len(shape.values) else shape.values
    if not len(inner):
        has_range = column.lowest == column.lowest
        value = column.lowest if has_range else 0.0
        ends = dict.fromkeys(("low", "high", "lowest", "highest"), value)
        return {**ends, "step": "any", "value": value, "typical": value if has_range else None}
    low, high = trimmed(shape.values, shape.density, inner)
    below = np.cumsum(shape.density)
    median = float(shape.values[np.searchsorted(below, 0.5 * below[-1])])
    whole = _is_whole(material, index, shape) and high - low >= 1.0
    value = round(median) if whole else _short(median, high - low)
    value = float(np.clip(value, column.lowest, column.highest)) + 0.0  # no -0
    return {
        "low": float(low),
        "high": float(high),
        "lowest": column.lowest,
        "highest": column.highest,
        "step": 1 if whole else "any",
        "value": value,
        "typical": None if (shape.missing_density or 0.0) > 0.5 else value,
    }


def _is_whole(material: Material, index: int, shape: Shape) -> bool:
    """Whether a column appears to hold integers only.

    Columns with many values have knots between them, so that only the example rows show this.
    """
    values = shape.values[shape.inside & (shape.density > 0.0)]
    exact = len(values) <= _FEW_KNOTS
    if material.rows is not None:
        cells = material.rows.cells[:, index]
        finite = cells[np.isfinite(cells)]
        values = np.concatenate([values, finite]) if exact else finite
        exact = exact or len(finite) >= _ENOUGH_ROWS
    return bool(exact and len(values) and np.all(np.mod(values, 1.0) == 0.0))


def _short(value: float, width: float) -> float:
    """The value to four digits, or to a thousandth of a narrow range."""
    if value == 0.0 or not width > 0.0:
        return value
    return round(value, 3 - math.floor(math.log10(min(abs(value), width))))
