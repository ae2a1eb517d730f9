"""A model's values compared: which terms of a column count, and what their sum is here beyond there.

A pair adds what depends on another column. Where that column is to be anywhere, as often as the training
data is there, the pair's table is averaged along it: a mean of rows of a table that is linear in the
coordinates is linear in them, so that mean and band are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from lanam.core.arrays import Array
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel, FittedTerm
from lanam.core.terms.knots import Categories, Grid, Knots, Levels
from lanam.data import CATEGORICAL, find_column, is_missing
from lanam.explain.bands import around, ascending, half_width, uncertain
from lanam.explain.differences import Contrast, Difference
from lanam.explain.draws import draw_count
from lanam.explain.points import Source, deviations, read_values
from lanam.explain.ranges import is_beyond, is_inside
from lanam.explain.tables import axis_values, describe_terms
from lanam.explain.values import Values, scalar

#: What to give for the mean over the training data's values of the other columns.
AVERAGE = "average"


@dataclass(frozen=True)
class _Comparison:
    """A column whose values are compared: its terms that count, a row of the others, and both in words.

    In ``model`` pairs may have become terms of the column alone.
    """

    feature: int
    model: FittedModel
    terms: list[int]
    row: Array
    facts: dict[str, Any]


def difference(
    source: Source,
    scale: Mapping[str, Any],
    column: str | int,
    values: tuple[object, object],
    coverage: float,
    given: Mapping[str | int, object] | str | None,
) -> Difference:
    """How much more the first of two values adds than the second; ``scale`` is family and classes."""
    compared = _compare(source, column, given)
    codes = _read(source, compared.feature, values)
    _require_told_apart(source.model, compared.feature, codes, values)
    rows = np.stack([compared.row, compared.row])
    rows[:, compared.feature] = codes
    means, variances = scoring.sum_moments(compared.model, compared.terms, rows[:1], rows[1:])
    mean, std = means[0], deviations(variances)[0]
    lower, upper = around(mean, std, half_width(coverage))
    sure = np.divide(mean, std, out=np.where(mean > 0.0, np.inf, -np.inf), where=std > 0.0)
    first, second = (None if is_missing(value) else value for value in values)
    return Difference(
        **compared.facts,
        **scale,
        beyond=_beyond(source, compared, values),
        first=first,
        second=second,
        mean=scalar(mean),
        std=scalar(std),
        coverage=coverage,
        lower=scalar(lower),
        upper=scalar(upper),
        probability=scalar(ndtr(sure)),
    )


def contrast(
    source: Source,
    scale: Mapping[str, Any],
    column: str | int,
    reference: object,
    given: Mapping[str | int, object] | str | None,
    rng: np.random.Generator,
) -> Contrast:
    """How much more all values of a column add than ``reference``; ``rng`` draws how far all may be off."""
    compared = _compare(source, column, given)
    known = source.schema.columns[compared.feature]
    code = _read(source, compared.feature, [reference])
    values = _values(source, compared)
    n_values = len(values)
    missing = [None] if known.missing and n_values else []
    codes = [read_values(known, values), read_values(known, missing), code]
    rows = np.tile(compared.row, (n_values + len(missing) + 1, 1))
    rows[:, compared.feature] = np.concatenate(codes)
    mean, variance = scoring.sum_moments(compared.model, compared.terms, rows[:-1], rows[-1:])
    std = deviations(variance)
    inside = np.concatenate([is_inside(values, known), np.ones(len(missing), dtype=bool)])
    return Contrast(
        **compared.facts,
        **scale,
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
    """Draws of how far the differences of the rows to the last one are from their means, at the most."""
    if not (compared.terms and inside.any()):
        return np.empty((0, *mean.shape[1:]))
    n_draws = draw_count(mean.size)
    draws = scoring.sample_links(compared.model, rows, n_draws, rng, compared.terms)
    apart = np.abs(draws[:, :-1] - draws[:, -1:] - mean)
    counts = uncertain(std) & inside.reshape(-1, *[1] * (std.ndim - 1))
    standard = np.divide(apart, std, out=np.zeros_like(apart), where=counts)
    return ascending(standard.max(axis=1))


def _compare(
    source: Source, column: str | int, given: Mapping[str | int, object] | str | None
) -> _Comparison:
    """What is compared if this is given of the other columns."""
    model, schema = source.model, source.schema
    if isinstance(given, str) and given != AVERAGE:
        raise ValueError(
            f"given={given!r} is not known: pass {AVERAGE!r}, or values of the other columns by name"
        )
    feature = find_column(column, schema.names, "the difference")
    alone: list[int] = []
    pairs: list[int] = []
    for k, term in enumerate(model.terms):
        if term.active and feature in term.features:
            (pairs if term.joint else alone).append(k)
    partners = {other for k in pairs for other in _partners(model.terms[k], feature)}
    row = np.zeros(schema.n_columns)
    places: dict[str, object] = {}
    if isinstance(given, str):
        averaged = {k: _averaged(model.terms[k], feature) for k in pairs}
        terms = tuple(averaged.get(k, term) for k, term in enumerate(model.terms))
        model = replace(model, terms=terms)
    elif given is not None:
        held = {find_column(name, schema.names, "given"): value for name, value in given.items()}
        _require_partners(source, feature, partners, held)
        for partner in sorted(partners):
            row[partner] = _read(source, partner, [held[partner]])[0]
            places[schema.names[partner]] = held[partner]
    names = [term.name for term in describe_terms(source.model, schema)]
    counted, left = (alone, pairs) if given is None else (alone + pairs, [])
    own = [term for term in model.terms if term.features == (feature,)]
    facts = {
        "column": schema.names[feature],
        "terms": tuple(names[k] for k in counted),
        "left_out": tuple(names[k] for k in left),
        "left_out_columns": tuple(
            dict.fromkeys(
                schema.names[other] for k in left for other in _partners(model.terms[k], feature)
            )
        ),
        "given": places,
        "averaged": tuple(schema.names[k] for k in sorted(partners) if isinstance(given, str)),
        "status": own[0].status,
    }
    return _Comparison(feature, model, counted, row, facts)


def _averaged(term: FittedTerm, feature: int) -> FittedTerm:
    """A joint term as one of one of its columns: its mean over where the training data has the others.

    Rows read a table by weights of its entries, so that the mean over rows is that of the entries, by
    the share of the data that each of them has.
    """
    grid = term.entries
    assert isinstance(grid, Grid)
    place = term.features.index(feature)

    def by_entry(table: Array) -> Array:
        """A table by the entries of the column, and those of all others together."""
        own = np.moveaxis(table.reshape(*grid.shape, *table.shape[1:]), place, 0)
        return own.reshape(len(grid.axes[place]), -1, *table.shape[1:])

    share = by_entry(term.data_mass)

    def mean_of(table: Array) -> Array:
        return np.asarray(np.tensordot(by_entry(table), share.sum(axis=0), axes=(1, 0)))

    return replace(
        term,
        features=(feature,),
        entries=grid.axes[place],
        data_mass=share.sum(axis=1),
        mean=mean_of(term.mean),
        table=mean_of(term.table),
        edited=None,
    )


def _beyond(
    source: Source, compared: _Comparison, values: Sequence[object]
) -> tuple[tuple[str, float, float, float], ...]:
    """Which of the values, and of those of the other columns, lie beyond the training data."""
    schema = source.schema
    own = schema.columns[compared.feature]
    given = [
        (schema.columns[schema.names.index(name)], value)
        for name, value in compared.facts["given"].items()
    ]
    places = [*((own, value) for value in values), *given]
    return tuple(
        (column.name, float(value), column.lowest, column.highest)
        for column, value in places
        if column.kind != CATEGORICAL
        and not is_missing(value)
        and is_beyond(np.array([float(value)]), column)[0]
    )


def _partners(term: FittedTerm, feature: int) -> list[int]:
    """The other columns of a joint term."""
    return [other for other in term.features if other != feature]


def _require_partners(
    source: Source, feature: int, partners: set[int], held: Mapping[int, object]
) -> None:
    names = source.schema.names
    if feature in held:
        raise ValueError(
            f"given holds the column {names[feature]!r} itself, whose values are compared: leave it out"
        )
    lost = [names[partner] for partner in sorted(partners) if partner not in held]
    if lost:
        raise ValueError(
            f"{names[feature]!r} interacts with {' and '.join(map(repr, lost))}, and given does not say "
            f"where: add a value for each, pass given={AVERAGE!r} for their mean over the training data, "
            "or leave given out to compare without pairs"
        )


def _read(source: Source, feature: int, values: Sequence[object]) -> Array:
    """A column's values as the model reads them; no missing ones where the data had none."""
    column = source.schema.columns[feature]
    if not column.missing and any(map(is_missing, values)):
        raise ValueError(
            f"column {column.name!r} had no missing values in the training data, so that the model "
            "knows no effect of one: give a value"
        )
    return read_values(column, values)


def _require_told_apart(
    model: FittedModel, feature: int, codes: Array, values: tuple[Any, Any]
) -> None:
    """Refuse two levels that both read what is known of new ones: they are not the same level."""
    for term in model.terms:
        entries = term.entries
        if term.features == (feature,) and term.active and isinstance(entries, Categories):
            places = entries.locate(codes).index
            if (places == entries.n_own + 1).all() and values[0] != values[1]:
                raise ValueError(
                    f"{values[0]!r} and {values[1]!r} are both new or too rare to be told apart: all "
                    "such levels have one effect, and nothing is known of their difference"
                )


def _values(source: Source, compared: _Comparison) -> Values:
    """Where a column's effect is tabulated: its levels, or the knots of all of its terms."""
    model, feature = source.model, compared.feature
    column = source.schema.columns[feature]
    chosen = [model.terms[k] for k in compared.terms]
    own = [term.entries for term in model.terms if term.features == (feature,)]
    axes = [axis for axis in own if isinstance(axis, Knots | Levels | Categories)]
    if not axes:
        return np.empty(0, dtype=object if column.kind == CATEGORICAL else np.float64)
    if column.kind == CATEGORICAL:
        return axis_values(axes[0], column)
    # Between single values their effects are those of values never seen, which nobody asked for.
    for term in chosen:
        if isinstance(term.entries, Levels) and term.entries.exact:
            return axis_values(term.entries, column)
        if isinstance(term.entries, Grid):
            axes.append(term.entries.axes[term.features.index(feature)])
    return np.unique(np.concatenate([axis_values(axis, column) for axis in axes]))
