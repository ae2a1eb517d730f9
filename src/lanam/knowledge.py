"""What users know of columns: parameters as one frozen value for the core (``core/terms/knowledge.py``).

Parameters name columns, so they are read once the columns are known, and validated against the schema once
the kinds and ranges of the columns are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lanam.constraints import read_constraints, require_linearised, require_order
from lanam.core.fit.solvers import has_networks
from lanam.core.inference.options import Options
from lanam.core.terms.knowledge import Knowledge
from lanam.data import CATEGORICAL, NUMERIC, Schema, find_column
from lanam.data.columns import (
    named_interactions,
    named_twice,
    read_by_column,
    read_columns_of,
    read_orders,
    read_pairs_of,
    require_kind,
)
from lanam.errors import InputError
from lanam.parameters import is_number

#: A range may exceed the period by rounding.
_ROUNDING = 1e-9

#: What an argument makes of a column, for messages.
_WHAT = {
    "shape_cst": "a convex or concave shape",
    "cyclic": "a period",
    "linear": "a straight line",
    "ordered": "an order",
    "by": "a curve by group",
    "random_slopes": "a line by group",
    "spatial": "a surface",
}


def read_knowledge(arguments: Mapping[str, Any], names: Sequence[str]) -> Knowledge:
    """The knowledge in an estimator's ``get_params()`` of columns with these ``names``.

    Examples
    --------
    >>> read_knowledge({"cyclic": {"hour": 24}, "keep": ["age"]}, ["age", "hour"])
    Knowledge(cyclic=((1, 24.0),), linear=(), ordered=(), keep=(0,), excluded=(), by=(), slopes=(),
              constraints=(), spatial=())
    >>> read_knowledge({"linear": ["wieght"]}, ["weight", "age"])
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: linear names the column 'wieght', which X does not have; did you mean ...
    """
    given = {name: arguments.get(name) for name in ("cyclic", "linear", "ordered", "keep")}
    periods = read_by_column(given["cyclic"], "cyclic", names, _read_period, 24)
    orders = read_orders(given["ordered"], names)
    linear = read_columns_of(given["linear"], "linear", names)
    keep = read_columns_of(given["keep"], "keep", names)
    pairs = read_pairs_of(arguments.get("exclude_pairs"), "exclude_pairs", names)
    excluded = tuple(sorted({(min(pair), max(pair)) for pair in pairs}))
    by = read_by_column(arguments.get("by"), "by", names, partial(_read_other, names), "treatment")
    slopes = read_pairs_of(
        arguments.get("random_slopes"), "random_slopes", names, "[('time', 'patient')]"
    )
    _require_one_shape({"cyclic": periods, "linear": linear, "ordered": orders}, names)
    _require_none_excluded(arguments.get("interactions"), excluded, names)
    curves = tuple(by.items())
    _require_once(curves, slopes, excluded, names)
    constraints = read_constraints(arguments, periods, names)
    shaped = {"cyclic": periods, "linear": linear, "ordered": orders, "keep": keep, "by": by}
    shaped |= {"random_slopes": [line for line, _ in slopes]}
    shaped |= {"monotonic_cst": [one.feature for one in constraints]}
    spatial = _read_spatial(arguments, shaped, names)
    settings = tuple(periods.items()), linear, tuple(orders), keep, excluded
    return Knowledge(*settings, curves, slopes, constraints, spatial)


def require_networks(options: Options) -> None:
    """Reject knowledge of columns for which trained and finite networks have no form."""
    known = options.knowledge
    require_linearised(options)
    given = {
        "cyclic": known.cyclic,
        "linear": known.linear,
        "ordered": known.ordered,
        "keep": known.keep,
        "by": known.by,
        "random_slopes": known.slopes,
        "spatial": known.spatial,
    }
    for argument, columns in given.items():
        if not columns:
            continue
        if options.hidden_sizes is None and options.pair_hidden_sizes is None:
            return
        remedy = (
            "{use solver='gauss-newton' and curvature='exact', the defaults}"
            if has_networks(options)
            else "leave hidden_sizes and pair_hidden_sizes at 'auto'"
        )
        raise InputError(
            "{argument} is for infinitely wide networks, the default", remedy, argument=argument
        )


def require_fitting(known: Knowledge, schema: Schema) -> None:
    """Reject knowledge that contradicts the columns: their kinds, and the ranges of their values.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam.data import learn_schema
    >>> schema = learn_schema(["hour"], np.array([[0.0], [23.0]]))
    >>> require_fitting(Knowledge(cyclic=((0, 12.0),)), schema)
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: column 'hour' is from 0 to 23, more than its period of 12: set ...
    """
    for argument, columns, kind in (
        ("cyclic", known.periods, NUMERIC),
        ("linear", known.linear, NUMERIC),
        ("ordered", known.ordered, CATEGORICAL),
        ("by", [curve for curve, _ in known.by], NUMERIC),
        ("random_slopes", [line for line, _ in known.slopes], NUMERIC),
        ("random_slopes", [group for _, group in known.slopes], CATEGORICAL),
        ("shape_cst", sorted(known.curved), NUMERIC),
        ("spatial", [coordinate for pair in known.spatial for coordinate in pair], NUMERIC),
    ):
        require_kind(columns, kind, schema, argument, _WHAT[argument])
    require_order(known, schema)
    for argument, pairs in (("by", known.by), ("random_slopes", known.slopes)):
        for column in (schema.columns[group] for _, group in pairs):
            if column.lowest == column.highest and not column.missing:
                raise InputError(
                    "{argument} has the column {column!r}, which is constant: no groups differ",
                    "leave it out of {argument}",
                    argument=argument,
                    column=column.name,
                )
    for column in (schema.columns[index] for pair in known.spatial for index in pair):
        if column.lowest == column.highest:
            raise InputError(
                "{argument} has the column {column!r}, which is constant: there is no map",
                "leave it out of {argument}",
                argument="spatial",
                column=column.name,
            )
    for index, period in known.cyclic:
        column = schema.columns[index]
        if column.highest - column.lowest > period * (1.0 + _ROUNDING):
            raise InputError(
                "column {column!r} is from {low} to {high}, more than its period of {period}",
                "set the period in the column's unit, or take remainders, X[{column!r}] % {period}",
                argument="cyclic",
                column=column.name,
                low=f"{column.lowest:g}",
                high=f"{column.highest:g}",
                period=f"{period:g}",
            )


def _read_period(value: Any, column: str) -> float:
    if is_number(value) and 0.0 < value < float("inf"):
        return float(value)
    problem, remedy = (
        "{argument} has the period {value!r} for column {column!r}",
        "use a positive number",
    )
    raise InputError(problem, remedy, argument="cyclic", column=column, value=value)


def _read_other(names: Sequence[str], value: Any, column: str) -> int:
    """The column whose groups differ."""
    other = find_column(value, names, "by")
    if names[other] == column:
        problem = "{argument} has the column {column!r} by itself"
        raise InputError(problem, "name another column", argument="by", column=column)
    return other


def _require_once(
    by: Sequence[tuple[int, int]],
    slopes: Sequence[tuple[int, int]],
    excluded: Sequence[tuple[int, int]],
    names: Sequence[str],
) -> None:
    """A pair of columns has curves by group, or lines, or is excluded."""
    seen: dict[tuple[int, int], str] = dict.fromkeys(excluded, "exclude_pairs")
    for argument, pairs in (("by", by), ("random_slopes", slopes)):
        for first, second in pairs:
            pair = (min(first, second), max(first, second))
            if pair in seen:
                other = f"{{{seen[pair]}}}"
                raise InputError(
                    f"{{argument}} and {other} both have the pair {{pair!r}}",
                    "leave it out of one of them",
                    argument=argument,
                    pair=(names[first], names[second]),
                )
            seen[pair] = argument


def _require_one_shape(by_argument: Mapping[str, Any], names: Sequence[str]) -> None:
    """A column is cyclic, or linear, or ordered."""
    seen: dict[int, str] = {}
    for argument, columns in by_argument.items():
        for index in columns:
            if index in seen:
                raise named_twice(argument, seen[index], names[index])
            seen[index] = argument


def _read_spatial(
    arguments: Mapping[str, Any], shaped: Mapping[str, Any], names: Sequence[str]
) -> tuple[tuple[int, int], ...]:
    """Pairs of coordinates; a column is one of one surface, and nothing else is known of it."""
    pairs = read_pairs_of(arguments.get("spatial"), "spatial", names, "[('longitude', 'latitude')]")
    seen = {index: argument for argument, columns in shaped.items() for index in columns}
    for index in (coordinate for pair in pairs for coordinate in pair):
        if index in seen:
            known = seen[index]
            other = "has two surfaces of" if known == "spatial" else f"and {{{known}}} both name"
            raise InputError(
                f"{{argument}} {other} the column {{column!r}}",
                "a coordinate has one surface, and no curve: leave it out of one of them",
                argument="spatial",
                column=names[index],
            )
        seen[index] = "spatial"
    surfaces = tuple((min(pair), max(pair)) for pair in pairs)
    why = "which {spatial} has as a surface"
    _require_none_excluded(arguments.get("interactions"), surfaces, names, why)
    return surfaces


def _require_none_excluded(
    interactions: Any,
    excluded: Sequence[tuple[int, int]],
    names: Sequence[str],
    why: str = "which {exclude_pairs} excludes",
) -> None:
    """No pair is both asked for and excluded."""
    for interaction in named_interactions(interactions) if excluded else ():
        columns = {find_column(column, names, "interactions") for column in interaction}
        pair = next((pair for pair in excluded if columns.issuperset(pair)), None)
        if pair is not None:
            first, second = pair
            raise InputError(
                f"{{argument}} has the pair {{pair!r}}, {why}",
                "leave it out of one of them",
                argument="interactions",
                value=interactions,
                pair=(names[first], names[second]),
            )
