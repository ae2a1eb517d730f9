"""The interfaces of solvers and curvatures, and the stages that solvers produce.

There are two solvers: ``gauss_newton.py``, the default, and the paper's (``paper/adam.py``). The options
select one (``fit/solvers.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from lanam.core.arrays import Array, Rng
from lanam.core.inference.posterior import Determinant, Functions, Solution
from lanam.core.inference.problem import Problem, State
from lanam.core.inference.selection import Threshold
from lanam.core.terms.term import Term, TermKey


class Curvature(Protocol):
    """An approximation of the log-likelihood's curvature in the parameters."""

    #: Whether it is factored by tensors: this requires one block per term, one precision per tensor and one
    #: output, and no categories that are integrated out.
    factored: ClassVar[bool]

    def solution(self, problem: Problem, state: State, *, quick: bool = False) -> Solution:
        """The posterior of the tuned regression; ``quick``: given the hyperparameters."""

    def functions(self, problem: Problem, state: State) -> Functions:
        """The posterior around trained networks."""

    def determinant(self, problem: Problem, state: State) -> Determinant:
        """The evidence's determinant around trained networks, valid near their precisions."""


@dataclass(frozen=True)
class Dropped:
    """A dropped term, the data's mass at its entries, and its gain and threshold when it was dropped.

    The paper's solver has no thresholds. ``left_out_loss`` is that of its round in the
    leave-one-out log score, if this is why it was dropped.
    """

    term: Term
    data_mass: Array
    log_evidence_gain: float
    threshold: float | None = None
    left_out_loss: float | None = None


@dataclass(frozen=True)
class Stage:
    """The state of a fit: what was fitted, the terms dropped so far, and why it ended."""

    problem: Problem
    state: State
    dropped: tuple[Dropped, ...] = ()
    reason: str = "interrupted"
    #: the log evidence gains that terms had to reach, by ``key_of(term)``
    thresholds: Mapping[TermKey, float] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        """Whether the user interrupted it."""
        return self.reason == "interrupted"

    @property
    def width(self) -> int:
        """Number of coordinates of all terms and outputs."""
        widths = (
            len(term.values) if term.basis is None else term.basis.shape[1]
            for term in self.state.terms
        )
        return sum(widths) * self.problem.likelihood.n_outputs


@dataclass(frozen=True)
class TrainingTask:
    """A problem to fit from a state on; ``name`` labels its records.

    ``before`` is the stage that it extends, and the result of an early interrupt. ``threshold`` is the
    selection criterion if it is not that of single columns.
    """

    name: str
    before: Stage
    problem: Problem
    state: State
    threshold: Callable[[Problem], Threshold] | None = None


#: Called with the name of a task and its state after each pass.
Record = Callable[[str, State], None]


class Solver(Protocol):
    """Trains the terms of a problem and computes their posterior."""

    #: Default scales of the first layer's initial weights: of a column's network, and of a pair's, whose
    #: finest structure is rarely visible in the data.
    init_scales: ClassVar[tuple[float, ...]]
    pair_init_scales: ClassVar[tuple[float, ...]]

    #: Whether it trains networks. There are then no level effects, no gross errors, no noise of missing
    #: values, and homoscedastic noise.
    trained: ClassVar[bool]
    #: Whether rows must be in memory.
    in_memory: ClassVar[bool]

    def initial_state(self, problem: Problem, rng: Rng) -> State:
        """The state before training."""

    def train(self, task: TrainingTask, rng: Rng, record: Record) -> Stage:
        """Fit, and drop terms that the evidence does not support."""

    def select(self, stage: Stage) -> Stage:
        """Drop terms without an effect that training has left, at the end of a fit."""

    def solution(self, problem: Problem, state: State, *, quick: bool = False) -> Solution:
        """The posterior at a state; ``quick`` as for a curvature."""
