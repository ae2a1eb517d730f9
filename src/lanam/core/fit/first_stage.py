"""The first stage of a fit: a network per column, then what their residuals ask for.

That is the noise of rows with missing values, effects of single values, and the dispersion of counts.
Solvers that train networks only have none of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from lanam.core.arrays import Rng
from lanam.core.fit.levels import add_levels
from lanam.core.fit.run import Run
from lanam.core.inference import gauss_newton
from lanam.core.inference.gauss_newton import Limits
from lanam.core.inference.problem import Problem, State
from lanam.core.inference.solver import Stage, Task
from lanam.core.noise.missingness import fit_missingness_noise
from lanam.core.rows import statistics
from lanam.core.rows.located import Rows, added
from lanam.core.rows.statistics import Around
from lanam.core.rows.tables import Totals

#: How many times more rows than a sample has must there be for it to pay.
_SAMPLE_PAYS = 4


#: A problem to go on with, and from where.
Extension = tuple[Problem, State]


def first_stage(problem: Problem, run: Run, rng: Rng) -> Stage:
    """Fit all columns' terms, then what their residuals ask for; each step drops what does not pay."""
    solver = run.solver
    stage = Stage(problem, solver.start(problem, rng))
    if solver.networks_only:
        return solver.train(Task("smooth", stage, problem, stage.state), rng, run.record)
    try:
        for name, step in (("smooth", _columns), ("gaps", _gap_noise), ("levels", _levels)):
            extension = step(stage, run, rng)
            if extension is not None:
                stage = solver.train(Task(name, stage, *extension), rng, run.record)
                if stage.interrupted:
                    return stage
    except KeyboardInterrupt:
        return replace(stage, reason="interrupted")
    return refit_noise(stage, run, rng)


def refit_noise(stage: Stage, run: Run, rng: Rng) -> Stage:
    """The noise that all terms together leave: what gaps add to it, and what rare counts hide of it."""
    if run.solver.networks_only or stage.interrupted:
        return stage
    problem, state = stage.problem, stage.state
    weighed = _gap_noise(stage, run, rng)
    if weighed is not None:
        problem, state = weighed
        state = _converge("gaps", problem, state, run, rng)
    if problem.likelihood.pearson_dispersion:
        # Of small counts the deviance says too little: most of them are zero whatever the dispersion.
        (spread,) = problem.rows.total(partial(_pearson_sum, problem.around(state)))
        freedom = max(problem.rows.count - state.n_effective - 1.0, 1.0)
        if spread / freedom > state.noise:
            noisier = replace(state, noise=float(spread / freedom))
            state = gauss_newton.refit_posterior(problem, noisier)
    return replace(stage, problem=problem, state=state)


def _columns(stage: Stage, run: Run, rng: Rng) -> Extension:
    """All columns' terms; where there are many rows, from what a sample of them says.

    A pass over the sample costs next to nothing, and few are then left to do over all rows.
    """
    problem, state = stage.problem, stage.state
    sample, units = run.prepared.summary.sample, run.prepared.units
    # Of a quadratic the sums of all rows are known after one pass.
    if units.likelihood.quadratic or sample is None:
        return problem, state
    if len(problem.rows) < _SAMPLE_PAYS * len(sample):
        return problem, state
    few = problem.with_terms(problem.terms, Rows.of(sample, problem.terms, units))
    learned = _converge("sample", few, state, run, rng)
    terms = tuple(
        replace(known, precision=np.minimum(own.precision, known.precision), values=own.values)
        for known, own in zip(state.terms, learned.terms, strict=True)
    )
    return problem, State(terms, learned.intercept, learned.noise)


def _gap_noise(stage: Stage, run: Run, rng: Rng) -> Extension | None:
    """Rows weighed by the noise of their missing values, if that pays."""
    weighed = fit_missingness_noise(stage.problem, stage.state)
    return None if weighed[0] is stage.problem else weighed


def _levels(stage: Stage, run: Run, rng: Rng) -> Extension | None:
    """Effects of single values, if there may be any and a column needs them."""
    if not run.options.level_effects:
        return None
    return add_levels(stage.problem, stage.state, run.prepared.levels, rng)


def _converge(name: str, problem: Problem, state: State, run: Run, rng: Rng) -> State:
    """Passes that drop nothing."""
    limits = Limits(run.options.max_iter, run.options.tol)
    return gauss_newton.converge(problem, state, rng, limits, partial(run.record, name))[0]


def _pearson_sum(around: Around, parts: Iterable[Rows]) -> Totals:
    """Squared deviations from the means of all rows, in units of the means."""

    def of(part: Rows) -> Totals:
        squares = around.likelihood.pearson(part.y, around.predict(part))
        return (np.array(part.information @ squares),)

    return added(parts, statistics.CHUNK_ROWS, of)
