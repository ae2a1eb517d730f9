"""What a model has learned about each of its terms, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, Intercept
from lanam.explain.bands import Banded, around, half_width
from lanam.explain.values import PLACES, PlainData, Values, plain
from lanam.text import cut

#: Entries of tables for missing values, and for categories (or single values) without their own entry.
MISSING = "(missing)"
OTHER_LEVELS = "(other levels)"
_OTHER_VALUES = "(other values)"

#: Names of terms, and of each column of an interaction, are cut to this many characters.
MAX_LONG_NAME = 40
_MAX_SIDE = 20

#: An effect that belongs to none of the values: its name, mean, standard deviation and density.
Other: TypeAlias = tuple[str, Intercept, Intercept, float]


@dataclass(frozen=True, eq=False)
class Term(PlainData):
    """What was learned about one term of the sum.

    Attributes
    ----------
    name
        The column's name; ``"<column> (levels)"`` for the effects of single values, ``"a x b"`` for a
        pair.
    kind
        ``"smooth"``, ``"categorical"``, ``"level"`` (single values of a numeric column), ``"pair"`` or
        ``"interaction"`` (of more columns).
    features, feature_names, feature_kinds
        The term's columns, by index and by name, and whether each is ``"numeric"`` or
        ``"categorical"``.
    status, active
        ``"active"`` or why the term was switched off, and whether it contributes.
    importance
        Mean absolute contribution over the training data; of several classes, their mean. How sure it is
        stands in explanations, as ``importance_std`` and ``importance_interval``.
    effective_parameters
        How many parameters the data determined.
    evidence
        By how much the log evidence would fall without the term; for one that was switched off,
        what it had when it was.
    was_edited
        Whether the term was changed by hand after the fit, of which its evidence and its effective
        parameters still are.

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
    effective_parameters: float
    evidence: float
    was_edited: bool

    @property
    def joint(self) -> bool:
        """Whether the term is of several columns."""
        return len(self.features) > 1


def term_names(terms: Sequence[Term]) -> list[str]:
    """Terms' names, shortened; of an interaction each of its columns' names."""
    singles = [term.name for term in terms if not term.joint]
    columns = [name for term in terms if term.joint for name in term.feature_names]
    short = dict(zip(singles, cut(singles, MAX_LONG_NAME), strict=True))
    sides = dict(zip(columns, cut(columns, _MAX_SIDE), strict=True))
    return [
        " x ".join(sides[name] for name in term.feature_names) if term.joint else short[term.name]
        for term in terms
    ]


@dataclass(frozen=True, eq=False)
class TabulatedTerm(Term, Banded):
    """A term with its function: what shapes of one column and surfaces of several have in common.

    Attributes
    ----------
    importance_std
        Posterior standard deviation of the importance.
    mean, std
        Posterior mean and standard deviation of the function where it is tabulated; with a last axis of
        classes where there are more than two.
    density
        Share of the training data there.
    inside
        Whether a place lies within the range of the training data.
    largest_deviations
        Posterior draws, ascending, of the largest deviation of the function from its mean, in standard
        deviations: over all places that lie ``inside``, and over missing and other values if the
        training data had any. Their quantiles are the half-widths of simultaneous bands. One column a
        class where there are more than two; empty for a term that is switched off.
    edited
        Whether the function was changed by hand there: its band, of no width where it was set to zero,
        is then not what the data says.
    """

    importance_std: float
    mean: Array
    std: Array
    density: Array
    inside: NDArray[np.bool_]
    edited: NDArray[np.bool_]
    largest_deviations: Array

    def importance_interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Where the importance lies: so many of its standard deviations around it, but not below zero.

        The importance is that of the mean function. Both say how much the term moves predictions of
        the training data; whether it is needed at all is said by ``evidence``.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability of the interval, as for a normal distribution.

        Returns
        -------
        lower, upper : float
        """
        lower, upper = around(self.importance, self.importance_std, half_width(coverage))
        return max(lower, 0.0), upper


@dataclass(frozen=True, eq=False)
class Shape(TabulatedTerm):
    """A term with its function: what every value of the column adds to the prediction.

    Attributes
    ----------
    values
        Where the function is tabulated: values of a smooth term in the column's unit (linear in
        between), single values (the middles of bins, where there were too many), or the labels of
        a categorical column, in the data's order (those that are not too rare to be told apart).
        Empty where a column has no values, or the same ones as another column.
    mean, std, density, inside, edited, largest_deviations, importance_std
        Of the function there, as of every :class:`TabulatedTerm`; with ``missing_density`` and
        ``unseen_density`` the densities sum to one.
    missing_mean, missing_std, missing_density, missing_edited
        The same for missing values; None where the training data had none in this column.
    unseen_mean, unseen_std, unseen_density, unseen_edited
        For a value that is like none of ``values``: a new level of a categorical column or of a term of
        single values, or a missing value where none was missing. Of very many levels the rarest are
        among them, and ``unseen_density`` is their share; otherwise it is zero. None where there is no
        such value.

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

    @property
    def others(self) -> tuple[Other, ...]:
        """What is not a value but has an effect of its own: name, mean, std and density of each."""
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
        """Whether each of ``others`` was changed by hand."""
        flags = {MISSING: self.missing_edited}
        return tuple(bool(flags.get(name, self.unseen_edited)) for name, *_ in self.others)

    def others_band(
        self, coverage: float = 0.95, simultaneous: bool = False
    ) -> dict[str, tuple[Any, Any]]:
        """Lower and upper ends of ``band`` for each of ``others``, by its name.

        Parameters
        ----------
        coverage : float, default=0.95
        simultaneous : bool, default=False
            As for :meth:`band`; what the training data had none of is not part of its promise.

        Returns
        -------
        bands : dict
            Of ``"(missing)"``, ``"(other levels)"`` and ``"(other values)"`` those that there are.
        """
        half = self.half_width(coverage, simultaneous)
        return {name: around(mean, std, half) for name, mean, std, _ in self.others}


@dataclass(frozen=True, eq=False)
class SurfaceAxis:
    """One column of a term of several: where its tables have entries along it.

    Attributes
    ----------
    name, kind
        The column's, ``"numeric"`` or ``"categorical"``.
    values
        Numbers in the column's unit (the function is linear in between), or the labels of the levels
        that have an entry of their own.
    others
        What the further entries are, after those of the values: ``"(missing)"`` for missing values,
        ``"(other levels)"`` for all levels not in ``values``, rare ones and new ones.
    density
        Share of the training data at each entry.
    inside
        Whether an entry lies within what the training data had in the column.
    """

    name: str
    kind: str
    values: Values
    others: tuple[str, ...]
    density: Array
    inside: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Surface(TabulatedTerm):
    """A pair with its function: what two columns together add beyond what either adds alone.

    Its mean over the training data is zero at every value of either column. Of more columns, what they
    add together beyond what fewer of them do.

    Attributes
    ----------
    axes
        The grid on which the function is tabulated, a :class:`SurfaceAxis` for every column.
    values, second_values, others, second_others
        Those of the first two axes.
    mean, std, density, inside, edited, largest_deviations, importance_std
        Of the function on this grid, as of every :class:`TabulatedTerm`; tables have an axis for each of
        ``axes``, densities sum to one, and what is ``inside`` is so in every column.
    unseen_std
        The standard deviation where a column's value is missing and none was in the training data;
        the mean is zero. None where all columns have an entry for that.
    """

    axes: tuple[SurfaceAxis, ...]
    unseen_std: float | Array | None

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

    def to_dict(self) -> dict[str, Any]:
        """The term as plain data, ready for JSON; ``second_values`` are those of the second column."""
        facts = {name: plain(value) for name, value in vars(self).items() if name != "axes"}
        for place, axis in enumerate(self.axes):
            for name in ("values", "others"):
                facts[PLACES[place] + name] = plain(getattr(axis, name))
        return facts
