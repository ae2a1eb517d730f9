"""``lanam predict``: rows of a file to predictions in another, part by part."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lanam.cli.deciding import split_names
from lanam.cli.errors import Misuse
from lanam.cli.models import (
    column_types,
    exposure_column,
    load_model,
    numbers,
    open_for,
    require_columns,
)
from lanam.cli.reading import BLOCK_SIZE, Dialect, Source
from lanam.cli.speaking import Voice, caught_warnings
from lanam.cli.writing import open_table, require_new, require_table_name
from lanam.data import NewValuesWarning, Surprise, add_up

_END = (None, None)


@dataclass(frozen=True)
class Wanted:
    """What is written of each row besides the prediction."""

    interval: float | None = None
    std: bool = False
    terms: bool = False
    proba: bool = False
    prefix: str = ""


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
    """Predict the rows of a file, however many there are, and write them."""
    started = time.perf_counter()
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
    outputs = Outputs(model, request.wanted, exposure)
    # Cells of text go from text to text as they are, so that columns of the model are then read as text
    # too. Of Parquet, which has types, they have the model's.
    verbatim = {}
    if source.kind == "csv" and require_table_name(request.output) == "csv":
        verbatim = {name: types[name] for name in kept if name in types}
    clash = [name for name in kept if name in outputs.schema.names]
    if clash:
        raise Misuse(
            f"the column {clash[0]!r} has the name of an output: say --prefix model_, for example"
        )

    read = list(dict.fromkeys([*needed, *kept, *([exposure] if isinstance(exposure, str) else [])]))
    n_rows, surprises = 0, []
    types = {name: kind for name, kind in types.items() if name not in verbatim}
    parts = _parts(source, source.batches(read, types, request.block_size), verbatim)
    first, table = next(parts, _END)
    schema = _schema(kept, first, types, outputs)
    with open_table(request.output, schema) as writer, _progress(source, voice) as advance:
        while first is not None:
            with _collected(surprises):
                columns = outputs.of(table.select(needed), table)
            whole = [first[name].cast(schema.field(name).type) for name in kept]
            writer.write_table(pa.table([*whole, *columns], schema=schema))
            n_rows += first.num_rows
            advance(n_rows)
            first, table = next(parts, _END)
    for surprise in add_up(surprises, n_rows):
        voice.warn(str(surprise))
    seconds = time.perf_counter() - started
    where = "standard output" if request.output == "-" else request.output
    voice.note(f"{n_rows:,} rows predicted in {seconds:.1f} s: {where}")
    voice.document(
        {
            "output": request.output,
            "n_rows": n_rows,
            "columns": schema.names,
            "seconds": round(seconds, 3),
            "notes": voice.notes,
        }
    )


def _parts(
    source: Source, read: Iterator[pa.Table], verbatim: Mapping[str, pa.DataType]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Each part as it is written and as it is predicted, in which some columns' text has its type."""
    n_rows = 0
    for part in read:
        yield part, source.converted(part, verbatim, n_rows) if verbatim else part
        n_rows += part.num_rows


def kept_names(request: Request, source: Source) -> list[str]:
    """The columns of the input that are written as well."""
    if request.all_columns:
        return [name for name in source.names if name]
    return split_names(request.keep, source.names, "--keep")


class Outputs:
    """The columns that a model's predictions have, and their values for some rows.

    Parameters
    ----------
    model
        A fitted estimator.
    wanted
        What is asked for besides the prediction.
    exposure
        The column that counts are counted over, or one number, or None.
    """

    def __init__(self, model: Any, wanted: Wanted, exposure: str | float | None = None) -> None:
        self._model, self._wanted, self._exposure = model, wanted, exposure
        classes = getattr(model, "classes_", None)
        self._classes = None if classes is None else classes.tolist()
        if wanted.std and self._classes is not None:
            raise Misuse(
                "--std is for numbers: a class has none; --interval gives that of probabilities"
            )
        if wanted.proba and self._classes is None:
            raise Misuse("--proba is for classes, and this model predicts numbers")
        label = pa.float64() if self._classes is None else pa.array(self._classes).type
        names = self._names()
        self.schema = pa.schema(
            [
                pa.field(wanted.prefix + name, pa.float64() if at else label)
                for at, name in enumerate(names)
            ]
        )

    def _names(self) -> list[str]:
        wanted, classes = self._wanted, self._classes
        several = classes is not None and len(classes) > 2
        names = ["prediction"]
        if wanted.std:
            names.append("std")
        if wanted.proba:
            names += [f"probability_{label}" for label in classes]
        if wanted.interval is not None:
            ends = ("lower", "upper")
            names += [f"{end}_{label}" for label in classes for end in ends] if several else ends
        if wanted.terms:
            labels = [f" [{label}]" for label in classes] if several else [""]
            names += [f"intercept{label}" for label in labels]
            names += [f"term_{name}" for name in self._model.get_feature_names_out()]
        return names

    def of(self, X: pa.Table, table: pa.Table) -> list[np.ndarray]:
        """The outputs' values for the rows of ``X``; ``table`` has their exposures."""
        if X.num_rows == 0:
            return [np.empty(0, dtype=object).tolist() for _ in self.schema]
        more = self._exposures(table)
        wanted, model = self._wanted, self._model
        columns: list[Any]
        if wanted.std:
            columns = [*model.predict(X, return_std=True, **more)]
        elif wanted.proba:  # once for both: the most probable class
            probability = model.predict_proba(X)
            columns = [model.classes_[probability.argmax(axis=1)].tolist(), *probability.T]
        elif self._classes is not None:
            columns = [model.predict(X).tolist()]
        else:
            columns = [model.predict(X, **more)]
        if wanted.interval is not None:
            ends = model.predict_interval(X, coverage=wanted.interval, **more)
            columns += [*ends.reshape(len(ends), -1).T]
        if wanted.terms:
            contributions = model.transform(X)
            columns += [np.full(len(X), value) for value in np.atleast_1d(model.intercept_)]
            columns += [*np.asarray(contributions).T]
        return [
            pa.array(values, type=one.type)
            for values, one in zip(columns, self.schema, strict=True)
        ]

    def _exposures(self, table: pa.Table) -> Mapping[str, Any]:
        if self._exposure is None:
            return {}
        if isinstance(self._exposure, str):
            return {"exposure": numbers(table, self._exposure, "--exposure")}
        return {"exposure": self._exposure}


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
def _collected(surprises: list[Surprise]) -> Iterator[None]:
    """Collect what the rows hold that the training data did not, instead of a warning a part."""
    with caught_warnings() as caught:
        yield
    for warning in caught:
        if isinstance(warning, NewValuesWarning):
            surprises += warning.surprises


@contextmanager
def _progress(source: Source, voice: Voice) -> Iterator[Any]:
    """What is told how many rows are done: a line that is rewritten on a terminal, nothing elsewhere."""
    if voice.quiet or voice.json or not sys.stderr.isatty():
        yield lambda n_rows: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.fields[rows]:>14,} rows"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(source.title, total=None, rows=0)
        yield lambda n_rows: progress.update(task, rows=n_rows)
