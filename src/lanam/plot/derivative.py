"""plot_derivative: slopes of shape functions, and where the functions rise or fall for sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.explain import Derivative, GlobalExplanation, Shape
from lanam.explain.bands import around, half_width
from lanam.explain.ranges import trimmed
from lanam.plot.common import (
    CLASS_COLOURS,
    DOWN,
    UP,
    VERBATIM,
    Series,
    Style,
    hidden_classes,
    in_percent,
    require,
    require_terms,
    series_of,
    write_left_label,
    write_notes,
)
from lanam.plot.curves import STRIP, draw_density
from lanam.plot.panels import draw_legend, panels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Height of the bars of sure ranges at the top of a panel, as a fraction of it.
_BAR = 0.045

_KEY = "Line: slope of the posterior mean. Band: {0} pointwise. Bars below: training data."
_SURE_KEY = (
    "Bars above: where it rises (▲) or falls (▼, hatched), in all of them with {0} probability."
)


def plot_derivative(
    explanation: GlobalExplanation,
    terms: Sequence[str] | None = None,
    axes: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    n_columns: int | None = None,
    classes: Sequence[object] | None = None,
    coverage: float = 0.95,
    max_terms: int | None = None,
) -> NDArray[np.object_]:
    """Plot the slopes of shape functions, and the ranges where the functions rise or fall for sure.

    Parameters
    ----------
    explanation : GlobalExplanation
        From a model's ``explain_global()``, or of its noise from ``explain_noise()``.
    terms : sequence of str, default=None
        Names of numeric columns; by default all active curves, the most important first.
    axes : Axes or array of Axes, default=None
        At least one for each term; by default those of a new figure.
    n_columns : int, default=None
        Columns of a new figure; by default three to five.
    classes : sequence of labels, default=None
        With more than two classes, those to show; the ranges are then left out.
    coverage : float, default=0.95
        Posterior probability of the pointwise band, and that a function rises and falls in all ranges that
        are marked in its panel.
    max_terms : int, default=None
        Maximum number of terms; by default all.

    Returns
    -------
    axes : ndarray of Axes
        One for each term drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> from lanam.plot import plot_derivative
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
    >>> axes = plot_derivative(model.explain_global(), ["bmi"])
    >>> axes[0].get_xlabel()
    'bmi'
    """
    require(explanation, GlobalExplanation, "use explain_global()")
    require_terms(terms, max_terms)
    half = half_width(coverage)
    shapes = _curves(explanation, terms)[:max_terms]
    is_new = axes is None
    panels, names = panels_of(shapes, axes, n_columns)
    series = series_of(explanation, shapes, classes, len(CLASS_COLOURS))
    for ax, lines, shape in zip(panels, names, shapes, strict=False):
        _draw(ax, shape, lines, series, half, coverage)
    above = draw_legend(panels[0], series, outside=is_new) if shapes and len(series) > 1 else 0.0
    if not shapes:
        panels[0].set_axis_off()
        panels[0].text(0.5, 0.5, "no curve is active", ha="center", va="center")
    elif is_new:
        percent = in_percent(coverage)
        keys = [_KEY, *([_SURE_KEY] if len(series) == 1 else [])]
        notes = [" ".join(keys).format(percent), *hidden_classes(explanation, series)]
        below = write_notes(panels[0], notes)
        label = f"change of the contribution to the {explanation.unit}, per unit"
        write_left_label(panels[0], label, above, below)
    return panels


def _curves(explanation: GlobalExplanation, names: Sequence[str] | None) -> list[Shape]:
    """The named terms, or all active curves."""
    if names is None:
        return list(explanation.curves)
    shapes = [explanation[name] for name in names]
    for shape in shapes:
        if not isinstance(shape, Shape):
            raise ValueError(
                f"the term {shape.name!r} is an interaction: plot_derivative shows terms of one column"
            )
    return shapes


def _draw(
    ax: Axes,
    shape: Shape,
    name: Sequence[str],
    series: Sequence[Series],
    half: float,
    coverage: float,
) -> None:
    """Draw the slope of a term in its panel, with the lines of its name below."""
    derivative = shape.derivative()
    inner = derivative.edges
    lowest, highest = trimmed(shape.values, shape.density, inner)
    ax.set_xlim(lowest, highest)
    ax.axhline(0.0, color="0.55", linewidth=0.8, zorder=1)
    low, high = 0.0, 0.0
    shown = (derivative.values >= lowest) & (derivative.values <= highest)
    for one in series:
        mean, std = one.of(derivative.mean), one.of(derivative.std)
        lower, upper = around(mean, std, half)
        ends = (_to_the_end(lower), _to_the_end(upper))
        band: Style = {"color": one.band, "alpha": one.band_alpha, "linewidth": 0.0, "zorder": 2}
        ax.fill_between(derivative.edges, *ends, step="post", **band)
        look: Style = {"color": one.curve, "linestyle": one.line, "linewidth": 1.8, "zorder": 3}
        ax.step(derivative.edges, _to_the_end(mean), where="post", **look)
        low, high = min(low, _least(lower[shown])), max(high, -_least(-upper[shown]))
    height = (high - low) or 1.0
    ax.set_ylim(low - height * (STRIP + 0.06), high + height * (0.06 + 2.0 * _BAR))
    draw_density(ax, shape, lowest, highest)
    if derivative.mean.ndim == 1:
        _draw_sure(ax, derivative, coverage)
    ax.set_xlabel("\n".join(name), **VERBATIM)
    ax.spines[["top", "right"]].set_visible(False)


def _to_the_end(steps: Array) -> Array:
    """The values of intervals at their left ends, and the last at the right end too."""
    return np.append(steps, steps[-1])


def _least(ends: Array) -> float:
    """The lower limit of a band, without the very ends of the data if it widens there."""
    return float(np.quantile(ends, 0.01)) if len(ends) else 0.0


def _draw_sure(ax: Axes, derivative: Derivative, coverage: float) -> None:
    """Draw a bar for each range where the function rises or falls for sure."""
    sides = (
        (derivative.rising(coverage), UP, "▲", ""),
        (derivative.falling(coverage), DOWN, "▼", "////"),
    )
    for ranges, colour, symbol, hatch in sides:
        for start, end in ranges:
            ax.axvspan(
                start,
                end,
                1.0 - _BAR,
                1.0,
                facecolor="white" if hatch else colour,
                edgecolor=colour,
                hatch=hatch,
                linewidth=0.8,
                zorder=2,
            )
            place = (0.5 * (start + end), 1.0 - 1.9 * _BAR)
            ax.text(
                *place,
                symbol,
                transform=ax.get_xaxis_transform(),
                ha="center",
                va="center",
                fontsize="x-small",
                color=colour,
                clip_on=True,
            )
