"""The uncertainty of precisions and noise in the posterior (docs, method page).

The posterior ``N(m, S)`` of the coordinates is conditional on hyperparameters that were tuned. Around
their optimum the logarithms of the groups' prior variances over the noise, ``tau_g``, and of the noise
``nu`` are about normal with covariance ``V``, the inverse of minus the objective's Hessian plus a weak
prior's precision. To first order in the hyperparameters a draw ``m + R z`` of the coordinates, with
``S = R R'``, then has the covariance

    S + J V J' + 1/4 sum_jk U_jk D_j S^-1 D_k,        J = dm / d(tau, nu),   D_j = dS / d(tau, nu)_j

(Kass and Steffey 1989; Wood, Pya and Saefken 2016). The last part is that of the root ``R`` whose changes
``dR = D S^-1 R / 2`` are symmetric in the posterior's own metric, so that no choice of coordinates enters;
``U`` is ``V`` with a stronger prior.

All derivatives are in closed form in the coordinates of the tables, where ``W = I``. With ``M_g`` the
groups' Gram matrices, ``P = I - S`` (and ``P_c`` the same given the intercept, as in the determinant):

    J_g = S M_g m                                J_nu = 0: means depend on the ratios tau only
    D_g = S M_g S                                D_nu = S
    H_gh = tr(M_g P_c M_h P_c) / 2 - m' M_g P M_h m + delta_gh (gradient)_g + (penalty)_gh
    H_g,nu = -energy_g / 2                       H_nu,nu = -(RSS / noise + energy) / 2
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lanam.core.arrays import Array, symmetric_product
from lanam.core.inference import evidence
from lanam.core.inference.evidence import Hyper, LevelPosterior, LinearModel, Posterior
from lanam.core.inference.prior import Prior, conditioned

#: Precision of the normal prior of log variances around their optimum: a factor of a thousand is one
#: standard deviation. It matters only where the data says nothing (mgcv has the same).
HYPERPRIOR_PRECISION = 0.02

#: The same for the covariance's own changes. Directions that the data does not see have the variance of
#: their prior, which the first order in a log variance exaggerates beyond about two.
COVARIANCE_PRECISION = 0.25

#: The step of the finite differences for the one group that has no coordinates.
_STEP = 1e-3

#: The least degrees of freedom of the noise: its posterior is only locally known.
_LEAST_FREEDOM = 2.0


def integrate(model: LinearModel, noise: float, posterior: Posterior) -> tuple[Posterior, float]:
    """The joint posterior with the uncertainty of the hyperparameters, and the noise's degrees of freedom.

    ``posterior`` is that at the hyperparameters with which the coordinates were made (``W = I``).
    Its mean stays, and so do the evidence and the effective degrees of freedom.

    The noise variance over its estimate is taken as inverse chi-squared, divided by its degrees of freedom
    ``2 / V_nu,nu``: with fixed precisions these are the rows less one for the intercept, exactly.
    """
    jacobian = mean_jacobian(model.prior, posterior)
    curvature, n_groups = hessian(model, noise, posterior), model.prior.n_groups
    levels, outside = posterior.levels, _outside(model, noise)
    if levels is not None and outside is not None:
        # The categories of a high-cardinality term have no coordinates: differences, for one group.
        group, gradients, jacobian[:, group], moved = outside
        curvature[group, :n_groups] = curvature[:n_groups, group] = gradients
        moved = moved - levels.coupling @ jacobian[:, group]
        noisy = model.n_rows is not None
        levels = _uncertain_levels(levels, moved, curvature, group, noisy)
    variances = hyper_covariance(curvature, HYPERPRIOR_PRECISION)
    first = jacobian @ variances[:n_groups, :n_groups] @ jacobian.T
    closer = hyper_covariance(curvature, COVARIANCE_PRECISION)
    second = 0.25 * _covariance_changes(model.prior, posterior.covariance, closer)
    wider = replace(posterior, covariance=posterior.covariance + first + second, levels=levels)
    if model.n_rows is None:
        return wider, np.inf
    return wider, max(2.0 / float(variances[n_groups, n_groups]), _LEAST_FREEDOM)


def hyper_covariance(hessian: Array, prior_precision: float) -> Array:
    """Covariance of the log hyperparameters; directions in which the objective rises count as flat."""
    curvature, vectors = np.linalg.eigh(-hessian)
    variances = 1.0 / (np.maximum(curvature, 0.0) + prior_precision)
    return np.asarray((vectors * variances) @ vectors.T)


def hessian(model: LinearModel, noise: float, posterior: Posterior) -> Array:
    """Second derivatives of the objective in ``tau``, and in ``nu`` where there is noise.

    The row of a high-cardinality term's group has only its part of the noise.
    """
    prior, terms, free = model.prior, slice(0, model.intercepts.start), model.intercepts
    covariance = posterior.covariance
    given, _ = conditioned(covariance, free)
    unit = np.eye(terms.stop)
    pulls = _pulls(prior, posterior.mean)
    matrix = 0.5 * trace_products(prior, unit - given[terms, terms])
    matrix -= pulls.T @ (unit - covariance[terms, terms]) @ pulls
    matrix += 0.5 * model.tuning_penalty * _products_alone(model, noise)
    np.einsum("ii->i", matrix)[:] += evidence.gradient(posterior)
    if model.n_rows is None:
        return matrix
    # Rare levels do not count here, as in the objective; in the traces above they are negligible.
    energy = posterior.tuning_energy
    squares, _ = evidence.residual_squares(model, posterior, noise)
    squares = squares / noise + float(energy.sum())
    mixed = -0.5 * energy[:, None]
    return np.block([[matrix, mixed], [mixed.T, np.full((1, 1), -0.5 * squares)]])


def mean_jacobian(prior: Prior, posterior: Posterior) -> Array:
    """``J`` (R + 1, G): how the posterior mean moves with each group's log variance."""
    pulls = _pulls(prior, posterior.mean)
    return np.asarray(posterior.covariance[:, : len(pulls)] @ pulls)


def trace_products(prior: Prior, matrix: Array) -> Array:
    """``tr(M_g A M_h A)`` of all groups for a symmetric ``A``, by blocks of terms."""
    result = np.zeros((prior.n_groups, prior.n_groups))
    terms = _terms(prior)
    for i, (block, groups, grams) in enumerate(terms):
        for other, other_groups, other_grams in terms[i:]:
            part = _times(grams, matrix[block, other], prior.n_outputs)
            traces = _traces(part, _times(other_grams, matrix[other, block], prior.n_outputs))
            result[groups, other_groups], result[other_groups, groups] = traces, traces.T
    return result


def _products_alone(model: LinearModel, noise: float) -> Array:
    """The same for the tuning penalty: each term with several groups as if it were the only one."""
    prior = model.prior
    result = np.zeros((prior.n_groups, prior.n_groups))
    for block, groups, grams in _terms(prior):
        if len(grams) > 1 and groups.start not in prior.exempt:
            gram = model.gram[block, block] / noise
            seen = np.linalg.solve(np.eye(len(gram)) + gram, gram)
            part = _times(grams, np.asarray(seen), prior.n_outputs)
            result[groups, groups] = _traces(part, part)
    return result


def _covariance_changes(prior: Prior, covariance: Array, variances: Array) -> Array:
    """``sum_jk V_jk D_j S^-1 D_k`` over all groups with coordinates and the noise."""
    n_groups, n_terms = prior.n_groups, sum(prior.widths)
    inner = np.zeros((n_terms, n_terms))
    terms = _terms(prior)
    for block, groups, grams in terms:
        for other, other_groups, other_grams in terms:
            # sum_gh V_gh M_g S M_h
            right = _times(other_grams, covariance[other, block], prior.n_outputs)
            mixed = np.tensordot(variances[groups, other_groups], right, axes=1)
            inner[block, other] = _sum_of_products(grams, mixed.transpose(0, 2, 1), prior.n_outputs)
        if len(variances) > n_groups:
            weights = 2.0 * variances[groups, n_groups]
            inner[block, block] += _weighted(grams, weights, block.stop - block.start)
    result = symmetric_product(covariance[:, :n_terms] @ inner, covariance[:n_terms])
    if len(variances) > n_groups:
        result += variances[n_groups, n_groups] * covariance
    return np.asarray(result)


def _outside(model: LinearModel, noise: float) -> tuple[int, Array, Array, Array] | None:
    """The group of a high-cardinality term, and derivatives in its log variance.

    Of the gradient, of the coordinates' mean and of the categories' means.
    """
    if model.high_cardinality is None:
        return None
    group, log_rho = model.high_cardinality.group, np.zeros(model.prior.n_groups)

    def at(step: float) -> tuple[Array, Array, Array]:
        log_rho[group] = step
        posterior = evidence.solve(model, Hyper(log_rho, noise), joint=True)
        assert posterior.levels is not None
        return evidence.gradient(posterior), posterior.mean, posterior.levels.mean

    ahead, behind = at(_STEP), at(-_STEP)
    gradients, mean, levels = (
        (one - other) / (2.0 * _STEP) for one, other in zip(ahead, behind, strict=True)
    )
    return group, gradients, mean, levels


def _uncertain_levels(
    levels: LevelPosterior, moved: Array, hessian: Array, group: int, noisy: bool
) -> LevelPosterior:
    """Categories with the uncertainty of the log of their own variance, and of the noise.

    ``moved`` is the derivative of their means given the other coordinates. What categories have in common
    by it is neglected: their errors stay independent given the coordinates.
    """
    own = levels.variance
    closer = hyper_covariance(hessian, COVARIANCE_PRECISION)
    changes = closer[group, group] * np.square(own)
    if noisy:
        changes += 2.0 * closer[group, -1] * own + closer[-1, -1]
    variance = hyper_covariance(hessian, HYPERPRIOR_PRECISION)[group, group]
    return replace(levels, variance=own * (1.0 + 0.25 * changes) + variance * np.square(moved))


def _terms(prior: Prior) -> tuple[tuple[slice, slice, Array], ...]:
    """Coordinates, groups and their Gram matrices of the terms with coordinates."""
    terms = zip(prior.blocks, prior.groups, prior.group_grams, strict=True)
    return tuple(term for term in terms if term[0].stop > term[0].start)


def _pulls(prior: Prior, mean: Array) -> Array:
    """``M_g m`` (R, G)."""
    result = np.zeros((sum(prior.widths), prior.n_groups))
    for block, groups, grams in _terms(prior):
        result[block, groups] = _times(grams, mean[block, None], prior.n_outputs)[:, :, 0].T
    return result


def _times(grams: Array, matrix: Array, n_outputs: int) -> Array:
    """``M_g A`` of a term's groups: the same for each output, and the identity of a single group."""
    if len(grams) == 1:
        return matrix[None]
    products = grams[:, None] @ matrix.reshape(n_outputs, grams.shape[1], -1)
    return np.asarray(products.reshape(len(grams), *matrix.shape))


def _sum_of_products(grams: Array, matrices: Array, n_outputs: int) -> Array:
    """``sum_g M_g A_g`` of a term's groups."""
    if len(grams) == 1:
        return np.asarray(matrices[0])
    n_groups, width, _ = grams.shape
    side_by_side = grams.transpose(1, 0, 2).reshape(width, -1)
    by_output = matrices.reshape(n_groups, n_outputs, width, -1).swapaxes(0, 1)
    stacked = by_output.reshape(n_outputs, n_groups * width, -1)
    return np.asarray((side_by_side @ stacked).reshape(matrices.shape[1:]))


def _weighted(grams: Array, weights: Array, width: int) -> Array:
    """``sum_g w_g M_g`` of a term's groups."""
    if len(grams) == 1:
        return np.asarray(weights[0] * np.eye(width))
    own = np.tensordot(weights, grams, axes=1)
    return np.asarray(np.kron(np.eye(width // len(own)), own))


def _traces(left: Array, right: Array) -> Array:
    """``tr(X_g Y_h)``: the sums of the products of ``X`` and ``Y'`` by entries."""
    turned = right.transpose(0, 2, 1).reshape(len(right), -1)
    return np.asarray(left.reshape(len(left), -1) @ turned.T)
