"""Types of the columns of files: those that all files have in common, and folders named for a column."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lanam.engines.formats import Format, arrow
from lanam.errors import InputError

#: Hive's name of a folder for missing values.
_MISSING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class File:
    """A file, and its name relative to the path that was passed.

    ``rows`` are those of its parts (None: unknown before reading), ``columns`` are in the file itself,
    ``folders`` values and types of the columns that its folders are named for, ``state`` size and time of
    the file before it was inspected (None for a stream).
    """

    path: str
    name: str
    rows: tuple[int | None, ...]
    columns: frozenset[str]
    folders: Mapping[str, tuple[str | None, Any]]
    state: tuple[int, int, int] | None = None

    @property
    def is_changed(self) -> bool:
        """Whether the file was changed or replaced since it was opened."""
        return None not in (self.state, now := _state(self.path)) and now != self.state

    def require_unchanged(self) -> None:
        """Raise an error if the file was changed or replaced since it was opened.

        Every pass reads it again: sums over rows of two versions would be of neither.
        """
        if self.is_changed:
            raise ValueError(
                f"{self.path} was changed or replaced while it was read: run again when no other program "
                "writes to it"
            )

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check before and after reading the file, and if reading it fails."""
        self.require_unchanged()
        try:
            yield
        except Exception:
            self.require_unchanged()
            raise
        self.require_unchanged()


def _state(path: str) -> tuple[int, int, int] | None:
    """Size, time of the last change and place of a file; None if there is none.

    A clock ticks every few milliseconds: a file that replaces one of the same tick is elsewhere.
    """
    if not os.path.isfile(path):
        return None
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino


def inspect_files(
    files: Sequence[tuple[str, str]], kind: Format
) -> tuple[tuple[File, ...], dict[str, Any], dict[str, Any], dict[str, InputError]]:
    """Inspect files: the files, the columns' common types, and of CSV files two special kinds of columns.

    These are types of columns that must be read exactly, and errors for string columns that are numeric
    but for a few cells.
    """
    values = [folder_values(name) for _, name in files]
    partitions = folder_types(values)
    inspected, types = [], []
    odd: dict[str, tuple[str, InputError]] = {}
    exact: set[str] = set()
    for (path, name), value in zip(files, values, strict=True):
        state = _state(path)
        info = kind.inspect(path)
        # A column of the file itself takes precedence over its folders.
        folders = {
            column: (cell, partitions[column])
            for column, cell in value.items()
            if column not in info.types
        }
        inspected.append(File(path, name, info.rows, frozenset(info.types), folders, state))
        types.append((path, {**info.types, **{name: partitions[name] for name in folders}}))
        odd = {**{column: (path, error) for column, error in info.odd.items()}, **odd}
        exact |= info.exact
    common = unify([(path, _as_strings(of_file, odd)) for path, of_file in types])
    errors = {column: _odd_error(column, *where, types) for column, where in odd.items()}
    given = {name: common[name] for name in exact if name not in odd}
    return tuple(inspected), common, given, errors


def _odd_error(
    column: str, path: str, error: InputError, types: Sequence[tuple[str, Mapping[str, Any]]]
) -> InputError:
    """The error for a few strings in a numeric column of a file, where other files have none."""
    others = [title for title, of_file in types if holds(of_file[column]) == "numeric"]
    where = f"column {column!r} is numeric in {others[0]} and string in {path}: " if others else ""
    return error.located(where)


def _as_strings(types: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The types with these numeric columns as strings."""
    texts = [name for name in types if name in names and holds(types[name]) == "numeric"]
    return {**types, **dict.fromkeys(texts, arrow().string())}


def unify(files: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The common Arrow type of each column, given the types in each file.

    It is an error if a file lacks a column, or if types differ in more than precision.

    Examples
    --------
    >>> import pyarrow as pa
    >>> unify([("a.csv", {"age": pa.int64()}), ("b.csv", {"age": pa.float32()})])
    {'age': DataType(double)}
    >>> unify([("a.csv", {"age": pa.int64()}), ("b.csv", {"age": pa.string()})])
    Traceback (most recent call last):
        ...
    ValueError: column 'age' is numeric in a.csv and string in b.csv: convert it in one of the files
    """
    first, types = files[0]
    common, origin = dict(types), dict.fromkeys(types, first)  # the file that a type comes from
    for title, others in files[1:]:
        _require_same_columns((first, types), (title, others))
        for name, kind in others.items():
            if holds(common[name]) == "empty":
                common[name], origin[name] = kind, title
            elif holds(kind) != "empty" and common[name] != kind:
                common[name] = _common(name, (origin[name], common[name]), (title, kind))
    return common


def _require_same_columns(
    one: tuple[str, Mapping[str, Any]], other: tuple[str, Mapping[str, Any]]
) -> None:
    for (title, names), (without, has) in ((one, other), (other, one)):
        if lost := [name for name in names if name not in has]:
            raise ValueError(
                f"{without} has no column {lost[0]!r}, but {title} has: all files must have the same "
                "columns. Add it (empty if its values are missing), or leave out one of the files"
            )


def _common(name: str, one: tuple[str, Any], other: tuple[str, Any]) -> Any:
    """A type for the values of both files."""
    pa = arrow()
    (first, kind), (second, another) = one, other
    what = holds(kind)
    if what != holds(another):
        raise ValueError(
            f"column {name!r} is {what} in {first} and {holds(another)} in {second}: convert it in one of "
            "the files"
        )
    if what == "numeric":
        return pa.int64() if _is_signed(kind) and _is_signed(another) else pa.float64()
    if what == "string":
        categories = pa.types.is_dictionary(kind) and pa.types.is_dictionary(another)
        return pa.dictionary(pa.int32(), pa.string()) if categories else pa.string()
    return kind


def _is_signed(kind: Any) -> bool:
    return bool(arrow().types.is_signed_integer(kind))


def holds(kind: Any) -> str:
    """What a column of an Arrow type holds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> holds(pa.dictionary(pa.int8(), pa.string())), holds(pa.decimal128(5, 2))
    ('string', 'numeric')
    """
    types = arrow().types
    if types.is_dictionary(kind):
        return holds(kind.value_type)
    if types.is_null(kind):
        return "empty"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numeric"
    if types.is_boolean(kind):
        return "boolean"
    views = getattr(types, "is_string_view", lambda _: False)
    if types.is_string(kind) or types.is_large_string(kind) or views(kind):
        return "string"
    return str(kind)


def folder_values(path: str) -> dict[str, str | None]:
    """Columns and values in the names of a path's folders.

    Examples
    --------
    >>> folder_values("year=2024/city=New%20York/part-0.parquet")
    {'year': '2024', 'city': 'New York'}
    """
    pairs = (part.split("=", 1) for part in os.path.dirname(path).split(os.sep) if "=" in part)
    return {
        unquote(name): None if value == _MISSING else unquote(value)
        for name, value in pairs
        if name
    }


def folder_types(values: Sequence[Mapping[str, str | None]]) -> dict[str, Any]:
    """Types of the columns that folders are named for: integers or strings.

    Examples
    --------
    >>> folder_types([{"year": "2023", "zone": "7"}, {"year": "2024", "zone": "x"}])
    {'year': DataType(int64), 'zone': DataType(string)}
    """
    pa = arrow()
    types: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in values for name in each):
        given = [value for each in values if (value := each.get(name)) is not None]
        whole = all(value.removeprefix("-").isdecimal() for value in given)
        types[name] = pa.null() if not given else pa.int64() if whole else pa.string()
    return types


def folder_column(value: str | None, kind: Any, n_rows: int) -> Any:
    """A column with the value of a folder."""
    pa = arrow()
    if value is None:
        return pa.nulls(n_rows, kind)
    return pa.repeat(pa.scalar(value).cast(kind), n_rows)
