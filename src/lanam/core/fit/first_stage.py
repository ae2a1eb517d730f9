"""The first stage of a fit: a network per column, then terms for the structure of their residuals.

These are the noise of missing values, level effects, and the dispersion of counts. Solvers of networks only
have none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lanam.core.arrays import Array, Rng
from lanam.core.fit import robust
from lanam.core.fit.prepare import Run
from lanam.core.inference import gauss_newton, selection
from lanam.core.inference.gauss_newton import Limits
from lanam.core.inference.problem import Problem, State, add_terms
from lanam.core.inference.solver import Stage, TrainingTask
from lanam.core.model.fitted import FittedModel
from lanam.core.noise.missingness import fit_missingness_noise
from lanam.core.rows import reading, statistics
from lanam.core.rows.located import AnyRows, Rows, added
from lanam.core.rows.statistics import Around
from lanam.core.rows.tables import Totals
from lanam.core.terms.knots import Levels
from lanam.core.terms.term import LevelTerm

#: The least ratio of rows to sampled rows for a fit to the sample to pay off.
_SAMPLE_PAYS = 4

#: Columns with fewer values need no level effects: a network is flexible enough.
_MIN_LEVELS = 4

_LEVEL_VARIANCES = np.logspace(-5.0, 2.0, 50)


#: A problem to continue with, and its state.
Extension = tuple[Problem, State]


def first_stage(problem: Problem, run: Run, rng: Rng) -> Stage:
    """Fit all columns' terms, then those of their residuals; each step drops unsupported terms.

    If some responses are gross errors, once more with less weight for these.
    """
    solver = run.prepared.solver

    def fit(rows: AnyRows) -> Stage:
        weighted = problem if rows is problem.rows else problem.with_terms(problem.terms, rows)
        start = _at_baseline(weighted, solver.initial_state(weighted, rng), run.options.time)
        return _fit_columns(Stage(weighted, start), run, rng)

    if solver.trained:
        stage = Stage(problem, solver.initial_state(problem, rng))
        return solver.train(TrainingTask("smooth", stage, problem, stage.state), rng, run.record)
    stage = robust.weighted_stage(fit(problem.rows), problem.rows, fit, run)
    return refit_noise(stage, run)


def _at_baseline(problem: Problem, state: State, time: int | None) -> State:
    """The state with the curve of time at the rates of its entries, which may be far from their mean.

    From a rate that is much too high, a step of Newton's method lowers its logarithm by one only.
    """
    places = [k for k, term in enumerate(problem.terms) if term.features == (time,)]
    if not places:
        return state
    (k,) = places
    around = problem.around(state)
    curvature, gradient = problem.rows.total(partial(_entry_derivatives, around, k))
    # As if each entry had half an event more, at the mean rate.
    rates = np.log((curvature + gradient + 0.5) / (curvature + 0.5))
    terms = list(state.terms)
    terms[k] = replace(terms[k], values=rates)
    return replace(state, terms=tuple(terms))


def _entry_derivatives(around: Around, k: int, parts: Iterable[Rows]) -> Totals:
    """Sums of curvature and gradient at the entries of term ``k``."""

    def of(part: Rows) -> Totals:
        gradient, curvature = around.derivatives(part)
        own = part.keep_terms([k])
        return tuple(statistics.entry_sums(own, values)[0] for values in (curvature, gradient))

    return added(parts, statistics.CHUNK_ROWS, of)


def resumed_stage(stage: Stage, model: FittedModel, run: Run) -> Stage:
    """The end of a model's fit, with the weights of gross errors if it had some."""

    def fit(rows: AnyRows) -> Stage:
        problem = stage.problem.with_terms(stage.problem.terms, rows)
        return replace(stage, problem=problem, state=_converge("errors", problem, stage.state, run))

    if not robust.may_have_gross_errors(model):
        return stage
    return refit_noise(robust.weighted_stage(stage, stage.problem.rows, fit, run), run)


def _fit_columns(stage: Stage, run: Run, rng: Rng) -> Stage:
    """All columns' terms, the noise of missing values, and level effects."""
    solver = run.prepared.solver
    try:
        for name, step in (
            ("smooth", _columns),
            ("missingness", _missing_noise),
            ("levels", _levels),
        ):
            extension = step(stage, run)
            if extension is not None:
                stage = solver.train(TrainingTask(name, stage, *extension), rng, run.record)
                if stage.interrupted:
                    return stage
    except KeyboardInterrupt:
        return replace(stage, reason="interrupted")
    return stage


def refit_noise(stage: Stage, run: Run) -> Stage:
    """Update the noise after all terms: of missing values, gross errors, and small counts' dispersion."""
    if run.prepared.solver.trained or stage.interrupted:
        return stage
    problem, state = stage.problem, stage.state
    weighed = _missing_noise(stage, run)
    if weighed is not None:
        problem, state = weighed
        state = _converge("missingness", problem, state, run)
    reweighted = robust.reweighted(problem, state, run)
    if reweighted is not None:
        problem, state = reweighted, _converge("errors", reweighted, state, run)
    if problem.likelihood.pearson_dispersion:
        # The deviance of small counts understates dispersion: most of them are zero anyway.
        noise = _pearson_dispersion(problem, state)
        if noise > state.noise:
            state = gauss_newton.refit_posterior(problem, replace(state, noise=noise))
    return replace(stage, problem=problem, state=state)


def with_lower_dispersion(stage: Stage) -> Stage:
    """The posterior at Pearson's estimate of the dispersion, if it is below the fit's.

    The evidence has the deviance in its place, which is a tenth too large where counts are about two. The
    state keeps its evidence: at a dispersion that does not maximise it, it could not be compared with that
    of other families.
    """
    problem, state = stage.problem, stage.state
    if not problem.likelihood.pearson_dispersion or stage.interrupted:
        return stage
    noise = _pearson_dispersion(problem, state)
    if noise >= state.noise:
        return stage
    settled = gauss_newton.refit_posterior(problem, replace(state, noise=noise))
    return replace(stage, state=replace(settled, evidence=state.evidence))


def _pearson_dispersion(problem: Problem, state: State) -> float:
    (spread,) = problem.rows.total(partial(_pearson_sum, problem.around(state)))
    freedom = max(problem.rows.count - state.n_effective - 1.0, 1.0)
    assert problem.likelihood.noise_bounds is not None
    return float(np.clip(spread / freedom, *problem.likelihood.noise_bounds))


def _columns(stage: Stage, run: Run) -> Extension:
    """All columns' terms; with many rows, starting from a fit to a sample.

    Passes over the sample are cheap, and few are then left over all rows.
    """
    problem, state = stage.problem, stage.state
    sample, units = run.prepared.summary.sample, run.prepared.units
    # A quadratic likelihood needs only one pass over all rows.
    if units.likelihood.quadratic or sample is None:
        return problem, state
    if run.prepared.summary.n_rows < _SAMPLE_PAYS * len(sample):
        return problem, state
    few = problem.with_terms(problem.terms, Rows.of(sample, problem.terms, units))
    learned = _converge("sample", few, state, run)
    terms = tuple(
        replace(old, precision=np.minimum(new.precision, old.precision), values=new.values)
        for old, new in zip(state.terms, learned.terms, strict=True)
    )
    return problem, replace(
        State(terms, learned.intercept, learned.noise), likelihood=learned.likelihood
    )


def _missing_noise(stage: Stage, run: Run) -> Extension | None:
    """Rows weighted by the noise of their missing values, if the evidence supports it."""
    weighed = fit_missingness_noise(stage.problem, stage.state)
    return None if weighed[0] is stage.problem else weighed


def _levels(stage: Stage, run: Run) -> Extension | None:
    """Level effects, if they are enabled and supported."""
    if not run.options.level_effects:
        return None
    return add_levels(stage.problem, stage.state, run.prepared.levels)


def _converge(name: str, problem: Problem, state: State, run: Run) -> State:
    """Passes without selection."""
    limits = Limits(run.options.max_iter, run.options.tol)
    return gauss_newton.converge(problem, state, limits, partial(run.record, name))[0]


def _pearson_sum(around: Around, parts: Iterable[Rows]) -> Totals:
    """The Pearson statistic of all rows."""

    def of(part: Rows) -> Totals:
        squares = around.likelihood.pearson(part.y, around.predict(part))
        return (np.array(part.information @ squares),)

    return added(parts, statistics.CHUNK_ROWS, of)


# --- level effects: one per value of a numeric column (method.md 5) --------------------------------


@dataclass(frozen=True)
class LevelGain:
    """The log evidence gain of a level effect, its best prior variance and posterior mean."""

    evidence: float
    variance: float
    mean: Array


def level_gain(weight: Array, score: Array) -> LevelGain:
    """Evidence of independent level effects, maximised over their variance ``v``.

    ``weight`` ``n_k`` and ``score`` ``s_k`` are the sums per level of curvature and gradient, in units
    of the noise: ``1/2 sum_k [v s_k^2 / (1 + v n_k) - log(1 + v n_k)]``, summed over outputs.
    """
    typical = float(weight.mean())
    # The grid is relative to the variance at which a typical level's data and prior have equal weight.
    variances = _LEVEL_VARIANCES / typical
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
    problem: Problem, state: State, levels: dict[int, Levels]
) -> tuple[Problem, State] | None:
    """Add supported level effects, best first, each on the residuals of those before; None without any."""
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
        if gains[best].evidence < selection.MIN_LOG_EVIDENCE_GAIN:
            break
        chosen[best] = gains[best]
    if not chosen:
        return None
    wider, state = add_terms(problem, state, [candidates[k] for k in chosen])
    tuned = tuple(
        replace(term, precision=np.array([1.0 / gain.variance]))
        for term, gain in zip(state.terms[n_before:], chosen.values(), strict=True)
    )
    return wider, replace(state, terms=(*state.terms[:n_before], *tuned))


def _level_sums(
    around: Around, learned: dict[int, Array], n_before: int, parts: Iterable[Rows]
) -> Totals:
    """Sums of curvature and gradient per level of each candidate, with one column per output.

    Candidates are the terms after the first ``n_before``; ``learned`` has the means of chosen ones.
    """

    def of(part: Rows) -> Totals:
        gradient, curvature = around.derivatives(part.keep_terms(range(n_before)))
        for k, mean in learned.items():
            gradient = gradient - statistics.curved(
                curvature, reading.read(part.positions[k], mean)
            )
        diagonal = statistics.own_curvature(curvature)
        candidates = part.keep_terms(range(n_before, len(part.sizes)))
        sums = [_entry_sums(candidates, values) for values in (diagonal, gradient)]
        return tuple(values for one in zip(*sums, strict=True) for values in one)

    return added(parts, statistics.CHUNK_ROWS, of)


def _entry_sums(rows: Rows, row_values: Array) -> list[Array]:
    """Sums per entry of each term; a column for each of several outputs."""
    if row_values.ndim == 1:
        return statistics.entry_sums(rows, row_values)
    outputs = (statistics.entry_sums(rows, values) for values in row_values.T)
    return [np.column_stack(sums) for sums in zip(*outputs, strict=True)]
