"""Streams of Arrow record batches that can be opened again, as every pass of a fit does.

They come from a function that opens a stream, or from an object whose ``__arrow_c_stream__`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import narwhals.stable.v1 as nw

from lanam.engines.formats import LARGEST_CHUNK, arrow
from lanam.engines.interface import Chunk, Engine, ReadOptions, require_unique
from lanam.engines.local import LocalSource, Pass


class StreamSource(LocalSource):
    """A stream that is opened for every pass and read by one thread.

    ``open_stream`` returns a ``pyarrow.RecordBatchReader`` with at least the given columns, or with all
    of them for None.
    """

    def __init__(
        self, title: str, open_stream: Callable[[Sequence[str] | None], Any], options: ReadOptions
    ) -> None:
        self.title, self.options = title, options
        self._open_stream = open_stream
        with closing(open_stream(None)) as reader:
            schema = reader.schema
        require_unique(schema.names, title)
        self._schema = _readable(schema)
        self._n_rows: int | None = None

    @property
    def n_rows(self) -> int | None:
        """The number of rows, once they were read."""
        return self._n_rows

    @property
    def fingerprint(self) -> str:
        """An error: a stream has no fingerprint."""
        raise ValueError(
            f"a checkpoint cannot tell whether the rows of {self.title} have changed: write them to "
            "Parquet files and pass these"
        )

    def empty(self) -> Any:
        """An Arrow table without rows that has the columns' types."""
        return self._schema.empty_table()

    def groups(self, columns: Sequence[str], run: Pass) -> list[Iterator[Chunk]]:
        """All chunks in one group: a stream has one reader."""
        return [self._read(list(columns), run)]

    def _read(self, columns: list[str], run: Pass) -> Iterator[Chunk]:
        types = arrow().schema([self._schema.field(name) for name in columns])
        first = number = 0
        with closing(self._open_stream(columns)) as reader:
            for table in _tables(reader):
                run.count(table.num_rows)
                yield Chunk(table.select(columns).cast(types), self.title, first, number)
                first, number = first + table.num_rows, number + 1
        if self._n_rows not in (None, first):
            raise ValueError(
                f"{self.title} had {self._n_rows:,} rows in the first pass, and {first:,} in a later one: "
                "a fit reads its rows several times, and they must not change. Pass a function that opens "
                "a new stream, or write the rows to a Parquet file"
            )
        if not first:
            raise ValueError(f"{self.title} has no rows: is it the right table?")
        self._n_rows = first


def _tables(reader: Any) -> Iterator[Any]:
    """The batches of a stream, joined or split to tables of a suitable size."""
    pa = arrow()
    waiting: list[Any] = []
    for batch in reader:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) < LARGEST_CHUNK // 2:
            continue
        table = pa.Table.from_batches(waiting)
        waiting = []
        for start in range(0, table.num_rows, LARGEST_CHUNK):
            yield table.slice(start, LARGEST_CHUNK)
    if any(each.num_rows for each in waiting):
        yield pa.Table.from_batches(waiting)


def _readable(schema: Any) -> Any:
    """The schema with plain strings for string views, which not all libraries support."""
    pa = arrow()
    views = getattr(pa.types, "is_string_view", lambda _: False)
    kinds = [pa.string() if views(field.type) else field.type for field in schema]
    return pa.schema(list(zip(schema.names, kinds, strict=True)))


def as_reader(stream: Any) -> Any:
    """A ``pyarrow.RecordBatchReader`` of an object that exports an Arrow stream."""
    pa = arrow()
    if isinstance(stream, pa.RecordBatchReader):
        return stream
    if not hasattr(stream, "__arrow_c_stream__"):
        raise TypeError(
            f"the function passed as X returned {type(stream).__name__}, which is not an Arrow stream: "
            "return a pyarrow.RecordBatchReader, or an object with __arrow_c_stream__"
        )
    return pa.RecordBatchReader.from_stream(stream)


def _takes(table: Any) -> bool:
    if _is_function(table) or _is_once(table):
        return True
    # Frames in memory export streams as well. Looked up on types: frames have columns as attributes.
    return hasattr(type(table), "__arrow_c_stream__") and not (
        type(table).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")
        or hasattr(type(table), "__arrow_c_array__")
        or nw.dependencies.is_into_dataframe(table)
        or nw.dependencies.is_into_series(table)
    )


def _is_function(table: Any) -> bool:
    return callable(table) and not hasattr(type(table), "__array__")


def _is_once(table: Any) -> bool:
    """Whether this can be read only once: an iterator, or a reader."""
    return hasattr(type(table), "__next__") or hasattr(type(table), "read_next_batch")


def _open(table: Any, options: ReadOptions) -> StreamSource:
    if _is_once(table):
        raise ValueError(
            f"X is a stream that can be read only once ({type(table).__name__}), but a fit reads its rows "
            "several times: pass a function that opens it, for example "
            "fit(lambda: cursor.execute(query).fetch_record_batch(), target=...)"
        )
    arrow()
    if _is_function(table):
        return StreamSource("the stream", lambda columns: as_reader(table()), options)
    title = f"the stream of {type(table).__name__}"
    return StreamSource(title, lambda columns: as_reader(table), options)


ENGINE = Engine(
    _takes,
    _open,
    lambda table: "a stream: load some rows first, for example with pyarrow.table",
)
