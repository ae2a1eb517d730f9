"""Where in a table in pieces an error happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lanam.engines.interface import Piece
from lanam.errors import located


@contextmanager
def in_piece(piece: Piece, column: str | None = None) -> Iterator[None]:
    """Errors with the place that the piece came from, rows counted as there, and perhaps the column.

    Examples
    --------
    >>> from lanam.errors import InputError
    >>> with in_piece(Piece(None, "a.parquet, row group 2", 100, 0), "age"):
    ...     raise InputError("a gap in row {row}", "fill it", row=3)
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: in a.parquet, row group 2, column 'age': a gap in row 103: fill it
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        where = piece.place if column is None else f"{piece.place}, column {column!r}"
        raise located(error, f"in {where}: ", piece.first_row) from error
