"""``lanam export``: a model to tables, SQL or ONNX for elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanam.cli.errors import Misuse
from lanam.cli.models import load_model
from lanam.cli.speaking import Voice
from lanam.cli.writing import require_new

KINDS = ("json", "csv", "sql", "onnx")


@dataclass(frozen=True)
class Request:
    """What ``lanam export`` was asked to do; each field is an option."""

    model: str
    output: str
    to: str | None = None
    table: str | None = None
    dialect: str | None = None
    keep: Sequence[str] = ()
    variance: bool = True
    force: bool = False


def export(request: Request, voice: Voice) -> None:
    """Write a model in another form."""
    kind = request.to or Path(request.output).suffix.lstrip(".").lower()
    if kind not in KINDS:
        raise Misuse(f"what is {request.output} to be? Say --to with one of {', '.join(KINDS)}")
    options = _options(request, kind)
    if request.output == "-":
        if voice.json:
            raise Misuse("--json and -o - both want standard output: choose one")
        content = load_model(request.model).export(None, to=kind, **options)
        sys.stdout.buffer.write(content if isinstance(content, bytes) else content.encode("utf-8"))
        return
    require_new(
        request.output, force=request.force, inputs=(request.model,), example=f"model.{kind}"
    )
    with voice.warnings():
        path = load_model(request.model).export(request.output, to=kind, **options)
    voice.note(f"written: {path}")
    voice.document({"to": kind, "file": str(path), "notes": voice.notes})


def _options(request: Request, kind: str) -> dict[str, Any]:
    """The format's options; one that it does not have is refused."""
    names = [part for value in request.keep for part in value.split(",") if part]
    given = {"table": request.table, "dialect": request.dialect, "keep": names or None}
    options = {name: value for name, value in given.items() if value is not None}
    if options and kind != "sql":
        raise Misuse(f"--{next(iter(options))} is for SQL, and this is {kind}")
    if not request.variance:
        if kind == "csv":
            raise Misuse("--no-variance is not for csv, whose table has each entry's own alone")
        options["variance"] = False
    return options
