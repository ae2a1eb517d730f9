"""Log evidence of the additive model as a function of its hyperparameters (method.md 3 and 8).

In compressed coordinates the model is one Bayesian linear regression. Its prior is ``z ~ N(0, W)``,
``W_d = sum_g rho_g V_g' V_g``, where ``rho_g`` is by how much group ``g``'s prior variance has changed
since the tables were made; its Gram matrix is ``k G`` with ``k`` the noise precision. The evidence is

    log p(D | m) - 1/2 m' W^-1 m - 1/2 log |W| - 1/2 log |k G + W^-1|

at the posterior mean ``m`` (paper, eq. marglik), exact for a Gaussian likelihood. The determinant is
joint over all terms or, as in the paper, of each term's block: a lower bound. The intercept has a
flat prior: it is in the mean, not in the determinant. No jitter ever enters.

Precisions that are tuned take something from the data, and a network has many: with few rows the
evidence at its maximum promises too much. So what tuning climbs is the evidence less a charge,

    c / 2 sum_d log |I + k G_d W_d|

over the terms with several groups: their determinants count ``1 + c`` times (docs, method page).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from lanam.core.arrays import Array, quadratic_forms
from lanam.core.inference.prior import Prior, PriorPrecision, block_inverse, inverse_and_log_det

#: The intercept's prior is flat but for this, which only matters where the data says nothing of it: a
#: classifier's separable classes.
INTERCEPT_PRECISION = 1e-6

#: The share by which the determinants of terms with several groups count more. Measured: less does not
#: help where rows are few, more costs where they are many.
TUNING_CHARGE = 0.15

#: Adam's learning rate for log hyperparameters (the paper's).
RATE = 0.1

_LOG_STEP = 1.5
_LOG_REACH = 6.0
_RELAXATION = 1.3


@dataclass(frozen=True)
class Moments:
    """Adam's running means of a gradient and of its square."""

    first: Array
    second: Array
    count: int

    @classmethod
    def zeros(cls, size: int) -> Moments:
        """Before the first step."""
        return cls(np.zeros(size), np.zeros(size), 0)

    def step(self, gradient: Array, rate: float) -> tuple[Array, Moments]:
        """The ascent step, and the moments after it."""
        count = self.count + 1
        first = 0.9 * self.first + 0.1 * gradient
        second = 0.999 * self.second + 0.001 * np.square(gradient)
        scale = np.sqrt(second / (1.0 - 0.999**count)) + 1e-8
        return rate / (1.0 - 0.9**count) * first / scale, Moments(first, second, count)


#: A rule for steps of log hyperparameters. It is given the step to where the gradient would vanish if
#: nothing else changed, the gradient, and the moments of those before; it returns a step and the moments.
Update = Callable[[Array, Array, Moments], tuple[Array, Moments]]


def mackay(fixed_point: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    """To the fixed point at once (MacKay's)."""
    return fixed_point, moments


def ascend(fixed_point: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    """Along the gradient by Adam's rule (the paper's)."""
    return moments.step(gradient, RATE)


#: By the names that the estimators' argument ``evidence_update`` has for them.
UPDATES: Mapping[str, Update] = {"mackay": mackay, "gradient": ascend}


def at_noise(value: float, n_rows: float, noise: float) -> float:
    """A Gaussian log-likelihood from its ``value`` at unit noise without constants."""
    return value / noise - 0.5 * n_rows * math.log(2.0 * math.pi * noise)


@dataclass(frozen=True)
class WideLevels:
    """The levels of a wide term in the regression: independent effects ``u ~ N(0, rho I)`` (method page).

    Their Gram matrix is diagonal, so they are integrated out one by one: ``diagonal`` (K,), ``cross``
    (K, R + 1) with the other coordinates, ``target`` (K,), at unit noise; ``group`` is their prior's.
    """

    diagonal: Array
    cross: Array
    target: Array
    group: int


@dataclass(frozen=True)
class LevelPosterior:
    """Posterior of a wide term's levels: ``mean + coupling z + sqrt(own) e`` with independent ``e``.

    ``z`` is the error of all other coordinates.
    """

    mean: Array
    own: Array
    coupling: Array


@dataclass(frozen=True)
class LinearModel:
    """The regression of one linearisation at unit noise: ``constant + target' z - z' gram z / 2``.

    The intercepts, one an output, are the last coordinates. ``n_rows`` is None for likelihoods without
    a noise. ``log_rho_bound`` is how far each group's log prior variance may still rise.
    """

    gram: Array
    target: Array
    constant: float
    prior: Prior
    n_rows: float | None
    log_rho_bound: Array
    noise_bounds: tuple[float, float] = (0.0, math.inf)
    wide: WideLevels | None = None
    #: what rows' own precisions add to the log-likelihood
    offset: float = 0.0

    @property
    def intercepts(self) -> slice:
        """The intercepts' coordinates."""
        return slice(sum(self.prior.widths), len(self.target))

    def clip(self, log_rho: Array) -> Array:
        """Bring log variances within reach of the tables and within bounds."""
        return np.clip(log_rho, -_LOG_REACH, np.minimum(self.log_rho_bound, _LOG_REACH))

    def log_likelihood(
        self, mean: Array, noise: float, levels: LevelPosterior | None = None
    ) -> float:
        """Log-likelihood at coordinates ``mean`` and at a wide term's levels."""
        value = self.constant + float(mean @ (self.target - 0.5 * (self.gram @ mean)))
        if levels is not None and self.wide is not None:
            pull = self.wide.target - self.wide.cross @ mean
            value += float(levels.mean @ (pull - 0.5 * self.wide.diagonal * levels.mean))
        if self.n_rows is None:
            return value
        return at_noise(value, self.n_rows, noise) + self.offset


@dataclass(frozen=True)
class Hyper:
    """Log changes of all groups' prior variances, and the noise variance."""

    log_rho: Array
    noise: float


@dataclass(frozen=True)
class Posterior:
    """Posterior and evidence of a linear model at given hyperparameters.

    ``covariance`` is what terms and groups see: joint, or one block a term (and the intercept).
    ``charged`` is the derivative of twice the charge in the groups' log variances.
    """

    mean: Array
    covariance: Array
    evidence: float
    log_likelihood: float
    effective: Array
    energy: Array
    charge: float
    charged: Array
    levels: LevelPosterior | None = None

    @property
    def objective(self) -> float:
        """What tuning climbs."""
        return self.evidence - self.charge

    @property
    def n_effective(self) -> float:
        """Effective parameters of all terms."""
        return float(self.effective.sum())


def solve(model: LinearModel, hyper: Hyper, joint: bool) -> Posterior:
    """Posterior and evidence at ``hyper``."""
    prior = model.prior.precision(hyper.log_rho)
    free = model.intercepts
    own = _own_precision(model, prior, hyper)
    precision, target, log_det_levels = _without_levels(model, hyper, own)
    covariance, log_det = inverse_and_log_det(precision)
    mean = covariance @ target
    # |A_terms| = |A| times the determinant of the intercepts' posterior covariance; its slopes are what
    # the data says of the terms given them (coupled where the curvature differs between rows).
    known, log_det_known = inverse_and_log_det(covariance[free, free])
    log_det += log_det_known
    given_intercept = covariance - covariance[:, free] @ known @ covariance[free]
    if not joint:
        # The paper's posterior: every term's block inverted alone (eq. posterior).
        covariance, log_det = block_inverse(own, model.prior.blocks)
        covariance[free, free], _ = inverse_and_log_det(own[free, free])
        given_intercept = covariance
    effective, energy = prior.group_sums(mean, given_intercept)
    levels = None
    if model.wide is not None:
        levels = _level_posterior(model.wide, hyper, mean, joint)
        rho, group = math.exp(hyper.log_rho[model.wide.group]), model.wide.group
        variance = levels.own + quadratic_forms(levels.coupling, given_intercept)
        effective[group] = len(variance) - float(variance.sum()) / rho
        energy[group] = float(levels.mean @ levels.mean) / rho
    log_likelihood = model.log_likelihood(mean, hyper.noise, levels)
    occam_joint = log_det + log_det_levels + prior.log_det_covariance
    value = log_likelihood - 0.5 * (float(energy.sum()) + occam_joint)
    occam, alone = prior.alone(model.gram, hyper.noise)
    charge, charged = 0.5 * TUNING_CHARGE * occam, TUNING_CHARGE * alone
    return Posterior(
        mean, covariance, value, log_likelihood, effective, energy, charge, charged, levels
    )


def _own_precision(model: LinearModel, prior: PriorPrecision, hyper: Hyper) -> Array:
    """Posterior precision of the coordinates, were a wide term's levels known."""
    precision = model.gram / hyper.noise
    np.einsum("ii->i", precision)[model.intercepts] += INTERCEPT_PRECISION
    prior.add_to(precision)
    return precision


def _without_levels(
    model: LinearModel, hyper: Hyper, precision: Array
) -> tuple[Array, Array, float]:
    """Precision and target of the coordinates with a wide term's levels integrated out.

    The Schur complement of its diagonal block; the last value is that block's part of the evidence's
    determinant, ``log |I + rho D|``.
    """
    target = model.target / hyper.noise
    if model.wide is None:
        return precision, target, 0.0
    variance, cross = _level_variance(model.wide, hyper), model.wide.cross / hyper.noise
    shrunk = variance[:, None] * cross
    precision = precision - cross.T @ shrunk
    target = target - shrunk.T @ (model.wide.target / hyper.noise)
    log_det = -float(np.log(variance).sum()) + len(variance) * hyper.log_rho[model.wide.group]
    return precision, target, log_det


def _level_variance(wide: WideLevels, hyper: Hyper) -> Array:
    """Posterior variance of every level, were all else known."""
    return np.asarray(1.0 / (wide.diagonal / hyper.noise + math.exp(-hyper.log_rho[wide.group])))


def _level_posterior(wide: WideLevels, hyper: Hyper, mean: Array, joint: bool) -> LevelPosterior:
    variance = _level_variance(wide, hyper)
    pull = (wide.target - wide.cross @ mean) / hyper.noise
    coupling = -(variance / hyper.noise)[:, None] * wide.cross
    return LevelPosterior(variance * pull, variance, coupling if joint else 0.0 * coupling)


def marginal_precision(model: LinearModel, hyper: Hyper) -> Array:
    """Posterior precision of all coordinates, with a wide term's levels integrated out."""
    prior = model.prior.precision(hyper.log_rho)
    return _without_levels(model, hyper, _own_precision(model, prior, hyper))[0]


def levels_worth(model: LinearModel, hyper: Hyper, joint: bool, with_them: Posterior) -> float:
    """By how much the log evidence would fall without the wide term, all else as it is.

    ``with_them`` is the posterior at ``hyper``.
    """
    without = replace(model, wide=None)
    # Its group is then one of nothing.
    return with_them.evidence - solve(without, hyper, joint).evidence


def gradient(posterior: Posterior) -> Array:
    """Derivative of the objective in the groups' log prior variances (paper, eq. marglik, in logs)."""
    return 0.5 * (posterior.energy - posterior.effective - posterior.charged)


def noise_gradient(model: LinearModel, posterior: Posterior, noise: float) -> float:
    """Derivative of the objective in the log noise variance, at fixed prior."""
    assert model.n_rows is not None
    squares = _residual_squares(model, posterior, noise)
    charged = posterior.n_effective + float(posterior.charged.sum())
    return 0.5 * (squares / noise - model.n_rows + charged)


def _residual_squares(model: LinearModel, posterior: Posterior, noise: float) -> float:
    assert model.n_rows is not None
    value = posterior.log_likelihood - model.offset
    return -2.0 * noise * (value + 0.5 * model.n_rows * math.log(2.0 * math.pi * noise))


def _fixed_point(model: LinearModel, posterior: Posterior, noise: float) -> Array:
    """MacKay's step in logs: ``lambda_g = gamma_g / ||theta_g||^2``, ``noise = RSS / (N - gamma)``.

    With the charge in ``gamma``. Precisions are over-relaxed, because the fixed point is approached from
    one side, and take bounded steps.
    """
    tiny = 1e-12
    effective = posterior.effective + posterior.charged
    ratio = np.log((posterior.energy + tiny) / np.maximum(effective, tiny))
    step = np.clip(_RELAXATION * ratio, -_LOG_STEP, _LOG_STEP)
    if model.n_rows is None:
        return np.append(step, 0.0)
    # One degree of freedom is the intercept's.
    freedom = max(model.n_rows - float(effective.sum()) - 1.0, 1.0)
    squares = _residual_squares(model, posterior, noise)
    return np.append(step, math.log(max(squares / freedom, np.finfo(float).tiny) / noise))


def step(
    model: LinearModel, hyper: Hyper, posterior: Posterior, update: Update, moments: Moments
) -> tuple[Hyper, Moments]:
    """The hyperparameters after a step by a rule, and the moments after it.

    Within a bounded reach from where the tables were made, beyond which they would no longer be the
    right ones.
    """
    slope = 0.0 if model.n_rows is None else noise_gradient(model, posterior, hyper.noise)
    slopes = np.append(gradient(posterior), slope)
    logs, moments = update(_fixed_point(model, posterior, hyper.noise), slopes, moments)
    log_rho = model.clip(hyper.log_rho + logs[:-1])
    if model.n_rows is None:
        return Hyper(log_rho, hyper.noise), moments
    noise = float(np.clip(hyper.noise * math.exp(logs[-1]), *model.noise_bounds))
    return Hyper(log_rho, noise), moments


def tune(
    model: LinearModel, noise: float, joint: bool, update: Update, max_steps: int, tol: float
) -> tuple[Hyper, Posterior]:
    """Raise the objective of a linear model over its hyperparameters; returns the best seen."""
    hyper = Hyper(np.zeros(model.prior.n_groups), noise)
    posterior = solve(model, hyper, joint)
    best, best_posterior = hyper, posterior
    moments = Moments.zeros(model.prior.n_groups + 1)
    first, stalled = posterior.objective, 0
    for _ in range(max_steps):
        hyper, moments = step(model, hyper, posterior, update, moments)
        posterior = solve(model, hyper, joint)
        # These tables are remade anyway: the last per cent of what they can give is not worth a step.
        enough = tol + 0.01 * (best_posterior.objective - first)
        stalled = 0 if posterior.objective > best_posterior.objective + enough else stalled + 1
        if posterior.objective > best_posterior.objective:
            best, best_posterior = hyper, posterior
        if stalled >= 2:
            break
    return best, best_posterior
