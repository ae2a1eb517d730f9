"""The whole fit, readable as a script: tables of columns and a response in, a ``FittedModel`` out.

The first stage fits a network per column, then effects of single values where the residuals ask for
them. The second adds joint networks of pairs of columns and fits on with all terms. Each ends by
dropping the terms that the evidence does not pay for. Of a Gaussian response, the size of the noise is
fitted last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from lanam.core.arrays import Array
from lanam.core.fit.assembly import assemble, unused
from lanam.core.fit.levels import add_levels
from lanam.core.fit.prepare import Look, prepare
from lanam.core.fit.second_stage import second_stage
from lanam.core.fit.stage import Stage, resume
from lanam.core.fit.training import Run, fit_and_select, threads, train
from lanam.core.inference import gauss_newton, posterior
from lanam.core.inference.gauss_newton import Problem, State
from lanam.core.inference.options import Options
from lanam.core.inference.selection import null_fit
from lanam.core.likelihoods import Likelihood
from lanam.core.model.fitted import FittedModel, FittedTerm, ScoredPair
from lanam.core.noise.gaps import weigh
from lanam.core.noise.shapes import learn_shape
from lanam.core.noise.variance import LogVariance, learn_noise, standard_residuals
from lanam.core.paper import adam, kron
from lanam.core.rows import statistics
from lanam.core.rows.located import Rows, pieces
from lanam.core.rows.tables import ArrayTables, Table, Tables, Totals

#: Noise at the start, in units of the noise around the intercept alone.
_START_NOISE = 0.1

#: How many times more rows than a sample has must there be for it to pay.
_SAMPLE_PAYS = 4

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
    with threads(tables.n_columns * _COLUMN_WIDTH, options.n_jobs):
        prepared = prepare(tables, likelihood, options, n_levels, look)
        run = Run(prepared, options)
        run.announce("columns", prepared.terms)
        problem = gauss_newton.make_problem(
            prepared.terms,
            prepared.rows,
            prepared.units.likelihood,
            options.posterior == "joint",
            options.evidence_update,
            options.memory,
        )
        *seeds, second_seed = _seeds(random_state, options)
        best: Stage | None = None
        for seed in seeds:
            own_rng = np.random.default_rng(seed)
            stage = _first_stage(problem, run, own_rng)
            stage = _settle_noise(stage, run, own_rng)
            if best is None or stage.state.evidence > best.state.evidence:
                best = stage
            if stage.reason == "interrupted":
                best = replace(best, reason="interrupted")
                break
        assert best is not None
    if best.reason == "interrupted":
        # Who interrupts the first stage does not want to wait for a second.
        run.options = replace(options, interactions=0)
    return _finish(best, run, np.random.default_rng(second_seed))


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
    wider = _finish(stage, run, np.random.default_rng(second_seed))
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


def _first_stage(problem: Problem, run: Run, rng: np.random.Generator) -> Stage:
    # Without a term there is nothing for Adam to train.
    if run.options.solver == "adam" and problem.terms:
        return train(problem, None, run, rng)
    units = run.prepared.units
    known = tuple(
        gauss_newton.start(term, share, rng, units.likelihood.n_outputs)
        for term, share in zip(problem.terms, problem.shares, strict=True)
    )
    noise = 1.0
    if units.likelihood.noise_bounds is not None:
        smallest = units.likelihood.noise_bounds[0]
        noise = max(_START_NOISE * null_fit(problem.rows, units.likelihood)[1], smallest)
    state = State(known, statistics.start(problem.rows, units.likelihood), noise)
    off: list[FittedTerm] = []
    run.newest = (problem, state)
    try:
        state = _from_a_sample(problem, state, run, rng)
        problem, state, converged = fit_and_select("smooth", problem, state, run, rng, off)
        weighed = weigh(problem, state)
        if weighed[0] is not problem:
            problem, state, converged = fit_and_select("gaps", *weighed, run, rng, off)
        if run.options.level_effects:
            wider = add_levels(problem, state, run.prepared.levels, rng)
            if wider is not None:
                problem, state, converged = fit_and_select("levels", *wider, run, rng, off)
        reason = "converged" if converged else "max_iter"
    except KeyboardInterrupt:
        problem, state = run.newest
        reason = "interrupted"
    return Stage(problem, state, tuple(off), reason)


def _from_a_sample(problem: Problem, state: State, run: Run, rng: np.random.Generator) -> State:
    """A state to start from: what a sample of the rows says, where there are many more.

    A pass over the sample costs next to nothing, and few are then left to do over all rows.
    """
    sample, units = run.prepared.summary.sample, run.prepared.units
    # Of a quadratic the sums of all rows are known after one pass.
    if units.likelihood.quadratic:
        return state
    if sample is None or len(problem.rows) < _SAMPLE_PAYS * len(sample):
        return state
    few = problem.remade(problem.terms, Rows.of(sample, problem.terms, units))

    def record(now: State) -> None:
        # Whoever interrupts here has no model of all rows yet.
        run.add("sample", now.evidence, now.noise, len(few.terms), now.n_effective)

    limits = (run.options.max_iter, run.options.tol)
    learned, _ = gauss_newton.converge(few, state, rng, *limits, record)
    terms = tuple(
        replace(known, precision=np.minimum(own.precision, known.precision), values=own.values)
        for known, own in zip(state.terms, learned.terms, strict=True)
    )
    return State(terms, learned.intercept, learned.noise)


def _settle_noise(stage: Stage, run: Run, rng: np.random.Generator) -> Stage:
    """The noise that all terms together leave: what gaps add to it, and what rare counts hide of it."""
    if run.options.solver == "adam" or stage.reason == "interrupted":
        return stage
    problem, state = weigh(stage.problem, stage.state)
    if problem is not stage.problem:
        limits, record = (run.options.max_iter, run.options.tol), run.recorder("gaps", problem)
        state, _ = gauss_newton.converge(problem, state, rng, *limits, record)
    if problem.likelihood.pearson_dispersion:
        # Of small counts the deviance says too little: most of them are zero whatever the dispersion.
        spread = _pearson(problem, state)
        freedom = max(problem.rows.count - state.n_effective - 1.0, 1.0)
        if spread / freedom > state.noise:
            noisier = replace(state, noise=spread / freedom)
            state = gauss_newton.settle(problem, noisier, np.random.default_rng(0))
    return replace(stage, problem=problem, state=state)


def _pearson(problem: Problem, state: State) -> float:
    """Squared deviations from the means of all rows, in units of the means."""
    job = partial(_pearson_sum, problem.likelihood, tuple(state.values), float(state.intercept))
    (total,) = problem.rows.total(job)
    return float(total)


def _pearson_sum(
    likelihood: Likelihood, values: tuple[Array, ...], intercept: float, parts: Iterable[Rows]
) -> Totals:
    sums = (
        part.information @ likelihood.pearson(part.y, statistics.predict(part, values, intercept))
        for part in pieces(parts, statistics.CHUNK_ROWS)
    )
    return (np.array(sum(sums)),)


def _finish(stage: Stage, run: Run, rng: np.random.Generator) -> FittedModel:
    """Add the pairs that were asked for, and put the model together."""
    options, prepared = run.options, run.prepared
    pairs: tuple[ScoredPair, ...] = ()
    asks = options.interactions not in (0, ())
    if asks:
        stage, pairs = second_stage(stage, run, rng)
    with threads(stage.width, options.n_jobs):
        if asks:
            stage = _settle_noise(stage, run, rng)
        if options.solver == "adam" and stage.problem.terms:
            solution = adam.solution(stage.problem, stage.state, options, rng)
        else:
            solve = kron.solution if options.curvature == "kron" else posterior.exact
            solution = solve(stage.problem, stage.state, rng)
    off = [*stage.off, *(unused(*item) for item in prepared.unused.items())]
    # A pair that did not make it is no term: the table of scores tells of it.
    off = [term for term in off if not term.joint]
    model = assemble(prepared.units, stage.problem, stage.state, solution, off)
    reason = stage.reason
    if _noise_is_learned(stage, run):
        try:
            model = _learn_noise(model, run, rng)
        except KeyboardInterrupt:
            reason = "interrupted"
    return replace(model, history=tuple(run.history), stop_reason=reason, pairs=pairs)


def _noise_is_learned(stage: Stage, run: Run) -> bool:
    likelihood = stage.problem.likelihood
    if not (run.options.noise and likelihood.heteroscedastic and likelihood.noise_bounds):
        return False
    # At its floor the noise is none, but what rounding and knots leave.
    above = stage.state.noise > _ABOVE_FLOOR * likelihood.noise_bounds[0]
    return above and stage.reason != "interrupted"


def _learn_noise(model: FittedModel, run: Run, rng: np.random.Generator) -> FittedModel:
    """The model with how its noise differs from row to row and what shape it has, by a sample of rows."""
    summary = run.prepared.summary
    if summary.sample is None:
        return model
    # The same whatever was drawn before: a search that finds no pair leaves the model as it was.
    seed = int(rng.spawn(1)[0].integers(1 << 31))
    # No effects of single values: residuals as large as each other by chance would have some.
    options = replace(
        run.options,
        interactions=0,
        level_effects=False,
        n_restarts=1,
        tol=max(run.options.tol, _NOISE_TOL),
        max_iter=min(run.options.max_iter, _NOISE_ITERATIONS),
        on_plan=None,
        on_iteration=None,
    )

    def fit_squares(rows: Table, columns: Sequence[int]) -> FittedModel:
        masses = [summary.columns[k].mass for k in columns]
        n_levels = [len(mass) or -1 for mass in masses]
        fitted = fit(ArrayTables(rows), LogVariance(), options, seed, n_levels)
        if fitted.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return fitted

    model = replace(model, noise=learn_noise(model, summary.sample, fit_squares))
    residuals = standard_residuals(model, summary.sample)
    return replace(model, shape=learn_shape(residuals.response, residuals.weight))
