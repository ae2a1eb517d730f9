"""Tests of shapes: does the effect of a column increase? Posterior odds against prior odds, from draws.

The posterior probability of a shape is the fraction of posterior draws of the curve that have it, and so is
the prior's. Draws have no flat parts: one that hardly falls counts as increasing, and one that is near to a
convex function as convex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from lanam.core.arrays import Array
from lanam.core.model.draws import JointRoot, joint_root
from lanam.core.model.fitted import FittedModel, FittedTerm
from lanam.core.terms.knots import Categories, Knots
from lanam.data import Column, Schema, find_column
from lanam.errors import InputError, choose
from lanam.explain.answers import ByClass
from lanam.explain.values import PlainData
from lanam.parameters import is_number
from lanam.text import printable

#: Draws of the posterior, and of the prior: a probability of 5% is known to .2%.
_N_DRAWS = 10_000

#: Bayes factors up to these, and what they are called (Kass and Raftery 1995).
_WORDS = ((3.0, "inconclusive"), (20.0, "positive"), (150.0, "strong"), (math.inf, "very strong"))


@dataclass(frozen=True, eq=False, repr=False)
class ShapeTest(PlainData):
    """The evidence for a shape of a column's effect, against all other curves.

    Attributes
    ----------
    column, shape
        The column, and "increasing", "decreasing", "convex" or "concave".
    low, high
        The range of values that it is about; of ordered categories the first and the last.
    tolerance
        Departures from the shape up to this fraction of a curve's own range count as none.
    probability, prior_probability
        Posterior and prior probability that the curve has the shape. They are fractions of ``n_draws``
        draws, with half a draw added on either side.
    n_draws
        The number of draws, which are always the same.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
    >>> test = model.test_shape("bmi", "increasing")
    >>> test.probability > 0.5, test.bayes_factor > 1.0
    (True, True)
    """

    column: str
    shape: str
    low: object
    high: object
    tolerance: float
    probability: float
    prior_probability: float
    n_draws: int = _N_DRAWS

    @property
    def bayes_factor(self) -> float:
        """Posterior over prior odds of the shape: above 1 the data speak for it, below 1 against it."""
        return _odds(self.probability) / _odds(self.prior_probability)

    @property
    def is_bound(self) -> bool:
        """Whether all draws, or none, have the shape: the Bayes factor is then a bound."""
        return min(self.probability, 1.0 - self.probability) < 1.0 / self.n_draws

    @property
    def standard_error(self) -> float:
        """Monte Carlo standard error of the logarithm of the Bayes factor."""
        variances = (
            1.0 / (self.n_draws * each * (1.0 - each))
            for each in (self.probability, self.prior_probability)
        )
        return math.sqrt(sum(variances))

    def to_dict(self) -> dict[str, Any]:
        """The test as plain data, ready for JSON, with its Bayes factor."""
        return super().to_dict() | {"bayes_factor": self.bayes_factor}

    def __str__(self) -> str:
        factor = self.bayes_factor
        side, size = ("for", factor) if factor >= 1.0 else ("against", 1.0 / factor)
        strength = next(word for most, word in _WORDS if size < most)
        head = f"{self.column} is {self.shape} ({_shown(self.low)} to {_shown(self.high)})"
        if max(self.probability, self.prior_probability) < 1.0 / self.n_draws:
            return printable(f"{head}: no draw is, neither of the posterior nor of the prior")
        bound = "more than " if self.is_bound else ""
        return printable(
            f"{head}: posterior probability {self.probability:.3f}, prior {self.prior_probability:.3f}; "
            f"Bayes factor {bound}{size:.3g} {side} it ({strength})"
        )

    __repr__ = __str__


def shape_test(
    model: FittedModel,
    schema: Schema,
    column: object,
    shape: object,
    between: object = None,
    tolerance: float = 0.02,
) -> ByClass:
    """The test of a shape of a column's main effect; of several classes one for each."""
    if not isinstance(shape, str) or shape not in _DEPARTURES:
        remedy = choose(*_DEPARTURES)
        raise InputError("{given} is not known", remedy, argument="shape", value=shape)
    if not (is_number(tolerance) and 0.0 <= tolerance < 1.0):
        problem = "{given} must be at least 0 and below 1"
        raise InputError(problem, argument="tolerance", value=tolerance)
    feature = find_column(column, schema.names, "column")
    index = _term(model, schema, feature)
    term, about = model.terms[index], schema.columns[feature]
    entries, points, ends = _asked(term, about, shape, between)
    posterior, prior = joint_root(model, index).at(entries), _prior(model, term).at(entries)
    means = term.mean[entries].reshape(len(entries), -1).T
    draws = posterior.draws(_N_DRAWS) + means[:, :, None]
    fractions = [
        [_fraction(curves, points, shape, tolerance) for curves in each]
        for each in (draws, prior.draws(_N_DRAWS))
    ]
    tests = tuple(
        ShapeTest(about.name, shape, *ends, float(tolerance), after, before)
        for after, before in zip(*fractions, strict=True)
    )
    return tests if model.contrasts is not None else tests[0]


def _term(model: FittedModel, schema: Schema, feature: int) -> int:
    """The index of a column's main effect, which must be there and free."""
    index, term = next(
        (k, term)
        for k, term in enumerate(model.terms)
        if term.features == (feature,) and term.kind != "level"
    )
    name = schema.names[feature]
    if not term.active:
        raise InputError(
            f"the main effect of column {{column!r}} was {term.status}: there is no curve to test",
            "name the column in {keep} and fit again",
            argument="column",
            column=name,
        )
    posterior = model.constrained
    if posterior is not None and any(feature in each.features for each in posterior.terms):
        raise InputError(
            "column {column!r} was fitted under constraints, which its draws obey",
            "test a model that was fitted without them",
            argument="column",
            column=name,
        )
    return index


def _asked(
    term: FittedTerm, column: Column, shape: str, between: object
) -> tuple[NDArray[np.intp], Array, tuple[object, object]]:
    """Entries of the term to test, their places along the column, and the ends of the range."""
    axis = term.entries
    if isinstance(axis, Categories):
        if not axis.ordered or shape in ("convex", "concave"):
            raise InputError(
                f"column {{column!r}} has {'ordered ' if axis.ordered else ''}categories, and {{given}} is "
                "for numbers" + ("" if axis.ordered else " or categories with an order"),
                "" if axis.ordered else "fit with their order, {ordered}={order!r}",
                argument="shape",
                value=shape,
                column=column.name,
                order={column.name: list(column.levels[:5])},
            )
        if between is not None:
            raise InputError(
                "{given} is for numbers, and column {column!r} has categories",
                argument="between",
                value=between,
                column=column.name,
            )
        ranks = np.arange(len(axis.entry_of), dtype=np.float64)
        return axis.entry_of, ranks, (column.levels[0], column.levels[-1])
    assert isinstance(axis, Knots)
    low, high = _range(between, column)
    values = axis.values
    inside = np.flatnonzero((values >= low) & (values <= high))
    if len(inside) < 3:
        raise InputError(
            "{given} has fewer than three knots of column {column!r}",
            "give a wider range",
            argument="between",
            value=between,
            column=column.name,
        )
    return inside, values[inside], (float(values[inside[0]]), float(values[inside[-1]]))


def _range(between: object, column: Column) -> tuple[float, float]:
    """The range of values, within that of the training data."""
    if between is None:
        return column.lowest, column.highest
    listed = list(between) if isinstance(between, Sequence) else []
    if len(listed) != 2 or not all(map(is_number, listed)) or not listed[0] < listed[1]:
        raise InputError(
            "{given} is not known",
            "use the lowest and the highest value, for example (20, 60)",
            argument="between",
            value=between,
        )
    low, high = listed
    return max(float(low), column.lowest), min(float(high), column.highest)


def _prior(model: FittedModel, term: FittedTerm) -> JointRoot:
    """The prior of the same curve: its coordinates are standard normal (method page, a pass)."""
    contrasts = np.ones((1, 1)) if model.contrasts is None else model.contrasts
    factors = np.kron(contrasts[:, None], np.eye(term.table.shape[1]))
    return JointRoot(term.table, factors.astype(np.float64))


def _fraction(curves: Array, points: Array, shape: str, tolerance: float) -> float:
    """The fraction of curves (B, n) with a shape, half a curve added on either side."""
    departures = _DEPARTURES[shape](curves, points)
    holds = departures <= tolerance * np.ptp(curves, axis=0)
    return float((holds.sum() + 0.5) / (len(holds) + 1.0))


def _fall(curves: Array, points: Array) -> Array:
    """The largest fall of each curve from an earlier value."""
    return np.asarray((np.maximum.accumulate(curves, axis=0) - curves).max(axis=0))


def _above_convex(curves: Array, points: Array) -> Array:
    """The largest distance of each curve from the largest convex function below it.

    The slopes of that function are the isotonic regression of the curve's.
    """
    steps = np.diff(points)
    slopes = np.diff(curves, axis=0) / steps[:, None]
    convex = np.stack([isotonic_regression(each, weights=steps).x for each in slopes.T], axis=1)
    rises = np.cumsum((slopes - convex) * steps[:, None], axis=0)
    return np.asarray(np.maximum(rises.max(axis=0), 0.0))


#: By how much curves (B, n) at points (B,) depart from each shape.
_DEPARTURES: Mapping[str, Callable[[Array, Array], Array]] = MappingProxyType(
    {
        "increasing": _fall,
        "decreasing": lambda curves, points: _fall(-curves, points),
        "convex": _above_convex,
        "concave": lambda curves, points: _above_convex(-curves, points),
    }
)


def _odds(probability: float) -> float:
    return probability / (1.0 - probability)


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
