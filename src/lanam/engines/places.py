"""Where in a table in chunks an error happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lanam.engines.interface import Chunk
from lanam.errors import located


@contextmanager
def in_chunk(chunk: Chunk, column: str | None = None) -> Iterator[None]:
    """Errors with the place that the chunk came from, rows counted as there, and perhaps the column.

    Examples
    --------
    >>> from lanam.errors import InputError
    >>> with in_chunk(Chunk(None, "a.parquet, row group 2", 100, 0), "age"):
    ...     raise InputError("a gap in row {row}", "fill it", row=3)
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: in a.parquet, row group 2, column 'age': a gap in row 103: fill it
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        where = chunk.place if column is None else f"{chunk.place}, column {column!r}"
        raise located(error, f"in {where}: ", chunk.first_row) from error
