"""The whole fit, readable as a script: columns and a response in, a ``FittedModel`` out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lanam.core import evidence, gauss_newton, posterior, selection, statistics
from lanam.core.arrays import Array
from lanam.core.evidence import Hyper
from lanam.core.gauss_newton import Problem, State
from lanam.core.knots import Position, place_knots, place_levels, power_of_two_scale
from lanam.core.likelihoods import LIKELIHOODS, Likelihood
from lanam.core.model import ACTIVE, CONSTANT, SWITCHED_OFF, FittedModel, FittedTerm
from lanam.core.networks import Architecture
from lanam.core.options import Options
from lanam.core.posterior import Solution
from lanam.core.statistics import Rows
from lanam.core.terms import LevelTerm, SmoothTerm, Term

#: A level effect has at most this many levels (quantile bins beyond), and a column needs at least so
#: many values to be worth one: fewer are no harder for a network.
_MAX_LEVELS = 300
_MIN_LEVELS = 4

#: Rounds of dropping weak terms and fitting on.
_MAX_ROUNDS = 4

_START_NOISE = 0.1

#: terms that went, by kind and feature, and what they were worth when they did
_Dropped = dict[tuple[str, int], tuple[Term, Array, float]]


def fit(
    columns: Array,
    response: Array,
    weight: Array,
    likelihood: str,
    options: Options,
    random_state: int,
) -> FittedModel:
    """Fit a first-order additive model; of several restarts the one with most evidence is kept."""
    units = _Units.of(response, weight, LIKELIHOODS[likelihood])
    record = _Record(units, options, weight=float(weight.sum()))
    best: FittedModel | None = None
    for seed in np.random.SeedSequence(random_state).spawn(options.n_restarts):
        rng = np.random.default_rng(seed)
        model = _fit_once(columns, weight, units, options, rng, record)
        if best is None or model.log_evidence > best.log_evidence:
            best = model
        if model.stop_reason == "interrupted":
            break
    assert best is not None
    return replace(best, history=tuple(record.history))


@dataclass(frozen=True)
class _Units:
    """The response as the core sees it: a Gaussian one has mean 0 and variance 1."""

    likelihood: Likelihood
    y: Array
    shift: float
    scale: float

    @classmethod
    def of(cls, response: Array, weight: Array, likelihood: Likelihood) -> _Units:
        if not likelihood.learns_noise:
            return cls(likelihood, response, 0.0, 1.0)
        magnitude = power_of_two_scale(response)
        scaled = response / magnitude
        share = weight / weight.sum()
        shift = float(share @ scaled)
        spread = float(np.sqrt(share @ (scaled - shift) ** 2))
        # Rounding of a constant response is not a spread.
        if spread <= 1e-14 * max(abs(shift), 1e-300):
            spread = 1.0
        return cls(likelihood, (scaled - shift) / spread, shift * magnitude, spread * magnitude)


class _Record:
    """The history of a fit, and the newest state for when it is interrupted."""

    def __init__(self, units: _Units, options: Options, weight: float) -> None:
        self.history: list[dict[str, Any]] = []
        self.newest: tuple[Problem, State] | None = None
        self._units, self._options, self._weight = units, options, weight
        self._began = time.perf_counter()

    def own_units(self, log_evidence: float) -> float:
        """Log evidence of the response in its own units."""
        if not self._units.likelihood.learns_noise:
            return log_evidence
        return log_evidence - self._weight * float(np.log(self._units.scale))

    def add(self, stage: str, problem: Problem, state: State) -> None:
        self.newest = (problem, state)
        learns_noise = self._units.likelihood.learns_noise
        entry = {
            "iteration": len(self.history) + 1,
            "stage": stage,
            "log_evidence": self.own_units(state.evidence),
            "noise_std": float(np.sqrt(state.noise)) * self._units.scale if learns_noise else None,
            "n_active": len(problem.terms),
            "effective_parameters": state.n_effective,
            "seconds": time.perf_counter() - self._began,
        }
        self.history.append(entry)
        if self._options.on_iteration is not None:
            self._options.on_iteration(entry)


def _fit_once(
    columns: Array,
    weight: Array,
    units: _Units,
    options: Options,
    rng: np.random.Generator,
    record: _Record,
) -> FittedModel:
    smooth = _smooth_terms(columns, weight, options)
    rows = Rows(
        tuple(term.entries.locate(columns[:, term.feature]) for term in smooth),
        tuple(len(term.entries) for term in smooth),
        units.y,
        weight,
    )
    problem = gauss_newton.make_problem(
        smooth, rows, units.likelihood, options.posterior == "joint", options.evidence_update
    )
    known = tuple(
        gauss_newton.start(term, share, rng)
        for term, share in zip(smooth, problem.shares, strict=True)
    )
    mean = float(weight @ units.y / weight.sum())
    noise = _START_NOISE if units.likelihood.learns_noise else 1.0
    state = State(known, units.likelihood.start(mean), noise)
    dropped: _Dropped = {}
    reason = "converged"
    record.newest = (problem, state)
    try:
        # First stage: a network per column.
        problem, state, converged = _fit_and_select(
            "smooth", problem, state, options, rng, record, dropped
        )
        # Then effects of single values, where the residuals ask for them.
        if options.level_effects:
            wider = _add_levels(problem, state, columns, rng)
            if wider is not None:
                problem, state, converged = _fit_and_select(
                    "levels", *wider, options, rng, record, dropped
                )
        if not converged:
            reason = "max_iter"
    except KeyboardInterrupt:
        problem, state = record.newest
        reason = "interrupted"
    solution = posterior.exact(problem, state, rng)
    return _assemble(columns.shape[1], units, problem, solution, dropped, reason, record)


def _smooth_terms(columns: Array, weight: Array, options: Options) -> list[SmoothTerm]:
    architecture = Architecture(
        1, options.hidden_sizes, options.activation, options.init_scales
    )
    terms = []
    for feature, column in enumerate(columns.T):
        knots = place_knots(column, weight, options.max_knots)
        if knots is not None:
            terms.append(SmoothTerm(feature, knots, architecture, options.prior_groups))
    return terms


def _fit_and_select(
    stage: str,
    problem: Problem,
    state: State,
    options: Options,
    rng: np.random.Generator,
    record: _Record,
    dropped: _Dropped,
) -> tuple[Problem, State, bool]:
    """Fit, drop what does not pay, fit on; ``dropped`` collects what went and what it was worth."""
    before = len(record.history)
    for _ in range(_MAX_ROUNDS):
        left = options.max_iter - (len(record.history) - before)
        state, converged = gauss_newton.converge(
            problem, state, rng, left, options.tol, lambda s: record.add(stage, problem, s)  # noqa: B023
        )
        linear = gauss_newton.regression(problem, state, rng)
        as_made = Hyper(np.zeros(linear.model.prior.n_groups), state.noise)
        tables = [part.table for part in linear.compressed]
        gone, worth = selection.eliminate(
            linear.model.prior,
            evidence.solve(linear.model, as_made, problem.joint),
            tables,
            problem.shares,
        )
        if not gone:
            break
        for k in gone:
            term = problem.terms[k]
            dropped[term.kind, term.feature] = (term, problem.shares[k], worth[k])
        kept = [k for k in range(len(problem.terms)) if k not in gone]
        problem = problem.keep(kept)
        state = replace(state, terms=tuple(state.terms[k] for k in kept))
        record.newest = (problem, state)
    return problem, state, converged


def _add_levels(
    problem: Problem, state: State, columns: Array, rng: np.random.Generator
) -> tuple[Problem, State] | None:
    """Add the level effects that pay, best first, each on what the ones before it left over."""
    rows = problem.rows
    slope, curvature = statistics.slopes(
        rows, problem.likelihood, state.values, state.intercept
    )
    candidates: list[tuple[LevelTerm, Position, Array]] = []
    for feature, column in enumerate(columns.T):
        levels = place_levels(column, rows.weight, _MAX_LEVELS)
        if len(levels.points) >= _MIN_LEVELS:
            term, position = LevelTerm(feature, levels), levels.locate(column)
            weight = statistics.spread(position, curvature, len(levels)) / state.noise
            candidates.append((term, position, weight))
    added: list[tuple[LevelTerm, Position, float]] = []
    while candidates:
        gains = [
            selection.level_gain(
                weight, statistics.spread(position, slope, len(weight)) / state.noise
            )
            for _, position, weight in candidates
        ]
        best = max(range(len(gains)), key=lambda k: gains[k].evidence)
        if gains[best].evidence < selection.LEVEL_WORTH:
            break
        term, position, _ = candidates.pop(best)
        slope = slope - curvature * gains[best].mean[position.index]
        added.append((term, position, gains[best].variance))
    if not added:
        return None
    terms = [term for term, _, _ in added]
    wider = gauss_newton.make_problem(
        (*problem.terms, *terms),
        rows.with_terms([p for _, p, _ in added], [len(t.entries) for t in terms]),
        problem.likelihood,
        problem.joint,
        problem.evidence_update,
    )
    known = tuple(
        replace(gauss_newton.start(term, share, rng), precision=np.array([1.0 / variance]))
        for (term, _, variance), share in zip(added, wider.shares[-len(added) :], strict=True)
    )
    return wider, replace(state, terms=(*state.terms, *known))


def _assemble(
    n_columns: int,
    units: _Units,
    problem: Problem,
    solution: Solution,
    dropped: _Dropped,
    reason: str,
    record: _Record,
) -> FittedModel:
    """The fitted model in the response's own units."""
    scale = units.scale
    active = {
        (term.kind, term.feature): FittedTerm(
            kind=term.kind,
            features=(term.feature,),
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
    smooth = [("smooth", feature) for feature in range(n_columns)]
    levels = [key for key in (*active, *dropped) if key[0] == "level"]
    terms = [active[key] if key in active else _off(key, dropped) for key in (*smooth, *levels)]
    covariance = solution.covariance.copy()
    covariance[-1] *= scale
    covariance[:, -1] *= scale
    return FittedModel(
        likelihood=units.likelihood.name,
        intercept=units.shift + scale * solution.intercept,
        terms=tuple(terms),
        covariance=covariance,
        noise_variance=solution.noise * scale**2 if units.likelihood.learns_noise else 0.0,
        log_evidence=record.own_units(solution.evidence),
        history=(),
        converged=reason == "converged",
        stop_reason=reason,
    )


def _off(key: tuple[str, int], dropped: _Dropped) -> FittedTerm:
    """A term that does not contribute: dropped, or of a constant column."""
    kind, feature = key
    nothing = np.empty(0)
    if key not in dropped:
        return FittedTerm(
            kind, (feature,), None, nothing, nothing, np.empty((0, 0)), CONSTANT, 0.0, 0.0, nothing
        )
    term, share, worth = dropped[key]
    return FittedTerm(
        kind=kind,
        features=(feature,),
        entries=term.entries,
        share=share,
        mean=np.zeros(len(share)),
        table=np.empty((len(share), 0)),
        status=SWITCHED_OFF,
        effective_parameters=0.0,
        evidence=worth,
        precision=nothing,
    )
