"""From what ``fit`` is given to what the core fits, wherever the rows are: in memory, or read in chunks.

Both are opened (which features there are), read (what must be known before rows can be arrays), and looked
at when the core has summarised them. A fit does not know the difference.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from lanam.core.rows.summaries import DataSummary
from lanam.core.rows.tables import ArrayTables, Log, LoggedTables, Table, Tables
from lanam.data import CATEGORICAL, UNSEEN, Schema, as_frame, warn_user
from lanam.engines.dialects import Dialect
from lanam.engines.interface import Source
from lanam.engines.roles import Roles, find_features, read_roles
from lanam.engines.survey import survey
from lanam.families import Encoding, Family
from lanam.families.labels import number_labels
from lanam.inputs import (
    read_columns,
    read_exposure,
    read_target_of,
    read_weights,
    require_enough,
    require_squares,
)


@dataclass(frozen=True)
class Given:
    """What ``fit`` is given of its rows: a table, and for the rest values or names of its columns."""

    X: Any
    target: Any
    sample_weight: Any = None
    exposure: Any = None
    drop: Sequence[str] = ()

    @property
    def roles(self) -> dict[str, Any]:
        """What is not a feature, by its argument."""
        return {name: getattr(self, name) for name in ("target", "sample_weight", "exposure")}


@dataclass(frozen=True)
class TrainingRows:
    """Rows that are ready to be fitted.

    Attributes
    ----------
    tables
        From what sees every total to the rows as the core wants them.
    encoding
        How their targets became what the core fits.
    schema
        What the features are.
    ranged
        Whether the schema knows their ranges, and which have missing values; a summary tells.
    """

    tables: Callable[[Log], Tables]
    encoding: Encoding
    schema: Schema
    ranged: bool

    def look(self, summary: DataSummary) -> Schema:
        """The schema by what is known of all rows, which are refused or warned of if need be."""
        spread, noisy = summary.spread, self.encoding.family.has_noise
        require_enough(summary.n_rows)
        if noisy:  # the unit of the spread is about the response's largest magnitude
            require_squares(spread.magnitude)
        if noisy and spread.constant:
            warn_user(
                UserWarning(
                    f"y has one value only ({spread.mean * spread.magnitude:g}): the model predicts it "
                    "everywhere"
                )
            )
        if not self.ranged:
            return _with_ranges(self.schema, summary)
        require_known_gaps(summary.missing_columns, self.schema)
        return self.schema


class Looked:
    """Looks at rows when the core has summarised them, and remembers what it saw."""

    schema: Schema
    n_rows: int

    def __init__(self, rows: TrainingRows) -> None:
        self._rows = rows

    def __call__(self, summary: DataSummary) -> None:
        """See the summary of all rows."""
        self.schema, self.n_rows = self._rows.look(summary), summary.n_rows


class TrainingData(ABC):
    """A table with its target, opened: which features there are is known.

    Parameters
    ----------
    estimator
        What is fitted; scikit-learn's attributes of the features are set.
    given
        What :meth:`fit` was given.
    known
        The schema of a model that is to be fitted on, whose columns these must be.
    """

    names: tuple[str, ...]
    #: How CSV files are written, as far as that was said.
    dialect: Dialect | None = None

    @abstractmethod
    def read(self, family: Family, classes: np.ndarray | None = None) -> TrainingRows:
        """The rows, for a target of this family; ``classes`` are those that it must have, if any are known.

        Raises
        ------
        ValueError, TypeError
            For what cannot be fitted; it says where.
        """

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What totals over the rows depend on, besides what is learned of them."""


class InMemoryData(TrainingData):
    """Rows in memory: a frame, an array or a list."""

    def __init__(self, estimator: BaseEstimator, given: Given, known: Schema | None = None) -> None:
        self._estimator, self._known = estimator, known
        self._given = split_frame(given)
        self._columns, self._schema = read_columns(estimator, self._given.X, fitting=known is None)
        self.names = self._schema.names

    def read(self, family: Family, classes: np.ndarray | None = None) -> TrainingRows:
        """See `TrainingData`."""
        columns, n_rows = self._columns, len(self._columns)
        weight = read_weights(self._given.sample_weight, n_rows)
        target = read_target_of(family, self._estimator, self._given.target, n_rows)
        exposure = read_exposure(self._given.exposure, n_rows)
        schema = self._schema
        if not weight.all():
            kept = weight > 0.0
            require_enough(int(kept.sum()))
            columns, target = np.asfortranarray(columns[kept]), target[kept]
            weight, exposure = weight[kept], exposure[kept]
            schema = schema if self._known else schema.narrowed(columns)
        if self._known is not None:
            require_known_values(columns, schema)
        require_same_classes(classes, target)
        statistics = family.statistics(target, weight, exposure)
        encoding = family.encoding(statistics)
        self._table = Table(columns, *encoding.response(target, weight, exposure))
        return TrainingRows(partial(ArrayTables, self._table), encoding, schema, ranged=True)

    def about(self) -> dict[str, Any]:
        """A digest of the rows."""
        return {"X": fingerprint(self._table)}


class ChunkedData(TrainingData):
    """Rows that a source reads; what is no feature is named."""

    def __init__(
        self,
        estimator: BaseEstimator,
        given: Given,
        source: Source,
        known: Schema | None = None,
    ) -> None:
        self._source, self._known, self._given = source, known, given
        self._roles = self._find_roles()
        self.names, self.dialect = self._roles.features, source.dialect
        self._categorical = estimator.categorical_features
        if known is not None:
            coded = (column for column in known.columns if column.kind == CATEGORICAL)
            self._categorical = [column.name for column in coded]
            return
        estimator.n_features_in_ = len(self.names)
        estimator.feature_names_in_ = np.array(self.names, dtype=object)

    def _find_roles(self) -> Roles:
        """The roles of the columns; of a model that is fitted on, its features."""
        source, given = self._source, self._given
        roles = read_roles(source, given.target, given.sample_weight, given.exposure, given.drop)
        if self._known is None:
            return roles
        lost = [name for name in self._known.names if name not in roles.features]
        if lost:
            raise ValueError(
                f"{source.title} lacks the column {lost[0]!r}, with which the model was fitted: pass the "
                "training data"
            )
        return replace(roles, features=self._known.names)

    def read(self, family: Family, classes: np.ndarray | None = None) -> TrainingRows:
        """See `TrainingData`."""
        seen = survey(self._source, self._roles, self._categorical, family)
        require_same_classes(classes, seen.encoding.classes)
        if self._known is not None:
            seen = replace(seen, schema=self._known)
        tables = partial(LoggedTables, self._source.encoded(self._roles.columns, seen.encoder))
        return TrainingRows(tables, seen.encoding, seen.schema, ranged=self._known is not None)

    def about(self) -> dict[str, Any]:
        """What the source knows of its rows, and what they are read as."""
        given = {name: getattr(self._given, name) for name in Given.__dataclass_fields__}
        given["X"] = self._source.fingerprint
        return {**given, "categorical_features": self._categorical}


def fingerprint(table: Table) -> str:
    """A digest of rows in memory."""
    digest = hashlib.sha256()
    for array in (table.columns, table.response, table.weight):
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _with_ranges(schema: Schema, summary: DataSummary) -> Schema:
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


def split_frame(given: Given) -> Given:
    """A frame in memory that holds its target, and maybe more, as features and values.

    Columns that are named are taken out of the frame; values that are given stay as they are.
    """
    values = given.roles
    named = [argument for argument, value in values.items() if isinstance(value, str)]
    if not named and not given.drop:
        return given
    frame: Any = as_frame(given.X)
    if frame is None:
        word = (named or ["drop"])[0]
        raise ValueError(f"{word} names columns, and X is an array without names: pass a frame")
    features = find_features(values, given.drop, frame.columns, "X")
    values |= {argument: frame[values[argument]].to_numpy() for argument in named}
    return Given(frame.select(list(features)).to_native(), **values)


def require_known_values(columns: np.ndarray, schema: Schema) -> None:
    """Refuse rows as training data that have what the training data did not.

    Raises
    ------
    ValueError
        It names the column.
    """
    for column, values in zip(schema.columns, columns.T, strict=True):
        n_missing = 0 if column.missing else int(np.isnan(values).sum())
        n_unseen = int((values == UNSEEN).sum()) if column.kind == CATEGORICAL else 0
        if n_missing or n_unseen:
            what = f"{n_missing} missing value" if n_missing else f"{n_unseen} value"
            plural = "s" if n_missing + n_unseen > 1 else ""
            before = "and had none" if n_missing else "of levels that it did not have"
            raise ValueError(
                f"column {column.name!r} has {what}{plural}, {before} when the model was fitted: pass "
                "the training data, or fit again"
            )


def require_known_gaps(gaps: Sequence[int], schema: Schema) -> None:
    """Refuse columns with missing values as training data that had none."""
    for column in (schema.columns[k] for k in gaps):
        if not column.missing:
            raise ValueError(
                f"column {column.name!r} has missing values, and had none when the model was fitted: "
                "pass the training data, or fit again"
            )


def require_same_classes(known: np.ndarray | None, labels: np.ndarray) -> None:
    """Refuse training data with other labels than those of the model's classes, or without some of them."""
    if known is None:
        return
    numbers = number_labels(labels, known)
    absent = np.setdiff1d(np.arange(len(known)), numbers)
    if len(absent):
        raise ValueError(
            f"y has no row of the class {known.tolist()[absent[0]]!r} with a positive weight, and had when "
            "the model was fitted: pass the training data, or fit again"
        )
