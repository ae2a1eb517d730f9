"""The whole fit, readable as a script: columns and a response in, a ``FittedModel`` out.

The first stage fits a network per column, then effects of single values where the residuals ask for
them. The second adds joint networks of pairs of columns and fits on with all terms. Each ends by
dropping the terms that the evidence does not pay for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lanam.core import adam, gauss_newton, interactions, kron, posterior, selection
from lanam.core.arrays import Array
from lanam.core.assembly import assemble, switched_off, unused
from lanam.core.gauss_newton import Problem, State
from lanam.core.interactions import Pair
from lanam.core.levels import add_levels
from lanam.core.likelihoods import LIKELIHOODS
from lanam.core.model import ACTIVE, SWITCHED_OFF, FittedModel, FittedTerm, ScoredPair
from lanam.core.options import Options
from lanam.core.pairs import add_pairs
from lanam.core.prepare import Prepared, prepare
from lanam.core.stage import Stage, resume

#: Rounds of dropping weak terms and fitting on.
_MAX_ROUNDS = 4

_START_NOISE = 0.1

#: Tables of at most so many columns are fitted with one thread.
_NARROW = 40

#: Where the evidence is to say how many pairs there are, so many are tried at once, in at most so many
#: rounds, if they promise this many nats: the score does not know of the noise that other pairs explain.
_PAIRS_AT_ONCE = 10
_MAX_PAIR_ROUNDS = 5
_PROMISING = 1.0


def fit(
    columns: Array,
    response: Array,
    weight: Array,
    likelihood: str,
    options: Options,
    random_state: int,
) -> FittedModel:
    """Fit an additive model; of several restarts of its first stage the one with most evidence is kept."""
    with _few_threads(columns):
        prepared = prepare(columns, response, weight, LIKELIHOODS[likelihood], options)
        run = _Run(prepared, options)
        problem = gauss_newton.make_problem(
            prepared.terms,
            prepared.rows,
            prepared.units.likelihood,
            options.posterior == "joint",
            options.evidence_update,
        )
        *seeds, second_seed = _seeds(random_state, options)
        best: Stage | None = None
        for seed in seeds:
            stage = _first_stage(columns, problem, run, np.random.default_rng(seed))
            if best is None or stage.state.evidence > best.state.evidence:
                best = stage
            if stage.reason == "interrupted":
                best = replace(best, reason="interrupted")
                break
        assert best is not None
        return _finish(columns, best, run, np.random.default_rng(second_seed))


def fit_on(
    model: FittedModel,
    columns: Array,
    response: Array,
    weight: Array,
    options: Options,
    random_state: int,
) -> FittedModel:
    """The second stage alone, on a model whose terms and hyperparameters are where it starts."""
    with _few_threads(columns):
        prepared, stage = resume(model, columns, response, weight, options)
        run = _Run(prepared, options, history=[dict(record) for record in model.history])
        second_seed = _seeds(random_state, options)[-1]
        return _finish(columns, stage, run, np.random.default_rng(second_seed))


def _few_threads(columns: Array) -> threadpool_limits:
    # With few columns the matrices are small: threads inside BLAS would cost more than they bring.
    limits = 1 if columns.shape[1] <= _NARROW else None
    return threadpool_limits(limits=limits, user_api="blas")


def _seeds(random_state: int, options: Options) -> list[np.random.SeedSequence]:
    """A seed for every restart of the first stage and, last, one for the second."""
    return np.random.SeedSequence(random_state).spawn(options.n_restarts + 1)


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


# --- the first stage --------------------------------------------------------------------------------


def _first_stage(columns: Array, problem: Problem, run: _Run, rng: np.random.Generator) -> Stage:
    # Without a term there is nothing for Adam to train.
    if run.options.solver == "adam" and problem.terms:
        return _train(problem, None, run, rng)
    units = run.prepared.units
    known = tuple(
        gauss_newton.start(term, share, rng)
        for term, share in zip(problem.terms, problem.shares, strict=True)
    )
    mean = float(problem.rows.weight @ units.y / units.total_weight)
    noise = _START_NOISE if units.likelihood.learns_noise else 1.0
    state = State(known, units.likelihood.start(mean), noise)
    off: list[FittedTerm] = []
    run.newest = (problem, state)
    try:
        problem, state, converged = _fit_and_select("smooth", problem, state, run, rng, off)
        if run.options.level_effects:
            wider = add_levels(problem, state, columns, run.prepared.levels, rng)
            if wider is not None:
                problem, state, converged = _fit_and_select("levels", *wider, run, rng, off)
        reason = "converged" if converged else "max_iter"
    except KeyboardInterrupt:
        problem, state = run.newest
        reason = "interrupted"
    return Stage(problem, state, tuple(off), reason)


def _train(problem: Problem, start: State | None, run: _Run, rng: np.random.Generator) -> Stage:
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


def _fit_and_select(
    stage: str,
    problem: Problem,
    state: State,
    run: _Run,
    rng: np.random.Generator,
    off: list[FittedTerm],
    least: Callable[[Problem], Sequence[float]] | None = None,
) -> tuple[Problem, State, bool]:
    """Fit, drop what does not pay, fit on; ``off`` collects what went.

    ``least`` says what every term of a problem must be worth; without it, the rules of first-order
    terms hold.
    """
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
        gone, worth = weak(None if least is None else least(problem))
        enough = max(selection.WORTH, selection.PER_PARAMETER * state.n_effective)
        if least is None and converged and not gone and state.evidence < null + enough:
            # Made of noise: every term must pay; where all seem to, the rows are merely interpolated.
            gone, worth = weak([selection.WORTH] * len(problem.terms))
            gone = gone or list(range(len(problem.terms)))
        if not gone:
            break
        off += [switched_off(problem.terms[k], problem.shares[k], worth[k]) for k in gone]
        kept = [k for k in range(len(problem.terms)) if k not in gone]
        problem, state = problem.keep(kept), state.keep(kept)
        run.newest = (problem, state)
    return problem, state, converged


# --- the second stage -------------------------------------------------------------------------------


def _finish(columns: Array, stage: Stage, run: _Run, rng: np.random.Generator) -> FittedModel:
    """Add the pairs that were asked for, and put the model together."""
    options, prepared = run.options, run.prepared
    pairs: tuple[ScoredPair, ...] = ()
    if options.interactions != 0 and options.interactions != () and stage.reason != "interrupted":
        stage, pairs = _second_stage(columns, stage, run, rng)
    if options.solver == "adam" and stage.problem.terms:
        solution = adam.solution(stage.problem, stage.state, options, rng)
    else:
        solve = kron.solution if options.curvature == "kron" else posterior.exact
        solution = solve(stage.problem, stage.state, rng)
    off = [*stage.off, *(unused(*item) for item in prepared.unused.items())]
    model = assemble(prepared.units, stage.problem, stage.state, solution, off)
    return replace(model, history=tuple(run.history), stop_reason=stage.reason, pairs=pairs)


def _second_stage(
    columns: Array, stage: Stage, run: _Run, rng: np.random.Generator
) -> tuple[Stage, tuple[ScoredPair, ...]]:
    """Score all pairs, try some, keep what pays; the first stage is where it starts.

    In rounds, each scored on what the rounds before it left over, until a round gains nothing: pairs that
    were named are tried at once; of ``k`` the best ``k``, then others in place of those that went; for
    ``"auto"`` the best that promise something.
    """
    asked, kind = run.options.interactions, run.options.interaction_score
    known = {term.features for term in stage.problem.terms}
    usable = [k for k in range(columns.shape[1]) if k not in run.prepared.unused]
    pairs = interactions.all_pairs(usable)
    first = scores = interactions.score(kind, stage.problem, stage.state, columns, pairs, rng)
    left = [k for k, pair in enumerate(pairs) if pair not in known]
    n_first = len(stage.problem.terms)
    most = asked if isinstance(asked, int) else len(pairs)
    for number in range(_MAX_PAIR_ROUNDS):
        if number and kind == "evidence":
            still = [pairs[k] for k in left]
            scores = first.copy()
            scores[left] = interactions.score(kind, stage.problem, stage.state, columns, still, rng)
        n_before = len(stage.problem.terms)
        tried = _choose(asked, kind, pairs, scores, left)[: most - (n_before - n_first)]
        if not tried:
            break
        stage = _try_pairs(columns, stage, [pairs[k] for k in tried], len(pairs), run, rng)
        left = [k for k in left if k not in tried]
        if len(stage.problem.terms) <= n_before or stage.reason == "interrupted":
            break
    told = _tell(asked, kind, pairs, first, stage)
    return stage, told + _unusable(columns.shape[1], run.prepared.unused)


def _unusable(n_columns: int, unused: dict[int, str]) -> tuple[ScoredPair, ...]:
    """Pairs of columns that have no term, and why."""
    return tuple(
        ScoredPair(pair, 0.0, next(unused[k] for k in pair if k in unused))
        for pair in interactions.all_pairs(range(n_columns))
        if any(k in unused for k in pair)
    )


def _choose(
    asked: str | int | tuple[Pair, ...],
    kind: str,
    pairs: Sequence[Pair],
    scores: Array,
    left: Sequence[int],
) -> list[int]:
    """The pairs to try next, best first."""
    ranked = sorted(left, key=lambda k: -scores[k])
    if isinstance(asked, tuple):
        return [k for k in ranked if pairs[k] in asked]
    if isinstance(asked, int):
        return ranked
    least = _PROMISING if kind == "evidence" else np.finfo(float).tiny
    return [k for k in ranked if scores[k] >= least][:_PAIRS_AT_ONCE]


def _try_pairs(
    columns: Array,
    stage: Stage,
    tried: Sequence[Pair],
    n_candidates: int,
    run: _Run,
    rng: np.random.Generator,
) -> Stage:
    """Fit with some more pairs; those that do not pay are off, and without any all is as it was."""
    # What was off before a later call is tried anew.
    stage = replace(stage, off=tuple(term for term in stage.off if term.features not in tried))
    problem, state = add_pairs(stage.problem, stage.state, columns, tried, run.options, rng)
    if run.options.solver == "adam":
        wider = _train(problem, stage.state, run, rng)
        return replace(wider, off=(*stage.off, *wider.off))
    # A pair the user named need not make up for the search among all of them.
    named = isinstance(run.options.interactions, tuple)
    needed = 0.0 if named else selection.WORTH + float(np.log(n_candidates))

    def least(now: Problem) -> list[float]:
        return [needed if term.kind == "pair" else -np.inf for term in now.terms]

    off: list[FittedTerm] = []
    run.newest = (stage.problem, stage.state)
    try:
        problem, state, converged = _fit_and_select("pairs", problem, state, run, rng, off, least)
        reason = "converged" if converged else "max_iter"
    except KeyboardInterrupt:
        problem, state = run.newest
        reason = "interrupted"
    if len(problem.terms) <= len(stage.problem.terms):
        problem, state = stage.problem, stage.state
    return Stage(problem, state, (*stage.off, *off), reason)


def _tell(
    asked: str | int | tuple[Pair, ...],
    kind: str,
    pairs: Sequence[Pair],
    scores: Array,
    stage: Stage,
) -> tuple[ScoredPair, ...]:
    """Every pair with its score and why it is in or out, best first."""
    status = {term.features: SWITCHED_OFF for term in stage.off}
    status |= {term.features: ACTIVE for term in stage.problem.terms}
    if isinstance(asked, tuple):
        otherwise = "left out: not named"
    elif isinstance(asked, int):
        otherwise = f"left out: not among the best {asked}"
    else:
        otherwise = "left out: better ones gained nothing"

    def tell(k: int) -> str:
        if asked == "auto" and kind == "evidence" and scores[k] < _PROMISING:
            return status.get(pairs[k], "left out: no gain expected")
        return status.get(pairs[k], otherwise)

    ranked = sorted(range(len(pairs)), key=lambda k: -scores[k])
    return tuple(ScoredPair(pairs[k], float(scores[k]), tell(k)) for k in ranked)
