"""Each observation as predicted by a fit to all others, in closed form (docs, method page).

Given the hyperparameters, a row ``i`` whose prediction ``f`` has the variance ``A``, gradient ``g`` and
curvature ``C`` is predicted without itself at

    f - V g,    V = (I - A C)^-1 A,

with the variance ``V``: exact for a Gaussian likelihood (``y - f`` is then ``r / (1 - h)`` with the
leverage
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations_with_replacement

import numpy as np

from lanam.core.arrays import Array, IntArray, quadratic_forms
from lanam.core.inference.evidence import LevelPosterior, Posterior
from lanam.core.inference.problem import Problem, Regression, State
from lanam.core.likelihoods import Likelihood
from lanam.core.rows.located import Rows, added
from lanam.core.rows.reading import Design
from lanam.core.rows.statistics import CHUNK_ROWS, Around, log_densities, output_places
from lanam.core.rows.tables import Totals

#: Rows whose influence is computed at a time, and the rounding of a bound.
_CANDIDATES = 128
_ROUNDING = 1e-9

#: A row with more leverage than this is not determined by the others.
_MOST_LEVERAGE = 0.99


def log_score_change(
    before: tuple[Problem, State, Rows], after: tuple[Problem, State, Rows]
) -> tuple[float, float]:
    """The change of the log score of rows left out from one fit to another, and its standard error.

    Each has the same rows, located in its own terms.
    """
    scores = [
        Fit.at(problem, state).without(rows).score for problem, state, rows in (before, after)
    ]
    changes = after[2].weight * (scores[1] - scores[0])
    return float(changes.sum()), float(np.sqrt(len(changes)) * changes.std())


@dataclass(frozen=True)
class LeftOut:
    """Rows as predicted without themselves: on the link scale, in the fit's units.

    Attributes
    ----------
    prediction, variance
        Mean (n,) and variance of the prediction; (n, K) and (n, K, K) for several outputs.
    score
        The log predictive density of one observation of the row (n,).
    fitted
        The prediction of the fit to all rows.
    pull
        By how much the row pulls the coordinates, ``S Z'`` times this (n, K).
    """

    prediction: Array
    variance: Array
    score: Array
    fitted: Array
    pull: Array


@dataclass(frozen=True)
class Fit:
    """A fit of which rows can be left out.

    ``gram`` is ``G``, the Gram matrix in units of the noise; ``places`` has every output's coordinates.
    """

    tables: tuple[Array, ...]
    around: Around
    noise: float
    covariance: Array
    gram: Array
    places: IntArray
    levels: tuple[int, LevelPosterior] | None

    @classmethod
    def at(cls, problem: Problem, state: State) -> Fit:
        """The fit at a state."""
        if problem.likelihood.n_outputs == 1:
            return cls.of(*problem.solved(state))
        # Levels of several outputs need coordinates.
        linear = Regression.of(problem, state)
        return cls.of(linear, linear.solve())

    @classmethod
    def of(cls, linear: Regression, posterior: Posterior) -> Fit:
        """The fit of a regression."""
        problem, state = linear.problem, linear.state
        values, intercept = tuple(linear.values(posterior)), linear.intercept(posterior)
        covariance, k = posterior.covariance, linear.integrated
        levels = None
        if k is not None and posterior.levels is not None:
            # In the fit's units.
            std, own = 1.0 / np.sqrt(float(state.terms[k].precision[0])), posterior.levels
            coupling, variance = std * own.coupling, std**2 * own.variance
            levels = k, LevelPosterior(std * own.mean, variance, coupling)
        return cls(
            linear.tables,
            replace(problem.around(state), values=values, intercept=intercept),
            state.noise,
            covariance,
            linear.model.gram / state.noise,
            output_places([t.shape[1] for t in linear.tables], problem.likelihood.n_outputs),
            levels,
        )

    def without(self, rows: Rows) -> LeftOut:
        """Each of some rows left out; they are located in the fit's terms, with its precisions."""
        parts = [
            _leave_out(part, self._variance(*self._design(part)), self.around, self.noise)
            for part in rows.parts(CHUNK_ROWS)
        ]
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return LeftOut(*map(np.concatenate, columns))

    def influence(self, rows: Rows) -> Array:
        """Cook's distance of each of some rows (n,).

        The mean square change of all predictions when the row is left out, in units of their mean variance:
        ``p' Z S G S Z' p / tr(G S)`` with the row's pull ``p``.
        """

        def of(part: Rows) -> Array:
            design, own = self._design(part)
            pull = _leave_out(part, self._variance(design, own), self.around, self.noise).pull
            pulled = np.empty((len(part), len(self.covariance)))
            for place, of_output in zip(self.places, pull.T, strict=True):
                pulled[:, place] = design * of_output[:, None]
            return quadratic_forms(pulled @ self.covariance, self.gram) / self._freedom

        return np.concatenate([of(part) for part in rows.parts(CHUNK_ROWS)])

    def most_influential(self, rows: Rows) -> tuple[int, float]:
        """The row with the largest Cook's distance, and this distance.

        ``S G S`` is at most ``S``, so that few rows can have it: ``u' A u / tr(G S)`` is a bound, with the
        variance ``A`` of the row's prediction.
        """

        def of(part: Rows) -> Array:
            variance = self._variance(*self._design(part))
            pull = _leave_out(part, variance, self.around, self.noise).pull
            return np.asarray(np.einsum("ni,nij,nj->n", pull, variance, pull))

        bounds = np.concatenate([of(part) for part in rows.parts(CHUNK_ROWS)]) / self._freedom
        order = np.argsort(-bounds, kind="stable")
        row, distance = int(order[0]), -np.inf
        for start in range(0, len(order), _CANDIDATES):
            # A margin for rounding: rows of which nothing else is in the bound are as large as it.
            if bounds[order[start]] * (1.0 + _ROUNDING) < distance:
                break
            some = np.zeros(len(order), dtype=bool)
            some[order[start : start + _CANDIDATES]] = True
            found = self.influence(rows.part(some))
            if (largest := float(found.max())) > distance:
                row, distance = int(np.flatnonzero(some)[found.argmax()]), largest
        return row, distance

    @cached_property
    def _freedom(self) -> float:
        """``tr(G S)``, the sum of the variances of all rows' predictions in units of the noise."""
        return float((self.covariance * self.gram).sum())

    def _variance(self, design: Array, own: Array) -> Array:
        """The variance of each row's prediction (n, K, K)."""
        return self._forms(design, self.covariance) + own[:, None, None]

    def _design(self, part: Rows) -> tuple[Array, Array]:
        """``Z`` of some rows, and the variance of what is not in it (n,)."""
        design, own = Design(self.tables).of(part), np.zeros(len(part))
        if self.levels is not None:
            # Categories without coordinates follow the others, with an error of their own.
            k, levels = self.levels
            level = part.positions[k].of_rows.index
            design += levels.coupling[level]
            own = levels.variance[level]
        return design, own

    def _forms(self, design: Array, matrix: Array) -> Array:
        """``Z A Z'`` of each row, for all pairs of outputs (n, K, K)."""
        n_outputs = len(self.places)
        result = np.empty((len(design), n_outputs, n_outputs))
        for i, j in combinations_with_replacement(range(n_outputs), 2):
            block = matrix[np.ix_(self.places[i], self.places[j])]
            result[:, i, j] = result[:, j, i] = quadratic_forms(design, block)
        return result


def _leave_out(part: Rows, variance: Array, around: Around, noise: float) -> LeftOut:
    """Leave out each of some rows, whose predictions have this ``variance`` (n, K, K)."""
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
    of_row = noise if part.precision is None else noise / part.precision
    if around.likelihood.quadratic:
        # Exactly: the noise and the variance of the prediction add up.
        score = _log_prob(part, prediction, around.likelihood, of_row + without[:, 0, 0])
    else:
        # Laplace's approximation of the average has the determinant of I + C V.
        score = _log_prob(part, prediction, around.likelihood, of_row)
        score = score + 0.5 * np.log1p(-leverage).sum(axis=1)
    return LeftOut(
        prediction=prediction,
        variance=without[:, 0, 0] if f.ndim == 1 else without,
        score=score,
        fitted=f,
        pull=pull[:, :, 0],
    )


def _log_prob(part: Rows, f: Array, likelihood: Likelihood, noise: Array | float) -> Array:
    """Log-density of observations with this noise variance or dispersion."""
    if likelihood.noise_bounds is None:
        return log_densities(part, likelihood, f)
    value = likelihood.log_prob(part.y, f)
    return np.asarray(value / noise - 0.5 * np.log(2.0 * np.pi * noise))


def score_gain(problem: Problem, state: State, null: State) -> tuple[float, float]:
    """By how much all terms raise the log score of left-out rows, and the standard error of that.

    ``null`` is the state of the intercept alone.
    """
    fits = Fit.at(problem, state), Fit.at(problem.keep([]), null)
    gain, squares = problem.rows.total(partial(_gains, fits), heavy=True)
    return float(gain), float(np.sqrt(squares))


def _gains(fits: tuple[Fit, Fit], parts: Iterable[Rows]) -> Totals:
    """The sum of the rows' gains, and that of their squares."""
    whole, null = fits

    def of(part: Rows) -> Totals:
        gains = whole.without(part).score - null.without(part.keep_terms([])).score
        return np.array(part.weight @ gains), np.array(part.weight @ np.square(gains))

    return added(parts, CHUNK_ROWS, of)
