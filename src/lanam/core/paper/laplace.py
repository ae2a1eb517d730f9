"""The Laplace evidence at given parameters, as a function of the hyperparameters.

At trained parameters ``theta*`` with prediction ``f*`` it is (paper, eq. marglik)

    log p(D | f*) - 1/2 theta*' Lambda theta* - 1/2 log |H / noise + Lambda| + 1/2 log |Lambda|.

``theta*``, ``f*`` and the curvature ``H`` at unit noise are fixed; precisions and noise vary. ``H`` is the
Gauss-Newton matrix of all terms jointly, of each term alone, or Kronecker-factored. The intercept has a
flat prior and is in no determinant. Centring terms over the data, with their means in the intercept,
leaves the prediction unchanged, so exact curvature is that of centred terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lanam.core.arrays import Array
from lanam.core.inference.posterior import Determinant
from lanam.core.inference.problem import Problem, State, TermState
from lanam.core.inference.solver import Curvature
from lanam.core.paper import trained
from lanam.core.rows import statistics
from lanam.core.terms.linearise import centred, tangent

#: Bounds of the log precisions: beyond them a group is unpenalised, or dropped.
_LOG_PRECISION_BOUNDS = (-12.0, 18.0)


@dataclass(frozen=True)
class LogHyper:
    """Log prior precisions of all groups of all terms, and the log noise variance."""

    log_precision: Array
    log_noise: float

    @property
    def noise(self) -> float:
        """The noise variance."""
        return math.exp(self.log_noise)

    def moved(self, step: Array, noise_bounds: tuple[float, float] | None) -> LogHyper:
        """After a bounded step in all logs, the noise's last."""
        log_precision = np.clip(self.log_precision + step[:-1], *_LOG_PRECISION_BOUNDS)
        if noise_bounds is None:
            return LogHyper(log_precision, self.log_noise)
        bounds = np.log(noise_bounds)
        return LogHyper(log_precision, float(np.clip(self.log_noise + step[-1], *bounds)))


@dataclass(frozen=True)
class Evidence:
    """The log evidence at some hyperparameters, and its ``gradient`` in their logs, the noise's last."""

    value: float
    effective: Array
    energy: Array
    gradient: Array

    @property
    def n_effective(self) -> float:
        """Effective parameters of all terms."""
        return float(self.effective.sum())


@dataclass(frozen=True)
class Laplace:
    """What the evidence is computed from at any hyperparameters.

    ``log_likelihood`` is at unit noise, ``squares`` is ``||theta_g||^2`` of every group.
    """

    log_likelihood: float
    squares: Array
    n_rows: float | None
    determinant: Determinant
    noise_bounds: tuple[float, float] | None = None

    def evidence(self, hyper: LogHyper) -> Evidence:
        """The log evidence at ``hyper``.

        Its gradient in a log precision is ``(P - lambda tr Sigma - lambda ||theta||^2) / 2`` (paper, the
        gradient of eq. marglik), where ``P - lambda tr Sigma`` are the effective parameters.
        """
        log_det, effective = self.determinant(hyper.log_precision, hyper.noise)
        energy = np.exp(hyper.log_precision) * self.squares
        log_likelihood, noise_gradient = self.log_likelihood, 0.0
        if self.n_rows is not None:
            log_likelihood /= hyper.noise
            noise_gradient = -log_likelihood - 0.5 * (self.n_rows - float(effective.sum()))
            log_likelihood -= 0.5 * self.n_rows * (math.log(2.0 * math.pi) + hyper.log_noise)
        value = log_likelihood - 0.5 * (float(energy.sum()) + log_det)
        return Evidence(
            value, effective, energy, np.append(0.5 * (effective - energy), noise_gradient)
        )

    def mackay_step(self, hyper: LogHyper, now: Evidence) -> Array:
        """MacKay's update as a step in the logs (method.md 3)."""
        tiny = 1e-12
        step = np.log(np.maximum(now.effective, tiny) / (now.energy + tiny))
        if self.n_rows is None:
            return np.append(step, 0.0)
        # The intercept takes one degree of freedom.
        freedom = max(self.n_rows - now.n_effective - 1.0, 1.0)
        noise = max(-2.0 * self.log_likelihood / freedom, tiny)
        return np.append(step, math.log(noise) - hyper.log_noise)


def state_of(
    problem: Problem,
    parameters: Sequence[Array],
    intercept: Array,
    hyper: LogHyper,
    *,
    tangents: bool = True,
) -> State:
    """The state at trained parameters (K, P) of every term: centred values, their means in the intercept.

    Without ``tangents`` it has no Jacobians, which only exact curvature needs.
    """
    precisions = trained.per_term(problem.terms, np.exp(hyper.log_precision))
    terms = []
    for term, own, mass, precision in zip(
        problem.terms, parameters, problem.data_mass, precisions, strict=True
    ):
        values = trained.functions(term, own)
        # Pure joint terms are trained as their pure part; others give their mean to the intercept.
        if not (term.joint and term.pure):
            intercept = intercept + mass @ values
        values = centred(term, values.reshape(len(mass), -1), mass).reshape(values.shape)
        # Each output's functions have features of their own.
        jacobian = np.empty((len(mass), 0))
        if tangents:
            jacobian = np.hstack([tangent(term, of_output, mass) for of_output in own])
        terms.append(TermState(own.ravel(), jacobian, precision, precision, values))
    several = problem.likelihood.n_outputs > 1
    return State(tuple(terms), intercept if several else float(intercept[0]), hyper.noise)


def retuned(problem: Problem, state: State, hyper: LogHyper, now: Evidence) -> State:
    """The same networks at other hyperparameters, and the evidence there."""
    precisions = trained.per_term(problem.terms, np.exp(hyper.log_precision))
    terms = tuple(
        replace(term, precision=precision, smallest_precision=precision)
        for term, precision in zip(state.terms, precisions, strict=True)
    )
    state = replace(state, terms=terms, noise=hyper.noise)
    return replace(state, evidence=now.value, n_effective=now.n_effective)


def approximate(problem: Problem, state: State, curvature: Curvature) -> Laplace:
    """The Laplace approximation around trained networks."""
    log_likelihood = statistics.log_likelihood(
        problem.rows, problem.likelihood_at(state), state.values, state.intercept
    )
    squares = [
        trained.sums_of_squares(term, term_state.expansion)
        for term, term_state in zip(problem.terms, state.terms, strict=True)
    ]
    return Laplace(
        log_likelihood,
        np.concatenate([np.empty(0), *squares]),
        problem.n_rows,
        curvature.determinant(problem, state),
        problem.likelihood.noise_bounds,
    )
