"""Made-up problems whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from benchmarks.data.sets import Array, Dataset, Task

# The paper's toy (appendix "Illustrative Example"): four functions on [0, 1], the last one zero.
TOY_FUNCTIONS: tuple[Callable[[Array], Array], ...] = (
    lambda x: 8 * (x - 0.5) ** 2,
    lambda x: 0.1 * np.exp(-8 * x + 4),
    lambda x: 5 * np.exp(-2 * (2 * x - 1) ** 2),
    lambda x: np.zeros_like(x),
)


@dataclass(frozen=True)
class AdditiveProblem:
    """Data with a known additive truth; ``effects[:, d]`` is f_d, centred over the data."""

    X: Array
    y: Array
    effects: Array


def toy_problem(seed: int, correlation: float = 0.0, n_rows: int = 1000) -> AdditiveProblem:
    """The paper's toy with unit noise; features are joined by a Gaussian copula.

    Every pair of the copula's normals has the given correlation; margins stay uniform.
    """
    rng = np.random.default_rng(seed)
    n_features = len(TOY_FUNCTIONS)
    covariance = np.full((n_features, n_features), correlation)
    np.fill_diagonal(covariance, 1.0)
    normals = rng.standard_normal((n_rows, n_features)) @ np.linalg.cholesky(covariance).T
    X = norm.cdf(normals)
    effects = np.column_stack([f(X[:, d]) for d, f in enumerate(TOY_FUNCTIONS)])
    y = effects.sum(axis=1) + rng.standard_normal(n_rows)
    return AdditiveProblem(X, y, effects - effects.mean(axis=0))


SPARSE_FUNCTIONS: tuple[Callable[[Array], Array], ...] = (
    lambda x: np.sin(3 * x),
    lambda x: x**2,
    lambda x: np.exp(-(x**2)),
    lambda x: np.tanh(2 * x),
    lambda x: np.abs(x),
)


def sparse_problem(seed: int, n_noise: int = 45, n_rows: int = 1000) -> AdditiveProblem:
    """Five informative standard normal features of equal weight among ``n_noise`` useless ones.

    Noise has half the standard deviation of the signal.
    """
    rng = np.random.default_rng(seed)
    n_informative = len(SPARSE_FUNCTIONS)
    X = rng.standard_normal((n_rows, n_informative + n_noise))
    effects = np.zeros_like(X)
    for d, function in enumerate(SPARSE_FUNCTIONS):
        effect = function(X[:, d])
        effects[:, d] = (effect - effect.mean()) / effect.std()
    signal = effects.sum(axis=1)
    y = signal + 0.5 * signal.std() * rng.standard_normal(n_rows)
    return AdditiveProblem(X, y, effects)


@dataclass(frozen=True)
class PlantedProblem:
    """Data in which exactly ``pairs`` interact; ``signal`` is the truth without the noise."""

    X: Array
    y: Array
    signal: Array
    pairs: dict[str, tuple[int, int]]


def planted_pairs(seed: int, n_rows: int = 2000) -> PlantedProblem:
    """Ten standard normal features, three pairs that interact, four main effects, all of equal weight.

    - ``product``, columns 0 and 1: their product and nothing else, so no main effect at all.
    - ``correlated``, columns 2 and 3 (correlation 0.7): their product, of which the squares of the two
      can say all but an eighth.
    - ``ordinary``, columns 4 and 5: each has a main effect besides.

    Columns 6 and 7 have main effects only, 8 and 9 nothing. Noise has half the standard
    deviation of the signal.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 10))
    correlation = 0.7
    X[:, 3] = correlation * X[:, 2] + np.sqrt(1 - correlation**2) * X[:, 3]
    effects = np.column_stack(
        [
            X[:, 0] * X[:, 1],
            X[:, 2] * X[:, 3],
            np.tanh(2 * X[:, 4]) * X[:, 5],
            *(function(X[:, 4 + k]) for k, function in enumerate(SPARSE_FUNCTIONS[:4])),
        ]
    )
    signal = ((effects - effects.mean(axis=0)) / effects.std(axis=0)).sum(axis=1)
    y = signal + 0.5 * signal.std() * rng.standard_normal(n_rows)
    return PlantedProblem(
        X, y, signal, {"product": (0, 1), "correlated": (2, 3), "ordinary": (4, 5)}
    )


def large_problem(n_rows: int, n_columns: int, task: Task, seed: int = 0) -> Dataset:
    """Many rows of continuous features, every one of them informative.

    Filled column by column, so that making the data needs little more memory than the data.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((n_rows, n_columns))
    signal = np.zeros(n_rows)
    for column in range(n_columns):
        X[:, column] = rng.standard_normal(n_rows)
        signal += SPARSE_FUNCTIONS[column % len(SPARSE_FUNCTIONS)](X[:, column])
    signal -= signal.mean()
    signal /= signal.std()
    if task == "classification":
        y = (rng.random(n_rows) < 1 / (1 + np.exp(-2 * signal))).astype(int)
    else:
        y = signal + 0.5 * rng.standard_normal(n_rows)
    return Dataset(f"large-{n_rows}x{n_columns}", task, X, y)


def class_problem(n_rows: int, n_columns: int, n_classes: int, seed: int = 0) -> Dataset:
    """Classes whose log-odds are sums of functions of all columns, which differ between classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    functions = [SPARSE_FUNCTIONS[k % len(SPARSE_FUNCTIONS)](X[:, k]) for k in range(n_columns)]
    logits = np.column_stack(functions) @ rng.standard_normal((n_columns, n_classes))
    logits = 1.5 * (logits - logits.mean(axis=0)) / logits.std(axis=0)
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return Dataset(f"classes-{n_rows}x{n_columns}x{n_classes}", "multiclass", X, y)


def sparse_table(n_rows: int, n_columns: int, task: Task) -> Dataset:
    """The sparse problem at any size, as a regression: five columns matter."""
    if task != "regression":
        raise ValueError("the sparse problem is a regression")
    problem = sparse_problem(0, n_columns - len(SPARSE_FUNCTIONS), n_rows)
    return Dataset(f"sparse-{n_rows}x{n_columns}", task, problem.X, problem.y)
