"""The paper's solver: Adam on all network parameters, alternating with evidence steps.

A round is 100 epochs of Adam on the log-likelihood plus log prior, in batches of at most 512 rows, then 30
steps of the log precisions and the log noise on the Laplace evidence (``laplace.py``). Rounds continue
until the evidence stops rising, and the best one is restored. Of three learning rates the one with the
highest evidence is kept (paper, appendix C). All learning rates and restarts are *runs* of one batched
computation (``stack.py``); one whose evidence has stopped rising leaves it.

Networks start as torch's linear layers do, at precisions and noise variance 1. They are evaluated at the
entries of their tables, between which rows interpolate; categories and missing values have effects, with a
precision of their own. Features are selected by the precisions alone, and there are no level effects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from lanam.core.arrays import Array, Rng
from lanam.core.inference.evidence import RATE, Moments, Update
from lanam.core.inference.gauss_newton import GaussNewton
from lanam.core.inference.options import Options
from lanam.core.inference.own_parameters import tuned
from lanam.core.inference.posterior import Solution
from lanam.core.inference.problem import Problem, State
from lanam.core.inference.solver import Curvature, Dropped, Record, Stage, TrainingTask
from lanam.core.likelihoods import Likelihood
from lanam.core.paper import laplace, trained
from lanam.core.paper.laplace import Evidence, Laplace, LogHyper
from lanam.core.paper.objective import Objective
from lanam.core.paper.stack import Floats, Layout
from lanam.core.rows import statistics

#: A term is dropped if its effective degrees of freedom are fewer than this, or if its standard deviation
#: is below this fraction of the model's.
_EFFECTIVE_OFF = 0.01
_SPREAD_OFF = 1e-3


#: A rise of the evidence by less than this for each row is none: with many rows batches alone move it by
#: more than what matters for few. (Twice this ends training before joint networks are of use on energy.)
_LEAST_RISE = 5e-4

#: The fraction of the learning rate at a fraction of a round.
Schedule = Callable[[float], float]

SCHEDULES: Mapping[str, Schedule] = {
    "constant": lambda part: 1.0,
    "cosine": lambda part: 0.5 + 0.5 * math.cos(math.pi * part),
}


@dataclass(frozen=True)
class Point:
    """Parameters (K, P) of all terms, intercepts (K,), hyperparameters, and the likelihood with its own."""

    parameters: tuple[Array, ...]
    intercept: Array
    hyper: LogHyper
    likelihood: Likelihood


@dataclass(frozen=True)
class Run:
    """A learning rate from one start: where it is, and its best round so far with its evidence."""

    learning_rate: float
    now: Point
    moments: Moments
    best: Point
    value: Evidence
    #: rounds since the evidence has risen
    stalled: int = 0


@dataclass(frozen=True)
class AdamResult:
    """The best networks; a term's parameters are its state's ``expansion``."""

    state: State
    learning_rate: float
    reason: str = "max_iter"


@dataclass(frozen=True)
class Adam:
    """Trains all parameters of networks.

    ``options.max_iter`` is the number of rounds per learning rate, ``options.tol`` the least rise of the
    evidence, but for many rows.
    """

    options: Options
    curvature: Curvature

    init_scales: ClassVar[tuple[float, ...]] = (1.0,)
    pair_init_scales: ClassVar[tuple[float, ...]] = (1.0,)
    trained: ClassVar[bool] = True
    in_memory: ClassVar[bool] = True

    def initial_state(self, problem: Problem, rng: Rng) -> State:
        """The intercept alone, at noise variance 1."""
        return State((), statistics.fit_intercept_only(problem.rows, problem.likelihood), 1.0)

    def train(self, task: TrainingTask, rng: Rng, record: Record) -> Stage:
        """Train, new terms from random parameters."""
        problem, before = task.problem, task.before
        if not problem.terms:  # nothing to train
            other = GaussNewton(self.options, self.curvature)
            return other.train(replace(task, state=other.initial_state(problem, rng)), rng, record)
        result = self.fit(problem, rng, partial(record, "adam"), before.state)
        return Stage(problem, result.state, before.dropped, result.reason)

    def select(self, stage: Stage) -> Stage:
        """Drop the terms that their precisions have removed.

        At the end of a fit: the mutual information of two columns is also that of small effects, beside
        which a joint network may matter.
        """
        problem = stage.problem
        if not problem.terms:
            return stage
        solution = self.solution(problem, stage.state)
        removed = terms_to_drop(problem, solution)
        gains = solution.log_evidence_gains
        dropped = [Dropped(problem.terms[k], problem.data_mass[k], gains[k]) for k in removed]
        kept = [k for k in range(len(problem.terms)) if k not in removed]
        return replace(
            stage,
            problem=problem.keep(kept),
            state=stage.state.keep(kept),
            dropped=(*stage.dropped, *dropped),
        )

    def solution(self, problem: Problem, state: State, *, quick: bool = False) -> Solution:
        """The Laplace posterior around the trained networks."""
        functions = self.curvature.functions(problem, state)
        return Solution(
            means=tuple(state.values),
            tables=functions.tables,
            covariance=functions.covariance,
            intercept=state.intercept,
            evidence=state.evidence,
            effective=functions.effective,
            log_evidence_gains=tuple(_log_evidence_gains(problem, state, functions.log_dets)),
        )

    def fit(
        self,
        problem: Problem,
        rng: Rng,
        on_round: Callable[[State], None] = lambda state: None,
        earlier: State | None = None,
    ) -> AdamResult:
        """Train with every learning rate from the same starts, and keep the run with the highest evidence.

        ``earlier`` is an earlier state of the first terms, to continue from; ``on_round`` is called with
        every run's state after every round. Ctrl-C ends the training and keeps the best so far.
        """
        before = self.initial_state(problem, rng) if earlier is None else earlier
        starts = [start(problem, before, rng) for _ in range(self.options.n_restarts)]
        runs = [
            self._begin(problem, point, rate)
            for point in starts
            for rate in self.options.learning_rates
        ]
        reason = ""
        try:
            self._go_on(problem, runs, rng, on_round)
        except KeyboardInterrupt:
            reason = "interrupted"
        best = max(runs, key=lambda run: run.value.value)
        state, _ = self._evaluate(problem, best.best, tangents=True)
        state = laplace.retuned(problem, state, best.best.hyper, best.value)
        ended = "converged" if best.stalled >= self.options.patience else "max_iter"
        return AdamResult(state, best.learning_rate, reason or ended)

    def _begin(self, problem: Problem, point: Point, learning_rate: float) -> Run:
        _, now = self._evaluate(problem, point)
        moments = Moments.zeros(len(point.hyper.log_precision) + 1)
        return Run(learning_rate, point, moments, point, now.evidence(point.hyper))

    def _go_on(
        self, problem: Problem, runs: list[Run], rng: Rng, on_round: Callable[[State], None]
    ) -> None:
        """Rounds of all runs whose evidence still rises, which replace those in the list."""
        active = list(range(len(runs)))
        training = Training.of(problem, [run.now for run in runs], self.options)
        for _ in range(self.options.max_iter):
            # 1. the networks at fixed hyperparameters
            rates = [runs[k].learning_rate for k in active]
            points = training.epochs([runs[k].now for k in active], rates, rng)
            # 2. the hyperparameters at fixed networks
            for k, point in zip(active, points, strict=True):
                runs[k] = self._tuned(problem, replace(runs[k], now=point), on_round)
            # 3. those that still rise
            left = [k for k in active if runs[k].stalled < self.options.patience]
            if not left:
                return
            if len(left) < len(active):
                training = training.keep([active.index(k) for k in left])
                active = left

    def _tuned(self, problem: Problem, run: Run, on_round: Callable[[State], None]) -> Run:
        """The evidence steps of a round, and the best round so far."""
        state, now = self._evaluate(problem, run.now)
        steps = problem.update, self.options.evidence_steps
        hyper, value, moments = _raise_evidence(now, run.now.hyper, run.moments, *steps)
        state = laplace.retuned(problem, state, hyper, value)
        point = replace(run.now, hyper=hyper)
        if point.likelihood.parameters:
            point = replace(point, likelihood=problem.likelihood_at(tuned(problem, state)))
            state, now = self._evaluate(problem, point)
            value = now.evidence(hyper)
            state = laplace.retuned(problem, state, hyper, value)
        on_round(state)
        run = replace(run, now=point, moments=moments)
        rise = value.value - run.value.value
        least = max(self.options.tol, _LEAST_RISE * problem.rows.count)
        run = replace(run, stalled=0 if rise > least else run.stalled + 1)
        return replace(run, best=run.now, value=value) if rise > 0.0 else run

    def _evaluate(
        self, problem: Problem, point: Point, *, tangents: bool = False
    ) -> tuple[State, Laplace]:
        """The state at some parameters, and its evidence as a function of the hyperparameters."""
        tangents = tangents or not self.curvature.factored
        at = point.parameters, point.intercept, point.hyper
        state = laplace.state_of(problem, *at, tangents=tangents)
        state = replace(state, likelihood=point.likelihood)
        return state, laplace.approximate(problem, state, self.curvature)


@dataclass
class Training:
    """Adam on the parameters of several runs at the same time, in place, with its moments."""

    objective: Objective
    moments: Moments
    options: Options

    @classmethod
    def of(cls, problem: Problem, points: Sequence[Point], options: Options) -> Training:
        """Training from these parameters on."""
        layout = Layout(problem.terms, tuple(np.flatnonzero(mass) for mass in problem.data_mass))
        parameters = np.concatenate(
            [layout.stacked(point.parameters, point.intercept) for point in points]
        )
        objective = Objective(problem, layout, parameters, options.batch_size)
        nothing = np.zeros_like(objective.parameters)
        return cls(objective, Moments(nothing, nothing, 0), options)

    def epochs(self, points: Sequence[Point], rates: Sequence[float], rng: Rng) -> list[Point]:
        """Where each run is after a round's epochs at its hyperparameters and its learning rate."""
        hypers = [point.hyper for point in points]
        self.objective.likelihoods = [point.likelihood for point in points]
        objective, parameters = self.objective, self.objective.parameters
        n_outputs = objective.problem.likelihood.n_outputs
        precision = np.concatenate([self._precision(hyper) for hyper in hypers])
        noise, rate = (
            np.repeat(values, n_outputs)[:, None].astype(parameters.dtype)
            for values in ([hyper.noise for hyper in hypers], rates)
        )
        n_epochs, schedule = self.options.epochs, SCHEDULES[self.options.schedule]
        for epoch in range(n_epochs):
            now = rate * parameters.dtype.type(schedule(epoch / n_epochs))
            for batch in objective.batches(rng):
                gradient = objective.gradient(batch, precision, noise)
                step, self.moments = self.moments.step(gradient, 1.0)
                step *= now
                parameters += step
        layout, runs = objective.layout, np.split(parameters.astype(np.float64), len(points))
        return [
            replace(
                point,
                parameters=tuple(own[:, places] for places in layout.parameters),
                intercept=own[:, -1],
            )
            for own, point in zip(runs, points, strict=True)
        ]

    def _precision(self, hyper: LogHyper) -> Floats:
        """The prior precision of every parameter (K, P), of which the intercept has none."""
        terms, n_outputs = self.objective.problem.terms, self.objective.problem.likelihood.n_outputs
        per_term = trained.per_term(terms, np.exp(hyper.log_precision))
        pairs = zip(per_term, terms, strict=True)
        of_parameters = [precision[term.group_index] for precision, term in pairs]
        whole = self.objective.layout.stacked(of_parameters, np.zeros(n_outputs))
        return whole.astype(self.objective.parameters.dtype)

    def keep(self, runs: Sequence[int]) -> Training:
        """Some of the runs."""
        old = self.objective
        n_outputs = old.problem.likelihood.n_outputs
        kept = np.concatenate([np.arange(n_outputs) + n_outputs * run for run in runs])
        moments = replace(
            self.moments, first=self.moments.first[kept], second=self.moments.second[kept]
        )
        return Training(old.of(old.parameters[kept]), moments, self.options)


def start(problem: Problem, earlier: State, rng: Rng) -> Point:
    """Where training begins: the first terms as in ``earlier``, the others at random."""
    n_outputs = problem.likelihood.n_outputs
    fresh, intercept = problem.terms[len(earlier.terms) :], np.atleast_1d(earlier.intercept)
    parameters = [state.expansion.reshape(n_outputs, -1) for state in earlier.terms]
    # The intercept of a state includes the means of single columns, which their networks still have.
    for term, own, mass in zip(problem.terms, parameters, problem.data_mass, strict=False):
        if not (term.joint and term.pure):
            intercept = intercept - mass @ trained.functions(term, own)
    parameters += [
        np.stack([trained.initialise(term, rng) for _ in range(n_outputs)]) for term in fresh
    ]
    precisions = [np.log(term.precision) for term in earlier.terms]
    precisions += [np.zeros(trained.n_groups(term)) for term in fresh]
    hyper = LogHyper(np.concatenate(precisions), float(np.log(earlier.noise)))
    return Point(tuple(parameters), intercept, hyper, problem.likelihood_at(earlier))


def _raise_evidence(
    now: Laplace, hyper: LogHyper, moments: Moments, update: Update, n_steps: int
) -> tuple[LogHyper, Evidence, Moments]:
    """The evidence steps of a round."""
    value = now.evidence(hyper)
    for _ in range(n_steps):
        # Bounded like the gradient's steps, because the networks adapt slowly.
        fixed_point = np.clip(now.mackay_step(hyper, value), -RATE, RATE)
        step, moments = update(fixed_point, value.gradient, moments)
        hyper = hyper.moved(step, now.noise_bounds)
        value = now.evidence(hyper)
    return hyper, value, moments


def _log_evidence_gains(problem: Problem, state: State, log_dets: Sequence[float]) -> list[float]:
    """By how much the log evidence falls without a term, all else fixed."""

    def log_likelihood(values: Sequence[Array]) -> float:
        point = (problem.likelihood_at(state), values, state.intercept)
        return statistics.log_likelihood(problem.rows, *point) / state.noise

    gains, whole = [], log_likelihood(state.values)
    for k, (term, term_state) in enumerate(zip(problem.terms, state.terms, strict=True)):
        without = state.values
        without[k] = np.zeros_like(term_state.values)
        energy = float(term_state.precision @ trained.sums_of_squares(term, term_state.expansion))
        gains.append(whole - log_likelihood(without) - 0.5 * (energy + log_dets[k]))
    return gains


def terms_to_drop(problem: Problem, solution: Solution) -> list[int]:
    """Terms that their precisions have reduced to nothing."""
    variances = [
        float((mass @ np.square(mean)).sum())
        for mass, mean in zip(problem.data_mass, solution.means, strict=True)
    ]
    least = _SPREAD_OFF**2 * sum(variances)
    return [
        k
        for k, (variance, effective) in enumerate(zip(variances, solution.effective, strict=True))
        if effective < _EFFECTIVE_OFF or variance < least
    ]
