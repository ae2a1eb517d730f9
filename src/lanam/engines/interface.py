"""Where rows live: what reads a table batch by batch, and how an engine says which tables are its own.

A `Source` reads columns of a table chunk by chunk and says what a function makes of all chunks; encoded
(frames to arrays), it is what the core calls `Tables`. An `Engine` recognises tables and opens them as
sources; ``lanam.engines`` has the list of all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from lanam.core.rows.tables import Table, Tables
from lanam.engines.dialects import Dialect

Result = TypeVar("Result")

#: Told of rows that were read, and of how many there are: None where nobody knows yet.
Hook = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Chunk:
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
        Which chunk of the whole table it is, in the order of the rows.
    """

    frame: Any
    place: str
    first_row: int
    number: int


#: Parses columns of a chunk that were read as written.
Parse = Callable[[Chunk], Chunk]


@dataclass(frozen=True)
class Reading:
    """How a table may be read.

    Attributes
    ----------
    n_jobs
        How many threads, or processes, read and work.
    memory
        Bytes that may hold the encoded table from pass to pass, if all of it fits.
    progress
        Told after every chunk how many rows of a pass were read, and of how many (None if that is not
        known), by the thread that read it.
    processes
        Whether processes may take the place of threads.
    dialect
        How CSV files are written, where nothing else is said of them.
    types
        What columns of CSV files are read as, whatever they look like; others are text then.
    block_size
        Bytes of a file that are read at once.
    """

    n_jobs: int = 1
    memory: int = 0
    progress: Hook | None = None
    processes: bool = True
    dialect: Dialect | None = None
    types: Mapping[str, Any] | None = None
    block_size: int | None = None


@dataclass(frozen=True)
class Columns:
    """What the columns of a frame of results are called, one name for a series, and their dtype."""

    names: str | Sequence[str]
    dtype: Any = float


class Predicted(Protocol):
    """What is written of some rows: it can be sent elsewhere."""

    @property
    def columns(self) -> list[str]:
        """The columns that must be read."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Those of them that are written as well."""

    def schema(self, empty: Any) -> Any:
        """Arrow's schema of what is written, by an arrow table of no rows of what is read."""

    def table(self, chunk: Chunk, schema: Any) -> Any:
        """What is written of a chunk, as an arrow table of this schema."""

    def frame(self, partition: Any) -> Any:
        """What is written of a pandas frame, as another with its index."""


class Source(Protocol):
    """A table that is read in chunks."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""

    @property
    def title(self) -> str:
        """What messages call it."""

    @property
    def fingerprint(self) -> str:
        """What is the same as long as the rows are, for a checkpoint; an error where nothing is."""

    @property
    def dialect(self) -> Dialect | None:
        """How its text is written, as far as that was said; None where it is no text."""

    def empty(self) -> Any:
        """A frame of no rows with the columns' dtypes."""

    def unnamed(self) -> Exception:
        """The error for a target that is not the name of a column."""

    def typed(self, types: Mapping[str, Any]) -> Self:
        """The same table; columns that have no types of their own are read as these."""

    def require_numbers(self, names: Iterable[str]) -> None:
        """Raise an error for columns that are text only because of a few cells among numbers."""

    def verbatim(self, names: Iterable[str], parsed: Collection[str]) -> tuple[Self, Parse | None]:
        """The same table with these columns as written, where they are text that others would parse.

        Of these, the returned function parses the columns in ``parsed`` in a chunk; None where there are
        none.
        """

    def reduce(
        self,
        columns: Sequence[str],
        function: Callable[[Iterable[Chunk]], Result],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """What ``function`` makes of all chunks, reading these columns only.

        It is given groups of chunks, in the order of the rows, and what it makes of each is merged in
        that order. Both can be sent elsewhere.
        """

    def encoded(self, columns: Sequence[str], encode: Callable[[Chunk], Table]) -> Tables:
        """The rows as the core wants them; ``encode`` returns a table without rows where none counts."""

    def map(self, columns: Sequence[str], function: Callable[[Chunk], Any], result: Columns) -> Any:
        """What ``function`` says of each row: arrays of all rows, or whatever is as lazy as the table.

        The function returns an array with a value, or several, for each row of a chunk, or a tuple of
        such arrays.
        """

    def write(
        self,
        rows: Predicted,
        output: Any,
        overwrite: bool,
        progress: Callable[[int], None] | None,
    ) -> int:
        """Write what is made of the rows to a file or a folder; how many rows there were."""


@dataclass(frozen=True)
class Engine:
    """A way to read tables.

    Attributes
    ----------
    takes
        Whether a table is read this way; it does not import what it asks about.
    open
        The table as a source.
    remedy
        From a table to what it is, and how some of its rows come into memory.
    """

    takes: Callable[[Any], bool]
    open: Callable[[Any, Reading], Source]
    remedy: Callable[[Any], str]


def unnamed_target(title: str, names: Sequence[str]) -> ValueError:
    """The error for a target of a table that is not the name of a column of it."""
    return ValueError(
        f"the target of {title} is one of its columns: pass its name, for example "
        f"target={names[-1]!r}"
    )
