"""Schemas, class labels and records of edits as plain values, checked when they are read."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from lanam.data import CATEGORICAL, NUMERIC, Column, Level, Schema
from lanam.editing import ACTIONS, Edit, EditedRange
from lanam.storage.errors import DamageError, require
from lanam.storage.fields import Fields, each
from lanam.storage.values import decode, encode

_COLUMN = ("name", "kind", "lowest", "highest", "levels", "missing")

#: Types of labels besides strings; objects are strings, numbers or booleans.
_LABELS = frozenset(
    ["bool", "object", "float16", "float32", "float64"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
_PLAIN = (str, bool, int, float)
_MOST_CHARACTERS = 1 << 22


def write_schema(schema: Schema) -> dict[str, Any]:
    """A schema as plain values."""
    columns = [
        {
            "name": column.name,
            "kind": column.kind,
            "lowest": encode(float(column.lowest)),
            "highest": encode(float(column.highest)),
            "levels": [_encode_label(level, f"column {column.name!r}") for level in column.levels],
            "missing": bool(column.missing),
        }
        for column in schema.columns
    ]
    return {"columns": columns, "backend": schema.backend}


def read_schema(value: object) -> Schema:
    """The schema that was written."""
    fields = Fields(value, "the columns", ("columns", "backend"))
    backend = None if fields.values["backend"] is None else fields.text("backend")
    columns = tuple(
        _read_column(item, k) for k, item in each(fields.values["columns"], "the columns")
    )
    require(len(columns) > 0, "there are no columns")
    return Schema(columns, backend)


def _read_column(value: object, k: int) -> Column:
    fields = Fields(value, f"column {k}", _COLUMN)
    kind = fields.text("kind", (NUMERIC, CATEGORICAL))
    levels = tuple(_decode_label(item) for item in fields.items("levels"))
    fields.require(kind == CATEGORICAL or not levels, "levels")
    fields.require(len(set(levels)) == len(levels) and _alike(levels), "levels")
    ends = [decode(fields.values[key]) for key in ("lowest", "highest")]
    fields.require(all(type(end) is float for end in ends), "lowest")
    lowest, highest = ends
    known = lowest <= highest and math.isfinite(lowest) and math.isfinite(highest)
    fields.require(known or (math.isnan(lowest) and math.isnan(highest)), "lowest")
    return Column(fields.text("name"), kind, lowest, highest, levels, fields.flag("missing"))


def _alike(levels: tuple[Level, ...]) -> bool:
    """Whether all are strings, all booleans or all numbers."""
    kinds = {type(level) for level in levels}
    return len(kinds) <= 1 or kinds == {int, float}


def write_classes(classes: np.ndarray | None) -> dict[str, Any] | None:
    """A classifier's labels with their dtype."""
    if classes is None:
        return None
    text = classes.dtype.kind == "U"
    if not text and classes.dtype.name not in _LABELS:
        raise ValueError(
            f"classes of type {classes.dtype} cannot be saved: fit with labels that are strings, "
            "numbers or booleans, for example y.astype(str)"
        )
    return {
        "dtype": "text" if text else classes.dtype.name,
        # The length of numpy's strings.
        "room": classes.dtype.itemsize // 4 if text else 0,
        "values": [_encode_label(label, "y") for label in classes.tolist()],
    }


def read_classes(value: object) -> np.ndarray | None:
    """The labels that were written."""
    if value is None:
        return None
    fields = Fields(value, "the classes", ("dtype", "room", "values"))
    dtype = fields.text("dtype", {*_LABELS, "text"})
    labels = [_decode_label(item) for item in fields.items("values")]
    fields.require(len(labels) >= 2 and len(set(labels)) == len(labels), "values")
    room = fields.whole("room", 0, _MOST_CHARACTERS // len(labels))
    try:
        result = np.array(labels, dtype=f"U{room}" if dtype == "text" else dtype)
    except (ValueError, TypeError, OverflowError):
        raise DamageError("'values' of the classes") from None
    same = result.tolist() == labels and list(map(type, result.tolist())) == list(map(type, labels))
    fields.require(same, "values")
    return result


def _encode_label(label: object, place: str) -> object:
    label = label.item() if isinstance(label, np.generic) else label
    if not isinstance(label, _PLAIN):
        raise ValueError(
            f"{place} has the label {label!r}, a {type(label).__name__}, which cannot be saved: fit "
            "with labels that are strings, numbers or booleans"
        )
    return encode(label)


def _decode_label(value: object) -> Level:
    label: Level = decode(value)
    require(isinstance(label, _PLAIN) and label == label, "a label")
    return label


def read_edits(values: object) -> tuple[Edit, ...]:
    """Records of edits, which are written as they are."""
    return tuple(_read_edit(value, k) for k, value in each(values, "the list of edits"))


def _read_edit(value: object, k: int) -> Edit:
    later = ("date", "author")  # files of earlier versions lack them
    fields = Fields(value, f"edit {k}", Edit.__annotations__.keys() - set(later), later)
    for key in later:
        fields.values.setdefault(key, None)
    fields.text("term")
    require(all(isinstance(name, str) for name in fields.items("terms")), f"the terms of edit {k}")
    action = fields.text("action", ACTIONS)
    places = fields.items("where")
    most = 1 if action == "smooth" else 3
    require(1 <= len(places) <= most, f"where edit {k} is")
    for place in places:
        _require_place(place, f"where edit {k} is")
    if fields.values["width"] is not None:
        fields.number("width", 0.0)
    for key in ("reason", "author"):
        if fields.values[key] is not None:
            fields.text(key)
    if fields.values["date"] is not None:
        fields.date("date")
    fields.number("changed_share", 0.0)
    fields.text("lanam_version")
    return cast(Edit, dict(fields.values))


def _require_place(value: object, what: str) -> None:
    fields = Fields(value, what, EditedRange.__annotations__)
    fields.text("column")
    fields.flag("values")
    fields.flag("missing")
    for end in ("low", "high"):
        if fields.values[end] is not None:
            fields.number(end)
    if fields.values["levels"] is not None:
        plain = all(type(level) in (str, bool, int, float) for level in fields.items("levels"))
        fields.require(plain, "levels")
