"""What is read in pieces: frames with the place they came from.

A `Source` reads columns of a table piece by piece and says what a function makes of all pieces; encoded
(frames to arrays), it is what the core calls `Tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from lanam.core.rows.tables import Table, Tables

Result = TypeVar("Result")


@dataclass(frozen=True)
class Piece:
    """Some rows of a table as a frame.

    Attributes
    ----------
    frame
        A frame of pandas or pyarrow.
    place
        Where it came from, for errors: ``"sales/part-3.parquet, row group 2"``.
    first_row
        The number, within that place, of its first row.
    number
        Which piece of the whole table it is, in the order of the rows.
    """

    frame: Any
    place: str
    first_row: int
    number: int


class Source(Protocol):
    """A table in pieces."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""

    @property
    def title(self) -> str:
        """What messages call it."""

    def empty(self) -> Any:
        """A frame of no rows with the columns' dtypes."""

    def reduce(
        self,
        columns: Sequence[str],
        function: Callable[[Iterable[Piece]], Result],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """What ``function`` makes of all pieces, reading these columns only.

        It is given groups of pieces, in the order of the rows, and what it makes of each is merged in
        that order. Both can be sent elsewhere.
        """

    def encoded(self, columns: Sequence[str], encode: Callable[[Piece], Table]) -> Tables:
        """The rows as the core wants them; ``encode`` returns a table without rows where none counts."""
