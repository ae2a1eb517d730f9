"""A solution in the core's units to a ``FittedModel`` in the response's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lanam.core.arrays import Array
from lanam.core.gauss_newton import Problem, State
from lanam.core.model import ACTIVE, SWITCHED_OFF, FittedModel, FittedTerm
from lanam.core.posterior import Solution
from lanam.core.prepare import Units
from lanam.core.terms import Term


def assemble(
    units: Units, problem: Problem, state: State, solution: Solution, off: Iterable[FittedTerm]
) -> FittedModel:
    """The fitted model, without its history; ``off`` are the terms that do not contribute."""
    scale = units.scale
    active = [
        FittedTerm(
            kind=term.kind,
            features=term.features,
            entries=term.entries,
            share=problem.shares[k],
            mean=scale * solution.means[k],
            table=scale * solution.tables[k],
            status=ACTIVE,
            effective_parameters=solution.effective[k],
            evidence=solution.worth[k],
            precision=solution.precisions[k],
            expansion=state.terms[k].expansion,
        )
        for k, term in enumerate(problem.terms)
    ]
    covariance = solution.covariance.copy()
    covariance[-1] *= scale
    covariance[:, -1] *= scale
    return FittedModel(
        likelihood=units.likelihood.name,
        intercept=units.shift + scale * solution.intercept,
        terms=_in_order(active, off),
        covariance=covariance,
        noise_variance=solution.noise * scale**2 if units.likelihood.learns_noise else 0.0,
        log_evidence=units.log_evidence(solution.evidence),
    )


def _in_order(active: Sequence[FittedTerm], off: Iterable[FittedTerm]) -> tuple[FittedTerm, ...]:
    """Smooth terms in the columns' order, then levels, then pairs.

    Active ones keep the covariance's order, which is of the same kind.
    """
    terms = [*active, *off]
    smooth = sorted((t for t in terms if t.kind == "smooth"), key=lambda t: t.features)
    return (
        *smooth,
        *(t for t in terms if t.kind == "level"),
        *(t for t in terms if t.kind == "pair"),
    )


def switched_off(term: Term, share: Array, worth: float) -> FittedTerm:
    """A term that went, and what it was worth when it did."""
    n_entries = len(share)
    return FittedTerm(
        kind=term.kind,
        features=term.features,
        entries=term.entries,
        share=share,
        mean=np.zeros(n_entries),
        table=np.empty((n_entries, 0)),
        status=SWITCHED_OFF,
        effective_parameters=0.0,
        evidence=worth,
        precision=np.empty(0),
        expansion=np.empty(0),
    )


def unused(feature: int, reason: str) -> FittedTerm:
    """The term of a column that cannot have one."""
    nothing = np.empty(0)
    return FittedTerm(
        kind="smooth",
        features=(feature,),
        entries=None,
        share=nothing,
        mean=nothing,
        table=np.empty((0, 0)),
        status=reason,
        effective_parameters=0.0,
        evidence=0.0,
        precision=nothing,
        expansion=nothing,
    )
