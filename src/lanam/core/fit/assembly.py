"""A solution in the core's units to a ``FittedModel`` in the response's own.

What only variances are made of is cut to the digits that matter (see ``fixed_point``), once and here: a
model that was saved and read again is the same model, to the bit, from a small file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from lanam.core.arrays import Array, fixed_point, slices
from lanam.core.inference.posterior import Solution
from lanam.core.inference.problem import Problem, State
from lanam.core.inference.solver import Dropped
from lanam.core.model.fitted import ACTIVE, SWITCHED_OFF, FittedModel, FittedTerm
from lanam.core.rows.located import Rows, StreamedRows, added
from lanam.core.rows.reading import read
from lanam.core.rows.statistics import CHUNK_ROWS
from lanam.core.rows.tables import Totals, Units
from lanam.core.terms.term import Term


def assemble(
    units: Units, problem: Problem, state: State, solution: Solution, off: Iterable[FittedTerm]
) -> FittedModel:
    """The fitted model, without its history; ``off`` are the terms that do not contribute."""
    scale, n_outputs = units.scale, units.likelihood.n_outputs
    contrasts = units.likelihood.contrasts
    if contrasts is not None:
        contrasts = np.ascontiguousarray(contrasts)

    def own(values: Array) -> Array:
        """Outputs in the response's unit; of several, what they say of each class."""
        return scale * values if contrasts is None else values @ contrasts.T

    means = [own(mean) for mean in solution.means]
    importances = _importances(problem, means)
    active = [
        replace(
            _without_function(term, problem.shares[k]),
            mean=means[k],
            table=fixed_point(scale * solution.tables[k]),
            status=ACTIVE,
            importance=importances[k],
            effective_parameters=solution.effective[k],
            evidence=float(solution.worth[k]),
            precision=state.terms[k].precision,
            expansion=state.terms[k].expansion,
        )
        for k, term in enumerate(problem.terms)
    ]
    order = sorted(range(len(active)), key=lambda k: _place(active[k]))
    *blocks, free = slices(
        [*(term.table.shape[1] * n_outputs for term in active), np.size(solution.intercept)]
    )
    kept = np.r_[(*(blocks[k] for k in order), free)]
    covariance = solution.covariance[np.ix_(kept, kept)]
    covariance[free] *= scale
    covariance[:, free] *= scale
    if solution.levels is not None:
        wide = solution.levels
        # The intercept's error is in the response's unit, as the function is; others have none.
        unit = np.full(wide.coupling.shape[1], scale)
        unit[-1] = 1.0
        active[wide.term] = replace(
            active[wide.term],
            coupling=fixed_point((wide.coupling * unit)[:, kept]),
            own_variance=scale**2 * wide.own,
        )
    intercept = np.asarray(solution.intercept)
    gap_noise = problem.rows.gap_noise
    return FittedModel(
        likelihood=units.likelihood.name,
        intercept=units.shift + float(own(intercept)) if contrasts is None else own(intercept),
        terms=tuple(sorted([*active, *off], key=_place)),
        root=fixed_point(triangular_root(covariance)),
        noise_variance=0.0 if units.likelihood.noise_bounds is None else state.noise * scale**2,
        log_evidence=float(units.log_evidence(solution.evidence)),
        contrasts=contrasts,
        gap_variance=None if gap_noise is None else state.noise * scale**2 * gap_noise,
    )


def triangular_root(covariance: Array) -> Array:
    """A lower triangular ``F`` with ``covariance = F F'``.

    Of the correlations, because the intercept's unit is the response's and the others' is not.
    """
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    try:
        root = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:  # singular to rounding: slower, but sure
        size, vectors = np.linalg.eigh(correlation)
        factor = vectors * np.sqrt(np.maximum(size, 0.0))
        root = np.asarray(np.linalg.qr(factor.T, mode="r")).T
    return np.asarray(scale[:, None] * root)


def _place(term: FittedTerm) -> tuple[int, tuple[int, ...]]:
    """Columns' own terms, then levels of numeric ones, then joint terms; each in the columns' order."""
    return len(term.features) if term.joint else term.kind == "level", term.features


def switched_off(gone: Dropped) -> FittedTerm:
    """A term that went, and what it was worth when it did."""
    return replace(_without_function(gone.term, gone.share), evidence=gone.log_evidence_gain)


def _without_function(term: Term, share: Array) -> FittedTerm:
    return FittedTerm(
        kind=term.kind,
        features=term.features,
        entries=term.entries,
        share=share,
        mean=np.zeros(len(share)),
        table=np.empty((len(share), 0)),
        status=SWITCHED_OFF,
        architecture=term.architecture,
    )


def _importances(problem: Problem, means: Sequence[Array]) -> list[float]:
    """Mean absolute contribution of every term over the rows, and over several classes.

    Of rows that must be read again for it, over the entries: that is the same but where a function
    changes its sign between two of them.
    """
    rows = problem.rows
    if isinstance(rows, StreamedRows):
        shares = problem.shares
        return [
            float(np.mean(share @ np.abs(mean))) for share, mean in zip(shares, means, strict=True)
        ]
    (sums,) = rows.total(partial(_absolute_sums, tuple(means)))
    return [float(value) / rows.count for value in sums]


def _absolute_sums(means: Sequence[Array], parts: Iterable[Rows]) -> Totals:
    def of(part: Rows) -> Totals:
        read_means = map(read, part.positions, means)
        return (np.array([np.mean(part.weight @ np.abs(own)) for own in read_means]),)

    return added(parts, CHUNK_ROWS, of)


def unused(feature: int, reason: str) -> FittedTerm:
    """The term of a column that cannot have one."""
    nothing = np.empty(0)
    return FittedTerm("smooth", (feature,), None, nothing, nothing, np.empty((0, 0)), reason)
