"""How much each term matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanam.explain import GlobalExplanation, Shape, Surface
from lanam.explain.terms import term_names
from lanam.plot.bars import Bar, bar_panel, draw_bars
from lanam.plot.common import require, require_axes, require_terms
from lanam.plot.words import VERBATIM, count, in_percent, named, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_importance(
    explanation: GlobalExplanation,
    ax: Axes | None = None,
    *,
    coverage: float = 0.95,
    max_terms: int | None = 30,
    terms: Sequence[str] | None = None,
) -> Axes:
    """Draw the importance of terms, which is their mean absolute contribution to the prediction.

    The most important are at the top, with the interval of each importance. Terms of one column are
    solid and pairs hatched.

    Parameters
    ----------
    explanation : GlobalExplanation
        From a model's ``explain_global()``, or of its noise from ``explain_noise()``.
    ax : Axes, default=None
        Where to draw; by default a new figure.
    coverage : float, default=0.95
        Of the intervals.
    max_terms : int or None, default=30
        The most terms to draw; None draws all.
    terms : sequence of str, default=None
        Names of the terms to draw, in this order; by default all active ones.

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
    bars = [_bar(term, name, coverage) for term, name in zip(drawn, term_names(drawn), strict=True)]
    own = ax is None
    if ax is None:
        ax = bar_panel(len(bars))
    draw_bars(ax, bars)
    ax.set_xlim(left=0.0)
    several = explanation.family.link.several
    unit = "scores of the classes" if several else explanation.unit
    ax.set_xlabel(f"mean absolute contribution to the {unit}", **VERBATIM)
    if not bars:
        ax.text(0.5, 0.5, "no term is active", transform=ax.transAxes, ha="center", va="center")
    if own:
        write(ax, _notes(explanation, drawn, coverage))
    return ax


def _bar(term: Shape | Surface, name: str, coverage: float) -> Bar:
    look = "hatched" if isinstance(term, Surface) else "solid"
    return Bar(name, term.importance, *term.importance_interval(coverage), look)


def _notes(
    explanation: GlobalExplanation, drawn: Sequence[Shape | Surface], coverage: float
) -> list[str]:
    key = f"Lines: {in_percent(coverage)} intervals."
    if any(isinstance(term, Surface) for term in drawn):
        key = f"Solid: terms of one column. Hatched: pairs. {key}"
    notes = [key] if drawn else []
    if edited := [term for term in drawn if term.was_edited]:
        notes.append(f"{count(len(edited), 'edited by hand')}: {named(edited)}.")
    off = [term for term in explanation.switched_off if term not in drawn]
    hidden = sum(term not in drawn for term in explanation.active)
    if hidden:
        notes.append(f"{count(hidden, 'active but not shown')}.")
    if off:
        notes.append(f"{count(len(off), 'switched off', len(explanation))}: {named(off)}.")
    return notes
