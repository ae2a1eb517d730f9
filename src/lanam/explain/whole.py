"""Global explanations: every term's function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model.fitted import FittedModel
from lanam.data import Schema
from lanam.explain.differences import Contrast, Difference
from lanam.explain.evaluation import ModelSource, contrast, difference, evaluate
from lanam.explain.frames import explanation_frame, term_cells
from lanam.explain.interpretml import ShownTerms
from lanam.explain.joint import with_main_effects
from lanam.explain.printed import PrintedTerms
from lanam.explain.ranges import two_values
from lanam.explain.tables import shape_of, surface_of
from lanam.explain.terms import Shape, Surface
from lanam.explain.values import (
    GivenLabels,
    Labels,
    PlainData,
    class_labels,
    object_array,
    scalar,
)
from lanam.families import Family, find_family
from lanam.text import did_you_mean


@dataclass(frozen=True, eq=False, repr=False)
class GlobalExplanation(PrintedTerms, PlainData, ShownTerms):
    """The whole model: every term's function with its uncertainty, data density and importance.

    Attributes
    ----------
    intercept
        Mean prediction over the training data on the link scale; one per class if there are more than two.
    terms
        In the order of the model's ``terms_``. ``explanation["a"]`` is one of them by its name,
        ``explanation["a", "b"]`` an interaction by its columns.
    classes
        A classifier's labels, in the order of the arrays' last axis if there are more than two.
    source
        The model, for :meth:`evaluate`, :meth:`difference` and :meth:`differences`. Not part of the plain
        data.

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
    source: ModelSource | None = field(default=None, repr=False)

    def __getitem__(self, name: str | tuple[str, ...]) -> Any:  # a Shape or a Surface
        columns = None if isinstance(name, str) else frozenset(name)
        for shape in self.terms:
            if shape.name == name or (shape.joint and frozenset(shape.feature_names) == columns):
                return shape
        hint = did_you_mean(name, [term.name for term in self.terms])
        raise KeyError(f"no term {name!r}; {hint}")

    def __iter__(self) -> Iterator[Shape | Surface]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def active(self) -> tuple[Shape | Surface, ...]:
        """The active terms, most important first."""
        shapes = [shape for shape in self.terms if shape.active]
        return tuple(sorted(shapes, key=lambda shape: -shape.importance))

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The univariate terms."""
        return tuple(term for term in self.terms if isinstance(term, Shape))

    @property
    def curves(self) -> tuple[Shape, ...]:
        """The active curves of numeric columns of more than two values, most important first."""
        shapes = (term for term in self.active if isinstance(term, Shape) and term.is_curve)
        return tuple(shape for shape in shapes if two_values(shape) is None)

    @property
    def pairs(self) -> tuple[Surface, ...]:
        """The pairwise interactions."""
        terms = self.terms
        return tuple(t for t in terms if isinstance(t, Surface) and len(t.axes) == 2)

    @property
    def interactions(self) -> tuple[Surface, ...]:
        """The interactions of two and of three columns."""
        return tuple(term for term in self.terms if isinstance(term, Surface))

    @property
    def switched_off(self) -> tuple[Shape | Surface, ...]:
        """The terms that were dropped."""
        return tuple(shape for shape in self.terms if not shape.active)

    def evaluate(
        self, name: str, values: object, second_values: object = None, *further_values: object
    ) -> tuple[Array, Array]:
        """Contribution of a term at any values of its columns, as the model's ``predict_terms``.

        Between two entries of a table the standard deviation is exact, not interpolated. Values beyond the
        range of the training data cause a warning.

        Parameters
        ----------
        name : str
            Name of the term.
        values : sequence
            Numbers in the column's unit, or categories; None and NaN are missing values.
        second_values : sequence, default=None
            For an interaction, values of its second column.
        *further_values : sequence
            Values of further columns.

        Returns
        -------
        mean, std : ndarray of shape (n,)
            With more than two classes, (n, n_classes).

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
        optional = [given for given in (second_values, *further_values) if given is not None]
        n_columns = len(term.features)
        if 1 + len(optional) != n_columns:
            remedies = {
                1: "has one column: leave second_values out",
                2: f"is an interaction: pass values of {term.feature_names[-1]!r} as second_values",
            }
            many = f"has {n_columns} columns: pass values of each, in the order of its name"
            raise ValueError(f"the term {name!r} {remedies.get(n_columns, many)}")
        return evaluate(self._source(), self.terms.index(term), [values, *optional])

    def difference(
        self,
        column: str | int,
        first: object,
        second: object,
        coverage: float = 0.95,
        given: Mapping[str | int, object] | str | None = None,
    ) -> Difference:
        """Difference of the contributions of two values of a column, with its uncertainty.

        It includes all terms of this column, and their posterior correlation: overlapping bands at the two
        values do not imply that there is no difference.

        Parameters
        ----------
        column : str or int
            Name or index of the column.
        first, second : number, category or None
            The values; None is a missing one.
        coverage : float, default=0.95
            Posterior probability of the interval.
        given : mapping or "average", default=None
            How interactions of the column enter: at these values of the other columns, by name; "average":
            averaged over the marginal distribution of the other columns in the training data; None: not
            at all, which averages over the conditional distributions of the other columns given either
            value.

        Returns
        -------
        difference : Difference
            It prints as a sentence.

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
        return difference(self._source(), column, values, coverage, given)

    def differences(
        self,
        column: str | int,
        reference: object,
        given: Mapping[str | int, object] | str | None = None,
        *,
        beyond: bool = False,
    ) -> Contrast:
        """Differences of all values of a column to a reference value.

        Parameters
        ----------
        column : str or int
            Name or index of the column.
        reference : number, category or None
            The reference; None is a missing value.
        given : mapping or "average", default=None
            As for :meth:`difference`.
        beyond : bool, default=False
            Whether to include values of the tables that are beyond the range of the training data.

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
        rng = np.random.default_rng(0)  # explanations are deterministic
        return contrast(self._source(), column, reference, given, rng, beyond)

    def with_main_effects(self, name: str) -> Surface:
        """An interaction plus the main effects of its columns: their whole joint contribution.

        Parameters
        ----------
        name : str
            Name of the interaction.

        Returns
        -------
        surface : Surface
            With mean and standard deviation of the sum, under the joint posterior, on a finer grid.
            Everything else is that of the interaction; there are no simultaneous bands.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = LANAMRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 0])
        >>> whole = model.explain_global().with_main_effects("x0 x x1")
        >>> whole.mean.shape == (len(whole.values), len(whole.second_values))
        True
        """
        surface = self[name]
        if not isinstance(surface, Surface):
            raise ValueError(f"the term {name!r} is a main effect: pass the name of an interaction")
        return with_main_effects(self._source(), surface)

    def _source(self) -> ModelSource:
        if self.source is None:
            raise ValueError(
                "this explanation has no model, which is needed here: use one from the model's "
                "explain_global()"
            )
        return self.source

    def to_frame(self, coverage: float = 0.95, *, beyond: bool = False) -> Any:
        """One row per term and value, as a frame of the library that the model was fitted with.

        Numbers are in ``value``, categories as strings in ``level``, which also has ``"(missing)"``,
        ``"(other levels)"`` and ``"(other values)"``. An interaction has one row per point of its grid,
        with the second column in ``second_value`` and ``second_level``. With more than two classes there
        is one row per class. ``lower`` and ``upper`` are the pointwise band with posterior probability
        ``coverage``, ``simultaneous_lower`` and ``simultaneous_upper`` the simultaneous one.

        Tables reach beyond the range of the training data; these values are included only with
        ``beyond=True`` (and are not ``inside``).
        """
        n_places = max([2, *(len(term.features) for term in self.terms)])
        parts = [term_cells(term, coverage, n_places, beyond) for term in self.terms]
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
    """The global explanation of a fitted model; ``classes`` are a classifier's labels."""
    terms = tuple(
        (surface_of if term.joint else shape_of)(model, index, schema)
        for index, term in enumerate(model.terms)
    )
    labels = class_labels(model, classes)
    return GlobalExplanation(
        scalar(np.asarray(model.intercept)),
        terms,
        find_family(model.likelihood),
        labels,
        schema.backend,
        ModelSource(model, schema, labels),
    )
