"""File formats: what columns a file has, and its rows part by part.

Parts are row groups of Parquet files and record batches of Arrow files; a CSV file (``delimited``) is one
part. Arrow reads in the calling thread: the number of threads is ours to choose.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lanam.engines.interface import require_unique
from lanam.errors import InputError

#: The maximum number of rows of a chunk; batches of a file may be larger.
LARGEST_CHUNK = 1 << 18

#: Bytes of a column of a Parquet file to read at once.
_BUFFER = 1 << 16


@dataclass(frozen=True)
class FileInfo:
    """A file's column types and the rows of its parts (None: unknown before reading).

    ``exact`` are columns of integers that are not exact as floats, ``odd`` errors for string columns that
    are numeric but for a few cells.
    """

    types: Mapping[str, Any]
    rows: tuple[int | None, ...]
    exact: frozenset[str] = frozenset()
    odd: Mapping[str, InputError] = field(default_factory=dict)


@dataclass(frozen=True)
class FileBatch:
    """Rows of a part of a file, and the index of the first of them in that part."""

    part: int
    first_row: int
    rows: Any


class Format(ABC):
    """A file format: titles of files and parts in messages, suffixes, and whether columns have types."""

    title: str
    part_title = ""
    endings: tuple[str, ...]
    typed = True

    @abstractmethod
    def inspect(self, path: str) -> FileInfo:
        """Read a file's header or metadata."""

    @abstractmethod
    def read(
        self, path: str, parts: Sequence[int], types: Mapping[str, Any]
    ) -> Iterator[FileBatch]:
        """Read the columns named in ``types``, in any order.

        Columns of CSV files are parsed as these types; None stands for unparsed strings.
        """

    def place(self, part: int, n_parts: int) -> str:
        """Describes a part of a file, to be appended to the file's name."""
        return f", {self.part_title} {part} (of 0 to {n_parts - 1})"


def arrow() -> Any:
    """Import pyarrow with the submodules that are needed here."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            'reading files needs pyarrow: install it with `pip install "lanam[files]"`'
        ) from error
    return pyarrow


def open_file(path: str) -> Any:
    """Open a file for Arrow, which takes names that are not UTF-8 only as bytes."""
    return arrow().OSFile(os.fsencode(path))


class Parquet(Format):
    """Parquet files, by row group."""

    title, part_title = "a Parquet file", "row group"
    endings = (".parquet", ".pq")

    def inspect(self, path: str) -> FileInfo:
        """See `Format`."""
        with (
            named_errors(path, self.title),
            open_file(path) as stream,
            arrow().parquet.ParquetFile(stream) as file,
        ):
            groups = (file.metadata.row_group(k) for k in range(file.metadata.num_row_groups))
            rows = tuple(group.num_rows for group in groups)
            return FileInfo(column_types(file.schema_arrow, path), rows)

    def read(
        self, path: str, parts: Sequence[int], types: Mapping[str, Any]
    ) -> Iterator[FileBatch]:
        """See `Format`."""
        with (
            named_errors(path, self.title),
            open_file(path) as stream,
            # Without prefetching whole row groups, however large they are.
            arrow().parquet.ParquetFile(
                stream, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=True
            ) as file,
        ):
            for part in parts:
                first = 0
                for batch in file.iter_batches(
                    LARGEST_CHUNK, row_groups=[part], columns=list(types), use_threads=False
                ):
                    yield FileBatch(part, first, batch)
                    first += batch.num_rows


class Ipc(Format):
    """Arrow and Feather files, by record batch."""

    title, part_title = "an Arrow file", "record batch"
    endings = (".arrow", ".feather", ".ipc")

    def inspect(self, path: str) -> FileInfo:
        """See `Format`."""
        with named_errors(path, self.title), self._open(path) as file:
            types = column_types(file.schema, path)
        # Without columns, batches are not decompressed.
        with named_errors(path, self.title), self._open(path, []) as file:
            batches = map(file.get_batch, range(file.num_record_batches))
            return FileInfo(types, tuple(batch.num_rows for batch in batches))

    def read(
        self, path: str, parts: Sequence[int], types: Mapping[str, Any]
    ) -> Iterator[FileBatch]:
        """See `Format`."""
        with named_errors(path, self.title):
            with self._open(path) as file:
                indices = [file.schema.get_field_index(name) for name in types]
            with self._open(path, indices) as file:
                for part in parts:
                    yield FileBatch(part, 0, file.get_batch(part))

    @contextmanager
    def _open(self, path: str, indices: list[int] | None = None) -> Iterator[Any]:
        pa = arrow()
        options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=indices)
        with open_file(path) as stream, pa.ipc.open_file(stream, options=options) as file:
            yield file


def column_types(schema: Any, path: str) -> dict[str, Any]:
    """Types of columns, without the index of a pandas frame."""
    require_unique([name for name in schema.names if name], path)
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return {field.name: field.type for field in schema if field.name not in index}


@contextmanager
def named_errors(path: str, what: str) -> Iterator[None]:
    """Add the file and the remedy to errors of Arrow and of the operating system."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not about its content
            raise ValueError(f"{path} cannot be read: {os.strerror(error.errno)}") from error
        raise ValueError(
            f"{path} cannot be read as {what}: it may be incomplete, or of another format. Write or copy "
            f"it again, or leave it out ({error})"
        ) from error
