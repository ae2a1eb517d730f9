"""Models in files: loading them, and what their columns and targets are."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from lanam import chunked
from lanam.cli.console import Console
from lanam.cli.deciding import listed, require_column
from lanam.cli.errors import CLIError, UsageError
from lanam.cli.reading import open_table
from lanam.engines.dialects import Dialect
from lanam.engines.files import FileSource
from lanam.engines.types import holds

if TYPE_CHECKING:
    from lanam import LANAMClassifier, LANAMRegressor

    Estimator: TypeAlias = LANAMClassifier | LANAMRegressor

T = TypeVar("T")

_DELIMITERS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}
_HELD = ("text", "numbers", "truth values")


def load_model(path: str) -> Estimator:
    """The model in a file."""
    from lanam import load

    if os.path.isdir(path):
        raise CLIError(f"{path} is a folder: pass a model's file, such as model.lanam")
    if not os.path.exists(path):
        raise CLIError(f"there is no file {path}")
    return load(path)


def metadata(model: Estimator) -> Mapping[str, object]:
    """What ``lanam fit`` wrote down beside the model: target, task, weight, exposure."""
    return getattr(model, "metadata_", None) or {}


def open_for(
    model: Estimator | None,
    path: str,
    dialect: Dialect,
    console: Console,
    block_size: int | None = None,
) -> FileSource:
    """Look at a table for a model, or for the first time if that is None.

    CSV is written as it was when the model was fitted, unless options say otherwise. What was found between
    the columns is said, if it is not what one expects.
    """
    dialect = dialect.filled(getattr(model, "dialect_", None))
    types = None if model is None else column_types(model)
    source = open_table(path, dialect, types, block_size)
    found = source.found_delimiter
    if found is not None:
        between = _DELIMITERS.get(found, repr(found))
        console.note(f"{source.title} has {between} between its columns; --delimiter changes that")
    return source


def column_types(model: Estimator) -> dict[str, pa.DataType]:
    """Of which type each column of a model is read from a CSV file, whatever a part of it looks like."""
    return chunked.column_types(model._schema)


def require_columns(model: Estimator, source: FileSource) -> list[str]:
    """The columns that a model needs, all of which the table must have; Parquet with their types."""
    needed = list(model._schema.names)
    lost = [name for name in needed if name not in source.names]
    if len(lost) == 1:
        require = f"; its columns are {listed(source.names)}"
        raise CLIError(
            f"{source.title} has no column {lost[0]!r}, which the model was fitted with{require}. If its "
            "values are not known, add it with empty cells"
        )
    if lost:
        raise CLIError(
            f"{source.title} lacks {len(lost)} columns that the model was fitted with: {listed(lost)}. "
            "Where values are not known, add columns with empty cells"
        )
    if source.has_types:
        for column in model._schema.columns:
            _require_type(column.name, column.holds, source)
    return needed


def _require_type(name: str, before: str, source: FileSource) -> None:
    """Refuse text where a model has numbers, and the reverse, before anything is written."""
    now = holds(source.types[name])
    if now == "nothing" or before not in _HELD:
        return
    if (before == "text") == (now == "text") and now in _HELD:
        return  # numbers for truth values may be 0 and 1
    for chunk in source.each([name]):
        known = chunk.frame[name].drop_null()
        if len(known):  # a column of gaps only is of any type
            raise CLIError(
                f"{source.title}: column {name!r} held {before} in the training data, and holds {now} "
                f"here (for example {str(known[0].as_py())!r}): convert it in the file"
            )


def exposure_column(model: Estimator, source: FileSource, given: str | None) -> str | float | None:
    """Which column counts are counted over, or one number for all rows."""
    known = metadata(model).get("exposure")
    if given is not None:
        if not model.family_.takes_exposure:
            what = "classes" if hasattr(model, "classes_") else "numbers"
            raise UsageError(f"--exposure is for counts, and this model predicts {what}")
        try:
            number = float(given)
        except ValueError:
            return _of_numbers(require_column(given, source.names, "--exposure"), source)
        if not (0.0 < number < math.inf):
            raise UsageError(f"--exposure {given}: counts are counted over a positive number")
        return number
    if known is None:
        return None
    if known not in source.names:
        raise CLIError(
            f"{source.title} has no column {known!r}, which the model's events were counted over: add it, "
            "or say --exposure 1 for rates"
        )
    return _of_numbers(str(known), source)


def _of_numbers(name: str, source: FileSource) -> str:
    if source.has_types and holds(source.types[name]) not in ("numbers", "truth values"):
        raise CLIError(
            f"{source.title}: the column {name!r} of the exposure holds {source.types[name]}, and not "
            "numbers"
        )
    return name


def numbers(table: pa.Table, name: str, what: str) -> np.ndarray:
    """A column of numbers, such as weights."""
    column = table[name]
    if column.null_count:
        raise CLIError(f"{what}: the column {name!r} has {column.null_count} empty cells")
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise CLIError(f"{what}: the column {name!r} does not hold numbers") from None


def without(names: Iterable[T], left_out: Collection[T | None]) -> list[T]:
    """The names, or places, that are not left out."""
    return [name for name in names if name not in left_out]
