"""Answers to questions about a curve, as plain data and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.explain.bands import Banded, require_coverage
from lanam.explain.values import Labels, PlainData
from lanam.text import printable

#: One answer, or one for each class if there are more than two.
ByClass: TypeAlias = Any

#: Ranges of a column's values, ascending.
Ranges: TypeAlias = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Derivative(PlainData, Banded):
    """The slope of a curve within the range of the training data, with its bands.

    Curves are linear between the points of their tables, and slopes constant.

    Attributes
    ----------
    name
        Name of the term.
    edges
        The ends of the intervals with a common slope, ascending: one more than intervals.
    values
        Their middles.
    mean, std
        Posterior mean and standard deviation of the slope in each interval, per unit of the column; with a
        last axis of classes if there are more than two.
    largest_deviations
        Posterior draws of the largest deviation from the mean, in standard deviations, as of a term.
    certainty
        Posterior probability that the curve rises or falls as its mean does in an interval, and in all
        intervals where this is surer: the excursion function of Bolin and Lindgren (2015). In the shape of
        ``mean``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
    >>> derivative = model.explain_global()["bmi"].derivative()
    >>> lower, upper = derivative.band(coverage=0.9, simultaneous=True)
    >>> len(derivative.edges) - len(lower)
    1
    """

    name: str
    edges: Array
    values: Array
    mean: Array
    std: Array
    largest_deviations: Array
    certainty: Array

    def rising(self, coverage: float = 0.95) -> ByClass:
        """Where the curve rises for sure.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability that the curve rises everywhere in these ranges, and falls everywhere in
            those of :meth:`falling`.

        Returns
        -------
        ranges : tuple of (float, float)
            With more than two classes, one such tuple for each.
        """
        return self._ranges(self.mean > 0.0, coverage)

    def falling(self, coverage: float = 0.95) -> ByClass:
        """Where the curve falls for sure; see :meth:`rising`."""
        return self._ranges(self.mean < 0.0, coverage)

    def _ranges(self, direction: NDArray[np.bool_], coverage: float) -> ByClass:
        sure = direction & (self.certainty >= require_coverage(coverage))
        if sure.ndim > 1:
            return tuple(_runs(self.edges, of_class) for of_class in sure.T)
        return _runs(self.edges, sure)

    def words(self, coverage: float = 0.95) -> ByClass:
        """The sure ranges as a clause; with more than two classes, one for each."""
        rising, falling = self.rising(coverage), self.falling(coverage)
        if self.mean.ndim == 1:
            return _direction(rising, falling)
        return tuple(map(_direction, rising, falling))

    def __str__(self) -> str:
        return repr(self) if self.mean.ndim > 1 else printable(f"{self.name}: {self.words()}")


@dataclass(frozen=True, eq=False, repr=False)
class Extremum(PlainData):
    """The highest or lowest point of a curve within the range of the training data.

    Attributes
    ----------
    name, kind
        Name of the term, and ``"peak"`` or ``"trough"``.
    value, height
        Where the mean curve is highest (lowest), and its contribution there.
    coverage
        Posterior probability of the intervals.
    lower, upper
        Credible interval of the place.
    height_lower, height_upper
        Credible interval of the extreme contribution, wherever it is.
    probability_interior, probability_lowest, probability_highest
        Probabilities that the extremum is within the range of the data, or at its lower or upper end: the
        curve then may go on beyond the data.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMRegressor
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.uniform(0, 10, 300)
    >>> response = -np.square(dose - 6) / 10 + rng.normal(0, 0.5, 300)
    >>> model = LANAMRegressor().fit(dose[:, None], response)
    >>> peak = model.explain_global()["x0"].peak()
    >>> bool(peak.lower < 6 < peak.upper), peak.probability_interior > 0.99
    (True, True)
    """

    name: str
    kind: str
    value: float
    height: float
    coverage: float
    lower: float
    upper: float
    height_lower: float
    height_upper: float
    probability_interior: float
    probability_lowest: float
    probability_highest: float

    def words(self) -> str:
        """The answer as a clause."""
        side = "highest" if self.kind == "peak" else "lowest"
        ends = f"{100.0 * self.coverage:g}%: {self.lower:.4g} to {self.upper:.4g}"
        text = f"{side} at {self.value:.4g} ({ends})"
        probabilities = (
            (self.probability_lowest, "at the lower end of the data"),
            (self.probability_highest, "at the upper end of the data"),
        )
        for probability, where in probabilities:
            if probability >= 0.005:
                text += f"; {where} with probability {probability:.2f}"
        return text

    def __str__(self) -> str:
        return printable(f"{self.name}: {self.words()}")


@dataclass(frozen=True, eq=False, repr=False)
class Crossings(PlainData):
    """Where a curve crosses a level, within the range of the training data.

    A crossing of the mean curve lies between the points to either side at which the mean is farthest from
    the level. A draw of the curve crosses the level there too if these points are on the same sides of it.
    If it does so several times, its crossing is where a single one would leave it above as long.

    Attributes
    ----------
    name, level
        Name of the term, and the contribution that is crossed.
    values, rising
        Crossings of the mean curve, ascending, and whether it rises there.
    coverage
        Posterior probability of the intervals.
    lower, upper
        Credible interval of each, given that the curve crosses there.
    probability
        The probability that it does.
    count_probabilities
        Posterior probabilities that the curve crosses the level never, once, twice, ...

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
    >>> crossing = model.explain_global()["bmi"].crossing(0.0)
    >>> crossing.rising.tolist(), bool(crossing.lower[0] < crossing.values[0] < crossing.upper[0])
    ([True], True)
    """

    name: str
    level: float
    values: Array
    rising: NDArray[np.bool_]
    coverage: float
    lower: Array
    upper: Array
    probability: Array
    count_probabilities: Array

    def words(self) -> str:
        """The answer as a clause."""
        never = float(self.count_probabilities[0])
        if not len(self.values):
            mean = f"the mean curve does not cross {self.level:.4g}"
            return f"{mean} (the curve with probability {1.0 - never:.2f})"
        rows = zip(self.values, self.rising, self.lower, self.upper, self.probability, strict=True)
        parts = [
            f"{'upward' if rising else 'downward'} at {value:.4g} "
            f"({100.0 * self.coverage:g}%: {lower:.4g} to {upper:.4g}; probability {probability:.2f})"
            for value, rising, lower, upper, probability in rows
        ]
        return f"crosses {self.level:.4g} {', '.join(parts)}"

    def __str__(self) -> str:
        return printable(f"{self.name}: {self.words()}")


@dataclass(frozen=True, eq=False, repr=False)
class Answers(PlainData):
    """The answers to all questions to a curve; with more than two classes, tuples with one for each."""

    name: str
    derivative: Derivative
    peak: ByClass
    trough: ByClass
    crossing: ByClass

    def clauses(self, coverage: float = 0.95) -> tuple[tuple[str, ...], ...]:
        """The answers in words, in the order of the questions, for each class."""
        directions = self.derivative.words(coverage)
        answers = [
            [each.words() for each in (answer if isinstance(answer, tuple) else (answer,))]
            for answer in (self.peak, self.trough, self.crossing)
        ]
        first = [directions] if isinstance(directions, str) else directions
        return tuple(zip(first, *answers, strict=True))

    def lines(self, coverage: float = 0.95, classes: Labels = None) -> list[str]:
        """The answers as lines of text; ``classes`` are the labels if there are more than two."""
        lines = [f"{self.name}:"]
        labels = [""] if classes is None else [f"{label}: " for label in classes]
        for label, clauses in zip(labels, self.clauses(coverage), strict=True):
            lines += [f"  {label}{clause}" for clause in clauses]
        return lines


def _runs(edges: Array, sure: NDArray[np.bool_]) -> Ranges:
    """Runs of intervals."""
    turns = np.flatnonzero(np.diff(sure.astype(int), prepend=0, append=0))
    return tuple((float(edges[a]), float(edges[b])) for a, b in turns.reshape(-1, 2))


def _direction(rising: Ranges, falling: Ranges) -> str:
    """Where a curve rises and falls, as a clause."""
    sides = (("rises", rising), ("falls", falling))
    parts = [f"{verb} for sure {_listed(ranges)}" for verb, ranges in sides if ranges]
    return " and ".join(parts) or "neither rises nor falls for sure"


def _listed(ranges: Ranges) -> str:
    return ", ".join(f"from {start:.4g} to {end:.4g}" for start, end in ranges)
