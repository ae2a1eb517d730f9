"""``lanam report``: a model and a table to one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lanam.cli.console import Console, unheard
from lanam.cli.deciding import require_column, target_values
from lanam.cli.errors import UsageError
from lanam.cli.models import (
    given_columns,
    load_one,
    metadata,
    numbers,
    open_for,
    require_columns,
)
from lanam.cli.requests import ReportRequest
from lanam.cli.tables import read_rows, require_new
from lanam.engines.files import FileSource
from lanam.provenance import held_out_rows

if TYPE_CHECKING:
    from lanam.cli.models import Estimator


def report(request: ReportRequest, console: Console) -> None:
    """Write a report of a model, with the rows of a table."""
    if not request.output.lower().endswith((".html", ".htm")):
        raise UsageError(f"{request.output}: the name of a report ends in .html")
    files = tuple(name for name in (request.model, request.data) if name)
    require_new(request.output, force=request.force, inputs=files, example="report.html")
    model = load_one(request.model, request.cause)
    if request.data is None and (request.target or request.exposure or request.sample_weight):
        raise UsageError(
            "--target, --exposure and --weight are columns of a table: pass the table as well"
        )
    rows = {} if request.data is None else _read(request, request.data, model, console)
    with console.warnings():
        path = model.report(
            request.output,
            title=request.title,
            n_rows=request.rows,
            coverage=request.coverage,
            overwrite=request.force,
            **rows,
        )
    console.note(f"written: {path}; open it in a browser")
    console.document({"report": str(path), "notes": console.notes})


def _read(request: ReportRequest, data: str, model: Estimator, console: Console) -> dict[str, Any]:
    """The rows of a table, as arguments of ``report``."""
    source = open_for(model, data, request.dialect, console)
    needed = require_columns(model, source)
    if hasattr(model, "causes_"):  # of survival, rows to pick from
        return {"X": read_rows(source, needed)}
    target = _optional(request.target, metadata(model).get("target"), source, "--target")
    weight = _optional(request.sample_weight, metadata(model).get("weight"), source, "--weight")
    given = given_columns(model, source, request)
    if target is None:
        console.note(
            f"{source.title} has no target column (see --target): the report has no calibration"
        )
    classes = getattr(model, "classes_", None)
    types: dict[str, pa.DataType] = {}
    if target is not None:
        kind = pa.float64() if classes is None else pa.array(classes.tolist()).type
        # Classes 0 and 1 may be written as 0.0 and 1.0, as the fit read them.
        types[target] = pa.float64() if pa.types.is_integer(kind) else kind
    for name in (weight, *given.columns):
        if name is not None:
            types[name] = pa.float64()
    table = read_rows(source.with_types(types), [*needed, *types])
    if not request.all_rows:
        table = _held_out(table, needed, model, console)
    if target is not None and table[target].null_count:
        console.note(f"{table[target].null_count} rows have no target and are left out")
        table = table.filter(pc.is_valid(table[target]))
    rows: dict[str, Any] = {"X": table.select(needed), **vars(given)}
    for argument, role in vars(given).items():
        if isinstance(role, str):
            rows[argument] = numbers(table, role, f"--{argument}")
    if target is not None:
        rows["y"] = target_values(table[target], model.family_)
        if weight is not None:
            rows["sample_weight"] = numbers(table, weight, "--weight")
    return rows


def _held_out(table: pa.Table, needed: list[str], model: Estimator, console: Console) -> pa.Table:
    """The rows that ``lanam fit`` held out, if this is the table that it read; else all of them."""
    held = None if model.provenance_ is None else model.provenance_.held_out
    if held is None or len(held.rows) != len(table):
        return table
    chosen = table.filter(pa.array(held.rows))
    with unheard():
        same = held_out_rows(model, chosen.select(needed), held.rows)
    if same.fingerprint != held.fingerprint:
        return table
    console.note(
        f"{len(chosen)} of {len(table)} rows were held out of the fit, and are used here (--all-rows uses "
        "all)"
    )
    return chosen


def _optional(given: str | None, fitted: object, source: FileSource, option: str) -> str | None:
    """A column that an option names, or else the one of the fit, if the table has it."""
    if given is not None:
        return require_column(given, source.names, option)
    return fitted if isinstance(fitted, str) and fitted in source.names else None
