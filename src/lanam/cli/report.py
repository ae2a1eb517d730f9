"""``lanam report``: a model and a table to one HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lanam.cli.console import Console
from lanam.cli.deciding import require_column, target_values
from lanam.cli.errors import UsageError
from lanam.cli.models import (
    exposure_column,
    load_model,
    metadata,
    numbers,
    open_for,
    require_columns,
)
from lanam.cli.reading import read_rows
from lanam.cli.requests import Report
from lanam.cli.writing import require_new
from lanam.engines.files import FileSource

if TYPE_CHECKING:
    from lanam.cli.models import Estimator


@dataclass(frozen=True)
class Rows:
    """What of a table a report takes."""

    X: pa.Table | None = None
    y: np.ndarray | None = None
    weight: np.ndarray | None = None
    exposure: np.ndarray | float | None = None


def report(request: Report, console: Console) -> None:
    """Write a report of a model, with the rows of a table."""
    if not request.output.lower().endswith((".html", ".htm")):
        raise UsageError(f"{request.output}: a report's name ends in .html")
    files = tuple(name for name in (request.model, request.data) if name)
    require_new(request.output, force=request.force, inputs=files, example="report.html")
    model = load_model(request.model)
    if request.data is None and (request.target or request.exposure or request.weight):
        raise UsageError(
            "--target, --exposure and --weight are columns of a table: name its file as well"
        )
    rows = _read(request, request.data, model, console) if request.data is not None else Rows()
    with console.warnings():
        path = model.report(
            request.output,
            rows.X,
            rows.y,
            title=request.title,
            n_rows=request.rows,
            coverage=request.coverage,
            exposure=rows.exposure,
            sample_weight=rows.weight,
        )
    console.note(f"written: {path}; open it in a browser")
    console.document({"report": str(path), "notes": console.notes})


def _read(request: Report, data: str, model: Estimator, console: Console) -> Rows:
    """The rows of the table, and what of them the report takes."""
    source = open_for(model, data, request.dialect, console)
    needed = require_columns(model, source)
    target = _optional(request.target, metadata(model).get("target"), source, "--target")
    weight = _optional(request.weight, metadata(model).get("weight"), source, "--weight")
    exposure = exposure_column(model, source, request.exposure)
    if target is None:
        console.note(
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
    table = read_rows(source.with_types(own), [*needed, *own])
    if target is not None and table[target].null_count:
        console.note(f"{table[target].null_count} rows have no target and are left out")
        table = table.filter(pc.is_valid(table[target]))
    return Rows(
        table.select(needed),
        None if target is None else target_values(table[target], model.family_),
        None if target is None or weight is None else numbers(table, weight, "--weight"),
        numbers(table, exposure, "--exposure") if isinstance(exposure, str) else exposure,
    )


def _optional(given: str | None, known: object, source: FileSource, option: str) -> str | None:
    """A column that an option names, or else the one of the fit if it is there."""
    if given is not None:
        return require_column(given, source.names, option)
    return known if isinstance(known, str) and known in source.names else None
