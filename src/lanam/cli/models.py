"""Models in files, and tables opened with the columns that a model needs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from lanam import chunked
from lanam.cli.console import Console
from lanam.cli.deciding import require_column
from lanam.cli.errors import CLIError, UsageError
from lanam.cli.tables import open_source
from lanam.data.errors import missing_columns
from lanam.engines.dialects import Dialect
from lanam.engines.files import FileSource
from lanam.engines.roles import Given
from lanam.engines.types import holds

if TYPE_CHECKING:
    from lanam import LANAMClassifier, LANAMRegressor, LANAMSurvival
    from lanam.cli.requests import AdequacyRequest, PredictRequest, ReportRequest

    Estimator: TypeAlias = LANAMClassifier | LANAMRegressor | LANAMSurvival
    GivenRequest: TypeAlias = AdequacyRequest | PredictRequest | ReportRequest

T = TypeVar("T")

_DELIMITERS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}
_TYPES = ("string", "numeric", "boolean")


def load_model(path: str) -> Estimator:
    """The model in a file."""
    from lanam import load

    if os.path.isdir(path):
        raise CLIError(f"{path} is a folder: pass a model file, such as model.lanam")
    if not os.path.exists(path):
        raise CLIError(f"there is no file {path}")
    return load(path)


def load_one(path: str, cause: int | None) -> Estimator:
    """The model in a file; of a survival model with several causes that of one."""
    model = load_model(path)
    causes = getattr(model, "causes_", np.empty(0, dtype=int)).tolist()
    if cause is None and len(causes) < 2:
        return model
    if not causes:
        raise UsageError(f"--cause is for survival models, and {path} is none")
    if cause not in causes:
        known = ", ".join(map(str, causes))
        raise UsageError(f"choose a cause of the model with --cause: {known}")
    assert cause is not None
    one: Estimator = model.for_cause(cause)
    return one


def metadata(model: Estimator) -> Mapping[str, object]:
    """What ``lanam fit`` saved along with the model: target, task, weight, exposure, dropped columns."""
    return getattr(model, "metadata_", None) or {}


def dropped_text(names: Sequence[str]) -> str:
    """Columns that a fit left out as text, since metadata has no lists."""
    return json.dumps(names, ensure_ascii=False)


def _dropped(model: Estimator) -> list[str]:
    try:
        names = json.loads(str(metadata(model).get("dropped")))
    except ValueError:  # none, or the user's own metadata
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def known_columns(model: Estimator) -> list[str]:
    """The columns of the training data: features, target, weight, exposure, and those that were dropped."""
    target = None if model.provenance_ is None else model.provenance_.target
    roles = ("target", "weight", "exposure", "trials", "offset")
    others = [metadata(model).get(role) for role in roles]
    others.append(None if target is None else target.name)
    named = [name for name in others if isinstance(name, str)]
    return [*model._inputs.names, *named, *_dropped(model)]


def open_for(
    model: Estimator | None,
    path: str,
    dialect: Dialect,
    console: Console,
    block_size: int | None = None,
) -> FileSource:
    """Open a table for a model, or for a fit if that is None; report an unusual delimiter.

    Where options leave the dialect of CSV open, it is that of the training data.
    """
    dialect = dialect.filled(getattr(model, "dialect_", None))
    types = None if model is None else chunked.column_types(model._inputs)
    source = open_source(path, dialect, types, block_size)
    delimiter = source.found_delimiter
    if delimiter is not None:
        between = _DELIMITERS.get(delimiter, repr(delimiter))
        console.note(f"{source.title} is separated by {between} (change with --delimiter)")
    return source


def require_columns(model: Estimator, source: FileSource) -> list[str]:
    """The columns that a model needs, which the table must have, in Parquet with matching types."""
    needed = list(model._inputs.names)
    if error := missing_columns(source.title, source.names, needed):
        raise error
    if source.has_types:
        for column in model._inputs.columns:
            _require_type(column.name, column.holds, source)
    return needed


def _require_type(name: str, before: str, source: FileSource) -> None:
    """Reject strings for numbers, and the reverse, before anything is written."""
    now = holds(source.types[name])
    if now == "empty" or before not in _TYPES:
        return
    if (before == "string") == (now == "string") and now in _TYPES:
        return  # numbers in place of booleans may be 0 and 1
    for chunk in source.each([name]):
        values = chunk.frame[name].drop_null()
        if len(values):  # without values, any type will do
            raise CLIError(
                f"{source.title}: column {name!r} was {before} in the training data, and is {now} "
                f"here (for example {str(values[0].as_py())!r}): convert it in the file"
            )


def given_columns(model: Estimator, source: FileSource, request: GivenRequest) -> Given:
    """The columns of exposure, trials and offset, or one number for all rows."""
    return Given(
        exposure=exposure_column(model, source, request.exposure),
        trials=given_column(model, source, "trials", request.trials),
        offset=given_column(model, source, "offset", request.offset),
    )


def given_column(
    model: Estimator, source: FileSource, argument: str, given: str | None
) -> str | float | None:
    """The column that an option names or the fit had, or one number."""
    option, fitted = f"--{argument}", metadata(model).get(argument)
    if given is not None:
        try:
            return float(given)
        except ValueError:
            return _numeric(require_column(given, source.names, option), source, argument)
    if fitted is None:
        return None
    if fitted not in source.names:
        raise CLIError(
            f"{source.title} has no column {fitted!r}, the {argument} of the model: add it, or use {option}"
        )
    return _numeric(str(fitted), source, argument)


def exposure_column(model: Estimator, source: FileSource, given: str | None) -> str | float | None:
    """The column of the exposure, or one exposure for all rows."""
    fitted = metadata(model).get("exposure")
    if given is not None:
        if not model.family_.takes_exposure:
            what = "classes" if hasattr(model, "classes_") else "numbers"
            raise UsageError(f"--exposure is for counts, and this model predicts {what}")
        try:
            number = float(given)
        except ValueError:
            column = require_column(given, source.names, "--exposure")
            return _numeric(column, source, "exposure")
        if not (0.0 < number < math.inf):
            raise UsageError(f"--exposure {given}: the exposure must be a positive number")
        return number
    if fitted is None:
        return None
    if fitted not in source.names:
        raise CLIError(
            f"{source.title} has no column {fitted!r}, the exposure of the model: add it, or use "
            "--exposure 1 for rates"
        )
    return _numeric(str(fitted), source, "exposure")


def _numeric(name: str, source: FileSource, argument: str) -> str:
    if source.has_types and holds(source.types[name]) not in ("numeric", "boolean"):
        raise CLIError(
            f"{source.title}: the {argument} {name!r} has type {source.types[name]}, and must be numeric"
        )
    return name


def numbers(table: pa.Table, name: str, what: str) -> np.ndarray:
    """A numeric column without missing values, such as weights."""
    column = table[name]
    if column.null_count:
        raise CLIError(f"{what}: column {name!r} has {column.null_count} missing values")
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise CLIError(f"{what}: column {name!r} is not numeric") from None


def without(names: Iterable[T], left_out: Collection[T | None]) -> list[T]:
    """The items that are not left out, in their order."""
    return [name for name in names if name not in left_out]


def summary_text(summary: object) -> str:
    """A summary as commands print it: what it leaves out is in their JSON documents."""
    text = str(summary)
    for place in ("to_frame() has all", "edits_ has all", "interaction_scores_"):
        text = text.replace(f"({place})", "(--json has all)")
    return text
