"""Each row as predicted by a fit to all others, in closed form (docs, method page).

Given the hyperparameters, a row ``i`` whose prediction ``f`` has the variance ``A``, gradient ``g`` and
curvature ``C`` is predicted without itself at

    f - V g,    V = (I - A C)^-1 A,

with the variance ``V``: exact for a Gaussian likelihood (``y - f`` is then ``r / (1 - h)`` with the
leverage ``h = A C``), and for others one Newton step from the fit. No function of the coordinates moves by
more of its standard deviations than ``sqrt(u' A u)`` with ``u = (I - C A)^-1 g`` when the row is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from lanam.core.arrays import Array, quadratic_forms
from lanam.core.inference.evidence import Posterior
from lanam.core.inference.problem import Problem, Regression, State
from lanam.core.rows.located import Rows
from lanam.core.rows.reading import Design
from lanam.core.rows.statistics import CHUNK_ROWS, Around, output_places

#: A row with more leverage than this is not determined by the others.
_MOST_LEVERAGE = 0.99


@dataclass(frozen=True)
class LeftOut:
    """Rows as predicted without themselves: on the link scale, in the fit's units.

    Attributes
    ----------
    prediction, variance
        Mean (n,) and variance of the prediction; (n, K) and (n, K, K) for several outputs.
    leverage
        What a row contributes to its own prediction, summed over the outputs (n,).
    influence
        The largest change of any prediction in posterior standard deviations when the row is left out (n,).
    score
        The expected log-likelihood of one observation of the row (n,).
    """

    prediction: Array
    variance: Array
    leverage: Array
    influence: Array
    score: Array


def left_out(problem: Problem, state: State, rows: Rows) -> LeftOut:
    """Leave out each of some rows of a problem, located in its terms and with its precisions."""
    linear = Regression.of(problem, state, fine=True)
    posterior = linear.solve()
    values, intercept = tuple(linear.values(posterior)), linear.intercept(posterior)
    around = replace(problem.around(state), values=values, intercept=intercept)
    parts = [
        _leave_out(part, variance, around, state.noise)
        for part, variance in _variances(linear, posterior, rows)
    ]
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return LeftOut(*map(np.concatenate, columns))


def _variances(
    linear: Regression, posterior: Posterior, rows: Rows
) -> Iterator[tuple[Rows, Array]]:
    """Rows in chunks, with the variances (n, K, K) of their predictions."""
    problem, state = linear.problem, linear.state
    n_outputs, k = problem.likelihood.n_outputs, problem.high_cardinality
    designs = Design(linear.tables)
    places = output_places([table.shape[1] for table in linear.tables], n_outputs)
    for part in rows.parts(CHUNK_ROWS):
        design, own = designs.of(part), np.zeros(len(part))
        if k is not None and posterior.levels is not None:
            # Categories without coordinates follow the others, with an error of their own.
            level = part.positions[k].index
            prior_variance = 1.0 / float(state.terms[k].precision[0])
            design += np.sqrt(prior_variance) * posterior.levels.coupling[level]
            own = prior_variance * posterior.levels.variance[level]
        variance = np.empty((len(part), n_outputs, n_outputs))
        for i, j in combinations_with_replacement(range(n_outputs), 2):
            covariance = posterior.covariance[np.ix_(places[i], places[j])]
            variance[:, i, j] = variance[:, j, i] = quadratic_forms(design, covariance) + own
        yield part, variance


def _leave_out(part: Rows, variance: Array, around: Around, noise: float) -> LeftOut:
    """Leave out each of some rows whose predictions have the variances (n, K, K)."""
    n_outputs = variance.shape[1]
    f = around.predict(part)
    gradient, curvature = around.derivatives(part, f)
    gradient = gradient.reshape(-1, n_outputs, 1) / noise
    curvature = curvature.reshape(-1, n_outputs, n_outputs) / noise
    # With the root R of the variance, its leverages are the eigenvalues of R C R.
    size, vectors = np.linalg.eigh(variance)
    root = (vectors * np.sqrt(np.maximum(size, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
    leverage, directions = np.linalg.eigh(root @ curvature @ root)
    leverage = np.clip(leverage, 0.0, _MOST_LEVERAGE)
    # R u, the solution of (I - R C R) R u = R g.
    pulled = directions.transpose(0, 2, 1) @ (root @ gradient)
    shift = directions @ (pulled / (1.0 - leverage)[:, :, None])
    without = root @ directions
    without = (without / (1.0 - leverage)[:, None, :]) @ without.transpose(0, 2, 1)
    prediction = f - (root @ shift).reshape(f.shape)
    likelihood, precision = around.likelihood, 1.0 if part.precision is None else part.precision
    score = precision * likelihood.log_prob(part.y, prediction) / noise
    if likelihood.noise_bounds is not None:
        score = score - 0.5 * np.log(2.0 * np.pi * noise / precision)
    bend = likelihood.curvature(f).reshape(curvature.shape) / noise
    spread = 0.5 * precision * np.einsum("nij,nji->n", bend, without)
    return LeftOut(
        prediction=prediction,
        variance=without[:, 0, 0] if f.ndim == 1 else without,
        leverage=leverage.sum(axis=1),
        influence=np.sqrt(np.square(shift).sum(axis=(1, 2))),
        score=score - spread,
    )
