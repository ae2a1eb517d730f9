"""A fitted model as tables that anything can score rows with: no networks, no frames, no Python.

A row is a number for each column: its value, or the number of its level in a categorical one; not a
number where it is missing, and ``-1`` for a level that the training data did not have.

Every active term is a table over the entries of its axes. A row stands on one entry of an axis or
between two (:class:`Axis`); those of several are all combinations, the last axis' running fastest.
There it reads the term's ``mean`` and its row ``t`` of the ``table``, linearly in between. With the
rows of all terms in the order of the coordinates, one for the intercept behind them and the factor ``F``,

    mean = intercept + sum of the terms' means,     variance = |F' [t_1, t_2, ..., 1]|^2

on the link scale. Several classes have a vector for each of ``M`` outputs, whose places in a term's
block follow each other, and with ``contrasts`` ``Q`` the covariance ``Q V V' Q'`` of the vectors' products
``V`` with ``F``.

Two things come on top. A missing value where a term has no entry for it makes the term add zero, and its
``unknown_variance`` to the variance. A term with very many levels has no coordinates of its own: it adds
its row of the ``coupling`` to the whole vector, and its ``own_variance`` to the variance.

A new observation of a Gaussian response varies by its noise besides, whose variance is

    noise_variance exp(log_noise + sum of the noise_tables' means) + gap_variance of what is missing

where a missing value without an entry adds nothing to the exponent. Noise tables have no coordinates.
Where the noise is not Gaussian, its ``shape`` is its distribution in units of its standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.core.model.mixtures import NoiseShape
from lanam.core.terms.knots import Categories, Knots, Levels
from lanam.data import Schema
from lanam.explain.tables import describe_terms
from lanam.explain.values import GivenLabels, Labels, OnLinkScale, class_labels
from lanam.families import Family, find_family


@dataclass(frozen=True, eq=False)
class Axis:
    """The entries of a term's table along one column.

    Attributes
    ----------
    kind
        ``"knots"``: entries at ``points``, linear in between, the outermost hold beyond.
        ``"levels"``: an entry for each of ``points``, for a number that is the same to six digits.
        ``"bins"``: an entry for each bin between ``points``, the first below the first of them.
        ``"codes"``: the entry of level ``k`` is ``points[k]``.
    points
        Numbers in the column's unit, or entries.
    n_entries
        How many entries there are.
    missing
        The entry of missing values; None where there is none.
    other
        The entry of everything else; None where there is nothing else.
    """

    kind: str
    points: Array | IntArray
    n_entries: int
    missing: int | None
    other: int | None


@dataclass(frozen=True, eq=False)
class Table:
    """One active term: its place in ``terms_``, its columns, and its tables over their entries.

    Attributes
    ----------
    name, index, features
        Its name, its place among the model's terms, and its columns.
    axes
        One for each column.
    mean, table
        (B,), of several classes (B, C), and (B, r).
    start
        The first of its coordinates.
    unknown_variance
        Of a missing value without an entry, of several classes their covariance; None where every
        axis has one.
    coupling, own_variance
        (B, R) and (B,) of very many levels, else None.
    share
        (B,), of the training data at each entry.
    edited
        (B,), whether each entry was changed by hand after the fit; None where none was.
    """

    name: str
    index: int
    features: tuple[int, ...]
    axes: tuple[Axis, ...]
    mean: Array
    table: Array
    start: int
    unknown_variance: Array | None
    coupling: Array | None
    own_variance: Array | None
    share: Array
    edited: NDArray[np.bool_] | None


@dataclass(frozen=True, eq=False)
class PortableModel(OnLinkScale):
    """A model as tables; the module's text says how to score rows with it.

    Attributes
    ----------
    family
        The response family, which has the link.
    classes
        A classifier's labels.
    intercept
        A number, or one a class of several.
    tables
        Of the active terms.
    factor
        (R, R), lower triangular.
    noise_variance
        Of the Gaussian noise; of counts, their variance in units of their mean; 0 for classes.
    gap_variance
        What a missing value of each column adds to the variance of the noise.
    log_noise, noise_tables
        What the noise variance is multiplied by, if it differs from row to row; 0 and none where it
        does not.
    shape
        Of noise that is not Gaussian, else None.
    contrasts
        (C, M) of several classes, else None.
    """

    family: Family
    classes: Labels
    intercept: Array
    tables: tuple[Table, ...]
    factor: Array
    noise_variance: float
    gap_variance: Array
    contrasts: Array | None
    log_noise: float = 0.0
    noise_tables: tuple[Table, ...] = ()
    shape: NoiseShape | None = None


def explain_portable(
    model: FittedModel, schema: Schema, classes: GivenLabels = None
) -> PortableModel:
    """The tables of a fitted model; ``classes`` are a classifier's labels."""
    names = [term.name for term in describe_terms(model, schema)]
    gaps = np.zeros(schema.n_columns) if model.missing_variance is None else model.missing_variance
    return PortableModel(
        family=find_family(model.likelihood),
        classes=class_labels(model, classes),
        intercept=np.asarray(model.intercept, dtype=np.float64),
        tables=tuple(
            _table(model, index, names[index])
            for index, term in enumerate(model.terms)
            if term.active
        ),
        factor=model.cov_cholesky,
        noise_variance=float(model.noise_variance),
        gap_variance=np.array(gaps, dtype=np.float64),
        contrasts=model.contrasts,
        log_noise=0.0 if model.noise is None else float(model.noise.intercept),
        noise_tables=() if model.noise is None else _noise_tables(model.noise, schema),
        shape=model.shape,
    )


def _noise_tables(noise: FittedModel, schema: Schema) -> tuple[Table, ...]:
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


def _table(model: FittedModel, index: int, name: str) -> Table:
    term = model.terms[index]
    assert term.entries is not None
    axes = tuple(map(_axis, term.entries.axes))
    complete = all(axis.missing is not None or axis.other is not None for axis in axes)
    return Table(
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
        share=term.data_mass,
        edited=term.edited,
    )


def _axis(entries: Knots | Levels | Categories) -> Axis:
    if isinstance(entries, Categories):
        last = entries.n_own + 1
        return Axis("codes", entries.entry_of, len(entries), entries.n_own, last)
    if isinstance(entries, Knots):
        missing = len(entries.points) if entries.missing else None
        return Axis("knots", entries.values, len(entries), missing, None)
    # Without an entry for missing values, theirs is that of everything else: the last.
    kind, points = ("levels", entries.points) if entries.exact else ("bins", entries.edges)
    own = points * entries.scale
    return Axis(kind, own, len(entries), len(entries.points), len(entries) - 1)
