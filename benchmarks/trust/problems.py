"""Made-up rows whose truth is known: Gu and Wahba's functions, pure noise, few rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import norm

from benchmarks.data.problems import AdditiveProblem
from benchmarks.data.sets import Array, Task

Function = Callable[[Array], Array]
Kind = Literal["gaussian", "bernoulli", "poisson"]
TASKS: dict[str, Task] = {
    "gaussian": "regression",
    "bernoulli": "classification",
    "poisson": "counts",
}

# Gu and Wahba's four functions on [0, 1], as in example 1 of mgcv's gamSim; the last one is zero.
GU_WAHBA: tuple[Function, ...] = (
    lambda x: 2 * np.sin(np.pi * x),
    lambda x: np.exp(2 * x),
    lambda x: 0.2 * x**11 * (10 * (1 - x)) ** 6 + 10 * (10 * x) ** 3 * (1 - x) ** 10,
    lambda x: np.zeros_like(x),
)
# By family: the scale of the noise, or of the functions on the link scale, as in mgcv's help pages.
SCALES: dict[str, float] = {"gaussian": 2.0, "bernoulli": 0.33, "poisson": 0.2}


@dataclass(frozen=True)
class Setting:
    """A way to draw rows of Gu and Wahba's functions.

    Columns are uniform, joined by a Gaussian copula of this correlation. ``heavy``: Student's t noise of 3
    degrees of freedom with the same standard deviation. ``overdispersed``: rates are multiplied by a gamma
    variable of mean one and variance one half.
    """

    kind: Kind
    n_rows: int
    correlation: float = 0.0
    heavy: bool = False
    overdispersed: bool = False

    @property
    def task(self) -> Task:
        return TASKS[self.kind]


def gu_wahba(setting: Setting, seed: int) -> AdditiveProblem:
    """Rows of a setting; effects are on the link scale, centred over the rows."""
    rng = np.random.default_rng(seed)
    size, n_columns = setting.n_rows, len(GU_WAHBA)
    covariance = np.full((n_columns, n_columns), setting.correlation)
    np.fill_diagonal(covariance, 1.0)
    X = norm.cdf(rng.standard_normal((size, n_columns)) @ np.linalg.cholesky(covariance).T)
    effects = np.column_stack([function(X[:, d]) for d, function in enumerate(GU_WAHBA)])
    signal, scale = effects.sum(axis=1), SCALES[setting.kind]
    if setting.kind == "gaussian":
        noise = rng.standard_t(3, size) / np.sqrt(3.0) if setting.heavy else rng.normal(size=size)
        return AdditiveProblem(X, signal + scale * noise, effects - effects.mean(axis=0))
    effects *= scale
    if setting.kind == "bernoulli":
        y = (rng.random(size) < 1 / (1 + np.exp(-scale * (signal - 5)))).astype(int)
    else:
        rate = np.exp(scale * signal)
        y = rng.poisson(rate * rng.gamma(2.0, 0.5, size) if setting.overdispersed else rate)
    return AdditiveProblem(X, y, effects - effects.mean(axis=0))


RATE = 5.0  # of counts that nothing explains


def noise_response(kind: str, size: int, rng: np.random.Generator) -> Array:
    """A response that no column explains: standard normal, a fair coin, Poisson counts of mean 5."""
    if kind == "gaussian":
        return rng.standard_normal(size)
    if kind == "bernoulli":
        return rng.integers(0, 2, size)
    return rng.poisson(RATE, size)


def noise_problem(
    kind: str, n_rows: int, n_columns: int, n_fresh: int, seed: int
) -> tuple[Array, Array, Array, Array]:
    """Standard normal columns and a response of pure noise: X and y, and fresh rows of both."""
    rng = np.random.default_rng([seed, n_rows, n_columns])
    X = rng.standard_normal((n_rows + n_fresh, n_columns))
    y = noise_response(kind, n_rows + n_fresh, rng)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


REAL: tuple[Function, ...] = (
    lambda x: np.sin(1.5 * x),
    lambda x: x**2,
    lambda x: np.tanh(2 * x),
)


def standardised(function: Function, std: float) -> Function:
    """The function with mean zero and this standard deviation under a standard normal column."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    mean = float(weights @ function(nodes))
    spread = float(np.sqrt(weights @ (function(nodes) - mean) ** 2))
    return lambda x: std * (function(x) - mean) / spread


def real_problem(
    n_rows: int, n_columns: int, n_fresh: int, seed: int, signal: float = 0.5
) -> tuple[Array, Array, Array, Array]:
    """Three columns with effects of standard deviation ``signal`` among noise columns; noise of one."""
    rng = np.random.default_rng([seed, n_rows, n_columns])
    X = rng.standard_normal((n_rows + n_fresh, n_columns))
    y = rng.standard_normal(n_rows + n_fresh)
    for d, function in enumerate(REAL):
        y += standardised(function, signal)(X[:, d])
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


@dataclass(frozen=True)
class Few:
    """A generator for few rows: uniform columns on [-1, 1], the mean of y, and its noise."""

    n_columns: int
    mean: Function
    noise: float


FEW: dict[str, Few] = {
    "line": Few(1, lambda X: X[:, 0], 0.5),
    "sine": Few(1, lambda X: np.sin(3 * X[:, 0]), 0.3),
    "three": Few(3, lambda X: X[:, 0] + X[:, 1] ** 2, 0.3),
    "null": Few(2, lambda X: np.zeros(len(X)), 1.0),
}


def few_problem(
    name: str, n_rows: int, n_fresh: int, seed: int
) -> tuple[Array, Array, Array, Array]:
    """Rows of one of ``FEW``: X and y, and fresh rows of both."""
    rng = np.random.default_rng([seed, n_rows])
    few = FEW[name]
    X = rng.uniform(-1, 1, (n_rows + n_fresh, few.n_columns))
    y = few.mean(X) + few.noise * rng.standard_normal(len(X))
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
