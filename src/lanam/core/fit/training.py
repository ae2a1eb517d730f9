"""Training a set of terms: fit, drop what does not pay, fit on; and the record of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from lanam.core.blas import limited_threads
from lanam.core.fit.assembly import switched_off
from lanam.core.fit.prepare import Prepared
from lanam.core.fit.stage import Stage
from lanam.core.inference import gauss_newton, selection
from lanam.core.inference.gauss_newton import Problem, State
from lanam.core.inference.options import Options
from lanam.core.inference.selection import Needed
from lanam.core.model.fitted import FittedTerm
from lanam.core.paper import adam
from lanam.core.rows.plan import Plan
from lanam.core.terms.term import Term

#: Rounds of dropping weak terms and fitting on.
_MAX_ROUNDS = 4


#: With fewer coordinates than this one thread is enough.
_WIDE = 1000


def threads(width: int, n_jobs: int) -> AbstractContextManager[Any]:
    """One thread inside BLAS where matrices are small: more would cost more than they bring."""
    return limited_threads(1 if width < _WIDE else n_jobs)


@dataclass
class Run:
    """The only state a fit keeps outside its values: its history, and the newest state.

    The latter is what remains when the user interrupts: of a Gaussian fit the best so far.
    """

    prepared: Prepared
    options: Options
    history: list[dict[str, Any]] = field(default_factory=list)
    newest: tuple[Problem, State] | None = None
    began: float = field(default_factory=time.perf_counter)

    def announce(self, stage: str, terms: Sequence[Term]) -> None:
        """Tell what a stage with these terms is going to do."""
        if self.options.on_plan is not None:
            rows, likelihood = self.prepared.rows, self.prepared.units.likelihood
            shape = (len(rows), rows.n_columns)
            self.options.on_plan(Plan.of(stage, terms, shape, likelihood, self.options.memory))

    def recorder(self, stage: str, problem: Problem) -> Callable[[State], None]:
        """A function that records a pass over ``problem``."""

        def record(state: State) -> None:
            known = self.newest
            # Of one problem's Gaussian passes the best; a classifier's settle, so the newest.
            same = known is not None and known[0] is problem and problem.likelihood.quadratic
            if known is None or not same or state.objective >= known[1].objective:
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
            if units.likelihood.quadratic
            else None,
            "n_active": n_active,
            "effective_parameters": effective,
            "seconds": time.perf_counter() - self.began,
        }
        self.history.append(entry)
        if self.options.on_iteration is not None:
            self.options.on_iteration(entry)


def train(problem: Problem, start: State | None, run: Run, rng: np.random.Generator) -> Stage:
    """The paper's solver: no level effects, off where the precisions say so."""
    result = adam.fit(problem, run.options, rng, run.recorder("adam", problem), start)
    state = result.state
    found = adam.solution(problem, state, run.options, rng)
    gone = adam.switched_off(problem, found)
    off = [switched_off(problem.terms[k], problem.shares[k], found.worth[k]) for k in gone]
    kept = [k for k in range(len(problem.terms)) if k not in gone]
    reason = "converged" if result.converged else "max_iter"
    reason = "interrupted" if result.interrupted else reason
    return Stage(problem.keep(kept), state.keep(kept), tuple(off), reason)


def fit_and_select(
    stage: str,
    problem: Problem,
    state: State,
    run: Run,
    rng: np.random.Generator,
    off: list[FittedTerm],
    needed: Callable[[Problem], Needed] | None = None,
) -> tuple[Problem, State, bool]:
    """Fit, drop what does not pay, fit on; ``off`` collects what went.

    ``needed`` says what the terms of a problem must be worth; without it, the rules of first-order
    terms hold.
    """
    before = len(run.history)
    extended = None if needed is None else state.evidence
    null = selection.null_evidence(problem.rows, problem.likelihood)
    converged = False
    for round_number in range(_MAX_ROUNDS + 1):
        left = run.options.max_iter - (len(run.history) - before)
        if left == 0:
            return problem, state, False
        state, converged = gauss_newton.converge(
            problem, state, rng, left, run.options.tol, run.recorder(stage, problem), extended
        )
        if round_number == _MAX_ROUNDS:
            break
        linear = gauss_newton.regression(problem, state, rng)
        prior, posterior = linear.model.prior, gauss_newton.solve_as_made(problem, state, linear)
        weak = partial(
            selection.eliminate,
            prior,
            posterior,
            [part.table for part in linear.compressed],
            problem.shares,
            n_outputs=problem.likelihood.n_outputs,
            outside=gauss_newton.worth_outside(problem, state, linear, posterior),
        )
        gone, worth = weak(None if needed is None else needed(problem))
        enough = selection.enough(prior, posterior)
        if needed is None and converged and not gone and state.evidence < null + enough:
            # Made of noise: every term must pay; where all seem to, and there is a noise that could be
            # small, the rows are merely interpolated.
            gone, worth = weak(lambda k, left: selection.WORTH)
            if problem.likelihood.quadratic:
                gone = gone or list(range(len(problem.terms)))
        if needed is not None and not problem.likelihood.quadratic:
            gone = _dispensable(problem, state, gone, worth)
        if not gone:
            break
        off += [switched_off(problem.terms[k], problem.shares[k], worth[k]) for k in gone]
        kept = [k for k in range(len(problem.terms)) if k not in gone]
        problem, state = problem.keep(kept), state.keep(kept)
        run.newest = (problem, state)
    return problem, state, converged


def _dispensable(problem: Problem, state: State, gone: list[int], worth: list[float]) -> list[int]:
    """Those of ``gone`` without which the evidence falls by no more than they were worth.

    A worth is that of a quadratic. Where classes are separated it is flat, and blind to what holds them
    apart: whatever went last was the strongest, and stays.
    """
    while gone:
        kept = [k for k in range(len(problem.terms)) if k not in gone]
        without = gauss_newton.settle(
            problem.keep(kept), state.keep(kept), np.random.default_rng(0)
        )
        promised = sum(max(worth[k], 0.0) for k in gone)
        if state.evidence - without.evidence <= promised + selection.WORTH:
            break
        gone = gone[:-1]
    return gone
