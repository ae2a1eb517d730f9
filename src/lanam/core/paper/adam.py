"""The paper's solver: Adam on all network parameters, alternating with evidence steps.

A round is 100 epochs of Adam on the log-likelihood plus log prior, in batches of at most 512 rows,
then 30 steps of the log precisions and the log noise on the Laplace evidence (``laplace.py``). Rounds
go on until the evidence stops rising; the best one is restored. All of it is done for three
learning rates, of which the one with most evidence is kept (paper, appendix C).

Networks start as torch's linear layers do, at precisions and noise variance 1. They are evaluated at
the entries of their tables and rows read them, as everywhere in lanam; a term centred over the data
gives its mean to the intercept, which changes no prediction. Features are selected by the precisions
alone; level effects do not exist here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lanam.core.arrays import Array
from lanam.core.inference import gauss_newton
from lanam.core.inference.gauss_newton import Problem, State
from lanam.core.inference.moments import Moments
from lanam.core.inference.options import Options
from lanam.core.inference.posterior import Solution
from lanam.core.inference.prior import inverse_and_log_det
from lanam.core.paper import kron, laplace
from lanam.core.paper.laplace import Evidence, Hyper, Laplace
from lanam.core.paper.objective import Objective, smooth_terms
from lanam.core.paper.stacked import Stack
from lanam.core.rows import statistics
from lanam.core.terms import networks

LEARNING_RATES = (0.1, 0.01, 0.001)

_EPOCHS = 100
_EVIDENCE_STEPS = 30
_EVIDENCE_RATE = 0.1

#: Rounds without a rise of the evidence after which a run ends.
_PATIENCE = 4

#: A term is off when the data determines less of it than this (effective parameters), or when its
#: spread is below this share of the model's.
_EFFECTIVE_OFF = 0.01
_SPREAD_OFF = 1e-3


@dataclass(frozen=True)
class AdamResult:
    """The best networks found; a term's parameters are its state's ``expansion``."""

    state: State
    learning_rate: float
    converged: bool
    interrupted: bool

    @property
    def thetas(self) -> tuple[Array, ...]:
        """Every term's parameters."""
        return tuple(known.expansion for known in self.state.terms)


def fit(
    problem: Problem,
    options: Options,
    rng: np.random.Generator,
    on_round: Callable[[State], None] = lambda state: None,
    known: State | None = None,
) -> AdamResult:
    """Train with every learning rate from the same start; the one with most evidence is kept.

    ``known`` is an earlier result for the first of the terms, from which they go on.
    ``options.max_iter`` counts the rounds of one learning rate, ``options.tol`` is the rise of the
    evidence that counts as one. ``on_round`` is told every round's state. Ctrl-C ends the training and
    keeps the best so far.
    """
    objective = Objective.of(problem)
    start, hyper = _start(problem, known, rng)
    best: AdamResult | None = None
    for rate in LEARNING_RATES:
        run = _run(problem, objective, options, (start, hyper), rate, rng, on_round)
        if best is None or run.state.evidence > best.state.evidence:
            best = replace(run, interrupted=False)
        if run.interrupted:
            return replace(best, interrupted=True)
    assert best is not None
    return best


def _start(problem: Problem, known: State | None, rng: np.random.Generator) -> tuple[Array, Hyper]:
    """Parameters and hyperparameters of all terms before training."""
    if known is None:
        known = State((), statistics.start(problem.rows, problem.likelihood), 1.0)
    fresh = problem.terms[len(known.terms) :]
    # A state's intercept has the single columns' means, which their networks still have too.
    intercept = known.intercept - sum(
        float(
            share @ networks.forward(term.architecture, own.expansion, term.entries.network_inputs)
        )
        for term, own, share in zip(
            smooth_terms(problem.terms), known.terms, problem.shares, strict=False
        )
        if not term.joint
    )
    parameters = [term.expansion for term in known.terms]
    parameters += [networks.initialise(term.architecture, rng) for term in smooth_terms(fresh)]
    precisions = [np.log(term.precision) for term in known.terms]
    precisions += [np.zeros(int(term.group_index.max()) + 1) for term in fresh]
    hyper = Hyper(np.concatenate(precisions), float(np.log(known.noise)))
    return np.concatenate([*parameters, [intercept]]), hyper


def _run(
    problem: Problem,
    objective: Objective,
    options: Options,
    start: tuple[Array, Hyper],
    rate: float,
    rng: np.random.Generator,
    on_round: Callable[[State], None],
) -> AdamResult:
    """Rounds with one learning rate."""
    parameters, hyper = start
    moments = Moments.zeros(len(parameters)), Moments.zeros(len(hyper.log_precision) + 1)
    best, now = _expand(problem, objective.stack, parameters, hyper, options, rng)
    best = laplace.retuned(problem, best, hyper, now.evidence(hyper))
    result = AdamResult(best, rate, converged=False, interrupted=False)
    stalled = 0
    try:
        for _ in range(options.max_iter):
            # 1. the networks at fixed hyperparameters
            parameters, weights = _train(
                problem, objective, parameters, hyper, moments[0], rate, rng
            )
            # 2. the hyperparameters at fixed networks
            state, now = _expand(problem, objective.stack, parameters, hyper, options, rng)
            hyper, value, logs = _raise_evidence(now, hyper, moments[1], problem.evidence_update)
            moments = weights, logs
            state = laplace.retuned(problem, state, hyper, value)
            on_round(state)
            # 3. the best so far, and whether it still rises
            stalled = 0 if state.evidence > result.state.evidence + options.tol else stalled + 1
            if state.evidence > result.state.evidence:
                result = replace(result, state=state)
            if stalled >= _PATIENCE:
                return replace(result, converged=True)
    except KeyboardInterrupt:
        return replace(result, interrupted=True)
    return result


def _train(
    problem: Problem,
    objective: Objective,
    parameters: Array,
    hyper: Hyper,
    moments: Moments,
    rate: float,
    rng: np.random.Generator,
) -> tuple[Array, Moments]:
    """A round's epochs."""
    per_term = laplace.per_term(problem, np.exp(hyper.log_precision))
    precision = np.concatenate(
        [own[term.group_index] for own, term in zip(per_term, problem.terms, strict=True)]
    )
    for _ in range(_EPOCHS):
        for batch in objective.batches(rng):
            gradient = objective.gradient(parameters, batch, precision, hyper.noise)
            step, moments = moments.step(gradient, rate)
            parameters = parameters + step
    return parameters, moments


def _expand(
    problem: Problem,
    stack: Stack,
    parameters: Array,
    hyper: Hyper,
    options: Options,
    rng: np.random.Generator,
) -> tuple[State, Laplace]:
    """The trained networks' state, and their evidence as a function of the hyperparameters."""
    thetas = [parameters[own] for own in stack.parameters]
    state = laplace.trained(problem, thetas, float(parameters[-1]), hyper)
    return state, laplace.approximate(problem, state, options.curvature, rng)


def _raise_evidence(
    now: Laplace, hyper: Hyper, moments: Moments, update: str
) -> tuple[Hyper, Evidence, Moments]:
    """A round's steps of the hyperparameters, by the evidence's gradient or MacKay's updates."""
    value = now.evidence(hyper)
    for _ in range(_EVIDENCE_STEPS):
        if update == "mackay":
            # Bounded as the gradient's steps are: networks need time to follow.
            step = np.clip(now.mackay_step(hyper, value), -_EVIDENCE_RATE, _EVIDENCE_RATE)
        else:
            step, moments = moments.step(value.slope, _EVIDENCE_RATE)
        hyper = hyper.moved(step, now.noise_bounds)
        value = now.evidence(hyper)
    return hyper, value, moments


def solution(
    problem: Problem, state: State, options: Options, rng: np.random.Generator
) -> Solution:
    """The Laplace posterior around the trained networks: joint, in blocks or Kronecker-factored."""
    if options.curvature == "kron":
        made = kron.posterior(problem, state)
        tables, covariance = made.tables, made.covariance
        effective, log_dets = made.effective, list(made.log_dets)
    else:
        unseen = gauss_newton.UNSEEN_PRECISION
        linear = gauss_newton.regression(problem, state, rng, unseen, fine=True)
        prior = linear.model.prior
        exact = gauss_newton.solve_as_made(problem, state, linear)
        tables, covariance = tuple(part.table for part in linear.compressed), exact.covariance
        effective = tuple(float(exact.effective[groups].sum()) for groups in prior.groups)
        log_dets = [-inverse_and_log_det(covariance[block, block])[1] for block in prior.blocks]
    return Solution(
        means=tuple(state.values),
        tables=tables,
        covariance=covariance,
        intercept=state.intercept,
        noise=state.noise,
        evidence=state.evidence,
        effective=effective,
        worth=tuple(_worth(problem, state, log_dets)),
        precisions=tuple(known.precision for known in state.terms),
    )


def _worth(problem: Problem, state: State, log_dets: Sequence[float]) -> list[float]:
    """By how much the evidence falls when a term is taken out and nothing else changes."""

    def log_likelihood(values: Sequence[Array]) -> float:
        return (
            statistics.log_likelihood(problem.rows, problem.likelihood, values, state.intercept)
            / state.noise
        )

    worth, whole = [], log_likelihood(state.values)
    for k, (term, known) in enumerate(zip(problem.terms, state.terms, strict=True)):
        without = state.values
        without[k] = np.zeros_like(known.values)
        energy = float(known.precision[term.group_index] @ np.square(known.expansion))
        worth.append(whole - log_likelihood(without) - 0.5 * (energy + log_dets[k]))
    return worth


def switched_off(problem: Problem, found: Solution) -> list[int]:
    """Terms whose precisions have switched them off."""
    variances = [
        float(share @ np.square(mean))
        for share, mean in zip(problem.shares, found.means, strict=True)
    ]
    least = _SPREAD_OFF**2 * sum(variances)
    return [
        k
        for k, (variance, effective) in enumerate(zip(variances, found.effective, strict=True))
        if effective < _EFFECTIVE_OFF or variance < least
    ]
