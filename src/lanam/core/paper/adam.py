"""The paper's solver: Adam on all network parameters, alternating with evidence steps.

A round is 100 epochs of Adam on the log-likelihood plus log prior, in batches of at most 512 rows, then 30
steps of the log precisions and the log noise on the Laplace evidence (``laplace.py``). Rounds continue
until the evidence stops rising, and the best one is restored. Of three learning rates the one with the
highest evidence is kept (paper, appendix C).

Networks start as torch's linear layers do, at precisions and noise variance 1. They are evaluated at the
entries of their tables, between which rows interpolate. Features are selected by the precisions alone, and
there are no level effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from lanam.core.arrays import Array, Rng
from lanam.core.inference.evidence import RATE, Moments, Update
from lanam.core.inference.gauss_newton import GaussNewton
from lanam.core.inference.options import Options
from lanam.core.inference.posterior import Solution
from lanam.core.inference.problem import Problem, State
from lanam.core.inference.solver import Curvature, Dropped, Record, Stage, TrainingTask
from lanam.core.paper import laplace
from lanam.core.paper.laplace import Evidence, Laplace, LogHyper
from lanam.core.paper.objective import Objective, smooth_terms
from lanam.core.rows import statistics
from lanam.core.terms import networks

LEARNING_RATES = (0.1, 0.01, 0.001)

_EPOCHS = 100
_EVIDENCE_STEPS = 30

#: Rounds without a rise of the evidence after which a run stops.
_PATIENCE = 4

#: A term is dropped if its effective degrees of freedom are fewer than this, or if its standard deviation
#: is below this fraction of the model's.
_EFFECTIVE_OFF = 0.01
_SPREAD_OFF = 1e-3


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
    evidence.
    """

    options: Options
    curvature: Curvature

    init_scales: ClassVar[tuple[float, ...]] = (1.0,)
    pair_init_scales: ClassVar[tuple[float, ...]] = (1.0,)
    networks_only: ClassVar[bool] = True
    in_memory: ClassVar[bool] = True

    def initial_state(self, problem: Problem, rng: Rng) -> State:
        """The intercept alone, at noise variance 1."""
        return State((), statistics.fit_intercept_only(problem.rows, problem.likelihood), 1.0)

    def train(self, task: TrainingTask, rng: Rng, record: Record) -> Stage:
        """Train, new terms from random parameters, and drop those that the precisions have removed."""
        problem, before = task.problem, task.before
        if not problem.terms:  # nothing to train
            other = GaussNewton(self.options, self.curvature)
            return other.train(replace(task, state=other.initial_state(problem, rng)), rng, record)
        result = self.fit(problem, rng, partial(record, "adam"), before.state)
        solution = self.solution(problem, result.state)
        removed = terms_to_drop(problem, solution)
        gains = solution.log_evidence_gains
        dropped = [Dropped(problem.terms[k], problem.data_mass[k], gains[k]) for k in removed]
        kept = [k for k in range(len(problem.terms)) if k not in removed]
        dropped = [*before.dropped, *dropped]
        return Stage(problem.keep(kept), result.state.keep(kept), tuple(dropped), result.reason)

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
        """Train with every learning rate from the same start, and keep the one with the highest evidence.

        ``earlier`` is an earlier state of the first terms, to continue from; ``on_round`` is called with
        every round's state. Ctrl-C ends the training and keeps the best so far.
        """
        objective = Objective.of(problem)
        begin = _start(
            problem, self.initial_state(problem, rng) if earlier is None else earlier, rng
        )
        best: AdamResult | None = None
        for rate in LEARNING_RATES:
            run = self._run(objective, begin, rate, rng, on_round)
            if best is None or run.state.evidence > best.state.evidence:
                best = run
            if run.reason == "interrupted":
                return replace(best, reason=run.reason)
        assert best is not None
        return best

    def _run(
        self,
        objective: Objective,
        start: tuple[Array, LogHyper],
        rate: float,
        rng: Rng,
        on_round: Callable[[State], None],
    ) -> AdamResult:
        """Rounds with one learning rate."""
        problem, (parameters, hyper) = objective.problem, start
        moments, logs = Moments.zeros(len(parameters)), Moments.zeros(len(hyper.log_precision) + 1)
        best, now = self._expand(objective, parameters, hyper)
        best = laplace.retuned(problem, best, hyper, now.evidence(hyper))
        result, stalled = AdamResult(best, rate), 0
        try:
            for _ in range(self.options.max_iter):
                # 1. the networks at fixed hyperparameters
                parameters, moments = _train(objective, parameters, hyper, moments, rate, rng)
                # 2. the hyperparameters at fixed networks
                state, now = self._expand(objective, parameters, hyper)
                hyper, value, logs = _raise_evidence(now, hyper, logs, problem.update)
                state = laplace.retuned(problem, state, hyper, value)
                on_round(state)
                # 3. the best so far, and whether it still rises
                rise = state.evidence - result.state.evidence
                stalled = 0 if rise > self.options.tol else stalled + 1
                if rise > 0.0:
                    result = replace(result, state=state)
                if stalled >= _PATIENCE:
                    return replace(result, reason="converged")
        except KeyboardInterrupt:
            return replace(result, reason="interrupted")
        return result

    def _expand(
        self, objective: Objective, parameters: Array, hyper: LogHyper
    ) -> tuple[State, Laplace]:
        """The trained networks' state, and their evidence as a function of the hyperparameters."""
        thetas = [parameters[part] for part in objective.stack.parameters]
        state = laplace.trained(objective.problem, thetas, float(parameters[-1]), hyper)
        return state, laplace.approximate(objective.problem, state, self.curvature)


def _start(problem: Problem, earlier: State, rng: Rng) -> tuple[Array, LogHyper]:
    """Parameters and hyperparameters of all terms before training, the first of them from ``earlier``."""
    terms = smooth_terms(problem.terms)
    fresh, intercept = terms[len(earlier.terms) :], earlier.intercept
    # The intercept of a state includes the means of single columns, which their networks still have.
    for term, state, data_mass in zip(terms, earlier.terms, problem.data_mass, strict=False):
        if not term.joint:
            inputs = term.entries.network_inputs
            values = networks.forward(term.architecture, state.expansion, inputs)
            intercept = intercept - float(data_mass @ values)
    parameters = [state.expansion for state in earlier.terms]
    parameters += [networks.initialise(term.architecture, rng) for term in fresh]
    precisions = [np.log(term.precision) for term in earlier.terms]
    precisions += [np.zeros(int(term.group_index.max()) + 1) for term in fresh]
    hyper = LogHyper(np.concatenate(precisions), float(np.log(earlier.noise)))
    return np.concatenate([*parameters, [intercept]]), hyper


def _train(
    objective: Objective, theta: Array, hyper: LogHyper, moments: Moments, rate: float, rng: Rng
) -> tuple[Array, Moments]:
    """The epochs of a round."""
    terms = objective.problem.terms
    per_term = laplace.per_term(objective.problem, np.exp(hyper.log_precision))
    precision = np.concatenate(
        [precision[term.group_index] for precision, term in zip(per_term, terms, strict=True)]
    )
    for _ in range(_EPOCHS):
        for batch in objective.batches(rng):
            gradient = objective.gradient(theta, batch, precision, hyper.noise)
            step, moments = moments.step(gradient, rate)
            theta = theta + step
    return theta, moments


def _raise_evidence(
    now: Laplace, hyper: LogHyper, moments: Moments, update: Update
) -> tuple[LogHyper, Evidence, Moments]:
    """The evidence steps of a round."""
    value = now.evidence(hyper)
    for _ in range(_EVIDENCE_STEPS):
        # Bounded like the gradient's steps, because the networks adapt slowly.
        fixed_point = np.clip(now.mackay_step(hyper, value), -RATE, RATE)
        step, moments = update(fixed_point, value.gradient, moments)
        hyper = hyper.moved(step, now.noise_bounds)
        value = now.evidence(hyper)
    return hyper, value, moments


def _log_evidence_gains(problem: Problem, state: State, log_dets: Sequence[float]) -> list[float]:
    """By how much the log evidence falls without a term, all else fixed."""

    def log_likelihood(values: Sequence[Array]) -> float:
        point = (problem.likelihood, values, state.intercept)
        return statistics.log_likelihood(problem.rows, *point) / state.noise

    gains, whole = [], log_likelihood(state.values)
    for k, (term, term_state) in enumerate(zip(problem.terms, state.terms, strict=True)):
        without = state.values
        without[k] = np.zeros_like(term_state.values)
        energy = float(term_state.precision[term.group_index] @ np.square(term_state.expansion))
        gains.append(whole - log_likelihood(without) - 0.5 * (energy + log_dets[k]))
    return gains


def terms_to_drop(problem: Problem, solution: Solution) -> list[int]:
    """Terms that their precisions have reduced to nothing."""
    variances = [
        float(mass @ np.square(mean))
        for mass, mean in zip(problem.data_mass, solution.means, strict=True)
    ]
    least = _SPREAD_OFF**2 * sum(variances)
    return [
        k
        for k, (variance, effective) in enumerate(zip(variances, solution.effective, strict=True))
        if effective < _EFFECTIVE_OFF or variance < least
    ]
