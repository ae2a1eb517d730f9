"""From the arguments of a survival fit to subjects: their columns, when they entered and left, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from lanam.core.arrays import Array
from lanam.core.rows.follow_up import N_TIMES, FollowUp, Timeline
from lanam.core.rows.tables import (
    ArrayTables,
    EncodedRows,
    Job,
    Log,
    LoggedTables,
    Merge,
    Tables,
    Totals,
    add,
)
from lanam.data import NUMERIC, Column, Schema, as_frame
from lanam.engines.interface import Source
from lanam.engines.roles import Roles, find_features
from lanam.engines.survey import survey
from lanam.errors import InputError
from lanam.families import SURVIVAL
from lanam.inputs import read_columns, read_numbers, read_target_of, read_weights
from lanam.training import fingerprint

#: The name of the time where the data has none.
TIME = "time"


@dataclass(frozen=True)
class FollowUpInputs:
    """The arguments of ``fit``: a table, and values or names of its columns."""

    X: Any
    event: Any
    time: Any
    entry: Any = None
    sample_weight: Any = None
    drop: Sequence[str] = ()

    @property
    def names(self) -> dict[str, Any]:
        """The arguments that may name columns."""
        return {name: getattr(self, name) for name in ("event", "time", "entry", "sample_weight")}


@dataclass(frozen=True)
class Subjects:
    """The subjects of a fit: their encoded rows, and the schema of their own columns."""

    tables: Callable[[Log], Tables]
    schema: Schema
    #: whether totals are logged by the tables themselves
    logged: bool
    #: whether the schema has ranges
    ranged: bool
    time_name: str
    event_name: str | None
    about: Callable[[], dict[str, Any]]
    dialect: Any = None


def split_target(y: Any, event: Any, time: Any) -> tuple[Any, Any]:
    """Events and times, passed as names or arrays, or both in ``y``."""
    if y is None:
        missing = [name for name, value in (("event", event), ("time", time)) if value is None]
        if missing:
            raise InputError(
                "{argument} is missing: This LANAMSurvival estimator requires y to be passed, "
                "but the target y is None. A survival fit needs whether an event was seen, and the time of "
                "follow-up",
                "pass event='status' and time='days', names of columns or arrays, or a structured array of "
                "both as y",
                argument=missing[0],
            )
        return event, time
    if event is not None or time is not None:
        raise InputError(
            "{argument} and y both say what to predict",
            "pass either y, or event and time",
            argument="event" if event is not None else "time",
        )
    return _split_array(y)


def _split_array(y: Any) -> tuple[Any, Any]:
    """The two fields of a structured array as scikit-survival has it, or two columns."""
    array = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    names = array.dtype.names
    if names is not None and len(names) == 2:
        first, second = (array[name] for name in names)
        return (second, first) if second.dtype.kind == "b" != first.dtype.kind else (first, second)
    if names is None and array.ndim == 2 and array.shape[1] == 2:
        return array[:, 0], array[:, 1]
    raise InputError(
        "{argument} must be a structured array of event and time, or have two columns, and it has the "
        f"shape {array.shape} and type {array.dtype}",
        "pass event=... and time=... instead",
        argument="y",
    )


def in_memory(estimator: BaseEstimator, inputs: FollowUpInputs) -> Subjects:
    """Subjects in memory: a frame, an array or a list of rows."""
    inputs, time_name, event_name = _split_frame(inputs)
    columns, schema = read_columns(estimator, inputs.X, fitting=True)
    table = _encoded_subjects(estimator, columns, inputs)
    if not table.weight.all():
        table = _with_weight(table)
        schema = schema.narrowed(table.columns[:, :-N_TIMES])
    return _subjects(table, schema, time_name, event_name)


def again_in_memory(model: Any, inputs: FollowUpInputs) -> Subjects:
    """The subjects of a fitted model once more, with its schema, of which the time is the last column."""
    inputs, time_name, event_name = _split_frame(inputs)
    table = _with_weight(_encoded_subjects(model, model._columns(inputs.X), inputs))
    require_causes(table.response, model.causes_)
    return _subjects(table, model._schema, time_name, event_name)


def _with_weight(table: EncodedRows) -> EncodedRows:
    """The rows with a positive weight."""
    kept = table.weight > 0.0
    columns = np.asfortranarray(table.columns[kept])
    return EncodedRows(columns, table.response[kept], table.weight[kept])


def _subjects(
    table: EncodedRows, schema: Schema, time_name: str, event_name: str | None
) -> Subjects:
    return Subjects(
        partial(ArrayTables, table),
        schema,
        logged=False,
        ranged=True,
        time_name=time_name,
        event_name=event_name,
        about=lambda: {"X": fingerprint(table)},
    )


def _encoded_subjects(
    estimator: BaseEstimator, columns: Array, inputs: FollowUpInputs
) -> EncodedRows:
    """Subjects with these columns, then entry and time; the response is the event."""
    n_rows = len(columns)
    weight = read_weights(inputs.sample_weight, n_rows)
    event = _read_events(inputs.event, n_rows, estimator)
    time = _read_times(inputs.time, n_rows, "time")
    entry = np.zeros(n_rows)
    if inputs.entry is not None:
        entry = _read_times(inputs.entry, n_rows, "entry")
    require_times(entry, time, has_entry=inputs.entry is not None)
    table = np.asfortranarray(np.column_stack([columns, entry, time]))
    return EncodedRows(table, event, weight)


def read_subjects(model: Any, inputs: FollowUpInputs) -> tuple[FollowUpInputs, EncodedRows]:
    """Rows in memory for a fitted model: without what named columns of them say, and encoded."""
    inputs, *_ = _split_frame(inputs)
    return inputs, _encoded_subjects(model, model._columns(inputs.X), inputs)


def _split_frame(inputs: FollowUpInputs) -> tuple[FollowUpInputs, str, str | None]:
    """Take named columns out of a frame in memory; and the names of time and event."""
    named = {name: value for name, value in inputs.names.items() if isinstance(value, str)}
    time_name = _name(inputs.time) or TIME
    event_name = _name(inputs.event)
    frame: Any = as_frame(inputs.X)
    if named or inputs.drop:
        if frame is None:
            argument = [*named, "drop"][0]
            raise InputError(
                "{argument} names columns, and X is an array without names",
                "pass a frame",
                argument=argument,
            )
        features = find_features(named, inputs.drop, frame.columns, "X")
        values = {argument: frame[name].to_numpy() for argument, name in named.items()}
        inputs = replace(inputs, X=frame.select(list(features)).to_native(), **values)
        frame = as_frame(inputs.X)
    taken = () if frame is None else tuple(map(str, frame.columns))
    while time_name in taken:
        time_name = f"{time_name} of follow-up"
    return inputs, time_name, event_name


def _name(value: Any) -> str | None:
    name = value if isinstance(value, str) else getattr(value, "name", None)
    return name if isinstance(name, str) and name else None


def _read_events(values: Any, n_rows: int, estimator: BaseEstimator) -> Array:
    """Codes of events, 0 for censored rows."""
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    words = [value for value in array.ravel().tolist() if isinstance(value, str)]
    if words:
        raise InputError(
            f"{{argument}} has text such as {words[0]!r}, and it must be 0 or False for censored rows, and "
            "1, True or the code of the cause for others",
            f"pass for example event == {words[0]!r} if that is an event",
            argument="event",
        )
    remedy = "Drop these rows, or code rows without an event as 0, which is censored"
    read_numbers(array, n_rows, "event", remedy)
    return np.asarray(read_target_of(SURVIVAL, estimator, values, n_rows), dtype=np.float64)


def _read_times(values: Any, n_rows: int, argument: str) -> Array:
    """Finite numbers."""
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.dtype.kind in "mM":
        raise InputError(
            f"{{argument}} holds {'dates' if array.dtype.kind == 'M' else 'durations'}, and follow-up is a "
            "number",
            "pass for example days, (end - start) / np.timedelta64(1, 'D')",
            argument=argument,
        )
    return read_numbers(array, n_rows, argument, "Drop these rows, or impute their times")


def require_times(
    entry: Array, time: Array, *, has_entry: bool, names: tuple[str, str] = ("time", "entry")
) -> None:
    """Refuse times of zero or less, and entries that are negative or not before the end."""
    if (bad := time <= 0.0).any() and not has_entry:
        row = int(np.argmax(bad))
        raise InputError(
            f"{{argument}} must be positive, and {bad.sum()} of {len(time)} values are not, the first, "
            f"{time[row]:g}, in row {{row}}",
            "A subject with no time at risk says nothing: drop it or, if times were rounded, add half of "
            "their unit.",
            argument="time",
            row=row,
        )
    if (bad := entry >= time).any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{{argument}} must be before the time of follow-up, and {bad.sum()} of {len(time)} values are "
            f"not, the first, {entry[row]:g} with the time {time[row]:g}, in row {{row}}",
            "Drop subjects that were never at risk; both count from the same origin.",
            argument="entry",
            row=row,
        )


@dataclass(frozen=True)
class _SubjectTables:
    """Tables whose columns are put into the order of subjects: their own, entry, time."""

    tables: Tables
    order: tuple[int, ...]
    has_entry: bool

    @property
    def n_columns(self) -> int:
        return len(self.order) + (not self.has_entry)

    def total(self, job: Job, merge: Merge = add) -> Totals:
        return self.tables.total(partial(_ordered, self.order, self.has_entry, job), merge)


def _ordered(
    order: tuple[int, ...], has_entry: bool, job: Job, tables: Iterable[EncodedRows]
) -> Totals:
    def of(table: EncodedRows) -> EncodedRows:
        columns = table.columns[:, order]
        if not has_entry:
            columns = np.insert(columns, len(order) - 1, 0.0, axis=1)
        entry, time = columns[:, -2:].T
        for name, values in (("time", time), ("entry", entry)):
            if (bad := ~np.isfinite(values)).any():
                problem = f"{{argument}} is missing in {bad.sum()} rows"
                raise InputError(problem, "Drop these rows, or impute their times", argument=name)
        require_times(entry, time, has_entry=has_entry)
        return replace(table, columns=np.asfortranarray(columns))

    return job(map(of, tables))


def in_chunks(estimator: BaseEstimator, inputs: FollowUpInputs, source: Source) -> Subjects:
    """Subjects that a source reads in chunks; event, time, entry and weight are its columns."""
    for argument, value in inputs.names.items():
        if value is None and argument in ("entry", "sample_weight"):
            continue
        if not isinstance(value, str):
            raise InputError(
                f"{{argument}} of {source.title} is one of its columns",
                f"pass its name, for example {argument}={source.names[-1]!r}",
                argument=argument,
            )
    named = {name: value for name, value in inputs.names.items() if value is not None}
    features = find_features(named, inputs.drop, source.names, source.title)
    times = [named[name] for name in ("entry", "time") if name in named]
    roles = Roles(named["event"], named.get("sample_weight"), None, (*features, *times))
    declared = estimator.categorical_features, SURVIVAL, estimator.ordered
    encoder = survey(source, roles, *declared)
    wrong = [c.name for c in encoder.schema.columns if c.name in times and c.kind != NUMERIC]
    if wrong:
        raise InputError(
            "{argument} names the column {column!r}, which is not numeric",
            "pass a column of numbers",
            argument="time",
            column=wrong[0],
        )
    order = tuple(map(encoder.schema.names.index, roles.features))
    estimator.n_features_in_ = len(features)
    estimator.feature_names_in_ = np.array(features, dtype=object)
    encoded = source.encoded(roles.columns, encoder)

    def tables(log: Log) -> Tables:
        return _SubjectTables(LoggedTables(encoded, log), order, "entry" in named)

    columns = tuple(encoder.schema.columns[k] for k in order[: len(features)])
    return Subjects(
        tables,
        replace(encoder.schema, columns=columns),
        logged=True,
        ranged=False,
        time_name=named["time"],
        event_name=named["event"],
        about=lambda: {**vars(inputs), "X": source.fingerprint},
        dialect=source.dialect,
    )


def with_time(schema: Schema, name: str, timeline: Timeline) -> Schema:
    """The columns of a model: the subjects' own, and the time."""
    ends = float(timeline.edges[0]), float(timeline.edges[-1])
    return replace(schema, columns=(*schema.columns, Column(name, NUMERIC, *ends)))


def require_events(follow_up: FollowUp) -> None:
    """Refuse data without an event."""
    if not len(follow_up.codes):
        raise InputError(
            "{argument} has no event: every row with a positive weight is censored, and from no events a "
            "hazard cannot be learned",
            "Gather follow-up until there are events, or check that 0 codes censored rows and 1 events.",
            argument="event",
        )


def require_causes(codes: Array, causes: Array) -> None:
    """Refuse codes of events that a fitted model does not have."""
    other = np.flatnonzero((codes > 0.0) & ~np.isin(codes, causes))
    if len(other):
        known = " and ".join(map(str, causes.tolist()))
        plural = "s" if len(causes) > 1 else ""
        raise InputError(
            f"{{argument}} has the code {codes[other[0]]:g} in row {{row}}, and the model has the "
            f"cause{plural} {known}",
            f"code events of other causes as censored, 0: np.where(np.isin(event, {causes.tolist()}), "
            "event, 0)",
            argument="event",
            row=int(other[0]),
        )


def read_outcome(estimator: Any, X: Any, event: Any, time: Any) -> tuple[Any, Array, Array]:
    """Rows in memory without their outcome, codes of events, and times."""
    inputs, *_ = _split_frame(FollowUpInputs(X, event, time))
    n_rows = len(inputs.X)
    codes = _read_events(inputs.event, n_rows, estimator)
    require_causes(codes, estimator.causes_)
    times = _read_times(inputs.time, n_rows, "time")
    require_times(np.zeros(n_rows), times, has_entry=False)
    return inputs.X, codes, times
