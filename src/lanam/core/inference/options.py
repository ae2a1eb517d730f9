"""The options of a fit, validated by the estimators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanam.core.rows.plan import Plan
from lanam.core.terms.knowledge import NOTHING, Knowledge
from lanam.core.terms.networks import Architecture


@dataclass(frozen=True)
class Options:
    """Options of a fit, named like the estimators' parameters."""

    #: None for infinitely wide networks
    hidden_sizes: tuple[int, ...] | None = None
    activation: str = "gelu"
    init_scales: tuple[float, ...] = (1.0, 4.0, 16.0)
    prior_groups: str = "layer"
    posterior: str = "joint"
    curvature: str = "exact"
    solver: str = "gauss-newton"
    evidence_update: str = "mackay"
    #: whether joint networks leave main effects to the columns' networks
    pure: bool = True
    #: training by Adam: its rates, epochs and batches, evidence steps after the epochs, and rounds of both
    #: without a rise of the evidence after which it ends
    learning_rates: tuple[float, ...] = (0.1, 0.01, 0.001)
    epochs: int = 100
    schedule: str = "constant"
    batch_size: int = 512
    evidence_steps: int = 30
    patience: int = 4
    level_effects: bool = True
    #: whether Gaussian noise may be heteroscedastic
    noise: bool = False
    #: "auto", the number of pairs, or their columns
    interactions: str | int | tuple[tuple[int, ...], ...] = 0
    #: the largest number of columns of an interaction that "auto" adds
    max_order: int = 2
    interaction_score: str = "evidence"
    #: the most interactions that "auto" adds
    max_pairs: int = 50
    #: seconds after which no further interaction is tried
    time_budget: float | None = None
    #: the column that is time, if there is one: its term is not dropped for want of evidence, and its
    #: interactions are searched for by themselves
    time: int | None = None
    time_interactions: str | int | tuple[tuple[int, ...], ...] = 0
    #: what is known of columns
    knowledge: Knowledge = NOTHING
    pair_hidden_sizes: tuple[int, ...] | None = None
    pair_init_scales: tuple[float, ...] = (1.0, 4.0)
    max_knots: int = 256
    max_iter: int = 100
    tol: float = 0.05
    n_restarts: int = 1
    #: whether to compute what says how far to trust the fit: influence of rows, bands of dropped columns
    diagnostics: bool = True
    #: threads for passes over rows
    n_jobs: int = 1
    #: limit of cross-tables in bytes
    memory: float = 600e6
    #: called with the plan of each stage
    on_plan: Callable[[Plan], None] | None = None
    #: called with each new record of the history
    on_iteration: Callable[[dict[str, Any]], None] | None = None

    @property
    def searches_interactions(self) -> bool:
        """Whether any interaction may be added."""
        asked = 0 if self.max_order < 2 else self.interactions
        return any(one not in (0, ()) for one in (asked, self.time_interactions))

    def architecture(self, n_inputs: int) -> Architecture:
        """The network of one column, or of several jointly."""
        single = self.hidden_sizes, self.activation, self.init_scales
        joint = self.pair_hidden_sizes, self.activation, self.pair_init_scales
        return Architecture(n_inputs, *(single if n_inputs == 1 else joint))
