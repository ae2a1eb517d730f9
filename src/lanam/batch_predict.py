"""Predictions of tables in chunks, written to files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lanam.chunked import exposure_role, features_of, open_for, row_of_missing
from lanam.data import collect_unseen, find_column
from lanam.engines import is_chunked
from lanam.engines.formats import arrow
from lanam.engines.interface import Chunk, Parse, Source
from lanam.engines.roles import read_exposures
from lanam.engines.writing import output_format
from lanam.outputs import Outputs, Wanted

AnySource = TypeVar("AnySource", bound=Source)


def predict_files(
    model: Any,
    table: Any,
    output: Any,
    wanted: Wanted,
    *,
    keep: Sequence[str] = (),
    exposure: Any = None,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Predict the rows of a table in chunks into files.

    Parameters
    ----------
    model
        A fitted estimator.
    table
        Names of files, or a Dask frame.
    output
        A folder, or the name of a file.
    wanted
        What is written besides the prediction.
    keep
        Columns of the table that are written as well.
    exposure
        For counts, the column they will be counted over, or one number.
    overwrite
        Whether what is there is replaced.
    progress
        Told of the number of rows that are done.

    Returns
    -------
    n_rows
        How many rows were written.
    """
    check_is_fitted(model)
    if not is_chunked(table):
        raise ValueError(
            "predict_files takes names of files or a Dask frame: of rows in memory predict returns what it "
            "says of them"
        )
    outputs = Outputs(model, wanted)
    source = open_for(model, table, {})
    over = exposure_role(model, source, exposure)
    if isinstance(keep, str):
        raise ValueError(f"keep={keep!r} is one name: pass a list of names, [{keep!r}]")
    kept = [source.names[find_column(name, source.names, "keep")] for name in keep]
    clash = [name for name in kept if name in outputs.names]
    if clash:
        raise ValueError(
            f"the column {clash[0]!r} of keep has the name of an output: put something before these, for "
            "example prefix='model_'"
        )
    job = Job(outputs, model, tuple(dict.fromkeys(kept)), over)
    job.try_on(row_of_missing(source))
    as_text = not os.path.isdir(output) and output_format(output) == "csv"
    job, source = keep_text(job, source, as_text=as_text)
    return source.write(job, output, overwrite, progress)


def keep_text(job: Job, source: AnySource, *, as_text: bool) -> tuple[Job, AnySource]:
    """Write kept columns of CSV files as they are written there, if the model does not read them.

    With ``as_text`` this includes columns that the model reads: they are parsed for the model only.
    """
    read = {name for name in (*job.features, job.exposure) if isinstance(name, str)}
    if isinstance(job.exposure, str):
        source = source.with_types({job.exposure: arrow().float64()})
    kept = [name for name in job.kept if as_text or name not in read]
    source, parse = source.verbatim(kept, read)
    return replace(job, parse=parse), source


@dataclass(frozen=True)
class Job:
    """What is made of some rows: it can be sent elsewhere."""

    outputs: Outputs
    model: Any
    kept: tuple[str, ...]
    exposure: str | float | None
    #: Parses what the model reads of columns that are kept as written.
    parse: Parse | None = None

    @property
    def features(self) -> list[str]:
        """The columns that the model needs."""
        return list(self.model._schema.names)

    @property
    def columns(self) -> list[str]:
        """All columns that must be read."""
        over = [self.exposure] if isinstance(self.exposure, str) else []
        return list(dict.fromkeys([*self.features, *self.kept, *over]))

    def try_on(self, frame: Any) -> None:
        """Try a row of gaps: what is wrong with the arguments is said before anything is read."""
        with collect_unseen():
            exposure = None if self.exposure is None else np.ones(1)
            self.outputs.of(features_of(self.model, frame), exposure)

    def schema(self, empty: Any) -> Any:
        """The columns that are written."""
        kept = [empty.schema.field(name) for name in self.kept]
        return arrow().schema([*kept, *self.outputs.schema])

    def table(self, chunk: Chunk, schema: Any) -> Any:
        """What is written of a chunk."""
        known = chunk if self.parse is None else self.parse(chunk)
        X = features_of(self.model, known.frame)
        found = self.outputs.arrays(X, self._exposures(known))
        kept = [chunk.frame[name] for name in self.kept]
        return arrow().Table.from_arrays([*kept, *found], schema=schema)  # of its types

    def frame(self, partition: Any) -> Any:
        """The frame to write of a partition."""
        import pandas as pd

        X = features_of(self.model, partition)
        found = self.outputs.of(X, self._exposures(Chunk(partition, "this partition", 0, 0)))
        result = partition[list(self.kept)].copy()
        for name, values, dtype in zip(self.outputs.names, found, self.outputs.dtypes, strict=True):
            # Of objects Dask does not know how to write them.
            own = "string" if dtype.kind == "U" else dtype
            result[name] = pd.Series(values, partition.index, dtype=own)
        return result

    def _exposures(self, chunk: Chunk) -> Any:
        if self.exposure is None or not len(chunk.frame):
            return None
        return read_exposures(chunk, self.exposure)
