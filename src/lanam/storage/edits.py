"""Records of what was changed by hand: plain already, and checked when they are read."""

from __future__ import annotations

from typing import cast

from lanam.editing import ACTIONS, Edit, Place
from lanam.storage.errors import require
from lanam.storage.fields import Fields, each


def read_edits(values: object) -> tuple[Edit, ...]:
    """The records that were written."""
    return tuple(_read_edit(value, k) for k, value in each(values, "the list of edits"))


def _read_edit(value: object, k: int) -> Edit:
    fields = Fields(value, f"edit {k}", Edit.__annotations__)
    fields.text("term")
    require(all(isinstance(name, str) for name in fields.items("terms")), f"the terms of edit {k}")
    action = fields.text("action", ACTIONS)
    places = fields.items("where")
    most = 1 if action == "smooth" else 2
    require(1 <= len(places) <= most, f"where edit {k} is")
    for place in places:
        _require_place(place, f"where edit {k} is")
    if fields.values["width"] is not None:
        fields.number("width", 0.0)
    if fields.values["reason"] is not None:
        fields.text("reason")
    fields.number("changed_share", 0.0)
    fields.text("lanam_version")
    return cast(Edit, dict(fields.values))


def _require_place(value: object, what: str) -> None:
    fields = Fields(value, what, Place.__annotations__)
    fields.text("column")
    fields.flag("values")
    fields.flag("missing")
    for end in ("low", "high"):
        if fields.values[end] is not None:
            fields.number(end)
    if fields.values["levels"] is not None:
        plain = all(type(level) in (str, bool, int, float) for level in fields.items("levels"))
        fields.require(plain, "levels")
