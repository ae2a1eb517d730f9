"""``lanam export``: a model to tables, SQL or ONNX for elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

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
    force: bool = False


def export(request: Request, voice: Voice) -> None:
    """Write a model in another form."""
    kind = request.to or Path(request.output).suffix.lstrip(".").lower()
    if kind not in KINDS:
        raise Misuse(f"what is {request.output} to be? Say --to with one of {', '.join(KINDS)}")
    require_new(
        request.output, force=request.force, inputs=(request.model,), example=f"model.{kind}"
    )
    with voice.warnings():
        written = load_model(request.model).export(request.output, to=kind)
    paths = [
        os.fspath(each) for each in (written if isinstance(written, (list, tuple)) else [written])
    ]
    voice.note(f"written: {', '.join(paths)}")
    voice.document({"to": kind, "files": paths, "notes": voice.notes})
