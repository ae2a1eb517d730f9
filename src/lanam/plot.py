"""Drawings of explanations, with matplotlib.

They take explanations and nothing else, so whatever can be drawn can also be had as data.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lanam.explain import GlobalExplanation, Shape, Surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: How far beyond the data a curve is drawn, as a share of the data's range.
_BEYOND = 0.08

#: The part of a panel's height that the histogram of the data takes.
_STRIP = 0.14

_BINS = 40

#: The share of the data in either tail that may be left out of sight if it lies far out.
_TAIL = 0.005

#: A curve through so few values has a mark on each.
_FEW_VALUES = 12

#: More levels than this have smaller marks.
_MANY_LEVELS = 60

_KEY = "Line: mean. Band: two standard deviations. Bars: the data. Shaded: beyond the data."

_CURVE, _BAND, _DATA = "#12436d", "#a9c4e0", "#8c8c8c"


def plot_shapes(
    explanation: GlobalExplanation,
    terms: Sequence[str] | None = None,
    axes: Any = None,
    *,
    n_columns: int = 3,
) -> np.ndarray:
    """Draw what each value of a column adds to the prediction, a panel a term.

    The line is the posterior mean and the band two standard deviations on either side. The bars
    below show where the training data lies; beyond its range the panel is shaded. All panels share
    the vertical axis, so heights can be compared.

    Parameters
    ----------
    explanation : GlobalExplanation
        From a model's ``explain_global()``.
    terms : sequence of str, default=None
        Names of the terms to draw, in this order; by default all active ones of one column, the most
        important first.
    axes : Axes or array of Axes, default=None
        Where to draw, at least one for each term; by default a new figure.
    n_columns : int, default=3
        Panels side by side, in a new figure.

    Returns
    -------
    axes : ndarray of Axes
        One for each term drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> from lanam.plot import plot_shapes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
    >>> axes = plot_shapes(model.explain_global())
    >>> [ax.get_xlabel() for ax in axes]
    ['bmi', 'bp']
    """
    shapes = [explanation[name] for name in terms or ()]
    if terms is None:
        shapes = [term for term in explanation.active if isinstance(term, Shape)]
    if any(not isinstance(shape, Shape) for shape in shapes):
        raise ValueError("pairs have a surface, not a curve: draw them with plot_interaction")
    own = axes is None
    panels = _new_panels(len(shapes), n_columns) if own else np.atleast_1d(axes).ravel()
    if len(panels) < len(shapes):
        raise ValueError(f"there are {len(shapes)} terms to draw and {len(panels)} axes")
    panels = panels[: max(len(shapes), 1)]
    limits = _vertical_limits(shapes)
    for ax, shape in zip(panels, shapes, strict=False):
        _draw_shape(ax, shape, limits)
    unit = "log-odds" if explanation.link == "logit" else "prediction"
    if own:
        figure = panels[0].figure
        _write_note(figure, explanation, drawn=shapes)
        if shapes:
            figure.supylabel(f"contribution to the {unit}", fontsize="medium")
    if not shapes:
        panels[0].set_axis_off()
        panels[0].text(0.5, 0.5, "no term is active", ha="center", va="center")
    return panels


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib: install it with `pip install lanam[plot]`"
        ) from error
    return plt


def _new_panels(n_panels: int, n_columns: int) -> np.ndarray:
    n_columns = min(n_columns, max(n_panels, 1))
    n_rows = -(-max(n_panels, 1) // n_columns)
    figure, grid = _pyplot().subplots(
        n_rows,
        n_columns,
        figsize=(0.6 + 3.1 * n_columns, 0.5 + 2.5 * n_rows),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    kept = max(n_panels, 1)
    for ax in grid.flat[kept:]:
        figure.delaxes(ax)
    return np.asarray(grid.flat[:kept])


def _vertical_limits(shapes: Sequence[Shape]) -> tuple[float, float]:
    """Room for all curves, for the bands of nearly all data, and for the strip below.

    A band that is wide because a few rows lie far out may leave the panel: it would flatten the
    rest.
    """
    low, high = 0.0, 0.0
    for shape in shapes:
        left, right = _central_range(shape)
        within = (shape.values >= left) & (shape.values <= right)
        reach = np.where(within, 2.0 * shape.std, 0.0)
        low = min(low, float((shape.mean - reach)[shape.inside].min(initial=0.0)))
        high = max(high, float((shape.mean + reach)[shape.inside].max(initial=0.0)))
    height = (high - low) or 1.0
    return low - height * (_STRIP + 0.06), high + 0.06 * height


def _central_range(shape: Shape) -> tuple[float, float]:
    """The range of the middle 99% of the data."""
    below = np.cumsum(shape.density)
    last = len(below) - 1
    ends = np.minimum(np.searchsorted(below, [_TAIL * below[-1], (1.0 - _TAIL) * below[-1]]), last)
    return float(shape.values[ends[0]]), float(shape.values[ends[1]])


def _horizontal_limits(shape: Shape) -> tuple[float, float]:
    """The data's range, unless a few rows lie so far out that they would squeeze all others."""
    inner = shape.values[shape.inside]
    left, right = _central_range(shape)
    width = right - left
    lowest = inner[0] if left - inner[0] <= width else left
    highest = inner[-1] if inner[-1] - right <= width else right
    return float(lowest), float(highest)


def _draw_shape(ax: Axes, shape: Shape, limits: tuple[float, float]) -> None:
    inner = shape.values[shape.inside]
    lowest, highest = _horizontal_limits(shape)
    margin = _BEYOND * (highest - lowest) or 0.5
    left, right = lowest - margin, highest + margin
    ax.set_ylim(limits)
    ax.set_xlim(left, right)
    for start, end in ((left, float(inner[0])), (float(inner[-1]), right)):
        if start < end:
            ax.axvspan(start, end, color="0.93", zorder=0, linewidth=0)
    ax.axhline(0.0, color="0.55", linewidth=0.8, zorder=1)
    if shape.kind == "level":
        _draw_levels(ax, shape)
    else:
        _draw_curve(ax, shape)
    _draw_density(ax, shape, lowest, highest)
    label = textwrap.wrap(shape.name, 36)
    if lowest > inner[0] or highest < inner[-1]:
        beyond = shape.density[(shape.values < lowest) | (shape.values > highest)].sum()
        label.append(f"({max(beyond, 0.001):.1%} of the data lie beyond)")
    ax.set_xlabel("\n".join(label))
    ax.set_title(
        f"importance {shape.importance:.3g}", loc="left", fontsize="small", color="0.35", pad=3
    )
    ax.spines[["top", "right"]].set_visible(False)


def _draw_curve(ax: Axes, shape: Shape) -> None:
    low, high = shape.mean - 2.0 * shape.std, shape.mean + 2.0 * shape.std
    ax.fill_between(shape.values, low, high, color=_BAND, linewidth=0, zorder=2)
    ax.plot(shape.values, shape.mean, color=_CURVE, linewidth=1.8, zorder=3)
    if shape.inside.sum() <= _FEW_VALUES:  # between them the curve is only a connection
        inside = shape.inside
        ax.plot(shape.values[inside], shape.mean[inside], "o", color=_CURVE, markersize=4, zorder=3)


def _draw_levels(ax: Axes, shape: Shape) -> None:
    few = len(shape.values) <= _MANY_LEVELS
    low, high = shape.mean - 2.0 * shape.std, shape.mean + 2.0 * shape.std
    ax.vlines(shape.values, low, high, color=_BAND, linewidth=3.0 if few else 1.0, zorder=2)
    size = 4.0 if few else 1.5
    ax.plot(shape.values, shape.mean, "o", color=_CURVE, markersize=size, zorder=3)


def _draw_density(ax: Axes, shape: Shape, lowest: float, highest: float) -> None:
    """Bars along the bottom: how the training data is spread over the column's values."""
    if highest <= lowest:
        return
    share, edges = np.histogram(
        shape.values, bins=_BINS, range=(lowest, highest), weights=shape.density
    )
    ax.bar(
        edges[:-1],
        share / share.max() * (_STRIP - 0.02),
        width=np.diff(edges),
        align="edge",
        color=_DATA,
        linewidth=0,
        transform=ax.get_xaxis_transform(),
        zorder=1,
    )


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _write_note(figure: Figure, explanation: GlobalExplanation, drawn: Sequence[Shape]) -> None:
    """What the reader does not see: terms that were switched off, and active ones left out."""
    off = [shape.name for shape in explanation.switched_off]
    others = [term for term in explanation.active if term not in drawn]
    pairs = [term.name for term in others if isinstance(term, Surface)]
    hidden = len(others) - len(pairs)
    notes = [_KEY] if drawn else []
    if off:
        notes.append(f"{len(off)} of {len(explanation)} terms are switched off: {_named(off)}.")
    if hidden:
        notes.append(f"{hidden} active terms are not shown.")
    if pairs:
        notes.append(f"Pairs are drawn by plot_interaction: {_named(pairs)}.")
    width = int(figure.get_figwidth() * 14)
    text = "\n".join(textwrap.fill(note, width) for note in notes)
    figure.supxlabel(text, fontsize="small", color="0.35", ha="left", x=0.02)
