"""From the arguments of ``fit`` to what the core fits, for rows in memory and rows read in chunks.

Both kinds of training data are opened (which features there are) and read (the schema, and the encoding of
the target), and their summary is checked once the core has computed it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from lanam import cautions
from lanam.core.likelihoods import Likelihood
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.core.rows.located import Rows
from lanam.core.rows.statistics import fit_intercept_only
from lanam.core.rows.summaries import DataSummary
from lanam.core.rows.tables import ArrayTables, EncodedRows, Log, LoggedTables, Tables
from lanam.data import CATEGORICAL, NUMERIC, UNSEEN, Schema, as_frame, find_column, warn_user
from lanam.data.errors import ColumnRef, coded_missing, row_identifiers
from lanam.data.recognition import code_of_missing, numbers_rows
from lanam.engines.interface import Chunk, Source
from lanam.engines.roles import ROW_ARGUMENTS, Roles, find_features, read_roles, read_targets
from lanam.engines.survey import survey
from lanam.families import GAUSSIAN, Encoding, Family
from lanam.families.checks import Support
from lanam.families.labels import number_labels
from lanam.inputs import (
    read_columns,
    read_exposure,
    read_groups,
    read_offset,
    read_target_of,
    read_trials,
    read_weights,
    require_enough,
    require_squares,
    require_weight,
)
from lanam.provenance import Target


@dataclass(frozen=True)
class FitInputs:
    """The arguments of ``fit`` that concern rows: a table, and values or names of its columns."""

    X: Any
    target: Any
    sample_weight: Any = None
    exposure: Any = None
    drop: Sequence[str] = ()
    trials: Any = None
    offset: Any = None
    groups: Any = None


@dataclass
class TrainingRows:
    """Rows as the core fits them; their summary completes the schema."""

    #: from the log of totals to the rows
    tables: Callable[[Log], Tables]
    encoding: Encoding
    schema: Schema
    target_name: str | None
    #: whether the schema has the columns' ranges, and which have missing values
    ranged: bool
    n_rows: int = 0
    fingerprint: str = ""
    target: Target | None = None
    #: all rows or, of many, a sample; and the magnitude of the response
    sample: EncodedRows | None = None
    magnitude: float = 1.0
    #: the rows, if they are in memory and none was left out
    in_memory: EncodedRows | None = None

    def check(self, summary: DataSummary) -> None:
        """Reject or warn of rows that cannot be fitted as they are, and complete the schema."""
        self.n_rows, self.sample = summary.n_rows, summary.sample
        self.fingerprint = summary.fingerprint
        self.target = self._target(summary)
        spread = summary.spread
        self.magnitude = spread.magnitude
        require_enough(summary.n_rows)
        require_weight(summary.total_weight, summary.n_rows)
        if self.encoding.family.has_noise:
            require_squares(spread.magnitude)  # about the largest magnitude of the response
            if spread.constant:
                value = f"{spread.mean * spread.magnitude:g}"
                message = (
                    f"y is constant up to rounding ({value}): the model predicts it everywhere. If it "
                    "varies, subtract a constant from it first."
                )
                warn_user(UserWarning(message))
        if self.ranged:
            require_known_missing(summary.missing_columns, self.schema)
        else:
            self.schema = _with_ranges(self.schema, summary)
        if self.sample is not None:
            _warn_of_numbers(self.schema, summary, self.sample)

    def _target(self, summary: DataSummary) -> Target:
        """The target's name, and what it is on average."""
        spread, family = summary.spread, self.encoding.family
        means = (spread.mean * spread.magnitude,)
        if self.encoding.likelihood.n_classes:
            means = tuple((summary.classes / summary.classes.sum()).tolist())
        exposure = summary.total_weight if family.weighs_exposure else None
        return Target(self.target_name, means, exposure)

    def with_record(self, model: FittedModel) -> FittedModel:
        """The fitted model, with in-sample deviance and diagnostics in the last record of its history."""
        if self.sample is None or not model.history:
            return model
        explained = deviance_explained(model, self.encoding.likelihood, self.sample, self.magnitude)
        found = cautions.record(model, self.schema, self.sample, self.in_memory)
        *before, last = model.history
        history = *before, {**last, "deviance_explained": explained, **found}
        return replace(model, history=history, diagnostics=None)


def deviance_explained(
    model: FittedModel, likelihood: Likelihood, rows: EncodedRows, magnitude: float = 1.0
) -> float | None:
    """Fraction of the intercept-only model's deviance that a model explains: R2 if it is Gaussian.

    ``None`` if there is nothing to explain.
    """
    y, link = rows.response, scoring.link_mean(model, rows.columns)
    likelihood = likelihood.with_parameters(model.parameters)
    alone = Rows((), (), y, rows.weight, precision=rows.precision, offset=rows.offset)
    if likelihood.quadratic:  # squares of tiny or huge responses stay within the floats
        y, link = y / magnitude, link / magnitude
        alone = replace(alone, y=y)
    if likelihood.contrasts is not None:
        link = link @ likelihood.contrasts
    with np.errstate(all="ignore"):
        null = np.broadcast_to(fit_intercept_only(alone, likelihood), link.shape)
        if rows.offset is not None:
            link, null = link + rows.offset, null + rows.offset
        left, whole = (alone.information @ likelihood.deviance(y, f) for f in (link, null))
        explained = 1.0 - left / whole
    return float(explained) if whole > 0.0 and np.isfinite(explained) else None


class InMemoryData:
    """Training data in memory: a frame, an array or a list of rows.

    With a ``fitted`` schema, that of a model to add terms to, it must have the same columns.
    """

    dialect = None

    def __init__(
        self, estimator: BaseEstimator, inputs: FitInputs, fitted: Schema | None = None
    ) -> None:
        self._estimator, self._fitted = estimator, fitted
        self._inputs, self._target_name = split_frame(inputs), name_of(inputs.target)
        self._columns, self._schema = read_columns(
            estimator, self._inputs.X, fitting=fitted is None
        )
        self.names = self._schema.names

    def support(self) -> Support:
        """What numbers the target has."""
        n_rows = len(self._columns)
        weight = read_weights(self._inputs.sample_weight, n_rows)
        target = read_target_of(GAUSSIAN, self._estimator, self._inputs.target, n_rows)
        return Support.of(target[weight > 0.0])

    def read(self, family: Family, classes: np.ndarray | None = None) -> TrainingRows:
        """The rows, for a target of this family; ``classes`` are those of a model to add terms to."""
        columns, schema, n_rows = self._columns, self._schema, len(self._columns)
        weight = read_weights(self._inputs.sample_weight, n_rows)
        target = read_target_of(family, self._estimator, self._inputs.target, n_rows)
        exposure = (
            read_exposure(self._inputs.exposure, n_rows)
            if self._inputs.trials is None
            else read_trials(self._inputs.trials, n_rows)
        )
        given = self._inputs.offset
        offset = None if given is None else read_offset(given, n_rows)
        group = self._inputs.groups
        group = None if group is None else read_groups(group, n_rows)
        if not weight.all():
            kept = weight > 0.0
            require_enough(int(kept.sum()))
            columns, target = np.asfortranarray(columns[kept]), target[kept]
            weight, exposure = weight[kept], exposure[kept]
            offset = None if offset is None else offset[kept]
            group = None if group is None else group[kept]
            schema = schema if self._fitted else schema.narrowed(columns)
        if self._fitted is not None:
            require_known_values(columns, schema)
        require_same_classes(classes, target)
        encoding = family.encoding(family.statistics(target, weight, exposure))
        encoded = encoding.response(target, weight, exposure, offset)
        self._table = replace(encoded.with_columns(columns), group=group)
        whole = self._table if len(columns) == n_rows else None
        tables = partial(ArrayTables, self._table)
        return TrainingRows(
            tables, encoding, schema, self._target_name, ranged=True, in_memory=whole
        )

    def about(self) -> dict[str, Any]:
        """What a checkpoint of a fit to these rows depends on."""
        return {"X": fingerprint(self._table)}


class ChunkedData:
    """Training data that a source reads in chunks; target, weights and exposure are named columns."""

    def __init__(
        self,
        estimator: BaseEstimator,
        inputs: FitInputs,
        source: Source,
        fitted: Schema | None = None,
    ) -> None:
        self._source, self._inputs, self._fitted = source, inputs, fitted
        roles = read_roles(
            source,
            *(inputs.target, inputs.sample_weight, inputs.exposure, inputs.drop),
            *(inputs.trials, inputs.offset, inputs.groups),
        )
        self.dialect, self._categorical = source.dialect, estimator.categorical_features
        self._ordered = estimator.ordered if fitted is None else None
        if fitted is None:
            estimator.n_features_in_ = len(roles.features)
            estimator.feature_names_in_ = np.array(roles.features, dtype=object)
        else:
            lost = [name for name in fitted.names if name not in roles.features]
            if lost:
                raise ValueError(
                    f"{source.title} lacks the column {lost[0]!r}, with which the model was fitted: pass "
                    "the training data"
                )
            roles = replace(roles, features=fitted.names)
            coded = [column.name for column in fitted.columns if column.kind == CATEGORICAL]
            self._categorical = coded
        self._roles, self.names = roles, roles.features

    def support(self) -> Support:
        """See `InMemoryData`."""
        roles = replace(self._roles, exposure=None, trials=None, offset=None)
        job = partial(_support_of_chunks, roles)
        return self._source.reduce(tuple(dict.fromkeys(roles.others)), job, Support.merged)

    def read(self, family: Family, classes: np.ndarray | None = None) -> TrainingRows:
        """See `InMemoryData`."""
        declared = self._categorical, family, self._ordered
        encoder = survey(self._source, self._roles, *declared)
        require_same_classes(classes, encoder.encoding.classes)
        if self._fitted is not None:
            encoder = replace(encoder, schema=self._fitted)
        tables = partial(LoggedTables, self._source.encoded(self._roles.columns, encoder))
        ranged, name = self._fitted is not None, name_of(self._inputs.target)
        return TrainingRows(tables, encoder.encoding, encoder.schema, name, ranged)

    def about(self) -> dict[str, Any]:
        """See `InMemoryData`."""
        inputs = {**vars(self._inputs), "X": self._source.fingerprint}
        return {**inputs, "categorical_features": self._categorical, "ordered": self._ordered}


def _support_of_chunks(roles: Roles, chunks: Iterable[Chunk]) -> Support:
    parts = (Support.of(read_targets(chunk, roles, GAUSSIAN).values) for chunk in chunks)
    return reduce(Support.merged, parts, Support())


TrainingData: TypeAlias = InMemoryData | ChunkedData


def fingerprint(table: EncodedRows) -> str:
    """A digest of rows in memory."""
    digest = hashlib.sha256()
    extras = [array for array in (table.offset, table.precision, table.group) if array is not None]
    for array in (table.columns, table.response, table.weight, *extras):
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _with_ranges(schema: Schema, summary: DataSummary) -> Schema:
    """The columns with the ranges of all rows."""
    columns = []
    for column, summarised in zip(schema.columns, summary.columns, strict=True):
        distribution = summarised.distribution
        if column.levels:
            ends = [0.0, len(column.levels) - 1.0]
        elif len(distribution.values):
            ends = (distribution.values[[0, -1]] * distribution.scale).tolist()
        else:
            ends = [np.nan, np.nan]
        missing = distribution.missing > 0.0
        columns.append(replace(column, lowest=ends[0], highest=ends[1], missing=missing))
    return replace(schema, columns=tuple(columns))


def _warn_of_numbers(schema: Schema, summary: DataSummary, sample: EncodedRows) -> None:
    """Warn of integers that may only number the rows, and of those that may stand for missing values."""
    for index, column in enumerate(schema.columns):
        if column.kind != NUMERIC:
            continue
        values, place = sample.columns[:, index], ColumnRef(column.name, index, schema.backend)
        n_values = summary.columns[index].n_values
        if numbers_rows(column.name, values, n_values, summary.n_rows, column.highest):
            warn_user(row_identifiers(place))
        if (code := code_of_missing(values[~np.isnan(values)])) is not None:
            warn_user(coded_missing(place, code, float(np.mean(values == code))))


def name_of_target(y: Any, target: str | None) -> Any:
    """The target, passed as either ``y`` or ``target``."""
    if y is not None and target is not None:
        raise ValueError("y and target both specify what to predict: pass one of them")
    return target if y is None else y


def name_of(target: object) -> str | None:
    """The name of a target: of a column, or of a Series."""
    name = target if isinstance(target, str) else getattr(target, "name", None)
    return name if isinstance(name, str) and name else None


def split_frame(inputs: FitInputs) -> FitInputs:
    """Take named columns out of a frame in memory; arguments that are values stay as they are."""
    inputs = replace(inputs, groups=_values_of_groups(inputs))
    roles = {name: getattr(inputs, name) for name in ROW_ARGUMENTS}
    named = [argument for argument, value in roles.items() if isinstance(value, str)]
    if not named and not inputs.drop:
        return inputs
    frame: Any = as_frame(inputs.X)
    if frame is None:
        argument = [*named, "drop"][0]
        raise ValueError(f"{argument} names columns, and X is an array without names: pass a frame")
    features = find_features(roles, inputs.drop, frame.columns, "X")
    roles |= {argument: frame[roles[argument]].to_numpy() for argument in named}
    return FitInputs(frame.select(list(features)).to_native(), **roles, groups=inputs.groups)


def _values_of_groups(inputs: FitInputs) -> Any:
    """The rows' groups; a column that has them stays a feature."""
    if not isinstance(inputs.groups, str):
        return inputs.groups
    frame: Any = as_frame(inputs.X)
    if frame is None:
        raise ValueError("groups names a column, and X is an array without names: pass a frame")
    find_column(inputs.groups, frame.columns, "groups")
    return frame[inputs.groups].to_numpy()


def order_of(inputs: FitInputs) -> list[Any]:
    """The categories of an ordered target, lowest first; empty if it has no order of its own."""
    target = inputs.target
    if isinstance(target, str):
        frame: Any = as_frame(inputs.X)
        if frame is None or target not in frame.columns:
            return []
        target = frame[target].to_native()
    dtype = getattr(target, "dtype", None)
    categories = getattr(dtype, "categories", None)
    # Of pandas a categorical dtype with an order, of polars an enumeration.
    if categories is None or not getattr(dtype, "ordered", type(dtype).__name__ == "Enum"):
        return []
    return list(categories)


_REMEDY = "when the model was fitted: pass the training data, or fit again"


def require_known_values(columns: np.ndarray, schema: Schema) -> None:
    """Reject rows in memory that have what the training data of the fitted model did not."""
    for column, values in zip(schema.columns, columns.T, strict=True):
        n_missing = 0 if column.missing else int(np.isnan(values).sum())
        n_unseen = int((values == UNSEEN).sum()) if column.kind == CATEGORICAL else 0
        if n_missing or n_unseen:
            what = f"{n_missing} missing value" if n_missing else f"{n_unseen} value"
            plural = "s" if n_missing + n_unseen > 1 else ""
            before = "and had none" if n_missing else "of categories that it did not have"
            raise ValueError(f"column {column.name!r} has {what}{plural}, {before} {_REMEDY}")


def require_known_missing(missing: Sequence[int], schema: Schema) -> None:
    """Reject columns with missing values that had none in the training data of the fitted model."""
    for column in (schema.columns[k] for k in missing):
        if not column.missing:
            raise ValueError(f"column {column.name!r} has missing values, and had none {_REMEDY}")


def require_same_classes(classes: np.ndarray | None, labels: np.ndarray) -> None:
    """Reject training data whose labels are not exactly the classes of the fitted model."""
    if classes is None:
        return
    absent = np.setdiff1d(np.arange(len(classes)), number_labels(labels, classes))
    if len(absent):
        raise ValueError(
            f"y has no row of the class {classes.tolist()[absent[0]]!r} with a positive weight, and had "
            f"{_REMEDY}"
        )
