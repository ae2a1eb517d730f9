"""Tables in pieces, from what ``fit`` is given to what the core fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lanam.core.fit.prepare import wanted
from lanam.core.rows.summaries import Summary, summarise_tables
from lanam.core.rows.tables import Log, LoggedTables, Tables
from lanam.data import Schema, as_frame, find_column
from lanam.engines.interface import Source
from lanam.engines.survey import Roles, read_roles, require_enough, survey
from lanam.families import Encoding, Family


@dataclass(frozen=True)
class Streamed:
    """A table in pieces, ready to be fitted.

    Attributes
    ----------
    tables
        Its rows as the core wants them.
    encoding
        How its targets became what the core fits.
    schema
        What its features are, with their ranges.
    summary
        Of all rows.
    """

    tables: Tables
    encoding: Encoding
    schema: Schema
    summary: Summary

    @property
    def constant(self) -> float | None:
        """The value of a response that has but one."""
        spread = self.summary.spread
        return spread.mean * spread.magnitude if spread.constant else None


def find_roles(
    source: Source,
    target: Any,
    *,
    sample_weight: Any,
    exposure: Any,
    drop: Sequence[str] = (),
    known: Schema | None = None,
) -> Roles:
    """What the columns of a table in pieces are for; no row is read.

    ``known`` is the schema of a model that is to be fitted on, whose columns these must be.

    Raises
    ------
    ValueError
        If there are no such columns.
    """
    roles = read_roles(source, target, sample_weight, exposure)
    left_out = _left_out(drop, source.names)
    features = tuple(name for name in roles.features if name not in left_out)
    if known is not None:
        lost = [name for name in known.names if name not in features]
        if lost:
            raise ValueError(
                f"{source.title} lacks the column {lost[0]!r}, with which the model was fitted: pass the "
                "training data"
            )
        features = known.names
    if not features:
        raise ValueError(f"{source.title} has no column left to predict from")
    return replace(roles, features=features)


def read_source(
    source: Source,
    roles: Roles,
    *,
    categorical: Any,
    family: Family,
    log: Log,
    known: Schema | None = None,
) -> Streamed:
    """Learn what must be known of a table in pieces, and summarise its rows in one pass.

    Raises
    ------
    ValueError, TypeError
        For what a fit in memory refuses, with the place.
    """
    seen = survey(source, roles, categorical, family)
    if known is not None:
        seen = replace(seen, schema=known)
    tables = LoggedTables(source.encoded(roles.columns, seen.encoder), log)
    summary = summarise_tables(tables, seen.schema.n_levels, wanted(seen.encoding.likelihood))
    # The unit of its spread is about the response's largest magnitude.
    require_enough(summary.n_rows, summary.spread.magnitude if family.has_noise else 1.0)
    schema = seen.schema if known is not None else _with_ranges(seen.schema, summary)
    return Streamed(tables, seen.encoding, schema, summary)


def _with_ranges(schema: Schema, summary: Summary) -> Schema:
    """The columns with the ranges of all rows."""
    columns = []
    for column, own in zip(schema.columns, summary.columns, strict=True):
        distribution = own.distribution
        if column.levels:
            ends = [0.0, len(column.levels) - 1.0]
        elif len(distribution.values):
            ends = (distribution.values[[0, -1]] * distribution.scale).tolist()
        else:
            ends = [np.nan, np.nan]
        missing = distribution.missing > 0.0
        columns.append(replace(column, lowest=ends[0], highest=ends[1], missing=missing))
    return replace(schema, columns=tuple(columns))


def name_of_target(y: Any, target: str | None) -> Any:
    """The target of a table that holds it: by either argument, and by one only."""
    if y is not None and target is not None:
        raise ValueError("y and target both say what to predict: pass one of them")
    return target if y is None else y


def split_frame(
    X: Any, target: Any, sample_weight: Any, exposure: Any, drop: Sequence[str]
) -> tuple[Any, Any, Any, Any]:
    """A frame in memory that holds its target, and maybe more, as features, target, weights, exposures.

    What is named is taken out of the frame; what is given stays as it is.
    """
    given = {"target": target, "sample_weight": sample_weight, "exposure": exposure}
    named = {argument: name for argument, name in given.items() if isinstance(name, str)}
    if not named and not drop:
        return X, target, sample_weight, exposure
    frame: Any = as_frame(X)
    if frame is None:
        word = next(iter(named), "drop")
        raise ValueError(f"{word} names columns, and X is an array without names: pass a frame")
    names = frame.columns
    for argument, name in named.items():
        find_column(name, names, argument)
        given[argument] = frame[name].to_numpy()
    left_out = _left_out(drop, names) | set(named.values())
    features = [column for column in names if column not in left_out]
    if not features:
        raise ValueError("X has no column left to predict from")
    return frame.select(features).to_native(), *given.values()


def _left_out(drop: Sequence[str], names: Sequence[str]) -> set[str]:
    """The columns that are not wanted."""
    if isinstance(drop, str):
        raise ValueError(f"drop={drop!r} must be a list of columns: write drop=[{drop!r}]")
    return {names[find_column(each, names, "drop")] for each in drop}
