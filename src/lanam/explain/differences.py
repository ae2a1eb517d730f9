"""Differences of contributions between values of a column, with credible intervals and bands.

They account for the posterior correlation between points of a curve, and between the terms of a column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.data import is_missing
from lanam.explain.bands import Banded, around
from lanam.explain.frames import axis_cells, explanation_frame, function_cells
from lanam.explain.terms import MISSING, Other
from lanam.explain.values import Labels, OnLinkScale, PlainData, Values, object_array, plain
from lanam.families import Family
from lanam.text import brief, number_format, printable

#: Classes of which a difference is printed.
_MAX_LINES = 30


@dataclass(frozen=True, eq=False, repr=False)
class Compared(OnLinkScale, PlainData):
    """The column of a comparison, and the terms that enter.

    Attributes
    ----------
    column
        Name of the column.
    terms
        Names of the terms that enter: all active main effects of this column, and its interactions if the
        other columns are ``given`` or ``averaged``.
    left_out, left_out_columns
        Active interactions of this column that do not enter, and their other columns. The difference then
        averages over the conditional distributions of these columns given either value.
    given
        Values of the other columns of interactions.
    averaged
        The other columns of interactions that are averaged over the training data.
    status
        Status of the main effect: why it was dropped.
    family, classes
        The response family, and a classifier's labels.
    beyond
        Values beyond the training data: column, value, and the range in the training data.
    """

    column: str
    terms: tuple[str, ...]
    left_out: tuple[str, ...]
    left_out_columns: tuple[str, ...]
    given: dict[str, object]
    averaged: tuple[str, ...]
    status: str
    family: Family
    classes: Labels
    beyond: tuple[tuple[str, float, float, float], ...]

    def _remarks(self) -> list[str]:
        """Remarks on interactions and on extrapolation."""
        remarks = []
        if self.given:
            places = " and ".join(f"{name} = {_shown(at)}" for name, at in self.given.items())
            remarks.append(f"at {places}")
        if self.averaged:
            columns = " and ".join(self.averaged)
            remarks.append(f"averaged over {columns} in the training data")
        if self.left_out:
            columns = " and ".join(self.left_out_columns)
            remarks.append(
                f"without {' and '.join(self.left_out)}: averaged over {columns} conditional on "
                f"{self.column} (see given)"
            )
        for column, value, lowest, highest in self.beyond:
            place = _shown(value) if column == self.column else f"{column} = {_shown(value)}"
            remarks.append(f"{place} is outside the data range ({lowest:.4g} to {highest:.4g})")
        return remarks


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Compared):
    """Difference of the contributions of two values of a column, on the link scale.

    With more than two classes, all numbers are arrays with one element per class.

    Attributes
    ----------
    first, second
        The two values; None is a missing one.
    mean, std
        Posterior mean and standard deviation of the contribution of ``first`` minus that of ``second``.
    coverage, lower, upper
        Credible interval with this posterior probability.
    probability
        Posterior probability that the difference is above zero.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(interactions=0, random_state=0).fit(X[["bmi", "bp"]], y)
    >>> difference = model.explain_global().difference("bmi", 35, 25)
    >>> print(difference)
    bmi: 35 vs 25 changes the prediction by +... (95%: +... to +...); positive with probability ...
    >>> bool(difference.lower > 0)
    True
    """

    first: object
    second: object
    mean: float | Array
    std: float | Array
    coverage: float
    lower: float | Array
    upper: float | Array
    probability: float | Array

    @property
    def ratio(self) -> float | None:
        """Posterior median of the odds ratio, rate ratio or (for noise) variance ratio, or None."""
        return _exp(self.mean) if self.family.words.ratio else None

    @property
    def ratio_interval(self) -> tuple[float, float] | None:
        """Credible interval of the ratio with probability ``coverage``, or None."""
        if not self.family.words.ratio:
            return None
        return _exp(self.lower), _exp(self.upper)

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain data, ready for JSON, with its ratio."""
        ratios = {"ratio": self.ratio, "ratio_interval": self.ratio_interval}
        return super().to_dict() | {name: plain(value) for name, value in ratios.items()}

    def __str__(self) -> str:
        return printable(self._sentence())

    def _sentence(self) -> str:
        head = f"{self.column}: {_shown(self.first)} vs {_shown(self.second)}"
        remarks = "".join(f"; {remark}" for remark in self._remarks())
        if not self.terms:
            return f"{head} changes nothing: no main effect ({self.status}){remarks}"
        if not np.any(self.std):
            return f"{head} changes nothing{remarks}"
        words, link = self.family.words, self.family.link
        scale = words.scale
        numbers = zip(
            *map(np.ravel, (self.mean, self.std, self.lower, self.upper, self.probability)),
            strict=True,
        )
        if link.several:
            assert self.classes is not None
            lines = [
                f"  {label}: {self._band(*ends)}; positive with probability {_probability(positive)}"
                for label, (*ends, positive) in zip(self.classes, numbers, strict=True)
            ]
            more = [f"... and {len(lines) - _MAX_LINES} more"] if len(lines) > _MAX_LINES else []
            head = f"{head} changes {scale} of each class{remarks}:"
            return "\n".join([head, *lines[:_MAX_LINES], *more])
        if link.classes and self.classes is not None:
            scale = f"{scale} of {self.classes[1]}"
        *ends, positive = next(numbers)
        parts = [f"{head} changes {scale} by {self._band(*ends)}"]
        parts.append(f"positive with probability {_probability(positive)}")
        if self.ratio is not None and self.ratio_interval is not None:
            form = number_format(self.ratio_interval[1], 3)
            low, high = (f"{end:{form}}" for end in self.ratio_interval)
            parts.append(f"{words.ratio} {self.ratio:{form}} ({low} to {high})")
        return "; ".join(parts) + remarks

    __repr__ = __str__

    def _band(self, mean: float, std: float, lower: float, upper: float) -> str:
        # Two digits of the standard deviation or, if that is tiny, four of the number.
        decimals = 1 - math.floor(math.log10(std)) if std > 0.0 else 9
        form = f"+.{max(decimals, 0)}f" if decimals < 9 else "+.4g"
        ends = f"{lower:{form}} to {upper:{form}}"
        return f"{mean:{form}} ({100.0 * self.coverage:g}%: {ends})"


@dataclass(frozen=True, eq=False, repr=False)
class Contrast(Compared, Banded):
    """Differences of the contributions of all values of a column to that of a reference value.

    Attributes
    ----------
    reference
        The reference value; None is a missing value.
    values
        Numbers in the column's unit, or categories.
    mean, std
        Posterior mean and standard deviation of the differences, both zero at the reference; with a last
        axis of classes where there are more than two.
    inside
        Whether the value lies within the range of the training data.
    missing_mean, missing_std
        The same of a missing value; None where the training data had none.
    largest_deviations
        As of a term: posterior draws of the largest deviation from the mean, in standard deviations.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(interactions=0, random_state=0).fit(X[["bmi", "bp"]], y)
    >>> contrast = model.explain_global().differences("bmi", reference=25)
    >>> lower, upper = contrast.band(simultaneous=True)
    >>> bool(lower[contrast.values > 35].min() > 0)
    True
    """

    reference: object
    values: Values
    mean: Array
    std: Array
    inside: NDArray[np.bool_]
    missing_mean: float | Array | None
    missing_std: float | Array | None
    largest_deviations: Array
    backend: str | None = None

    def __repr__(self) -> str:
        return brief(self, "column", "reference", "terms", "mean")

    def missing_band(
        self, coverage: float = 0.95, simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """The band of a missing value; an error if the training data had none."""
        if self.missing_mean is None or self.missing_std is None:
            raise ValueError(f"column {self.column!r} had no missing values in the training data")
        half = self.half_width(coverage, simultaneous)
        return around(np.asarray(self.missing_mean), np.asarray(self.missing_std), half)

    def to_frame(self, coverage: float = 0.95) -> Any:
        """One row per value, and per class if there are several, as a frame of the user's library.

        If the training data had missing values, the last row is that of ``"(missing)"`` in ``level``.
        """
        missing: list[Other] = []
        if self.missing_mean is not None and self.missing_std is not None:
            missing = [(MISSING, self.missing_mean, self.missing_std, 1.0)]
        numbers, labels = axis_cells(self.values, [name for name, *_ in missing])
        columns = {
            "term": object_array([self.column] * len(numbers)),
            "value": numbers,
            "level": labels,
            **function_cells(self, missing, coverage),
            "inside": np.append(self.inside, np.ones(len(missing), dtype=bool)),
        }
        return explanation_frame(columns, self)


def _shown(value: object) -> str:
    if is_missing(value):
        return MISSING
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _exp(number: float | Array) -> float:
    with np.errstate(over="ignore"):  # overflow to infinity
        return float(np.exp(number))


def _probability(probability: float) -> str:
    if 0.0005 <= probability < 0.9995:
        return f"{probability:.3f}"
    return "more than 0.999" if probability > 0.5 else "less than 0.001"
