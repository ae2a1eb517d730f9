"""What each column adds to a row's prediction, for shap's own drawings."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from lanam.core.arrays import Array, Intercept
from lanam.data.cells import is_missing
from lanam.explain.terms import MISSING, Term
from lanam.explain.values import Labels, Values, cell_words
from lanam.families import Family


class ToShap:
    """Rows' predictions taken apart that can be handed to shap."""

    intercept: float | Array
    terms: tuple[Term, ...]
    column_values: tuple[Values, ...]
    contributions: Array
    contributions_std: Array
    family: Family
    classes: Labels

    def to_shap(self, pairs: str = "split", label: object = None) -> Any:
        """The contributions by column, as a ``shap.Explanation`` that shap's plots draw.

        They are computed, not sampled: each column has the sum of what its own terms add, the smooth one
        and the one of single values, and half of what its pairs add. These are the Shapley values of the
        game in which a set of known columns is worth the intercept plus the mean of every term, over the
        training data, given those of *its* columns that are known. Terms have mean zero, and pairs have it
        at each value of either column, so that a term counts once all its columns are known. For columns
        that are independent of each other this is the mean of the whole prediction given the known
        columns, and also its mean with the unknown ones drawn from the data: shap's usual, "interventional"
        game. Without pairs it is that one for dependent columns, too.

        Parameters
        ----------
        pairs
            ``"split"``: half of a pair's contribution goes to each of its columns; ``"keep"``: pairs stand
            after the columns, under their own names.
        label
            The class whose score is explained. None: of two classes the second, of more all of them, as
            one more, last axis.

        Returns
        -------
        shap.Explanation
            ``values`` has every column of the model, in its order, zeros where its terms were switched off;
            with ``base_values``, the intercept, they sum to the prediction on the link scale. ``data`` has
            the rows' values: numbers, not a number where they are missing, and levels as text, with
            ``"(missing)"`` among them. ``lower_bounds`` and ``upper_bounds`` are two standard deviations
            away where a column has a single term, and not a number where it is a sum of several: what is
            known of each of them does not say how they vary together.

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
        return _shap().Explanation(
            values,
            base_values=np.broadcast_to(scores[0], (len(values), *np.shape(scores[0]))).copy(),
            data=self._cells(names, shares),
            feature_names=names,
            output_names=[str(name) for name in self.classes or ()] if several else None,
            lower_bounds=values - margin,
            upper_bounds=values + margin,
        )

    def _score_of(self, label: object) -> tuple[Intercept, Array, Array]:
        """Intercept, contributions and their standard deviations of a class, or of all there is."""
        everything = self.intercept, self.contributions, self.contributions_std
        if label is None:
            return everything
        known = list(self.classes or ())
        if label not in known:
            raise ValueError(
                f"label={label!r} is not among the model's classes: {known}"
                if known
                else f"label={label!r} names a class, and the model has none: leave it out"
            )
        place = known.index(label)
        if self.family.link.several:
            intercept, mean, std = (np.asarray(table)[..., place] for table in everything)
            return intercept, mean, std
        # Of two classes, one's log-odds are the other's with their sign turned.
        sign = 1.0 if place else -1.0
        return sign * everything[0], sign * everything[1], everything[2]

    def _cells(self, names: Sequence[str], shares: Array) -> Values:
        """The rows' values as shap draws them: a column of numbers or of text for each of ``names``."""
        columns: list[Sequence[float | str]] = []
        for place in range(len(names)):
            # The first term that counts for a column whole is one of its own, or a pair that was kept.
            own = int(np.flatnonzero(shares[:, place] == 1.0)[0])
            n_columns = len(self.terms[own].features)
            cells = [values[:, own].tolist() for values in self.column_values[:n_columns]]
            if n_columns > 1:
                # In brackets, as shap strips zeros from the end of a text.
                columns.append([f"({cell_words(*row)})" for row in zip(*cells, strict=True)])
            else:
                columns.append(_numbers_or_text(cells[0]))
        table = np.empty((len(self.contributions), len(columns)), dtype=object)
        for place, column in enumerate(columns):
            table[:, place] = column
        worded = any(isinstance(cell, str) for column in columns for cell in column)
        return table if worded else table.astype(np.float64)


def _players(terms: Sequence[Term], keep: bool) -> tuple[list[str], Array]:
    """Names of those who share a prediction, and what share of each term each of them has."""
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
    """A column of which shap can tell that it is one of numbers, or else one of text."""
    known = [cell for cell in cells if not is_missing(cell)]
    if all(isinstance(cell, Real) and not isinstance(cell, bool) for cell in known):
        return [np.nan if is_missing(cell) else float(cell) for cell in cells]
    return [MISSING if is_missing(cell) else str(cell) for cell in cells]


def _shap() -> Any:
    """The neighbour's library, or how to get it."""
    try:
        import shap
    except ImportError as error:
        raise ImportError(
            "to_shap needs shap: install it with `pip install lanam[shap]`"
        ) from error
    return shap
