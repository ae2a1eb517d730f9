"""Contributions by column, as Shapley values for shap's plots."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from lanam.core.arrays import Array, Intercept
from lanam.data.cells import is_missing
from lanam.explain.terms import MISSING, Term
from lanam.explain.values import OnLinkScale, Values, cell_words


class ToShap(OnLinkScale):
    """Local explanations that convert to shap's."""

    intercept: float | Array
    offset: Array | None
    terms: tuple[Term, ...]
    column_values: tuple[Values, ...]
    contributions: Array
    contributions_std: Array

    def to_shap(self, pairs: str = "split", label: object = None) -> Any:
        """Shapley values by column, as a ``shap.Explanation``.

        They are exact, not sampled: each column has the contributions of its main effects, and half of
        those of its pairwise interactions. The value function is the intercept plus the mean of every term
        over the training data, given the known ones of *its* columns. Terms have mean zero, and
        interactions have mean zero at each value of either column, so that a term counts once all its
        columns are known. For independent columns these are shap's usual "interventional" Shapley values;
        without interactions for dependent columns, too.

        Parameters
        ----------
        pairs
            ``"split"``: interactions are split equally among their columns; ``"keep"``: they follow the
            columns, under their own names.
        label
            The class to explain. None: the second of two classes, or all of more, as an additional last
            axis.

        Returns
        -------
        shap.Explanation
            ``values`` has every column of the model in order, zeros for dropped terms; with
            ``base_values``, the intercept and the offset, they sum to the prediction on the link scale.
            ``data`` has the rows' values: numbers, NaN if they are missing, and categories as strings.
            ``lower_bounds`` and ``upper_bounds`` are two standard deviations away, and NaN for a column
            with several terms, as their posterior correlation is not part of the explanation.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
        >>> local = model.explain_local(X[["bmi", "bp"]])
        >>> values = local.to_shap()
        >>> values.shape, list(values.feature_names)
        ((442, 2), ['bmi', 'bp'])
        >>> bool(np.allclose(values.base_values + values.values.sum(axis=1), local.prediction))
        True
        """
        if pairs not in ("split", "keep"):
            raise ValueError(f"pairs={pairs!r} must be 'split' or 'keep'")
        scores = self._score_of(label)
        names, shares = _players(self.terms, keep=pairs == "keep")
        values = np.einsum("nt...,tp->np...", scores[1], shares)
        margin = 2.0 * np.einsum("nt...,tp->np...", scores[2], shares)
        active = np.array([term.active for term in self.terms])
        margin[:, np.count_nonzero(shares[active], axis=0) > 1] = np.nan
        several = values.ndim == 3
        try:
            import shap
        except ImportError as error:
            message = "to_shap needs shap: install it with `pip install lanam[shap]`"
            raise ImportError(message) from error
        return shap.Explanation(
            values,
            base_values=self._base_values(scores[0], label),
            data=self._cells(names, shares),
            feature_names=names,
            output_names=[str(name) for name in self.classes or ()] if several else None,
            lower_bounds=values - margin,
            upper_bounds=values + margin,
        )

    def _base_values(self, intercept: Intercept, label: object) -> Array:
        """What values add to in each row: the intercept, and the offset if there is one."""
        base = np.broadcast_to(intercept, (len(self.contributions), *np.shape(intercept))).copy()
        if self.offset is None:
            return base
        first = label is not None and self.class_index(label) == 0
        return np.asarray(base - self.offset if first else base + self.offset)

    def _score_of(self, label: object) -> tuple[Intercept, Array, Array]:
        """Intercept, contributions and their standard deviations, of one class if ``label`` is given."""
        everything = self.intercept, self.contributions, self.contributions_std
        if label is None:
            return everything
        position = self.class_index(label)
        if self.family.link.several:
            intercept, mean, std = (np.asarray(table)[..., position] for table in everything)
            return intercept, mean, std
        # The log-odds of the first of two classes are the negative of those of the second.
        sign = 1.0 if position else -1.0
        return sign * everything[0], sign * everything[1], everything[2]

    def _cells(self, names: Sequence[str], shares: Array) -> Values:
        """The rows' values for shap: a column of numbers or of strings for each of ``names``."""
        columns: list[Sequence[float | str]] = []
        for column_index in range(len(names)):
            # The first term with a share of one is the column's main effect, or a kept interaction.
            term_index = int(np.flatnonzero(shares[:, column_index] == 1.0)[0])
            n_columns = len(self.terms[term_index].features)
            cells = [values[:, term_index].tolist() for values in self.column_values[:n_columns]]
            if n_columns > 1:
                # In brackets, as shap strips trailing zeros from strings.
                columns.append([f"({cell_words(*row)})" for row in zip(*cells, strict=True)])
            else:
                columns.append(_numbers_or_text(cells[0]))
        table = np.empty((len(self.contributions), len(columns)), dtype=object)
        for column_index, column in enumerate(columns):
            table[:, column_index] = column
        worded = any(isinstance(cell, str) for column in columns for cell in column)
        return table if worded else table.astype(np.float64)


def _players(terms: Sequence[Term], keep: bool) -> tuple[list[str], Array]:
    """Names of the players, and the share of each term that is attributed to each of them."""
    names = {
        feature: name
        for term in terms
        for feature, name in zip(term.features, term.feature_names, strict=True)
    }
    places = {feature: place for place, feature in enumerate(sorted(names))}
    kept = [k for k, term in enumerate(terms) if keep and term.joint]
    shares = np.zeros((len(terms), len(places) + len(kept)))
    for k, term in enumerate(terms):
        if k in kept:
            shares[k, len(places) + kept.index(k)] = 1.0
        else:
            shares[k, [places[feature] for feature in term.features]] = 1.0 / len(term.features)
    return [*(names[feature] for feature in places), *(terms[k].name for k in kept)], shares


def _numbers_or_text(cells: Sequence[Any]) -> Sequence[float | str]:
    """A column as floats if all its values are numeric, else as strings."""
    present = [cell for cell in cells if not is_missing(cell)]
    if all(isinstance(cell, Real) and not isinstance(cell, bool) for cell in present):
        return [np.nan if is_missing(cell) else float(cell) for cell in cells]
    return [MISSING if is_missing(cell) else str(cell) for cell in cells]
