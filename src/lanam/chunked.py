"""Estimator methods for tables in chunks: files, Dask frames, queries.

The methods are written for rows in memory. The decorators here let them take tables in chunks as well and
evaluate them chunk by chunk: results of files are arrays, those of Dask frames are lazy. Arguments with one
value per row are names of columns then.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce, wraps
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lanam.core.arrays import Array
from lanam.data import Schema, UnseenValues, as_frame, collect_unseen, merge_unseen, warn_unseen
from lanam.data.errors import missing_columns
from lanam.engines import engine_of, is_chunked, open_source
from lanam.engines.delimited import LARGEST_WHOLE
from lanam.engines.interface import Chunk, ReadOptions, ResultColumns, Source, in_chunk
from lanam.engines.roles import (
    Given,
    Roles,
    find_given,
    read_roles,
    read_targets,
)
from lanam.parameters import read_n_jobs


def in_chunks(method: Callable[..., Any]) -> Any:
    """Let a method that returns values per row take tables in chunks as well."""

    def map_rows(model: Any, source: Source, given: Given, arguments: dict[str, Any]) -> Any:
        # The decorated method, which pickle finds by its name.
        call = _MethodCall(model, given, decorated, arguments)
        call.check_arguments(source)
        result = _RESULTS[method.__name__](model, **arguments)
        return source.map(call.inputs, call.of_chunk, result)

    decorated = _accept_chunks(method, map_rows)
    return decorated


def summed(
    sums: Callable[..., Array], finish: Callable[[Any, Array], float]
) -> Callable[[Any], Any]:
    """Let a method that is a function of sums over rows take tables in chunks as well.

    ``sums`` maps the estimator, rows and the method's arguments for them to the sums over these rows,
    ``finish`` the estimator and the sums over all rows to the method's result.
    """

    def sum_rows(model: Any, source: Source, given: Given, arguments: dict[str, Any]) -> Any:
        roles = read_roles(source, arguments["y"], arguments["sample_weight"], **vars(given))
        roles = replace(roles, features=tuple(model.feature_names_in_))
        columns = list(dict.fromkeys(roles.columns))  # the target may be a feature as well
        job = partial(_sum_chunks, sums, model, roles)
        total, unseen, n_rows = source.reduce(columns, job, _add)
        if not total[0] > 0.0:
            raise ValueError(f"{source.title} has no row with a positive weight")
        warn_unseen(merge_unseen(unseen, n_rows))
        return float(finish(model, total))

    return partial(_accept_chunks, run=sum_rows)


def averaged(method: Callable[..., float]) -> Any:
    """Let a method that is a mean over rows take tables in chunks as well."""

    def sums(model: Any, X: Any, y: Any, sample_weight: Array, **given: Any) -> Array:
        mean = method(model, X, y, sample_weight=sample_weight, **given)
        return np.array([1.0, mean]) * float(sample_weight.sum())

    return summed(sums, lambda model, total: total[1] / total[0])(method)


def _accept_chunks(method: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """The method; for tables in chunks ``run`` is called."""
    signature = inspect.signature(method)

    @wraps(method)
    def dispatch(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_chunked(X):
            return method(self, X, *args, **kwargs)
        check_is_fitted(self)
        bound = signature.bind(self, X, *args, **kwargs)
        bound.apply_defaults()
        arguments = {name: bound.arguments[name] for name in [*bound.arguments][2:]}
        source = open_for(self, X)
        named = {name: arguments.pop(name, None) for name in ("exposure", "trials", "offset")}
        return run(self, source, given_roles(self, source, **named), arguments)

    return dispatch


def _class_names(model: Any) -> list[str]:
    return [] if model._labels is None else [str(label) for label in model._labels.tolist()]


def _prediction(model: Any, *, return_std: bool = False) -> ResultColumns:
    if model._labels is not None:
        return ResultColumns("prediction", label_dtype(model._labels))
    return ResultColumns(("prediction", "std") if return_std else "prediction")


def _contributions(model: Any, *, return_std: bool) -> ResultColumns:
    names = model.get_feature_names_out().tolist()
    return ResultColumns(names + [f"{name} (std)" for name in names] if return_std else names)


#: The columns of each method's result, by the model and the method's arguments.
_RESULTS: dict[str, Callable[..., ResultColumns]] = {
    "decision_function": lambda model: ResultColumns(
        _class_names(model) if len(model._labels) > 2 else "decision"
    ),
    "predict": _prediction,
    "predict_interval": lambda model, **_: ResultColumns(end_names(_class_names(model))),
    "predict_proba": lambda model, **_: ResultColumns(_class_names(model)),
    "predict_quantile": lambda model, quantiles: ResultColumns(
        [f"quantile_{quantile}" for quantile in np.atleast_1d(quantiles).tolist()]
    ),
    "predict_set": lambda model, **_: ResultColumns(_class_names(model), bool),
    "predict_terms": _contributions,
}


def label_dtype(classes: np.ndarray) -> np.dtype:
    """The dtype of labels: numeric, or a string dtype even if the array has objects.

    Examples
    --------
    >>> label_dtype(np.array(["no", "yes"], dtype=object)).kind
    'U'
    """
    return np.array(classes.tolist()).dtype


def end_names(classes: Sequence[Any]) -> list[str]:
    """Names of the interval's ends, per class if there are more than two.

    Examples
    --------
    >>> end_names(["a", "b"]), end_names(["a", "b", "c"])[:2]
    (['lower', 'upper'], ['lower_a', 'upper_a'])
    """
    ends = ["lower", "upper"]
    return [f"{end}_{label}" for label in classes for end in ends] if len(classes) > 2 else ends


def require_in_memory(X: Any) -> None:
    """Reject tables in chunks where a method needs all rows in memory.

    Examples
    --------
    >>> require_in_memory("sales/*.parquet")
    Traceback (most recent call last):
        ...
    ValueError: this needs its rows in memory, and X is 'sales/*.parquet': load some rows first, ...
    """
    engine = engine_of(X)
    if engine is not None:
        raise ValueError(f"this needs its rows in memory, and X is {engine.remedy(X)}")


def open_for(model: Any, table: Any, *, as_text: bool = False) -> Source:
    """A table in chunks that has all columns of a fitted model, read as its training data was.

    With ``as_text`` other columns of CSV files are strings.
    """
    types = column_types(model._inputs)
    # Prediction is a few long numpy calls, which threads run in parallel.
    reading = ReadOptions(
        read_n_jobs(model.n_jobs),
        processes=False,
        dialect=getattr(model, "dialect_", None),
        types=types if as_text else None,
    )
    source = open_source(table, reading)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"{source.title} has columns with names, and the model was fitted to an array without: fit it "
            "to a frame, or read the rows into an array"
        )
    if error := missing_columns(source.title, source.names, names):
        raise error
    return source.with_types(types)


def given_roles(
    model: Any, source: Source, exposure: Any = None, trials: Any = None, offset: Any = None
) -> Given:
    """What predictions of a table in chunks depend on besides features, if the model has such."""
    given = find_given(source, exposure, trials, offset)
    model._read_given(1, **given.of_row())  # an error for other models
    return given


def column_types(schema: Schema) -> dict[str, Any]:
    """Arrow types as which a model's columns are read from CSV files, whatever a part looks like."""
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
class ChunkCall(ABC):
    """What is evaluated with a fitted model on the rows of chunks: picklable."""

    model: Any
    given: Given

    @abstractmethod
    def evaluate(self, X: Any, **given: Any) -> Any:
        """The result for some rows."""

    @property
    def inputs(self) -> list[str]:
        """The columns that the evaluation needs."""
        return list(dict.fromkeys([*self.model._inputs.names, *self.given.columns]))

    def of_chunk(self, chunk: Chunk) -> Any:
        """The result for the rows of a chunk."""
        X = features_of(self.model, chunk.frame)
        return self.evaluate(X, **self.given.of_chunk(chunk))

    def check_arguments(self, source: Source) -> None:
        """Evaluate a row of missing values: invalid arguments are reported before anything is read."""
        with collect_unseen():
            self.evaluate(features_of(self.model, row_of_missing(source)), **self.given.of_row())


@dataclass(frozen=True)
class _MethodCall(ChunkCall):
    """A method, and its arguments but those with values per row."""

    method: Callable[..., Any]
    arguments: Mapping[str, Any]

    def evaluate(self, X: Any, **given: Any) -> Any:
        return self.method(self.model, X, **self.arguments, **given)


def features_of(model: Any, frame: Any) -> Any:
    """The columns that a model needs, of a frame that may have others as well."""
    wrapped: Any = as_frame(frame)
    return wrapped.select(list(model._inputs.names)).to_native()


def row_of_missing(source: Source) -> Any:
    """A frame with one row of missing values."""
    empty = source.empty()
    wrapped: Any = as_frame(empty)
    if wrapped.implementation.is_pandas_like():
        return empty.reset_index(drop=True).reindex([0])
    import pyarrow as pa

    nulls = [pa.nulls(1, kind) for kind in empty.schema.types]
    return pa.Table.from_arrays(nulls, schema=empty.schema)


#: Sums over rows, their unseen values, and their number.
_Sums: TypeAlias = tuple[Array, list[UnseenValues], int]


def _sum_chunks(
    sums: Callable[..., Array], model: Any, roles: Roles, chunks: Iterable[Chunk]
) -> _Sums:
    """Sums over the rows with a positive weight."""
    return reduce(_add, (_sum_chunk(sums, model, roles, chunk) for chunk in chunks))


def _sum_chunk(sums: Callable[..., Array], model: Any, roles: Roles, chunk: Chunk) -> _Sums:
    targets = read_targets(chunk, roles, model.family_)
    if not len(targets.weight):
        return np.zeros(1), [], 0
    y = targets.labels[targets.values] if model.family_.link.classes else targets.values
    argument, role = roles.given.size
    given = {} if role is None else {argument: targets.exposure}
    if targets.offset is not None:
        given["offset"] = targets.offset
    X: Any = as_frame(features_of(model, chunk.frame))
    if not isinstance(targets.weighted, slice):
        X = X.filter(targets.weighted.tolist())
    with collect_unseen() as unseen, in_chunk(chunk):
        total = sums(model, X.to_native(), y, targets.weight, **given)
    return total, unseen, len(targets.weight)


def _add(first: _Sums, second: _Sums) -> _Sums:
    # Sums over no rows are a single zero, which broadcasts.
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]
