"""One row's contributions in numbers and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanam.core.arrays import Array
from lanam.explain import MISSING, LocalExplanation
from lanam.explain.bands import around, half_width
from lanam.explain.terms import MAX_LONG_NAME, term_names
from lanam.plot.words import MAX_LABEL, MAX_NAME, count, in_percent
from lanam.text import cut, number_format, one_line, shorten


@dataclass(frozen=True)
class Account:
    """A row's prediction for one output: ``place`` is that of the class, None where there is one output."""

    local: LocalExplanation
    row: int
    place: int | None
    coverage: float

    def _pick(self, table: ArrayLike) -> Array:
        array: Array = np.asarray(table, dtype=np.float64)
        return array if self.place is None else np.asarray(array[..., self.place])

    @cached_property
    def mean(self) -> Array:
        """What each term adds."""
        return self._pick(self.local.contributions[self.row])

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """The ends of the contributions' intervals."""
        std = self._pick(self.local.contributions_std[self.row])
        lower, upper = around(self.mean, std, half_width(self.coverage))
        return lower, upper

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Which terms' intervals do not include zero."""
        lower, upper = self.ends
        return (lower > 0.0) | (upper < 0.0)

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which terms contribute at all."""
        return np.array([term.active for term in self.local.terms], dtype=bool)

    @property
    def form(self) -> str:
        """One format for all sums, to the digits of the largest contribution."""
        return number_format(float(np.abs(self.mean).max(initial=0.0)) or 1.0, 3)

    @property
    def class_name(self) -> str:
        """The class that the prediction is of, if there are any and it has a name."""
        names = self.local.classes
        if not names or not self.local.family.link.classes:
            return ""
        return shorten(one_line(names[1 if self.place is None else self.place]), MAX_NAME)

    @property
    def unit(self) -> str:
        """What the contributions add to."""
        several = self.local.family.link.several
        return f"score of {self.class_name}" if several else self.local.unit

    def chosen(self, everything: bool, most: int | None) -> list[int]:
        """The terms to draw, the largest contribution first."""
        order = np.argsort(-np.abs(self.mean), kind="stable")
        wanted = self.active & (self.sure | everything)
        return [int(k) for k in order if wanted[k]][:most]

    def headline(self) -> list[str]:
        """The prediction on the target's scale, and its interval where the link keeps intervals."""
        link, name = self.local.family.link, self.local.family.words.response
        response = float(self._pick(self.local.response[self.row]))
        of = f" of {self.class_name}" if self.class_name else ""
        if link.several:
            return [f"{name}{of} is {_probability(response)}"]
        prediction, std = self.local.prediction[self.row], self.local.prediction_std[self.row]
        ends = link.inverse(np.array(around(prediction, std, half_width(self.coverage))))
        if link.classes:
            said = f"{name}{of} is {_probability(response)}"
            low, high = map(_probability, ends.tolist())
        else:
            form = self.form if link.identity else ".3g"
            said = f"{name} {response:{form}}"
            low, high = (f"{end:{form}}" for end in ends.tolist())
        return [said, f"{in_percent(self.coverage)} interval of the mean: {low} to {high}"]

    def sum_said(self, shown: Sequence[int]) -> str:
        """How intercept and contributions make the prediction."""
        form, drawn = self.form, float(self.mean[list(shown)].sum())
        prediction = float(self._pick(self.local.prediction[self.row]))
        intercept = float(self._pick(self.local.intercept))
        said = f"{self.local.family.words.total} {prediction:{form}} = {intercept:{form}} intercept"
        said += f" {drawn:+{form}} shown"
        if len(shown) == self.active.sum():
            return said
        return f"{said} {self.mean.sum() - drawn:+{form}} not shown"

    def left_out(self, shown: Sequence[int], everything: bool) -> list[str]:
        """How many terms are not drawn, why, and what they add, in lines."""
        hidden = self.active
        hidden[list(shown)] = False
        unsure = hidden & ~self.sure & (not everything)
        smaller = hidden & ~unsure
        percent, lines = in_percent(self.coverage), []
        if unsure.any():
            why = f"their {percent} intervals include zero"
            if unsure.sum() == 1:
                why = f"its {percent} interval includes zero"
            said = f"{count(int(unsure.sum()), 'left out')}: {why}"
            lines += [f"{said};", self._adds(unsure)]
        if smaller.any():
            said = f"{count(int(smaller.sum()), 'not shown')}, with smaller contributions"
            lines += [f"{said};", self._adds(smaller)]
        return lines

    def _adds(self, some: NDArray[np.bool_]) -> str:
        total = f"{float(self.mean[some].sum()):+{self.form}}"
        return f"together they add {total}." if some.sum() > 1 else f"it adds {total}."

    def labels(self) -> list[str]:
        """What the row has in each term's columns: ``age = 63``; of several in a line each."""
        terms, row = self.local.terms, self.row
        columns = [name for term in terms for name in term.feature_names]
        short = dict(zip(columns, cut(columns, MAX_LONG_NAME), strict=True))
        labels = term_names(terms)
        for k, term in enumerate(terms):
            values = [_value(column[row, k]) for column in self.local.column_values]
            if term.joint:
                cells = zip(term.feature_names, values, strict=False)
                labels[k] = "\nx ".join(f"{short[name]} = {value}" for name, value in cells)
            else:
                labels[k] += f" = {values[0]}"
        return labels


def class_place(local: LocalExplanation, row: int, label: object) -> int | None:
    """The place of the class to draw, by default the most probable; None where there is one output."""
    if not local.family.link.several:
        if label is not None:
            raise ValueError("a label picks one of more than two classes: leave it out")
        return None
    known = list(local.classes or ())
    if label is None:
        return int(np.argmax(local.response[row]))
    if label not in known:
        raise ValueError(f"label={label!r} is not among the model's classes: {known}")
    return known.index(label)


def _probability(share: float) -> str:
    """A probability to three digits; none that is not sure is written as one."""
    return ">0.999" if 0.999 < share < 1.0 else f"{share:.3g}"


def _value(value: object) -> str:
    """A cell of the table as people write it."""
    if value is None or value != value:
        return MISSING
    if not isinstance(value, float):
        return shorten(one_line(value), MAX_LABEL)
    whole = 1e4 <= abs(value) < 1e12 and value == round(value)
    return f"{value:,.0f}" if whole else f"{value:.4g}"
