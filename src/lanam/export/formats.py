"""The formats of exports, and a model written in one of them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanam.conformal import Calibration
from lanam.data import Schema
from lanam.explain.portable import PortableModel
from lanam.export.lookup import lookup_json
from lanam.export.onnx_graph import onnx_model
from lanam.export.rating import rating_table
from lanam.export.sql import sql_query
from lanam.files import require_place, write_atomically

if TYPE_CHECKING:
    from onnx import ModelProto

#: The function that renders each format.
FORMATS: dict[str, Callable[..., str | ModelProto]] = {
    "json": lookup_json,
    "csv": rating_table,
    "sql": sql_query,
    "onnx": onnx_model,
}


def render(
    to: str,
    portable: PortableModel,
    schema: Schema,
    options: Mapping[str, object],
    *,
    calibration: Calibration | None = None,
    edits: Sequence[Mapping[str, object]] = (),
) -> str | bytes:
    """A model in the format ``to``: text, or bytes for "onnx"."""
    write = FORMATS[require_format(to)]
    named = [
        name
        for name, option in inspect.signature(write).parameters.items()
        if option.kind is option.KEYWORD_ONLY
    ]
    facts = {"calibration": calibration, "edits": edits}
    known_options = [name for name in named if name not in facts]
    for name in options:
        if name not in known_options:
            there = (
                f"its options are {', '.join(known_options)}" if known_options else "it has none"
            )
            raise TypeError(f"export to={to!r} has no option {name!r}: {there}")
    extra = {name: fact for name, fact in facts.items() if name in named}
    content = write(portable, schema, **options, **extra)
    return content if isinstance(content, str) else content.SerializeToString()


def require_format(to: object) -> str:
    """Reject an unknown format."""
    if isinstance(to, str) and to in FORMATS:
        return to
    raise ValueError(f"to={to!r} is not known: choose from {', '.join(map(repr, FORMATS))}")


def format_of(path: str | os.PathLike[str], to: str | None) -> str:
    """The requested format, or else the one of the file's extension.

    Examples
    --------
    >>> format_of("tables.JSON", None), format_of("scores.txt", "sql")
    ('json', 'sql')
    """
    if to is not None:
        return require_format(to)
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise ValueError(
            f"the name {Path(path).name!r} has no known extension: end it with one of "
            f"{endings}, or pass to="
        )
    return suffix


def write_export(
    path: str | os.PathLike[str], content: Callable[[], str | bytes], *, overwrite: bool
) -> Path:
    """Render an export once its path is known to be writable, and write it."""
    require_place(path, "model.json", overwrite=overwrite)
    return write_atomically(path, content(), "the export", overwrite=overwrite)
