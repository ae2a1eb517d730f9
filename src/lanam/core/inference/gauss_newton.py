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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lanam.core.arrays import Array, Intercept
from lanam.core.inference import evidence
from lanam.core.inference.evidence import Hyper, LinearModel, Posterior, WideLevels
from lanam.core.inference.prior import Prior
from lanam.core.likelihoods import Likelihood
from lanam.core.rows import cross_tables, quadratics
from lanam.core.rows.cross_tables import TableQuadratic
from lanam.core.rows.located import AnyRows, StreamedRows
from lanam.core.rows.quadratics import Quadratic
from lanam.core.rows.statistics import evaluate
from lanam.core.terms.linearise import Compressed, compress, initial_precision, tangent
from lanam.core.terms.term import LevelTerm, Term

#: Prior variance a term starts with, in units of the response's (on the link scale). Small, so that few
#: directions are visible at first: the evidence raises what is needed.
_START_VARIANCE = 0.005

#: A group's prior variance may rise to this many times its start. More is never needed to fit a
#: standardised response; it only lets terms that are functions of each other cancel at huge values.
_LARGEST_RISE = 2e4

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

#: When the final posterior is made, every entry counts as seen with this precision (in units of the
#: response), so that the prior's variance where there is no data is kept to 2% of the response's spread.
UNSEEN_PRECISION = 0.25

#: An entry of a pair's grid counts this much of an entry of a single column: there are many more.
_GRID_ENTRY = 0.2


@dataclass(frozen=True)
class Problem:
    """What stays the same while a set of terms is fitted."""

    terms: tuple[Term, ...]
    rows: AnyRows
    shares: tuple[Array, ...]
    likelihood: Likelihood
    joint: bool
    evidence_update: str
    #: the log-likelihood as a quadratic where it is one, made once
    exact: Quadratic | None = None
    #: bytes that cross-tables may have
    memory: float = quadratics.CROSS_TABLE_BYTES
    #: how far a log prior variance may rise before terms are compressed anew
    reach: float = np.inf

    def quadratic(self, state: State) -> Quadratic:
        """The log-likelihood as a quadratic around a state."""
        if self.exact is not None:
            return self.exact
        known = state.quadratic
        if known is not None and known.is_around(state.values):
            return known
        return self.expand(state)

    def expand(self, state: State) -> Quadratic:
        """The log-likelihood as a quadratic around a state, made anew."""
        point = (self.rows, self.likelihood, state.values, state.intercept)
        if self.in_tables:
            seen = tuple(np.flatnonzero(share) for share in self.shares)
            return cross_tables.table_quadratic(*point, seen)
        return quadratics.row_quadratic(*point)

    @cached_property
    def in_tables(self) -> bool:
        """Whether expansions are summed into cross-tables, so that many passes make use of each."""
        n_entries = sum(int(np.count_nonzero(share)) for share in self.shares) + 1
        pay = quadratics.sums_pay(len(self.rows), n_entries, self.memory, exact=False)
        return pay and self.likelihood.n_outputs == 1

    @property
    def n_rows(self) -> float | None:
        """How many observations there are where there is a noise to learn."""
        return None if self.likelihood.noise_bounds is None else self.rows.count

    def at_noise(self, value: float, noise: float) -> float:
        """A log-likelihood at unit noise as that at another."""
        return value if self.n_rows is None else evidence.at_noise(value, self.n_rows, noise)

    @property
    def wide(self) -> int | None:
        """The wide term, if there is one."""
        wide = (isinstance(term, LevelTerm) and term.wide for term in self.terms)
        return next((k for k, is_wide in enumerate(wide) if is_wide), None)

    def remade(self, terms: Sequence[Term], rows: AnyRows) -> Problem:
        """The same with other terms or other rows: all sums are made anew."""
        return make_problem(
            terms, rows, self.likelihood, self.joint, self.evidence_update, self.memory
        )

    def keep(self, kept: Sequence[int]) -> Problem:
        """The same problem with some of the terms."""
        return replace(
            self,
            terms=tuple(self.terms[k] for k in kept),
            rows=self.rows.keep_terms(kept),
            shares=tuple(self.shares[k] for k in kept),
            exact=None if self.exact is None else self.exact.keep_terms(kept),
        )


@dataclass(frozen=True)
class TermState:
    """What a term has learned: its prior precisions and posterior mean at the entries."""

    expansion: Array
    jacobian: Array
    precision: Array
    smallest_precision: Array
    values: Array
    basis: Array | None = None


@dataclass(frozen=True)
class State:
    """What all terms have learned; ``objective`` is what training climbs (``evidence.py``).

    ``quadratic`` is the log-likelihood around it, if that was made on the way here.
    """

    terms: tuple[TermState, ...]
    intercept: Intercept
    noise: float
    evidence: float = -np.inf
    n_effective: float = 0.0
    objective: float = -np.inf
    quadratic: Quadratic | None = None

    @property
    def values(self) -> list[Array]:
        """Every term's posterior mean at its entries."""
        return [term.values for term in self.terms]

    def keep(self, kept: Sequence[int]) -> State:
        """The same state with some of the terms."""
        return replace(self, terms=tuple(self.terms[k] for k in kept), quadratic=None)


@dataclass(frozen=True)
class Regression:
    """One linearisation: every term compressed, and the regression on all of them."""

    compressed: tuple[Compressed, ...]
    model: LinearModel


def start(term: Term, share: Array, rng: np.random.Generator, n_outputs: int = 1) -> TermState:
    """A term before any data was seen."""
    return start_at(term, term.initial(rng), share, n_outputs)


def start_at(term: Term, expansion: Array, share: Array, n_outputs: int = 1) -> TermState:
    """A term before any data was seen, its network expanded at given parameters."""
    jacobian = tangent(term, expansion, share)
    precision = initial_precision(term, jacobian, share, _START_VARIANCE)
    values = np.zeros(len(share) if n_outputs == 1 else (len(share), n_outputs))
    return TermState(expansion, jacobian, precision, precision / _LARGEST_RISE, values)


def make_problem(
    terms: Sequence[Term],
    rows: AnyRows,
    likelihood: Likelihood,
    joint: bool,
    evidence_update: str,
    memory: float = quadratics.CROSS_TABLE_BYTES,
) -> Problem:
    """Weigh the entries and, where the likelihood is quadratic, sum it once."""
    weights, null, exact = quadratics.weights_and_quadratic(rows, likelihood, memory)
    if isinstance(rows, StreamedRows):
        rows = replace(rows, null=null)
    shares = tuple(own / rows.count for own in weights)
    return Problem(tuple(terms), rows, shares, likelihood, joint, evidence_update, exact, memory)


def widen(
    problem: Problem,
    state: State,
    terms: Sequence[Term],
    rng: np.random.Generator,
) -> tuple[Problem, State]:
    """The problem with more terms, at their start; what is known of the others stays as it is."""
    wider = problem.remade((*problem.terms, *terms), problem.rows.with_terms(terms))
    fresh = tuple(
        start(term, share, rng, problem.likelihood.n_outputs)
        for term, share in zip(terms, wider.shares[len(problem.terms) :], strict=True)
    )
    return wider, replace(state, terms=(*state.terms, *fresh))


def regression(
    problem: Problem,
    state: State,
    rng: np.random.Generator,
    unseen_precision: float = 0.0,
    fine: bool = False,
) -> Regression:
    """Compress all terms at the state's hyperparameters and sum the regression over the rows.

    A term is compressed coarsely at its first look, unless it is to be ``fine``.
    """
    quadratic = problem.quadratic(state)
    compressed = tuple(
        compress(
            term,
            known.jacobian,
            known.precision,
            curvature / state.noise + unseen_precision * _entry_weight(term),
            rng,
            known.basis,
            coarse=known.basis is None and not fine,
        )
        for term, known, curvature in zip(
            problem.terms, state.terms, quadratic.entry_curvature(), strict=True
        )
    )
    gram, target = quadratic.normal_equations([part.table for part in compressed])
    n_outputs = problem.likelihood.n_outputs
    prior = Prior(
        tuple(part.table.shape[1] * n_outputs for part in compressed),
        tuple(_repeated(part.group_grams, n_outputs) for part in compressed),
    )
    bounds = [np.log(known.precision / known.smallest_precision) for known in state.terms]
    bound = np.minimum(np.concatenate([np.empty(0), *bounds]), problem.reach)
    model = LinearModel(gram, target, quadratic.constant, prior, problem.n_rows, bound)
    if problem.likelihood.noise_bounds is not None:
        model = replace(
            model,
            noise_bounds=problem.likelihood.noise_bounds,
            offset=problem.rows.log_precision,
        )
    if problem.wide is not None:
        k, tables = problem.wide, [part.table for part in compressed]
        diagonal, cross, target_of_levels = quadratic.level_equations(k, tables)
        scale = float(1.0 / np.sqrt(state.terms[k].precision[0]))
        wide = WideLevels(
            scale**2 * diagonal, scale * cross, scale * target_of_levels, prior.groups[k].start
        )
        model = replace(model, wide=wide)
    return Regression(compressed, model)


def _repeated(group_grams: Array, n_outputs: int) -> Array:
    """Gram matrices of several outputs' coordinates, which share their precisions."""
    if n_outputs == 1 or len(group_grams) == 1:
        return group_grams
    return np.asarray(np.kron(np.eye(n_outputs), group_grams))


def _entry_weight(term: Term) -> float:
    return _GRID_ENTRY if term.joint else 1.0


def solve_as_made(problem: Problem, state: State, linear: Regression) -> Posterior:
    """The regression's posterior at the hyperparameters its tables were made with."""
    return evidence.solve(linear.model, _as_made(state, linear), problem.joint)


def worth_outside(
    problem: Problem, state: State, linear: Regression, posterior: Posterior
) -> dict[int, float]:
    """What the wide term is worth, by its number, where there is one."""
    if problem.wide is None:
        return {}
    as_made = _as_made(state, linear)
    return {problem.wide: evidence.levels_worth(linear.model, as_made, problem.joint, posterior)}


def settle(problem: Problem, state: State, rng: np.random.Generator) -> State:
    """The state at the posterior mean of its own hyperparameters, with its evidence."""
    linear = regression(problem, state, rng, fine=True)
    posterior = solve_as_made(problem, state, linear)
    return _step(problem, state, linear, _as_made(state, linear), posterior)


def _as_made(state: State, linear: Regression) -> Hyper:
    return Hyper(np.zeros(linear.model.prior.n_groups), state.noise)


def _step(
    problem: Problem, state: State, linear: Regression, hyper: Hyper, posterior: Posterior
) -> State:
    """The state at the posterior mean."""
    prior, n_outputs = linear.model.prior, problem.likelihood.n_outputs
    values = values_of(problem, state, linear, posterior)
    terms = tuple(
        replace(
            known,
            precision=known.precision * np.exp(-hyper.log_rho[groups]),
            values=own,
            basis=None if isinstance(term, LevelTerm) and not term.wide else part.basis,
        )
        for term, known, part, own, groups in zip(
            problem.terms, state.terms, linear.compressed, values, prior.groups, strict=True
        )
    )
    intercept = intercept_of(posterior.mean, n_outputs)
    objective, n_effective = posterior.objective, posterior.n_effective
    return State(terms, intercept, hyper.noise, posterior.evidence, n_effective, objective)


def values_of(
    problem: Problem, state: State, linear: Regression, posterior: Posterior
) -> list[Array]:
    """Every term's posterior mean at its entries."""
    n_outputs = problem.likelihood.n_outputs
    values = [
        evaluate(part.table, posterior.mean[block], n_outputs)
        for part, block in zip(linear.compressed, linear.model.prior.blocks, strict=True)
    ]
    if problem.wide is not None and posterior.levels is not None:
        # Not centred: what is common to all levels is between them and the intercept.
        k = problem.wide
        values[k] = posterior.levels.mean / np.sqrt(state.terms[k].precision[0])
    return values


def intercept_of(mean: Array, n_outputs: int) -> Intercept:
    """The intercept among the coordinates of all terms, or those of several outputs."""
    return float(mean[-1]) if n_outputs == 1 else mean[-n_outputs:]


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


def converge(
    problem: Problem,
    state: State,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    on_pass: Callable[[State], None],
    before: float | None = None,
) -> tuple[State, bool]:
    """Passes until the objective rises by less than ``tol``; returns the best state.

    ``before`` is the evidence of the model that this one extends, if any: then it is also enough when
    a pass brings little of what was gained since. The second value says whether the passes ended so
    within ``max_iter``.
    """
    exact = problem.exact is not None
    if not exact:
        state = replace(state, quadratic=problem.quadratic(state))
        if problem.in_tables:
            return _climb_expansions(problem, state, rng, max_iter, tol, on_pass, before)
    best = replace(state, objective=-np.inf)
    for _ in range(max_iter):
        linear = regression(problem, state, rng)
        steps = _TUNE_STEPS if len(linear.model.target) < _WIDE else _TUNE_STEPS_WIDE
        hyper, posterior = evidence.tune(
            linear.model, state.noise, problem.joint, problem.evidence_update, steps, tol / 5
        )
        after = _step(problem, state, linear, hyper, posterior)
        state = _damped(problem, state, after, posterior.log_likelihood)
        on_pass(state)
        rise = state.objective - best.objective
        # Until a non-Gaussian expansion has settled, its evidence may overstate: keep the newest.
        if rise > 0.0 or not exact:
            best = state
        if abs(rise) < _enough(state, tol, before) or (rise < 0.0 and exact):
            return best, True
    return best, False


def _enough(state: State, tol: float, before: float | None) -> float:
    """A rise that is none."""
    return max(tol, _SLACK * (0.0 if before is None else state.evidence - before))


def _climb_expansions(
    problem: Problem,
    state: State,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    on_pass: Callable[[State], None],
    before: float | None,
) -> tuple[State, bool]:
    """The same where going over the rows is dear: each expansion is climbed as if it were exact.

    Passes over the rows are then as few as those of Newton's method.
    """
    objective, limits = -np.inf, (max_iter, tol)
    for _ in range(max_iter):
        made = problem.quadratic(state)
        assert isinstance(made, TableQuadratic)
        fixed = replace(problem, exact=made, reach=_REACH)
        after, _ = converge(fixed, state, rng, *limits, on_pass, before)
        rise, objective = after.objective - objective, after.objective
        if abs(rise) < _enough(after, tol, before):
            # What it was made around is as good as where it led.
            return replace(after, quadratic=made.moved_to(after.values)), True
        predicted = problem.at_noise(made.of(after.values, after.intercept), after.noise)
        state = _damped(problem, state, after, predicted)
    return state, False
