"""``lanam predict``: rows of a file to predictions in another, in chunks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from lanam.batch_predict import OutputCall, OutputOptions, Outputs, keep_text, predict_files
from lanam.cli.console import Console
from lanam.cli.deciding import split_names
from lanam.cli.errors import UsageError, in_flags
from lanam.cli.models import (
    given_columns,
    known_columns,
    load_model,
    open_for,
    require_columns,
    without,
)
from lanam.cli.requests import BLOCK_SIZE, PredictRequest
from lanam.cli.streams import require_stdout
from lanam.cli.tables import are_files, open_writer, require_new, require_table_name
from lanam.data.errors import unknown_columns
from lanam.engines.dialects import CsvFiles
from lanam.engines.files import FileSource
from lanam.errors import warn_user

if TYPE_CHECKING:
    from lanam.cli.models import Estimator


def predict(request: PredictRequest, console: Console) -> None:
    """Predict the rows of one or more files, and write the predictions."""
    started = time.perf_counter()
    n_rows, columns = _write(request, console)
    seconds = time.perf_counter() - started
    where = "standard output" if request.output == "-" else request.output
    console.note(f"{n_rows:,} rows predicted in {seconds:.1f} s: {where}")
    console.document(
        {
            "output": request.output,
            "n_rows": n_rows,
            "columns": columns,
            "seconds": round(seconds, 3),
            "notes": console.notes,
        }
    )


def _write(request: PredictRequest, console: Console) -> tuple[int, list[str]]:
    """Write the predictions; the number of rows, and the columns."""
    several = are_files(request.data)
    kind = _require_output(request, console, several)
    model = load_model(request.model)
    block_size = None if several else request.block_size
    source = open_for(model, request.data, request.dialect, console, block_size)
    if not several:
        require_columns(model, source)
    given = given_columns(model, source, request)
    kept = kept_names(request, source)
    options = OutputOptions(
        request.coverage,
        request.std,
        request.terms,
        request.proba,
        request.prefix,
        _times(request.times),
    )
    outputs = outputs_of(model, options, kept)
    with console.warnings(), _progress(source.title, console) as advance:
        known = ["", *kept, *known_columns(model), *given.columns]
        if unknown := without(source.names, known):
            warn_user(unknown_columns(unknown))
        if several:
            n_rows = predict_files(
                model,
                request.data if source.dialect is None else CsvFiles(request.data, source.dialect),
                request.output,
                options,
                keep=kept,
                **vars(given),
                overwrite=request.force,
                progress=advance,
            )
        else:
            call = OutputCall(model, given, outputs, tuple(kept))
            call, source = keep_text(call, source, as_text=kind == "csv")
            opened = partial(open_writer, request.output, force=request.force)
            n_rows = source.write_to(opened, call, advance)
    return n_rows, [*kept, *outputs.names]


def _require_output(request: PredictRequest, console: Console, several: bool) -> str | None:
    """Check the output before any work is done; the format of a single file."""
    if several and request.output == "-":
        raise UsageError("-o - is for one file: name a folder, or one file for all")
    if several and request.block_size != BLOCK_SIZE:
        raise UsageError(
            f"--block-size is for a single file, and {request.data} is several: leave it out"
        )
    if several:
        return None
    if request.output == "-" and console.json:
        raise UsageError("--json and -o - both write to standard output: choose one")
    kind = require_table_name(request.output)
    if request.output == "-":
        require_stdout("-o -")
    else:
        files = (request.model, request.data)
        require_new(request.output, force=request.force, inputs=files, example="out.csv")
    return kind


def _times(given: str | None) -> tuple[float, ...]:
    """Times separated by commas."""
    try:
        return tuple(float(part) for part in (given or "").split(",") if part.strip())
    except ValueError:
        raise UsageError(f"--times {given}: write numbers, such as 365,730") from None


def kept_names(request: PredictRequest, source: FileSource) -> list[str]:
    """The columns of the input that are written next to the predictions."""
    if request.all_columns:
        return [name for name in source.names if name]
    return split_names(request.keep, source.names, "--keep")


def outputs_of(model: Estimator, options: OutputOptions, kept: Sequence[str]) -> Outputs:
    """The columns of predictions, whose names must differ from those that are kept."""
    try:
        outputs = Outputs(model, options)
    except ValueError as error:
        raise UsageError(in_flags(error)) from None
    clash = [name for name in kept if name in outputs.names]
    if clash:
        raise UsageError(
            f"the column {clash[0]!r} has the name of an output: use --prefix model_, for example"
        )
    return outputs


@contextmanager
def _progress(title: str, console: Console) -> Iterator[Callable[[int], None]]:
    """A function that reports how many rows are done, in one line of a terminal."""
    if console.silent or not sys.stderr.isatty():
        yield lambda n_rows: None
        return
    from rich.console import Console as Terminal
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.fields[rows]:>14,} rows"), TimeElapsedColumn())
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, rows=0)
        yield lambda n_rows: progress.update(task, rows=n_rows)
