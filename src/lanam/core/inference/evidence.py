"""Log evidence of the additive model as a function of its hyperparameters (method.md 3 and 8).

In compressed coordinates the model is one Bayesian linear regression. Its prior is ``z ~ N(0, W)``,
``W_d = sum_g rho_g V_g' V_g``, where ``rho_g`` is the factor by which group ``g``'s prior variance has
changed since the tables were made; its Gram matrix is ``k G`` with ``k`` the noise precision. The
evidence is

    log p(D | m) - 1/2 m' W^-1 m - 1/2 log |W| - 1/2 log |k G + W^-1|

at the posterior mean ``m`` (paper, eq. marglik), exact for a Gaussian likelihood. The determinant is
joint over all terms or, as in the paper, of each term's block: a lower bound. The intercept has a
flat prior: it is in the mean, not in the determinant. No jitter ever enters.

Tuned precisions fit the data, and a network has many of them: with few rows the maximised evidence is
optimistic. So the objective of tuning is the evidence less a penalty,

    c / 2 sum_d log |I + k G_d W_d|

over the terms with several groups: their determinants count ``1 + c`` times (docs, method page).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from lanam.core.arrays import Array
from lanam.core.inference.covariance import Covariance, Dense, Factored
from lanam.core.inference.prior import (
    Prior,
    PriorPrecision,
    RareLevels,
    block_inverse,
    conditioned,
    inverse_and_log_det,
)

#: The intercept's prior precision, nearly flat: it matters only where the data does not determine the
#: intercept, as for separable classes.
INTERCEPT_PRECISION = 1e-6

#: The additional weight ``c`` of the determinants of terms with several groups, where rows are many: less
#: does not help with few rows, more hurts with many.
TUNING_PENALTY = 0.15

#: Adam's learning rate for log hyperparameters (the paper's).
RATE = 0.1

_LOG_STEP = 1.5
_LOG_REACH = 6.0
_RELAXATION = 1.3

#: The growth of steps that keep their sign, and their largest multiple.
_GROWTH = 1.5
_FURTHEST = 8.0


def tuning_penalty(n_columns: int, n_rows: float) -> float:
    """The weight of the tuning penalty: it grows with the number of columns per row.

    Among many columns the tuned precisions of some fit the noise (docs, method page).
    """
    return TUNING_PENALTY + min(n_columns / n_rows, 1.0)


@dataclass(frozen=True)
class Moments:
    """Adam's running means of a gradient and of its square."""

    first: Array
    second: Array
    count: int

    @classmethod
    def zeros(cls, size: int) -> Moments:
        """Moments before the first step."""
        return cls(np.zeros(size), np.zeros(size), 0)

    def step(self, gradient: Array, rate: float) -> tuple[Array, Moments]:
        """The ascent step, and the moments after it."""
        count = self.count + 1
        first = 0.9 * self.first + 0.1 * gradient
        second = 0.999 * self.second + 0.001 * np.square(gradient)
        scale = np.sqrt(second / (1.0 - 0.999**count)) + 1e-8
        return rate / (1.0 - 0.9**count) * first / scale, Moments(first, second, count)


#: A rule for steps of log hyperparameters: the step to the fixed point (where the gradient would vanish if
#: nothing else changed), the gradient and Adam's moments to a step and the new moments.
Update = Callable[[Array, Array, Moments], tuple[Array, Moments]]


def mackay(fixed_point: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    """MacKay's rule: the fixed point, and the further beyond it the longer it stays on one side.

    A variance near zero grows slowly by the rule itself: its energy and its edf vanish alike. The moments
    hold the last fixed point and how far beyond it each step went; the noise, the last one, is not slow.
    """
    same = np.sign(fixed_point) == np.sign(moments.first)
    factor = np.where(same, np.clip(_GROWTH * moments.second, 1.0, _FURTHEST), 1.0)
    factor[-1] = 1.0
    return factor * fixed_point, Moments(fixed_point, factor, moments.count + 1)


def ascend(fixed_point: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    """The paper's rule: Adam along the gradient."""
    return moments.step(gradient, RATE)


#: By the values of the estimators' ``evidence_update``.
UPDATES: Mapping[str, Update] = {"mackay": mackay, "gradient": ascend}


def at_noise(value: float, n_rows: float, noise: float) -> float:
    """A Gaussian log-likelihood from its ``value`` at unit noise without constants."""
    return value / noise - 0.5 * n_rows * math.log(2.0 * math.pi * noise)


@dataclass(frozen=True)
class HighCardinality:
    """The levels of a term that is integrated out: independent effects ``u ~ N(0, rho I)`` (method page).

    Their Gram matrix is diagonal, so they are integrated out one by one: ``diagonal`` (K,), ``cross``
    (K, R + 1) with the other coordinates, ``target`` (K,), at unit noise; ``group`` is their prior's.

    Several outputs of a level have a dense block of the Gram matrix. Its eigenvectors make it diagonal, and
    the prior stays the same: coordinates are then by output and ``u = axes @ coordinates`` at each level,
    with ``axes`` (levels, outputs, outputs).
    """

    diagonal: Array
    cross: Array
    target: Array
    group: int
    rare: RareLevels | None = None
    axes: Array | None = None

    @classmethod
    def of_outputs(
        cls, scale: float, cross: Array, target: Array, group: int, rare: RareLevels | None
    ) -> HighCardinality:
        """From ``level_equations``, for effects in units of ``scale``."""
        if cross.ndim == 2:
            return cls(scale**2 * cross[:, -1], scale * cross, scale * target, group, rare)
        size, axes = np.linalg.eigh(cross[:, :, -cross.shape[1] :])
        turned = scale * axes.transpose(0, 2, 1)
        cross, target = turned @ cross, (turned @ target[:, :, None])[:, :, 0]
        size = scale**2 * np.maximum(size, 0.0)
        return cls(size.T.ravel(), _by_output(cross), _by_output(target), group, rare, axes)

    @property
    def information(self) -> Array:
        """The information of the rows on each effect."""
        return self.diagonal if self.axes is None else self._turned_variance(self.diagonal)

    def effects(self, posterior: LevelPosterior) -> LevelPosterior:
        """The posterior of the effects themselves, by output."""
        if self.axes is None:
            return posterior
        mean, coupling = (
            _by_output(self.axes @ values.reshape(*self.axes.shape[1::-1], -1).transpose(1, 0, 2))
            for values in (posterior.mean, posterior.coupling)
        )
        return LevelPosterior(mean[:, 0], self._turned_variance(posterior.variance), coupling)

    def _turned_variance(self, variance: Array) -> Array:
        """Variances along the axes, or information, as those of the effects."""
        assert self.axes is not None
        by_level = variance.reshape(*self.axes.shape[1::-1]).T[:, :, None]
        return _by_output((np.square(self.axes) @ by_level)[:, :, 0])


def _by_output(values: Array) -> Array:
    """All levels' values of one output after another."""
    return values.swapaxes(0, 1).reshape(-1, *values.shape[2:])


@dataclass(frozen=True)
class LevelPosterior:
    """Posterior of a high-cardinality term's categories: ``mean + coupling z + sqrt(variance) e``.

    ``z`` are the errors of all other coordinates, ``e`` independent.
    """

    mean: Array
    variance: Array
    coupling: Array


@dataclass(frozen=True)
class LinearModel:
    """The regression of one linearisation at unit noise: ``constant + target' z - z' gram z / 2``.

    The last coordinates are the intercepts, one per output. ``n_rows`` is None for likelihoods without
    noise. ``log_rho_bound`` limits the increase of each group's log prior variance.
    """

    gram: Array
    target: Array
    constant: float
    prior: Prior
    n_rows: float | None
    log_rho_bound: Array
    noise_bounds: tuple[float, float] = (0.0, math.inf)
    high_cardinality: HighCardinality | None = None
    #: the part of the log-likelihood from rows' own precisions
    offset: float = 0.0
    #: the weight ``c`` of the tuning penalty
    tuning_penalty: float = TUNING_PENALTY

    @property
    def intercepts(self) -> slice:
        """The intercepts' coordinates."""
        return slice(sum(self.prior.widths), len(self.target))

    def clip(self, log_rho: Array) -> Array:
        """Clip log variances to the reach of the tables and to their bounds."""
        return np.clip(log_rho, -_LOG_REACH, np.minimum(self.log_rho_bound, _LOG_REACH))

    def log_likelihood(
        self, mean: Array, noise: float, levels: LevelPosterior | None = None
    ) -> float:
        """Log-likelihood at coordinates ``mean`` and the means of a high-cardinality term."""
        value = self.constant + float(mean @ (self.target - 0.5 * (self.gram @ mean)))
        if levels is not None and self.high_cardinality is not None:
            pull = self.high_cardinality.target - self.high_cardinality.cross @ mean
            value += float(
                levels.mean @ (pull - 0.5 * self.high_cardinality.diagonal * levels.mean)
            )
        if self.n_rows is None:
            return value / noise
        return at_noise(value, self.n_rows, noise) + self.offset


@dataclass(frozen=True)
class Hyper:
    """Hyperparameters: log changes of all groups' prior variances, and the noise variance."""

    log_rho: Array
    noise: float


@dataclass(frozen=True)
class Sums:
    """What a step of the hyperparameters depends on.

    ``effective`` and ``energy`` are each group's edf and ``lambda_g ||theta_g||^2``; ``penalty_gradient``
    is the derivative of twice the penalty in the groups' log variances. ``tuning_effective`` and
    ``tuning_energy`` are without rare levels, and ``rare`` has their part of evidence, squared residuals
    and freedom (``RareLevels.own``).
    """

    log_likelihood: float
    effective: Array
    energy: Array
    penalty_gradient: Array
    tuning_effective: Array
    tuning_energy: Array
    rare: Array

    @property
    def n_effective(self) -> float:
        """Effective degrees of freedom of all terms."""
        return float(self.effective.sum())


@dataclass(frozen=True)
class Estimate(Sums):
    """Posterior mean and evidence of a linear model at given hyperparameters: all that tuning needs."""

    mean: Array
    evidence: float
    tuning_penalty: float
    levels: LevelPosterior | None

    @property
    def objective(self) -> float:
        """The objective of tuning."""
        return self.evidence - self.tuning_penalty - float(self.rare[0])


@dataclass(frozen=True)
class Posterior(Estimate):
    """The same with the ``covariance``: joint, or one block per term (and the intercept)."""

    covariance: Array


def estimate(model: LinearModel, hyper: Hyper, joint: bool) -> Estimate:
    """Mean and evidence at ``hyper``; of a joint posterior without its covariance."""
    if not joint:
        return solve(model, hyper, joint)
    prior = model.prior.precision(hyper.log_rho)
    conditional = _conditional_precision(model, prior, hyper)
    precision, target, log_det_levels = _integrate_levels(model, hyper, conditional)
    factored = Factored.of(precision)
    # The intercepts come last, so that the terms given these have the leading part of the factor.
    given_intercept, log_det = factored.leading(model.intercepts.start)
    mean = factored.solve(target)
    return _estimate(model, hyper, prior, mean, given_intercept, log_det + log_det_levels)


def solve(model: LinearModel, hyper: Hyper, joint: bool) -> Posterior:
    """Posterior and evidence at ``hyper``."""
    prior = model.prior.precision(hyper.log_rho)
    free = model.intercepts
    conditional = _conditional_precision(model, prior, hyper)
    precision, target, log_det_levels = _integrate_levels(model, hyper, conditional)
    covariance, log_det = inverse_and_log_det(precision)
    mean = covariance @ target
    # |A_terms| = |A| times the determinant of the intercepts' posterior covariance; its derivatives
    # are conditional on the intercepts (coupled where the curvature differs between rows).
    given_intercept, log_det_intercepts = conditioned(covariance, free)
    log_det += log_det_intercepts
    if not joint:
        # The paper's posterior: each term's block inverted alone (eq. posterior).
        covariance, log_det = block_inverse(conditional, model.prior.blocks)
        covariance[free, free], _ = inverse_and_log_det(conditional[free, free])
        given_intercept = covariance
    found = _estimate(
        model, hyper, prior, mean, Dense(given_intercept), log_det + log_det_levels, joint
    )
    return Posterior(**vars(found), covariance=covariance)


def _estimate(
    model: LinearModel,
    hyper: Hyper,
    prior: PriorPrecision,
    mean: Array,
    covariance: Covariance,
    log_det: float,
    joint: bool = True,
) -> Estimate:
    """The evidence and its parts from the ``mean`` and the ``covariance`` given the intercepts.

    ``log_det`` is that of all terms' posterior precision, of a high-cardinality term that of ``I + rho D``.
    """
    effective, energy = prior.effective(covariance), prior.energy(mean)
    levels = None
    if (integrated := model.high_cardinality) is not None:
        levels = level_posterior(integrated, hyper, mean, joint)
        rho, group = math.exp(hyper.log_rho[integrated.group]), integrated.group
        variance = levels.variance + covariance.forms(levels.coupling)
        effective[group] = len(variance) - float(variance.sum()) / rho
        energy[group] = float(levels.mean @ levels.mean) / rho
    log_likelihood = model.log_likelihood(mean, hyper.noise, levels)
    occam = log_det + prior.log_det_covariance
    value = log_likelihood - 0.5 * (float(energy.sum()) + occam)
    alone, weight = prior.alone(model.gram, hyper.noise), model.tuning_penalty
    tuning = _tuning_sums(model, hyper, (mean, covariance, levels), effective, energy)
    sums = (log_likelihood, effective, energy, weight * alone.penalised, *tuning)
    return Estimate(*sums, mean, value, 0.5 * weight * alone.log_det, levels)


def _tuning_sums(
    model: LinearModel,
    hyper: Hyper,
    posterior: tuple[Array, Covariance, LevelPosterior | None],
    effective: Array,
    energy: Array,
) -> tuple[Array, Array, Array]:
    """The groups' edf and energy without rare levels, and what these levels add by themselves.

    ``posterior`` has mean and covariance of the coordinates, and the high-cardinality term's levels.
    """
    mean, covariance, levels = posterior
    effective, energy, own = effective.copy(), energy.copy(), np.zeros(3)

    def leave_out(
        group: int, rare: RareLevels, moments: tuple[Array, Array, Array], information: Array
    ) -> None:
        nonlocal own
        rho = math.exp(hyper.log_rho[group])
        effective[group], energy[group] = rare.sums(*moments, rho)
        if model.n_rows is None:
            own = own + np.array([rare.own_gain(moments[0], information, rho), 0.0, 0.0])
        else:
            own = own + rare.own(moments[0], information, rho, hyper.noise)

    variances = covariance.variances() if model.prior.rare else np.empty(0)
    for group, rare in model.prior.rare.items():
        common = np.array([covariance.of_sum(part) for part in rare.others])
        leave_out(group, rare, (mean, variances, common), np.diag(model.gram))
    if levels is not None and (integrated := model.high_cardinality) and integrated.rare:
        others, effects = integrated.rare.others, integrated.effects(levels)
        variance = effects.variance + covariance.forms(effects.coupling)
        common = covariance.forms(effects.coupling[others].sum(axis=1))
        common = common + effects.variance[others].sum(axis=1)
        moments = effects.mean, variance, common
        leave_out(integrated.group, integrated.rare, moments, integrated.information)
    return effective, energy, own


def _conditional_precision(model: LinearModel, prior: PriorPrecision, hyper: Hyper) -> Array:
    """Posterior precision of the coordinates, given the categories of a high-cardinality term."""
    precision = model.gram / hyper.noise
    np.einsum("ii->i", precision)[model.intercepts] += INTERCEPT_PRECISION
    prior.add_to(precision)
    return precision


def _integrate_levels(
    model: LinearModel, hyper: Hyper, precision: Array
) -> tuple[Array, Array, float]:
    """Precision and target of the coordinates with a high-cardinality term integrated out.

    The Schur complement of its diagonal block; the last value is that block's part of the evidence's
    determinant, ``log |I + rho D|``.
    """
    target, levels = model.target / hyper.noise, model.high_cardinality
    if levels is None:
        return precision, target, 0.0
    variance = level_variance(levels, hyper)
    # A matrix times its own transpose takes half of the time of other products.
    root = (np.sqrt(variance) / hyper.noise)[:, None] * levels.cross
    precision = precision - root.T @ root
    target = target - root.T @ (np.sqrt(variance) / hyper.noise * levels.target)
    log_det = -float(np.log(variance).sum()) + len(variance) * hyper.log_rho[levels.group]
    return precision, target, log_det


def level_variance(levels: HighCardinality, hyper: Hyper) -> Array:
    """Conditional posterior variance of each category."""
    return np.asarray(
        1.0 / (levels.diagonal / hyper.noise + math.exp(-hyper.log_rho[levels.group]))
    )


def level_posterior(
    levels: HighCardinality, hyper: Hyper, mean: Array, joint: bool
) -> LevelPosterior:
    """The categories' posterior, given the ``mean`` of the other coordinates."""
    variance = level_variance(levels, hyper)
    pull = (levels.target - levels.cross @ mean) / hyper.noise
    coupling = -(variance / hyper.noise)[:, None] * levels.cross
    return LevelPosterior(variance * pull, variance, coupling if joint else 0.0 * coupling)


def marginal_precision(model: LinearModel, hyper: Hyper) -> Array:
    """Posterior precision of all coordinates, with a high-cardinality term integrated out."""
    prior = model.prior.precision(hyper.log_rho)
    return _integrate_levels(model, hyper, _conditional_precision(model, prior, hyper))[0]


def levels_log_evidence_gain(
    model: LinearModel, hyper: Hyper, joint: bool, posterior: Posterior
) -> float:
    """Log evidence gain of the high-cardinality term; ``posterior`` is the one at ``hyper``."""
    without = estimate(replace(model, high_cardinality=None), hyper, joint)
    return posterior.evidence - without.evidence


def gradient(sums: Sums) -> Array:
    """Derivative of the objective in the groups' log prior variances (paper, eq. marglik, in logs)."""
    effective = sums.tuning_effective + sums.penalty_gradient
    return 0.5 * (sums.tuning_energy - effective)


def noise_gradient(model: LinearModel, sums: Sums, noise: float) -> float:
    """Derivative of the objective in the log noise variance, at fixed prior."""
    assert model.n_rows is not None
    squares, freedom = residual_squares(model, sums, noise)
    return 0.5 * (squares / noise - freedom)


def residual_squares(model: LinearModel, sums: Sums, noise: float) -> tuple[float, float]:
    """Squared residuals and their degrees of freedom, both as if rare levels had free effects."""
    assert model.n_rows is not None
    value = sums.log_likelihood - model.offset
    squares = -2.0 * noise * (value + 0.5 * model.n_rows * math.log(2.0 * math.pi * noise))
    effective = sums.n_effective + float(sums.penalty_gradient.sum())
    _, of_rare, freedom = sums.rare.tolist()
    return squares - noise * of_rare, model.n_rows - effective - freedom


def _fixed_point(model: LinearModel, sums: Sums, noise: float) -> Array:
    """MacKay's step in logs: ``lambda_g = gamma_g / ||theta_g||^2``, ``noise = RSS / (N - gamma)``.

    ``gamma`` includes the penalty. Precisions are over-relaxed, because the fixed point is approached from
    one side, and steps are bounded.
    """
    tiny = 1e-12
    effective = sums.tuning_effective + sums.penalty_gradient
    ratio = np.log((sums.tuning_energy + tiny) / np.maximum(effective, tiny))
    step = np.clip(_RELAXATION * ratio, -_LOG_STEP, _LOG_STEP)
    if model.n_rows is None:
        return np.append(step, 0.0)
    squares, freedom = residual_squares(model, sums, noise)
    # One degree of freedom is the intercept's.
    freedom = max(freedom - 1.0, 1.0)
    return np.append(step, math.log(max(squares / freedom, np.finfo(float).tiny) / noise))


def step(
    model: LinearModel, hyper: Hyper, sums: Sums, update: Update, moments: Moments
) -> tuple[Hyper, Moments]:
    """One update of the hyperparameters, and the moments after it.

    Within a bounded distance of the hyperparameters that the tables were made for.
    """
    of_noise = 0.0 if model.n_rows is None else noise_gradient(model, sums, hyper.noise)
    gradients = np.append(gradient(sums), of_noise)
    logs, moments = update(_fixed_point(model, sums, hyper.noise), gradients, moments)
    log_rho = model.clip(hyper.log_rho + logs[:-1])
    if model.n_rows is None:
        return Hyper(log_rho, hyper.noise), moments
    noise = float(np.clip(hyper.noise * math.exp(logs[-1]), *model.noise_bounds))
    return Hyper(log_rho, noise), moments
