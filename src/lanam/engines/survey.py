"""Tables in chunks to arrays: a survey of what must be known of all rows first, then an encoder of chunks.

Kinds of columns come from dtypes. Categories, classes and the mean exposure are in the rows: one pass over
the columns that have them. A numeric table with a Gaussian target needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from lanam.core.arrays import Array
from lanam.core.rows.tables import EncodedRows
from lanam.data import (
    CATEGORICAL,
    NUMERIC,
    Column,
    Schema,
    as_frame,
    encode_table,
    read_categorical,
)
from lanam.data.cells import EMPTY, NUMBERS, STRING, Cells, Level, read_cells
from lanam.data.columns import read_orders
from lanam.data.encoding import factorise, plain_levels, require_exact, require_ordered
from lanam.data.errors import ColumnRef, mixed
from lanam.data.recognition import recognise
from lanam.data.schema import kind_of
from lanam.data.strings import require_categories
from lanam.engines.dictionaries import dictionary_encode
from lanam.engines.interface import Chunk, Source, in_chunk
from lanam.engines.roles import Roles, Targets, read_targets
from lanam.families import GAUSSIAN, Encoding, Family, Statistics
from lanam.families.base import Encoded
from lanam.families.labels import number_labels
from lanam.inputs import read_groups, require_enough

#: Beyond this many distinct values identifiers and free text are rejected before the whole table is read.
_MANY_LEVELS = 1 << 20


@dataclass(frozen=True)
class Encoder:
    """Encodes chunks as the core's tables, given the columns' roles, the schema and the target's encoding.

    The schema need not have ranges.
    """

    roles: Roles
    schema: Schema
    encoding: Encoding

    def __call__(self, chunk: Chunk) -> EncodedRows:
        """The rows of a chunk with a positive weight; errors are those of a fit in memory, located."""
        if len(chunk.frame) == 0:
            nothing = np.empty(0)
            return EncodedRows(np.empty((0, self.schema.n_columns)), nothing, nothing, chunk.number)
        targets = read_targets(chunk, self.roles, self.encoding.family)
        with in_chunk(chunk):
            columns = _encode(as_frame(chunk.frame), self.schema)
        if not isinstance(targets.weighted, slice):
            columns = np.asfortranarray(columns[targets.weighted])
        with in_chunk(chunk, self.roles.target):
            rows = self._response(targets).with_columns(columns, chunk.number)
        if self.roles.groups is None:
            return rows
        with in_chunk(chunk, self.roles.groups):
            frame: Any = as_frame(chunk.frame)
            group = read_groups(frame[self.roles.groups], len(frame))
        return replace(rows, group=group[targets.weighted])

    def _response(self, targets: Targets) -> Encoded:
        values, labels = targets.values, targets.labels
        if not len(labels):
            given = targets.weight, targets.exposure, targets.offset
            return self.encoding.response(values, *given)
        # Encoded once per label instead of once per row; labels without rows may be no classes.
        present = np.flatnonzero(np.bincount(values, minlength=len(labels)))
        codes = np.zeros(len(labels))
        codes[present] = number_labels(labels[present], self.encoding.classes)
        return Encoded(codes[values], targets.weight, targets.offset)


def _encode(frame: Any, schema: Schema) -> Array:
    """The features' numbers and codes (n, D)."""
    names = [column.name for column in schema.columns if column.kind == NUMERIC]
    numeric = [_with_range(column) for column in schema.columns if column.kind == NUMERIC]
    for index, name in enumerate(names):
        if frame[name].dtype.is_integer():
            require_exact(read_cells(frame.select(names), index, name))
    numbers, _ = encode_table(frame.select(names), Schema(tuple(numeric)))
    if len(names) == schema.n_columns:
        return numbers
    columns = np.empty((len(frame), schema.n_columns), order="F")
    for index, column in enumerate(schema.columns):
        columns[:, index] = (
            numbers[:, names.index(column.name)]
            if column.kind == NUMERIC
            else _encode_levels(frame[column.name], column)
        )
    return columns


def _with_range(column: Column) -> Column:
    """A numeric column with a range, in which booleans are allowed, where it is not known yet."""
    return replace(column, lowest=0.0, highest=1.0) if np.isnan(column.lowest) else column


def _encode_levels(series: Any, column: Column) -> Array:
    distinct, positions = dictionary_encode(series)
    columns, unseen = encode_table(distinct.to_frame(), Schema((column,)))
    examples = [value for values in unseen for value in values.examples]
    if examples:
        raise ValueError(
            f"column {column.name!r} has the category {examples[0]!r}, which it did not have before: did "
            "the data change? Pass the training data, or fit again"
        )
    codes = columns[:, 0]
    return codes if positions is None else np.append(codes, np.nan)[positions]


def survey(
    source: Source,
    roles: Roles,
    categorical: Any = "auto",
    family: Family = GAUSSIAN,
    ordered: Any = None,
) -> Encoder:
    """Learn what encoding the rows of a table takes; errors are those of a fit in memory, with the place.

    ``categorical`` and ``ordered`` are the arguments ``categorical_features`` and ``ordered``, which name
    features.
    """
    empty: Any = as_frame(source.empty())
    orders = read_orders(ordered, roles.features)
    declared = read_categorical(categorical, roles.features) | orders.keys()
    numbers = [name for index, name in enumerate(roles.features) if index not in declared]
    source.require_numeric(numbers if family.link.classes else [*numbers, roles.target])
    dtypes = [read_cells(empty.select(name), 0, name) for name in roles.features]
    surveyed = {
        name: index in declared
        for index, name in enumerate(roles.features)
        if _needs_survey(dtypes[index], index in declared)
    }
    columns = tuple(surveyed)
    needed = roles
    if family.needs_statistics:
        needed = replace(roles, offset=None)
        if not (family.takes_exposure or family.takes_trials):
            needed = replace(needed, exposure=None, trials=None)
        columns += needed.others
    result = _Survey()
    if columns:
        job = partial(_survey_chunks, needed, family, surveyed, source.title)
        result = source.reduce(columns, job, partial(_merge, source.title))
    kinds = [
        _learn(name, dtype.holds, result.columns[name], source.title, orders.get(index))
        if name in surveyed
        else Column(name, NUMERIC, np.nan, np.nan)
        for index, (name, dtype) in enumerate(zip(roles.features, dtypes, strict=True))
    ]
    schema = Schema(tuple(kinds), empty.implementation.name.lower())
    statistics = result.statistics
    if family.needs_statistics:
        require_enough(statistics.n_rows)
        if empty[roles.target].dtype.is_integer() and len(statistics.classes):
            # Integer labels of a CSV file are floats until all are read.
            statistics = replace(statistics, classes=statistics.classes.astype(np.int64))
    return Encoder(roles, schema, family.encoding(statistics))


def _needs_survey(cells: Cells, declared: bool) -> bool:
    """Whether a column of this dtype has categories, or its dtype does not tell its kind."""
    return kind_of(cells, declared=declared) == CATEGORICAL or cells.holds == EMPTY


@dataclass(frozen=True)
class _Values:
    """The values of a column."""

    place: ColumnRef
    #: one value per kind
    examples: Mapping[str, Any]
    #: how many are not missing
    n_values: int
    #: whether it is declared categorical, and whether its dtype is
    declared: bool
    categorical: bool
    #: distinct values, if it is categorical
    levels: frozenset[Any]
    #: the dtype's order of them; None where some chunk has values and no order
    order: tuple[Any, ...] | None


@dataclass(frozen=True)
class _Survey:
    """Values of columns, and statistics of the targets of rows with a positive weight."""

    columns: Mapping[str, _Values] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=Statistics)


def _survey_chunks(
    roles: Roles,
    family: Family,
    declared: Mapping[str, bool],
    title: str,
    chunks: Iterable[Chunk],
) -> _Survey:
    """The survey of chunks; ``declared`` has whether each of the columns is declared categorical."""
    surveys = (_survey_chunk(roles, family, declared, chunk) for chunk in chunks)
    return reduce(partial(_merge, title), surveys)


def _survey_chunk(
    roles: Roles, family: Family, declared: Mapping[str, bool], chunk: Chunk
) -> _Survey:
    frame: Any = as_frame(chunk.frame)
    with in_chunk(chunk):
        columns = {name: _read_values(frame[name], name, declared[name]) for name in declared}
    if not family.needs_statistics:
        return _Survey(columns)
    targets = read_targets(chunk, roles, family)
    values = targets.labels[np.unique(targets.values)] if family.link.classes else targets.values
    with in_chunk(chunk, roles.target):
        return _Survey(columns, family.statistics(values, targets.weight, targets.exposure))


def _read_values(series: Any, name: str, declared: bool) -> _Values:
    distinct, positions = dictionary_encode(series)
    cells = read_cells(distinct.to_frame(), 0, name)
    n_values = len(cells.values) if positions is None else int((positions >= 0).sum())
    categorical = kind_of(cells, declared=declared) == CATEGORICAL
    levels = factorise(cells)[1] if categorical else ()
    examples = {cells.holds: cells.values[:1].tolist()[0]} if cells.values.size else {}
    order = cells.order if cells.categorical else None if n_values else ()
    found = frozenset(levels)
    return _Values(cells.place, examples, n_values, declared, cells.categorical, found, order)


def _merge(title: str, first: _Survey, second: _Survey) -> _Survey:
    columns = {
        name: _merge_values(title, values, second.columns[name])
        for name, values in first.columns.items()
    }
    return _Survey(columns, first.statistics.merged(second.statistics))


def _merge_values(title: str, first: _Values, second: _Values) -> _Values:
    order = None
    if first.order is not None and second.order is not None:
        order = tuple(dict.fromkeys(first.order + second.order))
    merged = _Values(
        first.place,
        {**second.examples, **first.examples},
        first.n_values + second.n_values,
        first.declared,
        first.categorical or second.categorical,
        first.levels | second.levels,
        order,
    )
    if len(merged.levels) > _MANY_LEVELS and recognise(list(merged.levels), merged.n_values):
        _require_categories(merged, title)
    return merged


def _learn(
    name: str, dtype: str, values: _Values, title: str, order: tuple[Level, ...] | None
) -> Column:
    """The column by all of its values, or by its dtype where it has none; with its ``order`` if given."""
    holds = set(values.examples)
    if STRING in holds and len(holds) > 1:
        other = next(example for what, example in values.examples.items() if what != STRING)
        raise mixed(values.place, other, values.examples[STRING]).located(f"in {title}: ")
    # Booleans among numbers are numeric.
    what = NUMBERS if NUMBERS in holds else holds.pop() if holds else dtype
    cells = Cells(values.place, what, 0, np.empty(0))
    kind = kind_of(cells, declared=values.declared or values.categorical)
    if kind == NUMERIC:
        return Column(name, kind, np.nan, np.nan)
    if order is not None:
        require_ordered(values.place, plain_levels(sorted(values.levels)), order)
        return Column(name, kind, np.nan, np.nan, order)
    _require_categories(values, title)
    in_order = (
        [level for level in values.order if level in values.levels]
        if values.order
        else sorted(values.levels)
    )
    return Column(name, kind, np.nan, np.nan, plain_levels(in_order))


def _require_categories(values: _Values, title: str) -> None:
    """Refuse strings that are no categories, as in memory."""
    if not values.declared and STRING in values.examples:
        n_values = None if values.categorical else values.n_values
        require_categories(values.place, sorted(values.levels), n_values, f"in {title}: ")
