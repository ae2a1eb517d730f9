"""Methods of rows, for rows that are in chunks: in files, or in a Dask frame.

A method of an estimator says what of each row, or a mean over rows; it is written for rows in memory. The
decorators here let it take tables in chunks as well, from which they hand it frames that fit: results of
files are arrays, those of Dask frames are Dask's, and as lazy. Arguments that have a value for each row
are names of columns then.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce, wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lanam.core.arrays import Array
from lanam.data import Schema, UnseenValues, add_up, as_frame, collect_unseen, warn_of
from lanam.engines import engine_of, is_chunked, open_source
from lanam.engines.delimited import LARGEST_WHOLE
from lanam.engines.interface import Chunk, ReadOptions, ResultColumns, Source, in_chunk
from lanam.engines.roles import (
    Roles,
    read_exposure_role,
    read_exposures,
    read_roles,
    read_rows,
)
from lanam.families import Family
from lanam.outputs import end_names, label_dtype
from lanam.parameters import read_n_jobs
from lanam.text import few

#: How many columns an error names before it only counts them.
_MAX_LISTED = 10


def in_chunks(describe: Callable[..., ResultColumns]) -> Callable[[Any], Any]:
    """A method that says something of each row, which takes tables in chunks as well.

    Parameters
    ----------
    describe
        From the estimator and the method's arguments by name, to the columns of its result.
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(method)

        @wraps(method)
        def of_rows(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_chunked(X):
                return method(self, X, *args, **kwargs)
            check_is_fitted(self)
            given = signature.bind(self, X, *args, **kwargs)
            given.apply_defaults()
            arguments = {name: given.arguments[name] for name in [*given.arguments][2:]}
            source = open_for(self, X)
            exposure = exposure_role(self, source, arguments.pop("exposure", None))
            call = _Call(of_rows, self, arguments, exposure)
            call.of_gaps(source)
            return source.map(call.columns, call.of_chunk, describe(self, **arguments))

        return of_rows

    return decorate


# What the columns of results are, by the arguments of the methods.


def predictions(model: Any, *, return_std: bool = False) -> ResultColumns:
    """Of ``predict``."""
    if model._labels is not None:
        return ResultColumns("prediction", label_dtype(model._labels))
    return ResultColumns(("prediction", "std") if return_std else "prediction")


def decisions(model: Any) -> ResultColumns:
    """Of ``decision_function``."""
    return ResultColumns(_class_names(model) if len(model._labels) > 2 else "decision")


def probabilities(model: Any, **_: Any) -> ResultColumns:
    """Of ``predict_proba``."""
    return ResultColumns(_class_names(model))


def sets(model: Any, **_: Any) -> ResultColumns:
    """Of ``predict_set``."""
    return ResultColumns(_class_names(model), bool)


def intervals(model: Any, **_: Any) -> ResultColumns:
    """Of ``predict_interval``."""
    return ResultColumns(end_names([] if model._labels is None else model._labels.tolist()))


def quantiles(model: Any, *, quantiles: Any) -> ResultColumns:
    """Of ``predict_quantile``."""
    return ResultColumns([f"quantile_{quantile}" for quantile in np.atleast_1d(quantiles).tolist()])


def contributions(model: Any, *, return_std: bool) -> ResultColumns:
    """Of ``predict_terms``."""
    names = model.get_feature_names_out().tolist()
    return ResultColumns(names + [f"{name} (std)" for name in names] if return_std else names)


def _class_names(model: Any) -> list[str]:
    return [str(label) for label in model._labels.tolist()]


def averaged(method: Callable[..., float]) -> Any:
    """A method that is a mean over rows, which takes tables in chunks as well."""

    def sums(model: Any, X: Any, y: Any, sample_weight: Array, **more: Any) -> Array:
        mean = method(model, X, y, sample_weight=sample_weight, **more)
        return np.array([1.0, mean]) * float(sample_weight.sum())

    return summed(sums, lambda model, total: total[1] / total[0])(method)


def summed(
    sums: Callable[..., Array], finish: Callable[[Any, Array], float]
) -> Callable[[Any], Any]:
    """A method that is a function of sums over rows, which takes tables in chunks as well.

    Parameters
    ----------
    sums
        From the estimator, rows and the method's arguments for them to the sums over these rows.
    finish
        From the estimator and the sums over all rows to the method's result.
    """

    def decorate(method: Callable[..., float]) -> Callable[..., float]:
        signature = inspect.signature(method)

        @wraps(method)
        def of_rows(self: Any, X: Any, *args: Any, **kwargs: Any) -> float:
            if not is_chunked(X):
                return method(self, X, *args, **kwargs)
            check_is_fitted(self)
            given = signature.bind(self, X, *args, **kwargs).arguments
            source = open_for(self, X)
            exposure = exposure_role(self, source, given.get("exposure"))
            roles = read_roles(source, given["y"], given.get("sample_weight"), exposure)
            roles = replace(roles, features=tuple(self.feature_names_in_))
            count = _Sums(sums, self, roles, self.family_)
            columns = list(dict.fromkeys(roles.columns))  # one may be a feature as well
            total, unseen, n_rows = source.reduce(columns, count, _both)
            if not total[0] > 0.0:
                raise ValueError(f"{source.title} has no row with a positive weight")
            warn_of(add_up(unseen, n_rows))
            return float(finish(self, total))

        return of_rows

    return decorate


def require_in_memory(X: Any) -> None:
    """Refuse files and Dask frames where a method needs all rows at once.

    Examples
    --------
    >>> require_in_memory("sales/*.parquet")
    Traceback (most recent call last):
        ...
    ValueError: this needs its rows in memory, and X is 'sales/*.parquet': read some of them first, ...
    """
    engine = engine_of(X)
    if engine is not None:
        raise ValueError(f"this needs its rows in memory, and X is {engine.remedy(X)}")


def open_for(model: Any, table: Any, others: Mapping[str, Any] | None = None) -> Source:
    """A table in chunks that has all columns of a fitted model, written as its training data was.

    Of CSV files ``others`` are types of further columns; all that are not there are text then.

    Raises
    ------
    ValueError
        If it lacks some; it names them.
    """
    # To predict is a few long steps, in which threads do not wait for each other.
    reading = ReadOptions(
        read_n_jobs(model.n_jobs),
        processes=False,
        dialect=getattr(model, "dialect_", None),
        types=None if others is None else {**column_types(model._schema), **others},
    )
    source = open_source(table, reading)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"{source.title} has columns with names, and the model was fitted to an array without: fit it "
            "to a frame, or read the rows into an array"
        )
    lost = [name for name in names if name not in source.names]
    if lost:
        listed = few([repr(name) for name in lost], _MAX_LISTED)
        plural = "s" if len(lost) > 1 else ""
        raise ValueError(
            f"{source.title} has no column{plural} {listed}, with which the model was fitted. If "
            "values are not known, add the column and leave it empty"
        )
    return source.with_types(column_types(model._schema))


def exposure_role(model: Any, source: Source, exposure: Any) -> str | float | None:
    """What the rows' counts are counted over, if the model predicts counts."""
    if exposure is not None:
        model._read_exposure(model.family_, 1.0, 1)  # which refuses others
    return read_exposure_role(source, exposure)


def column_types(schema: Schema) -> dict[str, Any]:
    """Of which type each column of a model is read from a CSV file, whatever a part of it looks like."""
    return {column.name: _type_of(column) for column in schema.columns}


def _type_of(column: Any) -> Any:
    import pyarrow as pa

    if column.holds == "boolean":
        return pa.bool_()
    if column.holds != "numeric":
        return pa.string()
    whole = bool(column.levels) and all(isinstance(level, int) for level in column.levels)
    if whole and max(map(abs, column.levels)) > LARGEST_WHOLE:
        return pa.int64()
    return pa.float64()


@dataclass(frozen=True)
class _Call:
    """A method with its arguments, for some rows: it can be sent elsewhere.

    Attributes
    ----------
    function
        The method as the class has it, which others can find by its name.
    model
        The estimator.
    arguments
        Those that have no value for each row.
    exposure
        The column that counts are counted over, or one number, or nothing.
    """

    function: Any
    model: Any
    arguments: Mapping[str, Any]
    exposure: str | float | None

    @property
    def columns(self) -> list[str]:
        """What must be read."""
        over = [self.exposure] if isinstance(self.exposure, str) else []
        return list(dict.fromkeys([*self.model.feature_names_in_, *over]))

    def of_chunk(self, chunk: Chunk) -> Any:
        """The results for some rows."""
        return self._of(chunk.frame, read_exposures(chunk, self.exposure))

    def of_gaps(self, source: Source) -> None:
        """Try a row of gaps: what is wrong with the arguments is said before anything is read."""
        with collect_unseen():
            self._of(row_of_missing(source), np.ones(1))

    def _of(self, frame: Any, exposure: Array) -> Any:
        more = {} if self.exposure is None else {"exposure": exposure}
        X = features_of(self.model, frame)
        return self.function(self.model, X, **self.arguments, **more)


def features_of(model: Any, frame: Any) -> Any:
    """The columns that a model needs, of a frame that may have others as well."""
    known: Any = as_frame(frame)
    return known.select(list(model._schema.names)).to_native()


def row_of_missing(source: Source) -> Any:
    """A frame with one row, in which everything is missing."""
    empty = source.empty()
    known: Any = as_frame(empty)
    if known.implementation.is_pandas_like():
        return empty.reset_index(drop=True).reindex([0])
    import pyarrow as pa

    nothing = [pa.nulls(1, kind) for kind in empty.schema.types]
    return pa.Table.from_arrays(nothing, schema=empty.schema)


@dataclass(frozen=True)
class _Sums:
    """Sums over the rows of chunks that have a positive weight: it can be sent elsewhere."""

    sums: Callable[..., Array]
    model: Any
    roles: Roles
    family: Family

    def __call__(self, chunks: Iterable[Chunk]) -> tuple[Array, list[UnseenValues], int]:
        return reduce(_both, map(self._of_chunk, chunks))

    def _of_chunk(self, chunk: Chunk) -> tuple[Array, list[UnseenValues], int]:
        rows = read_rows(chunk, self.roles, self.family)
        if not len(rows.weight):
            return np.zeros(1), [], 0
        y = rows.labels[rows.target] if self.family.link.classes else rows.target
        more = {} if self.roles.exposure is None else {"exposure": rows.exposure}
        X: Any = as_frame(features_of(self.model, chunk.frame))
        if not isinstance(rows.counted, slice):
            X = X.filter(rows.counted.tolist())
        with collect_unseen() as unseen, in_chunk(chunk):
            total = self.sums(self.model, X.to_native(), y, rows.weight, **more)
        return total, unseen, len(rows.weight)


def _both(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    # Where no row counts a sum is one zero, however many sums others have.
    return tuple(one + other for one, other in zip(first, second, strict=True))
