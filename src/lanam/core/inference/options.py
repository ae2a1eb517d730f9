"""Every choice a fit takes, checked by the estimators and read by the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanam.core.rows.plan import Plan
from lanam.core.terms.networks import Architecture


@dataclass(frozen=True)
class Options:
    """How to fit; the names are those of the estimators' arguments."""

    hidden_sizes: tuple[int, ...] = (64,)
    activation: str = "gelu"
    init_scales: tuple[float, ...] = (1.0, 4.0, 16.0)
    prior_groups: str = "layer"
    posterior: str = "joint"
    curvature: str = "exact"
    solver: str = "gauss-newton"
    evidence_update: str = "mackay"
    level_effects: bool = True
    #: whether the size of a Gaussian noise may differ from row to row
    noise: bool = False
    #: "auto", how many, or which
    interactions: str | int | tuple[tuple[int, int], ...] = 0
    interaction_score: str = "evidence"
    pair_hidden_sizes: tuple[int, ...] = (64,)
    pair_init_scales: tuple[float, ...] = (1.0, 4.0)
    max_knots: int = 256
    max_iter: int = 100
    tol: float = 0.05
    n_restarts: int = 1
    #: threads for passes over rows
    n_jobs: int = 1
    #: bytes that cross-tables may have
    memory: float = 600e6
    #: told of every stage's plan before it begins
    on_plan: Callable[[Plan], None] | None = None
    #: called with every new record of the history; used to show progress
    on_iteration: Callable[[dict[str, Any]], None] | None = None

    def architecture(self, n_inputs: int) -> Architecture:
        """The network of a column, or of several together."""
        own = self.hidden_sizes, self.activation, self.init_scales
        joint = self.pair_hidden_sizes, self.activation, self.pair_init_scales
        return Architecture(n_inputs, *(own if n_inputs == 1 else joint))
