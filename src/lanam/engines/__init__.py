"""Where rows live that are not an array: files larger than memory, databases, frames on other machines.

`ENGINES` lists all that read such tables: each is a module with an `Engine`, and knows of no other.
"""

from __future__ import annotations

from typing import Any

from lanam.engines import dask, duckdb, files, polars, streams
from lanam.engines.interface import Engine, Reading, Source

__all__ = ["ENGINES", "engine_of", "is_chunked", "open_source"]

#: In the order in which they are asked whether a table is theirs.
ENGINES: list[Engine] = [
    files.ENGINE,
    dask.ENGINE,
    duckdb.ENGINE,
    polars.ENGINE,
    streams.ENGINE,
]


def engine_of(table: Any) -> Engine | None:
    """What reads a table in chunks; None where its rows are in memory."""
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


def open_source(table: Any, reading: Reading) -> Source:
    """What reads a table in chunks."""
    engine = engine_of(table)
    if engine is None:
        raise TypeError(f"no engine reads {type(table).__name__}: its rows are in memory")
    return engine.open(table, reading)
