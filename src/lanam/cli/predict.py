"""``lanam predict``: rows of a file to predictions in another, part by part."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lanam.cli.deciding import split_names
from lanam.cli.errors import Misuse, in_flags
from lanam.cli.models import (
    column_types,
    exposure_column,
    load_model,
    numbers,
    open_for,
    open_several,
    require_columns,
)
from lanam.cli.reading import BLOCK_SIZE, Dialect, Source, are_files
from lanam.cli.speaking import Voice, caught_warnings
from lanam.cli.writing import open_table, require_new, require_table_name
from lanam.data import Surprise, add_up, collect_surprises
from lanam.engines.files import FileSource
from lanam.predicting import predict_files
from lanam.predictions import Outputs, Wanted

_END = (None, None)


@dataclass(frozen=True)
class Request:
    """What ``lanam predict`` was asked to do; each field is an option."""

    model: str
    data: str
    output: str
    wanted: Wanted = field(default_factory=Wanted)
    keep: Sequence[str] = ()
    all_columns: bool = False
    exposure: str | None = None
    block_size: int = BLOCK_SIZE
    force: bool = False
    dialect: Dialect = field(default_factory=Dialect)


def predict(request: Request, voice: Voice) -> None:
    """Predict the rows of a file or of several, however many there are, and write them."""
    started = time.perf_counter()
    work = _predict_several if are_files(request.data) else _predict_one
    n_rows, columns = work(request, voice)
    seconds = time.perf_counter() - started
    where = "standard output" if request.output == "-" else request.output
    voice.note(f"{n_rows:,} rows predicted in {seconds:.1f} s: {where}")
    voice.document(
        {
            "output": request.output,
            "n_rows": n_rows,
            "columns": columns,
            "seconds": round(seconds, 3),
            "notes": voice.notes,
        }
    )


def _predict_several(request: Request, voice: Voice) -> tuple[int, list[str]]:
    """The number of rows that were written, and the columns."""
    if request.output == "-":
        raise Misuse("-o - is for one file: name a folder, or a file that all go into")
    model = load_model(request.model)
    source = open_several(model, request.data, request.dialect, request.block_size)
    exposure = exposure_column(model, source, request.exposure)
    kept = kept_names(request, source)
    outputs = outputs_of(model, request.wanted, kept)
    with voice.warnings(), _progress(source.title, voice) as advance:
        n_rows = predict_files(
            model,
            request.data,
            request.output,
            request.wanted,
            keep=kept,
            exposure=exposure,
            overwrite=request.force,
            progress=advance,
        )
    return n_rows, [*kept, *outputs.names]


def _predict_one(request: Request, voice: Voice) -> tuple[int, list[str]]:
    """The same of one file, in any dialect, or of standard input."""
    if request.output == "-" and voice.json:
        raise Misuse("--json and -o - both want standard output: choose one")
    require_table_name(request.output)
    if request.output != "-":
        files = (request.model, request.data)
        require_new(request.output, force=request.force, inputs=files, example="out.csv")
    model = load_model(request.model)
    source = open_for(model, request.data, request.dialect, voice)
    needed = require_columns(model, source)
    exposure = exposure_column(model, source, request.exposure)
    types = column_types(model)
    if isinstance(exposure, str):
        types = {**types, exposure: pa.float64()}
    kept = kept_names(request, source)
    outputs = outputs_of(model, request.wanted, kept)
    # Cells of text go from text to text as they are, so that columns of the model are then read as text
    # too. Of Parquet, which has types, they have the model's.
    verbatim = {}
    if source.kind == "csv" and require_table_name(request.output) == "csv":
        verbatim = {name: types[name] for name in kept if name in types}

    read = list(dict.fromkeys([*needed, *kept, *([exposure] if isinstance(exposure, str) else [])]))
    n_rows, surprises = 0, []
    types = {name: kind for name, kind in types.items() if name not in verbatim}
    parts = _parts(source, source.batches(read, types, request.block_size), verbatim)
    first, table = next(parts, _END)
    schema = _schema(kept, first, types, outputs)
    with open_table(request.output, schema) as writer, _progress(source.title, voice) as advance:
        while first is not None:
            with _collected() as found:
                columns = outputs.arrays(table.select(needed), _exposures(table, exposure))
            surprises += found
            whole = [first[name].cast(schema.field(name).type) for name in kept]
            writer.write_table(pa.table([*whole, *columns], schema=schema))
            n_rows += first.num_rows
            advance(n_rows)
            first, table = next(parts, _END)
    for surprise in add_up(surprises, n_rows):
        voice.warn(str(surprise))
    return n_rows, schema.names


def _parts(
    source: Source, read: Iterator[pa.Table], verbatim: Mapping[str, pa.DataType]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Each part as it is written and as it is predicted, in which some columns' text has its type."""
    n_rows = 0
    for part in read:
        yield part, source.converted(part, verbatim, n_rows) if verbatim else part
        n_rows += part.num_rows


def kept_names(request: Request, source: Source | FileSource) -> list[str]:
    """The columns of the input that are written as well."""
    if request.all_columns:
        return [name for name in source.names if name]
    return split_names(request.keep, source.names, "--keep")


def outputs_of(model: Any, wanted: Wanted, kept: Sequence[str]) -> Outputs:
    """The columns that are written besides those that are kept."""
    try:
        outputs = Outputs(model, wanted)
    except ValueError as error:
        raise Misuse(in_flags(str(error))) from None
    clash = [name for name in kept if name in outputs.names]
    if clash:
        raise Misuse(
            f"the column {clash[0]!r} has the name of an output: say --prefix model_, for example"
        )
    return outputs


def _exposures(table: pa.Table, exposure: str | float | None) -> Any:
    return numbers(table, exposure, "--exposure") if isinstance(exposure, str) else exposure


def _schema(
    kept: Sequence[str], first: pa.Table | None, types: Mapping[str, pa.DataType], outputs: Outputs
) -> pa.Schema:
    """The output's columns; those of the input have their own types, even if there are no rows."""
    fields = [
        pa.field(
            name, types.get(name, pa.string()) if first is None else first.schema.field(name).type
        )
        for name in kept
    ]
    return pa.schema([*fields, *outputs.schema])


@contextmanager
def _collected() -> Iterator[list[Surprise]]:
    """What the rows hold that the training data did not, instead of a warning a part."""
    with caught_warnings(), collect_surprises() as found:
        yield found


@contextmanager
def _progress(title: str, voice: Voice) -> Iterator[Any]:
    """What is told how many rows are done: a line that is rewritten on a terminal, nothing elsewhere."""
    if voice.quiet or voice.json or not sys.stderr.isatty():
        yield lambda n_rows: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.fields[rows]:>14,} rows"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, rows=0)
        yield lambda n_rows: progress.update(task, rows=n_rows)
