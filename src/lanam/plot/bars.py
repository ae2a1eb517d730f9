"""plot_importance, and the horizontal bars with intervals that it shares with plot_local."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lanam.explain import GlobalExplanation, Shape, Surface
from lanam.explain.terms import term_names
from lanam.plot.common import (
    DOWN,
    UP,
    VERBATIM,
    Style,
    in_percent,
    panel_or_new,
    require,
    require_axes,
    require_terms,
    term_count,
    term_list,
    write_notes,
)
from lanam.text import number_format

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Height in inches of a bar, and of everything else.
_PITCH = 0.32
_FRAME = 1.7

_WIDTH = 9.0

#: Bars can be distinguished without colours.
_LOOKS: dict[str, Style] = {
    "solid": {"facecolor": "#8fb0d3"},
    "hatched": {"facecolor": "white", "hatch": "////"},
    "up": {"facecolor": UP, "edgecolor": UP},
    "down": {"facecolor": "white", "edgecolor": DOWN, "hatch": "////"},
    "hollow": {"facecolor": "white", "linestyle": (0, (1, 1))},
    "dotted": {"facecolor": "white", "hatch": "...."},
}


@dataclass(frozen=True)
class Bar:
    """A bar from zero, with its interval; ``look`` is one of the above.

    ``dotted`` is the length of a dotted part at its end.
    """

    name: str
    size: float
    low: float
    high: float
    look: str = "solid"
    dotted: float = 0.0


def bar_panel(ax: Axes | None, n_bars: int) -> tuple[Axes, bool]:
    """The given Axes or those of a new figure, high enough for the bars; and whether they are new."""
    return panel_or_new("ax", ax, _WIDTH, _FRAME + _PITCH * max(n_bars, 1))


def draw_bars(ax: Axes, bars: Sequence[Bar], *, signed: bool = False) -> None:
    """Draw bars from the top down, names on the left, numbers on the right."""
    from matplotlib.ticker import MaxNLocator

    largest = max((abs(bar.size) for bar in bars), default=1.0) or 1.0
    form = ("+" if signed else "") + number_format(largest, 3)
    for row, bar in enumerate(bars):
        look: Style = {"edgecolor": "#12436d", "linewidth": 0.8} | _LOOKS[bar.look]
        ax.barh(row, bar.size, height=0.62, **look)
        if bar.dotted:
            ax.barh(
                row, bar.dotted, left=bar.size - bar.dotted, height=0.62, **look | _LOOKS["dotted"]
            )
    sizes, lows, highs = (
        np.array([getattr(bar, name) for bar in bars]) for name in ("size", "low", "high")
    )
    ax.errorbar(
        sizes,
        np.arange(len(bars)),
        xerr=[sizes - lows, highs - sizes],
        fmt="none",
        ecolor="0.1",
        elinewidth=1.3,
        capsize=2.5,
        zorder=3,
    )
    ax.axvline(0.0, color="0.35", linewidth=0.8, zorder=2)
    ax.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize="small", **VERBATIM)
    ax.set_ylim(max(len(bars), 1) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    for row, bar in enumerate(bars):
        ax.text(
            1.02,
            row,
            f"{bar.size:{form}} [{bar.low:{form}}, {bar.high:{form}}]",
            transform=ax.get_yaxis_transform(),
            va="center",
            fontsize="small",
            color="0.25",
        )
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)


def plot_importance(
    explanation: GlobalExplanation,
    ax: Axes | None = None,
    *,
    coverage: float = 0.95,
    max_terms: int | None = 30,
    terms: Sequence[str] | None = None,
) -> Axes:
    """Plot the importance of terms: their mean absolute contribution over the training data.

    The most important are at the top, with credible intervals. Main effects are solid, interactions
    hatched. The dotted part of a bar is due to whether the value is missing, not to the value.

    Parameters
    ----------
    explanation : GlobalExplanation
        From a model's ``explain_global()``, or of its noise from ``explain_noise()``.
    ax : Axes, default=None
        By default those of a new figure.
    coverage : float, default=0.95
        Of the intervals.
    max_terms : int or None, default=30
        Maximum number of terms.
    terms : sequence of str, default=None
        Names of the terms, in this order; by default all active ones.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> from lanam.plot import plot_importance
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(random_state=0).fit(X[["bp", "bmi"]], y)
    >>> ax = plot_importance(model.explain_global())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['bmi', 'bp']
    """
    require(explanation, GlobalExplanation, "use explain_global()")
    require_axes("ax", ax)
    require_terms(terms, max_terms)
    chosen = explanation.active if terms is None else [explanation[name] for name in terms]
    drawn = chosen[:max_terms]
    bars = []
    for term, name in zip(drawn, term_names(drawn), strict=True):
        low, high = term.importance_interval(coverage)
        look = "hatched" if term.joint else "solid"
        dotted = term.importance_of_missingness
        bars.append(Bar(name, term.importance, low, high, look, dotted))
    ax, is_new = bar_panel(ax, len(bars))
    draw_bars(ax, bars)
    ax.set_xlim(left=0.0)
    several = explanation.family.link.several
    unit = "centred logits" if several else explanation.unit
    ax.set_xlabel(f"mean absolute contribution to the {unit}", **VERBATIM)
    if not bars:
        ax.text(0.5, 0.5, "no term is active", transform=ax.transAxes, ha="center", va="center")
    if is_new:
        write_notes(ax, _notes(explanation, drawn, coverage))
    return ax


def _notes(
    explanation: GlobalExplanation, drawn: Sequence[Shape | Surface], coverage: float
) -> list[str]:
    key = f"Error bars: {in_percent(coverage)} credible intervals."
    if any(isinstance(term, Surface) for term in drawn):
        key = f"Solid: main effects. Hatched: interactions. {key}"
    if any(term.importance_of_missingness > 0.0 for term in drawn):
        key += " Dotted: due to whether the value is missing."
    notes = [key] if drawn else []
    if edited := [term for term in drawn if term.was_edited]:
        notes.append(f"{term_count(len(edited), 'edited by hand')}: {term_list(edited)}.")
    off = [term for term in explanation.switched_off if term not in drawn]
    hidden = sum(term not in drawn for term in explanation.active)
    if hidden:
        notes.append(f"{term_count(hidden, 'active but not shown')}.")
    if off:
        notes.append(f"{term_count(len(off), 'dropped', len(explanation))}: {term_list(off)}.")
    return notes
