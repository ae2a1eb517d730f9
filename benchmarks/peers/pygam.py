"""Spline GAM of pyGAM, smoothed by the paper's random search; optional, not among the default models."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dtrtri
from scipy.special import expit

from benchmarks.data.sets import Task
from benchmarks.peers.interface import Fitted, Prediction, missing_module

CANDIDATES = 1000  # the paper's
EXPONENTS = (-3.0, 3.0)  # of the smoothing parameters, the paper's range
SPLINES = (4, 20)  # of a column: the fewest cubic ones, pyGAM's default
GAMMA = 1.4  # what pyGAM's scores multiply degrees of freedom with
RIDGE = np.sqrt(np.finfo(float).eps)  # what pyGAM adds to its penalties
CERTAIN = 15.0  # log odds of a training row from which on classes count as separated


class SplineGAM:
    """One smoothing parameter a column, the best of 1000 random vectors of them by GCV or UBRE.

    pyGAM's own search fits each candidate anew, which takes hours. Here candidates are scored from
    pyGAM's model matrix and penalties, by its own score, and pyGAM takes the best one's last step.

    Where classes separate, weights grow without bound, the score likes that, and pyGAM drops rows
    and ends at one half. So a candidate stops when the log odds of a training row pass 15, and those that
    converge come before all that do not (``converged`` says which it was).

    A column has pyGAM's 20 cubic splines, but no more than it has distinct values, and all
    together have no more coefficients than there are rows: with more, pyGAM drops the directions it is
    least sure of, the straight lines first, and predicts one half everywhere when it is smooth.
    The scale of y and of the columns makes no difference: splines live on the range of a column.
    """

    name = "pygam"

    def missing(self) -> str | None:
        return missing_module("pygam")

    def fit(self, X: np.ndarray, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        from pygam import LinearGAM, LogisticGAM

        # A constant column has no spline (it divides by its range) and nothing to say.
        varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
        kept = X[:, varying]
        splines = spline_counts(kept)
        logistic = task == "classification"
        make: Callable[..., Any] = LogisticGAM if logistic else LinearGAM
        coordinates = coordinates_of(make(n_splines=splines, lam=1.0), kept)
        exponents = np.random.default_rng(seed).uniform(*EXPONENTS, (CANDIDATES, len(varying)))
        score = ubre_score(coordinates, y) if logistic else gcv_score(coordinates, y)
        candidates = list(10.0**exponents)
        outcomes = [score(strengths) for strengths in candidates]
        best = min(range(CANDIDATES), key=lambda k: (not outcomes[k].converged, outcomes[k].score))
        # pyGAM takes the last step: from its own start it runs away where classes separate
        model = make(n_splines=splines, lam=list(candidates[best]), max_iter=1)
        model.coef_ = start = coordinates.rotation @ outcomes[best].weights
        quietly(lambda: model.fit(kept, y))
        if not outcomes[best].converged:  # its step has no brake
            model.coef_ = start
        info = {
            "candidates": CANDIDATES,
            "score": outcomes[best].score,
            "edof": float(model.statistics_["edof"]),
            "converged": outcomes[best].converged,
        }
        effect = additive(model, kept, varying)
        if logistic:
            return Fitted(
                lambda rows: Prediction(model.predict_proba(rows[:, varying])),
                effect=effect,
                info=info,
            )
        noise = float(model.statistics_["scale"])  # a standard deviation, in spite of its name
        return Fitted(
            lambda rows: Prediction(model.predict(rows[:, varying]), np.full(len(rows), noise)),
            predict_mean=lambda rows: model.predict(rows[:, varying]),
            effect=effect,
            info=info,
        )


def spline_counts(X: np.ndarray) -> list[int]:
    """Splines of each column: see `SplineGAM`."""
    fewest, most = SPLINES
    distinct = [len(np.unique(column)) for column in X.T]
    while True:
        counts = [max(fewest, min(most, values)) for values in distinct]
        if sum(counts) < len(X) or most == fewest:  # the intercept is one more
            return counts
        most -= 1


def quietly(action: Callable[[], Any]) -> None:
    """Without what pyGAM prints of convergence, and its warnings, which are of its own code's age."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        action()


@dataclass(frozen=True)
class Coordinates:
    """A GAM in coordinates that its penalties do not mix: they are ``strength * penalty`` of each.

    The last is the intercept. Each term has lost its constant, which the intercept has too.
    """

    design: np.ndarray  # (rows, coordinates)
    penalty: np.ndarray  # of each coordinate, for a strength of one
    term: np.ndarray  # whose strength it is; that of the intercept does not matter
    rotation: np.ndarray  # from these coordinates to the GAM's coefficients

    def penalties(self, strengths: np.ndarray) -> np.ndarray:
        return strengths[self.term] * self.penalty + RIDGE


def coordinates_of(gam: Any, X: np.ndarray) -> Coordinates:
    """Those of a GAM of splines, not fitted yet, whose strengths are all one."""
    gam._validate_params()
    gam._validate_data_dep_params(X)
    basis, penalty = gam.terms.build_columns(X).toarray(), gam.terms.build_penalties().toarray()
    rotations, penalties, terms = [], [], []
    for term in range(X.shape[1]):
        own = gam.terms.get_coef_indices(term)
        block = penalty[np.ix_(own, own)]
        # constants have no penalty: with the largest of all they are the last eigenvector
        values, vectors = eigh(block + 1 + np.trace(block) / len(own))
        rotations.append(vectors[:, :-1])
        penalties.append(np.maximum(values[:-1], 0))
        terms.append(np.full(len(own) - 1, term))
    rotation = block_diag(*rotations, np.ones((1, 1)))
    return Coordinates(
        basis @ rotation,
        np.append(np.concatenate(penalties), 0.0),
        np.append(np.concatenate(terms), 0),
        rotation,
    )


@dataclass(frozen=True)
class Outcome:
    """What a vector of strengths leads to."""

    score: float
    weights: np.ndarray  # of the coordinates
    converged: bool = True


def degrees_of_freedom(factor: np.ndarray, penalties: np.ndarray) -> float:
    """Trace of ``inv(G + P) G``, from the upper factor of ``G + P``."""
    inverse, _ = dtrtri(factor)
    return float(len(penalties) - penalties @ np.square(np.triu(inverse)).sum(axis=1))


def gcv_score(coordinates: Coordinates, y: np.ndarray) -> Callable[[np.ndarray], Outcome]:
    """pyGAM's GCV of a Gaussian GAM; the rows are looked at once."""
    n, m = coordinates.design.shape
    reduced = np.linalg.qr(np.column_stack([coordinates.design, y]), mode="r")
    R, target = reduced[:m, :m], reduced[:m, m]
    gram, right, rest = R.T @ R, R.T @ target, float(np.square(reduced[m:, m]).sum())

    def score(strengths: np.ndarray) -> Outcome:
        penalties = coordinates.penalties(strengths)
        factor, lower = cho_factor(gram + np.diag(penalties))
        weights = cho_solve((factor, lower), right)
        residual = target - R @ weights
        edof = degrees_of_freedom(factor, penalties)
        gcv = n * (residual @ residual + rest) / (n - GAMMA * edof) ** 2
        return Outcome(float(gcv), weights)

    return score


def ubre_score(coordinates: Coordinates, y: np.ndarray) -> Callable[[np.ndarray], Outcome]:
    """pyGAM's UBRE of a logistic GAM: deviance and degrees of freedom a row, and (sic) 2."""
    design, n = coordinates.design, len(y)

    def deviance(linear: np.ndarray) -> float:
        return 2 * float(np.logaddexp(0, linear).sum() - y @ linear)

    def iterate(strengths: np.ndarray, weights: np.ndarray, most: int = 25) -> Outcome:
        penalties = coordinates.penalties(strengths)

        def objective(weights: np.ndarray) -> float:
            return deviance(design @ weights) + float(penalties @ weights**2)

        present, converged = objective(weights), False
        for _ in range(most):
            linear = design @ weights
            mean = expit(linear)
            curvature = np.maximum(mean * (1 - mean), np.finfo(float).eps)
            scaled = design * np.sqrt(curvature)[:, None]
            factor, lower = cho_factor(scaled.T @ scaled + np.diag(penalties))
            right = design.T @ (curvature * linear + y - mean)
            step = cho_solve((factor, lower), right) - weights
            settled = np.linalg.norm(step) < 1e-3 * np.linalg.norm(weights)  # pyGAM's rule
            while objective(weights + step) > present + 1e-6 and np.abs(step).max() > 1e-6:
                step /= 2
            weights = weights + step
            present = objective(weights)
            separated = np.abs(design @ weights).max() > CERTAIN
            converged = bool(settled and not separated)
            if settled or separated:
                break
        edof = degrees_of_freedom(factor, penalties)
        ubre = deviance(design @ weights) / n + 2 + 2 * GAMMA * edof / n
        return Outcome(ubre, weights, converged)

    # a few steps that all candidates share; not to the end, which may be far out
    start = iterate(np.ones(coordinates.term.max() + 1), np.zeros(design.shape[1]), 4).weights
    return lambda strengths: iterate(strengths, start)


def additive(
    model: Any, X: np.ndarray, varying: np.ndarray
) -> Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]:
    """What a column adds, centred over the rows of ``X``, and the standard error of that."""

    def effect(rows: np.ndarray, column: int) -> tuple[np.ndarray, np.ndarray]:
        if column not in varying:
            return np.zeros(len(rows)), np.zeros(len(rows))
        term = int(np.flatnonzero(varying == column)[0])
        own = model.terms.get_coef_indices(term)
        centre = np.asarray(model._modelmat(X, term=term).mean(axis=0)).ravel()
        basis = model._modelmat(rows[:, varying], term=term).toarray() - centre
        covariance = model.statistics_["cov"][np.ix_(own, own)]
        variance = np.einsum("ij,jk,ik->i", basis, covariance, basis)
        return basis @ model.coef_[own], np.sqrt(np.maximum(variance, 0))

    return effect
