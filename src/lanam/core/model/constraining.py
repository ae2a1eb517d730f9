"""Puts constraints on the functions of a fitted model (docs, method page)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.model.constrained import SETTLED, ConstrainedPosterior, ConstrainedTerm
from lanam.core.model.editing import Region, within
from lanam.core.model.fitted import FittedModel, FittedTerm, importance_at
from lanam.core.terms.constraints import Constraint
from lanam.core.terms.knots import Categories

#: Tables are truncated to 24 bits.
_LINEAR = 1e-4


def constrain(model: FittedModel, constraints: Sequence[Constraint]) -> FittedModel:
    """The model of one output whose functions obey further constraints, and so do their draws."""
    model, known = _freed(model)
    posterior = constrained_posterior(model, (*known, *constraints))
    if posterior is None:
        return model
    model = _moved(model, posterior, posterior.mean - posterior.free_mean)
    return replace(model, constrained=posterior)


def _freed(model: FittedModel) -> tuple[FittedModel, tuple[Constraint, ...]]:
    """The model without its constraints, and those to put on it again.

    Constraints of columns that were edited since are not: the edit had the last word.
    """
    posterior = model.constrained
    if posterior is None:
        return model, ()
    tables = {
        place.start: term.table for term, place in zip(model.terms, model.blocks, strict=True)
    }
    edited = {
        feature
        for term in posterior.terms
        if tables[term.place.start] is not term.table
        for feature in term.features
    }
    model = _moved(model, posterior, posterior.free_mean - posterior.mean, but=edited)
    kept = tuple(each for each in posterior.constraints if each.feature not in edited)
    return replace(model, constrained=None), kept


def _moved(
    model: FittedModel, posterior: ConstrainedPosterior, by: Array, but: Collection[int] = ()
) -> FittedModel:
    """The model with other means of the constrained coordinates (r,), and what follows of the others."""
    change = posterior.regression @ by
    terms = []
    for term, place in zip(model.terms, model.blocks, strict=True):
        if not term.active:
            terms.append(term)
            continue
        mean = term.mean + term.table @ change[place]
        if term.coupling is not None:
            mean = mean + term.coupling @ change
        mean = term.mean if set(but) & set(term.features) else mean
        importance = importance_at(term, term.data_mass, mean)
        terms.append(replace(term, mean=mean, importance=importance))
    return replace(model, intercept=model.intercept + float(change[-1]), terms=tuple(terms))


def make_monotone(
    model: FittedModel, index: int, region: Region, direction: int
) -> tuple[FittedModel, NDArray[np.bool_]]:
    """The model with a monotone column between two values, and the main effect's entries there.

    A ``direction`` of 0 is that from the curve's lower to its upper end.
    """
    term, nothing = model.terms[index], np.zeros(len(model.terms[index].mean), dtype=bool)
    assert term.entries is not None
    (axis,) = term.entries.axes
    order = axis.entry_of if isinstance(axis, Categories) else np.arange(len(axis.values))
    chosen = order[within(axis, region)[order]]
    if len(chosen) < 2:
        return model, nothing
    sign = direction or (1 if term.mean[chosen[-1]] >= term.mean[chosen[0]] else -1)
    changed = constrain(model, [Constraint(term.features[0], sign, 0, region.low, region.high)])
    if changed.constrained is None or not changed.constrained.binds:
        return model, nothing
    edited = nothing.copy()
    edited[chosen] = True
    terms = list(changed.terms)
    terms[index] = replace(
        terms[index], edited=edited if term.edited is None else edited | term.edited
    )
    return replace(changed, terms=tuple(terms)), edited


def constrained_posterior(
    model: FittedModel, constraints: Sequence[Constraint]
) -> ConstrainedPosterior | None:
    """The posterior under the constraints of a model's terms; None if these have no term."""
    columns = {constraint.feature for constraint in constraints}
    terms, means = [], []
    for term, place in zip(model.terms, model.blocks, strict=True):
        if term.active and columns & set(term.features) and term.entries is not None:
            terms.append(ConstrainedTerm(place, term.features, term.entries, term.table))
            means.append(_coordinates(term))
    if not terms:
        return None
    free = ConstrainedPosterior(
        constraints=tuple(constraints),
        terms=tuple(terms),
        free_mean=np.concatenate(means),
        cov_cholesky=model.cov_cholesky,
        mean=np.empty(0),
    )
    return replace(free, mean=free.project(free.free_mean[:, None], SETTLED)[:, 0])


def is_linear(term: FittedTerm) -> bool:
    """Whether a term's mean is a function of its coordinates: that of a trained network need not be."""
    rest = term.mean - term.table @ _coordinates(term)
    return bool(np.linalg.norm(rest) <= _LINEAR * np.linalg.norm(term.mean))


def _coordinates(term: FittedTerm) -> Array:
    """The coordinates of a term's mean."""
    return np.asarray(np.linalg.lstsq(term.table, term.mean, rcond=None)[0])
