"""Converts a solution in the core's units to a ``FittedModel`` in the response's.

Arrays that only affect variances are truncated to the digits that matter (see ``fixed_point``), so that a
saved and reloaded model is identical to the bit, from a small file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from functools import partial

import numpy as np

from lanam.core.arrays import Array, fixed_point, slices
from lanam.core.inference.posterior import Solution
from lanam.core.inference.problem import Problem, State
from lanam.core.inference.solver import Dropped
from lanam.core.model.fitted import ACTIVE, UNSUPPORTED, FittedModel, FittedTerm
from lanam.core.model.mixtures import CERTAIN_DF
from lanam.core.rows.located import Rows, StreamedRows, added
from lanam.core.rows.reading import read
from lanam.core.rows.statistics import CHUNK_ROWS
from lanam.core.rows.tables import Totals, Units
from lanam.core.terms.term import Term


def assemble(
    units: Units,
    problem: Problem,
    state: State,
    solution: Solution,
    dropped: Iterable[FittedTerm],
    exact: Set[int] = frozenset(),
) -> FittedModel:
    """The fitted model, without its history; ``dropped`` terms do not contribute.

    The tables of ``exact`` columns are not truncated: differences of neighbours are constrained.
    """
    scale, n_outputs = units.scale, units.likelihood.n_outputs
    contrasts = units.likelihood.contrasts
    if contrasts is not None:
        contrasts = np.ascontiguousarray(contrasts)

    def to_response(values: Array) -> Array:
        """Outputs in the response's unit; several outputs as one column per class."""
        return scale * values if contrasts is None else values @ contrasts.T

    means = [to_response(mean) for mean in solution.means]
    importances = _importances(problem, means)
    active = [
        replace(
            _without_function(term, problem.data_mass[k]),
            mean=means[k],
            table=scale * solution.tables[k]
            if not exact.isdisjoint(term.features)
            else fixed_point(scale * solution.tables[k]),
            status=ACTIVE,
            importance=importances[k],
            effective_parameters=solution.effective[k],
            evidence=float(solution.log_evidence_gains[k]),
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
    levels, k = solution.levels, problem.high_cardinality
    if levels is not None and k is not None:
        # The intercept's error is in the response's unit already; the other coordinates have none.
        unit = np.full(levels.coupling.shape[1], scale)
        unit[-1] = 1.0
        coupling = fixed_point((levels.coupling * unit)[:, kept])
        variance = scale**2 * levels.variance
        active[k] = replace(active[k], coupling=coupling, own_variance=variance)
    intercept = np.asarray(solution.intercept)
    missing_noise = problem.rows.missing_noise
    own = problem.likelihood_at(state).in_unit(scale)
    uncertain_noise = units.likelihood.quadratic and solution.noise_df < CERTAIN_DF
    return FittedModel(
        likelihood=units.likelihood.name,
        intercept=units.shift + float(to_response(intercept))
        if contrasts is None
        else to_response(intercept),
        terms=tuple(sorted([*active, *dropped], key=_place)),
        cov_cholesky=fixed_point(triangular_root(covariance)),
        noise_variance=0.0 if units.likelihood.noise_bounds is None else state.noise * scale**2,
        log_evidence=float(
            units.log_evidence(solution.evidence + _beyond(problem, state, solution))
        ),
        contrasts=contrasts,
        missing_variance=None if missing_noise is None else state.noise * scale**2 * missing_noise,
        noise_df=solution.noise_df if uncertain_noise else np.inf,
        parameters=own.parameters,
    )


def _beyond(problem: Problem, state: State, solution: Solution) -> float:
    """What the evidence of the likelihood has beyond that of the quasi-likelihood it was fitted with."""
    if problem.n_rows is not None or solution.regression is None:
        return 0.0
    return (state.noise - 1.0) * solution.regression[1].log_likelihood


def triangular_root(covariance: Array) -> Array:
    """A lower triangular ``F`` with ``covariance = F F'``.

    Computed from the correlations, because the intercept has another unit than the other coordinates.
    """
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    try:
        root = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:  # singular to rounding: slower, but stable
        size, vectors = np.linalg.eigh(correlation)
        factor = vectors * np.sqrt(np.maximum(size, 0.0))
        root = np.asarray(np.linalg.qr(factor.T, mode="r")).T
    return np.asarray(scale[:, None] * root)


def _place(term: FittedTerm) -> tuple[int, tuple[int, ...]]:
    """Sort key: columns' terms, then level terms, then joint terms, each in the columns' order."""
    return len(term.features) if term.joint else term.kind == "level", term.features


def dropped_term(dropped: Dropped, units: Units, variance: Array | None = None) -> FittedTerm:
    """A dropped term with its log evidence gain, and the variance (B, K) that remains possible."""
    term = _without_function(dropped.term, dropped.data_mass)
    if variance is not None:
        contrasts = units.likelihood.contrasts
        variance = variance[:, 0] if contrasts is None else variance @ np.square(contrasts).T
        variance = units.scale**2 * variance
    return replace(term, evidence=dropped.log_evidence_gain, dropped_variance=variance)


def _without_function(term: Term, data_mass: Array) -> FittedTerm:
    return FittedTerm(
        kind=term.kind,
        features=term.features,
        entries=term.entries,
        data_mass=data_mass,
        mean=np.zeros(len(data_mass)),
        table=np.empty((len(data_mass), 0)),
        status=UNSUPPORTED,
        architecture=term.architecture,
    )


def _importances(problem: Problem, means: Sequence[Array]) -> list[float]:
    """Mean absolute contribution of each term over the rows and classes.

    Out of core, over the entries: the same except where a function changes its sign between two.
    """
    rows = problem.rows
    if isinstance(rows, StreamedRows):
        at_entries = zip(problem.data_mass, means, strict=True)
        return [float(np.mean(mass @ np.abs(mean))) for mass, mean in at_entries]
    (sums,) = rows.total(partial(_absolute_sums, tuple(means)))
    return [float(value) / rows.count for value in sums]


def _absolute_sums(means: Sequence[Array], parts: Iterable[Rows]) -> Totals:
    def of(part: Rows) -> Totals:
        contributions = map(read, part.positions, means)
        return (np.array([np.mean(part.weight @ np.abs(values)) for values in contributions]),)

    return added(parts, CHUNK_ROWS, of)


def unused(feature: int, reason: str) -> FittedTerm:
    """The term of a column without usable values."""
    nothing = np.empty(0)
    return FittedTerm("smooth", (feature,), None, nothing, nothing, np.empty((0, 0)), reason)
