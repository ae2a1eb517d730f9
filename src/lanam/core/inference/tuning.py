"""Tuning: the hyperparameters that maximise the objective of one linearisation (method.md 3).

MacKay's steps need little: the mean, and each group's effective degrees of freedom. An exact posterior
costs the cube of all coordinates. Where these are many, most steps are therefore approximate. With ``A``
the posterior precision,

- the mean is that of some conjugate gradient steps from the last one, preconditioned by each term's own
  block of ``A``: columns that hardly correlate make ``A`` nearly block-diagonal,
- a group's effective degrees of freedom are those that it has if its term is alone, times the ratio of the
  two at the last exact posterior.

An exact posterior follows when these steps have converged, with new ratios. Where the exact steps stop the
approximate ones stop, too, so that both have the same fixed points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from lanam.core.arrays import Array, sum_by
from lanam.core.inference import evidence
from lanam.core.inference.evidence import (
    INTERCEPT_PRECISION,
    Estimate,
    Hyper,
    LinearModel,
    Moments,
    Sums,
    Update,
    level_posterior,
    mackay,
)
from lanam.core.inference.prior import Alone, PriorPrecision

#: Numbers of coordinates from which on an exact posterior costs more than approximate steps.
WIDE = 600

#: Approximate steps between exact ones, and conjugate gradient steps in each of them.
_STEPS = 30
_GRADIENT_STEPS = 8
_GRADIENT_TOL = 1e-3
#: Approximate steps, and an exact one after them, that gain less than this many times the tolerance end it.
_SLACK = 5.0


def tune(
    model: LinearModel,
    hyper: Hyper,
    joint: bool,
    update: Update,
    max_steps: int,
    tol: float,
    approximate: bool = False,
) -> tuple[Hyper, Estimate]:
    """Maximise the objective of a linear model over its hyperparameters; returns the best iterate.

    Steps may be ``approximate`` where the posterior is joint and the update MacKay's.
    """
    posterior = evidence.estimate(model, hyper, joint)
    best, best_posterior = hyper, posterior
    moments = none = Moments.zeros(model.prior.n_groups + 1)
    first, stalled = posterior.objective, 0
    approximate = approximate and joint and update is mackay
    least = (_SLACK if approximate else 1.0) * tol
    for _ in range(max_steps):
        if approximate:
            hyper = _approach(model, hyper, posterior, least)
        else:
            hyper, moments = evidence.step(model, hyper, posterior, update, moments)
        posterior = evidence.estimate(model, hyper, joint)
        rise = posterior.objective - best_posterior.objective
        # The tables are recomputed anyway: the last per cent of the gain is not worth a step.
        enough = least + 0.01 * (best_posterior.objective - first)
        stalled = 0 if rise > enough else stalled + 1
        if rise > 0.0:
            best, best_posterior = hyper, posterior
        elif approximate or (update is mackay and (moments.second > 1.0).any()):
            # A step that went too far beyond the fixed point is taken again; from the start on, if terms
            # depend on each other too much for approximate steps.
            approximate = approximate and best_posterior.objective > first
            hyper, posterior, moments = best, best_posterior, none
        if stalled >= (1 if approximate else 2):
            break
    return best, best_posterior


def _approach(model: LinearModel, hyper: Hyper, posterior: Estimate, tol: float) -> Hyper:
    """The fixed point of approximate steps from an exact posterior on."""
    near = _Near.of(model, hyper, posterior)
    moments, mean = Moments.zeros(model.prior.n_groups + 1), posterior.mean
    sums: Sums = posterior
    for _ in range(_STEPS):
        before, slope = hyper, np.abs(evidence.gradient(sums))
        hyper, moments = evidence.step(model, hyper, sums, mackay, moments)
        gain = float(slope @ np.abs(hyper.log_rho - before.log_rho))
        if model.n_rows is not None:
            gain += model.n_rows * math.log(hyper.noise / before.noise) ** 2
        if gain < tol:
            break
        mean, sums = near.at(hyper, mean)
    return hyper


@dataclass(frozen=True)
class _Near:
    """The sums near an exact posterior.

    ``shares`` are the ratios of the groups' edf and of those without rare levels to the edf alone;
    ``energy_shares`` is that of the energy without rare levels.
    """

    model: LinearModel
    exact: Estimate
    shares: Array
    tuning_shares: Array
    energy_shares: Array

    @classmethod
    def of(cls, model: LinearModel, hyper: Hyper, exact: Estimate) -> _Near:
        of_networks = model.prior.precision(hyper.log_rho).alone(model.gram, hyper.noise)
        alone = _effective_alone(model, hyper, of_networks.effective)
        return cls(
            model,
            exact,
            _ratio(exact.effective, alone),
            _ratio(exact.tuning_effective, alone),
            _ratio(exact.tuning_energy, exact.energy),
        )

    def at(self, hyper: Hyper, mean: Array) -> tuple[Array, Sums]:
        """The mean and the sums at other hyperparameters; ``mean`` is that of nearby ones."""
        model = self.model
        prior = model.prior.precision(hyper.log_rho)
        alone = prior.alone(model.gram, hyper.noise)
        mean = _mean(model, hyper, prior, alone, mean)
        energy, levels = prior.energy(mean), None
        if (integrated := model.high_cardinality) is not None:
            levels = level_posterior(integrated, hyper, mean, joint=True)
            rho = math.exp(hyper.log_rho[integrated.group])
            energy[integrated.group] = float(levels.mean @ levels.mean) / rho
        effective = _effective_alone(model, hyper, alone.effective)
        return mean, Sums(
            log_likelihood=model.log_likelihood(mean, hyper.noise, levels),
            effective=self.shares * effective,
            energy=energy,
            penalty_gradient=model.tuning_penalty * alone.penalised,
            tuning_effective=self.tuning_shares * effective,
            tuning_energy=self.energy_shares * energy,
            rare=self.exact.rare,
        )


def _ratio(part: Array, whole: Array) -> Array:
    """A ratio of sums, one where there is nothing to compare."""
    return np.divide(part, whole, out=np.ones_like(part), where=whole > np.finfo(float).tiny)


def _effective_alone(model: LinearModel, hyper: Hyper, of_networks: Array) -> Array:
    """The groups' edf if each term were the only one, and each coordinate of a single group.

    ``of_networks`` are those of the terms with several groups (``Alone.effective``).
    """
    columns, groups = model.prior.plain
    information = np.diag(model.gram)[columns] / hyper.noise * np.exp(hyper.log_rho[groups])
    shrunk = information / (1.0 + information)
    effective = of_networks + sum_by(groups, shrunk, model.prior.n_groups)
    if (levels := model.high_cardinality) is not None:
        information = levels.diagonal / hyper.noise * math.exp(hyper.log_rho[levels.group])
        effective[levels.group] = float((information / (1.0 + information)).sum())
    return np.asarray(effective)


def _mean(
    model: LinearModel, hyper: Hyper, prior: PriorPrecision, alone: Alone, near: Array
) -> Array:
    """The posterior mean, by conjugate gradients from a near one."""
    times, levels, noise = model.prior.times, model.high_cardinality, hyper.noise
    own = np.zeros(len(model.target))
    own[model.prior.plain[0]] = prior.plain
    own[model.intercepts] = INTERCEPT_PRECISION
    along = 1.0 / (np.diag(model.gram) / noise + own)

    def precision(vector: Array) -> Array:
        result = model.gram @ vector / noise + times(prior.inverse, own, vector)
        return result if levels is None else result - by_levels(levels.cross @ vector)

    def by_levels(pull: Array) -> Array:
        """What the categories of a high-cardinality term take over from the coordinates."""
        assert levels is not None
        return evidence.level_variance(levels, hyper) * pull @ levels.cross / noise**2

    target = model.target / noise
    if levels is not None:
        target = target - by_levels(levels.target)
    shape = (len(target), len(target))
    return np.asarray(
        cg(
            LinearOperator(shape, precision),
            target,
            near,
            rtol=_GRADIENT_TOL,
            maxiter=_GRADIENT_STEPS,
            M=LinearOperator(shape, lambda vector: times(alone.covariance, along, vector)),
        )[0]
    )
