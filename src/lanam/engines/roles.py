"""What the columns of a table in chunks are for, and the rows' targets, weights and exposures."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from lanam.core.arrays import Array
from lanam.data import as_frame, find_column
from lanam.engines.folding import fold
from lanam.engines.interface import Chunk, Source
from lanam.engines.places import in_chunk
from lanam.errors import InputError, Line
from lanam.families import Family
from lanam.families.base import mixed_labels
from lanam.inputs import (
    as_response,
    plain_labels,
    require_exposures,
    require_squares,
    require_weights,
)

#: Lines that leave out rows without a value.
_DROP = {
    "pyarrow": "X = X.filter(pc.is_valid(X[{name}]))",
    "pandas": "X = X.dropna(subset=[{name}])",
}


@dataclass(frozen=True)
class Roles:
    """What columns are for.

    Attributes
    ----------
    target
        The column to predict.
    weight
        The column that says how often each row counts, if there is one.
    exposure
        The column of what counts were counted over, or one number for all, or nothing.
    features
        The columns to predict from.
    """

    target: str
    weight: str | None
    exposure: str | float | None
    features: tuple[str, ...]

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that are not to predict from."""
        exposure = self.exposure if isinstance(self.exposure, str) else None
        return tuple(name for name in (self.target, self.weight, exposure) if name is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that a fit reads."""
        return self.features + self.others


def read_roles(
    source: Source, target: Any, sample_weight: Any = None, exposure: Any = None
) -> Roles:
    """What ``fit`` says of the columns of a table in chunks.

    Raises
    ------
    ValueError
        If there is no such column, or one would have two roles.
    """
    if not isinstance(target, str):
        raise source.unnamed()
    names = source.names
    find_column(target, names, "target")
    weight = _column_named(sample_weight, source, "sample_weight")
    over = read_exposure_role(source, exposure)
    roles = Roles(target, weight, over, ())
    given = dict(zip(("target", "sample_weight", "exposure"), (target, weight, over), strict=True))
    for name in roles.others:
        both = [argument for argument, value in given.items() if value == name]
        if len(both) > 1:
            words = " and ".join(f"{{{argument}}}" for argument in both[:2])
            problem = f"{words} both name the column {{column!r}}: it is one only"
            raise InputError(problem, argument=both[0], column=name)
    features = tuple(name for name in names if name not in roles.others)
    if not features:
        raise ValueError(f"{source.title} has no column besides {', '.join(map(repr, names))}")
    return Roles(target, weight, over, features)


def read_exposure_role(source: Source, exposure: Any) -> str | float | None:
    """What counts in a table in chunks are counted over: a column of it, one number for all, or nothing.

    Raises
    ------
    ValueError
        If there is no such column, or the number is not positive.
    """
    if isinstance(exposure, numbers.Real):
        require_exposures(np.array([float(exposure)]))
        return float(exposure)
    return _column_named(exposure, source, "exposure")


def _column_named(value: Any, source: Source, argument: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        remedy = f"pass its name, not values ({type(value).__name__})"
        problem = "{argument} of {title} is one of its columns"
        raise InputError(problem, remedy, argument=argument, title=source.title)
    find_column(value, source.names, argument)
    return value


@dataclass(frozen=True)
class Rows:
    """What is known of some rows besides their features.

    Attributes
    ----------
    counted
        Which of them have a positive weight, for an index; the others are in no array here.
    weight, exposure
        One a row.
    target
        Numbers, or which of ``labels`` each row has.
    labels
        The classes' names, not all of which a row need have.
    """

    counted: NDArray[np.bool_] | slice
    weight: Array
    exposure: Array
    target: NDArray[Any]
    labels: NDArray[Any]


def read_rows(chunk: Chunk, roles: Roles, family: Family) -> Rows:
    """Targets, weights and exposures of a chunk, checked as those of a table in memory are.

    Raises
    ------
    ValueError
        It says where.
    """
    frame: Any = as_frame(chunk.frame)
    n_rows = len(frame)
    weight, labels = np.ones(n_rows), np.empty(0)
    if roles.weight is not None:
        with in_chunk(chunk, roles.weight):
            weight = _read_numbers(frame[roles.weight], "sample_weight", "use 0 to leave a row out")
            require_weights(weight)
    with in_chunk(chunk, roles.target):
        _refuse_missing_target(frame[roles.target])
        target: NDArray[Any]
        if family.link.classes:
            labels, target = _read_labels(frame[roles.target])
        else:
            response = as_response(frame[roles.target].to_numpy(), "LANAMRegressor")
            # That all are very small is for those to say who know all.
            require_squares(max(float(np.max(np.abs(response), initial=0.0)), 1.0))
            target = family.check(response)
    exposure = read_exposures(chunk, roles.exposure)
    counted = slice(None) if weight.all() else weight > 0.0
    return Rows(counted, weight[counted], exposure[counted], target[counted], labels)


def read_exposures(chunk: Chunk, exposure: str | float | None) -> Array:
    """What the counts of a chunk's rows are counted over: by a column, one number, or one by default.

    Raises
    ------
    ValueError
        It says where.
    """
    if not isinstance(exposure, str):
        return np.full(len(chunk.frame), 1.0 if exposure is None else exposure)
    frame: Any = as_frame(chunk.frame)
    with in_chunk(chunk, exposure):
        remedy = "leave out rows in which nothing could be counted"
        values = _read_numbers(frame[exposure], "exposure", remedy)
        require_exposures(values)
        return values


def _read_numbers(series: Any, argument: str, remedy: str) -> Array:
    """Finite numbers."""
    try:
        values = np.asarray(series.to_numpy()).astype(np.float64)
    except (TypeError, ValueError) as error:
        problem = "{argument} must be numbers, and it is not ({error})"
        raise InputError(problem, argument=argument, error=str(error)) from error
    for bad, word in ((np.isnan(values), "missing"), (np.isinf(values), "infinite")):
        if bad.any():
            where = f"in {bad.sum()} of {len(values)} rows, the first of them row {{row}}"
            problem = f"{{argument}} is {word} {where}"
            raise InputError(problem, remedy, argument=argument, row=int(np.argmax(bad)))
    return values


def _refuse_missing_target(series: Any) -> None:
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if series.dtype.is_float():  # to arrow NaN is a value
        missing = missing | np.isnan(series.to_numpy())
    if missing.any():
        backend = "pyarrow" if series.implementation.is_pyarrow() else "pandas"
        line = Line("drop rows", _DROP[backend].format(name=repr(series.name)))
        where = f"in {missing.sum()} of {len(missing)} rows, the first of them row {{row}}"
        remedy = "Drop these rows, because a target cannot be imputed{example}"
        raise InputError(
            f"the target is missing {where}", remedy, row=int(np.argmax(missing)), line=line
        )


def _read_labels(series: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Labels, and which of them each row has."""
    distinct, positions = fold(series)
    labels = plain_labels(np.asarray(distinct.to_numpy()))
    if labels.dtype.kind == "O" and not all(isinstance(label, str) for label in labels.tolist()):
        raise mixed_labels()
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        check_classification_targets(labels)
    if positions is not None:
        return labels, positions
    found, inverse = np.unique(labels, return_inverse=True)
    return found, inverse
