"""Predictions of tables in pieces, written to files: as many as there were, or one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import PurePath
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lanam.data import Surprise, add_up, collect_surprises, find_column, warn_of
from lanam.engines import DaskSource, FileSource, is_in_pieces
from lanam.engines.dask import map_frames
from lanam.engines.formats import arrow, format_of
from lanam.engines.interface import Piece
from lanam.engines.places import in_piece
from lanam.engines.roles import read_exposures
from lanam.engines.writing import open_table
from lanam.files import open_folder, require_folder, require_place
from lanam.pieces import as_piece, exposure_role, features_of, open_for, row_of_gaps
from lanam.predictions import Outputs, Wanted

#: What the files of a folder end in.
_ENDING = ".parquet"


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
    """Predict the rows of a table in pieces into files.

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
    if not is_in_pieces(table):
        raise ValueError(
            "predict_files takes names of files or a Dask frame: of rows in memory predict returns what it "
            "says of them"
        )
    outputs = Outputs(model, wanted)
    source = open_for(model, table)
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
    job = _Job(outputs, model, tuple(dict.fromkeys(kept)), over)
    job.try_on(row_of_gaps(source))
    if isinstance(source, DaskSource):
        return _from_dask(job, table, output, overwrite)
    # Of CSV files what nobody reads stays the text that it is.
    types = {name: arrow().string() for name in job.kept if name not in job.features}
    if isinstance(over, str):
        types[over] = arrow().float64()
    source = source.typed(types)
    schema = arrow().schema([*((name, source.types[name]) for name in job.kept), *outputs.schema])
    _require_elsewhere(source, output)
    done = _Count(progress)
    kind = None if os.path.isdir(output) else _kind_of(output)
    if kind is None:
        _to_folder(job, source, schema, output, overwrite, done)
    else:
        path = require_place(output, "out.parquet", overwrite=overwrite)
        delimiter = "\t" if ".tsv" in path.name.lower() else ","
        with open_table(path, schema, kind, delimiter) as writer:
            for part in job.tables(source, schema, done):
                writer.write_table(part)
    warn_of(add_up(done.surprises, done.n_rows))
    return done.n_rows


def _kind_of(output: Any) -> str | None:
    """What a file of this name is; None is a folder."""
    known = format_of(os.fspath(output))
    kinds = {"a Parquet file": "parquet", "a CSV file": "csv"}
    if known is not None and known.title not in kinds:
        raise ValueError(
            f"{output}: predictions are written as Parquet or CSV, so the name of a file ends in .parquet "
            "or .csv"
        )
    if known is None and PurePath(output).suffix.lower() in (".txt", ".json", ".xlsx", ".gz"):
        raise ValueError(
            f"{output}: the name of a file ends in .parquet or .csv; others are folders"
        )
    return None if known is None else kinds[known.title]


@dataclass
class _Count:
    """What is done so far, by whichever thread."""

    progress: Callable[[int], None] | None
    n_rows: int = 0
    surprises: list[Surprise] = field(default_factory=list)
    stopped: bool = False
    _lock: Any = field(default_factory=threading.Lock)

    def add(self, n_rows: int, surprises: Sequence[Surprise]) -> None:
        with self._lock:
            if self.stopped:  # another thread failed: nobody goes on for nothing
                raise RuntimeError("stopped")
            self.n_rows += n_rows
            self.surprises += surprises
            if self.progress is not None:
                self.progress(self.n_rows)


@dataclass(frozen=True)
class _Job:
    """What is made of some rows: it can be sent elsewhere."""

    outputs: Outputs
    model: Any
    kept: tuple[str, ...]
    exposure: str | float | None

    @property
    def features(self) -> list[str]:
        """The columns that the model needs."""
        return list(self.model.feature_names_in_)

    @property
    def columns(self) -> list[str]:
        """All columns that must be read."""
        over = [self.exposure] if isinstance(self.exposure, str) else []
        return list(dict.fromkeys([*self.features, *self.kept, *over]))

    def try_on(self, frame: Any) -> None:
        """Try a row of gaps: what is wrong with the arguments is said before anything is read."""
        with collect_surprises():
            exposure = None if self.exposure is None else np.ones(1)
            self.outputs.of(features_of(self.model, frame), exposure)

    def tables(self, source: FileSource, schema: Any, done: _Count) -> Iterator[Any]:
        """The table to write, piece by piece."""
        for piece in source.each(self.columns):
            with collect_surprises() as surprises, in_piece(piece):
                X, exposure = features_of(self.model, piece.frame), self._exposures(piece)
                found = self.outputs.arrays(X, exposure)
            kept = [piece.frame[name] for name in self.kept]
            yield arrow().Table.from_arrays([*kept, *found], schema=schema)  # of its types
            done.add(len(piece.frame), surprises)

    def frame_of(self, partition: Any) -> Any:
        """The frame to write of a partition."""
        import pandas as pd

        X = features_of(self.model, partition)
        found = self.outputs.of(X, self._exposures(as_piece(partition)))
        result = partition[list(self.kept)].copy()
        for name, values, dtype in zip(self.outputs.names, found, self.outputs.dtypes, strict=True):
            # Of objects Dask does not know how to write them.
            own = "string" if dtype.kind == "U" else dtype
            result[name] = pd.Series(values, partition.index, dtype=own)
        return result

    def _exposures(self, piece: Piece) -> Any:
        if self.exposure is None or not len(piece.frame):
            return None
        return read_exposures(piece, self.exposure)


def _to_folder(
    job: _Job, source: FileSource, schema: Any, output: Any, overwrite: bool, done: _Count
) -> None:
    """A file for each file, of the same name below the folder."""
    target = require_folder(output, overwrite=overwrite, ending=_ENDING)
    with open_folder(target) as folder:

        def write(name: str, file: FileSource) -> None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with open_table(path, schema, "parquet") as writer:
                for part in job.tables(file, schema, done):
                    writer.write_table(part)

        names, files = zip(*source.by_file(), strict=True)
        with ThreadPoolExecutor(min(source.n_jobs, len(files))) as pool:
            running = [pool.submit(write, *each) for each in zip(_stems(names), files, strict=True)]
            try:
                for each in running:
                    each.result()
            except BaseException:
                done.stopped = True
                pool.shutdown(cancel_futures=True)
                raise


def _stems(names: Sequence[str]) -> list[str]:
    """Names of Parquet files for files of these names, no two the same.

    Examples
    --------
    >>> _stems(["a.csv.gz", "year=2024/a.parquet", "a.tsv"])
    ['a.parquet', 'year=2024/a.parquet', 'a-2.parquet']
    """
    stems: list[str] = []
    for name in names:
        kind = format_of(name)
        endings = () if kind is None else sorted(kind.endings, key=len, reverse=True)
        ending = next(end for end in endings if name.lower().endswith(end))
        start = name[: -len(ending)]
        ways = (f"{start}-{k}{_ENDING}" if k > 1 else start + _ENDING for k in count(1))
        stems.append(next(way for way in ways if way not in stems))
    return stems


def _require_elsewhere(source: FileSource, output: Any) -> None:
    """Refuse to write over, or among, what is read."""
    target = os.path.realpath(output)
    for path in source.paths:
        read = os.path.realpath(path)
        if read == target or read.startswith(target + os.sep):
            raise ValueError(
                f"{output} would be written over while it is read: choose another name"
            )


def _from_dask(job: _Job, frame: Any, output: Any, overwrite: bool) -> int:
    """A file for each partition, written where the partitions are."""
    if not os.path.isdir(output) and _kind_of(output) is not None:
        raise ValueError(
            f"{output} is one file, and a Dask frame is written as one a partition: pass the name of a "
            "folder"
        )
    target = require_folder(output, overwrite=overwrite, ending=_ENDING)
    result = map_frames(job.frame_of, frame[job.columns], job.frame_of(frame._meta.iloc[:0]))
    with open_folder(target) as folder:
        result.to_parquet(str(folder), write_index=False, name_function=_part_name)
        written = sorted(folder.glob(f"*{_ENDING}"))
        return sum(arrow().parquet.read_metadata(path).num_rows for path in written)


def _part_name(number: int) -> str:
    return f"part-{number:05d}{_ENDING}"
