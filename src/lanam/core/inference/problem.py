"""A set of terms on its rows, and what is known of them: values that solvers work on (method.md 2).

``Problem`` is what stays the same while terms are fitted, ``State`` what they have learned, and a
``Regression`` is one linearisation: every term compressed, and the Bayesian regression on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lanam.core.arrays import Array, IntArray, Intercept, Rng
from lanam.core.inference import evidence
from lanam.core.inference.evidence import (
    Hyper,
    LinearModel,
    Posterior,
    Update,
    WideLevels,
    mackay,
)
from lanam.core.inference.prior import Prior
from lanam.core.likelihoods import Likelihood
from lanam.core.rows import cross_tables, quadratics
from lanam.core.rows.located import AnyRows, StreamedRows
from lanam.core.rows.quadratics import Quadratic
from lanam.core.rows.statistics import Around, evaluate
from lanam.core.terms.linearise import Compressed, compress, initial_precision, tangent
from lanam.core.terms.term import LevelTerm, Term

#: Prior variance a term starts with, in units of the response's (on the link scale). Small, so that few
#: directions are visible at first: the evidence raises what is needed.
_START_VARIANCE = 0.005

#: A group's prior variance may rise to this many times its start. More is never needed to fit a
#: standardised response; it only lets terms that are functions of each other cancel at huge values.
_LARGEST_RISE = 2e4

#: When the final posterior is made, every entry counts as seen with this precision (in units of the
#: response), so that the prior's variance where there is no data is kept to 2% of the response's spread.
UNSEEN_PRECISION = 0.25

#: An entry of a pair's grid counts this much of an entry of a single column: there are many more.
_GRID_ENTRY = 0.2


@dataclass(frozen=True)
class TermState:
    """What a term has learned: its prior precisions and posterior mean at the entries."""

    expansion: Array
    jacobian: Array
    precision: Array
    smallest_precision: Array
    values: Array
    basis: Array | None = None

    @classmethod
    def start_at(cls, term: Term, expansion: Array, share: Array, n_outputs: int = 1) -> TermState:
        """Before any data was seen, the term's network expanded at given parameters."""
        jacobian = tangent(term, expansion, share)
        precision = initial_precision(term, jacobian, share, _START_VARIANCE)
        values = np.zeros(len(share) if n_outputs == 1 else (len(share), n_outputs))
        return cls(expansion, jacobian, precision, precision / _LARGEST_RISE, values)


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
class Problem:
    """What stays the same while a set of terms is fitted.

    ``joint`` is whether terms' posteriors know of each other, ``update`` how hyperparameters step.
    """

    terms: tuple[Term, ...]
    rows: AnyRows
    shares: tuple[Array, ...]
    likelihood: Likelihood
    joint: bool
    update: Update
    #: the log-likelihood as a quadratic where it is one, made once
    exact: Quadratic | None = None
    #: bytes that cross-tables may have
    memory: float = quadratics.CROSS_TABLE_BYTES
    #: how far a log prior variance may rise before terms are compressed anew
    reach: float = np.inf

    @classmethod
    def of(
        cls,
        terms: Sequence[Term],
        rows: AnyRows,
        likelihood: Likelihood,
        joint: bool = True,
        update: Update = mackay,
        memory: float = quadratics.CROSS_TABLE_BYTES,
        on_decision: Callable[[int], None] = lambda n_entries: None,
    ) -> Problem:
        """Weigh the entries and, where the likelihood is quadratic, sum it once.

        ``on_decision`` is told by how many entries it was decided how (``weights_and_quadratic``).
        """
        weights, null, exact = quadratics.weights_and_quadratic(
            rows, likelihood, memory, on_decision
        )
        if isinstance(rows, StreamedRows):
            rows = replace(rows, null=null)
        shares = tuple(own / rows.count for own in weights)
        return cls(tuple(terms), rows, shares, likelihood, joint, update, exact, memory)

    def with_terms(
        self,
        terms: Sequence[Term],
        rows: AnyRows,
        on_decision: Callable[[int], None] = lambda n_entries: None,
    ) -> Problem:
        """The same with other terms or other rows: all sums are made anew."""
        settings = (self.likelihood, self.joint, self.update, self.memory)
        return Problem.of(terms, rows, *settings, on_decision)

    def keep(self, kept: Sequence[int]) -> Problem:
        """The same problem with some of the terms."""
        return replace(
            self,
            terms=tuple(self.terms[k] for k in kept),
            rows=self.rows.keep_terms(kept),
            shares=tuple(self.shares[k] for k in kept),
            exact=None if self.exact is None else self.exact.keep_terms(kept),
        )

    def start(self, term: int, rng: Rng) -> TermState:
        """One of the terms before any data was seen."""
        own, share = self.terms[term], self.shares[term]
        return TermState.start_at(own, own.initial(rng), share, self.likelihood.n_outputs)

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
        if self.in_tables:
            return cross_tables.summed(self.rows, self.around(state), self._seen)[0]
        return quadratics.row_quadratic(self.rows, self.around(state))

    def around(self, state: State) -> Around:
        """What a state predicts, where the log-likelihood has slopes and curvature."""
        return Around(self.likelihood, tuple(state.values), state.intercept)

    @cached_property
    def _seen(self) -> tuple[IntArray, ...]:
        """Each term's entries that rows read."""
        return tuple(np.flatnonzero(share) for share in self.shares)

    @cached_property
    def in_tables(self) -> bool:
        """Whether expansions are summed into cross-tables, so that many passes make use of each."""
        n_entries = sum(map(len, self._seen)) + 1
        return quadratics.tables_pay(self.likelihood, len(self.rows), n_entries, self.memory)

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


def add_terms(
    problem: Problem,
    state: State,
    terms: Sequence[Term],
    rng: Rng,
    on_decision: Callable[[int], None] = lambda n_entries: None,
) -> tuple[Problem, State]:
    """The problem with more terms, at their start; what is known of the others stays as it is."""
    rows = problem.rows.with_terms(terms)
    wider = problem.with_terms((*problem.terms, *terms), rows, on_decision)
    fresh = [wider.start(k, rng) for k in range(len(problem.terms), len(wider.terms))]
    return wider, replace(state, terms=(*state.terms, *fresh))


@dataclass(frozen=True)
class Regression:
    """The regression of a problem at a state's hyperparameters."""

    problem: Problem
    state: State
    compressed: tuple[Compressed, ...]
    model: LinearModel

    @classmethod
    def of(
        cls,
        problem: Problem,
        state: State,
        rng: Rng,
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
                curvature / state.noise + unseen_precision * (_GRID_ENTRY if term.joint else 1.0),
                rng,
                known.basis,
                coarse=known.basis is None and not fine,
            )
            for term, known, curvature in zip(
                problem.terms, state.terms, quadratic.entry_curvature(), strict=True
            )
        )
        return cls(problem, state, compressed, _linear_model(problem, state, quadratic, compressed))

    @property
    def tables(self) -> tuple[Array, ...]:
        """Every term's table: its function is the table times its coordinates."""
        return tuple(part.table for part in self.compressed)

    @property
    def as_made(self) -> Hyper:
        """The hyperparameters its tables were made with."""
        return Hyper(np.zeros(self.model.prior.n_groups), self.state.noise)

    def solve(self) -> Posterior:
        """The posterior at the hyperparameters its tables were made with."""
        return evidence.solve(self.model, self.as_made, self.problem.joint)

    def worth_outside(self, posterior: Posterior) -> dict[int, float]:
        """What the wide term is worth, by its number, where there is one."""
        if self.problem.wide is None:
            return {}
        joint = self.problem.joint
        return {
            self.problem.wide: evidence.levels_worth(self.model, self.as_made, joint, posterior)
        }

    def effective(self, posterior: Posterior) -> tuple[float, ...]:
        """Every term's effective parameters."""
        return tuple(float(posterior.effective[own].sum()) for own in self.model.prior.groups)

    def values(self, posterior: Posterior) -> list[Array]:
        """Every term's posterior mean at its entries."""
        n_outputs, wide = self.problem.likelihood.n_outputs, self.problem.wide
        values = [
            evaluate(table, posterior.mean[block], n_outputs)
            for table, block in zip(self.tables, self.model.prior.blocks, strict=True)
        ]
        if wide is not None and posterior.levels is not None:
            # Not centred: what is common to all levels is between them and the intercept.
            values[wide] = posterior.levels.mean / np.sqrt(self.state.terms[wide].precision[0])
        return values

    def intercept(self, posterior: Posterior) -> Intercept:
        """The intercept among the coordinates of all terms, or those of several outputs."""
        n_outputs = self.problem.likelihood.n_outputs
        return float(posterior.mean[-1]) if n_outputs == 1 else posterior.mean[-n_outputs:]


def _linear_model(
    problem: Problem, state: State, quadratic: Quadratic, compressed: tuple[Compressed, ...]
) -> LinearModel:
    """The quadratic in the coordinates of compressed terms, with their prior."""
    tables, n_outputs = [part.table for part in compressed], problem.likelihood.n_outputs
    gram, target = quadratic.normal_equations(tables)
    prior = Prior(
        tuple(table.shape[1] * n_outputs for table in tables),
        tuple(_repeated(part.group_grams, n_outputs) for part in compressed),
    )
    bounds = [np.log(known.precision / known.smallest_precision) for known in state.terms]
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
    )
    if (k := problem.wide) is None:
        return model
    cross, pull = quadratic.level_equations(k, tables)
    scale = float(1.0 / np.sqrt(state.terms[k].precision[0]))
    own = WideLevels(scale**2 * cross[:, -1], scale * cross, scale * pull, prior.groups[k].start)
    return replace(model, wide=own)


def _repeated(group_grams: Array, n_outputs: int) -> Array:
    """Gram matrices of several outputs' coordinates, which share their precisions."""
    if n_outputs == 1 or len(group_grams) == 1:
        return group_grams
    return np.asarray(np.kron(np.eye(n_outputs), group_grams))
