"""A black box for what a model leaves unexplained: boosted trees added to its link.

Trees are fitted by LightGBM where it is installed, and otherwise by scikit-learn's histogram boosting. Both
minimise squares: a round fits some trees to the gradient of the log-likelihood over its curvature, weighted
by the curvature (Newton's step), and expands around the new prediction. So the likelihood is the model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lanam.core.arrays import Array, IntArray, sum_by
from lanam.core.likelihoods import Likelihood
from lanam.metrics.influence import mean_of

#: Trees of a round, the share of a tree's step that is taken, and the most leaves of a tree.
_TREES = 10
_RATE = 0.1
_LEAVES = 16
#: The most rounds, and the rounds without improvement on validation rows after which boosting ends. Trees
#: that improve these rows by fewer standard errors than this are noise, and none is kept.
_MOST_ROUNDS = 30
_PATIENCE = 5
_STANDARD_ERRORS = 1.0
#: Fewer rows are fastest with one thread.
_THREADED_ROWS = 20_000
#: The fewest units of a leaf: this share of all within bounds.
_LEAF_SHARE = 0.02
_LEAF_UNITS = (5, 20)
#: Fraction of the rows that decide how many rounds there are.
_VALIDATION = 0.2
#: Bins of a column: both libraries can have as many.
_BINS = 250
#: Curvatures are at least this fraction of their mean.
_LEAST_CURVATURE = 1e-6


@dataclass(frozen=True, eq=False)
class LeftOver:
    """Rows, and what a model that has not seen them predicts.

    Attributes
    ----------
    columns
        (n, D), as codes of bins or of categories.
    categorical
        Which columns are (D,).
    y
        Response as the core fits it (n,).
    link, constant
        Predictions on the link scale, (n,) or (n, outputs): of the model, and of the best constant one.
    size
        How often the log-density of a row counts: its exposure, trials, or precision.
    weight
        Frequency weight of every unit.
    unit
        The unit of each row, from 0 (n,): units are independent. A subject of a survival model has several
        rows.
    likelihood
        The model's.
    """

    columns: Array
    categorical: NDArray[np.bool_]
    y: Array
    link: Array
    constant: Array
    size: Array
    weight: Array
    unit: IntArray
    likelihood: Likelihood

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def row_weight(self) -> Array:
        """Frequency weight times size of each row."""
        return np.asarray(self.weight[self.unit] * self.size)

    def losses(self, link: Array) -> Array:
        """Every unit's deviance, which is the squared error of Gaussian noise."""
        loss = self.size * self.likelihood.deviance(self.y, link)
        return sum_by(self.unit, loss, len(self.weight))


def encode_for_trees(columns: Array, categorical: NDArray[np.bool_]) -> Array:
    """Columns as codes of bins or of categories, from 0; missing values stay.

    Trees would find bins by themselves, but in every round anew. Rare categories share the last code.
    """
    result = np.array(columns, dtype=np.float64)
    for k, coded in enumerate(categorical):
        seen = ~np.isnan(result[:, k])
        values = result[seen, k]
        if coded:
            _, code, count = np.unique(values, return_inverse=True, return_counts=True)
            rank = np.argsort(np.argsort(-count, kind="stable"))
            result[seen, k] = np.minimum(rank, _BINS - 1)[code]
        elif len(values):
            levels = np.linspace(0.0, 1.0, _BINS)[1:]
            edges = np.unique(np.quantile(values, levels, method="inverted_cdf"))
            result[seen, k] = np.searchsorted(edges, values)
    return result


@dataclass(frozen=True, eq=False)
class Boosted:
    """Trees of some columns: rounds, each with trees for every output.

    ``gain`` is by how much they lowered the loss of validation rows, per unit, and ``std_error`` its error.
    """

    features: IntArray
    rounds: tuple[tuple[Any, ...], ...]
    shape: tuple[int, ...]
    gain: float
    std_error: float

    def predict(self, columns: Array) -> Array:
        """The trees' addition to the link, (n,) or (n, outputs)."""
        shift = np.zeros((len(columns), *self.shape))
        for trees in self.rounds:
            shift += _predict(trees, columns[:, self.features], self.shape)
        return shift


def _predict(trees: Sequence[Any], columns: Array, shape: tuple[int, ...]) -> Array:
    values = np.stack([each.predict(columns) for each in trees], axis=1)
    return values.reshape(len(columns), *shape)


def boosting_threads(n_rows: int) -> AbstractContextManager[Any]:
    """A context in which few rows are boosted with one thread; scikit-learn has no parameter of it."""
    if n_rows >= _THREADED_ROWS:
        return nullcontext()
    import sklearn.ensemble  # noqa: F401 -- limits are set for loaded libraries only

    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="openmp")
    return limits


def boost(rows: LeftOver, train: IntArray, seed: int, features: Sequence[int] = ()) -> Boosted:
    """Trees for what is left in the rows ``train``, of some columns or all.

    The number of rounds, perhaps none, is best for a part of these rows that trees were not fitted to.
    """
    every = np.arange(rows.columns.shape[1])
    chosen = np.array(features, dtype=np.intp) if len(features) else every
    fitted, valid = _split(rows.unit[train], seed)
    fitted, valid = train[fitted], train[valid]
    table = rows.columns[:, chosen]
    categorical = np.flatnonzero(rows.categorical[chosen])
    n_units = len(np.unique(rows.unit[fitted]))
    fewest = int(np.clip(_LEAF_SHARE * n_units, *_LEAF_UNITS) * len(fitted) / n_units)
    link = rows.link.copy()
    before = loss = _losses(rows, valid, link)
    weight = rows.weight[np.unique(rows.unit[valid])]
    rounds: list[tuple[Any, ...]] = []
    n_best, gain = 0, np.zeros(len(weight))
    while len(rounds) < _MOST_ROUNDS and len(rounds) - n_best < _PATIENCE:
        target, importance = _newton(rows, fitted, link[fitted])
        trees = tuple(
            _regressor(len(fitted), fewest, categorical, seed).fit(
                table[fitted], target[:, k], sample_weight=importance[:, k]
            )
            for k in range(target.shape[1])
        )
        link[train] += _predict(trees, table[train], rows.link.shape[1:])
        rounds.append(trees)
        loss = _losses(rows, valid, link)
        if weight @ (before - loss) > weight @ gain:
            n_best, gain = len(rounds), before - loss
    mean = mean_of(gain, weight)
    error = mean.std_error(weight)
    if not mean.value > _STANDARD_ERRORS * error:
        return Boosted(chosen, (), rows.link.shape[1:], 0.0, error)
    return Boosted(chosen, tuple(rounds[:n_best]), rows.link.shape[1:], mean.value, error)


def _split(unit: IntArray, seed: int) -> tuple[IntArray, IntArray]:
    """Rows to fit trees to, and validation rows; the rows of a unit stay together."""
    units = np.unique(unit)
    mixed = np.random.default_rng(seed).permutation(units)
    aside = np.isin(unit, mixed[: max(int(_VALIDATION * len(units)), 1)])
    return np.flatnonzero(~aside), np.flatnonzero(aside)


def _losses(rows: LeftOver, some: IntArray, link: Array) -> Array:
    """The loss of every unit of some rows."""
    loss = -rows.size[some] * rows.likelihood.log_prob(rows.y[some], link[some])
    units, number = np.unique(rows.unit[some], return_inverse=True)
    return sum_by(number, loss, len(units))


def _newton(rows: LeftOver, chosen: IntArray, link: Array) -> tuple[Array, Array]:
    """Newton's step for each row and output alone, and its weight (n, outputs)."""
    n_outputs = rows.likelihood.n_outputs
    gradient = rows.likelihood.gradient(rows.y[chosen], link).reshape(-1, n_outputs)
    curvature = rows.likelihood.curvature(link).reshape(-1, n_outputs, n_outputs)
    curvature = np.diagonal(curvature, axis1=1, axis2=2)
    curvature = np.maximum(curvature, _LEAST_CURVATURE * curvature.mean(axis=0))
    weight = rows.row_weight[chosen, None] * curvature
    return gradient / curvature, weight / weight.mean(axis=0)


def library() -> str:
    """The library that fits the trees."""
    return "LightGBM" if find_spec("lightgbm") else "scikit-learn"


def _regressor(n_rows: int, fewest: int, categorical: IntArray, seed: int) -> Any:
    """A round of trees for ``n_rows`` rows, with a fewest number of rows in a leaf."""
    if library() == "LightGBM":
        from lightgbm import LGBMRegressor

        trees = LGBMRegressor(
            n_estimators=_TREES,
            learning_rate=_RATE,
            num_leaves=_LEAVES,
            min_child_samples=fewest,
            min_child_weight=0.0,
            reg_lambda=1.0,
            n_jobs=1 if n_rows < _THREADED_ROWS else None,
            random_state=seed,
            deterministic=True,
            force_row_wise=True,
            verbosity=-1,
        )
        return _WithCategories(trees, categorical)
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        max_iter=_TREES,
        learning_rate=_RATE,
        max_leaf_nodes=_LEAVES,
        min_samples_leaf=fewest,
        l2_regularization=1.0,
        categorical_features=categorical if len(categorical) else None,
        early_stopping=False,
        random_state=seed,
    )


@dataclass(frozen=True)
class _WithCategories:
    """LightGBM's trees, which get the categorical columns when they are fitted."""

    trees: Any
    categorical: IntArray

    def fit(self, columns: Array, y: Array, sample_weight: Array) -> _WithCategories:
        known = self.categorical.tolist() or "auto"
        self.trees.fit(columns, y, sample_weight=sample_weight, categorical_feature=known)
        return self

    def predict(self, columns: Array) -> Array:
        return np.asarray(self.trees.booster_.predict(columns))
