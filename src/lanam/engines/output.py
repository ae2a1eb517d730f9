"""Results of tables in chunks, to files: as many as there were, or one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import PurePath
from typing import Any, Protocol

from lanam.data import UnseenValues, add_up, collect_unseen, warn_of
from lanam.engines.interface import Chunk, Predicted, Reading
from lanam.engines.kinds import format_of
from lanam.engines.places import in_chunk
from lanam.engines.writing import open_table
from lanam.files import open_folder, require_folder, require_place

#: What the files of a folder end in.
ENDING = ".parquet"


class _Readable(Protocol):
    """What is asked of a source here."""

    @property
    def reading(self) -> Reading: ...

    def empty(self) -> Any: ...

    def each(self, columns: Sequence[str]) -> Iterator[Chunk]: ...

    def parts(self) -> Sequence[tuple[str, _Readable]]: ...


def write_parts(
    source: _Readable,
    rows: Predicted,
    output: Any,
    overwrite: bool,
    progress: Callable[[int], None] | None,
) -> int:
    """Write what is made of a source's rows to a file, or to a file for each part in a folder."""
    if not os.path.isdir(output) and kind_of(output) is not None:
        path = require_place(output, "out.parquet", overwrite=overwrite)
        return write_one(source, rows, partial(open_table, path), progress)
    done = _Count(progress)
    _to_folder(rows, source, rows.schema(source.empty()), output, overwrite, done)
    warn_of(add_up(done.unseen, done.n_rows))
    return done.n_rows


def write_one(
    source: _Readable,
    rows: Predicted,
    opened: Callable[[Any], AbstractContextManager[Any]],
    progress: Callable[[int], None] | None,
) -> int:
    """Write what is made of a source's rows to what ``opened`` opens for a schema."""
    schema = rows.schema(source.empty())
    done = _Count(progress)
    with opened(schema) as writer:
        for part in _tables(rows, source, schema, done):
            writer.write_table(part)
    warn_of(add_up(done.unseen, done.n_rows))
    return done.n_rows


def kind_of(output: Any) -> str | None:
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
    if os.fspath(output).lower().endswith(".zst"):
        raise ValueError(f"{output}: .zst is read and not written; .gz and .bz2 are")
    return None if known is None else kinds[known.title]


@dataclass
class _Count:
    """What is done so far, by whichever thread."""

    progress: Callable[[int], None] | None
    n_rows: int = 0
    unseen: list[UnseenValues] = field(default_factory=list)
    stopped: bool = False
    _lock: Any = field(default_factory=threading.Lock)

    def add(self, n_rows: int, unseen: Sequence[UnseenValues]) -> None:
        with self._lock:
            if self.stopped:  # another thread failed: nobody goes on for nothing
                raise RuntimeError("stopped")
            self.n_rows += n_rows
            self.unseen += unseen
            if self.progress is not None:
                self.progress(self.n_rows)


def _tables(rows: Predicted, source: _Readable, schema: Any, done: _Count) -> Iterator[Any]:
    """The table to write, chunk by chunk."""
    for chunk in source.each(rows.columns):
        with collect_unseen() as unseen, in_chunk(chunk):
            table = rows.table(chunk, schema)
        yield table
        done.add(len(chunk.frame), unseen)


def _to_folder(
    rows: Predicted, source: _Readable, schema: Any, output: Any, overwrite: bool, done: _Count
) -> None:
    """A file for each part, of its name below the folder."""
    target = require_folder(output, overwrite=overwrite, ending=ENDING)
    with open_folder(target) as folder:

        def write(name: str, part: _Readable) -> None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with open_table(path, schema) as writer:
                for table in _tables(rows, part, schema, done):
                    writer.write_table(table)

        names, parts = zip(*source.parts(), strict=True)
        with ThreadPoolExecutor(min(source.reading.n_jobs, len(parts))) as pool:
            running = [pool.submit(write, *each) for each in zip(_stems(names), parts, strict=True)]
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
        ways = (f"{start}-{k}{ENDING}" if k > 1 else start + ENDING for k in count(1))
        stems.append(next(way for way in ways if way not in stems))
    return stems
