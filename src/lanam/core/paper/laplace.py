"""The Laplace evidence at given parameters, as a function of the hyperparameters.

At trained parameters ``theta*`` with prediction ``f*`` it is (paper, eq. marglik)

    log p(D | f*) - 1/2 theta*' Lambda theta* - 1/2 log |H / noise + Lambda| + 1/2 log |Lambda|.

``theta*``, ``f*`` and the curvature ``H`` at unit noise stay; precisions and noise move. ``H`` is the
Gauss-Newton matrix of all terms together, of each term alone, or Kronecker-factored. The intercept
has a flat prior and is in no determinant. The prediction does not change when terms are centred
over the data and the intercept takes their means, so exact curvature is that of centred terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, sum_by
from lanam.core.inference import gauss_newton
from lanam.core.inference.gauss_newton import Problem, State, TermState
from lanam.core.inference.prior import Prior, inverse_and_log_det
from lanam.core.paper import kron
from lanam.core.paper.kron import KronBlock
from lanam.core.rows import statistics
from lanam.core.terms import networks
from lanam.core.terms.linearise import centred, tangent
from lanam.core.terms.term import SmoothTerm

#: Tables are made for precisions that may still fall by this factor.
_HEADROOM = 20.0

#: The precisions' bounds: beyond them a group is free, or off.
_LOG_PRECISION_BOUNDS = (-12.0, 18.0)


@dataclass(frozen=True)
class Hyper:
    """Log prior precisions of all groups of all terms, and the log noise variance."""

    log_precision: Array
    log_noise: float

    @property
    def noise(self) -> float:
        """The noise variance."""
        return math.exp(self.log_noise)

    def moved(self, step: Array, noise_bounds: tuple[float, float] | None) -> Hyper:
        """After a step in all logs (the noise's last), within bounds."""
        log_precision = np.clip(self.log_precision + step[:-1], *_LOG_PRECISION_BOUNDS)
        if noise_bounds is None:
            return Hyper(log_precision, self.log_noise)
        bounds = np.log(noise_bounds)
        return Hyper(log_precision, float(np.clip(self.log_noise + step[-1], *bounds)))


@dataclass(frozen=True)
class TangentCurvature:
    """Exact Gauss-Newton curvature in coordinates compressed at the log precisions ``made_at``."""

    gram: Array
    prior: Prior
    made_at: Array
    joint: bool

    def measure(self, hyper: Hyper) -> tuple[float, Array]:
        """``log |H / noise + Lambda| - log |Lambda|``, and every group's effective parameters."""
        prior = self.prior.precision(self.made_at - hyper.log_precision)
        precision = self.gram / hyper.noise
        prior.add_to(precision)
        covariance, log_det = np.zeros_like(precision), prior.log_det_covariance
        blocks = (slice(0, len(precision)),) if self.joint else self.prior.blocks
        for block in blocks:
            covariance[block, block], own = inverse_and_log_det(precision[block, block])
            log_det += own
        effective, _ = prior.group_sums(np.zeros(len(precision)), covariance)
        return log_det, effective


@dataclass(frozen=True)
class KronCurvature:
    """Kronecker-factored curvature of every term: nothing but eigenvalues."""

    blocks: tuple[KronBlock, ...]

    @cached_property
    def _spectrum(self) -> tuple[Array, NDArray[np.intp]]:
        """Eigenvalues of all terms, and their groups among all terms' groups."""
        values, groups, first = [np.empty(0)], [np.empty(0, dtype=np.intp)], 0
        for block in self.blocks:
            values.append(block.eigenvalues)
            groups.append(block.groups + first)
            first += int(block.groups.max()) + 1
        return np.concatenate(values), np.concatenate(groups)

    def measure(self, hyper: Hyper) -> tuple[float, Array]:
        """``log |H / noise + Lambda| - log |Lambda|``, and every group's effective parameters."""
        values, groups = self._spectrum
        ratio = values * np.exp(-hyper.log_precision - hyper.log_noise)[groups]
        effective = sum_by(groups, ratio / (1.0 + ratio), len(hyper.log_precision))
        return float(np.log1p(ratio).sum()), effective


@dataclass(frozen=True)
class Evidence:
    """The log evidence at some hyperparameters and what moves them.

    ``slope`` is its derivative in the log precisions and, last, in the log noise variance.
    """

    value: float
    effective: Array
    energy: Array
    slope: Array

    @property
    def n_effective(self) -> float:
        """Effective parameters of all terms."""
        return float(self.effective.sum())


@dataclass(frozen=True)
class Laplace:
    """The evidence's ingredients that stay while the hyperparameters move.

    ``log_likelihood`` is at unit noise, ``squares`` is ``||theta_g||^2`` of every group.
    """

    log_likelihood: float
    squares: Array
    n_rows: float | None
    curvature: TangentCurvature | KronCurvature
    noise_bounds: tuple[float, float] | None = None

    def evidence(self, hyper: Hyper) -> Evidence:
        """The log evidence at ``hyper``.

        Its slope in a log precision is ``(P - lambda tr Sigma - lambda ||theta||^2) / 2`` (paper, the
        gradient of eq. marglik), where ``P - lambda tr Sigma`` are the effective parameters.
        """
        log_det, effective = self.curvature.measure(hyper)
        energy = np.exp(hyper.log_precision) * self.squares
        log_likelihood, noise_slope = self.log_likelihood, 0.0
        if self.n_rows is not None:
            log_likelihood /= hyper.noise
            noise_slope = -log_likelihood - 0.5 * (self.n_rows - float(effective.sum()))
            log_likelihood -= 0.5 * self.n_rows * (math.log(2.0 * math.pi) + hyper.log_noise)
        value = log_likelihood - 0.5 * (float(energy.sum()) + log_det)
        return Evidence(
            value, effective, energy, np.append(0.5 * (effective - energy), noise_slope)
        )

    def mackay_step(self, hyper: Hyper, now: Evidence) -> Array:
        """Where MacKay's updates lead, as a step in the logs (method.md 3)."""
        tiny = 1e-12
        step = np.log(np.maximum(now.effective, tiny) / (now.energy + tiny))
        if self.n_rows is None:
            return np.append(step, 0.0)
        # One degree of freedom is the intercept's.
        freedom = max(self.n_rows - now.n_effective - 1.0, 1.0)
        noise = max(-2.0 * self.log_likelihood / freedom, tiny)
        return np.append(step, math.log(noise) - hyper.log_noise)


def trained(problem: Problem, thetas: Sequence[Array], intercept: float, hyper: Hyper) -> State:
    """The state of trained networks: values centred, the intercept taking their means."""
    precisions = per_term(problem, np.exp(hyper.log_precision))
    known = []
    for term, theta, share, precision in zip(
        problem.terms, thetas, problem.shares, precisions, strict=True
    ):
        assert isinstance(term, SmoothTerm)
        values = networks.forward(term.architecture, theta, term.entries.network_inputs)
        # A pair is trained as its pure part; others give their mean to the intercept.
        if not term.joint:
            intercept += float(share @ values)
        values = centred(term, values[:, None], share)[:, 0]
        jacobian = tangent(term, theta, share)
        known.append(TermState(theta, jacobian, precision, precision, values))
    return State(tuple(known), intercept, hyper.noise)


def retuned(problem: Problem, state: State, hyper: Hyper, now: Evidence) -> State:
    """The same networks at other hyperparameters, and the evidence there."""
    precisions = per_term(problem, np.exp(hyper.log_precision))
    return State(
        tuple(
            replace(known, precision=precision, smallest_precision=precision)
            for known, precision in zip(state.terms, precisions, strict=True)
        ),
        state.intercept,
        hyper.noise,
        now.value,
        now.n_effective,
    )


def per_term(problem: Problem, of_groups: Array) -> list[Array]:
    """Values of all groups, a vector a term."""
    parts, start = [], 0
    for term in problem.terms:
        stop = start + int(term.group_index.max()) + 1
        parts.append(of_groups[start:stop])
        start = stop
    return parts


def approximate(
    problem: Problem, state: State, curvature: str, rng: np.random.Generator
) -> Laplace:
    """Expand around trained networks; the evidence may then be asked near their precisions."""
    log_likelihood = statistics.log_likelihood(
        problem.rows, problem.likelihood, state.values, state.intercept
    )
    squares = [
        sum_by(term.group_index, np.square(known.expansion), len(known.precision))
        for term, known in zip(problem.terms, state.terms, strict=True)
    ]
    made: TangentCurvature | KronCurvature
    if curvature == "kron":
        made = KronCurvature(kron.blocks(problem, state))
    else:
        # Directions count as visible at a fraction of the noise, because precisions may fall.
        linear = gauss_newton.regression(
            problem, replace(state, noise=state.noise / _HEADROOM), rng, fine=True
        )
        made_at = np.concatenate([np.empty(0), *(np.log(known.precision) for known in state.terms)])
        made = TangentCurvature(
            linear.model.gram[:-1, :-1], linear.model.prior, made_at, problem.joint
        )
    return Laplace(
        log_likelihood,
        np.concatenate([np.empty(0), *squares]),
        problem.n_rows,
        made,
        problem.likelihood.noise_bounds,
    )
