"""Problems with a known truth: do the bands cover it, and are useless features switched off?"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import metrics
from benchmarks.data.problems import (
    SPARSE_FUNCTIONS,
    TOY_FUNCTIONS,
    AdditiveProblem,
    PlantedProblem,
    planted_pairs,
    sparse_problem,
    toy_problem,
)
from benchmarks.environment import say

Row = dict[str, Any]
BAND_LEVEL = 0.95
CORRELATIONS = (0.0, 0.5, 0.9)
POSTERIORS = ("joint", "block")
PAIR_SCORES = (
    "evidence",
    "mutual_information",
    "evidence_gain",
    "mutual_information_full",
    "evidence_gain_full",
)


def _fit(
    problem: AdditiveProblem | PlantedProblem, seed: int, **arguments: Any
) -> tuple[Any, float, str]:
    """Fit lanam; return the model, its seconds and the names of the warnings it gave."""
    from lanam import LANAMRegressor

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        model = LANAMRegressor(random_state=seed, **arguments).fit(problem.X, problem.y)
        seconds = time.perf_counter() - start
    return model, seconds, "; ".join(sorted({item.category.__name__ for item in caught}))


def active_features(model: Any) -> set[int]:
    """Columns that take part in at least one term that is not switched off."""
    return {feature for term in model.terms_ if term.active for feature in term.features}


def band_coverage(truth: np.ndarray, mean: np.ndarray, std: np.ndarray) -> float:
    """Share of points whose true value lies in the band; 0 +- 0 covers a truth of 0."""
    lower, upper = metrics.gaussian_interval(mean, std, BAND_LEVEL)
    rounding = 1e-12  # a band of width zero must still hold the number it states
    return metrics.interval_coverage(truth, lower - rounding, upper + rounding)


def coverage_rows(n_seeds: int, n_rows: int = 1000) -> Iterator[Row]:
    """Coverage of each toy function: one row a correlation x seed x posterior x function.

    Pointwise 95% bands, averaged over the training values of x; truth centred over the data.
    Smooth terms only, so that every feature has exactly one band.
    """
    for correlation in CORRELATIONS:
        for seed in range(n_seeds):
            problem = toy_problem(seed, correlation, n_rows)
            for posterior in POSTERIORS:
                yield from _coverage_cell(problem, correlation, seed, posterior)


def _coverage_cell(
    problem: AdditiveProblem, correlation: float, seed: int, posterior: str
) -> Iterator[Row]:
    cell: Row = {"correlation": correlation, "seed": seed, "posterior": posterior}
    try:
        model, seconds, warned = _fit(
            problem, seed, interactions=0, posterior=posterior, level_effects=False
        )
        means, stds = model.predict_terms(problem.X, return_std=True)
    except Exception as error:  # one failure must not lose the other seeds
        yield _failure(cell, error)
        return
    active = active_features(model)
    covered = []
    for column, term in enumerate(model.terms_):
        (feature,) = term.features
        coverage = band_coverage(problem.effects[:, feature], means[:, column], stds[:, column])
        covered.append(coverage)
        yield {
            **cell,
            "function": f"f{feature + 1}",
            "coverage": coverage,
            "mean_std": float(stds[:, column].mean()),
            "rmse": metrics.rmse(problem.effects[:, feature], means[:, column]),
            "active": feature in active,
            "fit_seconds": seconds,
            "warnings": warned,
        }
    figures = " ".join(f"{coverage:.2f}" for coverage in covered)
    say(f"toy rho {correlation} seed {seed:2d} {posterior:<6} coverage {figures}  {seconds:.2f} s")


def _failure(cell: Row, error: Exception) -> Row:
    traceback.print_exc()
    message = f"{type(error).__name__}: {error}"
    say(f"{' '.join(str(value) for value in cell.values())} FAILED {message}")
    return {**cell, "error": message}


def selection_rows(n_toy_seeds: int, n_sparse_seeds: int) -> Iterator[Row]:
    """Which features stay active in a first-order fit: one row a problem x seed."""
    n_toy_informative = len(TOY_FUNCTIONS) - 1  # f4 is zero
    for seed in range(n_toy_seeds):
        yield _selection_cell("toy", seed, toy_problem(seed), n_toy_informative)
    for seed in range(n_sparse_seeds):
        yield _selection_cell("5 of 50", seed, sparse_problem(seed), len(SPARSE_FUNCTIONS))


def _selection_cell(name: str, seed: int, problem: AdditiveProblem, n_informative: int) -> Row:
    cell: Row = {"problem": name, "seed": seed}
    try:
        model, seconds, warned = _fit(problem, seed, interactions=0)
        active = active_features(model)
    except Exception as error:  # one failure must not lose the other seeds
        return _failure(cell, error)
    informative = set(range(n_informative))
    row = {
        **cell,
        "noise_active": len(active - informative),
        "informative_lost": len(informative - active),
        "fit_seconds": seconds,
        "warnings": warned,
    }
    say(
        f"selection {name} seed {seed:2d}: {row['noise_active']} noise features active, "
        f"{row['informative_lost']} informative lost  {seconds:.2f} s"
    )
    return row


def planted_rows(n_seeds: int) -> Iterator[Row]:
    """The ranks of the pairs that do interact: one row a seed x score.

    By ``evidence`` the number of pairs is left to the fit, and what it added is counted. The other
    scores are asked for one pair only, since all that is wanted of them is the ranking. A rank is the
    number of pairs that score no less, so that a tie is no merit.
    """
    for seed in range(n_seeds):
        problem = planted_pairs(seed)
        for score in PAIR_SCORES:
            yield _planted_cell(problem, seed, score)


def _planted_cell(problem: PlantedProblem, seed: int, score: str) -> Row:
    cell: Row = {"seed": seed, "score": score}
    asked = "auto" if score == "evidence" else 1
    try:
        model, seconds, warned = _fit(problem, seed, interactions=asked, interaction_score=score)
        scores = {row["features"]: row["score"] for row in model.interaction_scores_.rows}
    except Exception as error:  # one failure must not lose the other seeds
        return _failure(cell, error)
    row = dict(cell)
    for name, pair in problem.pairs.items():
        row[f"rank_{name}"] = sum(other >= scores[pair] for other in scores.values())
    if asked == "auto":
        added = {term.features for term in model.terms_ if term.kind == "pair" and term.active}
        planted = set(problem.pairs.values())
        row |= {"planted_added": len(added & planted), "false_added": len(added - planted)}
    say(" ".join(f"{key} {value}" for key, value in row.items()) + f"  {seconds:.2f} s")
    return row | {"fit_seconds": seconds, "warnings": warned}
