"""What fits a set of terms: the interfaces of solvers and of curvature, and where their work ends.

There are two: ``gauss_newton.py``, the default, and the paper's (``paper/adam.py``). Which one is used is
decided once, by the options (``fit/solvers.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from lanam.core.arrays import Array, Rng
from lanam.core.inference.posterior import Determinant, Functions, Solution
from lanam.core.inference.problem import Problem, State
from lanam.core.inference.selection import Needed
from lanam.core.terms.term import Term


class Curvature(Protocol):
    """How the log-likelihood's curvature in the parameters is approximated."""

    #: Whether it is factored by tensors: that needs one block a term, one precision a tensor and one
    #: output, and leaves no levels to be integrated out.
    factored: ClassVar[bool]

    def solution(self, problem: Problem, state: State, rng: Rng) -> Solution:
        """The posterior of the tuned regression."""

    def functions(self, problem: Problem, state: State, rng: Rng) -> Functions:
        """The posterior around networks that were trained."""

    def determinant(self, problem: Problem, state: State, rng: Rng) -> Determinant:
        """The determinant around networks that were trained, to be asked near their precisions."""


@dataclass(frozen=True)
class Dropped:
    """A term that went, where the data is at its entries, and what it was worth when it did."""

    term: Term
    share: Array
    log_evidence_gain: float


@dataclass(frozen=True)
class Stage:
    """What was fitted, the terms that went on the way, and why it ended."""

    problem: Problem
    state: State
    dropped: tuple[Dropped, ...] = ()
    reason: str = "interrupted"

    @property
    def interrupted(self) -> bool:
        """Whether the user ended it."""
        return self.reason == "interrupted"

    @property
    def width(self) -> int:
        """How many coordinates the terms have, in all outputs."""
        own = sum(
            len(known.values) if known.basis is None else known.basis.shape[1]
            for known in self.state.terms
        )
        return own * self.problem.likelihood.n_outputs


@dataclass(frozen=True)
class Task:
    """A problem that is to be fitted from a state on, and the name that its passes go by.

    ``before`` is the stage that it extends, and what is left if the user interrupts too early.
    ``needed`` says what terms must be worth to stay, if that is not what is asked of single columns.
    """

    name: str
    before: Stage
    problem: Problem
    state: State
    needed: Callable[[Problem], Needed] | None = None


#: Told the name of a training and its state after each pass.
Record = Callable[[str, State], None]


class Solver(Protocol):
    """How the terms of a problem are trained, and what is known of them in the end."""

    #: Scales of the first layer's initial weights where nobody chose any: of a column's network, and of a
    #: pair's, whose finest structure is rarely visible in the data.
    init_scales: ClassVar[tuple[float, ...]]
    pair_init_scales: ClassVar[tuple[float, ...]]

    #: Whether terms must be networks of one output and of columns without gaps, and the noise the same
    #: everywhere.
    networks_only: ClassVar[bool]
    #: Whether rows must be in memory: others are asked for totals only.
    in_memory: ClassVar[bool]

    def start(self, problem: Problem, rng: Rng) -> State:
        """What is known before any training."""

    def train(self, task: Task, rng: Rng, record: Record) -> Stage:
        """Fit, and drop the terms that the evidence does not pay for."""

    def solution(self, problem: Problem, state: State, rng: Rng) -> Solution:
        """The posterior at a state."""
