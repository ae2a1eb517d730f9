"""``lanam export``: a model to JSON, CSV, SQL or ONNX."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lanam.cli.console import Console
from lanam.cli.errors import UsageError
from lanam.cli.models import load_one
from lanam.cli.requests import ExportRequest, Form
from lanam.cli.streams import require_stdout
from lanam.cli.tables import require_new
from lanam.text import utf8


def export(request: ExportRequest, console: Console) -> None:
    """Write a model in another format."""
    kind = str(request.to or Path(request.output).suffix.lstrip(".").lower())
    if kind not in list(Form):
        raise UsageError(
            f"unknown format of {request.output}: use --to with one of {', '.join(Form)}"
        )
    options = _options(request, kind)
    if request.output == "-":
        if console.json:
            raise UsageError("--json and -o - both write to standard output: choose one")
        require_stdout("-o -")
        content = load_one(request.model, request.cause).export(None, to=kind, **options)
        sys.stdout.buffer.write(content if isinstance(content, bytes) else utf8(content))
        return
    require_new(
        request.output, force=request.force, inputs=(request.model,), example=f"model.{kind}"
    )
    with console.warnings():
        model = load_one(request.model, request.cause)
        path = model.export(request.output, to=kind, overwrite=request.force, **options)
    console.note(f"written: {path}")
    console.document({"to": kind, "file": str(path), "notes": console.notes})


def _options(request: ExportRequest, kind: str) -> dict[str, Any]:
    """The format's options; others are rejected."""
    names = [part for value in request.keep or () for part in value.split(",") if part]
    given: dict[str, object] = {
        "table": request.table,
        "dialect": request.dialect,
        "keep": names or None,
    }
    options = {name: value for name, value in given.items() if value is not None}
    if options and kind != "sql":
        raise UsageError(f"--{next(iter(options))} is for SQL, and this is {kind}")
    if request.bands is not None:
        if kind != "csv":
            raise UsageError(f"--bands is for CSV, and this is {kind}")
        options["bands"] = request.bands
    if request.no_variance:
        if kind == "csv":
            raise UsageError("--no-variance is not for csv, which has no joint variance")
        options["variance"] = False
    return options
