"""Kinds of files and their parts: what columns a file has, and its rows part by part.

Parts are what a file was written in: row groups of Parquet, record batches of Arrow. A CSV file is one
part, see ``delimited``. Arrow reads each in the calling thread, so that as many threads work as were
asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from lanam.errors import InputError

#: The most rows that are read at once.
LARGEST_CHUNK = 1 << 18

#: Bytes of a column of a Parquet file that are read at once.
_BUFFER = 1 << 16


@dataclass(frozen=True)
class Contents:
    """What is known of a file before its rows are read.

    Attributes
    ----------
    types
        Arrow's types of its columns.
    rows
        How many rows each part has; None where only reading it tells.
    exact
        Columns whose integers are not read as floats, which do not tell all of them apart.
    odd
        Columns of text that are numbers but for a few cells, and the error that says so.
    """

    types: Mapping[str, Any]
    rows: tuple[int | None, ...]
    exact: frozenset[str] = frozenset()
    odd: Mapping[str, InputError] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """Some rows of a part of a file: which part, the number of their first row in it, and the rows."""

    part: int
    first_row: int
    batch: Any


class Format(Protocol):
    """A kind of files."""

    @property
    def title(self) -> str:
        """What messages call such a file."""

    @property
    def endings(self) -> tuple[str, ...]:
        """How their names end."""

    @property
    def typed(self) -> bool:
        """Whether such a file says what its columns hold."""

    def look(self, path: str) -> Contents:
        """What a file holds."""

    def read(self, path: str, parts: Sequence[int], types: Mapping[str, Any]) -> Iterator[Part]:
        """The columns named in ``types``, in any order.

        Those of a CSV file become what is said there; None is the text as it is written.
        """

    def place(self, part: int, n_parts: int) -> str:
        """Where a part is in its file, in words that go behind the file's name."""


def arrow() -> Any:
    """Arrow with the modules that are needed here."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "tables in files are read by pyarrow, which is not installed: "
            '`pip install "lanam[files]"`'
        ) from error
    return pyarrow


class Parquet:
    """Parquet files, by row group."""

    title = "a Parquet file"
    endings = (".parquet", ".pq")
    typed = True

    def look(self, path: str) -> Contents:
        """See `Format`."""
        with named_errors(path, self.title), arrow().parquet.ParquetFile(path) as file:
            groups = (file.metadata.row_group(k) for k in range(file.metadata.num_row_groups))
            rows = tuple(group.num_rows for group in groups)
            return Contents(columns_of(file.schema_arrow, path), rows)

    def read(self, path: str, parts: Sequence[int], types: Mapping[str, Any]) -> Iterator[Part]:
        """See `Format`."""
        names = list(types)
        with (
            named_errors(path, self.title),
            # As it is needed, and not a whole row group at once, however large that is.
            arrow().parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file,
        ):
            for part in parts:
                first = 0
                for batch in file.iter_batches(
                    LARGEST_CHUNK, row_groups=[part], columns=names, use_threads=False
                ):
                    yield Part(part, first, batch)
                    first += batch.num_rows

    def place(self, part: int, n_parts: int) -> str:
        """See `Format`."""
        return f", row group {part}" + _of(n_parts)


class Ipc:
    """Files in Arrow's own format, which Feather is too, by record batch."""

    title = "an Arrow file"
    endings = (".arrow", ".feather", ".ipc")
    typed = True

    def look(self, path: str) -> Contents:
        """See `Format`."""
        with named_errors(path, self.title), self._open(path) as file:
            types = columns_of(file.schema, path)
        # Without their columns batches are not even decompressed.
        with named_errors(path, self.title), self._open(path, []) as file:
            batches = map(file.get_batch, range(file.num_record_batches))
            return Contents(types, tuple(batch.num_rows for batch in batches))

    def read(self, path: str, parts: Sequence[int], types: Mapping[str, Any]) -> Iterator[Part]:
        """See `Format`."""
        names = list(types)
        with named_errors(path, self.title):
            with self._open(path) as file:
                indices = [file.schema.get_field_index(name) for name in names]
            with self._open(path, indices) as file:
                for part in parts:
                    batch = file.get_batch(part)
                    for first in range(0, batch.num_rows, LARGEST_CHUNK):
                        yield Part(part, first, batch.slice(first, LARGEST_CHUNK))

    def place(self, part: int, n_parts: int) -> str:
        """See `Format`."""
        return f", record batch {part}" + _of(n_parts)

    @contextmanager
    def _open(self, path: str, indices: list[int] | None = None) -> Iterator[Any]:
        pa = arrow()
        options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=indices)
        with pa.OSFile(path) as stream, pa.ipc.open_file(stream, options=options) as file:
            yield file


def _of(n_parts: int) -> str:
    """How many there are, in words that say from where they count."""
    return f" (of 0 to {n_parts - 1})"


def columns_of(schema: Any, path: str) -> dict[str, Any]:
    """Types of columns, without what pandas keeps of the index."""
    twice = sorted({name for name in schema.names if name and schema.names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{path} has more than one column named {twice[0]!r}: columns are told apart by their "
            "names, so write it anew with another name for one of them"
        )
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    kept = [field for field in schema if field.name not in index]
    return {field.name: field.type for field in kept}


@contextmanager
def named_errors(path: str, what: str) -> Iterator[None]:
    """Arrow's errors, and the system's, with the file and what to do."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if (
            isinstance(error, OSError) and error.errno is not None
        ):  # the system's, and not about what is in it
            raise ValueError(f"{path} cannot be read: {os.strerror(error.errno)}") from error
        raise ValueError(
            f"{path} cannot be read as {what}: is it whole, and is it one? Write or copy it again, or "
            f"leave it out ({error})"
        ) from error
