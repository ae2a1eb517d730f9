"""Predictions of tables in chunks, written to files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lanam.chunked import ChunkCall, end_names, given_roles, label_dtype, open_for
from lanam.data import collect_unseen, find_column
from lanam.engines import is_chunked
from lanam.engines.formats import arrow
from lanam.engines.interface import Chunk, Parse, Source
from lanam.engines.writing import output_format
from lanam.errors import InputError

AnySource = TypeVar("AnySource", bound=Source)


@dataclass(frozen=True)
class OutputOptions:
    """What is written besides the prediction, and the prefix of all names."""

    #: the coverage of intervals
    interval: float | None = None
    std: bool = False
    #: the intercept and the terms' contributions
    terms: bool = False
    proba: bool = False
    prefix: str = ""
    #: of survival models, the times at which survival and incidences are evaluated
    times: tuple[float, ...] = ()


class Outputs:
    """The columns of a model's predictions, and their values for some rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMRegressor
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> model = LANAMRegressor(random_state=0).fit(X, X[:, 0] ** 2)
    >>> outputs = Outputs(model, OutputOptions(interval=0.9, terms=True))
    >>> outputs.names
    ['prediction', 'lower', 'upper', 'intercept', 'term_x0']
    >>> [len(values) for values in outputs.of(X[:3])]
    [3, 3, 3, 3, 3]
    """

    def __init__(self, model: Any, options: OutputOptions) -> None:
        self.model, self._options = model, options
        classes = getattr(model, "classes_", None)
        self._classes = None if classes is None else classes.tolist()
        if options.std and self._classes is not None:
            remedy = "use {interval=0.95} for intervals of the probabilities"
            raise InputError("{std=True} is for numeric responses, not for classes", remedy)
        if options.proba and self._classes is None:
            raise InputError("{proba=True} is for classes, and this model predicts numbers")
        self._causes = getattr(model, "causes_", np.empty(0, int)).tolist()
        if options.times and not self._causes:
            raise InputError("{times} are for survival models", argument="times")
        if self._causes and (options.std or (options.interval is not None and not options.times)):
            raise InputError(
                "the risk score of a survival model has no interval",
                "ask for survival with {times}, whose intervals it has",
                argument="times",
            )

    @cached_property
    def names(self) -> list[str]:
        """The columns' names."""
        options, classes = self._options, self._classes or []
        names = ["prediction"]
        if options.std:
            names.append("std")
        if options.proba:
            names += [f"probability_{label}" for label in classes]
        for curve in self._curves:
            names += [f"{curve}{end}" for end in self._ends]
        if options.interval is not None and not self._causes:
            names += end_names(classes)
        if options.terms:
            several = self.model.family_.link.several
            labels = [f" [{label}]" for label in classes] if several else [""]
            names += [f"intercept{label}" for label in labels]
            names += [f"term_{name}" for name in self.model.get_feature_names_out()]
        return [options.prefix + name for name in names]

    @property
    def _curves(self) -> list[str]:
        """Survival and, of several causes, the incidence of each, at every time."""
        several = self._causes if len(self._causes) > 1 else []
        names = ["survival", *(f"incidence_{cause}" for cause in several)]
        return [f"{name}_{at:g}" for name in names for at in self._options.times]

    @property
    def _ends(self) -> tuple[str, ...]:
        return ("",) if self._options.interval is None else ("", "_lower", "_upper")

    def _curve_columns(self, X: Any) -> list[np.ndarray]:
        """The values of the curves, with the ends of their intervals."""
        options, model = self._options, self.model
        if not options.times:
            return []
        asked = {"times": options.times, "return_interval": options.interval is not None}
        if options.interval is not None:
            asked["coverage"] = options.interval
        several = self._causes if len(self._causes) > 1 else []
        curves = [model.predict_survival_function(X, **asked)]
        curves += [model.predict_cumulative_incidence(X, cause, **asked) for cause in several]
        columns: list[np.ndarray] = []
        for curve in curves:
            if options.interval is None:
                columns += [*curve.T]
                continue
            value, ends = curve
            for k in range(value.shape[1]):
                columns += [value[:, k], ends[:, k, 0], ends[:, k, 1]]
        return columns

    @property
    def dtypes(self) -> list[np.dtype]:
        """The columns' dtypes: floats, except for the labels of a classifier."""
        label = np.dtype(float) if self._classes is None else label_dtype(self.model.classes_)
        return [label] + [np.dtype(float)] * (len(self.names) - 1)

    @cached_property
    def schema(self) -> Any:
        """The columns as an Arrow schema."""
        pa = arrow()
        label = pa.float64() if self._classes is None else pa.array(self._classes).type
        types = [label] + [pa.float64()] * (len(self.names) - 1)
        return pa.schema(list(zip(self.names, types, strict=True)))

    def of(self, X: Any, **given: Any) -> list[np.ndarray]:
        """The columns' values for some rows, perhaps none; unseen values are reported once."""
        if len(X) == 0:
            return [np.empty(0, dtype) for dtype in self.dtypes]
        options, model = self._options, self.model
        columns: list[Any]
        if options.std:
            columns = [*model.predict(X, return_std=True, **given)]
        elif options.proba:  # evaluated once: the prediction is the most probable class
            probability = model.predict_proba(X, **given)
            columns = [model.classes_[probability.argmax(axis=1)], *probability.T]
        else:
            columns = [model.predict(X, **given)]
        with collect_unseen():  # of the same rows, which the prediction has reported
            columns += self._curve_columns(X)
            if options.interval is not None and not self._causes:
                ends = model.predict_interval(X, coverage=options.interval, **given)
                columns += [*ends.reshape(len(ends), -1).T]
            if options.terms:
                contributions = model.predict_terms(X)
                columns += [np.full(len(X), value) for value in np.atleast_1d(model.intercept_)]
                columns += [*contributions.reshape(len(contributions), -1).T]
        return columns


def predict_files(
    model: Any,
    table: Any,
    output: Any,
    options: OutputOptions,
    *,
    keep: Sequence[str] = (),
    exposure: Any = None,
    trials: Any = None,
    offset: Any = None,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Predict the rows of a table in chunks into a file or a folder; returns the number of rows.

    ``progress`` is called with the number of rows that are done.
    """
    check_is_fitted(model)
    if not is_chunked(table):
        raise ValueError(
            "predict_files takes names of files or a Dask frame: for rows in memory use predict"
        )
    outputs = Outputs(model, options)
    source = open_for(model, table, as_text=True)
    given = given_roles(model, source, exposure, trials, offset)
    if isinstance(keep, str):
        raise ValueError(f"keep={keep!r} is one name: pass a list of names, [{keep!r}]")
    kept = [source.names[find_column(name, source.names, "keep")] for name in keep]
    clash = [name for name in kept if name in outputs.names]
    if clash:
        raise ValueError(
            f"the column {clash[0]!r} of keep has the name of an output: rename the outputs, for example "
            "with prefix='model_'"
        )
    call = OutputCall(model, given, outputs, tuple(dict.fromkeys(kept)))
    call.check_arguments(source)
    as_text = not os.path.isdir(output) and output_format(output) == "csv"
    call, source = keep_text(call, source, as_text=as_text)
    return source.write(call, output, overwrite, progress)


def keep_text(
    call: OutputCall, source: AnySource, *, as_text: bool
) -> tuple[OutputCall, AnySource]:
    """Copy kept columns of CSV files verbatim, if the model does not read them.

    With ``as_text`` this includes columns that the model reads: they are parsed for the model only.
    """
    read = set(call.inputs)
    source = source.with_types(dict.fromkeys(call.given.columns, arrow().float64()))
    kept = [name for name in call.kept if as_text or name not in read]
    source, parse = source.verbatim(kept, read)
    return replace(call, parse=parse), source


@dataclass(frozen=True)
class OutputCall(ChunkCall):
    """The outputs and the kept columns of the rows of chunks."""

    outputs: Outputs
    kept: tuple[str, ...]
    #: parses what the model reads of columns that are kept verbatim
    parse: Parse | None = None

    def evaluate(self, X: Any, **given: Any) -> list[np.ndarray]:
        """The outputs for some rows."""
        return self.outputs.of(X, **given)

    @property
    def columns(self) -> list[str]:
        """The columns that must be read."""
        return list(dict.fromkeys([*self.inputs, *self.kept]))

    def schema(self, empty: Any) -> Any:
        """The Arrow schema of what is written."""
        kept = [empty.schema.field(name) for name in self.kept]
        return arrow().schema([*kept, *self.outputs.schema])

    def table(self, chunk: Chunk, schema: Any) -> Any:
        """What is written of a chunk, as an Arrow table."""
        values = self.of_chunk(chunk if self.parse is None else self.parse(chunk))
        kept = [chunk.frame[name] for name in self.kept]
        return arrow().Table.from_arrays([*kept, *values], schema=schema)  # of its types

    def frame(self, partition: Any) -> Any:
        """What is written of a partition, as a pandas frame."""
        import pandas as pd

        values = self.of_chunk(Chunk(partition, "this partition", 0, 0))
        result = partition[list(self.kept)].copy()
        for name, column, dtype in zip(
            self.outputs.names, values, self.outputs.dtypes, strict=True
        ):
            # Dask cannot write columns of objects without their type.
            written = "string" if dtype.kind == "U" else dtype
            result[name] = pd.Series(column, partition.index, dtype=written)
        return result
