"""Terms of a fitted model, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, Intercept
from lanam.core.model.draws import JointRoot
from lanam.explain.bands import Banded, around, half_width
from lanam.explain.questions import AskedCurve
from lanam.explain.slices import N_SLICES, slices
from lanam.explain.values import PREFIXES, PlainData, Values, plain
from lanam.text import brief, cut, term_name

#: Entries of tables for missing values, and for categories (or single values) without their own entry.
MISSING = "(missing)"
OTHER_LEVELS = "(other levels)"
_OTHER_VALUES = "(other values)"

#: Names of terms, and of each column of an interaction, are cut to this many characters.
MAX_LONG_NAME = 40
_MAX_SIDE = 20

#: What a ``repr`` shows of a term.
_FACTS = ("name", "kind", "status", "importance")

#: An effect that belongs to none of the values: its name, mean, standard deviation and density.
Other: TypeAlias = tuple[str, Intercept, Intercept, float]


@dataclass(frozen=True, eq=False, repr=False)
class Term(PlainData):
    """One term of the additive model.

    Attributes
    ----------
    name
        The column's name; ``"<column> (levels)"`` for per-value effects, ``"a x b"`` for an interaction
        (``"a x b (interaction)"`` if a column is named "a x b").
    kind
        ``"smooth"``, ``"categorical"``, ``"level"`` (per-value effects of a numeric column), ``"pair"`` or
        ``"interaction"`` (of more than two columns), ``"spatial"`` (a surface of two coordinates).
    features, feature_names, feature_kinds
        Indices, names and kinds (``"numeric"`` or ``"categorical"``) of the term's columns.
    status, active
        ``"active"`` or why the term was dropped, and whether it contributes.
    importance
        Mean absolute contribution over the training data, and over classes if there are several.
    importance_of_missingness
        The part of the importance that is due to whether the value is missing; the rest is due to the
        value. Zero for columns without missing values and for interactions, which are not split.
    effective_parameters
        Effective degrees of freedom (edf).
    evidence
        Log evidence gain: how much of the log evidence is due to the term (approximate, the other
        hyperparameters fixed); for a dropped term, its value when it was dropped.
    was_edited
        Whether the term was edited after the fit; evidence and edf are then still those of the fit.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "sex"]], y)
    >>> term = model.terms_[0]
    >>> term.name, term.kind, term.active
    ('bmi', 'smooth', True)
    """

    name: str
    kind: str
    features: tuple[int, ...]
    feature_names: tuple[str, ...]
    feature_kinds: tuple[str, ...]
    status: str
    active: bool
    importance: float
    importance_of_missingness: float
    effective_parameters: float
    evidence: float
    was_edited: bool

    @property
    def joint(self) -> bool:
        """Whether the term is an interaction."""
        return len(self.features) > 1

    @property
    def missingness(self) -> float:
        """The fraction of the importance that is due to whether the value is missing."""
        return self.importance_of_missingness / (self.importance or 1.0)

    def __repr__(self) -> str:
        return brief(self, *_FACTS)


def term_names(terms: Sequence[Term]) -> list[str]:
    """Terms' names, shortened; of an interaction each of its columns' names."""
    singles = [term.name for term in terms if not term.joint]
    columns = [name for term in terms if term.joint for name in term.feature_names]
    short = dict(zip(singles, cut(singles, MAX_LONG_NAME), strict=True))
    sides = dict(zip(columns, cut(columns, _MAX_SIDE), strict=True))
    return [
        term_name([sides[name] for name in term.feature_names], short.values())
        if term.joint
        else short[term.name]
        for term in terms
    ]


@dataclass(frozen=True, eq=False, repr=False)
class TabulatedTerm(Term, Banded):
    """A term with its function: the common part of :class:`Shape` and :class:`Surface`.

    Attributes
    ----------
    importance_std
        Posterior standard deviation of the importance.
    mean, std
        Posterior mean and standard deviation at the tabulated points; the last axis has the classes if
        there are more than two.
    density
        Fraction of the training data at each point.
    inside
        Whether a point lies within the range of the training data.
    largest_deviations
        Posterior draws, ascending, of the largest absolute deviation of the function from its mean, in
        standard deviations: over all points ``inside``, and over missing and other values that occur in the
        training data. Their quantiles are the half-widths of simultaneous bands. One column per class if
        there are more than two; empty for a dropped term.
    edited
        Whether the function was edited there; its band is then not inferred from the data.
    """

    importance_std: float
    mean: Array
    std: Array
    density: Array
    inside: NDArray[np.bool_]
    edited: NDArray[np.bool_]
    largest_deviations: Array

    def importance_interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Normal credible interval of the importance, truncated at zero.

        The importance is that of the mean function. Whether the data support the term is measured by
        ``evidence``.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability.

        Returns
        -------
        lower, upper : float
        """
        lower, upper = around(self.importance, self.importance_std, half_width(coverage))
        return max(lower, 0.0), upper

    def __repr__(self) -> str:
        return brief(self, *_FACTS, "mean")


@dataclass(frozen=True, eq=False, repr=False)
class Shape(TabulatedTerm, AskedCurve):
    """A univariate term with its shape function: the contribution of every value of the column.

    Attributes
    ----------
    values
        Points of the table: numbers in the column's unit (linear in between), single values or bin
        centres of a ``"level"`` term, or the labels of categories, without those that are too rare.
        Empty if the column has no values, or duplicates another column.
    mean, std, density, inside, edited, largest_deviations, importance_std
        At these points, as for every :class:`TabulatedTerm`; with ``missing_density`` and
        ``unseen_density`` the densities sum to one.
    missing_mean, missing_std, missing_density, missing_edited
        The same for missing values; None if the training data had none in this column.
    unseen_mean, unseen_std, unseen_density, unseen_edited
        The same for unseen values: an unseen category, an unseen value of a ``"level"`` term, or a
        missing value if the training data had none. The rarest of many categories are included, with
        their density. None if there is no such value.
    posterior
        The joint posterior of an active curve at its ``values``, for :meth:`derivative`, :meth:`peak`,
        :meth:`trough` and :meth:`crossing`; None otherwise. Not part of the plain data.

    Examples
    --------
    >>> import pandas as pd
    >>> from lanam import LANAMRegressor
    >>> X = pd.DataFrame({"city": ["Rome", "Bonn", None, "Rome", "Bonn", None] * 20})
    >>> y = X["city"].map({"Rome": 1.0, "Bonn": -1.0}).fillna(0.5) + [0.1, -0.1] * 60
    >>> city = LANAMRegressor(random_state=0).fit(X, y).explain_global()["city"]
    >>> city.kind, city.values.tolist(), city.density.round(2).tolist()
    ('categorical', ['Bonn', 'Rome'], [0.33, 0.33])
    >>> bool(city.missing_mean > 0), round(city.missing_density, 2)
    (True, 0.33)
    >>> bool(city.unseen_std > city.std.max())
    True
    >>> lower, upper = city.band(coverage=0.9)
    >>> bool(lower[1] > upper[0])  # Rome is above Bonn
    True
    """

    values: Values
    missing_mean: float | Array | None
    missing_std: float | Array | None
    missing_density: float | None
    missing_edited: bool | None
    unseen_mean: float | Array | None
    unseen_std: float | Array | None
    unseen_density: float | None
    unseen_edited: bool | None
    posterior: JointRoot | None = None

    @property
    def others(self) -> tuple[Other, ...]:
        """Effects of missing values and of other values: name, mean, std and density of each."""
        unseen = {"categorical": OTHER_LEVELS, "level": _OTHER_VALUES}.get(self.kind)
        entries = (
            (MISSING, self.missing_mean, self.missing_std, self.missing_density),
            (unseen, self.unseen_mean, self.unseen_std, self.unseen_density),
        )
        return tuple(
            (name, mean, std, density)
            for name, mean, std, density in entries
            if name is not None and mean is not None and std is not None and density is not None
        )

    @property
    def others_edited(self) -> tuple[bool, ...]:
        """Whether each of ``others`` was edited."""
        flags = {MISSING: self.missing_edited}
        return tuple(bool(flags.get(name, self.unseen_edited)) for name, *_ in self.others)

    def others_band(
        self, coverage: float = 0.95, simultaneous: bool = False
    ) -> dict[str, tuple[Any, Any]]:
        """The :meth:`band` of each of ``others``, by name.

        Parameters
        ----------
        coverage : float, default=0.95
        simultaneous : bool, default=False
            As for :meth:`band`, which covers only what occurs in the training data.

        Returns
        -------
        bands : dict
            By name: ``"(missing)"``, ``"(other levels)"`` or ``"(other values)"``.
        """
        half = self.half_width(coverage, simultaneous)
        return {name: around(mean, std, half) for name, mean, std, _ in self.others}


@dataclass(frozen=True, eq=False, repr=False)
class SurfaceAxis:
    """One column of an interaction: the entries of its tables along this axis.

    Attributes
    ----------
    name, kind
        Of the column; ``"numeric"`` or ``"categorical"``.
    values
        Numbers in the column's unit (linear in between), or labels of categories.
    others
        The entries after those of the values: ``"(missing)"``, and ``"(other levels)"`` for rare and unseen
        categories.
    density
        Fraction of the training data at each entry.
    inside
        Whether an entry lies within the range of the training data.
    """

    name: str
    kind: str
    values: Values
    others: tuple[str, ...]
    density: Array
    inside: NDArray[np.bool_]

    def __repr__(self) -> str:
        return brief(self, "name", "kind", "values", "others")


@dataclass(frozen=True, eq=False, repr=False)
class Surface(TabulatedTerm):
    """An interaction with its function: the joint effect of its columns beyond their lower-order effects.

    The function is purified: its mean over the training data is zero at every value of either column, or of
    three columns at all values of any two. A surface of coordinates (``spatial``) is not, and has their
    main effects.

    Attributes
    ----------
    axes
        The grid of the table, one :class:`SurfaceAxis` per column.
    values, second_values, others, second_others
        Of the first two axes.
    mean, std, density, inside, edited, largest_deviations, importance_std
        On this grid, as for every :class:`TabulatedTerm`; ``inside`` holds for all columns, and densities
        sum to one.
    unseen_std
        The standard deviation where a value is missing and the training data had none; the mean is zero.
        None if all columns have an entry for missing values.
    """

    axes: tuple[SurfaceAxis, ...]
    unseen_std: float | Array | None

    @property
    def spatial(self) -> bool:
        """Whether it is a surface of coordinates, with their main effects."""
        return self.kind == "spatial"

    @property
    def values(self) -> Values:
        """The values of the first column."""
        return self.axes[0].values

    @property
    def second_values(self) -> Values:
        """The values of the second column."""
        return self.axes[1].values

    @property
    def others(self) -> tuple[str, ...]:
        """The further entries of the first column."""
        return self.axes[0].others

    @property
    def second_others(self) -> tuple[str, ...]:
        """The further entries of the second column."""
        return self.axes[1].others

    def slices(self, by: str | None = None, n_slices: int = N_SLICES) -> tuple[Surface, ...]:
        """An interaction of three columns as interactions of two, at some values of the third.

        Parameters
        ----------
        by : str, default=None
            The column whose values the slices are at; by default one of categories, or else the last one.
        n_slices : int, default=3
            The largest number of slices: at the most frequent categories, or at the tabulated values in the
            middles of this many equal parts of the data.

        Returns
        -------
        slices : tuple of Surface
            Mean and standard deviation are those of the table, and densities are given the slice. There are
            no simultaneous bands. Of two columns it is the interaction itself.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(400, 3))
        >>> model = LANAMRegressor(interactions=[(0, 1, 2)]).fit(X, X.prod(axis=1))
        >>> surface = model.explain_global()["x0 x x1 x x2"]
        >>> [one.feature_names for one in surface.slices("x0")]
        [('x1', 'x2'), ('x1', 'x2'), ('x1', 'x2')]
        """
        return (self,) if len(self.axes) == 2 else slices(self, by, n_slices)

    def to_dict(self) -> dict[str, Any]:
        """The term as plain data, ready for JSON."""
        facts = {name: plain(value) for name, value in vars(self).items() if name != "axes"}
        for place, axis in enumerate(self.axes):
            for name in ("values", "others"):
                facts[PREFIXES[place] + name] = plain(getattr(axis, name))
        return facts
