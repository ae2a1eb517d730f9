"""Spline GAM of pyGAM, smoothed by the paper's random search; optional, not among the default models."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dtrtri
from scipy.special import expit

from benchmarks.datasets import Task
from benchmarks.peers.interface import Fitted, Prediction, missing_module

CANDIDATES = 1000  # the paper's
EXPONENTS = (-3.0, 3.0)  # of the smoothing parameters, the paper's range
SPLINES = (4, 20)  # of a column: the fewest cubic ones, pyGAM's default
GAMMA = 1.4  # what pyGAM's scores multiply degrees of freedom with
RIDGE = np.sqrt(np.finfo(float).eps)  # what pyGAM adds to its penalties
WORK = 1.5e10  # logistic: rows x coefficients^2 of all candidates, about 40 seconds


class SplineGAM:
    """One smoothing parameter a column, the best of 1000 random vectors of them by GCV or UBRE.

    pyGAM's own search fits each candidate anew, which takes hours. Here candidates are scored from
    pyGAM's model matrix and penalties, by its own score, and pyGAM fits the best one. Logistic
    candidates need iterations: where 1000 would take minutes (breast, ionosphere) there are
    fewer, as ``candidates`` in the results says.

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
        count = CANDIDATES
        if logistic:
            count = int(np.clip(WORK / coordinates.design.size / len(coordinates.term), 50, count))
        exponents = np.random.default_rng(seed).uniform(*EXPONENTS, (count, len(varying)))
        score = ubre_score(coordinates, y) if logistic else gcv_score(coordinates, y)
        scores = np.array([score(strengths) for strengths in 10.0**exponents])
        best = int(np.argmin(scores))
        model = make(n_splines=splines, lam=list(10.0 ** exponents[best]))
        converged = quietly(lambda: model.fit(kept, y)) == ""  # pyGAM prints if not
        info = {
            "candidates": count,
            "score": float(scores[best]),
            "edof": float(model.statistics_["edof"]),
            "converged": converged,
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


def quietly(action: Callable[[], Any]) -> str:
    """What pyGAM prints in doing so; its warnings are of its own code's age."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        action()
    return printed.getvalue()


@dataclass(frozen=True)
class Coordinates:
    """A GAM in coordinates that its penalties do not mix: they are ``strength * penalty`` of each.

    The last is the intercept. Each term has lost its constant, which the intercept has too.
    """

    design: np.ndarray  # (rows, coordinates)
    penalty: np.ndarray  # of each coordinate, for a strength of one
    term: np.ndarray  # whose strength it is; that of the intercept does not matter

    def penalties(self, strengths: np.ndarray) -> np.ndarray:
        return strengths[self.term] * self.penalty + RIDGE


def coordinates_of(gam: Any, X: np.ndarray) -> Coordinates:
    """Those of a GAM of splines, not fitted yet, whose strengths are all one."""
    gam._validate_params()
    gam._validate_data_dep_params(X)
    basis, penalty = gam.terms.build_columns(X).toarray(), gam.terms.build_penalties().toarray()
    columns, penalties, terms = [], [], []
    for term in range(X.shape[1]):
        own = gam.terms.get_coef_indices(term)
        block = penalty[np.ix_(own, own)]
        # constants have no penalty: with the largest of all they are the last eigenvector
        values, vectors = eigh(block + 1 + np.trace(block) / len(own))
        columns.append(basis[:, own] @ vectors[:, :-1])
        penalties.append(np.maximum(values[:-1], 0))
        terms.append(np.full(len(own) - 1, term))
    return Coordinates(
        np.column_stack([*columns, np.ones(len(X))]),
        np.append(np.concatenate(penalties), 0.0),
        np.append(np.concatenate(terms), 0),
    )


def degrees_of_freedom(factor: np.ndarray, penalties: np.ndarray) -> float:
    """Trace of ``inv(G + P) G``, from the upper factor of ``G + P``."""
    inverse, _ = dtrtri(factor)
    return float(len(penalties) - penalties @ np.square(np.triu(inverse)).sum(axis=1))


def gcv_score(coordinates: Coordinates, y: np.ndarray) -> Callable[[np.ndarray], float]:
    """pyGAM's GCV of a Gaussian GAM by its strengths; the rows are looked at once."""
    n, m = coordinates.design.shape
    reduced = np.linalg.qr(np.column_stack([coordinates.design, y]), mode="r")
    R, target = reduced[:m, :m], reduced[:m, m]
    gram, right, rest = R.T @ R, R.T @ target, float(np.square(reduced[m:, m]).sum())

    def score(strengths: np.ndarray) -> float:
        penalties = coordinates.penalties(strengths)
        factor, lower = cho_factor(gram + np.diag(penalties))
        residual = target - R @ cho_solve((factor, lower), right)
        edof = degrees_of_freedom(factor, penalties)
        return n * (residual @ residual + rest) / (n - GAMMA * edof) ** 2

    return score


def ubre_score(coordinates: Coordinates, y: np.ndarray) -> Callable[[np.ndarray], float]:
    """pyGAM's UBRE of a logistic GAM by its strengths, which is 2 more than the usual one plus one."""
    design, n = coordinates.design, len(y)

    def iterate(
        strengths: np.ndarray, weights: np.ndarray, most: int, tolerance: float
    ) -> tuple[np.ndarray, float]:
        penalties = coordinates.penalties(strengths)
        linear = design @ weights
        before = np.inf
        for _ in range(most):
            mean = expit(linear)
            curvature = np.maximum(mean * (1 - mean), np.finfo(float).eps)
            scaled = design * np.sqrt(curvature)[:, None]
            gram = scaled.T @ scaled + np.diag(penalties)
            factor, lower = cho_factor(gram)
            weights = cho_solve((factor, lower), design.T @ (curvature * linear + y - mean))
            linear = design @ weights
            deviance = 2 * float(np.logaddexp(0, linear).sum() - y @ linear)
            if abs(before - deviance) < tolerance * n:
                break
            before = deviance
        edof = degrees_of_freedom(factor, penalties)
        return weights, deviance / n + 2 + 2 * GAMMA * edof / n

    centre = np.ones(coordinates.term.max() + 1)
    start, _ = iterate(centre, np.zeros(design.shape[1]), 100, 1e-8)

    def score(strengths: np.ndarray) -> float:
        return iterate(strengths, start, 25, 1e-5)[1]

    return score


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
