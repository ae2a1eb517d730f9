"""plot_survival: survival curves and cumulative incidences with their bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanam.explain.curves import SurvivalCurves
from lanam.plot.common import (
    CLASS_COLOURS,
    LINE_STYLES,
    MAX_NAME,
    VERBATIM,
    in_percent,
    panel_or_new,
    require,
    write_legend,
    write_notes,
)
from lanam.text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More curves than this cannot be distinguished.
_MAX_CURVES = len(LINE_STYLES)


def plot_survival(curves: SurvivalCurves, ax: Axes | None = None, *, bands: bool = True) -> Axes:
    """Plot survival curves, or cumulative incidences, of some rows.

    Parameters
    ----------
    curves : SurvivalCurves
        From :meth:`LANAMSurvival.explain_survival`, of at most 8 rows.
    ax : Axes, default=None
        By default those of a new figure.
    bands : bool, default=True
        Whether to shade the credible intervals.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMSurvival
    >>> from lanam.plot import plot_survival
    >>> rng = np.random.default_rng(0)
    >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
    >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
    >>> ax = plot_survival(model.explain_survival(X[:2]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('time', 'probability of no event')
    """
    require(curves, SurvivalCurves, "use model.explain_survival(X)")
    if not 0 < len(curves.labels) <= _MAX_CURVES:
        raise ValueError(
            f"plot_survival draws 1 to {_MAX_CURVES} curves, and there are {len(curves.labels)}: pass "
            "fewer rows to explain_survival"
        )
    ax, is_new = panel_or_new("ax", ax, 6.4, 4.4)
    names = cut(list(curves.labels), MAX_NAME)
    ends = zip(names, curves.value, curves.lower, curves.upper, strict=True)
    for k, (name, value, lower, upper) in enumerate(ends):
        colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
        if bands:
            ax.fill_between(curves.times, lower, upper, color=colour, alpha=0.18, linewidth=0.0)
        ax.plot(curves.times, value, color=colour, linestyle=LINE_STYLES[k], label=name)
    ax.set_xlabel(curves.time_name, **VERBATIM)
    ax.set_ylabel(curves.quantity)
    ax.set_xlim(curves.times[0], curves.times[-1])
    ax.set_ylim(0.0, 1.0)
    if len(names) > 1:
        write_legend(ax.legend(loc="best", fontsize="small", frameon=False))
    if is_new and bands:
        write_notes(ax, [f"Shaded: {in_percent(curves.coverage)} credible intervals at each time."])
    return ax
