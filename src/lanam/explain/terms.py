"""What a model has learned about each of its terms, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.explain.values import plain

#: What tables call the entry of missing values, and that of all levels without one of their own.
MISSING = "(missing)"

OTHER_LEVELS = "(other levels)"

#: The same for a term of single values.
_OTHER_VALUES = "(other values)"


@dataclass(frozen=True, eq=False)
class Term:
    """What was learned about one term of the sum.

    Attributes
    ----------
    name
        The column's name; ``"<column> (levels)"`` for the effects of single values, ``"a x b"`` for a
        pair.
    kind
        ``"smooth"``, ``"categorical"``, ``"level"`` (single values of a numeric column) or ``"pair"``.
    features, feature_names, feature_kinds
        The term's columns, by index and by name, and whether each is ``"numeric"`` or
        ``"categorical"``.
    status, active
        ``"active"`` or why the term was switched off, and whether it contributes.
    importance
        Mean absolute contribution over the training data; of several classes, their mean.
    effective_parameters
        How many parameters the data determined.
    evidence
        By how much the log evidence would fall without the term; for one that was switched off,
        what it had when it was.

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

    def to_dict(self) -> dict[str, Any]:
        """The term as plain data, ready for JSON."""
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Shape(Term):
    """A term with its function: what every value of the column adds to the prediction.

    Attributes
    ----------
    importance_std
        Posterior standard deviation of the importance.
    values
        Where the function is tabulated: values of a smooth term in the column's unit (linear in
        between), single values (the middles of bins, where there were too many), or the labels of
        a categorical column, in the data's order (those that are not too rare to be told apart).
        Empty where a column has no values, or the same ones as another column.
    mean, std
        Posterior mean and standard deviation of the function there; with a last axis of classes where
        there are more than two.
    density
        Share of the training data at each value; with ``missing_density`` and ``unseen_density`` they
        sum to one.
    inside
        Whether the value lies within the range of the training data.
    missing_mean, missing_std, missing_density
        The same for missing values; None where the training data had none in this column.
    unseen_mean, unseen_std, unseen_density
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
    """

    importance_std: float
    values: NDArray[Any]
    mean: Array
    std: Array
    density: Array
    inside: NDArray[np.bool_]
    missing_mean: float | Array | None
    missing_std: float | Array | None
    missing_density: float | None
    unseen_mean: float | Array | None
    unseen_std: float | Array | None
    unseen_density: float | None

    @property
    def others(self) -> tuple[tuple[str, Any, Any, float], ...]:
        """What is not a value but has an effect of its own: name, mean, std and density of each."""
        found: list[tuple[str, Any, Any, float]] = []
        if self.missing_density is not None:
            found.append((MISSING, self.missing_mean, self.missing_std, self.missing_density))
        if self.unseen_density is not None and self.kind != "smooth":
            name = OTHER_LEVELS if self.kind == "categorical" else _OTHER_VALUES
            found.append((name, self.unseen_mean, self.unseen_std, self.unseen_density))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Surface(Term):
    """A pair with its function: what two columns together add beyond what either adds alone.

    Its mean over the training data is zero at every value of either column.

    Attributes
    ----------
    importance_std
        Posterior standard deviation of the importance.
    values, second_values
        The grid on which the function is tabulated: numbers in the column's unit (linear in between),
        or the labels of the levels that have a row of their own.
    others, second_others
        What the tables' further rows and columns are, after those of the values: ``"(missing)"`` for
        missing values, ``"(other levels)"`` for all levels not in ``values``, rare ones and new ones.
    mean, std
        Posterior mean and standard deviation of the function, (values and others, second values and
        second others); with a last axis of classes where there are more than two.
    density
        Share of the training data at each point of the grid; they sum to one.
    inside
        Whether a point lies within what the training data had in both columns.
    unseen_std
        The standard deviation where a column's value is missing and none was in the training data;
        the mean is zero. None where both columns have an entry for that.
    """

    importance_std: float
    values: NDArray[Any]
    second_values: NDArray[Any]
    others: tuple[str, ...]
    second_others: tuple[str, ...]
    mean: Array
    std: Array
    density: Array
    inside: NDArray[np.bool_]
    unseen_std: float | Array | None
