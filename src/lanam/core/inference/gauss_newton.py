"""The default solver: linearise, sum over rows, tune, step (method.md 2, 4 and 8).

The networks are linearised at their initialisation (by default of infinite width, without random
numbers), where their tangent features are a rich basis:
units of several scales, each with its own precision. The functions are then learned by one Bayesian
regression, whose evidence is exact for a Gaussian likelihood, and the hyperparameters are tuned to that
evidence's optimum without another pass over rows or networks. A pass:

1. compress every term's tangent features at the current precisions and noise, coarsely at first if
   coordinates are many,
2. sum the regression over the rows (for a Gaussian likelihood from cross-tables computed once),
3. tune precisions and noise to the evidence's optimum within reach of these tables,
4. step to the posterior mean, halving the step while the likelihood is far below its expansion,
5. tune the likelihood's own parameters, if it has any,

until the evidence stops rising. Step 4 is a Gauss-Newton step on the likelihood; for a Gaussian one
it is exact. Moving the expansion point as well was measured and does not help (docs, method page).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from lanam.core.arrays import Array, Rng
from lanam.core.inference import evidence, left_out, selection
from lanam.core.inference.evidence import Estimate, Hyper
from lanam.core.inference.options import Options
from lanam.core.inference.own_parameters import tuned
from lanam.core.inference.posterior import Solution
from lanam.core.inference.problem import Problem, Regression, State, TermState
from lanam.core.inference.selection import Elimination, Threshold
from lanam.core.inference.solver import Curvature, Dropped, Record, Stage, TrainingTask
from lanam.core.inference.tuning import WIDE, tune
from lanam.core.rows import statistics
from lanam.core.rows.cross_tables import TableQuadratic
from lanam.core.terms.term import LevelTerm, key_of, main_effects

#: Initial noise, relative to that of the intercept-only model.
_START_NOISE = 0.1

#: Rounds of dropping weak terms and fitting again.
_MAX_ROUNDS = 4

#: Standard errors by which the log score of left-out rows must exceed that of the intercept alone: it is
#: optimistic, because the precisions were tuned with these rows.
_SURELY = 3.0

#: Passes end when one gains less than this fraction of an extension's gain.
_SLACK = 1e-3

#: The number of coordinates to which the tolerance refers.
_COORDINATES = 100

#: Evidence steps within one linearisation.
_TUNE_STEPS = 25
#: The same after coarse passes have converged.
_LAST_STEPS = 4

#: The last coarse pass where expansions are moved.
_COARSE_PASSES = 1

#: Halvings of a step for the gain that the expansion predicts, and until the likelihood does not fall.
_HALVINGS = 6
_MAX_HALVINGS = 60

#: The largest rise of a log prior variance before terms are compressed again, where an expansion is
#: maximised. Directions dropped at a small variance are not penalised at a large one: beyond this reach the
#: evidence is optimistic, and expansions oscillate.
_REACH = 3.0


@dataclass(frozen=True)
class Limits:
    """Passes end after ``max_iter``, or when the objective rises by less than ``tol``.

    ``tol`` is for a hundred coordinates; of more, each counts for as little. ``before`` is the evidence of
    the model that this one extends, if any: the tolerance is then relative to the gain since.
    """

    max_iter: int
    tol: float
    before: float | None = None

    def reached(self, rise: float, state: State) -> bool:
        """Whether a rise is below the tolerance."""
        gained = 0.0 if self.before is None else state.evidence - self.before
        tolerance = self.tol * max(1.0, state.width / _COORDINATES)
        return abs(rise) < max(tolerance, _SLACK * gained)


def converge(
    problem: Problem, state: State, limits: Limits, on_pass: Callable[[State], None]
) -> tuple[State, bool]:
    """Passes up to the limits; returns the best state, and whether it converged."""
    exact, quadratic = problem.exact is not None, problem.likelihood.quadratic
    if not exact:
        state = replace(state, quadratic=problem.quadratic(state))
        if problem.in_tables:
            return _climb_expansions(problem, state, limits, on_pass)
    # Certain rows have little curvature: coarse directions would not see what was learned from them.
    coarse = quadratic or math.isinf(state.evidence)
    best = replace(state, objective=-np.inf)
    # Whether a coarse fit has converged: the other coordinates change little.
    last, falls = False, 0
    for number in range(limits.max_iter):
        # 1. and 2. compress, and sum over the rows
        wide = coarse and state.width > WIDE
        affordable = WIDE if coarse else math.inf
        linear = Regression.in_pass(problem, state, affordable, headroom=wide)
        # 3. tune
        hyper, posterior = tune(
            linear.model,
            linear.start,
            problem.joint,
            problem.update,
            _LAST_STEPS if last else _TUNE_STEPS,
            limits.tol / 5,
            approximate=not last and len(linear.model.target) > WIDE,
        )
        # 4. step
        after = _step(linear, hyper, posterior)
        if falls:
            after = _blended(state, after, 1.0 / (1.0 + falls))
        state = _damped(problem, state, after, posterior.log_likelihood)
        # 5. tune the likelihood's own parameters
        state = tuned(problem, state)
        on_pass(state)
        rise = state.objective - best.objective
        coarse = coarse and (quadratic or number < _COARSE_PASSES)
        if rise < -limits.tol and problem.likelihood.parameters:
            # Expected curvatures and learned parameters may chase each other: ever smaller steps do not.
            falls += 1
        # Before a non-Gaussian expansion has converged, its evidence may be too high: keep the latest.
        if rise > 0.0 or not exact:
            best = state
        if limits.reached(rise, state) or (rise < 0.0 and exact):
            if not linear.coarse:
                return best, True
            # Objectives of other directions do not compare.
            coarse, last, state = False, True, best
            best = replace(best, objective=-math.inf)
    return best, False


def _climb_expansions(
    problem: Problem, state: State, limits: Limits, on_pass: Callable[[State], None]
) -> tuple[State, bool]:
    """The same where passes over rows are expensive: each expansion is maximised as if it were exact.

    There are then as few passes over the rows as in Newton's method.
    """
    objective = -np.inf
    for _ in range(limits.max_iter):
        made = problem.quadratic(state)
        assert isinstance(made, TableQuadratic)
        fixed = replace(problem, exact=made, reach=_REACH)
        after, _ = converge(fixed, state, limits, on_pass)
        rise, objective = after.objective - objective, after.objective
        if limits.reached(rise, after):
            # Expanding again would not change the result.
            return replace(after, quadratic=made.moved_to(after.values)), True
        predicted = problem.at_noise(made.of(after.values, after.intercept), after.noise)
        state = tuned(problem, _damped(problem, state, after, predicted))
    return state, False


def _step(linear: Regression, hyper: Hyper, posterior: Estimate) -> State:
    """The state at the posterior mean."""
    problem, state = linear.problem, linear.state
    terms = tuple(
        replace(
            estimate,
            precision=estimate.precision * np.exp(-hyper.log_rho[groups]),
            values=values,
            basis=None if isinstance(term, LevelTerm) and not term.high_cardinality else part.basis,
        )
        for term, estimate, part, values, groups in zip(
            problem.terms,
            state.terms,
            linear.compressed,
            linear.values(posterior),
            linear.model.prior.groups,
            strict=True,
        )
    )
    outcome = posterior.evidence, posterior.n_effective, posterior.objective
    return replace(
        State(terms, linear.intercept(posterior), hyper.noise, *outcome),
        likelihood=state.likelihood,
    )


def _blended(before: State, after: State, fraction: float) -> State:
    """The state at a fraction of the way, in values and logarithms of precisions."""

    def part(old: TermState, new: TermState) -> TermState:
        ratio = np.exp(fraction * (np.log(new.precision) - np.log(old.precision)))
        values = old.values + fraction * (new.values - old.values)
        return replace(new, precision=old.precision * ratio, values=values)

    terms = tuple(map(part, before.terms, after.terms))
    intercept = before.intercept + fraction * (after.intercept - before.intercept)
    return replace(after, terms=terms, intercept=intercept)


def _damped(problem: Problem, before: State, after: State, predicted: float) -> State:
    """Halve a step towards ``after`` while the log-likelihood is far below the predicted one.

    The prior is quadratic: only the likelihood's expansion can be wrong.
    """
    if problem.exact is not None:
        return after
    old = problem.at_noise(problem.quadratic(before).value, after.noise)
    # Half of a predicted gain, or one and a half times a predicted loss, is acceptable.
    enough = predicted - 0.5 * abs(predicted - old) - 1e-9
    for halvings in range(_MAX_HALVINGS):
        # The next pass starts from this expansion.
        made = problem.expand(after)
        after = replace(after, quadratic=made)
        new = problem.at_noise(made.value, after.noise)
        # If no step reaches the prediction (counts far from their start) it is no longer required, but
        # a step must not end where rates overflow.
        if new >= (enough if halvings < _HALVINGS else min(enough, old)):
            return after
        after = replace(_blended(before, after, 0.5), quadratic=None)
    return after


def refit_posterior(problem: Problem, state: State) -> State:
    """The state at the posterior mean for its hyperparameters, with its evidence."""
    linear = Regression.of(problem, state, integrated=problem.many_levels)
    return _step(linear, linear.start, evidence.estimate(linear.model, linear.start, problem.joint))


@dataclass(frozen=True)
class GaussNewton:
    """Terms are linear in their parameters, so that any table over entries can be one."""

    options: Options
    curvature: Curvature

    init_scales: ClassVar[tuple[float, ...]] = (1.0, 4.0, 16.0)
    pair_init_scales: ClassVar[tuple[float, ...]] = (1.0, 4.0)
    trained: ClassVar[bool] = False
    in_memory: ClassVar[bool] = False

    def initial_state(self, problem: Problem, rng: Rng) -> State:
        """All terms at zero."""
        terms = tuple(problem.initial_term(k, rng) for k in range(len(problem.terms)))
        rows, likelihood, noise = problem.rows, problem.likelihood, problem.likelihood.excess
        if likelihood.noise_bounds is not None:
            around = selection.null_fit(rows, likelihood)[1]
            noise = max(_START_NOISE * around, likelihood.noise_bounds[0])
        return State(terms, statistics.fit_intercept_only(rows, likelihood), noise)

    def train(self, task: TrainingTask, rng: Rng, record: Record) -> Stage:
        """Alternate passes and the elimination of weak terms."""
        problem, state, threshold = task.problem, task.state, task.threshold
        dropped, thresholds = list(task.before.dropped), dict(task.before.thresholds)
        n_passes, converged = 0, False
        # The result if the user interrupts.
        newest = (task.before.problem, task.before.state)

        def note(now: State) -> None:
            nonlocal newest, n_passes
            # The best pass of a quadratic likelihood; other expansions converge, so the latest.
            same = newest[0] is problem and problem.likelihood.quadratic
            if not same or now.objective >= newest[1].objective:
                newest = (problem, now)
            n_passes += 1
            record(task.name, now)

        try:
            extended = None if threshold is None else state.evidence
            null = selection.null_evidence(problem.rows, problem.likelihood)
            for round_number in range(_MAX_ROUNDS + 1):
                left = self.options.max_iter - n_passes
                if left == 0:
                    converged = False
                    break
                limits = Limits(left, self.options.tol, extended)
                state, converged = converge(problem, state, limits, note)
                if round_number == _MAX_ROUNDS:
                    break
                forced = self.options.time, self.options.knowledge.keep
                if threshold is not None:
                    gone, gains, least = _weak_terms(
                        problem, state, threshold(problem), None, *forced
                    )
                else:
                    reached = null if converged else None
                    gone, gains, least = _weak_terms(problem, state, None, reached, *forced)
                judged = zip(map(key_of, problem.terms), least, strict=True)
                thresholds |= {key: value for key, value in judged if value > -np.inf}
                if not gone:
                    break
                dropped += [
                    Dropped(problem.terms[k], problem.data_mass[k], gains[k], least[k])
                    for k in gone
                ]
                kept = [k for k in range(len(problem.terms)) if k not in gone]
                problem, state = newest = problem.keep(kept), state.keep(kept)
        except KeyboardInterrupt:
            return Stage(*newest, tuple(dropped), "interrupted", thresholds)
        reason = "converged" if converged else "max_iter"
        return Stage(problem, state, tuple(dropped), reason, thresholds)

    def select(self, stage: Stage) -> Stage:
        """The stage as it is: weak terms are dropped in training."""
        return stage

    def solution(self, problem: Problem, state: State, *, quick: bool = False) -> Solution:
        """The posterior at a state."""
        return self.curvature.solution(problem, state, quick=quick)


def _weak_terms(
    problem: Problem,
    state: State,
    threshold: Threshold | None,
    null: float | None = None,
    time: int | None = None,
    kept: Collection[int] = (),
) -> Elimination:
    """The terms to drop, in order, and every term's log evidence gain and threshold.

    After convergence with single columns, ``null`` is the evidence of the intercept-only model. Terms of
    ``kept`` columns stay, and the curve of the column ``time`` with any coordinates.
    """
    linear, posterior = problem.solved(state)
    outside = linear.gains_outside(posterior)
    stays = main_effects(problem.terms, kept)
    eliminate = partial(
        selection.eliminate,
        linear.model.prior,
        posterior,
        linear.tables,
        problem.data_mass,
        n_outputs=problem.likelihood.n_outputs,
        outside=outside,
        spreads={k: _spread(state.terms[k].values, problem.data_mass[k]) for k in outside},
        kept=stays,
    )

    def weak(least: Threshold) -> Elimination:
        def judged(k: int, left: Sequence[int]) -> float:
            forced = k in stays or problem.terms[k].features == (time,)
            return -np.inf if forced else least(k, left)

        return eliminate(judged)

    of_columns = selection.column_threshold(problem.n_columns, problem.rows.count)
    gone, gains, thresholds = weak(of_columns if threshold is None else threshold)
    least = selection.min_model_gain(linear.model.prior, posterior)
    fits_noise = null is not None and not gone and state.evidence < null + least
    if fits_noise and not _predicts(problem, state):
        # Every term must reach the threshold; if all do, and the noise could be small, the model merely
        # interpolates the rows.
        gone, gains, thresholds = weak(lambda k, left: selection.MIN_LOG_EVIDENCE_GAIN)
        if problem.likelihood.quadratic:
            gone = gone or [k for k in range(len(problem.terms)) if k not in stays]
    if threshold is not None and not problem.likelihood.quadratic:
        gone = dispensable(problem, state, gone, gains)
    return Elimination(gone, gains, thresholds)


def _spread(values: Array, data_mass: Array) -> float:
    """The standard deviation of a function over the data, of all outputs together."""
    return float(np.sqrt((data_mass @ np.square(values - data_mass @ values)).sum()))


def _predicts(problem: Problem, state: State) -> bool:
    """Whether left-out rows are predicted better than by the intercept alone.

    These rows have also chosen the columns, one of many choices: its number of nats is taken off.
    """
    _, noise = selection.null_fit(problem.rows, problem.likelihood)
    intercept = statistics.fit_intercept_only(problem.rows, problem.likelihood)
    gain, error = left_out.score_gain(problem, state, State((), intercept, noise))
    columns = {term.features for term in problem.terms}
    return gain - selection.log_choices(problem.n_columns, len(columns)) > _SURELY * error


def dispensable(
    problem: Problem, state: State, gone: list[int], gains: Sequence[float]
) -> list[int]:
    """Those of ``gone`` without which the evidence falls by no more than their gains.

    Gains are those of a quadratic, which is flat where classes are separated and misses the terms that
    separate them: the last to go was the strongest, and stays.
    """
    while gone:
        kept = [k for k in range(len(problem.terms)) if k not in gone]
        without = refit_posterior(problem.keep(kept), state.keep(kept))
        predicted = sum(max(gains[k], 0.0) for k in gone)
        if state.evidence - without.evidence <= predicted + selection.MIN_LOG_EVIDENCE_GAIN:
            break
        gone = gone[:-1]
    return gone
