"""The whole fit, readable as a script: columns and a response in, a ``FittedModel`` out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lanam.core import adam, gauss_newton, kron, posterior, selection
from lanam.core.arrays import Array
from lanam.core.gauss_newton import Problem, State
from lanam.core.levels import add_levels
from lanam.core.likelihoods import LIKELIHOODS
from lanam.core.model import ACTIVE, SWITCHED_OFF, FittedModel, FittedTerm
from lanam.core.options import Options
from lanam.core.posterior import Solution
from lanam.core.prepare import Prepared, prepare
from lanam.core.terms import Term

#: Rounds of dropping weak terms and fitting on.
_MAX_ROUNDS = 4

_START_NOISE = 0.1

#: Tables of at most so many columns are fitted with one thread.
_NARROW = 40


def fit(
    columns: Array,
    response: Array,
    weight: Array,
    likelihood: str,
    options: Options,
    random_state: int,
) -> FittedModel:
    """Fit a first-order additive model; of several restarts the one with most evidence is kept."""
    # With few columns the matrices are small: threads inside BLAS would cost more than they bring.
    limits = 1 if columns.shape[1] <= _NARROW else None
    with threadpool_limits(limits=limits, user_api="blas"):
        prepared = prepare(columns, response, weight, LIKELIHOODS[likelihood], options)
        problem = gauss_newton.make_problem(
            prepared.terms,
            prepared.rows,
            prepared.units.likelihood,
            options.posterior == "joint",
            options.evidence_update,
        )
        run = _Run(prepared, options)
        best: FittedModel | None = None
        interrupted = False
        for seed in np.random.SeedSequence(random_state).spawn(options.n_restarts):
            rng = np.random.default_rng(seed)
            # Without a term there is nothing for Adam to train.
            if options.solver == "adam" and problem.terms:
                model = _fit_adam(columns.shape[1], problem, run, rng)
            else:
                model = _fit_once(columns, problem, run, rng)
            if best is None or model.log_evidence > best.log_evidence:
                best = model
            interrupted = model.stop_reason == "interrupted"
            if interrupted:
                break
    assert best is not None
    if interrupted:
        best = replace(best, converged=False, stop_reason="interrupted")
    return replace(best, history=tuple(run.history))


@dataclass
class _Run:
    """The only state a fit keeps outside its values: its history, and the newest state.

    The latter is what remains when the user interrupts: of a Gaussian fit the best so far.
    """

    prepared: Prepared
    options: Options
    history: list[dict[str, Any]] = field(default_factory=list)
    newest: tuple[Problem, State] | None = None
    began: float = field(default_factory=time.perf_counter)

    def recorder(self, stage: str, problem: Problem) -> Callable[[State], None]:
        """A function that records a pass over ``problem``."""

        def record(state: State) -> None:
            known = self.newest
            # Of one problem's Gaussian passes the best; a classifier's settle, so the newest.
            same = known is not None and known[0] is problem and problem.likelihood.learns_noise
            if known is None or not same or state.evidence >= known[1].evidence:
                self.newest = (problem, state)
            self.add(stage, state.evidence, state.noise, len(problem.terms), state.n_effective)

        return record

    def add(
        self, stage: str, log_evidence: float, noise: float, n_active: int, effective: float
    ) -> None:
        """Add a record in the response's own units, and show it."""
        units = self.prepared.units
        entry = {
            "iteration": len(self.history) + 1,
            "stage": stage,
            "log_evidence": units.log_evidence(log_evidence),
            "noise_std": float(np.sqrt(noise)) * units.scale
            if units.likelihood.learns_noise
            else None,
            "n_active": n_active,
            "effective_parameters": effective,
            "seconds": time.perf_counter() - self.began,
        }
        self.history.append(entry)
        if self.options.on_iteration is not None:
            self.options.on_iteration(entry)


@dataclass(frozen=True)
class _Dropped:
    """A term that went, and what it was worth when it did."""

    term: Term
    share: Array
    worth: float


def _fit_once(columns: Array, problem: Problem, run: _Run, rng: np.random.Generator) -> FittedModel:
    units = run.prepared.units
    known = tuple(
        gauss_newton.start(term, share, rng)
        for term, share in zip(problem.terms, problem.shares, strict=True)
    )
    mean = float(problem.rows.weight @ units.y / units.total_weight)
    noise = _START_NOISE if units.likelihood.learns_noise else 1.0
    state = State(known, units.likelihood.start(mean), noise)
    dropped: list[_Dropped] = []
    run.newest = (problem, state)
    try:
        # First a network per column, then effects of single values where the residuals ask for them.
        problem, state, converged = _fit_and_select("smooth", problem, state, run, rng, dropped)
        if run.options.level_effects:
            wider = add_levels(problem, state, columns, run.prepared.levels, rng)
            if wider is not None:
                problem, state, converged = _fit_and_select("levels", *wider, run, rng, dropped)
        reason = "converged" if converged else "max_iter"
    except KeyboardInterrupt:
        problem, state = run.newest
        reason = "interrupted"
    solve = kron.solution if run.options.curvature == "kron" else posterior.exact
    solution = solve(problem, state, rng)
    return _assemble(run.prepared, columns.shape[1], problem, solution, dropped, reason)


def _fit_adam(n_columns: int, problem: Problem, run: _Run, rng: np.random.Generator) -> FittedModel:
    """The paper's solver: a network per column, no level effects, off where the precisions say so."""
    result = adam.fit(problem, run.options, rng, run.recorder("adam", problem))
    solution = adam.solution(problem, result, run.options, rng)
    off = adam.switched_off(problem, solution)
    dropped = [_Dropped(problem.terms[k], problem.shares[k], solution.worth[k]) for k in off]
    if off:
        kept = [k for k in range(len(problem.terms)) if k not in off]
        problem, result = problem.keep(kept), result.keep(kept)
        solution = adam.solution(problem, result, run.options, rng)
    reason = "converged" if result.converged else "max_iter"
    reason = "interrupted" if result.interrupted else reason
    return _assemble(run.prepared, n_columns, problem, solution, dropped, reason)


def _fit_and_select(
    stage: str,
    problem: Problem,
    state: State,
    run: _Run,
    rng: np.random.Generator,
    dropped: list[_Dropped],
) -> tuple[Problem, State, bool]:
    """Fit, drop what does not pay, fit on; ``dropped`` collects what went."""
    before = len(run.history)
    null = selection.null_evidence(problem.rows, problem.likelihood)
    converged = False
    for round_number in range(_MAX_ROUNDS + 1):
        left = run.options.max_iter - (len(run.history) - before)
        if left == 0:
            return problem, state, False
        state, converged = gauss_newton.converge(
            problem, state, rng, left, run.options.tol, run.recorder(stage, problem)
        )
        if round_number == _MAX_ROUNDS:
            break
        linear = gauss_newton.regression(problem, state, rng)
        weak = partial(
            selection.eliminate,
            linear.model.prior,
            gauss_newton.solve_as_made(problem, state, linear),
            [part.table for part in linear.compressed],
            problem.shares,
        )
        gone, worth = weak()
        enough = max(selection.WORTH, selection.PER_PARAMETER * state.n_effective)
        if converged and not gone and state.evidence < null + enough:
            # Made of noise: every term must pay; where all seem to, the rows are merely interpolated.
            gone, worth = weak(strict=True)
            gone = gone or list(range(len(problem.terms)))
        if not gone:
            break
        went = [_Dropped(problem.terms[k], problem.shares[k], worth[k]) for k in gone]
        kept = [k for k in range(len(problem.terms)) if k not in gone]
        problem, state = problem.keep(kept), state.keep(kept)
        run.newest = (problem, state)
        dropped += went
    return problem, state, converged


def _assemble(
    prepared: Prepared,
    n_columns: int,
    problem: Problem,
    solution: Solution,
    dropped: list[_Dropped],
    reason: str,
) -> FittedModel:
    """The fitted model in the response's own units."""
    units, scale = prepared.units, prepared.units.scale
    found = {
        (term.kind, term.features): FittedTerm(
            kind=term.kind,
            features=term.features,
            entries=term.entries,
            share=problem.shares[k],
            mean=scale * solution.means[k],
            table=scale * solution.tables[k],
            status=ACTIVE,
            effective_parameters=solution.effective[k],
            evidence=solution.worth[k],
            precision=solution.precisions[k],
        )
        for k, term in enumerate(problem.terms)
    }
    for gone in dropped:
        found[gone.term.kind, gone.term.features] = _switched_off(gone)
    for feature, reason_unused in prepared.unused.items():
        found["smooth", (feature,)] = _unused(feature, reason_unused)
    # Smooth terms in the columns' order, then levels; active ones keep the covariance's order.
    smooth = [found["smooth", (feature,)] for feature in range(n_columns)]
    levels = [term for (kind, _), term in found.items() if kind != "smooth"]
    covariance = solution.covariance.copy()
    covariance[-1] *= scale
    covariance[:, -1] *= scale
    return FittedModel(
        likelihood=units.likelihood.name,
        intercept=units.shift + scale * solution.intercept,
        terms=(*smooth, *levels),
        covariance=covariance,
        noise_variance=solution.noise * scale**2 if units.likelihood.learns_noise else 0.0,
        log_evidence=units.log_evidence(solution.evidence),
        history=(),
        converged=reason == "converged",
        stop_reason=reason,
    )


def _switched_off(gone: _Dropped) -> FittedTerm:
    n_entries = len(gone.share)
    return FittedTerm(
        kind=gone.term.kind,
        features=gone.term.features,
        entries=gone.term.entries,
        share=gone.share,
        mean=np.zeros(n_entries),
        table=np.empty((n_entries, 0)),
        status=SWITCHED_OFF,
        effective_parameters=0.0,
        evidence=gone.worth,
        precision=np.empty(0),
    )


def _unused(feature: int, reason: str) -> FittedTerm:
    nothing = np.empty(0)
    return FittedTerm(
        "smooth", (feature,), None, nothing, nothing, np.empty((0, 0)), reason, 0.0, 0.0, nothing
    )
