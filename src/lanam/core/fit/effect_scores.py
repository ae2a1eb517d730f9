"""The paper's scores of pairs: how far the posteriors of two columns' effects are entangled (method.md 6).

Section 3.2.3 and appendix A.2 of the paper. They measure confounding of the two effects, not residual
structure, and exist for the effects' output multipliers (the last layer) and for all parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lanam.core.arrays import Array, IntArray
from lanam.core.fit.joint import Interaction
from lanam.core.inference.evidence import INTERCEPT_PRECISION, marginal_precision
from lanam.core.inference.prior import inverse_and_log_det
from lanam.core.inference.problem import Problem, Regression, State
from lanam.core.rows import statistics
from lanam.core.rows.located import Rows, added
from lanam.core.rows.reading import read
from lanam.core.rows.statistics import Around
from lanam.core.rows.tables import Totals


def score(
    kind: str, problem: Problem, state: State, pairs: Sequence[Interaction], *, trained: bool
) -> Array:
    """Nonnegative scores of ``pairs``; effects of ``trained`` networks are multiplied as they are."""
    full = kind.endswith("_full")
    effects = (
        multipliers(problem, state) if trained and not full else joint_precision(problem, state)
    )
    if not full and not trained:
        effects = effects.last_layer()
    measure = gain_scores if kind.startswith("evidence_gain") else information_scores
    return measure(effects, pairs)


@dataclass(frozen=True)
class Effects:
    """The joint posterior of all effects; ``blocks[d]`` are column ``d``'s coordinates.

    The last coordinates are the intercepts.
    """

    precision: Array
    mean: Array
    blocks: dict[int, IntArray]

    def last_layer(self) -> Effects:
        """The posterior of one multiplier per column, of its whole effect."""
        n_terms = sum(map(len, self.blocks.values()))
        n_free = len(self.precision) - n_terms
        project = np.zeros((len(self.precision), len(self.blocks) + n_free))
        project[n_terms:, len(self.blocks) :] = np.eye(n_free)
        for k, block in enumerate(self.blocks.values()):
            project[block, k] = self.mean[block]
        blocks = {feature: np.array([k]) for k, feature in enumerate(self.blocks)}
        return Effects(project.T @ self.precision @ project, np.ones(project.shape[1]), blocks)


def joint_precision(problem: Problem, state: State) -> Effects:
    """The Laplace posterior of all main effects, dense (paper, appendix A.2)."""
    linear = Regression.of(problem, state)
    precision = marginal_precision(linear.model, linear.start)
    coordinates = np.arange(linear.model.intercepts.start)
    blocks: dict[int, IntArray] = {}
    for term, block in zip(problem.terms, linear.model.prior.blocks, strict=True):
        places = coordinates[block]
        if len(term.features) == 1 and len(places):
            feature = term.features[0]
            blocks[feature] = np.concatenate([blocks.get(feature, places[:0]), places])
    return Effects(precision, linear.solve().mean, blocks)


def multipliers(problem: Problem, state: State) -> Effects:
    """The last layer of trained networks: the posterior of one multiplier per column, of its whole effect.

    Their prior is standard normal, as in the paper's public code: small effects have little information.
    """
    n_outputs = problem.likelihood.n_outputs
    features = sorted({term.features[0] for term in problem.terms if len(term.features) == 1})
    number = {feature: k for k, feature in enumerate(features)}
    places = [number.get(term.features[0], -1) if not term.joint else -1 for term in problem.terms]
    (seen,) = problem.rows.total(partial(_multiplier_sums, problem.around(state), places))
    precision = seen / state.noise
    precision += np.diag(np.r_[np.ones(len(features)), np.full(n_outputs, INTERCEPT_PRECISION)])
    blocks = {feature: np.array([k]) for feature, k in number.items()}
    return Effects(precision, np.ones(len(precision)), blocks)


def _multiplier_sums(around: Around, places: Sequence[int], parts: Iterable[Rows]) -> Totals:
    """The curvature in the multipliers and, last, in the outputs' intercepts."""
    n_outputs, n_columns = around.likelihood.n_outputs, max(places, default=-1) + 1

    def of(part: Rows) -> Totals:
        curvature = around.derivatives(part)[1].reshape(len(part), n_outputs, n_outputs)
        design = np.zeros((len(part), n_outputs, n_columns + n_outputs))
        design[:, :, n_columns:] = np.eye(n_outputs)
        for position, values, place in zip(part.positions, around.values, places, strict=True):
            if place >= 0:
                design[:, :, place] += read(position, values).reshape(len(part), n_outputs)
        bent = np.einsum("nkl,nlj->nkj", curvature, design)
        return (np.tensordot(design, bent, axes=((0, 1), (0, 1))),)

    return added(parts, statistics.CHUNK_ROWS, of)


def information_scores(effects: Effects, pairs: Sequence[Interaction]) -> Array:
    """Mutual information of two effects' posteriors (paper, eq. mi_param).

    ``1/2 log (|S_d| |S_d'| / |S_dd'|)`` with ``S`` the joint posterior covariance; for multipliers
    ``-1/2 log(1 - corr^2)``.
    """
    covariance, _ = inverse_and_log_det(effects.precision)
    return 0.5 * _log_det_ratios(covariance, effects.blocks, pairs)


def gain_scores(effects: Effects, pairs: Sequence[Interaction]) -> Array:
    """Gain of the evidence bound if two blocks were joint (paper, eq. interaction_gain)."""
    return _log_det_ratios(effects.precision, effects.blocks, pairs)


def _log_det_ratios(
    matrix: Array, blocks: dict[int, IntArray], pairs: Sequence[Interaction]
) -> Array:
    """``log |A_d| + log |A_d'| - log |A_dd'|`` of a positive definite ``A``; 0 where a block is empty.

    With ``A_d = L_d L_d'`` it is ``-log |I - C C'|`` for ``C = L_d^-1 A_dd' L_d'^-T``, whose singular
    values are the canonical correlations.
    """
    half = {
        feature: np.linalg.inv(np.linalg.cholesky(matrix[np.ix_(block, block)]))
        for feature, block in blocks.items()
    }
    ratios = np.zeros(len(pairs))
    for k, (i, j) in enumerate(pairs):
        if i in blocks and j in blocks:
            coupling = half[i] @ matrix[np.ix_(blocks[i], blocks[j])] @ half[j].T
            correlation = np.linalg.svd(coupling, compute_uv=False)
            # Rounding may give a correlation of one, where the information is infinite.
            ratios[k] = -np.log1p(-np.minimum(np.square(correlation), 1.0 - 1e-15)).sum()
    return ratios
