"""``lanam report``: a model and a table to one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanam.cli.console import Console
from lanam.cli.errors import UsageError
from lanam.cli.models import load_one, open_for, require_columns
from lanam.cli.requests import ReportRequest
from lanam.cli.rows import read_arguments
from lanam.cli.tables import read_rows, require_new

if TYPE_CHECKING:
    from lanam.cli.models import Estimator


def report(request: ReportRequest, console: Console) -> None:
    """Write a report of a model, with the rows of a table."""
    if not request.output.lower().endswith((".html", ".htm")):
        raise UsageError(f"{request.output}: the name of a report ends in .html")
    files = tuple(name for name in (request.model, request.data) if name)
    require_new(request.output, force=request.force, inputs=files, example="report.html")
    model = load_one(request.model, request.cause)
    if request.data is None and request.adequacy:
        raise UsageError("--adequacy is of the rows of a table: pass the table as well")
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
    if hasattr(model, "causes_"):  # of survival, rows to pick from
        if request.adequacy:
            raise UsageError("--adequacy is not for reports of survival: use lanam adequacy")
        source = open_for(model, data, request.dialect, console)
        return {"X": read_rows(source, require_columns(model, source))}
    rows = read_arguments(request, data, model, console)
    if request.adequacy:
        if "y" not in rows:
            raise UsageError("--adequacy needs the target: name its column with --target")
        rows["adequacy"] = True
    elif "y" not in rows:
        console.note(f"{data} has no target column (see --target): the report has no calibration")
    return rows
