"""Local explanations: the contributions of the terms to single predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.data import CATEGORICAL, Schema, label
from lanam.explain.bands import around, half_width, intervals
from lanam.explain.frames import explanation_frame, row_cells
from lanam.explain.interpretml import ShownRows
from lanam.explain.printed import PrintedRows
from lanam.explain.ranges import is_beyond
from lanam.explain.shapley import ToShap
from lanam.explain.tables import describe_terms
from lanam.explain.terms import Term
from lanam.explain.values import (
    PREFIXES,
    GivenLabels,
    Labels,
    PlainData,
    Values,
    class_labels,
    object_array,
    scalar,
)
from lanam.families import Family, find_family


@dataclass(frozen=True, eq=False, repr=False)
class LocalExplanation(PrintedRows, PlainData, ToShap, ShownRows):
    """Predictions decomposed into the contributions of the terms.

    With more than two classes, contributions, predictions, responses and intercept have the classes as an
    additional last axis.

    Attributes
    ----------
    intercept, intercept_std
        The same for every row.
    terms
        In the order of the contributions' columns.
    column_values
        For every term's first column, its second and so on, the rows' values (n, n_terms): numbers, NaN if
        they are missing or the term has no such column; if any column is categorical, objects with None
        for NaN and ``"(unseen)"`` for unseen categories.
    values, second_values
        The first two of these.
    contributions, contributions_std
        (n, n_terms) posterior mean and standard deviation of the contributions.
    edited
        (n, n_terms) whether the term was edited at the row's values; its standard deviation is then not
        inferred from the data.
    outside
        (n, n_terms) whether the row is outside the range of the training data in one of the term's columns:
        the function is extrapolated there, and its credible interval widens with the distance.
    prediction, prediction_std
        (n,) intercept plus contributions and offset, and its posterior standard deviation (without noise).
    response
        (n,) posterior mean of the prediction on the response scale: for a classifier the probability, for
        counts the rate (for an exposure of 1).
    classes
        A classifier's labels, in the order of the last axis if there are more than two.
    offset
        (n,) the rows' known part of the prediction on the link scale; None without.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
    >>> local = model.explain_local(X[["bp", "bmi"]])
    >>> bool(np.allclose(local.intercept + local.contributions.sum(axis=1), local.prediction))
    True
    """

    intercept: float | Array
    intercept_std: float | Array
    terms: tuple[Term, ...]
    column_values: tuple[Values, ...]
    contributions: Array
    contributions_std: Array
    edited: NDArray[np.bool_]
    outside: NDArray[np.bool_]
    prediction: Array
    prediction_std: Array
    response: Array
    family: Family
    classes: Labels = None
    backend: str | None = None
    offset: Array | None = None

    def __len__(self) -> int:
        return len(self.prediction)

    @property
    def values(self) -> Values:
        """The values of the terms' first columns."""
        return self.column_values[0]

    @property
    def second_values(self) -> Values:
        """The values of the terms' second columns."""
        return self.column_values[1]

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON; None for missing values."""
        facts = super().to_dict()
        for place, values in enumerate(facts.pop("column_values")):
            facts[f"{PREFIXES[place]}values"] = values
        return facts

    def contribution_interval(self, coverage: float = 0.95) -> Array:
        """Pointwise credible intervals of the contributions.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability.

        Returns
        -------
        interval : ndarray of shape (n, n_terms, 2)
            Lower and upper bounds; (n, n_terms, n_classes, 2) with more than two classes.
        """
        return intervals(self.contributions, self.contributions_std, coverage)

    def prediction_interval(self, coverage: float = 0.95) -> Array:
        """Credible intervals of the predictions on the link scale.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability.

        Returns
        -------
        interval : ndarray of shape (n, 2)
            Lower and upper bounds; (n, n_classes, 2) with more than two classes.
        """
        return intervals(self.prediction, self.prediction_std, coverage)

    def response_interval(self, coverage: float = 0.95) -> Array:
        """Credible intervals of the mean on the response scale: transformed :meth:`prediction_interval`.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability.

        Returns
        -------
        interval : ndarray of shape (n, 2)
            Lower and upper bounds of the mean, a probability, or the rate for an exposure of 1.

        Raises
        ------
        ValueError
            With more than two classes, whose probabilities depend on all logits.
        """
        if self.family.link.several:
            raise ValueError(
                "with more than two classes a probability depends on all logits: use the model's "
                "predict_interval"
            )
        return self.family.link.inverse(self.prediction_interval(coverage))

    def to_frame(self, coverage: float = 0.95) -> Any:
        """Intercept, contributions, offset if any, and prediction of each row, one row each.

        Numbers are in ``value``, categories as strings in ``level``; with more than two classes there is
        one row per class. ``lower`` and ``upper`` are credible intervals with posterior probability
        ``coverage``. Contributions of edited terms are ``edited``, and so are their predictions; those of
        values outside the range of the training data are ``outside``.
        """
        n_rows, n_terms = self.contributions.shape[:2]
        ones = np.ones_like(self.prediction)[:, None]
        # An offset is shown as a further term without columns and without uncertainty.
        known = ones[:, :0] if self.offset is None else self.offset[:, None] * ones
        n_known = known.shape[1]
        extra = ["(offset)"] * n_known
        names = ["(intercept)", *(term.name for term in self.terms), *extra, "(prediction)"]
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(n_rows), n_terms + n_known + 2),
            "term": object_array(names * n_rows),
        }
        for place, values in enumerate(self.column_values):
            prefix = PREFIXES[place]
            cells = [row_cells(values[:, k], term, place) for k, term in enumerate(self.terms)]
            blank = np.full(n_rows, np.nan), object_array([None] * n_rows)
            numbers, levels = zip(blank, *cells, *[blank] * (n_known + 1), strict=True)
            columns[f"{prefix}value"] = np.column_stack(numbers).ravel()
            columns[f"{prefix}level"] = np.column_stack(levels).ravel()
        for name, parts in {
            "contribution": (self.intercept * ones, self.contributions, known, self.prediction),
            "std": (
                self.intercept_std * ones,
                self.contributions_std,
                0.0 * known,
                self.prediction_std,
            ),
        }.items():
            *before, last = parts
            table = np.concatenate([*before, last[:, None]], axis=1)
            columns[name] = table.ravel()
        columns["lower"], columns["upper"] = around(
            columns["contribution"], columns["std"], half_width(coverage)
        )
        for name, marks in (("edited", self.edited), ("outside", self.outside)):
            none = np.zeros((n_rows, 1 + n_known), dtype=bool)
            sides = none[:, :1], marks, none[:, 1:], marks.any(axis=1)
            columns[name] = np.column_stack(sides).ravel()
        return explanation_frame(columns, self)


def explain_local(
    model: FittedModel,
    schema: Schema,
    columns: Array,
    classes: GivenLabels = None,
    offset: Array | None = None,
) -> LocalExplanation:
    """The local explanation of the encoded rows ``columns`` (n, D), with their offsets if any."""
    family = find_family(model.likelihood)
    mean, variance = scoring.link_moments(model, columns)
    mean = mean if offset is None else mean + offset
    n_places = max([2, *(len(term.features) for term in model.terms)])
    features = [[*term.features, *[None] * n_places][:n_places] for term in model.terms]
    diagonal = np.diagonal(variance, axis1=-2, axis2=-1) if variance.ndim > 1 else variance
    return LocalExplanation(
        intercept=scalar(np.asarray(model.intercept)),
        intercept_std=_intercept_std(model),
        terms=describe_terms(model, schema),
        column_values=tuple(
            _values_of(schema, columns, [columns_of_term[place] for columns_of_term in features])
            for place in range(n_places)
        ),
        contributions=scoring.term_means(model, columns),
        contributions_std=np.sqrt(scoring.term_variances(model, columns)),
        edited=scoring.edited_rows(model, columns),
        outside=_outside(model, schema, columns),
        prediction=mean,
        prediction_std=np.sqrt(np.maximum(diagonal, 0.0)),
        response=family.mean(mean, variance),
        family=family,
        classes=class_labels(model, classes),
        backend=schema.backend,
        offset=offset,
    )


def _outside(model: FittedModel, schema: Schema, columns: Array) -> NDArray[np.bool_]:
    """Whether rows are outside the training data's range in a column of each active term (n, n_terms)."""
    result = np.zeros((len(columns), len(model.terms)), dtype=bool)
    for k, term in enumerate(model.terms):
        for feature in term.features if term.active else ():
            if (column := schema.columns[feature]).kind != CATEGORICAL:
                result[:, k] |= is_beyond(columns[:, feature], column)
    return result


def _values_of(
    schema: Schema, columns: Array, features: Sequence[int | None]
) -> NDArray[np.float64] | NDArray[np.object_]:
    """The rows' values of some columns, decoded; None or NaN where there is no column."""
    chosen = [None if feature is None else schema.columns[feature] for feature in features]
    labelled = any(column is not None and column.kind == CATEGORICAL for column in chosen)
    result = np.full((len(columns), len(chosen)), None if labelled else np.nan, dtype=object)
    for k, (feature, column) in enumerate(zip(features, chosen, strict=True)):
        if feature is not None and column is not None:
            values = columns[:, feature]
            result[:, k] = [label(column, code) for code in values] if labelled else values
    return result if labelled else result.astype(np.float64)


def _intercept_std(model: FittedModel) -> float | Array:
    """Posterior standard deviation of the intercept, the last coordinate of the model."""
    if model.contrasts is None:
        return float(np.linalg.norm(model.cov_cholesky[-1]))
    root = model.contrasts @ model.cov_cholesky[-model.contrasts.shape[1] :]
    return np.asarray(np.sqrt(np.square(root).sum(axis=1)))
