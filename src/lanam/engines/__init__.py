"""Tables that are read in chunks: files larger than memory, databases, Dask frames.

`ENGINES` lists what reads them: each engine is a module, independent of the others.
"""

from __future__ import annotations

from typing import Any

from lanam.engines import dask, duckdb, files, polars, streams
from lanam.engines.interface import Engine, ReadOptions, Source

__all__ = ["ENGINES", "engine_of", "is_chunked", "open_source"]

#: The first one that takes a table opens it.
ENGINES: list[Engine] = [
    files.ENGINE,
    dask.ENGINE,
    duckdb.ENGINE,
    polars.ENGINE,
    streams.ENGINE,
]


def engine_of(table: Any) -> Engine | None:
    """The engine that reads a table; None for rows in memory."""
    return next((engine for engine in ENGINES if engine.takes(table)), None)


def is_chunked(table: Any) -> bool:
    """Whether a table is read in chunks: files, a Dask frame, a query, a stream.

    Examples
    --------
    >>> (
    ...     is_chunked("sales/*.parquet"),
    ...     is_chunked(["a.csv", "b.csv"]),
    ...     is_chunked([[1.0, 2.0]]),
    ... )
    (True, True, False)
    """
    return engine_of(table) is not None


def open_source(table: Any, options: ReadOptions) -> Source:
    """Open a table that is read in chunks."""
    engine = engine_of(table)
    if engine is None:
        raise TypeError(f"no engine reads {type(table).__name__}: its rows are in memory")
    return engine.open(table, options)
