"""plot_local: the contributions to one prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanam.core.arrays import Array
from lanam.explain import MISSING, LocalExplanation
from lanam.explain.bands import around, half_width
from lanam.explain.terms import MAX_LONG_NAME, term_names
from lanam.plot.bars import Bar, bar_panel, draw_bars
from lanam.plot.common import (
    MAX_LABEL,
    MAX_NAME,
    VERBATIM,
    in_percent,
    require,
    require_axes,
    require_terms,
    term_count,
    term_list,
    write_notes,
)
from lanam.text import cut, number_format, one_line, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_local(
    local: LocalExplanation,
    row: int = 0,
    ax: Axes | None = None,
    *,
    coverage: float = 0.95,
    max_terms: int | None = None,
    everything: bool = False,
    label: object = None,
) -> Axes:
    """Plot the contributions of the terms to one prediction, with credible intervals.

    Terms whose interval includes zero are left out, unless all do; their number and total contribution are
    stated below the axis. The largest contributions are at the top; positive ones are solid and red,
    negative ones hatched and blue.

    Parameters
    ----------
    local : LocalExplanation
        From a model's ``explain_local(X)``.
    row : int, default=0
        Index of the explained row.
    ax : Axes, default=None
        By default those of a new figure.
    coverage : float, default=0.95
        Of the intervals.
    max_terms : int or None, default=None
        Maximum number of terms, the largest contributions first.
    everything : bool, default=False
        Whether to include terms whose interval includes zero, with hollow bars.
    label : label of a class, default=None
        With more than two classes, the one to explain; by default the most probable.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> from lanam.plot import plot_local
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> X = X[["age", "bmi", "bp"]]
    >>> local = LANAMRegressor(random_state=0).fit(X, y).explain_local(X[:3])
    >>> ax = plot_local(local, row=1)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['bmi = 21.6', 'bp = 87']
    """
    require(local, LocalExplanation, "use explain_local(X); a whole model has plot_importance")
    if not isinstance(row, int | np.integer) or not 0 <= row < len(local):
        raise ValueError(f"row={row!r} must be one of the explained rows, 0 to {len(local) - 1}")
    require_axes("ax", ax)
    require_terms(None, max_terms)
    account = _Account(local, int(row), _class_index(local, int(row), label), coverage)
    everything = everything or not (account.active & account.excludes_zero).any()
    shown = account.chosen(everything, max_terms)
    bars = _bars(account, shown)
    ax, is_new = bar_panel(ax, len(bars))
    draw_bars(ax, bars, signed=True)
    if not bars:
        words = "all terms are dropped"
        ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center")
    first, *further = account.headline()
    title = [f"Row {row}: {first}", *further, account.equation(shown)]
    ax.set_title("\n".join(title), loc="left", fontsize="small", **VERBATIM)
    below = [f"contribution to the {account.unit}", *account.left_out(shown, everything)]
    ax.set_xlabel("\n".join(below), fontsize="small", **VERBATIM)
    if is_new:
        write_notes(ax, _notes(account, bars))
    return ax


def _bars(account: _Account, shown: Sequence[int]) -> list[Bar]:
    """Bars of the terms: up if positive, down if negative, hollow if the interval includes zero."""
    labels, (lower, upper) = account.labels(), account.ends
    direction = np.where(account.mean > 0.0, "up", "down")
    looks = np.where(account.excludes_zero, direction, "hollow").tolist()
    return [Bar(labels[k], account.mean[k], lower[k], upper[k], looks[k]) for k in shown]


def _notes(account: _Account, bars: Sequence[Bar]) -> list[str]:
    """The key to the plot."""
    local = account.local
    keys = {
        "up": "Solid, red: positive.",
        "down": "Hatched, blue: negative.",
        "hollow": "Hollow: the interval includes zero.",
    }
    looks = {bar.look for bar in bars}
    words = [text for look, text in keys.items() if look in looks]
    off = sum(not term.active for term in local.terms)
    if bars:
        words.append(f"Error bars: {in_percent(account.coverage)} credible intervals.")
    if off:
        words.append(f"{term_count(off, 'dropped', len(local.terms))}.")
    edited = [term for term, own in zip(local.terms, local.edited[account.row], strict=True) if own]
    if edited:
        words.append(
            f"{term_count(len(edited), 'edited by hand')} at the values of this row: {term_list(edited)}."
        )
    beyond = [
        term for term, own in zip(local.terms, local.outside[account.row], strict=True) if own
    ]
    if beyond:
        words.append(f"Outside the range of the training data: {term_list(beyond)}.")
    return [" ".join(words)] if words else []


@dataclass(frozen=True)
class _Account:
    """One row's prediction for one output, in numbers and words; ``class_index`` if several."""

    local: LocalExplanation
    row: int
    class_index: int | None
    coverage: float

    def _pick(self, table: ArrayLike) -> Array:
        array: Array = np.asarray(table, dtype=np.float64)
        return array if self.class_index is None else np.asarray(array[..., self.class_index])

    @cached_property
    def mean(self) -> Array:
        """Contributions of the terms."""
        return self._pick(self.local.contributions[self.row])

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """Bounds of the contributions' credible intervals."""
        std = self._pick(self.local.contributions_std[self.row])
        lower, upper = around(self.mean, std, half_width(self.coverage))
        return lower, upper

    @property
    def excludes_zero(self) -> NDArray[np.bool_]:
        """Which terms' intervals exclude zero."""
        lower, upper = self.ends
        return (lower > 0.0) | (upper < 0.0)

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which terms are active."""
        return np.array([term.active for term in self.local.terms], dtype=bool)

    @property
    def form(self) -> str:
        """A number format with the digits of the largest contribution."""
        return number_format(float(np.abs(self.mean).max(initial=0.0)) or 1.0, 3)

    @property
    def class_name(self) -> str:
        """The name of the class that is predicted, if any."""
        names = self.local.classes
        if not names or not self.local.family.link.classes:
            return ""
        return shorten(
            one_line(names[1 if self.class_index is None else self.class_index]), MAX_NAME
        )

    @property
    def unit(self) -> str:
        """What the contributions add to."""
        several = self.local.family.link.several
        return f"centred logit of {self.class_name}" if several else self.local.unit

    def chosen(self, everything: bool, most: int | None) -> list[int]:
        """Indices of the terms to show, the largest contribution first."""
        order = np.argsort(-np.abs(self.mean), kind="stable")
        wanted = self.active & (self.excludes_zero | everything)
        return [int(k) for k in order if wanted[k]][:most]

    def headline(self) -> list[str]:
        """The prediction on the response scale, and its interval unless there are several classes."""
        link, name = self.local.family.link, self.local.family.words.response
        response = float(self._pick(self.local.response[self.row]))
        of = f" of {self.class_name}" if self.class_name else ""
        number = f"{{:{self.form if link.identity else '.3g'}}}".format
        form = _probability if link.classes else number
        title = f"{name}{of} {'is ' if link.classes else ''}{form(response)}"
        if link.several:
            return [title]
        prediction, std = self.local.prediction[self.row], self.local.prediction_std[self.row]
        ends = link.inverse(np.array(around(prediction, std, half_width(self.coverage))))
        low, high = map(form, ends.tolist())
        return [
            title,
            f"{in_percent(self.coverage)} credible interval of the mean: {low} to {high}",
        ]

    def equation(self, shown: Sequence[int]) -> str:
        """The decomposition of the prediction as an equation."""
        form, drawn = self.form, float(self.mean[list(shown)].sum())
        prediction = float(self._pick(self.local.prediction[self.row]))
        intercept = float(self._pick(self.local.intercept))
        total = f"{self.local.family.words.total} {prediction:{form}}"
        parts = [f"{total} = {intercept:{form}} intercept", f"{drawn:+{form}} shown"]
        if self.local.offset is not None:
            parts.append(f"{float(self.local.offset[self.row]):+{form}} offset")
        if len(shown) < self.active.sum():
            parts.append(f"{self.mean.sum() - drawn:+{form}} not shown")
        return " ".join(parts)

    def left_out(self, shown: Sequence[int], everything: bool) -> list[str]:
        """Number and total contribution of the terms that are not shown, with the reason."""
        hidden = self.active
        hidden[list(shown)] = False
        unsure = hidden & ~self.excludes_zero & (not everything)
        smaller = hidden & ~unsure
        percent, one = in_percent(self.coverage), unsure.sum() == 1
        why = f"its {percent} interval includes" if one else f"their {percent} intervals include"
        reasons = {"left out": f": {why} zero;", "not shown": ", with smaller contributions;"}
        lines = []
        for (what, reason), some in zip(reasons.items(), (unsure, smaller), strict=True):
            if some.any():
                adds = "their total contribution is" if some.sum() > 1 else "its contribution is"
                lines.append(f"{term_count(int(some.sum()), what)}{reason}")
                lines.append(f"{adds} {float(self.mean[some].sum()):+{self.form}}.")
        return lines

    def labels(self) -> list[str]:
        """The row's values by term, as ``age = 63``; one line per column of an interaction."""
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


def _class_index(local: LocalExplanation, row: int, label: object) -> int | None:
    """The index of the class to show, by default the most probable; None for a single output."""
    if not local.family.link.several:
        if label is not None:
            raise ValueError(
                "label selects one of more than two classes, and the model has fewer: leave it out"
            )
        return None
    return int(np.argmax(local.response[row])) if label is None else local.class_index(label)


def _probability(share: float) -> str:
    """A probability to three digits, without rounding to 1."""
    return ">0.999" if 0.999 < share < 1.0 else f"{share:.3g}"


def _value(value: object) -> str:
    """A value of a column, formatted."""
    if value is None or value != value:
        return MISSING
    if not isinstance(value, float):
        return shorten(one_line(value), MAX_LABEL)
    whole = 1e4 <= abs(value) < 1e12 and value == round(value)
    return f"{value:,.0f}" if whole else f"{value:.4g}"
