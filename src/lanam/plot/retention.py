"""How good a model is where it is certain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lanam.metrics import RetentionCurve
from lanam.plot.common import CLASS_COLOURS, LINE_STYLES, by_name, new_panel, require_axes
from lanam.plot.words import MAX_NAME, VERBATIM, write, write_legend
from lanam.text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What so few rows say is mostly chance.
_FEW_ROWS = 30

_KEY = "From left to right rows are dropped, the least certain first."


def plot_retention(
    curves: RetentionCurve | Mapping[str, RetentionCurve], ax: Axes | None = None
) -> Axes:
    """Draw how good a model is on the rows that it is most certain of.

    All rows are on the left; to the right the least certain are dropped one after the other. Of a model
    that knows what it does not know, accuracy rises to the right and an error falls.

    Parameters
    ----------
    curves : RetentionCurve, or dict of these by name
        From :mod:`lanam.metrics`; several to compare them.
    ax : Axes, default=None
        Where to draw; by default a new figure.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lanam.metrics import retention_curve
    >>> from lanam.plot import plot_retention
    >>> rng = np.random.default_rng(0)
    >>> uncertainty = rng.random(500)
    >>> right = rng.random(500) > 0.5 * uncertainty
    >>> ax = plot_retention(retention_curve(right, uncertainty))
    >>> ax.get_ylabel()
    'accuracy of the rows retained'
    """
    from matplotlib.ticker import PercentFormatter

    found = by_name(curves, RetentionCurve, "use retention_curve")
    measures = sorted({curve.name for curve in found.values()})
    if len(measures) > 1:
        raise ValueError(f"curves of one measure can be compared, and these are of {measures}")
    require_axes("ax", ax)
    own = ax is None
    if ax is None:
        ax = new_panel(6.0, 4.4)
    for k, (name, curve) in enumerate(zip(cut(list(found), MAX_NAME), found.values(), strict=True)):
        ax.plot(
            curve.retained,
            curve.value,
            color=CLASS_COLOURS[k],
            linestyle=LINE_STYLES[k],
            linewidth=1.8,
            label=f"{name}: mean {curve.area:.3g}",
        )
    # The axis runs backwards: rightwards the model is asked less and is surer.
    ax.set_xlim(1.0, 0.0)
    few = _FEW_ROWS / min(curve.n_rows for curve in found.values())
    ax.axvspan(min(few, 1.0), 0.0, color="0.93", zorder=0, linewidth=0)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xlabel("rows retained (on the right, only the most certain)")
    ax.set_ylabel(f"{measures[0]} of the rows retained", **VERBATIM)
    ax.spines[["top", "right"]].set_visible(False)
    if isinstance(curves, Mapping):
        write_legend(ax.legend(fontsize="small", frameon=False))
    else:
        ax.set_title(
            f"mean over all shares {curves.area:.3g}, {curves.n_rows:,} rows",
            loc="left",
            fontsize="small",
            color="0.35",
        )
    if own:
        write(ax, [f"{_KEY} Shaded: fewer than {_FEW_ROWS} rows are left."])
    return ax
