"""Questions to a curve: where it rises for sure, where it is highest, where it crosses a level.

Answers are from draws of the whole curve from its joint posterior, within the range of the training data:
intervals at single values do not say where a maximum is, or whether a curve rises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.core.model.draws import JointRoot
from lanam.explain.answers import Answers, ByClass, Crossings, Derivative, Extremum
from lanam.explain.bands import inverse_std, require_coverage, sorted_deviations
from lanam.explain.values import Values

#: Draws of a curve: a probability of 5% is known to .3%.
_N_DRAWS = 4000

#: Values of a draw that differ by less than this fraction of its range are equal.
_EQUAL = 1e-6

#: Knots closer than this fraction of the range are one: differences of tables would be their rounding.
_LEAST_STEP = 1e-5


class AskedCurve:
    """Questions to a univariate term of a numeric column. All answers are deterministic."""

    name: str
    kind: str
    status: str
    active: bool
    values: Values
    mean: Array
    inside: NDArray[np.bool_]
    posterior: JointRoot | None

    @property
    def is_curve(self) -> bool:
        """Whether it is an active curve of a numeric column, to which these questions have answers."""
        return self.active and self.posterior is not None

    def derivative(self) -> Derivative:
        """The slope of the curve, with pointwise and simultaneous bands.

        Returns
        -------
        derivative : Derivative

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
        >>> print(model.explain_global()["bmi"].derivative())
        bmi: rises for sure from ... to ...
        """
        values, mean, root = self._asked("derivative")
        kept = _apart(values)
        edges, steps = values[kept], np.diff(values[kept])
        slopes = replace(root, table=np.diff(root.table[kept], axis=0) / steps[:, None])
        means = np.diff(mean[kept], axis=0) / steps.reshape(-1, *[1] * (mean.ndim - 1))
        std = slopes.std().T.reshape(means.shape)
        draws = slopes.draws(_N_DRAWS)
        certainty = _certainty(means.reshape(len(means), -1).T, draws, inverse_std(std))
        standard = np.abs(draws, out=draws) * inverse_std(std)[:, :, None]
        by_draw = standard.max(axis=1).T
        return Derivative(
            name=self.name,
            edges=edges,
            values=0.5 * (edges[1:] + edges[:-1]),
            mean=means,
            std=std,
            largest_deviations=sorted_deviations(by_draw.reshape(-1, *means.shape[1:])),
            certainty=certainty.T.reshape(means.shape),
        )

    def rising(self, coverage: float = 0.95) -> ByClass:
        """Where the curve rises for sure, as :meth:`Derivative.rising`.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> dose = np.linspace(0, 10, 300)
        >>> response = -np.square(dose - 6) / 10 + np.random.default_rng(0).normal(0, 0.5, 300)
        >>> model = LANAMRegressor().fit(dose[:, None], response)
        >>> all(last < 6.5 for first, last in model.explain_global()["x0"].rising())
        True
        """
        return self.derivative().rising(coverage)

    def falling(self, coverage: float = 0.95) -> ByClass:
        """Where the curve falls for sure, as :meth:`Derivative.falling`."""
        return self.derivative().falling(coverage)

    def peak(self, coverage: float = 0.95) -> ByClass:
        """Where the curve is highest, with an interval.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability of the intervals.

        Returns
        -------
        peak : Extremum
            With more than two classes, a tuple with one for each.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
        >>> print(model.explain_global()["bmi"].peak())
        bmi: highest at ... (95%: ... to ...); at the upper end of the data with probability ...
        """
        return self._extreme("peak", coverage)

    def trough(self, coverage: float = 0.95) -> ByClass:
        """Where the curve is lowest; see :meth:`peak`."""
        return self._extreme("trough", coverage)

    def _extreme(self, kind: str, coverage: float) -> ByClass:
        require_coverage(coverage)
        return self._answers(kind, lambda *curve: _extremum(self.name, kind, coverage, *curve))

    def crossing(self, level: float = 0.0, coverage: float = 0.95) -> ByClass:
        """Where the curve crosses a level, with intervals.

        Parameters
        ----------
        level : float, default=0.0
            A contribution; zero is the mean over the training data.
        coverage : float, default=0.95
            Posterior probability of the intervals.

        Returns
        -------
        crossings : Crossings
            With more than two classes, a tuple with one for each.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
        >>> print(model.explain_global()["bmi"].crossing(0.0))
        bmi: crosses 0 upward at ... (95%: ... to ...; probability 1.00)
        """
        require_coverage(coverage)
        if not np.isfinite(level):
            raise ValueError(
                f"level={level!r} must be a finite number on the scale of contributions"
            )
        return self._answers(
            "crossing", lambda *curve: _crossings(self.name, float(level), coverage, *curve)
        )

    def answers(self, coverage: float = 0.95) -> Answers:
        """The answers to all questions at once: slope, peak, trough and crossings of zero."""
        require_coverage(coverage)

        def answer(*curve: Array) -> tuple[Extremum, Extremum, Crossings]:
            peak, trough = (
                _extremum(self.name, kind, coverage, *curve) for kind in ("peak", "trough")
            )
            return peak, trough, _crossings(self.name, 0.0, coverage, *curve)

        answers = self._answers("peak", answer)
        by_question = answers if self.mean.ndim == 1 else zip(*answers, strict=True)
        return Answers(self.name, self.derivative(), *by_question)

    def _answers(self, question: str, answer: Callable[[Array, Array, Array], object]) -> ByClass:
        """The answer from values, means and draws (n, B); of several classes, one for each."""
        values, mean, root = self._asked(question)
        draws = root.draws(_N_DRAWS)
        if mean.ndim == 1:
            return answer(values, mean, mean + draws[0].T)
        return tuple(
            answer(values, of_class, of_class + deviations.T)
            for of_class, deviations in zip(mean.T, draws, strict=True)
        )

    def _asked(self, question: str) -> tuple[Array, Array, JointRoot]:
        """Values, mean and posterior within the range of the data; an error if there is no curve."""
        if not self.active:
            raise ValueError(f"the term {self.name!r} was {self.status}: it has no {question}")
        if self.posterior is None:
            raise ValueError(
                f"the term {self.name!r} is not a curve: {question}() is for numeric columns; compare "
                "values with explanation.difference(column, first, second)"
            )
        inside = np.flatnonzero(self.inside)
        return (
            np.asarray(self.values[inside], dtype=np.float64),
            self.mean[inside],
            self.posterior.at(inside),
        )


def _apart(values: Array) -> NDArray[np.intp]:
    """Indices of values that are far enough apart for differences of tables; the ends are among them."""
    least = _LEAST_STEP * (values[-1] - values[0])
    kept = [0]
    for k in range(1, len(values) - 1):
        if values[k] - values[kept[-1]] >= least and values[-1] - values[k] >= least:
            kept.append(k)
    return np.array([*kept, len(values) - 1])


def _certainty(mean: Array, deviations: Array, precision: Array) -> Array:
    """The excursion function of signs (C, B), from draws (C, B, n) of the deviations from the mean."""
    other = np.sign(mean[:, :, None] + deviations) != np.sign(mean)[:, :, None]
    result = np.empty_like(mean)
    for k, surest in enumerate(np.argsort(-np.abs(mean) * precision, axis=1, kind="stable")):
        result[k, surest] = 1.0 - np.logical_or.accumulate(other[k, surest]).mean(axis=1)
    return result


def _extremum(
    name: str, kind: str, coverage: float, values: Array, mean: Array, draws: Array
) -> Extremum:
    sign = 1.0 if kind == "peak" else -1.0
    signed = sign * draws
    best_of = signed.max(axis=1)
    # On a plateau, as of constrained curves, the first place: rounding does not choose.
    slack = _EQUAL * (best_of - signed.min(axis=1))
    places = np.argmax(signed >= (best_of - slack)[:, None], axis=1)
    heights = sign * best_of
    best = int(np.argmax(sign * mean))
    lower, upper = _interval(values[places], coverage)
    height_lower, height_upper = _interval(heights, coverage)
    lowest, highest = (float((places == end).mean()) for end in (0, len(values) - 1))
    return Extremum(
        name=name,
        kind=kind,
        value=float(values[best]),
        height=float(mean[best]),
        coverage=coverage,
        lower=lower,
        upper=upper,
        height_lower=height_lower,
        height_upper=height_upper,
        probability_interior=max(1.0 - lowest - highest, 0.0),
        probability_lowest=lowest,
        probability_highest=highest,
    )


def _crossings(
    name: str, level: float, coverage: float, values: Array, mean: Array, draws: Array
) -> Crossings:
    above, steps = draws - level, np.diff(values)
    mean_above = mean - level
    counts = (np.diff(above > 0.0, axis=1)).sum(axis=1)
    crossed = np.flatnonzero(np.diff(mean_above > 0.0))
    anchors = _farthest(mean_above, crossed)
    lengths = _length_above(above, steps)
    places = np.empty((3, len(crossed)))
    rising, probability = mean_above[crossed] <= 0.0, np.empty(len(crossed))
    for k, cell in enumerate(crossed):
        start, end = anchors[k], anchors[k + 1]
        low, high = mean_above[cell : cell + 2]
        places[0, k] = values[cell] + steps[cell] * low / (low - high)
        crosses = (above[:, start] > 0.0) != rising[k]
        crosses &= (above[:, end] > 0.0) == rising[k]
        length = lengths[crosses, start:end].sum(axis=1)
        where = values[end] - length if rising[k] else values[start] + length
        places[1:, k] = _interval(where, coverage)
        probability[k] = crosses.mean()
    return Crossings(
        name=name,
        level=level,
        values=places[0],
        rising=rising,
        coverage=coverage,
        lower=places[1],
        upper=places[2],
        probability=probability,
        count_probabilities=np.bincount(counts) / len(counts),
    )


def _farthest(mean_above: Array, crossed: NDArray[np.intp]) -> list[int]:
    """Between consecutive crossings, and beyond the first and last, where the mean is farthest away."""
    ends = [0, *(crossed + 1), len(mean_above)]
    return [
        start + int(np.argmax(np.abs(mean_above[start:stop]))) for start, stop in pairwise(ends)
    ]


def _length_above(above: Array, steps: Array) -> Array:
    """The length in each interval (n, B - 1) on which curves (n, B), linear between points, are above 0."""
    left, right = np.maximum(above[:, :-1], 0.0), np.maximum(above[:, 1:], 0.0)
    depth = np.abs(above[:, :-1]) + np.abs(above[:, 1:])
    mixed = (above[:, :-1] > 0.0) != (above[:, 1:] > 0.0)
    share = np.where(mixed, (left + right) / np.where(depth > 0.0, depth, 1.0), left + right > 0.0)
    return np.asarray(share * steps)


def _interval(draws: Array, coverage: float) -> tuple[float, float]:
    """Central interval of draws; NaN if there are none."""
    if not len(draws):
        return np.nan, np.nan
    lower, upper = np.quantile(draws, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
    return float(lower), float(upper)
