"""Puts constraints on the functions of a fitted model (docs, method page)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lanam.core.arrays import Array, fixed_point, triangular_root
from lanam.core.model.constrained import SETTLED, ConstrainedPosterior, ConstrainedTerm
from lanam.core.model.fitted import FittedModel, FittedTerm, importance_at
from lanam.core.terms.constraints import Constraint


def constrain(model: FittedModel, constraints: Sequence[Constraint]) -> FittedModel:
    """The model of one output whose functions obey the constraints, and so do their draws."""
    known = () if model.constrained is None else model.constrained.constraints
    posterior = constrained_posterior(model, (*known, *constraints))
    if posterior is None:
        return model
    change = posterior.regression @ (posterior.mean - posterior.free_mean)
    constrained = {term.place.start: term for term in posterior.terms}
    terms = []
    for term, place in zip(model.terms, model.blocks, strict=True):
        mean = term.mean + term.table @ change[place]
        if term.coupling is not None:
            mean = mean + term.coupling @ change
        if term.active and place.start in constrained:
            # Of the coordinates alone, as its draws are: what rounding adds might violate a constraint.
            own = np.searchsorted(posterior.places, place.start) + np.arange(
                place.stop - place.start
            )
            mean = term.table @ posterior.mean[own]
        importance = importance_at(term, term.data_mass, mean)
        terms.append(replace(term, mean=mean, importance=importance))
    return replace(
        model,
        intercept=model.intercept + float(change[-1]),
        terms=tuple(terms),
        cov_cholesky=fixed_point(triangular_root(posterior.covariance())),
        constrained=posterior,
    )


def constrained_posterior(
    model: FittedModel, constraints: Sequence[Constraint]
) -> ConstrainedPosterior | None:
    """The posterior under the constraints of a model's terms; None if these have no term."""
    columns = {constraint.feature for constraint in constraints}
    terms = [
        (term, place)
        for term, place in zip(model.terms, model.blocks, strict=True)
        if term.active and columns & set(term.features) and term.entries is not None
    ]
    if not terms:
        return None
    free = ConstrainedPosterior(
        constraints=tuple(c for c in constraints),
        terms=tuple(
            ConstrainedTerm(place, term.features, term.entries, term.table)
            for term, place in terms
            if term.entries is not None
        ),
        free_mean=np.concatenate([_coordinates(term) for term, _ in terms]),
        free_cholesky=model.cov_cholesky,
        mean=np.empty(0),
    )
    return replace(free, mean=free.project(free.free_mean[:, None], SETTLED)[:, 0])


def _coordinates(term: FittedTerm) -> Array:
    """The coordinates of a term's mean."""
    return np.asarray(np.linalg.lstsq(term.table, term.mean, rcond=None)[0])
