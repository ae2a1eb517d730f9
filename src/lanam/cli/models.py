"""Models in files: loading them, and what their columns and targets are."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lanam import pieces
from lanam.cli.deciding import is_number, listed, require_column
from lanam.cli.errors import Complaint, Misuse
from lanam.cli.reading import BLOCK_SIZE, Dialect, Source, is_text, open_source
from lanam.cli.speaking import Voice
from lanam.engines.files import FileSource, open_files

_DELIMITERS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}


def load_model(path: str) -> Any:
    """The model in a file."""
    from lanam import load

    if os.path.isdir(path):
        raise Complaint(f"{path} is a folder: pass a model's file, such as model.lanam")
    if not os.path.exists(path):
        raise Complaint(f"there is no file {path}")
    return load(path)


def metadata(model: Any) -> Mapping[str, Any]:
    """What ``lanam fit`` wrote down beside the model: target, task, weight, exposure."""
    return getattr(model, "metadata_", None) or {}


def open_for(model: Any, path: str, dialect: Dialect, voice: Voice) -> Source:
    """Look at a table for a model, or for the first time if that is None.

    What stood for missing values when the model was fitted still does. What was found between the columns
    is said, if it is not what one expects.
    """
    known = str(metadata(model).get("missing") or "")
    words = (*dialect.missing, *(known.split("\n") if known else ()))
    source = open_source(path, replace(dialect, missing=tuple(dict.fromkeys(words))))
    if source.found:
        between = _DELIMITERS.get(str(source.dialect.delimiter), repr(source.dialect.delimiter))
        voice.note(f"{source.title} has {between} between its columns; --delimiter changes that")
    return source


def open_several(
    model: Any, path: str, dialect: Dialect, block_size: int = BLOCK_SIZE
) -> FileSource:
    """Look at the files of a folder or a pattern for a model, or for the first time if that is None."""
    given = {
        "--delimiter": dialect.delimiter is not None,
        "--decimal": dialect.decimal != ".",
        "--encoding": dialect.encoding != "utf-8",
        "--missing": bool(dialect.missing),
        "--block-size": block_size != BLOCK_SIZE,
    }
    odd = [option for option, is_given in given.items() if is_given]
    if odd:
        raise Misuse(f"{odd[0]} is for one file, and {path} is several: leave it out")
    source = open_files(path)
    words = metadata(model).get("missing")
    if words and not source.has_types:
        raise Complaint(
            f"{path}: the model was fitted to a table in which {str(words).splitlines()[0]!r} stands for a "
            "missing value (--missing), and of several CSV files only one at a time is read so: pass one, "
            "or write them as Parquet"
        )
    return source


def column_names(model: Any) -> list[str]:
    """The columns that a model needs."""
    return [column.name for column in model._schema.columns]


def column_types(model: Any) -> dict[str, pa.DataType]:
    """Of which type each column of a model is read from a CSV file, whatever a part of it looks like."""
    return pieces.column_types(model._schema)


def require_columns(model: Any, source: Source) -> list[str]:
    """The columns that a model needs, all of which the table must have; Parquet with their types."""
    needed = column_names(model)
    lost = [name for name in needed if name not in source.names]
    if len(lost) == 1:
        require = f"; its columns are {listed(source.names)}"
        raise Complaint(
            f"{source.title} has no column {lost[0]!r}, which the model was fitted with{require}. If its "
            "values are not known, add it with empty cells"
        )
    if lost:
        raise Complaint(
            f"{source.title} lacks {len(lost)} columns that the model was fitted with: {listed(lost)}. "
            "Where values are not known, add columns with empty cells"
        )
    if source.types:
        for column in model._schema.columns:
            _require_type(column.name, column.holds, source)
    return needed


def _require_type(name: str, before: str, source: Source) -> None:
    """Refuse text where a model has numbers, and the reverse, before anything is written."""
    now = _held(source.types[name])
    if now is None or before not in ("text", "numbers", "truth values"):
        return
    if (before == "text") == (now == "text") and now != "neither":
        return  # numbers for truth values may be 0 and 1
    for part in source.batches([name], {}):
        known = part[name].drop_null()
        if len(known):  # a column of gaps only is of any type
            kind = source.types[name] if now == "neither" else now
            raise Complaint(
                f"{source.title}: column {name!r} held {before} in the training data, and holds {kind} "
                f"here (for example {str(known[0].as_py())!r}): convert it in the file"
            )


def _held(kind: pa.DataType) -> str | None:
    """What a column of a type holds, roughly; None if nothing."""
    if pa.types.is_dictionary(kind):
        return _held(kind.value_type)
    if pa.types.is_null(kind):
        return None
    if is_text(kind):
        return "text"
    return "numbers" if is_number(kind) or pa.types.is_boolean(kind) else "neither"


def exposure_column(
    model: Any, source: Source | FileSource, given: str | None
) -> str | float | None:
    """Which column counts are counted over, or one number for all rows."""
    known = metadata(model).get("exposure")
    if given is not None:
        if not model.family_.takes_exposure:
            what = "classes" if hasattr(model, "classes_") else "numbers"
            raise Misuse(f"--exposure is for counts, and this model predicts {what}")
        try:
            number = float(given)
        except ValueError:
            return _of_numbers(require_column(given, source.names, "--exposure"), source)
        if not (0.0 < number < math.inf):
            raise Misuse(f"--exposure {given}: counts are counted over a positive number")
        return number
    if known is None:
        return None
    if known not in source.names:
        raise Complaint(
            f"{source.title} has no column {known!r}, which the model's events were counted over: add it, "
            "or say --exposure 1 for rates"
        )
    return _of_numbers(str(known), source)


def _of_numbers(name: str, source: Source | FileSource) -> str:
    if source.types and _held(source.types[name]) != "numbers":
        raise Complaint(
            f"{source.title}: the column {name!r} of the exposure holds {source.types[name]}, and not "
            "numbers"
        )
    return name


def numbers(table: pa.Table, name: str, what: str) -> Any:
    """A column of numbers, such as weights."""
    column = table[name]
    if column.null_count:
        raise Complaint(f"{what}: the column {name!r} has {column.null_count} empty cells")
    try:
        return column.cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise Complaint(f"{what}: the column {name!r} does not hold numbers") from None


def without(names: Sequence[Any], left_out: Sequence[Any]) -> list[Any]:
    """The names, or places, that are not left out."""
    return [name for name in names if name not in left_out]
