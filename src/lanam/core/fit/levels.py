"""Level effects: jagged where the data says so (method.md 5).

A numeric column may also get an independent effect per value (or per quantile bin), where its residuals
after the smooth fit ask for one. Screening is closed form; what passes is fitted with all the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lanam.core.arrays import Array, Rng
from lanam.core.inference.problem import Problem, State, add_terms
from lanam.core.rows import reading, statistics
from lanam.core.rows.located import Rows, added
from lanam.core.rows.statistics import Around
from lanam.core.rows.tables import Totals
from lanam.core.terms.knots import Levels, Position
from lanam.core.terms.term import LevelTerm

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


def add_levels(
    problem: Problem, state: State, levels: dict[int, Levels], rng: Rng
) -> tuple[Problem, State] | None:
    """Add the level effects that pay, best first, each on what the ones before it left over.

    None where no column needs one.
    """
    candidates = [
        LevelTerm((feature,), entries)
        for feature, entries in levels.items()
        if len(entries.points) >= _MIN_LEVELS
    ]
    if not candidates:
        return None
    rows, n_before = problem.rows.with_terms(candidates), len(problem.terms)
    chosen: dict[int, LevelGain] = {}
    while len(chosen) < len(candidates):
        learned = {n_before + k: gain.mean for k, gain in chosen.items()}
        sums = rows.total(partial(_level_sums, problem.around(state), learned, n_before))
        left = [k for k in range(len(candidates)) if k not in chosen]
        gains = {
            k: level_gain(sums[2 * k] / state.noise, sums[2 * k + 1] / state.noise) for k in left
        }
        best = max(left, key=lambda k: gains[k].evidence)
        if gains[best].evidence < _WORTH:
            break
        chosen[best] = gains[best]
    if not chosen:
        return None
    wider, state = add_terms(problem, state, [candidates[k] for k in chosen], rng)
    tuned = tuple(
        replace(known, precision=np.array([1.0 / gain.variance]))
        for known, gain in zip(state.terms[n_before:], chosen.values(), strict=True)
    )
    return wider, replace(state, terms=(*state.terms[:n_before], *tuned))


def _level_sums(
    around: Around, learned: dict[int, Array], n_before: int, parts: Iterable[Rows]
) -> Totals:
    """Curvature and slope of every candidate's levels; of several outputs, a column each.

    Candidates are the terms after the first ``n_before``, and ``learned`` what was learned of some.
    """

    def of(part: Rows) -> Totals:
        slope, curvature = around.slopes(part.keep_terms(range(n_before)))
        for k, mean in learned.items():
            slope = slope - statistics.curved(curvature, mean[part.positions[k].index])
        own = statistics.own_curvature(curvature)
        candidates = zip(part.positions[n_before:], part.sizes[n_before:], strict=True)
        return tuple(_spread(*one, values) for one in candidates for values in (own, slope))

    return added(parts, statistics.CHUNK_ROWS, of)


def _spread(position: Position, size: int, row_values: Array) -> Array:
    """Sums per level; a column for each of several outputs."""
    if row_values.ndim == 1:
        return reading.spread(position, row_values, size)
    return np.column_stack([reading.spread(position, own, size) for own in row_values.T])
