"""The whole fit, readable as a script: tables of columns and a response in, a ``FittedModel`` out.

The first stage fits a network per column, then effects of single values where the residuals ask for
them. The second adds joint networks of pairs of columns and fits on with all terms. Each ends by
dropping the terms that the evidence does not pay for. Of a Gaussian response, the size of the noise is
fitted last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from lanam.core.arrays import Rng
from lanam.core.fit.assembly import assemble, switched_off, unused
from lanam.core.fit.first_stage import first_stage, refit_noise
from lanam.core.fit.prepare import Look, Run, prepare, threads
from lanam.core.fit.resume import resume
from lanam.core.fit.second_stage import second_stage
from lanam.core.fit.solvers import make_problem
from lanam.core.inference.options import Options
from lanam.core.inference.solver import Stage
from lanam.core.likelihoods import Likelihood
from lanam.core.model.fitted import FittedModel, ScoredPair
from lanam.core.noise.residuals import LogVariance, learn_noise, learn_shape, standard_residuals
from lanam.core.rows.summaries import Summary
from lanam.core.rows.tables import ArrayTables, Table, Tables

#: Noise of less than so many times the smallest possible is that.
_ABOVE_FLOOR = 1.01

#: The size of the noise is known well enough when its evidence rises by less than this.
_NOISE_TOL = 0.5
#: Where tails are heavy the evidence wanders, and more passes bring nothing.
_NOISE_ITERATIONS = 30

#: Coordinates that a column has in the first stage, about.
_COLUMN_WIDTH = 8


def fit(
    tables: Tables,
    likelihood: Likelihood,
    options: Options,
    random_state: int,
    n_levels: Sequence[int] = (),
    look: Look | None = None,
) -> FittedModel:
    """Fit an additive model; of several restarts of its first stage the one with most evidence is kept.

    ``n_levels`` has the number of levels of every column of categories, -1 for numeric ones;
    whoever wants to ``look`` at the summary of the rows is shown it.
    """
    *seeds, second_seed = _seeds(random_state, options)
    with threads(tables.n_columns * _COLUMN_WIDTH, options.n_jobs):
        prepared = prepare(tables, likelihood, options, n_levels, look)
        run = Run(prepared, options)
        stage = _best_first_stage(run, seeds)
    # Who interrupts the first stage does not want to wait for a second.
    return _finish(stage, run, np.random.default_rng(second_seed), pairs=not stage.interrupted)


def fit_on(
    model: FittedModel,
    tables: Tables,
    likelihood: Likelihood,
    options: Options,
    random_state: int,
    look: Look | None = None,
) -> FittedModel:
    """The second stage alone, on a model whose terms and hyperparameters are where it starts."""
    with threads(tables.n_columns * _COLUMN_WIDTH, options.n_jobs):
        prepared, stage = resume(model, tables, likelihood, options, look)
    run = Run(prepared, options, history=[dict(record) for record in model.history])
    second_seed = _seeds(random_state, options)[-1]
    wider = _finish(stage, run, np.random.default_rng(second_seed), pairs=True)
    return replace(wider, pairs=_remembered(model.pairs, wider.pairs))


def _remembered(
    earlier: tuple[ScoredPair, ...], newer: tuple[ScoredPair, ...]
) -> tuple[ScoredPair, ...]:
    """The newer pairs; those that an earlier search tried keep its score, and its word if left out."""
    before = {pair.features: pair for pair in earlier}
    told = []
    for pair in newer:
        old = before.get(pair.features)
        if old is not None and not old.status.startswith("left out"):
            left_out = pair.status.startswith("left out")
            pair = replace(pair, score=old.score, status=old.status if left_out else pair.status)
        told.append(pair)
    return tuple(sorted(told, key=lambda pair: -pair.score)) or earlier


def _seeds(random_state: int, options: Options) -> list[np.random.SeedSequence]:
    """A seed for every restart of the first stage and, last, one for the second."""
    return np.random.SeedSequence(random_state).spawn(options.n_restarts + 1)


def _best_first_stage(run: Run, seeds: Sequence[np.random.SeedSequence]) -> Stage:
    """The restart with most evidence; an interrupt ends them all."""
    terms, rows, likelihood = run.prepared.terms, run.prepared.rows, run.prepared.units.likelihood
    announce = partial(run.announce, "columns", len(terms))
    problem = make_problem(terms, rows, likelihood, run.options, announce)
    best: Stage | None = None
    for seed in seeds:
        stage = first_stage(problem, run, np.random.default_rng(seed))
        if best is None or stage.state.evidence > best.state.evidence:
            best = stage
        if stage.interrupted:
            return replace(best, reason=stage.reason)
    assert best is not None
    return best


def _finish(stage: Stage, run: Run, rng: Rng, *, pairs: bool) -> FittedModel:
    """Add the pairs that were asked for, put the model together, and learn its noise."""
    options, prepared = run.options, run.prepared
    scored: tuple[ScoredPair, ...] = ()
    pairs = pairs and options.interactions not in (0, ())
    if pairs:
        stage, scored = second_stage(stage, run, rng)
    with threads(stage.width, options.n_jobs):
        if pairs:
            stage = refit_noise(stage, run, rng)
        solution = run.solver.solution(stage.problem, stage.state, rng)
    off = [unused(*item) for item in prepared.unused.items()]
    # A pair that did not make it is no term: the table of scores tells of it.
    off += [switched_off(gone) for gone in stage.dropped if not gone.term.joint]
    model = assemble(prepared.units, stage.problem, stage.state, solution, off)
    reason = stage.reason
    if _noise_is_learned(stage, options):
        try:
            model = _learn_noise(model, prepared.summary, options, rng)
        except KeyboardInterrupt:
            reason = "interrupted"
    return replace(model, history=tuple(run.history), stop_reason=reason, pairs=scored)


def _noise_is_learned(stage: Stage, options: Options) -> bool:
    likelihood = stage.problem.likelihood
    if not (options.noise and likelihood.heteroscedastic and likelihood.noise_bounds):
        return False
    # At its floor the noise is none, but what rounding and knots leave.
    above = stage.state.noise > _ABOVE_FLOOR * likelihood.noise_bounds[0]
    return above and not stage.interrupted


def _learn_noise(model: FittedModel, summary: Summary, options: Options, rng: Rng) -> FittedModel:
    """The model with how its noise differs from row to row and what shape it has, by a sample of rows."""
    if summary.sample is None:
        return model
    # The same whatever was drawn before: a search that finds no pair leaves the model as it was.
    seed = int(rng.spawn(1)[0].integers(1 << 31))
    fit_noise = partial(fit_squares, summary, options, seed)
    model = replace(model, noise=learn_noise(model, summary.sample, fit_noise))
    residuals = standard_residuals(model, summary.sample)
    return replace(model, shape=learn_shape(residuals.response, residuals.weight))


def fit_squares(
    summary: Summary, options: Options, seed: int, rows: Table, columns: Sequence[int]
) -> FittedModel:
    """An additive model of the size of squares, by these of the columns that ``summary`` is of."""
    # No effects of single values: residuals as large as each other by chance would have some.
    simpler = replace(
        options,
        interactions=0,
        level_effects=False,
        n_restarts=1,
        tol=max(options.tol, _NOISE_TOL),
        max_iter=min(options.max_iter, _NOISE_ITERATIONS),
        on_plan=None,
        on_iteration=None,
    )
    n_levels = [len(summary.columns[k].mass) or -1 for k in columns]
    fitted = fit(ArrayTables(rows), LogVariance(), simpler, seed, n_levels)
    if fitted.stop_reason == "interrupted":
        raise KeyboardInterrupt
    return fitted
