"""Terms on their rows, and the state of a fit (method.md 2).

A ``Problem`` is constant while its terms are fitted, a ``State`` holds their estimates, and a
``Regression`` is one linearisation: all terms compressed, and the Bayesian regression on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lanam.core.arrays import Array, IntArray, Intercept, Rng
from lanam.core.inference import evidence
from lanam.core.inference.evidence import (
    Estimate,
    HighCardinality,
    Hyper,
    LinearModel,
    Posterior,
    Update,
)
from lanam.core.inference.prior import Prior, RareLevels
from lanam.core.likelihoods import Likelihood
from lanam.core.rows import cross_tables, quadratics
from lanam.core.rows.located import AnyRows, StreamedRows
from lanam.core.rows.quadratics import Quadratic
from lanam.core.rows.statistics import Around, evaluate
from lanam.core.terms.linearise import Compressed, compress, initial_precision, tangent
from lanam.core.terms.term import LevelTerm, Term

#: Initial prior variance of a term, in units of the response's (on the link scale). Small, so that few
#: directions are visible at first: the evidence raises it as needed.
_START_VARIANCE = 0.005

#: The largest factor by which a group's prior variance may rise. More is never needed to fit a standardised
#: response; it only lets terms that are functions of each other cancel at huge values.
_LARGEST_RISE = 2e4

#: Precision added to every entry for the final posterior (in units of the response), so that the prior
#: variance where there is no data is kept to 2% of the response's spread.
UNSEEN_PRECISION = 0.25

#: A level with fewer rows than this does not determine the variance that all levels share.
_RARE = 3.0
#: Unless such levels hold more of the rows than this: of many, no single one matters.
_RARE_MASS = 0.1

#: While hyperparameters are tuned, the levels of a term are integrated out if there are at least this many.
_MANY_LEVELS = 64

#: The information of the data on a group for which tables are made at least.
_HEADROOM = 1.0

#: The weight of a grid's entry relative to a single column's: there are many more.
_GRID_ENTRY = 0.2


@dataclass(frozen=True)
class TermState:
    """A term's prior precisions and posterior mean at the entries."""

    expansion: Array
    jacobian: Array
    precision: Array
    smallest_precision: Array
    values: Array
    basis: Array | None = None

    @classmethod
    def at_zero(
        cls, term: Term, expansion: Array, data_mass: Array, n_outputs: int = 1
    ) -> TermState:
        """A term at zero, its network linearised at given parameters."""
        jacobian = tangent(term, expansion, data_mass)
        values = np.zeros(len(data_mass) if n_outputs == 1 else (len(data_mass), n_outputs))
        none = np.empty(0)
        return cls(expansion, jacobian, none, none, values).restarted(term, data_mass)

    def restarted(self, term: Term, data_mass: Array) -> TermState:
        """The term at zero and its initial precisions again, with the same features."""
        precision = initial_precision(term, self.jacobian, data_mass, _START_VARIANCE)
        zero = np.zeros_like(self.values)
        return TermState(self.expansion, self.jacobian, precision, precision / _LARGEST_RISE, zero)


@dataclass(frozen=True)
class State:
    """The estimates of all terms; ``objective`` is that of tuning (``evidence.py``).

    ``quadratic`` is the log-likelihood's expansion around it, if it was computed.
    """

    terms: tuple[TermState, ...]
    intercept: Intercept
    noise: float
    evidence: float = -np.inf
    n_effective: float = 0.0
    objective: float = -np.inf
    quadratic: Quadratic | None = None
    #: the likelihood with its own parameters as estimated; None for the problem's
    likelihood: Likelihood | None = None

    @property
    def values(self) -> list[Array]:
        """Each term's posterior mean at its entries."""
        return [term.values for term in self.terms]

    @property
    def width(self) -> int:
        """Number of coordinates of all outputs of the terms that were compressed."""
        return sum(
            term.basis.shape[1] * math.prod(term.values.shape[1:])
            for term in self.terms
            if term.basis is not None
        )

    def keep(self, kept: Sequence[int]) -> State:
        """The state of some of the terms."""
        return replace(self, terms=tuple(self.terms[k] for k in kept), quadratic=None)


@dataclass(frozen=True)
class Problem:
    """A set of terms to fit to rows, with a joint or block-diagonal posterior."""

    terms: tuple[Term, ...]
    rows: AnyRows
    #: proportion of the data's weight at each term's entries
    data_mass: tuple[Array, ...]
    likelihood: Likelihood
    joint: bool
    update: Update
    #: the log-likelihood if it is quadratic
    exact: Quadratic | None = None
    #: limit of cross-tables in bytes
    memory: float = quadratics.CROSS_TABLE_BYTES
    #: the largest rise of a log prior variance before terms are compressed again
    reach: float = np.inf
    #: the number of columns among which terms are selected
    n_columns: int = 0

    @classmethod
    def of(
        cls,
        terms: Sequence[Term],
        rows: AnyRows,
        likelihood: Likelihood,
        joint: bool = True,
        update: Update = evidence.mackay,
        memory: float = quadratics.CROSS_TABLE_BYTES,
        on_decision: Callable[[int], None] = lambda n_entries: None,
        n_columns: int | None = None,
    ) -> Problem:
        """Sum the weights at the entries and, if it is quadratic, the likelihood.

        ``on_decision`` is called with the number of entries (``weights_and_quadratic``). ``n_columns`` are
        the terms' columns, unless some were dropped before.
        """
        weights, null, exact = quadratics.weights_and_quadratic(
            rows, likelihood, memory, on_decision
        )
        if isinstance(rows, StreamedRows):
            rows = replace(rows, null=null)
        data_mass = tuple(weight / rows.count for weight in weights)
        if n_columns is None:
            n_columns = len({feature for term in terms for feature in term.features})
        settings = (likelihood, joint, update, exact, memory)
        return cls(tuple(terms), rows, data_mass, *settings, n_columns=n_columns)

    def with_terms(
        self,
        terms: Sequence[Term],
        rows: AnyRows,
        on_decision: Callable[[int], None] = lambda n_entries: None,
    ) -> Problem:
        """The problem with other terms or rows, and new sums."""
        settings = (self.likelihood, self.joint, self.update, self.memory)
        return Problem.of(terms, rows, *settings, on_decision, self.n_columns)

    def keep(self, kept: Sequence[int]) -> Problem:
        """The problem with some of the terms."""
        return replace(
            self,
            terms=tuple(self.terms[k] for k in kept),
            rows=self.rows.keep_terms(kept),
            data_mass=tuple(self.data_mass[k] for k in kept),
            exact=None if self.exact is None else self.exact.keep_terms(kept),
        )

    def initial_term(self, term: int, rng: Rng | None) -> TermState:
        """One of the terms at zero, its network at random parameters."""
        expansion = self.terms[term].initial(rng)
        n_outputs = self.likelihood.n_outputs
        return TermState.at_zero(self.terms[term], expansion, self.data_mass[term], n_outputs)

    def quadratic(self, state: State) -> Quadratic:
        """The quadratic expansion of the log-likelihood around a state, cached if possible."""
        if self.exact is not None:
            return self.exact
        if state.quadratic is not None and state.quadratic.is_around(state.values):
            return state.quadratic
        return self.expand(state)

    def expand(self, state: State) -> Quadratic:
        """A new quadratic expansion of the log-likelihood around a state."""
        if self.in_tables:
            return cross_tables.summed(self.rows, self.around(state), self._seen)[0]
        return quadratics.row_quadratic(self.rows, self.around(state))

    def solved(self, state: State) -> tuple[Regression, Posterior]:
        """The regression at a state and its posterior, many levels integrated out; the latest is kept."""
        if not (self._latest and self._latest[0][0] is state):
            linear = Regression.of(self, state, integrated=self.many_levels)
            self._latest[:] = [(state, linear, linear.solve())]
        _, linear, posterior = self._latest[0]
        return linear, posterior

    @cached_property
    def _latest(self) -> list[tuple[State, Regression, Posterior]]:
        """At most one, for those that ask one after another."""
        return []

    def around(self, state: State) -> Around:
        """The point of expansion at a state's predictions."""
        return Around(self.likelihood_at(state), tuple(state.values), state.intercept)

    def likelihood_at(self, state: State) -> Likelihood:
        """The likelihood with the parameters that a state has for it."""
        return state.likelihood or self.likelihood

    @cached_property
    def _seen(self) -> tuple[IntArray, ...]:
        """Each term's entries with data."""
        return tuple(np.flatnonzero(mass) for mass in self.data_mass)

    @cached_property
    def in_tables(self) -> bool:
        """Whether expansions are cross-tables, which many passes can share."""
        n_entries = sum(map(len, self._seen)) + 1
        return quadratics.tables_pay(self.likelihood, len(self.rows), n_entries, self.memory)

    @property
    def n_rows(self) -> float | None:
        """Total weight of the rows; None for likelihoods without noise."""
        return None if self.likelihood.noise_bounds is None else self.rows.count

    def at_noise(self, value: float, noise: float) -> float:
        """A log-likelihood at unit noise converted to another noise."""
        if self.n_rows is None:  # of a quasi-likelihood, if its noise is not one
            return value / noise
        return evidence.at_noise(value, self.n_rows, noise)

    @property
    def high_cardinality(self) -> int | None:
        """The index of the high-cardinality term, if there is one."""
        wide = (
            k for k, t in enumerate(self.terms) if isinstance(t, LevelTerm) and t.high_cardinality
        )
        return next(wide, None)

    @property
    def many_levels(self) -> int | None:
        """The term of most levels, if they are many: they can be integrated out in a joint posterior.

        The cost is then not cubic in the levels. With coordinates they are centred: their mean is the
        intercept's, which tuning counts here as one of their many degrees of freedom.
        """
        if self.high_cardinality is not None or not self.joint:
            return self.high_cardinality
        sizes = {k: len(t.entries) for k, t in enumerate(self.terms) if isinstance(t, LevelTerm)}
        widest = max(sizes, key=sizes.__getitem__, default=None)
        enough = widest is not None and sizes[widest] * self.likelihood.n_outputs >= _MANY_LEVELS
        return widest if enough else None


def add_terms(
    problem: Problem,
    state: State,
    terms: Sequence[Term],
    on_decision: Callable[[int], None] = lambda n_entries: None,
    rng: Rng | None = None,
) -> tuple[Problem, State]:
    """The problem with further terms, which start at zero; the others keep their state."""
    rows = problem.rows.with_terms(terms)
    wider = problem.with_terms((*problem.terms, *terms), rows, on_decision)
    fresh = [wider.initial_term(k, rng) for k in range(len(problem.terms), len(wider.terms))]
    return wider, replace(state, terms=(*state.terms, *fresh))


@dataclass(frozen=True)
class Regression:
    """The regression of a problem at a state's hyperparameters."""

    problem: Problem
    state: State
    compressed: tuple[Compressed, ...]
    model: LinearModel
    #: the state's hyperparameters, relative to those that the tables are made for
    start: Hyper
    #: the term whose levels are integrated out, if there is one
    integrated: int | None
    #: whether directions that it would not do without in the end were left out
    coarse: bool = False

    @classmethod
    def of(
        cls,
        problem: Problem,
        state: State,
        unseen_precision: float = 0.0,
        *,
        integrated: int | None = None,
    ) -> Regression:
        """Compress all terms at the state's hyperparameters and sum the regression over the rows.

        The levels of a term ``integrated`` have no coordinates, as those of high cardinality.
        """
        quadratic = problem.quadratic(state)
        integrated = problem.high_cardinality if integrated is None else integrated
        compressed = _compressed(problem, state, quadratic, unseen_precision)
        compressed = _without_coordinates(compressed, integrated)
        model = _linear_model(problem, state, quadratic, compressed, integrated)
        start = Hyper(np.zeros(model.prior.n_groups), state.noise)
        return cls(problem, state, compressed, model, start, integrated)

    @classmethod
    def in_pass(
        cls, problem: Problem, state: State, affordable: float, headroom: bool
    ) -> Regression:
        """The same for tuning, coarse with more than the ``affordable`` coordinates.

        So are terms without a basis, whose prior has not been tuned yet. With ``headroom`` variances can
        grow from next to nothing. Where a term has many levels they are integrated out.
        """
        quadratic, integrated = problem.quadratic(state), problem.many_levels
        made = _with_headroom(problem, state, quadratic) if headroom else state
        compressed = _compressed(problem, made, quadratic, first_coarse=True)
        compressed = _without_coordinates(compressed, integrated)
        # Independent levels are all needed.
        width = sum(int(np.isfinite(part.sizes).sum()) for part in compressed)
        if coarse := width * problem.likelihood.n_outputs > affordable:
            compressed = tuple(part.coarser() for part in compressed)
        model = _linear_model(problem, made, quadratic, compressed, integrated)
        terms = zip(made.terms, state.terms, strict=True)
        rises = [np.log(new.precision / old.precision) for new, old in terms]
        start = Hyper(np.concatenate([np.empty(0), *rises]), state.noise)
        return cls(problem, made, compressed, model, start, integrated, coarse)

    @property
    def tables(self) -> tuple[Array, ...]:
        """Each term's table: its function is the table times its coordinates."""
        return tuple(part.table for part in self.compressed)

    def solve(self) -> Posterior:
        """The posterior at the state's hyperparameters."""
        return evidence.solve(self.model, self.start, self.problem.joint)

    def gains_outside(self, posterior: Posterior) -> dict[int, float]:
        """The log evidence gain of the term that is integrated out, by its index."""
        if (k := self.integrated) is None:
            return {}
        given = self.model, self.start, self.problem.joint, posterior
        return {k: evidence.levels_log_evidence_gain(*given)}

    def effective(self, posterior: Estimate) -> tuple[float, ...]:
        """Each term's effective degrees of freedom."""
        groups = self.model.prior.groups
        return tuple(float(posterior.effective[group].sum()) for group in groups)

    def values(self, posterior: Estimate) -> list[Array]:
        """Each term's posterior mean at its entries."""
        n_outputs, k = self.problem.likelihood.n_outputs, self.integrated
        values = [
            evaluate(table, posterior.mean[block], n_outputs)
            for table, block in zip(self.tables, self.model.prior.blocks, strict=True)
        ]
        levels = self.model.high_cardinality
        if k is not None and levels is not None and posterior.levels is not None:
            # Not centred: the mean of all categories is confounded with the intercept.
            effects = levels.effects(posterior.levels).mean.reshape(n_outputs, -1).T
            effects = effects / np.sqrt(self.state.terms[k].precision[0])
            values[k] = effects[:, 0] if n_outputs == 1 else effects
        return values

    def intercept(self, posterior: Estimate) -> Intercept:
        """The posterior mean of the intercept, or of several outputs' intercepts."""
        n_outputs = self.problem.likelihood.n_outputs
        return float(posterior.mean[-1]) if n_outputs == 1 else posterior.mean[-n_outputs:]


def _compressed(
    problem: Problem,
    state: State,
    quadratic: Quadratic,
    unseen_precision: float = 0.0,
    first_coarse: bool = False,
) -> tuple[Compressed, ...]:
    """All terms in few coordinates; with ``first_coarse`` those without a basis in fewer."""
    return tuple(
        compress(
            term,
            estimate.jacobian,
            estimate.precision,
            curvature / state.noise + unseen_precision * (_GRID_ENTRY if term.joint else 1.0),
            dropped=estimate.basis is not None and estimate.basis.shape[1] == 0,
            coarse=first_coarse and estimate.basis is None,
        )
        for term, estimate, curvature in zip(
            problem.terms, state.terms, quadratic.entry_curvature(), strict=True
        )
    )


def _without_coordinates(
    compressed: tuple[Compressed, ...], integrated: int | None
) -> tuple[Compressed, ...]:
    """The same where one term's levels are integrated out."""
    if integrated is None:
        return compressed
    n_entries = len(compressed[integrated].table)
    none = Compressed.whole(np.empty((n_entries, 0)), np.empty((0, 0)))
    return (*compressed[:integrated], none, *compressed[integrated + 1 :])


def _with_headroom(problem: Problem, state: State, quadratic: Quadratic) -> State:
    """The state with variances of at least a visible size, for tables in which they can grow again."""

    def raised(term: Term, estimate: TermState, curvature: Array) -> TermState:
        if len(estimate.precision) == 1:
            return estimate
        seen = (curvature / state.noise) @ np.square(estimate.jacobian)
        information = np.bincount(term.group_index, weights=seen) / estimate.precision
        factor = np.clip(information / _HEADROOM, np.finfo(float).tiny, 1.0)
        return replace(
            estimate, precision=np.maximum(estimate.precision * factor, estimate.smallest_precision)
        )

    terms = zip(problem.terms, state.terms, quadratic.entry_curvature(), strict=True)
    return replace(state, terms=tuple(raised(*one) for one in terms))


def _linear_model(
    problem: Problem,
    state: State,
    quadratic: Quadratic,
    compressed: tuple[Compressed, ...],
    integrated: int | None,
) -> LinearModel:
    """The quadratic in the coordinates of compressed terms, with their prior."""
    tables, n_outputs = [part.table for part in compressed], problem.likelihood.n_outputs
    gram, target = quadratic.normal_equations(tables)
    prior = Prior(
        tuple(table.shape[1] * n_outputs for table in tables),
        tuple(part.group_grams for part in compressed),
        n_outputs=n_outputs,
    )
    prior = _with_rare_levels(problem, _with_exempt(problem, prior), integrated)
    bounds = [np.log(term.precision / term.smallest_precision) for term in state.terms]
    bound = np.minimum(np.concatenate([np.empty(0), *bounds]), problem.reach)
    model = LinearModel(
        gram,
        target,
        quadratic.constant,
        prior,
        problem.n_rows,
        bound,
        problem.likelihood.noise_bounds or (0.0, np.inf),
        offset=problem.rows.log_precision,
        tuning_penalty=evidence.tuning_penalty(problem.n_columns, problem.rows.count),
    )
    if (k := integrated) is None:
        return model
    cross, pull = quadratic.level_equations(k, tables)
    scale, group = float(1.0 / np.sqrt(state.terms[k].precision[0])), prior.groups[k].start
    rare = _rare_levels(problem.terms[k], problem.data_mass[k], problem.rows.count)
    if rare is not None:
        starts = len(problem.data_mass[k]) * np.arange(n_outputs)[:, None]
        rare = RareLevels(starts + rare.others, starts + rare.rare)
    levels = HighCardinality.of_outputs(scale, cross, pull, group, rare)
    return replace(model, high_cardinality=levels)


def _rare_levels(term: Term, data_mass: Array, n_rows: float) -> RareLevels | None:
    """The levels of few rows of a level term, if its other levels hold nearly all rows."""
    enough = data_mass * n_rows > _RARE * (1.0 - 1e-9)
    rare = (data_mass > 0.0) & ~enough
    if not isinstance(term, LevelTerm) or not rare.any() or data_mass[rare].sum() > _RARE_MASS:
        return None
    return RareLevels(np.flatnonzero(enough)[None], np.flatnonzero(rare)[None])


def _with_exempt(problem: Problem, prior: Prior) -> Prior:
    """The prior without a tuning penalty for curves by group, of which every group is a repetition."""
    grouped = [getattr(term, "grouped", False) for term in problem.terms]
    groups = [range(part.start, part.stop) for k, part in enumerate(prior.groups) if grouped[k]]
    return replace(prior, exempt=frozenset(g for part in groups for g in part))


def _with_rare_levels(problem: Problem, prior: Prior, integrated: int | None) -> Prior:
    """The prior with the rare levels of terms that have coordinates, one per level and output."""
    found: dict[int, RareLevels] = {}
    for k, (term, mass) in enumerate(zip(problem.terms, problem.data_mass, strict=True)):
        rare = _rare_levels(term, mass, problem.rows.count)
        if rare is not None and k != integrated:
            starts = np.arange(prior.blocks[k].start, prior.blocks[k].stop, len(mass))[:, None]
            found[prior.groups[k].start] = RareLevels(starts + rare.others, starts + rare.rare)
    return replace(prior, rare=found)
