"""What users know of columns: options, or a TOML file, to the estimators' parameters."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lanam.cli.deciding import require_column, split_names
from lanam.cli.errors import UsageError
from lanam.cli.requests import FLAGS, FitRequest
from lanam.parameters import KNOWLEDGE
from lanam.text import did_you_mean


def read_knowledge(
    request: FitRequest, names: Sequence[str], types: Mapping[str, pa.DataType]
) -> dict[str, Any]:
    """The parameters in the options and in the file of ``--spec``; ``types`` are those of the columns."""
    given = _of_options(request, names, types)
    written = {} if request.spec is None else _read_spec(request.spec)
    for name in given.keys() & written.keys():
        raise UsageError(
            f"{FLAGS[name]} and {name!r} of --spec {request.spec} say the same: leave one of them out"
        )
    return given | written


def _of_options(
    request: FitRequest, names: Sequence[str], types: Mapping[str, pa.DataType]
) -> dict[str, Any]:
    periods = _settings(request.cyclic, "cyclic", names)
    orders = _settings(request.ordered, "ordered", names, whole=True)
    signs = _settings(request.monotonic_cst, "monotonic_cst", names)
    found = {
        "monotonic_cst": {name: _sign(text, name) for name, text in signs.items()},
        "shape_cst": _settings(request.shape_cst, "shape_cst", names),
        "cyclic": {name: _number(text, name) for name, text in periods.items()},
        "linear": split_names(request.linear, names, FLAGS["linear"]),
        "ordered": {name: _categories(text, types.get(name)) for name, text in orders.items()},
        "keep": split_names(request.keep, names, FLAGS["keep"]),
        "exclude_pairs": _pairs(request.exclude_pairs, "exclude_pairs", names),
        "by": {
            name: require_column(text, names, FLAGS["by"])
            for name, text in _settings(request.by, "by", names).items()
        },
        "random_slopes": _pairs(request.random_slopes, "random_slopes", names),
        "spatial": _pairs(request.spatial, "spatial", names),
    }
    return {name: value for name, value in found.items() if value}


def _settings(
    values: Sequence[str] | None, argument: str, names: Sequence[str], *, whole: bool = False
) -> dict[str, str]:
    """Columns with what is set for each: ``a=1,b=2``, or repeatedly; a ``whole`` value has commas."""
    found: dict[str, str] = {}
    for value in values or ():
        for part in [value] if whole else value.split(","):
            column, equals, setting = part.rpartition("=") if not whole else part.partition("=")
            if not equals or not setting.strip():
                raise UsageError(f"{FLAGS[argument]} {value!r} is not valid: {_EXAMPLES[argument]}")
            name = require_column(column.strip(), names, FLAGS[argument])
            found[name] = setting.strip()
    return found


_EXAMPLES = {
    "monotonic_cst": "use a column and + or -, such as age=+",
    "shape_cst": "use a column and convex or concave, such as dose=concave",
    "cyclic": "use a column and its period, such as hour=24",
    "ordered": "use a column and its categories in order, such as stage=I,II,III",
    "by": "use a column and that of the groups, such as dose=treatment",
}


def _sign(text: str, column: str) -> int:
    signs = {"+": 1, "1": 1, "+1": 1, "-": -1, "-1": -1, "0": 0}
    if text not in signs:
        raise UsageError(f"{FLAGS['monotonic_cst']} {column}={text}: the direction is + or -")
    return signs[text]


def _number(text: str, column: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{FLAGS['cyclic']} {column}={text}: the period is not a number") from None


def _categories(text: str, kind: pa.DataType | None) -> list[Any]:
    """Categories in order, numbers if the column has these."""
    parts = [part.strip() for part in text.split(",")]
    numeric = kind is not None and (pa.types.is_integer(kind) or pa.types.is_floating(kind))
    try:
        return [float(part) for part in parts] if numeric else list(parts)
    except ValueError:
        return list(parts)


def _pairs(
    values: Sequence[str] | None, argument: str, names: Sequence[str]
) -> list[tuple[str, str]]:
    """Pairs of columns, ``a:b,c:d``, or given repeatedly."""
    pairs = []
    for part in (part for value in values or () for part in value.split(",")):
        cuts = [at for at, letter in enumerate(part) if letter == ":"]
        sides = [(part[:at].strip(), part[at + 1 :].strip()) for at in cuts]
        if not sides:
            raise UsageError(
                f"{FLAGS[argument]} {part!r} is not valid: use pairs of columns such as a:b,c:d"
            )
        there = [side for side in sides if side[0] in names and side[1] in names]
        first, second = (
            require_column(side, names, FLAGS[argument]) for side in (there or sides)[0]
        )
        pairs.append((first, second))
    return pairs


def _read_spec(path: str) -> dict[str, Any]:
    """The parameters in a TOML file, named as in Python."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--spec {path} is not valid TOML: {error}") from None
    for name in content:
        if name not in KNOWLEDGE:
            hint = did_you_mean(name, KNOWLEDGE, "its names are")
            raise UsageError(
                f"--spec {path} has {name!r}, which is no parameter for columns; {hint}"
            )
    return {name: _with_tuples(value) for name, value in content.items()}


def _with_tuples(value: Any) -> Any:
    """Pairs of columns as tuples: TOML has lists only."""
    if isinstance(value, list) and value and all(isinstance(each, list) for each in value):
        return [tuple(each) for each in value]
    return value
