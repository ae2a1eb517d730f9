"""The default solver: linearise, sum over rows, tune, step (method.md 2, 4 and 8).

The networks are linearised at their random start, where their tangent features are a rich basis:
units of several scales, each band with its own precision. What is learned of a function is then
learned by one Bayesian regression, whose evidence is exact for a Gaussian likelihood, and all
hyperparameters go to that evidence's optimum without touching rows or networks. A pass:

1. compress every term's tangent features at the current precisions and noise,
2. sum the regression over the rows (for a Gaussian likelihood from cross-tables made once),
3. run precisions and noise to the evidence's optimum within reach of these tables,
4. step to the posterior mean, halving the step while the true likelihood misses what was promised,

until the evidence stops rising. Step 4 is a Gauss-Newton step on the likelihood; for a Gaussian one
it is exact. Moving the expansion point as well was measured and does not pay (docs, method page).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from lanam.core.arrays import Rng
from lanam.core.inference import evidence, selection
from lanam.core.inference.evidence import Hyper, Posterior
from lanam.core.inference.options import Options
from lanam.core.inference.posterior import Solution
from lanam.core.inference.problem import Problem, Regression, State
from lanam.core.inference.selection import Needed
from lanam.core.inference.solver import Curvature, Dropped, Record, Stage, Task
from lanam.core.rows import statistics
from lanam.core.rows.cross_tables import TableQuadratic
from lanam.core.terms.term import LevelTerm

#: Noise at the start, in units of the noise around the intercept alone.
_START_NOISE = 0.1

#: Rounds of dropping weak terms and fitting on.
_MAX_ROUNDS = 4

#: A pass that brings less than this share of an extension's gain is the last.
_SLACK = 1e-3

#: Evidence steps within one linearisation; fewer where each one is expensive.
_TUNE_STEPS = 25
_TUNE_STEPS_WIDE = 10
_WIDE = 400

#: A step is halved so often for what the expansion promised, and so often until it does no harm.
_HALVINGS = 6
_MAX_HALVINGS = 60

#: How far a log prior variance may rise before terms are compressed anew, where an expansion is climbed to
#: its top. What is not visible at a small variance is not there to be paid for at a large one: further up
#: the evidence promises what it cannot keep, and expansions follow it back and forth.
_REACH = 3.0


@dataclass(frozen=True)
class Limits:
    """When passes end: after so many, or when the objective rises by less than ``tol``.

    ``before`` is the evidence of the model that this one extends, if any: then it is also enough when a
    pass brings little of what was gained since.
    """

    max_iter: int
    tol: float
    before: float | None = None

    def reached(self, rise: float, state: State) -> bool:
        """Whether a rise is none."""
        gained = 0.0 if self.before is None else state.evidence - self.before
        return abs(rise) < max(self.tol, _SLACK * gained)


def converge(
    problem: Problem, state: State, rng: Rng, limits: Limits, on_pass: Callable[[State], None]
) -> tuple[State, bool]:
    """Passes up to the limits; returns the best state, and whether they ended before ``max_iter``."""
    exact = problem.exact is not None
    if not exact:
        state = replace(state, quadratic=problem.quadratic(state))
        if problem.in_tables:
            return _climb_expansions(problem, state, rng, limits, on_pass)
    best = replace(state, objective=-np.inf)
    for _ in range(limits.max_iter):
        # 1. and 2. compress, and sum over the rows
        linear = Regression.of(problem, state, rng)
        # 3. tune
        steps = _TUNE_STEPS if len(linear.model.target) < _WIDE else _TUNE_STEPS_WIDE
        hyper, posterior = evidence.tune(
            linear.model, state.noise, problem.joint, problem.update, steps, limits.tol / 5
        )
        # 4. step
        after = _step(linear, hyper, posterior)
        state = _damped(problem, state, after, posterior.log_likelihood)
        on_pass(state)
        rise = state.objective - best.objective
        # Until a non-Gaussian expansion has settled, its evidence may overstate: keep the newest.
        if rise > 0.0 or not exact:
            best = state
        if limits.reached(rise, state) or (rise < 0.0 and exact):
            return best, True
    return best, False


def _climb_expansions(
    problem: Problem, state: State, rng: Rng, limits: Limits, on_pass: Callable[[State], None]
) -> tuple[State, bool]:
    """The same where going over the rows is dear: each expansion is climbed as if it were exact.

    Passes over the rows are then as few as those of Newton's method.
    """
    objective = -np.inf
    for _ in range(limits.max_iter):
        made = problem.quadratic(state)
        assert isinstance(made, TableQuadratic)
        fixed = replace(problem, exact=made, reach=_REACH)
        after, _ = converge(fixed, state, rng, limits, on_pass)
        rise, objective = after.objective - objective, after.objective
        if limits.reached(rise, after):
            # What it was made around is as good as where it led.
            return replace(after, quadratic=made.moved_to(after.values)), True
        predicted = problem.at_noise(made.of(after.values, after.intercept), after.noise)
        state = _damped(problem, state, after, predicted)
    return state, False


def _step(linear: Regression, hyper: Hyper, posterior: Posterior) -> State:
    """The state at the posterior mean."""
    problem, state = linear.problem, linear.state
    terms = tuple(
        replace(
            known,
            precision=known.precision * np.exp(-hyper.log_rho[groups]),
            values=own,
            basis=None if isinstance(term, LevelTerm) and not term.wide else part.basis,
        )
        for term, known, part, own, groups in zip(
            problem.terms,
            state.terms,
            linear.compressed,
            linear.values(posterior),
            linear.model.prior.groups,
            strict=True,
        )
    )
    return State(
        terms,
        linear.intercept(posterior),
        hyper.noise,
        posterior.evidence,
        posterior.n_effective,
        posterior.objective,
    )


def _damped(problem: Problem, before: State, after: State, predicted: float) -> State:
    """Halve a step towards ``after`` while the true log-likelihood misses the predicted one badly.

    The prior is quadratic and known; all that can go wrong is the likelihood's expansion.
    """
    if problem.exact is not None:
        return after
    old = problem.at_noise(problem.quadratic(before).value, after.noise)
    # Half of a promised gain, or a loss half as large again as promised, is good enough.
    enough = predicted - 0.5 * abs(predicted - old) - 1e-9
    for halvings in range(_MAX_HALVINGS):
        # What the next pass begins with: it is made here, and kept.
        made = problem.expand(after)
        after = replace(after, quadratic=made)
        new = problem.at_noise(made.value, after.noise)
        # A promise that no step keeps (counts far from their start) is no longer asked for, but no
        # step may end where rates overflow.
        if new >= (enough if halvings < _HALVINGS else min(enough, old)):
            return after
        after = replace(
            after,
            terms=tuple(
                replace(new_term, values=0.5 * (old_term.values + new_term.values))
                for old_term, new_term in zip(before.terms, after.terms, strict=True)
            ),
            intercept=0.5 * (before.intercept + after.intercept),
            quadratic=None,
        )
    return after


def refit_posterior(problem: Problem, state: State) -> State:
    """The state at the posterior mean of its own hyperparameters, with its evidence."""
    linear = Regression.of(problem, state, np.random.default_rng(0), fine=True)
    return _step(linear, linear.as_made, linear.solve())


@dataclass(frozen=True)
class GaussNewton:
    """Terms are linear in their parameters: whatever is a table over entries can be one."""

    options: Options
    curvature: Curvature

    init_scales: ClassVar[tuple[float, ...]] = (1.0, 4.0, 16.0)
    pair_init_scales: ClassVar[tuple[float, ...]] = (1.0, 4.0)
    networks_only: ClassVar[bool] = False
    in_memory: ClassVar[bool] = False

    def start(self, problem: Problem, rng: Rng) -> State:
        """All terms at zero."""
        known = tuple(problem.start(k, rng) for k in range(len(problem.terms)))
        rows, likelihood, noise = problem.rows, problem.likelihood, 1.0
        if likelihood.noise_bounds is not None:
            around = selection.null_fit(rows, likelihood)[1]
            noise = max(_START_NOISE * around, likelihood.noise_bounds[0])
        return State(known, statistics.start(rows, likelihood), noise)

    def train(self, task: Task, rng: Rng, record: Record) -> Stage:
        """Fit, drop what does not pay, fit on."""
        problem, state, needed = task.problem, task.state, task.needed
        dropped, n_passes, converged = list(task.before.dropped), 0, False
        # What remains when the user interrupts.
        newest = (task.before.problem, task.before.state)

        def note(now: State) -> None:
            nonlocal newest, n_passes
            # Of one problem's Gaussian passes the best; a classifier's settle, so the newest.
            same = newest[0] is problem and problem.likelihood.quadratic
            if not same or now.objective >= newest[1].objective:
                newest = (problem, now)
            n_passes += 1
            record(task.name, now)

        try:
            extended = None if needed is None else state.evidence
            null = selection.null_evidence(problem.rows, problem.likelihood)
            for round_number in range(_MAX_ROUNDS + 1):
                left = self.options.max_iter - n_passes
                if left == 0:
                    converged = False
                    break
                limits = Limits(left, self.options.tol, extended)
                state, converged = converge(problem, state, rng, limits, note)
                if round_number == _MAX_ROUNDS:
                    break
                linear = Regression.of(problem, state, rng)
                if needed is not None:
                    gone, worth = _weak_terms(linear, needed(problem))
                else:
                    gone, worth = _weak_terms(linear, None, null if converged else None)
                if not gone:
                    break
                dropped += [Dropped(problem.terms[k], problem.shares[k], worth[k]) for k in gone]
                kept = [k for k in range(len(problem.terms)) if k not in gone]
                problem, state = newest = problem.keep(kept), state.keep(kept)
        except KeyboardInterrupt:
            return Stage(*newest, tuple(dropped), "interrupted")
        return Stage(problem, state, tuple(dropped), "converged" if converged else "max_iter")

    def solution(self, problem: Problem, state: State, rng: Rng) -> Solution:
        """The posterior at a state."""
        return self.curvature.solution(problem, state, rng)


def _weak_terms(
    linear: Regression, needed: Needed | None, null: float | None = None
) -> tuple[list[int], list[float]]:
    """The terms that do not pay, in the order they go, and what every term is worth.

    Where passes have converged and single columns are judged, ``null`` is the evidence of the intercept
    alone.
    """
    problem, state, posterior = linear.problem, linear.state, linear.solve()
    weak = partial(
        selection.eliminate,
        linear.model.prior,
        posterior,
        linear.tables,
        problem.shares,
        n_outputs=problem.likelihood.n_outputs,
        outside=linear.worth_outside(posterior),
    )
    gone, worth = weak(needed)
    enough = selection.enough(linear.model.prior, posterior)
    if null is not None and not gone and state.evidence < null + enough:
        # Made of noise: every term must pay; where all seem to, and there is a noise that could be
        # small, the rows are merely interpolated.
        gone, worth = weak(lambda k, left: selection.WORTH)
        if problem.likelihood.quadratic:
            gone = gone or list(range(len(problem.terms)))
    if needed is not None and not problem.likelihood.quadratic:
        gone = dispensable(problem, state, gone, worth)
    return gone, worth


def dispensable(problem: Problem, state: State, gone: list[int], worth: list[float]) -> list[int]:
    """Those of ``gone`` without which the evidence falls by no more than they were worth.

    A worth is that of a quadratic. Where classes are separated it is flat, and blind to what holds them
    apart: whatever went last was the strongest, and stays.
    """
    while gone:
        kept = [k for k in range(len(problem.terms)) if k not in gone]
        without = refit_posterior(problem.keep(kept), state.keep(kept))
        promised = sum(max(worth[k], 0.0) for k in gone)
        if state.evidence - without.evidence <= promised + selection.WORTH:
            break
        gone = gone[:-1]
    return gone
