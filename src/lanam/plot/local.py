"""One row's prediction taken apart."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from lanam.explain import MISSING, LocalExplanation
from lanam.explain.bands import half_width
from lanam.plot.bars import Bar, bar_panel, draw_bars
from lanam.plot.common import (
    MAX_LABEL,
    MAX_LONG_NAME,
    MAX_NAME,
    VERBATIM,
    count,
    cut,
    in_percent,
    one_line,
    require,
    term_names,
    unit_of,
    write,
)
from lanam.text import number_format, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Characters of a line below the bars.
_LINE = 66


def plot_local(
    local: LocalExplanation,
    row: int = 0,
    ax: Axes | None = None,
    *,
    coverage: float = 0.95,
    max_terms: int | None = None,
    everything: bool = False,
    label: Any = None,
) -> Axes:
    """Draw what each term adds to one row's prediction, with credible intervals.

    Terms whose interval includes zero are left out, and how many they are and what they add together
    is written below the axis. The largest contributions are at the top; what raises the prediction is
    solid, what lowers it hatched.

    Parameters
    ----------
    local : LocalExplanation
        From a model's ``explain_local(X)``.
    row : int, default=0
        Which of the explained rows, counted from zero.
    ax : Axes, default=None
        Where to draw; by default a new figure.
    coverage : float, default=0.95
        Of the intervals.
    max_terms : int or None, default=None
        The most terms to draw, the largest first; None draws all that are not left out.
    everything : bool, default=False
        Whether to draw also the terms whose interval includes zero; their bars are hollow.
    label : label of a class, default=None
        Of more than two classes, the one whose score is drawn; by default the most probable.

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
    if not isinstance(row, Integral) or not 0 <= row < len(local):
        raise ValueError(f"row={row!r} must be one of the explained rows, 0 to {len(local) - 1}")
    parts = _parts_of(local, int(row), _class_place(local, int(row), label), half_width(coverage))
    shown = parts.shown(everything, max_terms)
    bars = [parts.bar(k) for k in shown]
    own = ax is None
    if ax is None:
        ax = bar_panel(len(bars))
    draw_bars(ax, bars, signed=True)
    if not bars:
        words = "no contribution is surely other than zero"
        ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center")
    title = [f"Row {row}: {parts.response_said}", *parts.interval_said(coverage)]
    ax.set_title(
        "\n".join([*title, parts.account(shown)]), loc="left", fontsize="small", **VERBATIM
    )
    lines = [f"contribution to the {parts.unit}"]
    for sentence in parts.left_out(shown, coverage, everything):
        lines += textwrap.wrap(sentence, _LINE)
    ax.set_xlabel("\n".join(lines), fontsize="small", **VERBATIM)
    if own:
        write(ax.figure, _notes(local, bars, coverage))
    return ax


@dataclass(frozen=True)
class _Parts:
    """A row's contributions for one output."""

    local: LocalExplanation
    labels: list[str]
    of_class: str
    reach: float
    mean: np.ndarray
    std: np.ndarray
    active: np.ndarray
    intercept: float
    prediction: float
    prediction_std: float
    response: float

    @property
    def unit(self) -> str:
        """What the contributions add to."""
        return f"score of {self.of_class}" if self.of_class else unit_of(self.local)

    @property
    def form(self) -> str:
        """One format for all sums, to the digits of the largest contribution."""
        return number_format(float(np.abs(self.mean).max(initial=0.0)) or 1.0, 3)

    @property
    def sure(self) -> np.ndarray:
        """Which terms' intervals do not include zero."""
        return np.abs(self.mean) > self.reach * self.std

    def shown(self, everything: bool, most: int | None) -> list[int]:
        """The terms to draw, the largest contribution first."""
        order = np.argsort(-np.abs(self.mean), kind="stable")
        wanted = self.active & (self.sure | everything)
        return [int(k) for k in order if wanted[k]][:most]

    def bar(self, k: int) -> Bar:
        """A term's bar."""
        mean, spread = float(self.mean[k]), float(self.reach * self.std[k])
        look = "hollow" if not self.sure[k] else "solid" if mean > 0.0 else "hatched"
        return Bar(self.labels[k], mean, mean - spread, mean + spread, look)

    @property
    def response_said(self) -> str:
        """The prediction on the target's scale."""
        link, known = self.local.link, self.local.classes
        if link == "identity":
            return f"prediction {self.response:{self.form}}"
        if link == "log":
            return f"rate {self.response:.3g}"
        name = self.of_class or (shorten(one_line(known[1]), MAX_NAME) if known else "")
        return f"probability{' of ' if name else ''}{name} {self.response:.3g}"

    def interval_said(self, coverage: float) -> list[str]:
        """The interval of the prediction on the target's scale, where the link keeps intervals."""
        link, spread = self.local.link, self.reach * self.prediction_std
        ends = np.array([self.prediction - spread, self.prediction + spread])
        if link == "softmax":
            return []
        form = self.form if link == "identity" else ".3g"
        low, high = expit(ends) if link == "logit" else np.exp(ends) if link == "log" else ends
        return [f"{in_percent(coverage)} interval of the mean: {low:{form}} to {high:{form}}"]

    def account(self, shown: Sequence[int]) -> str:
        """How intercept and contributions make the prediction."""
        rest = float(self.mean.sum() - self.mean[shown].sum())
        parts = [f"{float(self.mean[shown].sum()):+{self.form}} shown"]
        if len(shown) < self.active.sum():
            parts.append(f"{rest:+{self.form}} not shown")
        name = {"logit": "log-odds", "log": "log rate", "softmax": "score"}.get(self.local.link)
        total = f"{name or 'prediction'} {self.prediction:{self.form}}"
        return f"{total} = {self.intercept:{self.form}} intercept {' '.join(parts)}"

    def left_out(self, shown: Sequence[int], coverage: float, everything: bool) -> list[str]:
        """How many terms are not drawn, and what they add."""
        hidden = self.active.copy()
        hidden[shown] = False
        sentences = []
        unsure = hidden & ~self.sure & (not everything)
        more = hidden & ~unsure
        if unsure.any():
            one = unsure.sum() == 1
            why = f"its {in_percent(coverage)} interval includes zero"
            whys = f"their {in_percent(coverage)} intervals include zero"
            said = f"{count(int(unsure.sum()), 'left out')}: {why if one else whys}"
            sentences.append(f"{said}; {self._adds(unsure)}")
        if more.any():
            said = f"{count(int(more.sum()), 'not shown')}, with smaller contributions"
            sentences.append(f"{said}; {self._adds(more)}")
        return sentences

    def _adds(self, some: np.ndarray) -> str:
        total = f"{float(self.mean[some].sum()):+{self.form}}"
        return f"together they add {total}." if some.sum() > 1 else f"it adds {total}."


def _class_place(local: LocalExplanation, row: int, label: Any) -> int | None:
    """The place of the class to draw, None where there is one output."""
    if local.link != "softmax":
        if label is not None:
            raise ValueError("a label picks one of more than two classes: leave it out")
        return None
    known = list(local.classes or ())
    if label is None:
        return int(np.argmax(local.response[row]))
    if label not in known:
        raise ValueError(f"label={label!r} is not among the model's classes: {known}")
    return known.index(label)


def _parts_of(local: LocalExplanation, row: int, place: int | None, reach: float) -> _Parts:
    """The numbers of one row and class."""

    def pick(table: Any) -> np.ndarray:
        array = np.asarray(table, dtype=float)
        return array if place is None else array[..., place]

    names = local.classes or ()
    return _Parts(
        local=local,
        labels=_labels(local, row),
        of_class="" if place is None else shorten(one_line(names[place]), MAX_NAME),
        reach=reach,
        mean=pick(local.contributions[row]),
        std=pick(local.contributions_std[row]),
        active=np.array([term.active for term in local.terms], dtype=bool),
        intercept=float(pick(local.intercept)),
        prediction=float(pick(local.prediction[row])),
        prediction_std=float(pick(local.prediction_std[row])),
        response=float(pick(local.response[row])),
    )


def _labels(local: LocalExplanation, row: int) -> list[str]:
    """What a row has in each term's columns: ``age = 63``; of a pair in two lines."""
    columns = [name for term in local.terms for name in term.feature_names]
    short = dict(zip(columns, cut(columns, MAX_LONG_NAME), strict=True))
    labels = term_names(local.terms)
    for k, term in enumerate(local.terms):
        first, second = _value(local.values[row, k]), _value(local.second_values[row, k])
        if term.kind == "pair":
            a, b = (short[name] for name in term.feature_names)
            labels[k] = f"{a} = {first}\nx {b} = {second}"
        else:
            labels[k] += f" = {first}"
    return labels


def _value(value: Any) -> str:
    """A cell of the table as people write it."""
    if value is None or value != value:
        return MISSING
    if isinstance(value, str) or not np.isreal(value) or isinstance(value, bool | np.bool_):
        return shorten(one_line(value), MAX_LABEL)
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 and value == int(value) else f"{value:.4g}"


def _notes(local: LocalExplanation, bars: Sequence[Bar], coverage: float) -> list[str]:
    """How to read the drawing."""
    keys = {
        "solid": "Solid: raises the prediction.",
        "hatched": "Hatched: lowers it.",
        "hollow": "Hollow: the interval includes zero.",
    }
    looks = {bar.look for bar in bars}
    words = [text for look, text in keys.items() if look in looks]
    off = sum(not term.active for term in local.terms)
    if bars:
        words.append(f"Lines: {in_percent(coverage)} intervals.")
    if off:
        words.append(f"{count(off, 'switched off')}.")
    return [" ".join(words)] if words else []
