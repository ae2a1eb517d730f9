"""Rows of a table with their targets, as arguments of a model's methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lanam.cli.console import Console, unheard
from lanam.cli.deciding import require_column, target_values
from lanam.cli.errors import CLIError
from lanam.cli.models import given_columns, metadata, numbers, open_for, require_columns
from lanam.cli.tables import read_rows
from lanam.engines.files import FileSource
from lanam.provenance import held_out_rows

if TYPE_CHECKING:
    from lanam.cli.models import Estimator
    from lanam.cli.requests import AdequacyRequest, ReportRequest


def read_arguments(
    request: ReportRequest | AdequacyRequest, data: str, model: Estimator, console: Console
) -> dict[str, Any]:
    """The rows of a table with target, weights, exposures, trials and offsets, if it has them."""
    source = open_for(model, data, request.dialect, console)
    needed = require_columns(model, source)
    target = _optional(request.target, metadata(model).get("target"), source, "--target")
    weight = _optional(request.sample_weight, metadata(model).get("weight"), source, "--weight")
    given = given_columns(model, source, request)
    classes = getattr(model, "classes_", None)
    types: dict[str, pa.DataType] = {}
    if target is not None:
        kind = pa.float64() if classes is None else pa.array(classes.tolist()).type
        # Classes 0 and 1 may be written as 0.0 and 1.0, as the fit read them.
        types[target] = pa.float64() if pa.types.is_integer(kind) else kind
    for name in (weight, *given.columns):
        if name is not None:
            types[name] = pa.float64()
    table = read_rows(source.with_types(types), [*needed, *types])
    if not request.all_rows:
        table = _held_out(table, needed, model, console)
    if target is not None and table[target].null_count:
        console.note(f"{table[target].null_count} rows have no target and are left out")
        table = table.filter(pc.is_valid(table[target]))
    rows: dict[str, Any] = {"X": table.select(needed), **vars(given)}
    for argument, role in vars(given).items():
        if isinstance(role, str):
            rows[argument] = numbers(table, role, f"--{argument}")
    if target is not None:
        rows["y"] = target_values(table[target], model.family_)
        if weight is not None:
            rows["sample_weight"] = numbers(table, weight, "--weight")
    return rows


def _held_out(table: pa.Table, needed: list[str], model: Estimator, console: Console) -> pa.Table:
    """The rows that ``lanam fit`` held out, if this is the table that it read; else all of them."""
    held = None if model.provenance_ is None else model.provenance_.held_out
    if held is None or len(held.rows) != len(table):
        return table
    chosen = table.filter(pa.array(held.rows))
    with unheard():
        same = held_out_rows(model, chosen.select(needed), held.rows)
    if same.fingerprint != held.fingerprint:
        return table
    console.note(
        f"{len(chosen)} of {len(table)} rows were held out of the fit, and are used here (--all-rows uses "
        "all)"
    )
    return chosen


def _optional(given: str | None, fitted: object, source: FileSource, option: str) -> str | None:
    """A column that an option names, or else the one of the fit, if the table has it."""
    if given is not None:
        return require_column(given, source.names, option)
    return fitted if isinstance(fitted, str) and fitted in source.names else None


def read_follow_up(
    request: AdequacyRequest, data: str, model: Estimator, console: Console
) -> dict[str, Any]:
    """The rows of a table with event, time and, if named, entry and weight."""
    source = open_for(model, data, request.dialect, console)
    needed = require_columns(model, source)
    fitted = {"event": metadata(model).get("target"), "time": metadata(model).get("time")}
    roles = {}
    for argument in ("event", "time", "entry", "sample_weight"):
        option = "--weight" if argument == "sample_weight" else f"--{argument}"
        given = _optional(getattr(request, argument), fitted.get(argument), source, option)
        if given is not None:
            roles[argument] = given
        elif argument in fitted:
            raise CLIError(f"{source.title} has no column of the {argument}: name it with {option}")
    types = {name: pa.float64() for name in roles.values()}
    table = read_rows(source.with_types(types), [*needed, *types])
    values = {argument: numbers(table, name, f"--{argument}") for argument, name in roles.items()}
    return {"X": table.select(needed), **values}
