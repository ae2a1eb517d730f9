"""Terms evaluated and compared at any values of their columns, which needs the model.

Interactions depend on other columns. To average over these, an interaction's table is averaged over the
training data along their axes: the result is linear in the coordinates, so that mean and band are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from lanam.core.arrays import Array
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel, FittedTerm
from lanam.core.terms.knots import Categories, Grid, Knots, Levels
from lanam.data import (
    CATEGORICAL,
    Column,
    Schema,
    encode_table,
    find_column,
    is_missing,
    warn_unseen,
    warn_user,
)
from lanam.explain.bands import around, draw_count, half_width, sorted_deviations, uncertain
from lanam.explain.differences import Contrast, Difference
from lanam.explain.ranges import is_beyond, is_inside
from lanam.explain.tables import axis_values, describe_terms
from lanam.explain.values import Labels, Values, scalar
from lanam.families import find_family

#: Maximum number of categories that an error names.
_MAX_LEVELS = 10

#: The value of ``given`` for the mean over the other columns in the training data.
AVERAGE = "average"


@dataclass(frozen=True, repr=False)
class ModelSource:
    """The model of an explanation, with its schema and a classifier's labels."""

    model: FittedModel
    schema: Schema
    classes: Labels


def evaluate(source: ModelSource, index: int, values: Sequence[object]) -> tuple[Array, Array]:
    """Mean and standard deviation of a term at values of its columns, one list per column."""
    features = source.model.terms[index].features
    columns = [source.schema.columns[feature] for feature in features]
    codes = [read_values(column, cells) for column, cells in zip(columns, values, strict=True)]
    if len({len(cells) for cells in codes}) > 1:
        numbers = " and ".join(str(len(cells)) for cells in codes)
        raise ValueError(f"values and second_values must have equal lengths, and have {numbers}")
    rows = np.zeros((len(codes[0]), source.schema.n_columns))
    for column, feature, cells in zip(columns, features, codes, strict=True):
        rows[:, feature] = cells
        _warn_of_beyond(column, cells)
    mean, variance = scoring.sum_moments(source.model, [index], rows)
    return mean, deviations(variance)


def _warn_of_beyond(column: Column, codes: Array) -> None:
    """Warn of numbers beyond the range of the training data."""
    beyond = is_beyond(codes, column)
    if beyond.any():
        far = codes[beyond]
        farthest = far[np.argmax(np.abs(far - 0.5 * column.lowest - 0.5 * column.highest))]
        verb = "is" if beyond.sum() == 1 else "are"
        warn_user(
            UserWarning(
                f"column {column.name!r}: {beyond.sum()} of {len(codes)} values {verb} outside the range "
                f"of the training data ({column.lowest:.4g} to {column.highest:.4g}), the farthest "
                f"{farthest:.4g}: the function is extrapolated there"
            )
        )


def deviations(variance: Array) -> Array:
    """Standard deviations from variances (n,), or from the classes' covariances (n, C, C)."""
    diagonal = np.diagonal(variance, axis1=-2, axis2=-1) if variance.ndim > 1 else variance
    return np.sqrt(np.maximum(diagonal, 0.0))


def read_values(column: Column, values: object) -> Array:
    """Values of one column, encoded as numbers or codes; unseen categories cause a warning."""
    listed = [values] if isinstance(values, str) or not isinstance(values, Iterable) else values
    table = np.empty((len(cells := list(listed)), 1), dtype=object)
    table[:, 0] = cells
    try:
        codes, unseen = encode_table(table, Schema((column,)))
    except (TypeError, ValueError):
        raise _refusal(column, cells) from None
    warn_unseen(unseen)
    return codes[:, 0]


def _refusal(column: Column, values: list[object]) -> ValueError:
    """An error for the first value that is invalid for the column."""
    for value in values:
        cell = np.empty((1, 1), dtype=object)
        cell[0, 0] = value
        try:
            encode_table(cell, Schema((column,)))
        except (TypeError, ValueError):
            break
    if column.kind == CATEGORICAL:
        shown = ", ".join(map(repr, column.levels[:_MAX_LEVELS]))
        n_more = len(column.levels) - _MAX_LEVELS
        domain = f"its categories are {shown}" + (f" and {n_more} more" if n_more > 0 else "")
    else:
        domain = f"it is numeric, from {column.lowest:g} to {column.highest:g}"
    return ValueError(f"{value!r} cannot be a value of column {column.name!r}: {domain}")


@dataclass(frozen=True)
class _Comparison:
    """A column, its terms that enter, a row with the other columns' values, and fields of the result.

    In ``model`` averaged interactions are univariate terms of the column.
    """

    feature: int
    model: FittedModel
    terms: list[int]
    row: Array
    facts: dict[str, Any]


def difference(
    source: ModelSource,
    column: str | int,
    values: tuple[object, object],
    coverage: float,
    given: Mapping[str | int, object] | str | None,
) -> Difference:
    """The contribution of the first of two values minus that of the second."""
    compared = _compare(source, column, given)
    codes = _read(source, compared.feature, values)
    _require_distinct(source.model, compared.feature, codes, values)
    rows = np.stack([compared.row, compared.row])
    rows[:, compared.feature] = codes
    means, variances = scoring.sum_moments(compared.model, compared.terms, rows[:1], rows[1:])
    mean, std = means[0], deviations(variances)[0]
    lower, upper = around(mean, std, half_width(coverage))
    z = np.divide(mean, std, out=np.where(mean > 0.0, np.inf, -np.inf), where=std > 0.0)
    first, second = (None if is_missing(value) else value for value in values)
    return Difference(
        **compared.facts,
        beyond=_beyond(source, compared, values),
        first=first,
        second=second,
        mean=scalar(mean),
        std=scalar(std),
        coverage=coverage,
        lower=scalar(lower),
        upper=scalar(upper),
        probability=scalar(ndtr(z)),
    )


def contrast(
    source: ModelSource,
    column: str | int,
    reference: object,
    given: Mapping[str | int, object] | str | None,
    rng: np.random.Generator,
    beyond: bool,
) -> Contrast:
    """The contributions of all values of a column minus that of ``reference``; ``rng`` for the band.

    Values beyond the range of the training data are left out, unless ``beyond``.
    """
    compared = _compare(source, column, given)
    schema_column = source.schema.columns[compared.feature]
    code = _read(source, compared.feature, [reference])
    values = _values(source, compared)
    if not beyond:
        values = values[is_inside(values, schema_column)]
    n_values = len(values)
    missing = [None] if schema_column.missing and n_values else []
    codes = [read_values(schema_column, values), read_values(schema_column, missing), code]
    rows = np.tile(compared.row, (n_values + len(missing) + 1, 1))
    rows[:, compared.feature] = np.concatenate(codes)
    mean, variance = scoring.sum_moments(compared.model, compared.terms, rows[:-1], rows[-1:])
    std = deviations(variance)
    inside = np.concatenate([is_inside(values, schema_column), np.ones(len(missing), dtype=bool)])
    return Contrast(
        **compared.facts,
        beyond=_beyond(source, compared, [reference]),
        reference=None if is_missing(reference) else reference,
        values=values,
        mean=mean[:n_values],
        std=std[:n_values],
        inside=inside[:n_values],
        missing_mean=scalar(mean[-1]) if missing else None,
        missing_std=scalar(std[-1]) if missing else None,
        largest_deviations=_largest_deviations(compared, rows, mean, std, inside, rng),
        backend=source.schema.backend,
    )


def _largest_deviations(
    compared: _Comparison,
    rows: Array,
    mean: Array,
    std: Array,
    inside: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Array:
    """Draws of the largest deviation of the differences to the last row from their means."""
    if not (compared.terms and inside.any()):
        return np.empty((0, *mean.shape[1:]))
    n_draws = draw_count(mean.size)
    draws = scoring.sample_links(compared.model, rows, n_draws, rng, compared.terms)
    apart = np.abs(draws[:, :-1] - draws[:, -1:] - mean)
    counts = uncertain(std) & inside.reshape(-1, *[1] * (std.ndim - 1))
    standard = np.divide(apart, std, out=np.zeros_like(apart), where=counts)
    return sorted_deviations(standard.max(axis=1))


def _compare(
    source: ModelSource, column: str | int, given: Mapping[str | int, object] | str | None
) -> _Comparison:
    """The comparison for ``given`` values of the other columns."""
    model, schema = source.model, source.schema
    if isinstance(given, str) and given != AVERAGE:
        raise ValueError(
            f"given={given!r} is not valid: pass {AVERAGE!r}, or values of the other columns by name"
        )
    feature = find_column(column, schema.names, "the difference")
    active = [k for k, term in enumerate(model.terms) if term.active and feature in term.features]
    joint = [k for k in active if model.terms[k].joint]
    others = [other for k in joint for other in model.terms[k].features if other != feature]
    others = list(dict.fromkeys(others))
    if given is None:
        _require_pure(source, feature, joint)
    entering = [k for k in active if k not in joint] + ([] if given is None else joint)
    row = np.zeros(schema.n_columns)
    places: dict[str, object] = {}
    if isinstance(given, str):
        averaged = {k: _averaged(model.terms[k], feature) for k in joint}
        terms = tuple(averaged.get(k, term) for k, term in enumerate(model.terms))
        model = replace(model, terms=terms)
    elif given is not None:
        held = {find_column(name, schema.names, "given"): value for name, value in given.items()}
        _require_partners(source, feature, others, held)
        for partner in sorted(others):
            row[partner] = _read(source, partner, [held[partner]])[0]
            places[schema.names[partner]] = held[partner]
    names = [term.name for term in describe_terms(source.model, schema)]
    facts = {
        "column": schema.names[feature],
        "terms": tuple(names[k] for k in entering),
        "left_out": tuple(names[k] for k in joint if given is None),
        "left_out_columns": tuple(schema.names[k] for k in others if given is None),
        "given": places,
        "averaged": tuple(schema.names[k] for k in sorted(others) if isinstance(given, str)),
        "status": next(term.status for term in model.terms if term.features == (feature,)),
        "family": find_family(model.likelihood),
        "classes": source.classes,
    }
    return _Comparison(feature, model, entering, row, facts)


def _require_pure(source: ModelSource, feature: int, joint: Sequence[int]) -> None:
    """Without values of the other columns interactions average to zero, but a surface does not."""
    names = source.schema.names
    for term in (source.model.terms[k] for k in joint):
        if term.kind == "spatial":
            (other,) = (names[k] for k in term.features if k != feature)
            raise ValueError(
                f"{names[feature]!r} is a coordinate of a surface, whose differences depend on {other!r}: "
                f"pass given={{{other!r}: ...}}, or given={AVERAGE!r} to average over the training data"
            )


def _averaged(term: FittedTerm, feature: int) -> FittedTerm:
    """An interaction averaged over its other columns: a univariate term of one of them.

    The mean over rows is the mean over the table's entries, weighted by their fractions of the data.
    """
    grid = term.entries
    assert isinstance(grid, Grid)
    place = term.features.index(feature)

    def by_entry(table: Array) -> Array:
        """A table as (entries of the column, entries of all others)."""
        moved = np.moveaxis(table.reshape(*grid.shape, *table.shape[1:]), place, 0)
        return moved.reshape(len(grid.axes[place]), -1, *table.shape[1:])

    mass = by_entry(term.data_mass)

    def mean_of(table: Array) -> Array:
        return np.asarray(np.tensordot(by_entry(table), mass.sum(axis=0), axes=(1, 0)))

    return replace(
        term,
        features=(feature,),
        entries=grid.axes[place],
        data_mass=mass.sum(axis=1),
        mean=mean_of(term.mean),
        table=mean_of(term.table),
        edited=None,
    )


def _beyond(
    source: ModelSource, compared: _Comparison, values: Sequence[object]
) -> tuple[tuple[str, float, float, float], ...]:
    """The values, also of the other columns, that lie beyond the range of the training data."""
    columns = {column.name: column for column in source.schema.columns}
    compared_name = compared.facts["column"]
    places = [*((compared_name, value) for value in values), *compared.facts["given"].items()]
    return tuple(
        (name, float(value), columns[name].lowest, columns[name].highest)
        for name, value in places
        if (column := columns[name]).kind != CATEGORICAL
        and not is_missing(value)
        and is_beyond(np.array([float(value)]), column)[0]
    )


def _require_partners(
    source: ModelSource, feature: int, partners: Sequence[int], held: Mapping[int, object]
) -> None:
    names = source.schema.names
    if feature in held:
        raise ValueError(
            f"given holds the column {names[feature]!r} itself, whose values are compared: leave it out"
        )
    lost = [names[partner] for partner in sorted(partners) if partner not in held]
    if lost:
        raise ValueError(
            f"{names[feature]!r} interacts with {' and '.join(map(repr, lost))}, which given does not "
            f"contain: add a value for each, pass given={AVERAGE!r} to average over the training data, "
            "or leave given out to compare without interactions"
        )


def _read(source: ModelSource, feature: int, values: Sequence[object]) -> Array:
    """A column's values, encoded; an error for missing ones if the training data had none."""
    column = source.schema.columns[feature]
    if not column.missing and any(map(is_missing, values)):
        raise ValueError(
            f"column {column.name!r} had no missing values in the training data, so that their effect "
            "is unknown: pass a value"
        )
    return read_values(column, values)


def _require_distinct(
    model: FittedModel, feature: int, codes: Array, values: tuple[Any, Any]
) -> None:
    """Refuse two different categories that share the entry of unseen ones."""
    for term in model.terms:
        entries = term.entries
        if term.features == (feature,) and term.active and isinstance(entries, Categories):
            places = entries.locate(codes).index
            if (places == entries.n_own + 1).all() and values[0] != values[1]:
                raise ValueError(
                    f"{values[0]!r} and {values[1]!r} are both unseen or too rare: such categories share "
                    "one effect, and their difference is unknown"
                )


def _values(source: ModelSource, compared: _Comparison) -> Values:
    """The points of a column's tables: its categories, or the knots of all of its terms."""
    model, feature = source.model, compared.feature
    column = source.schema.columns[feature]
    chosen = [model.terms[k] for k in compared.terms]
    main_effects = [term.entries for term in model.terms if term.features == (feature,)]
    axes = [axis for axis in main_effects if isinstance(axis, Knots | Levels | Categories)]
    if not axes:
        return np.empty(0, dtype=object if column.kind == CATEGORICAL else np.float64)
    if column.kind == CATEGORICAL:
        return axis_values(axes[0], column)
    # Between single values the per-value effects are those of unseen values.
    for term in chosen:
        if isinstance(term.entries, Levels) and term.entries.exact:
            return axis_values(term.entries, column)
        if isinstance(term.entries, Grid):
            axes.append(term.entries.axes[term.features.index(feature)])
    return np.unique(np.concatenate([axis_values(axis, column) for axis in axes]))
