"""Constraints on the effects of columns: ``monotonic_cst`` and ``shape_cst``, read and checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lanam.core.fit.solvers import has_networks
from lanam.core.inference.options import Options
from lanam.core.terms.constraints import Constraint
from lanam.core.terms.knowledge import Knowledge
from lanam.data import CATEGORICAL, Schema
from lanam.data.columns import named_interactions, named_twice, plain, read_by_column, read_pair
from lanam.errors import InputError, choose
from lanam.parameters import is_number

#: Values of ``shape_cst``.
_CURVATURES = {"convex": 1, "concave": -1}

#: Messages list at most this many categories.
_MOST_LISTED = 5


def read_constraints(
    arguments: Mapping[str, Any], cyclic: Collection[int], names: Sequence[str]
) -> tuple[Constraint, ...]:
    """The constraints in an estimator's ``get_params()`` on columns with these ``names``.

    Examples
    --------
    >>> (constraint,) = read_constraints({"monotonic_cst": {"age": -1}}, [], ["bmi", "age"])
    >>> constraint.feature, constraint.monotone
    (1, -1)
    """
    monotone = _read_directions(arguments.get("monotonic_cst"), names)
    curved = read_by_column(arguments.get("shape_cst"), "shape_cst", names, _read_shape, "convex")
    for argument, columns in (("monotonic_cst", monotone), ("shape_cst", curved)):
        for column in columns:
            if column in cyclic:
                raise named_twice(argument, "cyclic", names[column])
    _require_no_interactions(arguments.get("interactions"), curved, names)
    return tuple(
        Constraint(column, monotone.get(column, 0), curved.get(column, 0))
        for column in sorted({*monotone, *curved})
    )


def require_linearised(options: Options) -> None:
    """Reject constraints on networks that are trained, or of factored curvature."""
    if options.knowledge.constraints and has_networks(options):
        raise InputError(
            "{argument} is for networks that are not trained, the default",
            "use solver='gauss-newton' and curvature='exact'",
            argument=argument_of(options.knowledge),
        )


def require_order(known: Knowledge, schema: Schema) -> None:
    """Reject constraints on categories without an order, and on curves that differ between groups."""
    for constraint in known.constraints:
        column = schema.columns[constraint.feature]
        if column.kind == CATEGORICAL and constraint.feature not in known.ordered:
            raise InputError(
                "{argument} names the column {column!r}, whose categories have no order",
                "list them from one end to the other, {ordered}={order!r}",
                argument="monotonic_cst",
                column=column.name,
                order={column.name: list(column.levels[:_MOST_LISTED])},
            )
        for argument, pairs in (("by", known.by), ("random_slopes", known.slopes)):
            if any(constraint.feature in pair for pair in pairs):
                why = ": curves by group have no constraints"
                raise named_twice(argument, argument_of(known), column.name, why)


def argument_of(known: Knowledge) -> str:
    """The argument that has the constraints, for messages."""
    monotone = any(constraint.monotone for constraint in known.constraints)
    return "monotonic_cst" if monotone else "shape_cst"


def _read_directions(value: Any, names: Sequence[str]) -> dict[int, int]:
    """The directions of monotone columns, from a value per column or an array of all columns'."""
    listed = plain(value)
    if isinstance(listed, Sequence) and not isinstance(listed, (str, bytes)):
        if len(listed) != len(names):
            raise InputError(
                f"{{argument}} has {len(listed)} values for {len(names)} columns",
                "give one for each column, or name those with a constraint, {argument}={such!r}",
                argument="monotonic_cst",
                such={names[0]: 1},
            )
        value = dict(enumerate(listed))
    read = read_by_column(value, "monotonic_cst", names, _read_direction, 1)
    return {column: direction for column, direction in read.items() if direction}


def _read_direction(value: Any, column: str) -> int:
    if is_number(value) and value in (-1, 0, 1):
        return int(value)
    problem = "{argument} has {value!r} for column {column!r}"
    remedy = "use 1 (increasing), -1 (decreasing) or 0 (no constraint)"
    raise InputError(problem, remedy, argument="monotonic_cst", column=column, value=value)


def _read_shape(value: Any, column: str) -> int:
    if isinstance(value, str) and value in _CURVATURES:
        return _CURVATURES[value]
    problem, remedy = "{argument} has {value!r} for column {column!r}", choose(*_CURVATURES)
    if value in ("increasing", "decreasing"):
        remedy += f"; {value} columns are for {{monotonic_cst}}"
    raise InputError(problem, remedy, argument="shape_cst", column=column, value=value)


def _require_no_interactions(
    interactions: Any, curved: Collection[int], names: Sequence[str]
) -> None:
    """No interaction of a convex or concave column is asked for."""
    for pair in named_interactions(interactions) if curved else ():
        for column in read_pair(pair, "interactions", names):
            if column in curved:
                raise InputError(
                    "{argument} has the pair {value!r}, and {shape_cst} names its column {column!r}, which "
                    "has no interactions",
                    "leave it out of one of them",
                    argument="interactions",
                    column=names[column],
                    value=pair,
                )
