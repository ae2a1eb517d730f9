"""Single values in the user's words, and what terms say there.

A table holds a function at its entries. What it is in between, and how two points of it hang together, is
only known to the model, and so an explanation keeps a :class:`Source` for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.data import CATEGORICAL, Column, Schema, encode_table, warn_of, warn_user
from lanam.explain.ranges import is_beyond

#: How many levels an error names before it only counts them.
_MAX_LEVELS = 10


@dataclass(frozen=True)
class Source:
    """What an explanation was made from."""

    model: FittedModel
    schema: Schema


def evaluate(source: Source, index: int, values: Sequence[object]) -> tuple[Array, Array]:
    """Mean and standard deviation of a term where its columns have these values, one list a column."""
    features = source.model.terms[index].features
    columns = [source.schema.columns[feature] for feature in features]
    codes = [read_values(column, own) for column, own in zip(columns, values, strict=True)]
    if len({len(own) for own in codes}) > 1:
        numbers = " and ".join(str(len(own)) for own in codes)
        raise ValueError(f"values and second_values must be as many, and there are {numbers}")
    rows = np.zeros((len(codes[0]), source.schema.n_columns))
    for column, feature, own in zip(columns, features, codes, strict=True):
        rows[:, feature] = own
        _warn_of_beyond(column, own)
    mean, variance = scoring.sum_moments(source.model, [index], rows)
    return mean, deviations(variance)


def _warn_of_beyond(column: Column, codes: Array) -> None:
    """Say how many of a column's numbers lie beyond the training data."""
    beyond = is_beyond(codes, column)
    if beyond.any():
        far = codes[beyond]
        farthest = far[np.argmax(np.abs(far - 0.5 * column.lowest - 0.5 * column.highest))]
        lie = "lies" if beyond.sum() == 1 else "lie"
        warn_user(
            UserWarning(
                f"column {column.name!r}: {beyond.sum()} of {len(codes)} values {lie} beyond the training "
                f"data ({column.lowest:.4g} to {column.highest:.4g}), {farthest:.4g} the farthest: what "
                "the function is there no data says"
            )
        )


def deviations(variance: Array) -> Array:
    """Standard deviations of variances (n,), or of the classes' covariances (n, C, C)."""
    own = np.diagonal(variance, axis1=-2, axis2=-1) if variance.ndim > 1 else variance
    return np.sqrt(np.maximum(own, 0.0))


def read_values(column: Column, values: object) -> Array:
    """Values of one column as its numbers or codes, as the model reads them.

    What the training data did not have is said in a warning, as when rows are predicted.

    Raises
    ------
    ValueError
        For what cannot be a value of the column.
    """
    listed = [values] if isinstance(values, str) or not isinstance(values, Iterable) else values
    table = np.empty((len(cells := list(listed)), 1), dtype=object)
    table[:, 0] = cells
    try:
        codes, unseen = encode_table(table, Schema((column,)))
    except (TypeError, ValueError):
        raise _refusal(column, cells) from None
    warn_of(unseen)
    return codes[:, 0]


def _refusal(column: Column, values: list[object]) -> ValueError:
    """An error for the first of the values that cannot be the column's."""
    for value in values:
        cell = np.empty((1, 1), dtype=object)
        cell[0, 0] = value
        try:
            encode_table(cell, Schema((column,)))
        except (TypeError, ValueError):
            break
    if column.kind == CATEGORICAL:
        shown = ", ".join(map(repr, column.levels[:_MAX_LEVELS]))
        more = len(column.levels) - _MAX_LEVELS
        known = f"its levels are {shown}" + (f" and {more} more" if more > 0 else "")
    else:
        known = f"it holds numbers, from {column.lowest:g} to {column.highest:g}"
    return ValueError(f"{value!r} cannot be a value of column {column.name!r}: {known}")
