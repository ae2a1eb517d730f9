"""The interface of engines: a `Source` reads a table in chunks, an `Engine` recognises and opens tables.

Encoded (frames to arrays), a source is what the core calls `Tables`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from lanam.core.rows.tables import EncodedRows, Tables
from lanam.engines.dialects import Dialect
from lanam.errors import located

Result = TypeVar("Result")

#: Called with the number of rows read so far, and of all rows: None if unknown.
ProgressHook = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a table.

    Attributes
    ----------
    frame
        A pandas or pyarrow frame.
    place
        Where the rows were read, for errors: ``"sales/part-3.parquet, row group 2"``.
    first_row
        The index of the first row within that place.
    number
        The chunk's index in the order of the rows.
    """

    frame: Any
    place: str
    first_row: int
    number: int


#: Parses columns of a chunk that were read verbatim.
Parse = Callable[[Chunk], Chunk]


@contextmanager
def in_chunk(chunk: Chunk, column: str | None = None) -> Iterator[None]:
    """Add the chunk's place, and perhaps a column, to errors; rows are counted as in that place.

    Examples
    --------
    >>> from lanam.errors import InputError
    >>> with in_chunk(Chunk(None, "a.parquet, row group 2", 100, 0), "age"):
    ...     raise InputError("missing value in row {row}", row=3)
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: in a.parquet, row group 2, column 'age': missing value in row 104 (...)
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        where = chunk.place if column is None else f"{chunk.place}, column {column!r}"
        raise located(error, f"in {where}: ", chunk.first_row) from error


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table.

    Attributes
    ----------
    n_jobs
        Number of threads or processes.
    memory
        Keep the encoded table between passes if it takes no more bytes than this.
    progress
        Called after every chunk, in the thread that read it.
    processes
        Whether processes may replace threads.
    dialect
        The dialect of CSV files whose own dialect is not specified.
    types
        Arrow types of columns of CSV files, instead of inferred ones; other columns are strings then.
    block_size
        Bytes of a file to read at once.
    """

    n_jobs: int = 1
    memory: int = 0
    progress: ProgressHook | None = None
    processes: bool = True
    dialect: Dialect | None = None
    types: Mapping[str, Any] | None = None
    block_size: int | None = None


@dataclass(frozen=True)
class ResultColumns:
    """Column names of a frame of results (one string: a series) and their dtype."""

    names: str | Sequence[str]
    dtype: Any = float


class RowOutput(Protocol):
    """Computes the rows to write from the rows of a table; it can be pickled."""

    @property
    def columns(self) -> list[str]:
        """The columns to read."""

    def schema(self, empty: Any) -> Any:
        """The Arrow schema of the output, given an empty Arrow table of the input."""

    def table(self, chunk: Chunk, schema: Any) -> Any:
        """The output for a chunk, as an Arrow table of this schema."""

    def frame(self, partition: Any) -> Any:
        """The output for a pandas frame, as another with its index."""


class Source(ABC):
    """A table that is read in chunks; ``title`` is its name in messages."""

    title: str

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The column names."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash that changes with the rows, for checkpoints; an error where there is none."""

    @property
    def dialect(self) -> Dialect | None:
        """The dialect of CSV files as far as it was specified; None for other tables."""
        return None

    @abstractmethod
    def empty(self) -> Any:
        """A frame without rows that has the columns' dtypes."""

    def unnamed_target(self) -> Exception:
        """The error for a target that is not a column name."""
        return ValueError(
            f"the target of {self.title} must be one of its columns: pass its name, for example "
            f"target={self.names[-1]!r}"
        )

    # Columns of CSV files have no types; those of other tables have.

    def with_types(self, types: Mapping[str, Any]) -> Self:
        """The same table; untyped columns are parsed as these types."""
        return self

    def require_numeric(self, names: Iterable[str]) -> None:  # noqa: B027 (a default)
        """Raise an error for untyped columns that are strings only because of a few cells."""

    def verbatim(self, names: Iterable[str], parsed: Collection[str]) -> tuple[Self, Parse | None]:
        """The same table with these untyped columns read as unparsed strings.

        The function parses those of them that are in ``parsed``; None where there are none.
        """
        return self, None

    @abstractmethod
    def reduce(
        self,
        columns: Sequence[str],
        function: Callable[[Iterable[Chunk]], Result],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """Map-reduce over these columns of all chunks.

        ``function`` is called with groups of consecutive chunks; its results are merged in the order of
        the rows. Both can be pickled.
        """

    @abstractmethod
    def encoded(self, columns: Sequence[str], encode: Callable[[Chunk], EncodedRows]) -> Tables:
        """The rows as arrays; ``encode`` returns an empty table for a chunk without positive weights."""

    @abstractmethod
    def map(
        self, columns: Sequence[str], function: Callable[[Chunk], Any], result: ResultColumns
    ) -> Any:
        """Apply a function row-wise: arrays of all rows, or something as lazy as the table.

        The function returns an array, or a tuple of arrays, with one entry per row of a chunk.
        """

    @abstractmethod
    def write(
        self,
        rows: RowOutput,
        output: Any,
        overwrite: bool,
        progress: Callable[[int], None] | None,
    ) -> int:
        """Write the output for all rows to a file or a folder; returns the number of rows."""


def require_unique(names: Sequence[str], title: str) -> None:
    """Raise an error if a table has two columns of the same name."""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"{title} has more than one column named {twice[0]!r}: rename one of them, or leave it out"
        )


@dataclass(frozen=True)
class Engine:
    """A kind of tables that are read in chunks.

    ``takes`` recognises a table without importing its library; ``remedy`` describes a table and how to load
    some of its rows, for messages.
    """

    takes: Callable[[Any], bool]
    open: Callable[[Any, ReadOptions], Source]
    remedy: Callable[[Any], str]
