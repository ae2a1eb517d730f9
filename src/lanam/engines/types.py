"""Types of columns that come from several files: what they have in common, and folders that are columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from lanam.engines.formats import arrow

#: What Hive calls a folder of rows without a value.
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


def unify(files: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The type of each column over files: their titles, and Arrow's types by column.

    Raises
    ------
    ValueError
        If a file lacks a column, or two differ in what a column holds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> unify([("a.csv", {"age": pa.int64()}), ("b.csv", {"age": pa.float32()})])
    {'age': DataType(double)}
    >>> unify([("a.csv", {"age": pa.int64()}), ("b.csv", {"age": pa.string()})])
    Traceback (most recent call last):
        ...
    ValueError: column 'age' holds numbers in a.csv and text in b.csv: write one of the files anew ...
    """
    first, found = files[0][0], dict(files[0][1])
    known = dict.fromkeys(found, first)  # the file by which a type is known
    for title, types in files[1:]:
        _require_same(first, found, title, types)
        for name, kind in types.items():
            if found[name] != kind:
                found[name] = _common(name, (known[name], found[name]), (title, kind))
                if holds(kind) != "nothing" and holds(files[0][1][name]) == "nothing":
                    known[name] = title
    return found


def _require_same(
    first: str, found: Mapping[str, Any], title: str, types: Mapping[str, Any]
) -> None:
    lost = [name for name in found if name not in types]
    if lost:
        raise ValueError(
            f"{title} has no column {lost[0]!r}, and {first} has: all files must have the same columns, "
            "so add it (empty if nothing is known), or leave one of the files out"
        )
    more = [name for name in types if name not in found]
    if more:
        raise ValueError(
            f"{first} has no column {more[0]!r}, and {title} has: all files must have the same columns, "
            "so add it (empty if nothing is known), or leave one of the files out"
        )


def _common(name: str, one: tuple[str, Any], other: tuple[str, Any]) -> Any:
    """A type for what two files hold."""
    pa = arrow()
    (first, kind), (second, another) = one, other
    what = holds(kind), holds(another)
    if what[1] == "nothing":
        return kind
    if what[0] == "nothing":
        return another
    if what[0] != what[1]:
        raise ValueError(
            f"column {name!r} holds {what[0]} in {first} and {what[1]} in {second}: write one of the files "
            "anew with what the other holds"
        )
    if what[0] == "numbers":
        return pa.int64() if _is_signed(kind) and _is_signed(another) else pa.float64()
    if what[0] == "text":
        both = pa.types.is_dictionary(kind) and pa.types.is_dictionary(another)
        return pa.dictionary(pa.int32(), pa.string()) if both else pa.string()
    return kind


def _is_signed(kind: Any) -> bool:
    return bool(arrow().types.is_signed_integer(kind))


def holds(kind: Any) -> str:
    """What values of a type are, in words.

    Examples
    --------
    >>> import pyarrow as pa
    >>> holds(pa.dictionary(pa.int8(), pa.string())), holds(pa.decimal128(5, 2))
    ('text', 'numbers')
    """
    types = arrow().types
    if types.is_dictionary(kind):
        return holds(kind.value_type)
    if types.is_null(kind):
        return "nothing"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_boolean(kind):
        return "truth values"
    views = getattr(types, "is_string_view", lambda _: False)
    if types.is_string(kind) or types.is_large_string(kind) or views(kind):
        return "text"
    return str(kind)


def folder_values(path: str) -> dict[str, str | None]:
    """Columns that the folders of a relative path are named for.

    Examples
    --------
    >>> folder_values("year=2024/city=New%20York/part-0.parquet")
    {'year': '2024', 'city': 'New York'}
    """
    pairs = (part.split("=", 1) for part in os.path.dirname(path).split(os.sep) if "=" in part)
    return {
        unquote(name): None if value == _NOTHING else unquote(value)
        for name, value in pairs
        if name
    }


def folder_types(values: Sequence[Mapping[str, str | None]]) -> dict[str, Any]:
    """What folders' columns hold: whole numbers, or text.

    Examples
    --------
    >>> folder_types([{"year": "2023", "zone": "7"}, {"year": "2024", "zone": "x"}])
    {'year': DataType(int64), 'zone': DataType(string)}
    """
    pa = arrow()
    known: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in values for name in each):
        given = [each[name] for each in values if each.get(name) is not None]
        whole = all(str(value).removeprefix("-").isdecimal() for value in given)
        known[name] = pa.null() if not given else pa.int64() if whole else pa.string()
    return known


def folder_column(value: str | None, kind: Any, n_rows: int) -> Any:
    """A folder's value for so many rows."""
    pa = arrow()
    if value is None:
        return pa.nulls(n_rows, kind)
    return pa.repeat(pa.scalar(value).cast(kind), n_rows)
