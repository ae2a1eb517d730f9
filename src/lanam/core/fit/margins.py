"""Bands of dropped columns: what the data leave possible (docs, method page).

A column is dropped where its evidence is largest at no effect, or too small; other effects remain possible.
Its variance is therefore integrated out instead of maximised: with the prior ``N(0, v T T')`` of its
function, the gradient ``s`` and the information ``G`` of its coordinates beside all other terms,

    log p(D | v) / p(D | 0) = 1/2 sum_i [v (U' s)_i^2 / (1 + v l_i) - log(1 + v l_i)],    G = U diag(l) U',

and the band is that of the second moment around zero, which the model predicts. The standard deviation of
the function has a half-normal prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lanam.core.arrays import Array, Rng
from lanam.core.inference.left_out import Fit
from lanam.core.inference.problem import UNSEEN_PRECISION, TermState
from lanam.core.inference.solver import Stage
from lanam.core.rows.located import Rows
from lanam.core.rows.reading import Design, spread
from lanam.core.rows.statistics import CHUNK_ROWS, own_curvature
from lanam.core.terms.knots import locate
from lanam.core.terms.linearise import compress
from lanam.core.terms.term import Term, TermKey, key_of

#: Standard deviations of a dropped function, in the fit's units, and the scale of their half-normal prior.
_STDS = np.geomspace(0.01, 3.0, 40)
_PRIOR_STD = 1.0


def dropped_variances(stage: Stage, rows: Rows, fit: Fit, rng: Rng) -> Mapping[TermKey, Array]:
    """Pointwise second moments of dropped columns' functions at their entries, one column per output.

    In the fit's units, from some ``rows`` for all.
    """
    active = {key_of(term) for term in stage.problem.terms}
    terms = [
        (gone.term, gone.data_mass)
        for gone in stage.dropped
        if _has_band(gone.term) and key_of(gone.term) not in active
    ]
    if not terms:
        return {}
    others = _Others.of(fit, rows, stage.problem.rows.count)
    return {key_of(term): _second_moment(term, mass, others, rng) for term, mass in terms}


def _has_band(term: Term) -> bool:
    """Single columns with coordinates; level effects are deviations from these."""
    return not (term.joint or term.kind == "level") and not getattr(term, "high_cardinality", False)


@dataclass(frozen=True)
class _Others:
    """What a further term needs of the fit: designs, covariances and derivatives of every output."""

    rows: Rows
    scale: float
    design: Array
    covariances: tuple[Array, ...]
    gradient: Array
    information: Array

    @classmethod
    def of(cls, fit: Fit, rows: Rows, count: float) -> _Others:
        designs, shape = Design(fit.tables), (len(rows), len(fit.places))
        design = np.concatenate([designs.of(part).copy() for part in rows.parts(CHUNK_ROWS)])
        gradient, curvature = fit.around.derivatives(rows)
        return cls(
            rows,
            count / rows.count,
            design,
            tuple(fit.covariance[np.ix_(place, place)] for place in fit.places),
            gradient.reshape(shape) / fit.noise,
            own_curvature(curvature).reshape(shape) / fit.noise,
        )


def _second_moment(term: Term, data_mass: Array, others: _Others, rng: Rng) -> Array:
    """The second moment (B, K) of a term's function at its entries."""
    rows, n_outputs = others.rows, others.gradient.shape[1]
    state = TermState.at_zero(term, term.initial(rng), data_mass)
    position = locate(term.entries, term.features, rows.columns)
    total = others.scale * others.information.sum(axis=1)
    # As for other terms, the prior is kept where there is no data.
    curvature = spread(position, total, len(term.entries)) + UNSEEN_PRECISION
    table = compress(term, state.jacobian, state.precision, curvature).table
    located = Rows((position,), (len(table),), rows.y, rows.weight)
    own = Design([table]).of(located)[:, :-1]
    # In units of the prior's variance over the data, in which the table was made.
    size = float(data_mass @ np.square(table).sum(axis=1))
    variances = np.square(_STDS) / size
    log_weights = np.log(_STDS) - 0.5 * np.square(_STDS / _PRIOR_STD)
    moments = np.zeros((len(variances), len(table), n_outputs))
    for k in range(n_outputs):
        weighted = own * (others.scale * others.information[:, k])[:, None]
        cross = weighted.T @ others.design
        gram = weighted.T @ own - cross @ others.covariances[k] @ cross.T
        size_of, vectors = np.linalg.eigh(gram)
        size_of = np.maximum(size_of, 0.0)
        score = vectors.T @ (others.scale * (others.gradient[:, k] @ own))
        shrunk = variances[:, None] / (1.0 + np.multiply.outer(variances, size_of))
        log_weights += 0.5 * (
            shrunk * np.square(score) - np.log1p(np.multiply.outer(variances, size_of))
        ).sum(axis=1)
        basis = table @ vectors
        moments[:, :, k] = shrunk @ np.square(basis).T + np.square((shrunk * score) @ basis.T)
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(np.tensordot(weights / weights.sum(), moments, axes=1))
