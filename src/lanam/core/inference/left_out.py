"""Each observation as predicted by a fit to all others, in closed form (docs, method page).

Given the hyperparameters, a row ``i`` whose prediction ``f`` has the variance ``A``, gradient ``g`` and
curvature ``C`` is predicted without itself at

    f - V g,    V = (I - A C)^-1 A,

with the variance ``V``: exact for a Gaussian likelihood (``y - f`` is then ``r / (1 - h)`` with the
leverage
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
        Cook's distance: the mean square change of all predictions when the row is left out, in units of
        their mean variance (n,).
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
        _leave_out(part, variances, around, state.noise)
        for part, variances in _variances(linear, posterior, rows)
    ]
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return LeftOut(*map(np.concatenate, columns))


def _variances(
    linear: Regression, posterior: Posterior, rows: Rows
) -> Iterator[tuple[Rows, tuple[Array, Array]]]:
    """Rows in chunks, with ``Z S Z'`` and ``Z S G S Z' / tr(G S)`` (n, K, K) of each row."""
    problem, state = linear.problem, linear.state
    n_outputs, k = problem.likelihood.n_outputs, problem.high_cardinality
    designs = Design(linear.tables)
    places = output_places([table.shape[1] for table in linear.tables], n_outputs)
    covariance, gram = posterior.covariance, linear.model.gram / state.noise
    known = covariance @ gram
    change = known @ covariance / np.trace(known)
    for part in rows.parts(CHUNK_ROWS):
        design, own = designs.of(part), np.zeros(len(part))
        if k is not None and posterior.levels is not None:
            # Categories without coordinates follow the others, with an error of their own.
            level = part.positions[k].index
            prior_variance = 1.0 / float(state.terms[k].precision[0])
            design += np.sqrt(prior_variance) * posterior.levels.coupling[level]
            own = prior_variance * posterior.levels.variance[level]
        variance, changes = np.empty((2, len(part), n_outputs, n_outputs))
        for i, j in combinations_with_replacement(range(n_outputs), 2):
            block = np.ix_(places[i], places[j])
            variance[:, i, j] = variance[:, j, i] = quadratic_forms(design, covariance[block]) + own
            changes[:, i, j] = changes[:, j, i] = quadratic_forms(design, change[block])
        yield part, (variance, changes)


def _leave_out(part: Rows, variances: tuple[Array, Array], around: Around, noise: float) -> LeftOut:
    """Leave out each of some rows, with their ``variances``."""
    variance, changes = variances
    n_outputs = variance.shape[1]
    f = around.predict(part)
    # A row of a larger weight stands for several observations, of which one is left out.
    one = replace(part, weight=np.minimum(part.weight, 1.0))
    gradient, curvature = around.derivatives(one, f)
    gradient = gradient.reshape(-1, n_outputs, 1) / noise
    curvature = curvature.reshape(-1, n_outputs, n_outputs) / noise
    # (I - C A)^-1 = I + C V and V = R (I - R C R)^-1 R with the root R of the variance A, whose
    # leverages are the eigenvalues of R C R.
    size, vectors = np.linalg.eigh(variance)
    root = (vectors * np.sqrt(np.maximum(size, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
    leverage, directions = np.linalg.eigh(root @ curvature @ root)
    leverage = np.clip(leverage, 0.0, _MOST_LEVERAGE)
    scaled = root @ directions
    without = (scaled / (1.0 - leverage)[:, None, :]) @ scaled.transpose(0, 2, 1)
    shift = without @ gradient
    pull = gradient + curvature @ shift
    prediction = f - shift.reshape(f.shape)
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
        influence=(pull * (changes @ pull)).sum(axis=(1, 2)),
        score=score - spread,
    )
