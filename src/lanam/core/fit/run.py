"""What goes along with a fit: its plans, its history, its threads."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanam.core.blas import limited_threads
from lanam.core.fit.prepare import Prepared
from lanam.core.inference.options import Options
from lanam.core.inference.problem import State
from lanam.core.inference.solver import Solver
from lanam.core.rows.plan import Plan

#: With fewer coordinates than this one thread is enough.
_WIDE = 1000


def threads(width: int, n_jobs: int) -> AbstractContextManager[Any]:
    """One thread inside BLAS where matrices are small: more would cost more than they bring."""
    return limited_threads(1 if width < _WIDE else n_jobs)


@dataclass(frozen=True)
class Run:
    """What a fit is given, and the only thing that changes beside its values: its history."""

    prepared: Prepared
    options: Options
    history: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    @property
    def solver(self) -> Solver:
        """What trains the terms."""
        return self.prepared.solver

    def announce(self, stage: str, n_terms: int, n_entries: int) -> None:
        """Tell what a stage with so many terms and entries is going to do."""
        if self.options.on_plan is not None:
            rows, likelihood = self.prepared.rows, self.prepared.units.likelihood
            shape = (len(rows), rows.n_columns)
            memory = self.options.memory
            self.options.on_plan(Plan.of(stage, n_terms, shape, likelihood, memory, n_entries))

    def record(self, stage: str, state: State) -> None:
        """Add a pass to the history, in the response's own units, and show it."""
        units = self.prepared.units
        entry = {
            "iteration": len(self.history) + 1,
            "stage": stage,
            "log_evidence": units.log_evidence(state.evidence),
            "noise_std": float(np.sqrt(state.noise)) * units.scale
            if units.likelihood.quadratic
            else None,
            "n_active": len(state.terms),
            "effective_parameters": state.n_effective,
            "seconds": time.perf_counter() - self.began,
        }
        self.history.append(entry)
        if self.options.on_iteration is not None:
            self.options.on_iteration(entry)
