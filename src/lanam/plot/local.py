"""One row's prediction taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lanam.explain import LocalExplanation
from lanam.plot.account import Account, class_place
from lanam.plot.bars import Bar, bar_panel, draw_bars
from lanam.plot.common import require, require_axes, require_terms
from lanam.plot.words import VERBATIM, count, in_percent, named, write

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
    if not isinstance(row, int | np.integer) or not 0 <= row < len(local):
        raise ValueError(f"row={row!r} must be one of the explained rows, 0 to {len(local) - 1}")
    require_axes("ax", ax)
    require_terms(None, max_terms)
    account = Account(local, int(row), class_place(local, int(row), label), coverage)
    shown = account.chosen(everything, max_terms)
    bars = _bars(account, shown)
    own = ax is None
    if ax is None:
        ax = bar_panel(len(bars))
    draw_bars(ax, bars, signed=True)
    if not bars:
        words = "no contribution is surely other than zero"
        ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center")
    first, *more = account.headline()
    title = [f"Row {row}: {first}", *more, account.sum_said(shown)]
    ax.set_title("\n".join(title), loc="left", fontsize="small", **VERBATIM)
    below = [f"contribution to the {account.unit}", *account.left_out(shown, everything)]
    ax.set_xlabel("\n".join(below), fontsize="small", **VERBATIM)
    if own:
        write(ax, _notes(account, bars))
    return ax


def _bars(account: Account, shown: Sequence[int]) -> list[Bar]:
    """The terms' bars: solid upwards, hatched downwards, hollow if it may be either."""
    labels, (lower, upper) = account.labels(), account.ends
    direction = np.where(account.mean > 0.0, "solid", "hatched")
    looks = np.where(account.sure, direction, "hollow").tolist()
    return [Bar(labels[k], account.mean[k], lower[k], upper[k], looks[k]) for k in shown]


def _notes(account: Account, bars: Sequence[Bar]) -> list[str]:
    """How to read the drawing."""
    local = account.local
    keys = {
        "solid": "Solid: raises the prediction.",
        "hatched": "Hatched: lowers the prediction.",
        "hollow": "Hollow: the interval includes zero.",
    }
    looks = {bar.look for bar in bars}
    words = [text for look, text in keys.items() if look in looks]
    off = sum(not term.active for term in local.terms)
    if bars:
        words.append(f"Lines: {in_percent(account.coverage)} intervals.")
    if off:
        words.append(f"{count(off, 'switched off', len(local.terms))}.")
    edited = [term for term, own in zip(local.terms, local.edited[account.row], strict=True) if own]
    if edited:
        words.append(f"{count(len(edited), 'edited by hand')} where this row is: {named(edited)}.")
    return [" ".join(words)] if words else []
