"""Where in a table in pieces an error happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lanam.data import counted_from
from lanam.engines.interface import Piece


@contextmanager
def in_piece(piece: Piece, column: str | None = None) -> Iterator[None]:
    """Errors with the place that the piece came from, rows counted as there, and perhaps the column.

    Examples
    --------
    >>> from lanam.data import bad_row
    >>> with in_piece(Piece(None, "a.parquet, row group 2", 100, 0), "age"):
    ...     raise bad_row("a gap in row ", 3, ": fill it")
    Traceback (most recent call last):
        ...
    ValueError: in a.parquet, row group 2, column 'age': a gap in row 103: fill it
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        where = piece.place if column is None else f"{piece.place}, column {column!r}"
        said = with_note(counted_from(error, piece.first_row))
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"in {where}: {said}") from error


def with_note(message: str) -> str:
    """The message, and what ``X`` is in the line of code that it shows, if it does."""
    return f"{message} (X being the table with these rows)" if "`X" in message else message
