"""A fitted model as tables with which rows can be scored without Python.

A row is a number for each column: its value, or the code of its category; NaN if it is missing, and ``-1``
for an unseen category.

Every active term is a table over the entries of its axes. A row is located at one entry of an axis or
between two (:class:`TableAxis`); with several axes at all combinations, the last axis varying fastest.
There the term's ``mean`` and row ``t`` of the ``table`` are interpolated linearly. With the rows of all
terms in the order of the coordinates, a one for the intercept at the end and the factor ``F``,

    mean = intercept + sum of the terms' means,     variance = |F' [t_1, t_2, ..., 1]|^2

on the link scale. With several classes there is a vector for each of ``M`` outputs, consecutive in a term's
block; with ``contrasts`` ``Q`` and the products ``V`` of the vectors with ``F`` the covariance is ``Q V
V' Q'``.

Two additions: a missing value without an entry contributes zero, with the variance ``unknown_variance``. A
high-cardinality term has no coordinates of its own: it adds its row of ``coupling`` to the whole vector,
and its ``own_variance`` to the variance.

A new observation of a Gaussian response has noise with the variance

    noise_variance exp(log_noise + sum of the noise_tables' means) + missing_variance of missing values

where a missing value without an entry adds nothing to the exponent. Noise tables have no coordinates.
Grades, the classes of an ordinal model, have one function: ``P(grade <= k)`` at a link ``f`` is
``1 / (1 + exp(f - cut_points[k]))``.

If the noise is not Gaussian, ``shape`` is its distribution in units of its standard deviation. Variances
and shape include the uncertainty of the noise variance: with few rows it is a Student's t.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.core.model.mixtures import GAUSSIAN, NoiseShape, integrated_noise
from lanam.core.terms.knots import Categories, Knots, Levels
from lanam.data import Schema
from lanam.explain.tables import describe_terms
from lanam.explain.values import GivenLabels, Labels, OnLinkScale, class_labels
from lanam.families import Family, find_family


@dataclass(frozen=True, eq=False, repr=False)
class TableAxis:
    """The entries of a term's table along one column.

    Attributes
    ----------
    kind
        ``"knots"``: entries at ``points``, linear in between, constant beyond.
        ``"levels"``: one entry per point, for numbers that are equal to six digits.
        ``"bins"``: one entry per bin between ``points``, the first below the first of them.
        ``"codes"``: the entry of category ``k`` is ``points[k]``.
    points
        Numbers in the column's unit, or entries.
    n_entries
        Number of entries.
    missing, other
        The entries of missing and of all other values; None if there is none.
    period
        Of knots of a cyclic column: they are those of one period, into which other values are moved by
        whole periods first. None for others.
    """

    kind: str
    points: Array | IntArray
    n_entries: int
    missing: int | None
    other: int | None
    period: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class TermTable:
    """One active term: its index in ``terms_``, its columns, and its tables over their entries.

    Attributes
    ----------
    axes
        One per column.
    mean, table
        (B,), or (B, C) with several classes, and (B, r).
    start
        The first of its coordinates.
    unknown_variance
        Of a missing value without an entry, a covariance with several classes; None if every axis has one.
    coupling, own_variance
        (B, R) and (B,) of a high-cardinality term, else None.
    data_mass
        (B,) fractions of the training data at the entries.
    edited
        (B,) whether each entry was edited after the fit; None if none was.
    """

    name: str
    index: int
    features: tuple[int, ...]
    axes: tuple[TableAxis, ...]
    mean: Array
    table: Array
    start: int
    unknown_variance: Array | None
    coupling: Array | None
    own_variance: Array | None
    data_mass: Array
    edited: NDArray[np.bool_] | None


@dataclass(frozen=True, eq=False, repr=False)
class PortableModel(OnLinkScale):
    """A model as tables; the module's docstring defines how to score rows with it.

    Attributes
    ----------
    factor
        (R, R), lower triangular.
    noise_variance
        Of Gaussian noise; for counts and amounts, the dispersion; 0 for classes.
    missing_variance
        Additional noise variance of a missing value in each column.
    log_noise, noise_tables
        Of heteroscedastic noise, else 0 and none.
    shape
        Of noise that is not Gaussian, else None.
    contrasts
        (C, M) with several classes, else None.
    labels
        The labels of the predicted probabilities in their order: those of ``classes``, or of all grades.
    parameters
        Of the likelihood, by name: ``cut_points`` of grades, ``power`` of Tweedie amounts.
    """

    family: Family
    classes: Labels
    intercept: Array
    tables: tuple[TermTable, ...]
    factor: Array
    noise_variance: float
    missing_variance: Array
    contrasts: Array | None
    log_noise: float = 0.0
    noise_tables: tuple[TermTable, ...] = ()
    shape: NoiseShape | None = None
    labels: Labels = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def noise_components(self) -> list[tuple[float, float, float]]:
        """Weight, mean and standard deviation of each Gaussian of the noise, in units of the noise."""
        shape = self.shape or GAUSSIAN
        return list(
            zip(shape.weights.tolist(), shape.means.tolist(), shape.stds.tolist(), strict=True)
        )


def explain_portable(
    model: FittedModel,
    schema: Schema,
    classes: GivenLabels = None,
    labels: GivenLabels = None,
) -> PortableModel:
    """The tables of a fitted model; ``classes`` are the labels that explanations of a classifier have.

    ``labels`` are those of all classes, where they differ.
    """
    family = find_family(model.likelihood).of_model(model)
    names = [term.name for term in describe_terms(model, schema)]
    missing = (
        np.zeros(schema.n_columns) if model.missing_variance is None else model.missing_variance
    )
    factor, noise_shape = integrated_noise(model.shape or GAUSSIAN, model.noise_df)
    return PortableModel(
        family=family,
        classes=class_labels(model, classes),
        intercept=np.asarray(model.intercept, dtype=np.float64),
        tables=tuple(
            _table(model, index, names[index])
            for index, term in enumerate(model.terms)
            if term.active
        ),
        factor=model.cov_cholesky,
        noise_variance=factor * float(model.noise_variance),
        missing_variance=factor * np.array(missing, dtype=np.float64),
        contrasts=model.contrasts,
        log_noise=0.0 if model.noise is None else float(model.noise.intercept),
        noise_tables=() if model.noise is None else _noise_tables(model.noise, schema),
        shape=None if len(noise_shape.weights) == 1 else noise_shape,
        labels=class_labels(model, classes if labels is None else labels),
        parameters=family.likelihood_of(model).named_parameters,
    )


def _noise_tables(noise: FittedModel, schema: Schema) -> tuple[TermTable, ...]:
    names = [term.name for term in describe_terms(noise, schema)]
    return tuple(
        replace(
            _table(noise, index, names[index]),
            mean=scoring.held_table(term),
            table=np.zeros((len(term.mean), 0)),
            start=0,
            unknown_variance=None,
            coupling=None,
            own_variance=None,
        )
        for index, term in enumerate(noise.terms)
        if term.active
    )


def _table(model: FittedModel, index: int, name: str) -> TermTable:
    term = model.terms[index]
    assert term.entries is not None
    axes = tuple(map(_axis, term.entries.axes))
    complete = all(axis.missing is not None or axis.other is not None for axis in axes)
    return TermTable(
        name=name,
        index=index,
        features=term.features,
        axes=axes,
        mean=term.mean,
        table=term.table,
        start=model.blocks[index].start,
        unknown_variance=None if complete else scoring.unknown_spread(model, index),
        coupling=term.coupling,
        own_variance=term.own_variance,
        data_mass=term.data_mass,
        edited=term.edited,
    )


def _axis(entries: Knots | Levels | Categories) -> TableAxis:
    if isinstance(entries, Categories):
        last = entries.n_own + 1
        return TableAxis("codes", entries.entry_of, len(entries), entries.n_own, last)
    if isinstance(entries, Knots):
        missing = len(entries.points) if entries.missing else None
        values = entries.values
        period = float(values[-1] - values[0]) if entries.cyclic else None
        return TableAxis("knots", values, len(entries), missing, None, period)
    # Without an entry for missing values, theirs is that of everything else: the last.
    kind, points = ("levels", entries.points) if entries.exact else ("bins", entries.edges)
    scaled = points * entries.scale
    return TableAxis(kind, scaled, len(entries), len(entries.points), len(entries) - 1)
