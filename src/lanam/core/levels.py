"""Level effects: jagged where the data says so (method.md 5).

A numeric column may also get an independent effect per value (or per quantile bin), where its residuals
after the smooth fit ask for one. Screening is closed form; what passes is fitted with all the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lanam.core import gauss_newton, statistics
from lanam.core.arrays import Array
from lanam.core.gauss_newton import Problem, State
from lanam.core.knots import Levels, Position
from lanam.core.terms import LevelTerm

#: Nats a level effect must promise to be tried.
_WORTH = 3.0

#: Columns with fewer values are no harder for a network.
_MIN_LEVELS = 4

_VARIANCES = np.logspace(-5.0, 2.0, 50)


@dataclass(frozen=True)
class LevelGain:
    """What a level effect would add: evidence, its best prior variance and posterior mean."""

    evidence: float
    variance: float
    mean: Array


def level_gain(weight: Array, score: Array) -> LevelGain:
    """Evidence of independent level effects, maximised over their variance ``v``.

    ``weight`` ``n_k`` and ``score`` ``s_k`` are the sums per level of the curvature and of the slope, in
    units of the noise: ``1/2 sum_k [v s_k^2 / (1 + v n_k) - log(1 + v n_k)]``. Of several outputs, all
    are summed.
    """
    typical = float(weight.mean())
    # The grid is in units of the variance at which a typical level's data and prior weigh the same.
    variances = _VARIANCES / typical
    for _ in range(2):
        shrinkage = 1.0 + np.multiply.outer(variances, weight.ravel())
        fit = np.multiply.outer(variances, score.ravel() ** 2) / shrinkage
        gains = 0.5 * (fit - np.log(shrinkage)).sum(axis=1)
        best = int(gains.argmax())
        evidence, variance = float(gains[best]), float(variances[best])
        lower, upper = variances[max(best - 1, 0)], variances[min(best + 1, len(variances) - 1)]
        variances = np.geomspace(lower, upper, 12)
    return LevelGain(evidence, variance, variance * score / (1.0 + variance * weight))


@dataclass(frozen=True)
class _Candidate:
    term: LevelTerm
    position: Position
    weight: Array

    def gain(self, slope: Array, noise: float) -> LevelGain:
        score = _level_sums(self.position, slope, len(self.weight)) / noise
        return level_gain(self.weight, score)


def _level_sums(position: Position, row_values: Array, size: int) -> Array:
    """Sums per level; a column for each of several outputs."""
    if row_values.ndim == 1:
        return statistics.spread(position, row_values, size)
    return np.column_stack([statistics.spread(position, own, size) for own in row_values.T])


def add_levels(
    problem: Problem,
    state: State,
    columns: Array,
    levels: dict[int, Levels],
    rng: np.random.Generator,
) -> tuple[Problem, State] | None:
    """Add the level effects that pay, best first, each on what the ones before it left over.

    None where no column needs one.
    """
    rows = problem.rows
    slope, curvature = statistics.slopes(rows, problem.likelihood, state.values, state.intercept)
    candidates = []
    for feature, entries in levels.items():
        if len(entries.points) >= _MIN_LEVELS:
            position = entries.locate(columns[:, feature])
            own = statistics.own_curvature(curvature)
            weight = _level_sums(position, own, len(entries)) / state.noise
            candidates.append(_Candidate(LevelTerm((feature,), entries), position, weight))
    added: list[_Candidate] = []
    variances: list[float] = []
    while candidates:
        gains = [candidate.gain(slope, state.noise) for candidate in candidates]
        best = max(range(len(gains)), key=lambda k: gains[k].evidence)
        if gains[best].evidence < _WORTH:
            break
        added.append(candidates.pop(best))
        variances.append(gains[best].variance)
        learned = gains[best].mean[added[-1].position.index]
        slope = slope - statistics.curved(curvature, learned)
    if not added:
        return None
    terms, positions = [c.term for c in added], [c.position for c in added]
    wider, state = gauss_newton.widen(problem, state, terms, positions, rng)
    n_before = len(problem.terms)
    tuned = tuple(
        replace(known, precision=np.array([1.0 / variance]))
        for known, variance in zip(state.terms[n_before:], variances, strict=True)
    )
    return wider, replace(state, terms=(*state.terms[:n_before], *tuned))
