"""Gaussian processes with the orthogonal additive kernel: evidence, posterior, prediction.

Three ways to the same thing, ``Posterior``:

- exact regression: the marginal likelihood.
- sparse regression: Titsias' collapsed bound with fixed inducing points.
- classification: logistic likelihood and the variational bound, with a Gaussian q of full covariance.
  q is held as one Gaussian pseudo-observation a row, and those are found by natural-gradient steps
  (Khan & Lin 2017) at all hyperparameters met. With the training rows as inducing points nothing but
  q's shape is approximate.

All maximise evidence plus the authors' Gamma(1, 0.2) prior on the variances of orders.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from benchmarks.peers.orthogonal_kernel import (
    Measure,
    Parameters,
    Rows,
    component,
    diagonal,
    embedding,
    gram,
)

LENGTHSCALES = (1e-3, 1e3)  # the authors' bounds
VARIANCES = (1e-8, 1e3)
NOISE = (1e-8, 1e1)
PRIOR_RATE = 0.2
JITTER = 1e-8  # naval, nearly without noise, shows it when there is more
# The authors start from little noise, lest all be explained as noise. With inducing points that does
# just this: the bound pays for what they miss, over the noise, and the quickest way out is no function
# at all (kin8nm).
START_NOISE = {"exact": 0.01, "sparse": 0.1}
QUADRATURE = 20
INNER_STEPS = 30
INNER_TOLERANCE = 1e-7  # of the bound, a row
CHUNK = 4096  # rows predicted at once


@dataclass(frozen=True)
class Search:
    """How the hyperparameters were found."""

    parameters: Parameters
    objective: float
    iterations: int
    converged: bool


class Learner(Protocol):
    """Rows and y, and what hyperparameters make of them."""

    def evidence(self, parameters: Parameters) -> Tensor: ...

    def posterior(self, parameters: Parameters) -> Posterior: ...


@dataclass(frozen=True)
class Posterior:
    """f at new rows x is Gaussian, with a(x) = root^-1 K(centres, x):

    mean a' coefficients, variance K(x, x) - |a|^2 + |spread^-1 a|^2 (the last where there is a ``spread``).
    """

    parameters: Parameters
    measures: tuple[Measure, ...]
    centres: Tensor
    root: Tensor
    coefficients: Tensor
    spread: Tensor | None

    def predict(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of f at each row."""
        with torch.no_grad():
            chunks = [self._predict(chunk) for chunk in values.split(CHUNK)]
        return torch.cat([mean for mean, _ in chunks]), torch.cat([part for _, part in chunks])

    def _predict(self, values: Tensor) -> tuple[Tensor, Tensor]:
        cross = gram(Rows.of(values), self.centres, self.parameters, self.measures)
        return self._project(cross, diagonal(values, self.parameters, self.measures))

    def effect(self, values: Tensor, column: int, training: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the function of one column, less its mean over ``training`` values."""

        def kernel(x: Tensor, z: Tensor) -> Tensor:
            return component(x, z, column, self.parameters, self.measures)

        with torch.no_grad():
            centres = self.centres[:, column]
            base = torch.stack([kernel(part, centres).sum(0) for part in training.split(CHUNK)])
            base = base.sum(0) / len(training)
            # The variance of the mean needs all pairs of training values: quantiles stand for many.
            levels = torch.linspace(0, 1, 513, dtype=values.dtype)
            few = torch.quantile(training, (levels[1:] + levels[:-1]) / 2)
            if len(training) <= len(few):
                few = training
            shared = kernel(few, few).mean()
            chunks = []
            for part in values.split(CHUNK):
                own = self.parameters.variances[1] * _unit_diagonal(self, part, column)
                prior = own - 2 * kernel(part, few).mean(1) + shared
                chunks.append(self._project(kernel(part, centres) - base, prior))
        return torch.cat([mean for mean, _ in chunks]), torch.cat([part for _, part in chunks])

    def _project(self, cross: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        a = torch.linalg.solve_triangular(self.root, cross.T, upper=False)
        variance = prior - a.square().sum(0)
        if self.spread is not None:
            variance = variance + _solve(self.spread, a).square().sum(0)
        return a.T @ self.coefficients, variance.clamp_min(0)


def _unit_diagonal(posterior: Posterior, x: Tensor, column: int) -> Tensor:
    lengthscale = posterior.parameters.lengthscales[column : column + 1]
    return (
        1 - embedding(x[:, None], lengthscale, posterior.measures[column : column + 1])[:, 0] ** 2
    )


def start_parameters(n_columns: int, order: int, noise: float) -> Parameters:
    """Length-scales one; variances one (the authors'), less where so many terms would swamp y."""
    terms = [1, n_columns, n_columns * (n_columns - 1) / 2]
    variances = [min(1.0, 10.0 / max(1.0, terms[k])) for k in range(order + 1)]
    return Parameters(
        torch.zeros(n_columns, dtype=torch.float64),
        torch.tensor(np.log(variances)),
        torch.tensor(math.log(noise), dtype=torch.float64),
    )


def maximise(
    objective: Callable[[Parameters], Tensor], start: Parameters, n_rows: int, max_iter: int
) -> Search:
    """L-BFGS within bounds, of an objective that is a sum over ``n_rows`` rows."""
    n_columns, n_orders = len(start.log_lengthscales), len(start.log_variances)

    def unpack(vector: Tensor) -> Parameters:
        return Parameters(vector[:n_columns], vector[n_columns : n_columns + n_orders], vector[-1])

    def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
        leaf = torch.tensor(vector, requires_grad=True)
        parameters = unpack(leaf)
        value = objective(parameters) - PRIOR_RATE * parameters.variances.sum()
        (-value / n_rows).backward()
        assert leaf.grad is not None
        return float(-value.detach() / n_rows), leaf.grad.numpy()

    ranges = [LENGTHSCALES] * n_columns + [VARIANCES] * n_orders + [NOISE]
    found = minimize(
        loss,
        torch.cat([start.log_lengthscales, start.log_variances, start.log_noise[None]]).numpy(),
        jac=True,
        method="L-BFGS-B",
        bounds=np.log(ranges),
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-7, "gtol": 1e-5},
    )
    best = unpack(torch.tensor(found.x))
    return Search(best, float(-found.fun * n_rows), int(found.nit), bool(found.status == 0))


def cholesky(matrix: Tensor) -> Tensor:
    """Cholesky factor, with as little added to the diagonal as it takes.

    What is added does not grow with the matrix: the gradient would have to know.
    """
    identity = torch.eye(len(matrix), dtype=matrix.dtype)
    for jitter in JITTER * 10.0 ** np.arange(8):
        root, failed = torch.linalg.cholesky_ex(matrix + jitter * identity)
        if not failed:
            return root
    raise ValueError("The kernel matrix has no Cholesky factor; are all values finite?")


def _solve(root: Tensor, right: Tensor) -> Tensor:
    matrix = right[:, None] if right.ndim == 1 else right
    return torch.linalg.solve_triangular(root, matrix, upper=False).reshape(right.shape)


# -- exact regression


class _Evidence(torch.autograd.Function):
    """log N(y; 0, K), whose gradient (alpha alpha' - K^-1) / 2 is cheaper than that of a factor."""

    @staticmethod
    def forward(ctx, covariance: Tensor, y: Tensor) -> Tensor:
        root = torch.linalg.cholesky(covariance)
        alpha = torch.cholesky_solve(y[:, None], root)[:, 0]
        ctx.save_for_backward(root, alpha)
        log_det = 2 * root.diagonal().log().sum()
        return -(y @ alpha + log_det + len(y) * math.log(2 * math.pi)) / 2

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        root, alpha = ctx.saved_tensors
        return gradient * (torch.outer(alpha, alpha) - torch.cholesky_inverse(root)) / 2, None


@dataclass(frozen=True)
class ExactRegression:
    """All rows, no approximation."""

    rows: Rows
    y: Tensor
    measures: tuple[Measure, ...]

    def covariance(self, parameters: Parameters) -> Tensor:
        noise = parameters.noise * torch.eye(len(self.rows), dtype=self.y.dtype)
        return gram(self.rows, self.rows.values, parameters, self.measures) + noise

    def evidence(self, parameters: Parameters) -> Tensor:
        """Log marginal likelihood."""
        return _Evidence.apply(self.covariance(parameters), self.y)

    def posterior(self, parameters: Parameters) -> Posterior:
        root = torch.linalg.cholesky(self.covariance(parameters))
        centres, mean = self.rows.values, _solve(root, self.y)
        return Posterior(parameters, self.measures, centres, root, mean, None)


# -- sparse regression


@dataclass(frozen=True)
class SparseRegression:
    """The rows seen through inducing points."""

    rows: Rows
    y: Tensor
    inducing: Tensor
    measures: tuple[Measure, ...]

    def evidence(self, parameters: Parameters) -> Tensor:
        """Titsias' lower bound of the log marginal likelihood (2009, eq. 9)."""
        y, noise = self.y, parameters.noise
        a = _whitened(self.rows, self.inducing, parameters, self.measures)[1]
        product = a @ a.T
        spread = _spread(product / noise)
        c = _solve(spread, a @ y) / noise
        prior = diagonal(self.rows.values, parameters, self.measures)
        missed = prior.sum() - product.diagonal().sum()
        log_det = 2 * spread.diagonal().log().sum() + len(y) * (2 * math.pi * noise).log()
        return -(log_det + y @ y / noise - c @ c + missed / noise) / 2

    def posterior(self, parameters: Parameters) -> Posterior:
        root, a = _whitened(self.rows, self.inducing, parameters, self.measures)
        spread = _spread(a @ a.T / parameters.noise)
        mean = torch.cholesky_solve((a @ self.y)[:, None], spread)[:, 0] / parameters.noise
        return Posterior(parameters, self.measures, self.inducing, root, mean, spread)


def _whitened(
    rows: Rows, inducing: Tensor, parameters: Parameters, measures: Sequence[Measure]
) -> tuple[Tensor, Tensor]:
    """The factor of K at the inducing points, and its solution of their K with the rows."""
    root = cholesky(gram(Rows.of(inducing), inducing, parameters, measures))
    if inducing is rows.values:
        return root, root.T
    cross = gram(rows, inducing, parameters, measures)
    return root, torch.linalg.solve_triangular(root, cross.T, upper=False)


def _spread(product: Tensor) -> Tensor:
    return torch.linalg.cholesky(torch.eye(len(product), dtype=product.dtype) + product)


# -- classification


@dataclass(frozen=True)
class Sites:
    """A Gaussian pseudo-observation of each row: precision, and precision times its value."""

    precision: Tensor
    shift: Tensor


@dataclass(frozen=True)
class Gaussian:
    """q, whitened: factor of its precision and mean; f of the rows at the quadrature's nodes; the bound."""

    spread: Tensor
    mean: Tensor
    f: Tensor
    bound: Tensor


class Classification:
    """The evidence lower bound of a logistic process; keeps its sites from one call to the next."""

    def __init__(
        self, rows: Rows, y: Tensor, inducing: Tensor, measures: tuple[Measure, ...]
    ) -> None:
        self.rows, self.y, self.inducing, self.measures = rows, y, inducing, measures
        self.sites = Sites(torch.full_like(y, 0.25), y - 0.5)
        self.nodes, self.weights = _quadrature()

    def evidence(self, parameters: Parameters) -> Tensor:
        """The bound at the best q. That has no slope in the sites, so they count as constants."""
        _, a = _whitened(self.rows, self.inducing, parameters, self.measures)
        prior = diagonal(self.rows.values, parameters, self.measures)
        with torch.no_grad():
            self.sites = self.settle(self.sites, a, prior)
        return self.gaussian(self.sites, a, prior).bound

    def posterior(self, parameters: Parameters) -> Posterior:
        with torch.no_grad():
            root, a = _whitened(self.rows, self.inducing, parameters, self.measures)
            prior = diagonal(self.rows.values, parameters, self.measures)
            self.sites = self.settle(self.sites, a, prior)
            q = self.gaussian(self.sites, a, prior)
        return Posterior(parameters, self.measures, self.inducing, root, q.mean, q.spread)

    def gaussian(self, sites: Sites, a: Tensor, prior: Tensor) -> Gaussian:
        """q of the sites, given the whitened kernel and the prior variances of the rows."""
        spread = _spread((a * sites.precision) @ a.T)
        mean = torch.cholesky_solve((a @ sites.shift)[:, None], spread)[:, 0]
        learned = _solve(spread, a).square().sum(0)
        variance = (prior - a.square().sum(0) + learned).clamp_min(1e-12)
        f = (a.T @ mean)[:, None] + variance.sqrt()[:, None] * self.nodes
        log_prob = self.y[:, None] * f - torch.nn.functional.softplus(f)
        # KL(q || N(0, I)); the trace of q's covariance less its size is -sum precision |spread^-1 a|^2.
        divergence = mean @ mean / 2 - sites.precision @ learned / 2
        divergence = divergence + spread.diagonal().log().sum()
        return Gaussian(spread, mean, f, (log_prob @ self.weights).sum() - divergence)

    def settle(self, sites: Sites, a: Tensor, prior: Tensor) -> Sites:
        """Natural-gradient steps to the best q; a step that makes the bound worse is halved."""
        q, step = self.gaussian(sites, a, prior), 1.0
        for _ in range(INNER_STEPS):
            p = torch.sigmoid(q.f)
            precision = (p * (1 - p)) @ self.weights
            shift = self.y - p @ self.weights + precision * (q.f @ self.weights)
            trial = Sites(
                torch.lerp(sites.precision, precision, step), torch.lerp(sites.shift, shift, step)
            )
            found = self.gaussian(trial, a, prior)
            gain = found.bound - q.bound
            if gain < -1e-9 * abs(q.bound):
                step /= 2
                continue
            sites, q = trial, found
            if gain < INNER_TOLERANCE * len(self.y):
                break
        return sites


def probability(mean: Tensor, variance: Tensor) -> Tensor:
    """P(y = 1) where f is Gaussian."""
    nodes, weights = _quadrature()
    return torch.sigmoid(mean[:, None] + variance.sqrt()[:, None] * nodes) @ weights


def _quadrature() -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE)
    return torch.tensor(nodes), torch.tensor(weights / weights.sum())
