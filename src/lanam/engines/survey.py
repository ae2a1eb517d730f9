"""What must be known of a table in chunks before its rows can be arrays.

Kinds of columns come from dtypes. Levels, classes and the mean exposure are in the rows: one pass over
the columns that have them. A table of numbers with a Gaussian target needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from lanam.data import CATEGORICAL, NUMERIC, Column, Schema, as_frame, read_categorical
from lanam.data.cells import EMPTY, NUMBERS, STRING, Cells, read_cells
from lanam.data.encoding import factorise, plain_levels
from lanam.data.errors import Place, free_text, mixed
from lanam.data.schema import is_free_text, kind_of
from lanam.engines.encoder import Encoder
from lanam.engines.folding import fold
from lanam.engines.interface import Chunk, Source, in_chunk
from lanam.engines.roles import Roles, read_roles, read_rows
from lanam.families import GAUSSIAN, Encoding, Family, Statistics
from lanam.inputs import require_enough

__all__ = ["Encoder", "Roles", "Surveyed", "read_roles", "survey"]

#: So many different values are not gathered if they are free text so far: memory is not for that.
_MANY_LEVELS = 1 << 20


@dataclass(frozen=True)
class Surveyed:
    """What was learned of a table in chunks.

    Attributes
    ----------
    roles
        What the columns are for.
    schema
        What the features are, without ranges: the rows' summaries tell these.
    encoding
        How targets become what the core fits.
    """

    roles: Roles
    schema: Schema
    encoding: Encoding

    @property
    def encoder(self) -> Encoder:
        """What makes arrays of chunks."""
        return Encoder(self.roles, self.schema, self.encoding)


def survey(
    source: Source, roles: Roles, categorical: Any = "auto", family: Family = GAUSSIAN
) -> Surveyed:
    """Learn what must be known before rows can be arrays.

    Parameters
    ----------
    source
        The table.
    roles
        What its columns are for.
    categorical
        The argument ``categorical_features``: names or indices of features.
    family
        Of the target.

    Raises
    ------
    ValueError, TypeError
        For what a fit in memory refuses, with the place.
    """
    empty: Any = as_frame(source.empty())
    declared = read_categorical(categorical, roles.features)
    numbers = [name for index, name in enumerate(roles.features) if index not in declared]
    source.require_numeric(numbers if family.link.classes else [*numbers, roles.target])
    dtypes = [read_cells(empty.select(name), 0, name) for name in roles.features]
    looked_at = {
        name: index in declared
        for index, name in enumerate(roles.features)
        if _needs_a_look(dtypes[index], index in declared)
    }
    look = _Look(roles, family, looked_at, source.title)
    merge = partial(_merge, source.title)
    found = source.reduce(look.columns, look, merge) if look.columns else _Found()
    backend = empty.implementation.name.lower()
    kinds = [
        _learn(name, dtype.holds, found.columns[name], source.title)
        if name in looked_at
        else Column(name, NUMERIC, np.nan, np.nan)
        for name, dtype in zip(roles.features, dtypes, strict=True)
    ]
    schema = Schema(tuple(kinds), backend)
    if not family.needs_statistics:
        return Surveyed(roles, schema, family.encoding(found.statistics))
    require_enough(found.statistics.n_rows)
    statistics = found.statistics
    if empty[roles.target].dtype.is_integer() and len(statistics.classes):
        # A CSV file's are floats until all are read.
        statistics = replace(statistics, classes=statistics.classes.astype(np.int64))
    return Surveyed(roles, schema, family.encoding(statistics))


def _needs_a_look(cells: Cells, declared: bool) -> bool:
    """Whether a column of this dtype has levels, or might be anything."""
    return kind_of(cells, declared=declared) == CATEGORICAL or cells.holds == EMPTY


@dataclass(frozen=True)
class _Values:
    """What a column holds.

    Attributes
    ----------
    place
        Where it stands, for errors.
    examples
        A value of each kind that it has.
    n_values
        How many values are not missing.
    certain
        Whether it is of categories by its dtype or by what the user says.
    levels
        Its different values, if it is categorical.
    order
        The dtype's order of them; None where some chunk has values and no order.
    """

    place: Place
    examples: Mapping[str, Any]
    n_values: int
    certain: bool
    levels: frozenset[Any]
    order: tuple[Any, ...] | None


@dataclass(frozen=True)
class _Found:
    """What chunks hold: columns, and statistics of the targets of rows with a positive weight."""

    columns: Mapping[str, _Values] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=Statistics)


@dataclass(frozen=True)
class _Look:
    """What goes over chunks: which columns it looks at, and whether they are categories by declaration."""

    roles: Roles
    family: Family
    declared: Mapping[str, bool]
    title: str

    @property
    def columns(self) -> tuple[str, ...]:
        """What must be read."""
        if not self.family.needs_statistics:
            return tuple(self.declared)
        roles = self.roles if self.family.takes_exposure else replace(self.roles, exposure=None)
        return (*self.declared, *roles.others)

    def __call__(self, chunks: Iterable[Chunk]) -> _Found:
        return reduce(partial(_merge, self.title), map(self._look, chunks))

    def _look(self, chunk: Chunk) -> _Found:
        frame: Any = as_frame(chunk.frame)
        columns = {}
        for name, declared in self.declared.items():
            with in_chunk(chunk):
                columns[name] = _read_values(frame[name], name, declared)
        if not self.family.needs_statistics:
            return _Found(columns)
        rows = read_rows(chunk, self.roles, self.family)
        target = rows.labels[np.unique(rows.target)] if self.family.link.classes else rows.target
        with in_chunk(chunk, self.roles.target):
            return _Found(columns, self.family.statistics(target, rows.weight, rows.exposure))


def _read_values(series: Any, name: str, declared: bool) -> _Values:
    distinct, positions = fold(series)
    cells = read_cells(distinct.to_frame(), 0, name)
    n_values = len(cells.values) if positions is None else int((positions >= 0).sum())
    categorical = kind_of(cells, declared=declared) == CATEGORICAL
    levels = factorise(cells)[1] if categorical else ()
    examples = {cells.holds: cells.values[:1].tolist()[0]} if cells.values.size else {}
    order = cells.order if cells.categorical else None if n_values else ()
    certain = declared or cells.categorical
    return _Values(cells.place, examples, n_values, certain, frozenset(levels), order)


def _merge(title: str, first: _Found, second: _Found) -> _Found:
    columns = {
        name: _merge_values(title, values, second.columns[name])
        for name, values in first.columns.items()
    }
    return _Found(columns, first.statistics.merged(second.statistics))


def _merge_values(title: str, first: _Values, second: _Values) -> _Values:
    order = first.order if first.order == second.order else None
    if first.order is not None and second.order is not None and order is None:
        order = tuple(dict.fromkeys(first.order + second.order))
    merged = _Values(
        first.place,
        {**second.examples, **first.examples},
        first.n_values + second.n_values,
        first.certain or second.certain,
        first.levels | second.levels,
        order,
    )
    if len(merged.levels) > _MANY_LEVELS:
        _refuse_free_text(merged, title)
    return merged


def _learn(name: str, dtype: str, values: _Values, title: str) -> Column:
    """What a column is by all of its values, or by its dtype where it has none."""
    holds = set(values.examples)
    if STRING in holds and len(holds) > 1:
        other = next(example for what, example in values.examples.items() if what != STRING)
        raise mixed(values.place, other, values.examples[STRING]).located(f"in {title}: ")
    # Truth values among numbers are numbers.
    what = NUMBERS if NUMBERS in holds else holds.pop() if holds else dtype
    cells = Cells(values.place, what, 0, np.empty(0))
    kind = kind_of(cells, declared=values.certain)
    if kind == NUMERIC:
        return Column(name, kind, np.nan, np.nan)
    _refuse_free_text(values, title)
    in_order = (
        [level for level in values.order if level in values.levels]
        if values.order
        else sorted(values.levels)
    )
    return Column(name, kind, np.nan, np.nan, plain_levels(in_order))


def _refuse_free_text(values: _Values, title: str) -> None:
    if values.certain or STRING not in values.examples:
        return
    if is_free_text(list(values.levels), values.n_values):
        example = min(values.levels)
        error = free_text(values.place, len(values.levels), values.n_values, example)
        raise error.located(f"in {title}: ")
