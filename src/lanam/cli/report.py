"""``lanam report``: a model and a table to one HTML file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lanam.cli.deciding import require_column, target_values
from lanam.cli.errors import Misuse
from lanam.cli.models import (
    exposure_column,
    load_model,
    metadata,
    numbers,
    open_for,
    require_columns,
)
from lanam.cli.reading import read_rows
from lanam.cli.speaking import Voice
from lanam.cli.writing import require_new
from lanam.engines.dialects import Dialect
from lanam.engines.files import FileSource


@dataclass(frozen=True)
class Request:
    """What ``lanam report`` was asked to do; each field is an option."""

    model: str
    output: str
    data: str | None = None
    target: str | None = None
    exposure: str | None = None
    weight: str | None = None
    title: str | None = None
    rows: int = 200
    coverage: float = 0.95
    force: bool = False
    dialect: Dialect = field(default_factory=Dialect)


def report(request: Request, voice: Voice) -> None:
    """Write a report of a model, with the rows of a table."""
    if not request.output.lower().endswith((".html", ".htm")):
        raise Misuse(f"{request.output}: a report's name ends in .html")
    files = tuple(name for name in (request.model, request.data) if name)
    require_new(request.output, force=request.force, inputs=files, example="report.html")
    model = load_model(request.model)
    options: dict[str, Any] = {"title": request.title, "coverage": request.coverage}
    if request.data is not None:
        options |= {"n_rows": request.rows, **_rows(request, model, voice)}
    elif request.target or request.exposure or request.weight:
        raise Misuse(
            "--target, --exposure and --weight are columns of a table: name its file as well"
        )
    with voice.warnings():
        path = model.report(request.output, **options)
    voice.note(f"written: {path}; open it in a browser")
    voice.document({"report": str(path), "notes": voice.notes})


def _rows(request: Request, model: Any, voice: Voice) -> dict[str, Any]:
    """The rows of the table, and what of them the report takes."""
    source = open_for(model, str(request.data), request.dialect, voice)
    needed = require_columns(model, source)
    target = _optional(request.target, metadata(model).get("target"), source, "--target")
    weight = _optional(request.weight, metadata(model).get("weight"), source, "--weight")
    exposure = exposure_column(model, source, request.exposure)
    if target is None:
        voice.note(
            f"{source.title} has no target that is known (--target names one): the report says nothing of "
            "calibration"
        )
    classes = getattr(model, "classes_", None)
    own: dict[str, pa.DataType] = {}
    if target is not None:
        own[target] = pa.float64() if classes is None else pa.array(classes.tolist()).type
    for name in (weight, exposure):
        if isinstance(name, str):
            own[name] = pa.float64()
    table = read_rows(source.typed(own), [*needed, *own])
    if target is not None and table[target].null_count:
        voice.note(f"{table[target].null_count} rows have no target and are left out")
        table = table.filter(pc.is_valid(table[target]))
    result: dict[str, Any] = {"X": table.select(needed)}
    if target is not None:
        result["y"] = target_values(table[target], model.family_)
        if weight is not None:
            result["sample_weight"] = numbers(table, weight, "--weight")
    if exposure is not None:
        by_name = isinstance(exposure, str)
        result["exposure"] = numbers(table, exposure, "--exposure") if by_name else exposure
    return result


def _optional(given: str | None, known: Any, source: FileSource, option: str) -> str | None:
    """A column that an option names, or else the one of the fit if it is there."""
    if given is not None:
        return require_column(given, source.names, option)
    return known if known in source.names else None
