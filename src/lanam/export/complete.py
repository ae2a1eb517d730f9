"""A model's tables without exceptions: what every format is written from.

:mod:`lanam.explain.portable` says how tables are read, with two things on top: missing values without an
entry, and very many levels without coordinates of their own. Here every axis has an entry for missing
values, and every term some ``rows`` that it adds to the vector of all coordinates from ``start`` on. With
the ``M`` vectors of a row and the factor ``F``,

    mean = intercept + sum of means,    covariance = Q (F' x_k)(F' x_l)' Q' + sum of own covariances.

Terms of noise that differs from row to row are read as any others are; they have means only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lanam.explain.portable import Axis, PortableModel, Table

Array = NDArray[np.float64]

_Entry = TypeVar("_Entry", np.float64, np.bool_)


@dataclass(frozen=True, eq=False)
class Term:
    """One active term, by the entries of its axes; of several, the last's run fastest.

    Attributes
    ----------
    name, features
        Its name, and its columns by index.
    axes
        One for each column; every one has an entry for missing values.
    mean, share
        (B, C) and (B,): what it adds for each class (one column, where there are none), and the share
        of the training data.
    rows, start
        (B, r): what it adds to the coordinates from ``start`` on; of output ``k``, from
        ``start + k r`` on.
    own
        (B, C, C), covariance that no coordinate has; None where there is none.
    edited
        (B,), whether entries were changed by hand after the fit; None where none was.
    """

    name: str
    features: tuple[int, ...]
    axes: tuple[Axis, ...]
    mean: Array
    share: Array
    rows: Array
    start: int
    own: Array | None
    edited: NDArray[np.bool_] | None

    @property
    def shape(self) -> tuple[int, ...]:
        """How many entries each axis has."""
        return tuple(axis.n_entries for axis in self.axes)


@dataclass(frozen=True, eq=False)
class CompleteModel:
    """A model whose terms are read alike.

    Attributes
    ----------
    portable
        The model as it was.
    terms
        Its active terms.
    noise_terms
        The same of the logarithm of what its noise is multiplied by; none where that is the same
        everywhere.
    intercept
        (C,), where one class stands for a model without classes, or with two.
    contrasts
        (C, M), one where there is one output.
    """

    portable: PortableModel
    terms: tuple[Term, ...]
    noise_terms: tuple[Term, ...]
    intercept: Array
    contrasts: Array

    @property
    def n_classes(self) -> int:
        """How many sums a row has."""
        return len(self.intercept)

    @property
    def n_outputs(self) -> int:
        """How many vectors are behind them."""
        return int(self.contrasts.shape[1])

    def factor_rows(self, term: Term, output: int) -> Array:
        """The factor's rows of a term's coordinates (r, R)."""
        width = term.rows.shape[1]
        start = term.start + output * width
        return self.portable.factor[start : start + width]

    def factor_last(self, output: int) -> Array:
        """The factor's row of the intercept (R,)."""
        row: Array = self.portable.factor[len(self.portable.factor) - self.n_outputs + output]
        return row

    def variances(self, term: Term) -> Array:
        """A term's variance by itself at its entries (B, C)."""
        outputs = [term.rows @ self.factor_rows(term, k) for k in range(self.n_outputs)]
        vectors = np.einsum("ck,kbr->bcr", self.contrasts, np.stack(outputs))
        own = 0.0 if term.own is None else np.diagonal(term.own, axis1=1, axis2=2)
        return np.asarray(np.square(vectors).sum(axis=2) + own)

    @property
    def features(self) -> tuple[int, ...]:
        """Columns that predictions or their noise depend on, ascending; gaps may widen intervals in others.

        The first column, if there are none: somebody must say how many rows there are.
        """
        terms = (*self.terms, *self.noise_terms)
        read = {feature for term in terms for feature in term.features}
        read |= set(np.flatnonzero(self.portable.gap_variance).tolist())
        return tuple(sorted(read or {0}))


def complete(portable: PortableModel) -> CompleteModel:
    """The model with an entry for everything."""
    intercept = np.atleast_1d(portable.intercept)
    contrasts = np.ones((1, 1)) if portable.contrasts is None else portable.contrasts
    terms = tuple(_term(table, len(intercept)) for table in portable.tables)
    noise_terms = tuple(_term(table, 1) for table in portable.noise_tables)
    return CompleteModel(portable, terms, noise_terms, intercept, contrasts)


def _term(table: Table, n_classes: int) -> Term:
    shape = tuple(axis.n_entries for axis in table.axes)
    lacking = tuple(axis.missing is None for axis in table.axes)
    padding = [(0, int(lack)) for lack in lacking]

    def padded(values: NDArray[_Entry]) -> NDArray[_Entry]:
        """Values at the entries, and zeros at those that are added."""
        cells = values.reshape(*shape, *values.shape[1:])
        added = np.pad(cells, padding + [(0, 0)] * (values.ndim - 1))
        return added.reshape(math.prod(added.shape[: len(shape)]), *values.shape[1:])

    own = None
    if table.own_variance is not None:
        own = padded(table.own_variance)[:, None, None]
    if any(lacking) and table.unknown_variance is not None:
        spread = np.reshape(table.unknown_variance, (n_classes, n_classes))
        added = padded(np.ones(len(table.mean))) == 0.0
        own = np.where(added[:, None, None], spread, 0.0 if own is None else own)
    return Term(
        name=table.name,
        features=table.features,
        axes=tuple(map(_with_missing, table.axes)),
        mean=padded(table.mean.reshape(len(table.mean), -1)),
        share=padded(table.share),
        rows=padded(table.table if table.coupling is None else table.coupling),
        start=table.start if table.coupling is None else 0,
        own=own,
        edited=None if table.edited is None else padded(table.edited),
    )


def _with_missing(axis: Axis) -> Axis:
    if axis.missing is not None:
        return axis
    return replace(axis, n_entries=axis.n_entries + 1, missing=axis.n_entries)


def reshaped(term: Term, values: Array) -> Array:
    """Values at a term's entries, by its axes."""
    return values.reshape(*term.shape, *values.shape[1:])


def names_of(term: Term, names: Sequence[str]) -> list[str]:
    """The names of a term's columns."""
    return [names[feature] for feature in term.features]
