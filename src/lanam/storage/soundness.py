"""What use of a model relies on beyond the shapes of its arrays: checked once, when a file is read.

Predictions stay finite because bounds of them do: of the mean, the sum of every term's largest value; of
the standard deviation, by the triangle inequality, the sum of every term's longest row of its table times
the norm of its rows of the posterior's factor.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from lanam.conformal import Calibration
from lanam.core.arrays import Array
from lanam.core.model.fitted import FittedModel
from lanam.core.terms.knots import Categories, Knots, Levels
from lanam.data import Column, Schema
from lanam.families import find_family
from lanam.storage.errors import require
from lanam.storage.fields import LARGEST

#: Rounding of sums that are one.
_ROUNDING = 1e-6
#: The largest variance: that of numbers whose squares are finite.
_LARGEST_VARIANCE = LARGEST**2
#: The largest logarithm of a factor of the noise variance.
_LARGEST_LOG = 600.0


def require_sound(model: FittedModel, schema: Schema, calibration: Calibration | None) -> None:
    """Reject a model with which something would fail, or be infinite, later."""
    names = schema.names
    require(len(set(names)) == len(names), "two columns have the same name")
    std = _require_sum(model)
    _require_terms(model, schema)
    if model.noise is not None:
        _require_sum(model.noise)
        _require_terms(model.noise, schema)
    std += _require_noise(model)
    if calibration is not None:
        require(calibration.scores[0] >= 0.0, "the calibration's scores")
        require(calibration.scores[-1] * max(std, 1.0) <= LARGEST**2, "the calibration's scores")
        require(calibration.weight.sum() <= LARGEST, "the calibration's weights")


def _require_sum(model: FittedModel) -> float:
    """Bounds of mean and standard deviation on the link scale; the latter is returned."""
    mean = _largest(model.intercept) + sum(_largest(term.mean) for term in model.terms)
    require(mean <= LARGEST, "the sum of its terms")
    root = model.cov_cholesky
    std = _norm(root[-model.n_outputs :])
    for term, block in zip(model.terms, model.blocks, strict=True):
        std += _longest_row(term.table) * _norm(root[block])
        if term.coupling is not None and term.own_variance is not None:
            std += _longest_row(term.coupling) * _norm(root)
            std += math.sqrt(_largest(term.own_variance))
    require(std <= LARGEST, "the posterior covariance")
    if model.contrasts is not None:
        square = model.contrasts.T @ model.contrasts
        orthonormal = np.allclose(square, np.eye(len(square)), rtol=0.0, atol=_ROUNDING)
        require(orthonormal, "the contrasts of the classes")
        centred = np.allclose(model.contrasts.sum(axis=0), 0.0, rtol=0.0, atol=_ROUNDING)
        require(centred, "the contrasts of the classes")
    return std


def _require_noise(model: FittedModel) -> float:
    """A bound of the noise's standard deviation."""
    family = find_family(model.likelihood)
    require(model.noise_variance <= min(family.most_noise, _LARGEST_VARIANCE), "the noise")
    log_factor = 0.0
    if model.noise is not None:
        log_factor = _largest(model.noise.intercept)
        log_factor += sum(_largest(term.mean) for term in model.noise.terms)
        require(log_factor <= _LARGEST_LOG, "the noise")
    variance = model.noise_variance * math.exp(log_factor)
    if model.missing_variance is not None:
        largest = _largest(model.missing_variance)
        require(largest <= _LARGEST_VARIANCE, "the variance of missing values")
        variance += float(model.missing_variance.sum())
    require(variance <= _LARGEST_VARIANCE, "the noise")
    return math.sqrt(variance)


def _require_terms(model: FittedModel, schema: Schema) -> None:
    """Each column has one main effect and at most one per-value effect, and no two terms are the same."""
    keys = Counter((term.kind == "level", frozenset(term.features)) for term in model.terms)
    require(max(keys.values(), default=1) == 1, "two terms are the same")
    main = {term.features[0] for term in model.terms if term.kind in ("smooth", "categorical")}
    require(main == set(range(schema.n_columns)), "a column has no term")
    for k, term in enumerate(model.terms):
        require(term.active or not term.mean.any(), f"the mean of term {k}")
        share = float(term.data_mass.sum())
        require(share <= 1.0 + _ROUNDING, f"the shares of term {k}")
        require(share > 0.0 or not term.active, f"the shares of term {k}")
        axes = () if term.entries is None else term.entries.axes
        for feature, axis in zip(term.features, axes, strict=False):
            _require_axis(axis, schema.columns[feature], f"the entries of term {k}")


def _require_axis(axis: Knots | Levels | Categories, column: Column, what: str) -> None:
    """Each entry of a categorical column is one category's; a numeric column's are near its values."""
    if isinstance(axis, Categories):
        own = np.sort(axis.entry_of[axis.entry_of < axis.n_own])
        require(np.array_equal(own, np.arange(axis.n_own)), what)
        return
    with np.errstate(over="ignore"):
        values = axis.values
        edges = axis.edges * axis.scale if isinstance(axis, Levels) else values
    require(bool(np.isfinite(values).all() and np.isfinite(edges).all()), what)
    # Up to the rounding of knots.
    slack = 1e-9 * (0.5 * column.highest - 0.5 * column.lowest)
    inside = (values >= column.lowest - slack) & (values <= column.highest + slack)
    require(bool(inside.any()), f"the range of column {column.name[:40]!r}")


def _largest(values: Array | float) -> float:
    return float(np.abs(values).max(initial=0.0))


def _norm(rows: Array) -> float:
    return float(np.linalg.norm(rows))


def _longest_row(table: Array) -> float:
    return float(np.sqrt(np.square(table).sum(axis=1).max(initial=0.0)))
