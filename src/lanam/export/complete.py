"""A model's tables in a uniform layout, and names of inputs and results: what every format is written from.

Tables of :mod:`lanam.explain.portable` have two special cases: missing values without an entry, and terms
of very many levels without coordinates of their own. Here every axis has an entry for missing values, and
every term has ``rows`` that it adds to the vector of all coordinates from ``start`` on. With the ``M``
vectors ``x_k`` of a row and the factor ``F``,

    mean = intercept + sum of means,    covariance = Q (F' x_k)(F' x_l)' Q' + sum of own covariances.

Terms of heteroscedastic noise have the same layout, with means only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lanam.data import Schema, find_column
from lanam.errors import InputError, Setting
from lanam.explain.portable import PortableModel, TableAxis, TermTable

Array = NDArray[np.float64]

_Entry = TypeVar("_Entry", np.float64, np.bool_)
Hook = TypeVar("Hook", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class CompleteTerm:
    """One active term with B entries: the product of those of its axes, the last varying fastest.

    ``mean`` (B, C) has a column per class, ``share`` (B,) the distribution of the training data. ``rows``
    (B, r) are added to the coordinates from ``start`` on; of output ``k``, from ``start + k r`` on.
    ``own_covariance`` (B, C, C) is covariance besides that of the coordinates, ``edited`` (B,) marks edited
    entries.
    """

    name: str
    features: tuple[int, ...]
    axes: tuple[TableAxis, ...]
    mean: Array
    share: Array
    rows: Array
    start: int
    own_covariance: Array | None
    edited: NDArray[np.bool_] | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of entries of each axis."""
        return tuple(axis.n_entries for axis in self.axes)


@dataclass(frozen=True, eq=False)
class CompleteModel:
    """A model whose terms have a uniform layout.

    ``noise_terms`` model the log of the factor of the noise variance. ``intercept`` (C,) and
    ``contrasts`` (C, M) have C = M = 1 unless there are several classes.
    """

    portable: PortableModel
    terms: tuple[CompleteTerm, ...]
    noise_terms: tuple[CompleteTerm, ...]
    intercept: Array
    contrasts: Array

    @property
    def n_classes(self) -> int:
        """The number of classes C."""
        return len(self.intercept)

    @property
    def n_outputs(self) -> int:
        """The number of outputs M."""
        return int(self.contrasts.shape[1])

    def factor_rows(self, term: CompleteTerm, output: int) -> Array:
        """The factor's rows of a term's coordinates (r, R)."""
        width = term.rows.shape[1]
        start = term.start + output * width
        return self.portable.factor[start : start + width]

    def factor_last(self, output: int) -> Array:
        """The factor's row of the intercept (R,)."""
        row: Array = self.portable.factor[len(self.portable.factor) - self.n_outputs + output]
        return row

    def factor_of(self, output: int) -> Array:
        """The factor's rows of the coordinates of all terms, and of the intercept."""
        rows = [self.factor_rows(term, output) for term in self.terms]
        return np.concatenate([*rows, self.factor_last(output)[None]])

    def variances(self, term: CompleteTerm) -> Array:
        """A term's variance by itself at its entries (B, C)."""
        outputs = [term.rows @ self.factor_rows(term, k) for k in range(self.n_outputs)]
        vectors = np.einsum("ck,kbr->bcr", self.contrasts, np.stack(outputs))
        own = (
            0.0
            if term.own_covariance is None
            else np.diagonal(term.own_covariance, axis1=1, axis2=2)
        )
        return np.asarray(np.square(vectors).sum(axis=2) + own)

    @property
    def features(self) -> tuple[int, ...]:
        """Columns that predictions or intervals depend on, ascending.

        The first column if there are none, since something must give the number of rows.
        """
        terms = (*self.terms, *self.noise_terms)
        read = {feature for term in terms for feature in term.features}
        read |= set(np.flatnonzero(self.portable.missing_variance).tolist())
        return tuple(sorted(read or {0}))


def complete(portable: PortableModel) -> CompleteModel:
    """The model with an entry for missing values on every axis."""
    intercept = np.atleast_1d(portable.intercept)
    contrasts = np.ones((1, 1)) if portable.contrasts is None else portable.contrasts
    terms = tuple(_term(table, len(intercept)) for table in portable.tables)
    noise_terms = tuple(_term(table, 1) for table in portable.noise_tables)
    return CompleteModel(portable, terms, noise_terms, intercept, contrasts)


def _term(table: TermTable, n_classes: int) -> CompleteTerm:
    shape = tuple(axis.n_entries for axis in table.axes)
    lacking = tuple(axis.missing is None for axis in table.axes)
    padding = [(0, int(lack)) for lack in lacking]

    def padded(values: NDArray[_Entry]) -> NDArray[_Entry]:
        """Values at the entries, and zeros at added ones."""
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
    return CompleteTerm(
        name=table.name,
        features=table.features,
        axes=tuple(map(_with_missing, table.axes)),
        mean=padded(table.mean.reshape(len(table.mean), -1)),
        share=padded(table.data_mass),
        rows=padded(table.table if table.coupling is None else table.coupling),
        start=table.start if table.coupling is None else 0,
        own_covariance=own,
        edited=None if table.edited is None else padded(table.edited),
    )


def _with_missing(axis: TableAxis) -> TableAxis:
    if axis.missing is not None:
        return axis
    return replace(axis, n_entries=axis.n_entries + 1, missing=axis.n_entries)


def model_names(
    schema: Schema, features: Sequence[int], columns: Mapping[str, str] | None
) -> dict[int, str]:
    """The input names of these features; ``columns`` renames some."""
    names = list(schema.names)
    for name, other in (columns or {}).items():
        names[find_column(name, schema.names, "columns")] = other
    return {feature: names[feature] for feature in features}


def require_apart(names: Sequence[str], why: str) -> None:
    """Reject names that differ only in case."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise ValueError(f"{seen[name.lower()]!r} and {name!r} both name a column, and {why}")
        seen[name.lower()] = name


def hook_of(hooks: Mapping[str, Hook], portable: PortableModel) -> Hook:
    """How a format writes the predictions of a model's family, if it can."""
    name = portable.family.name
    if name not in hooks:
        problem = "predictions of {family} are not supported in this format"
        remedy = "{pass variance=False} for the link's mean alone"
        raise InputError(problem, remedy, family=Setting("likelihood", name))
    return hooks[name]


def results_of(portable: PortableModel, variance: bool) -> list[str]:
    """The names of an export's results, in order; classes whose names differ only in case are numbered."""
    labels = [str(label) for label in portable.labels or ()]
    if len({label.lower() for label in labels}) < len(labels):
        labels = [str(number) for number in range(len(labels))]
    names = ["link_mean"] + (["link_variance"] if variance else [])
    if portable.family.link.several:
        names = [f"{kind}_{label}" for kind in names for label in labels]
    if not variance:
        return names
    if not portable.family.link.classes:
        return [*names, "prediction", "observation_variance"]
    return [*names, *(f"probability_{label}" for label in labels)]
