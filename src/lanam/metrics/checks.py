"""Validation of the arguments of scores: lengths, finite values, ranges."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanam.core.arrays import Array, IntArray
from lanam.errors import InputError
from lanam.families.labels import number_labels

#: Sample weights; None gives every row a weight of one.
Weights: TypeAlias = ArrayLike | None

#: Tolerance for the sum of a row's probabilities, which may be rounded or in single precision.
_SUM_TOLERANCE = 1e-3

#: Tolerance for probabilities outside [0, 1], and for violated inequalities between two.
ROUNDING = 1e-6


def read_vector(name: str, values: ArrayLike, n_rows: int | None = None) -> Array:
    """Finite numbers, one per row; a scalar is broadcast if ``n_rows`` is given."""
    vector = _finite(name, values)
    if vector.ndim == 0 and n_rows is not None:
        return np.full(n_rows, float(vector))
    if vector.ndim != 1:
        problem = "{argument} must have one dimension, and has the shape {value}"
        raise InputError(problem, argument=name, value=vector.shape)
    if not len(vector):
        raise InputError("{argument} is empty: scores need at least one row", argument=name)
    if n_rows is not None and len(vector) != n_rows:
        problem = "{argument} has {value} values, and there are {n_rows} rows"
        raise InputError(problem, argument=name, value=len(vector), n_rows=n_rows)
    return vector


def read_positive(
    name: str, values: ArrayLike, n_rows: int | None = None, *, zero: bool = False
) -> Array:
    """Positive numbers, one per row; ``zero`` is whether zero is one of them."""
    vector = read_vector(name, values, n_rows)
    if zero:
        _refuse(name, vector, vector < 0.0, "must not be negative")
    else:
        _refuse(name, vector, vector <= 0.0, "must be positive")
    return vector


def read_gaussian(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> tuple[Array, Array, Array]:
    """Observations, predicted means and positive predicted standard deviations."""
    target = read_vector("y", y)
    centre = read_vector("mean", mean, len(target))
    spread = read_vector("std", std, len(target))
    _refuse("std", spread, spread <= 0.0, "must be positive")
    return target, centre, spread


def read_ends(lower: ArrayLike, upper: ArrayLike, n_rows: int | None = None) -> tuple[Array, Array]:
    """Interval bounds with ``lower <= upper``."""
    ends = read_vector("lower", lower, n_rows)
    others = read_vector("upper", upper, len(ends))
    _refuse("upper", others, others < ends, "must not lie below lower")
    return ends, others


def read_binary(y: ArrayLike, probability: ArrayLike) -> tuple[Array, Array]:
    """Zeros and ones, and the predicted probabilities of a one."""
    truth = read_vector("y", y)
    _refuse("y", truth, (truth != 0.0) & (truth != 1.0), "must be 0 or 1")
    return truth, read_probability("probability", probability, len(truth))


def read_probability(name: str, values: ArrayLike, n_rows: int | None = None) -> Array:
    """Probabilities, one per row."""
    return _between(name, read_vector(name, values, n_rows))


def read_classes(y: ArrayLike, probabilities: ArrayLike) -> tuple[IntArray, Array]:
    """Class indices, and predicted class probabilities (n, C)."""
    table = _finite("probabilities", probabilities)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(
            "probabilities must have a row for each of y and a column for each class, and have the "
            f"shape {table.shape}"
        )
    numbers = read_vector("y", y)
    if len(numbers) != len(table):
        raise ValueError(f"probabilities have {len(table)} rows, and y has {len(numbers)} values")
    table = _between("probabilities", table)
    total = table.sum(axis=1)
    _refuse("probabilities", total, np.abs(total - 1.0) > _SUM_TOLERANCE, "must sum to 1 in a row")
    n_classes = table.shape[1]
    wrong = (numbers < 0) | (numbers >= n_classes) | (numbers != np.floor(numbers))
    _refuse("y", numbers, wrong, f"must be class indices from 0 to {n_classes - 1}")
    return numbers.astype(np.intp), table


def class_numbers(y: ArrayLike, classes: ArrayLike) -> IntArray:
    """The index of each label among the classes."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension, and has the shape {labels.shape}")
    return number_labels(labels, np.asarray(classes), "is none of")


def read_count(name: str, value: object, least: int = 1) -> int:
    """An integer that is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer of at least {least}")
    return int(value)


def read_weights(sample_weight: Weights, n_rows: int) -> Array:
    """Sample weights as an array; ones by default."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = read_vector("sample_weight", sample_weight, n_rows)
    _refuse("sample_weight", weight, weight < 0.0, "must not be negative")
    if not weight.any():
        problem = "{argument} is zero for every row: nothing is left to score"
        raise InputError(problem, argument="sample_weight")
    return weight


def read_groups(groups: ArrayLike | None, n_rows: int) -> IntArray | None:
    """The number of each row's group; None if rows are independent."""
    if groups is None:
        return None
    values = np.asarray(groups)
    if values.ndim != 1 or len(values) != n_rows:
        problem = "{argument} has the shape {value}, and there are {n_rows} rows"
        raise InputError(
            problem, "pass one value per row", argument="groups", value=values.shape, n_rows=n_rows
        )
    values = values.astype(str) if values.dtype.kind == "O" else values
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.intp)


def weighted_mean(values: Array | NDArray[np.bool_], sample_weight: Weights) -> float:
    """Weighted mean over rows."""
    return float(np.average(values, weights=read_weights(sample_weight, len(values))))


def _finite(name: str, values: ArrayLike) -> Array:
    try:
        array: Array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        problem = "{argument} must be numeric: {error}"
        raise InputError(problem, argument=name, error=str(error)) from None
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(np.argwhere(bad)[0][0]) if array.ndim else 0
        what = f"{bad.sum()} of {bad.size} values that are not finite numbers"
        problem = f"{{argument}} has {what}, the first in row {{row}}"
        raise InputError(problem, "leave these rows out", argument=name, row=row)
    return array


def _between(name: str, probability: Array) -> Array:
    """Probabilities clipped to [0, 1] where they exceed it by rounding only."""
    inside: Array = np.clip(probability, 0.0, 1.0)
    outside = np.abs(probability - inside) > ROUNDING
    _refuse(name, probability, outside, "must lie between 0 and 1")
    return inside


def _refuse(name: str, values: Array, bad: NDArray[np.bool_], rule: str) -> None:
    if bad.any():
        first = tuple(int(k) for k in np.argwhere(bad)[0])
        what = (
            f"violated by {bad.sum()} of {bad.size} values, first {values[first]:g} in row {{row}}"
        )
        raise InputError(f"{{argument}} {rule}: {what}", argument=name, row=first[0])
