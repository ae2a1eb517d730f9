"""The whole model explained: every term's function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model.fitted import FittedModel
from lanam.data import Schema
from lanam.explain.comparing import contrast, difference
from lanam.explain.differences import Contrast, Difference
from lanam.explain.frames import explanation_frame, term_cells
from lanam.explain.interpretml import ShownTerms
from lanam.explain.points import Source, evaluate
from lanam.explain.tables import shape_of, surface_of
from lanam.explain.terms import Shape, Surface
from lanam.explain.values import (
    GivenLabels,
    Labels,
    OnLinkScale,
    PlainData,
    class_labels,
    object_array,
    plain,
    scalar,
)
from lanam.families import Family, find_family


@dataclass(frozen=True, eq=False)
class GlobalExplanation(OnLinkScale, PlainData, ShownTerms):
    """The whole model: every term's function with its uncertainty, data density and importance.

    Attributes
    ----------
    intercept
        Mean over the training data of what the terms add up to, on the link scale; one a class where
        there are more than two.
    terms
        In the order of the model's ``terms_``.
    link
        ``"identity"``, ``"log"`` (counts), ``"logit"``, ``"softmax"`` (more than two classes) or
        ``"log-variance"`` (a regressor's noise).
    classes
        A classifier's labels, in the order of the arrays' last axis if there are more than two.
    source
        The model behind it, for what no table says: :meth:`evaluate`, :meth:`difference` and
        :meth:`differences`. Not part of the plain data.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> explanation = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y).explain_global()
    >>> [shape.name for shape in explanation.active]
    ['bmi', 'bp']
    >>> bmi = explanation["bmi"]
    >>> bool(np.interp(40, bmi.values, bmi.mean) > np.interp(20, bmi.values, bmi.mean))
    True
    """

    intercept: float | Array
    terms: tuple[Shape | Surface, ...]
    family: Family
    classes: Labels = None
    backend: str | None = None
    source: Source | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> Any:  # a shape or a surface: who names it knows which
        for shape in self.terms:
            if shape.name == name:
                return shape
        raise KeyError(f"no term {name!r}; there are {[shape.name for shape in self.terms]}")

    def __iter__(self) -> Iterator[Shape | Surface]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def active(self) -> tuple[Shape | Surface, ...]:
        """The terms that contribute, most important first."""
        shapes = [shape for shape in self.terms if shape.active]
        return tuple(sorted(shapes, key=lambda shape: -shape.importance))

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The terms of one column."""
        return tuple(term for term in self.terms if isinstance(term, Shape))

    @property
    def pairs(self) -> tuple[Surface, ...]:
        """The terms of two columns."""
        surfaces = [term for term in self.terms if isinstance(term, Surface)]
        return tuple(term for term in surfaces if len(term.axes) == 2)

    @property
    def switched_off(self) -> tuple[Shape | Surface, ...]:
        """The terms that do not contribute."""
        return tuple(shape for shape in self.terms if not shape.active)

    def evaluate(
        self, name: str, values: object, second_values: object = None, *further_values: object
    ) -> tuple[Array, Array]:
        """What a term adds at any values of its column, as the model's ``predict_terms`` does.

        Between two entries of a table the standard deviation is that of the function there, which is
        smaller than one in between would be. Values beyond the training data are told in a warning: what
        the function is there no data says.

        Parameters
        ----------
        name : str
            The term's.
        values : sequence
            In the column's unit, or levels; None and NaN are missing values.
        second_values : sequence, default=None
            As many, of a pair's second column.
        *further_values : sequence
            As many, of each of a term's further columns.

        Returns
        -------
        mean, std : ndarray of shape (n,)
            Of more than two classes, (n, n_classes).

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> explanation = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y).explain_global()
        >>> mean, std = explanation.evaluate("bmi", [20, 30.5])
        >>> bool(mean[1] > mean[0])
        True
        """
        term = self[name]
        own = [values, *(more for more in (second_values, *further_values) if more is not None)]
        n_columns = len(term.features)
        if len(own) != n_columns:
            need = {
                1: "is of one column: leave second_values out",
                2: f"is a pair: give values of {term.feature_names[-1]!r} as second_values",
            }
            each = f"is of {n_columns} columns: give values of each, in the order of its name"
            raise ValueError(f"the term {name!r} {need.get(n_columns, each)}")
        return evaluate(self._source(), self.terms.index(term), own)

    def difference(
        self,
        column: str | int,
        first: object,
        second: object,
        coverage: float = 0.95,
        given: Mapping[str | int, object] | str | None = None,
    ) -> Difference:
        """How much more one value of a column adds than another, with its uncertainty.

        All terms of this column count together, and what is uncertain about both values alike is not
        uncertain about their difference: bands of the two points that overlap do not say that there is
        none.

        Parameters
        ----------
        column : str or int
            Name or index of the column.
        first, second : number, level or None
            The values; None is a missing one.
        coverage : float, default=0.95
            Posterior probability of the interval.
        given : mapping or "average", default=None
            Pairs of the column add something that depends on the other column. With the values of these
            other columns, by name, they count. With "average" they count as they do on average over the
            other columns' values in the training data, whatever goes along with what there. None leaves
            them out: then it is what holds for the other columns' values that rows with the first value
            have, against those that rows with the second have.

        Returns
        -------
        difference : Difference
            Print it, or take its numbers.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> explanation = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y).explain_global()
        >>> explanation.difference("bmi", 30, 20).probability > 0.99
        True
        """
        values = (first, second)
        return difference(self._source(), self._scale, column, values, coverage, given)

    def differences(
        self,
        column: str | int,
        reference: object,
        given: Mapping[str | int, object] | str | None = None,
    ) -> Contrast:
        """The same of every value of a column, all compared with one.

        Parameters
        ----------
        column : str or int
            Name or index of the column.
        reference : number, level or None
            What all values are compared with; None is a missing value.
        given : mapping or "average", default=None
            As for :meth:`difference`.

        Returns
        -------
        contrast : Contrast
            Differences at the column's values, with bands at any coverage.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> explanation = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y).explain_global()
        >>> lower, upper = explanation.differences("bmi", reference=25).band(0.9)
        """
        rng = np.random.default_rng(0)  # a fact about the model, the same each time
        return contrast(self._source(), self._scale, column, reference, given, rng)

    @property
    def _scale(self) -> dict[str, Any]:
        return {"family": self.family, "classes": self.classes}

    def _source(self) -> Source:
        if self.source is None:
            raise ValueError(
                "this explanation was made without its model, which knows what lies between the "
                "tables' entries: take one from the model's explain_global()"
            )
        return self.source

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON."""
        return {
            "intercept": plain(self.intercept),
            "link": self.link,
            "classes": plain(self.classes),
            "terms": plain(self.terms),
        }

    def to_frame(self, coverage: float = 0.95) -> Any:
        """One row a term and value, as a frame of the library the model was fitted with.

        Numbers stand in ``value`` and levels, as text, in ``level``, where also ``"(missing)"``,
        ``"(other levels)"`` and ``"(other values)"`` have a row. A pair has one for each point of its
        grid, with the second column in ``second_value`` and ``second_level``. More than two classes
        have a row each. ``lower`` and ``upper`` are the ends of a band at each place by itself, which
        the function keeps with the probability ``coverage``; within ``simultaneous_lower`` and
        ``simultaneous_upper`` it lies everywhere at once, wherever it is ``inside``. What was changed by
        hand is ``edited``.
        """
        n_places = max([2, *(len(term.features) for term in self.terms)])
        parts = [term_cells(term, coverage, n_places) for term in self.terms]
        sizes = [len(part["density"]) for part in parts]
        columns: dict[str, Any] = {
            name: np.repeat(object_array([getattr(term, fact) for term in self.terms]), sizes)
            for name, fact in (("term", "name"), ("kind", "kind"))
        }
        for name in parts[0] if parts else ():
            columns[name] = np.concatenate([part[name] for part in parts])
        return explanation_frame(columns, self)


def explain_global(
    model: FittedModel, schema: Schema, classes: GivenLabels = None
) -> GlobalExplanation:
    """Every term's function, in the columns' units; ``classes`` are a classifier's labels."""
    rng = np.random.default_rng(0)  # an explanation is a fact about the model, the same each time
    terms = tuple(
        (surface_of if term.joint else shape_of)(model, index, schema, rng)
        for index, term in enumerate(model.terms)
    )
    return GlobalExplanation(
        scalar(np.asarray(model.intercept)),
        terms,
        find_family(model.likelihood),
        class_labels(model, classes),
        schema.backend,
        Source(model, schema),
    )
