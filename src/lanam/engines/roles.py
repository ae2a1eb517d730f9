"""The roles of a chunked table's columns, and targets, weights, exposures and offsets of its rows."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.data import as_frame, find_column
from lanam.engines.dictionaries import dictionary_encode
from lanam.engines.interface import Chunk, Source, in_chunk
from lanam.errors import InputError, Line
from lanam.families import Family
from lanam.inputs import (
    plain_labels,
    read_given,
    read_response,
    read_weights,
    refuse_missing_target,
)

#: Arguments of ``fit`` that may name columns.
ROW_ARGUMENTS = ("target", "sample_weight", "exposure", "trials", "offset")

#: Code that drops rows without a value.
_DROP = {
    "pyarrow": "X = X.filter(pc.is_valid(X[{name}]))",
    "pandas": "X = X.dropna(subset=[{name}])",
}


#: The name of a column, one number for all rows, or None.
Role: TypeAlias = str | float | None


@dataclass(frozen=True)
class Given:
    """What predictions of rows depend on besides features."""

    exposure: Role = None
    trials: Role = None
    offset: Role = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns among these."""
        return tuple(role for role in vars(self).values() if isinstance(role, str))

    @property
    def size(self) -> tuple[str, Role]:
        """What y was counted over: the argument, and its role."""
        return ("exposure", self.exposure) if self.trials is None else ("trials", self.trials)

    def of_row(self) -> dict[str, float]:
        """Some values for one row."""
        usual = {"exposure": 1.0, "trials": 1.0, "offset": 0.0}
        return {name: usual[name] for name, role in vars(self).items() if role is not None}

    def of_chunk(self, chunk: Chunk) -> dict[str, Array]:
        """The arguments for the rows of a chunk."""
        return {
            name: _read_role(chunk, name, role)
            for name, role in vars(self).items()
            if role is not None
        }


def _read_role(chunk: Chunk, argument: str, role: Role) -> Array:
    n_rows, read = len(chunk.frame), partial(read_given, argument=argument)
    if not isinstance(role, str):
        return read(role, n_rows)
    frame: Any = as_frame(chunk.frame)
    with in_chunk(chunk, role):
        return read(frame[role].to_numpy(), n_rows)


@dataclass(frozen=True)
class Roles:
    """The roles of columns; exposure, trials and offset may also be one number for all rows."""

    target: str
    weight: str | None
    exposure: Role
    features: tuple[str, ...]
    trials: Role = None
    offset: Role = None
    #: the column whose values are the rows' groups, perhaps a feature as well
    groups: str | None = None

    @property
    def given(self) -> Given:
        """What predictions depend on besides features."""
        return Given(self.exposure, self.trials, self.offset)

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that are not features."""
        named = (self.target, self.weight, *self.given.columns)
        return tuple(name for name in named if name is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that a fit reads."""
        groups = () if self.groups is None else (self.groups,)
        return tuple(dict.fromkeys(self.features + self.others + groups))


def find_features(
    arguments: Mapping[str, Any], drop: Sequence[str], names: Sequence[str], title: str
) -> tuple[str, ...]:
    """The columns of a table that are features: not in ``drop``, and not named by an argument.

    Strings among the ``arguments`` are names of columns.
    """
    named: dict[str, str] = {}
    for argument, name in arguments.items():
        if not isinstance(name, str):
            continue
        find_column(name, names, argument)
        if name in named:
            words = " and ".join(f"{{{word}}}" for word in (named[name], argument))
            problem = f"{words} both name the column {{column!r}}"
            raise InputError(problem, "pass different columns", argument=named[name], column=name)
        named[name] = argument
    if isinstance(drop, str):
        raise ValueError(f"drop={drop!r} must be a list of columns: write drop=[{drop!r}]")
    others = {*named, *(names[find_column(name, names, "drop")] for name in drop)}
    features = tuple(name for name in names if name not in others)
    if not features:
        raise ValueError(f"{title} has no column left to predict from")
    return features


def read_roles(
    source: Source,
    target: Any,
    weight: Any = None,
    exposure: Any = None,
    drop: Sequence[str] = (),
    trials: Any = None,
    offset: Any = None,
    groups: Any = None,
) -> Roles:
    """The roles of the columns of a table in chunks, all of which are named."""
    if not isinstance(target, str):
        raise source.unnamed_target()
    weight = _require_name(weight, source, "sample_weight")
    given = find_given(source, exposure, trials, offset)
    arguments = {"target": target, "sample_weight": weight, **vars(given)}
    features = find_features(arguments, drop, source.names, source.title)
    groups = _require_name(groups, source, "groups")
    return Roles(target, weight, given.exposure, features, given.trials, given.offset, groups)


def find_given(source: Source, exposure: Any, trials: Any = None, offset: Any = None) -> Given:
    """Arguments of a table in chunks: the name of a column, one number for all rows, or None."""

    def role(argument: str, value: Any) -> Role:
        if isinstance(value, numbers.Real):
            return float(read_given(value, 1, argument)[0])
        return _require_name(value, source, argument)

    values = {"exposure": exposure, "trials": trials, "offset": offset}
    return Given(**{argument: role(argument, value) for argument, value in values.items()})


def _require_name(value: Any, source: Source, argument: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        remedy = f"pass its name, not values ({type(value).__name__})"
        problem = "{argument} of {title} is one of its columns"
        raise InputError(problem, remedy, argument=argument, title=source.title)
    find_column(value, source.names, argument)
    return value


@dataclass(frozen=True)
class Targets:
    """Targets, weights and exposures of the rows of a chunk that have a positive weight."""

    #: which rows of the chunk these are, as an index
    weighted: NDArray[np.bool_] | slice
    weight: Array
    exposure: Array
    #: numbers, or indices into ``labels``
    values: NDArray[Any]
    #: class labels, some of which may have no row
    labels: NDArray[Any]
    offset: Array | None = None


def read_targets(chunk: Chunk, roles: Roles, family: Family) -> Targets:
    """Targets, weights and exposures of a chunk, checked as in memory; errors name file and row."""
    frame: Any = as_frame(chunk.frame)
    weight = np.ones(len(frame))
    if roles.weight is not None:
        with in_chunk(chunk, roles.weight):
            weight = read_weights(frame[roles.weight].to_numpy(), len(frame), chunk=True)
    series, labels = frame[roles.target], np.empty(0)
    values: NDArray[Any]
    with in_chunk(chunk, roles.target):
        _refuse_missing_target(series)
        if family.link.classes:
            distinct, positions = dictionary_encode(series)
            labels = plain_labels(np.asarray(distinct.to_numpy()))
            values = np.arange(len(labels)) if positions is None else positions
        else:
            values = family.check(read_response(series.to_numpy(), "LANAMRegressor", chunk=True))
    exposure = _read_role(chunk, *roles.given.size)
    weighted = slice(None) if weight.all() else weight > 0.0
    parts = weight[weighted], exposure[weighted], values[weighted]
    offset = None
    if roles.offset is not None:
        offset = _read_role(chunk, "offset", roles.offset)[weighted]
    return Targets(weighted, *parts, labels, offset)


def _refuse_missing_target(series: Any) -> None:
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if series.dtype.is_float():  # NaN is a value in Arrow
        missing = missing | np.isnan(series.to_numpy())
    if missing.any():
        backend = "pyarrow" if series.implementation.is_pyarrow() else "pandas"
        line = Line("drop rows", _DROP[backend].format(name=repr(series.name)))
        refuse_missing_target(missing, line)
