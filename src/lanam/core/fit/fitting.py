"""The whole fit, from tables of columns and a response to a ``FittedModel``.

The first stage fits a network per column, then level effects where residuals support them. The second adds
joint networks of pairs of columns and continues with all terms. Each drops the terms that the evidence does
not support. For a Gaussian response, heteroscedastic noise is fitted last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, Rng
from lanam.core.fit import robust
from lanam.core.fit.assembly import assemble, dropped_term, unused
from lanam.core.fit.beyond import run_out
from lanam.core.fit.diagnostics import diagnose
from lanam.core.fit.first_stage import (
    first_stage,
    refit_noise,
    resumed_stage,
    with_lower_dispersion,
)
from lanam.core.fit.margins import dropped_variances
from lanam.core.fit.prepare import COLUMN_WIDTH, OnSummary, Run, prepare, threads
from lanam.core.fit.resume import resume
from lanam.core.fit.second_stage import second_stage
from lanam.core.fit.solvers import SOLVERS, make_problem
from lanam.core.inference.gauss_newton import refit_posterior
from lanam.core.inference.left_out import Fit
from lanam.core.inference.options import Options
from lanam.core.inference.posterior import Solution
from lanam.core.inference.problem import State
from lanam.core.inference.solver import Stage, TrainingTask
from lanam.core.likelihoods import Likelihood
from lanam.core.model.constraining import constrain, constrained_posterior
from lanam.core.model.fitted import (
    COORDINATE,
    UNSUPPORTED,
    Diagnostics,
    FittedModel,
    ScoredInteraction,
)
from lanam.core.model.scoring import log_noise_factors
from lanam.core.noise.residuals import LogVariance, learn_noise, learn_shape, standard_residuals
from lanam.core.rows.located import Rows
from lanam.core.rows.statistics import fit_intercept_only
from lanam.core.rows.summaries import DataSummary
from lanam.core.rows.tables import ArrayTables, EncodedRows, Tables
from lanam.core.terms.spatial import SpatialTerm
from lanam.core.terms.term import TermKey, key_of, main_effects

#: Noise below this multiple of its lower bound is at the bound.
_ABOVE_FLOOR = 1.01

#: Factor of the prior variances of columns whose constraints bind (measured: docs, method page).
_LOOSENING = 3.0

#: Number of coordinates beyond which an interrupted fit ends without what takes longest.
_WIDE = 1000

#: Tolerance of the noise model's evidence.
_NOISE_TOL = 0.5
#: With heavy tails the evidence fluctuates, and further passes do not help.
_NOISE_ITERATIONS = 30


def fit(
    tables: Tables,
    likelihood: Likelihood,
    options: Options,
    random_state: int,
    n_levels: Sequence[int] = (),
    on_summary: OnSummary | None = None,
) -> FittedModel:
    """Fit an additive model; of several restarts of its first stage the one with most evidence is kept.

    ``n_levels`` has each column's number of categories, -1 for numeric ones; ``on_summary`` is called with
    the summary of the rows.
    """
    *first, second = _generators(random_state, options)
    with threads(tables.n_columns * COLUMN_WIDTH, options.n_jobs):
        prepared = prepare(tables, likelihood, options, n_levels, on_summary)
        run = Run(prepared, options)
        stage = _best_first_stage(run, first)
    if stage.interrupted and not run.history:
        raise KeyboardInterrupt  # before the first pass: there is no model to keep
    # An interrupt of the first stage skips the second.
    return _finish(stage, run, second, pairs=not stage.interrupted)


def fit_on(
    model: FittedModel,
    tables: Tables,
    likelihood: Likelihood,
    options: Options,
    random_state: int,
    on_summary: OnSummary | None = None,
) -> FittedModel:
    """The second stage alone, starting from the terms and hyperparameters of a model."""
    with threads(tables.n_columns * COLUMN_WIDTH, options.n_jobs):
        prepared, stage = resume(model, tables, likelihood, options, on_summary)
    run = Run(prepared, options, history=[dict(record) for record in model.history])
    stage = resumed_stage(stage, model, run)
    wider = _finish(stage, run, _generators(random_state, options)[-1], pairs=True)
    return replace(wider, scored=_remembered(model.scored, wider.scored))


def _remembered(
    earlier: tuple[ScoredInteraction, ...], newer: tuple[ScoredInteraction, ...]
) -> tuple[ScoredInteraction, ...]:
    """The newer pairs; those tried earlier keep their score, and their status unless tried again."""
    before = {pair.features: pair for pair in earlier if not pair.status.startswith("left out")}

    def merged(pair: ScoredInteraction) -> ScoredInteraction:
        old = before.get(pair.features, pair)
        status = old.status if pair.status.startswith("left out") else pair.status
        return replace(pair, score=old.score, status=status)

    return tuple(sorted(map(merged, newer), key=ScoredInteraction.rank)) or earlier


def _generators(random_state: int, options: Options) -> list[Rng]:
    """Random numbers of the restarts of the first stage and, last, of the second.

    Infinitely wide networks have no random start: all restarts would be the same. Those that are trained
    are restarted by their solver, all at once.
    """
    at_once = options.hidden_sizes is None or SOLVERS[options.solver].trained
    n_restarts = 1 if at_once else options.n_restarts
    seeds = np.random.SeedSequence(random_state).spawn(n_restarts + 1)
    return [np.random.default_rng(seed) for seed in seeds]


def _best_first_stage(run: Run, generators: Sequence[Rng]) -> Stage:
    """The restart with most evidence; an interrupt ends all."""
    terms, rows, likelihood = run.prepared.terms, run.prepared.rows, run.prepared.units.likelihood
    announce = partial(run.announce, "columns", len(terms))
    problem = make_problem(terms, rows, likelihood, run.options, announce)
    best: Stage | None = None
    for rng in generators:
        stage = first_stage(problem, run, rng)
        if best is None or stage.state.evidence > best.state.evidence:
            best = stage
        if stage.interrupted:
            return replace(best, reason=stage.reason)
    assert best is not None
    return best


def _finish(stage: Stage, run: Run, rng: Rng, *, pairs: bool) -> FittedModel:
    """Add the requested pairs, assemble the model, and fit its noise."""
    options, prepared = run.options, run.prepared
    scored: tuple[ScoredInteraction, ...] = ()
    pairs = pairs and options.searches_interactions
    if pairs:
        stage, scored = second_stage(stage, run, rng)
    stage = _with_kept(prepared.solver.select(stage), options.knowledge.keep)
    with threads(stage.width, options.n_jobs):
        if pairs:
            stage = refit_noise(stage, run)
        quick, fit = _hurried(stage), stage
        stage = fit if prepared.solver.trained else with_lower_dispersion(fit)
        stage = _loosened(stage, run)
        solution = run.prepared.solver.solution(stage.problem, stage.state, quick=quick)
        if stage is not fit:
            solution = replace(solution, evidence=fit.state.evidence)
        solution = run_out(stage.problem, stage.state, solution, options.knowledge.curved)
    diagnostics, bands = _diagnosed(stage, run, solution, rng)
    without = prepared.unused | _coordinates(stage, options)
    dropped = [unused(*item) for item in without.items()]
    # Dropped pairs are not terms: their status is in the table of scores.
    dropped += [
        dropped_term(gone, prepared.units, bands.get(key_of(gone.term)))
        for gone in stage.dropped
        if not gone.term.joint
    ]
    known = options.knowledge
    at = prepared.units, stage.problem, stage.state
    model = assemble(*at, solution, dropped, known.constrained)
    model = constrain(model, known.constraints)
    reason, gross_errors = stage.reason, robust.found(stage, run)
    if _noise_is_learned(stage, options):
        try:
            # Leverages are those at the hyperparameters of the fit.
            given = solution.given or solution
            if known.constraints:  # which are not of the network's course beyond the data
                given = run_out(stage.problem, stage.state, given, known.curved)
            at_fit = assemble(*at, given, dropped, known.constrained)
            at_fit = constrain(at_fit, known.constraints)
            learned = _learn_noise(at_fit, robust.regular_rows(gross_errors, run), run, rng)
            model = replace(model, noise=learned.noise, shape=learned.shape)
        except KeyboardInterrupt:
            reason = "interrupted"
    model = robust.with_gross_errors(model, gross_errors, stage, run)
    history = run.end(model.log_evidence, float(np.sqrt(model.noise_variance)))
    model = replace(model, history=history, stop_reason=reason, scored=scored)
    return replace(model, diagnostics=diagnostics)


def _coordinates(stage: Stage, options: Options) -> dict[int, str]:
    """The columns that have a surface and no curves, and what became of it."""
    kept = {term.features for term in stage.problem.terms if term.kind == SpatialTerm.kind}
    gone = {one.term.features for one in stage.dropped if one.term.kind == SpatialTerm.kind}
    status = dict.fromkeys(gone, UNSUPPORTED) | dict.fromkeys(kept, COORDINATE)
    return {k: status[pair] for pair in options.knowledge.spatial if pair in status for k in pair}


def _with_kept(stage: Stage, kept: Collection[int]) -> Stage:
    """The stage in which kept terms without support have the prior variance of the start.

    Their tuned variance is nothing, of which the data are not certain.
    """
    problem, state = stage.problem, stage.state
    gone = {
        k
        for k in main_effects(problem.terms, kept)
        if (basis := state.terms[k].basis) is not None
        and basis.shape == (len(problem.terms[k].group_index), 0)
    }
    if not gone:
        return stage
    again = (
        term.restarted(problem.terms[k], problem.data_mass[k]) if k in gone else term
        for k, term in enumerate(state.terms)
    )
    return replace(stage, state=refit_posterior(problem, replace(state, terms=tuple(again))))


def _loosened(stage: Stage, run: Run) -> Stage:
    """The stage with larger prior variances of columns whose free curves violate their constraints.

    They were tuned to keep free curves smooth, which the constraints do as well.
    """
    known, problem, state = run.options.knowledge, stage.problem, stage.state
    if not known.constraints:
        return stage
    solution = run.prepared.solver.solution(problem, state, quick=True)
    held = run_out(problem, state, solution, known.curved)
    # Without increments beyond the data, of which half rise and half fall.
    pairs = zip(held.tables, solution.tables, strict=True)
    tables = tuple(wide[:, : table.shape[1]] for wide, table in pairs)
    solution = replace(solution, means=held.means, tables=tables)
    free = assemble(run.prepared.units, problem, state, solution, [], known.constrained)
    posterior = constrained_posterior(free, known.constraints)
    violated = frozenset[int]() if posterior is None else posterior.violated
    if not violated:
        return stage
    loose = main_effects(problem.terms, violated)
    terms = (
        replace(term, precision=term.precision / _LOOSENING) if k in loose else term
        for k, term in enumerate(state.terms)
    )
    return replace(stage, state=refit_posterior(problem, replace(state, terms=tuple(terms))))


def _hurried(stage: Stage) -> bool:
    """Whether to leave out the uncertainty of hyperparameters, and diagnostics.

    After an interrupt users wait, and in wide fits both take a minute.
    """
    return stage.interrupted and stage.width > _WIDE


def _diagnosed(
    stage: Stage, run: Run, solution: Solution, rng: Rng
) -> tuple[Diagnostics | None, Mapping[TermKey, Array]]:
    """Diagnostics of a fit, and what the data leave possible of its dropped columns; from sampled rows."""
    if not run.options.diagnostics or solution.regression is None or _hurried(stage):
        return None, {}
    try:
        rows, fit = run.sample_in(stage.problem), Fit.of(*solution.regression)
        found = diagnose(stage, rows, fit, solution.log_evidence_gains)
        return found, dropped_variances(stage, rows, fit, rng)
    except KeyboardInterrupt:  # the model is there
        return None, {}


def _noise_is_learned(stage: Stage, options: Options) -> bool:
    likelihood = stage.problem.likelihood
    if not (options.noise and likelihood.heteroscedastic and likelihood.noise_bounds):
        return False
    # At its lower bound, noise is rounding and interpolation error.
    above = stage.state.noise > _ABOVE_FLOOR * likelihood.noise_bounds[0]
    return above and not stage.interrupted


def _learn_noise(model: FittedModel, sample: EncodedRows | None, run: Run, rng: Rng) -> FittedModel:
    """The model with heteroscedastic noise and residual distribution, estimated from a sample of rows."""
    if sample is None:
        return model
    # Independent of earlier draws: a search that finds no pair does not change the model.
    seed = int(rng.spawn(1)[0].integers(1 << 31))
    fit_noise = partial(fit_squares, run.prepared.summary, run.options, seed)
    residuals = standard_residuals(model, sample)
    standard, noise = residuals.response, learn_noise(residuals, fit_noise)
    if noise is not None:
        standard = standard * np.exp(-0.5 * log_noise_factors(noise, residuals.columns))
    return replace(
        model, noise=noise, shape=learn_shape(standard, residuals.weight, residuals.group)
    )


@dataclass(frozen=True)
class SquaresFit:
    """An additive model of the log of squared residuals, and how it was fitted: ``FittedSquares``."""

    model: FittedModel
    stage: Stage
    run: Run
    rng: Rng

    @property
    def n_effective(self) -> float:
        """Its effective degrees of freedom."""
        return self.stage.state.n_effective

    def scores(self) -> Array:
        """Log-density of each row left out, with the precisions of all rows."""
        problem, rows = self.stage.problem, self.stage.problem.rows
        assert isinstance(rows, Rows)
        return Fit.at(problem, self.stage.state).without(rows).score

    def without(self, held_out: NDArray[np.bool_]) -> Array:
        """Log variances of some rows by a fit to the others, of the terms that all rows support.

        Knots and features are not made again. Precisions are: from those of all rows on, a fit remembers
        the held-out ones, and gains two or three nats by that.
        """
        problem, rows = self.stage.problem, self.stage.problem.rows
        assert isinstance(rows, Rows)
        others = problem.with_terms(problem.terms, rows.part(~held_out))
        learned = zip(self.stage.state.terms, others.terms, others.data_mass, strict=True)
        state = State(
            tuple(old.restarted(term, mass) for old, term, mass in learned),
            fit_intercept_only(others.rows, others.likelihood),
            self.stage.state.noise,
        )
        task = TrainingTask("held out", Stage(others, state), others, state)
        with threads(self.stage.width, self.run.options.n_jobs):
            fitted = self.run.prepared.solver.train(task, self.rng, lambda name, state: None)
        if fitted.interrupted:
            raise KeyboardInterrupt
        located = replace(rows.part(held_out), positions=(), sizes=())
        return fitted.problem.around(fitted.state).predict(located.with_terms(fitted.problem.terms))


def fit_squares(summary: DataSummary, options: Options, seed: int, rows: EncodedRows) -> SquaresFit:
    """An additive model of the log of squared residuals."""
    # No level effects: residuals that are equal by chance would get some.
    simpler = replace(
        options,
        interactions=0,
        level_effects=False,
        knowledge=options.knowledge.of_noise(),
        n_restarts=1,
        time_budget=None,
        diagnostics=False,
        tol=max(options.tol, _NOISE_TOL),
        max_iter=min(options.max_iter, _NOISE_ITERATIONS),
        on_plan=None,
        on_iteration=None,
    )
    n_levels = [len(column.mass) or -1 for column in summary.columns]
    with threads(len(n_levels) * COLUMN_WIDTH, options.n_jobs):
        run = Run(prepare(ArrayTables(rows), LogVariance(), simpler, n_levels), simpler)
        first, second = _generators(seed, simpler)
        stage = _best_first_stage(run, [first])
    if stage.interrupted:
        raise KeyboardInterrupt
    return SquaresFit(_finish(stage, run, second, pairs=False), stage, run, second)
