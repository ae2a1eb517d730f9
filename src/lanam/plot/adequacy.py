"""plot_adequacy: what a black box would gain, and which columns hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanam.metrics.adequacy import Adequacy
from lanam.plot.bars import Bar, bar_panel, draw_bars
from lanam.plot.common import VERBATIM, in_percent, require, require_axes, write_notes
from lanam.text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_NAME = 40


def plot_adequacy(adequacy: Adequacy, ax: Axes | None = None, *, max_sets: int = 8) -> Axes:
    """Plot the share of what can be explained that a model misses, and the columns that hold it together.

    The first bar is of all columns. Those below are of single columns, pairs and triples, beyond what
    smaller sets hold, the largest first.

    Parameters
    ----------
    adequacy : Adequacy
        From a model's ``adequacy(X, y)``.
    ax : Axes, default=None
        By default those of a new figure.
    max_sets : int, default=8
        Maximum number of sets of columns.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMRegressor
    >>> from lanam.plot import plot_adequacy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(400, 2))
    >>> y = 3 * X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=400)
    >>> model = LANAMRegressor(interactions=0).fit(X, y)
    >>> ax = plot_adequacy(model.adequacy(X, y, n_splits=3))
    >>> [label.get_text() for label in ax.get_yticklabels()][:2]
    ['all columns', 'x0 x x1']
    """
    require(adequacy, Adequacy, "use adequacy(X, y)")
    require_axes("ax", ax)
    sets = adequacy.together[:max_sets]
    drawn = [adequacy.missed, *sets]
    names = cut([each.name for each in drawn], _MAX_NAME)
    looks = ["solid", *("hatched" if each.clear else "hollow" for each in sets)]
    bars = [
        Bar(name, 100.0 * each.share, 100.0 * each.lower, 100.0 * each.upper, look)
        for name, each, look in zip(names, drawn, looks, strict=True)
    ]
    ax, is_new = bar_panel(ax, len(bars))
    draw_bars(ax, bars)
    ax.set_xlabel("share of what can be explained that the model misses, in %", **VERBATIM)
    if is_new:
        key = f"Error bars: {in_percent(adequacy.coverage)} intervals."
        if sets:
            key += (
                " Hatched: what these columns hold together, beyond fewer of them; hollow: not "
                "clearly above zero."
            )
        write_notes(ax, [key, adequacy.basis])
    return ax
