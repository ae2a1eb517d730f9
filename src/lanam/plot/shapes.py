"""Terms of one column, a panel each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lanam.explain import GlobalExplanation, Shape, Surface
from lanam.explain.ranges import TAIL, central_range
from lanam.plot.common import (
    CLASS_COLOURS,
    MAX_NAME,
    VERBATIM,
    Series,
    are_turned,
    hidden_classes,
    named,
    pyplot,
    series_of,
    short,
    unit_of,
    write,
)
from lanam.plot.curves import STRIP, draw_shape, drawn_others, shown_levels, slot_names
from lanam.text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KEY = "Line: mean. Band: two standard deviations. Bars: the data. Shaded: beyond the data."

_LEVEL_KEY = "Dots: levels. Hollow: a level that is not in the training data."
_RARE_KEY = "Other levels: those that are rare or new."

_MISSING_KEY = "Diamonds: missing values."

_CLASS_KEY = "Scores are log-probabilities, measured from their mean over all classes."


def plot_shapes(
    explanation: GlobalExplanation,
    terms: Sequence[str] | None = None,
    axes: Any = None,
    *,
    n_columns: int = 3,
    classes: Sequence[Any] | None = None,
    share_y: bool = True,
) -> np.ndarray:
    """Draw what each value of a column adds to the prediction, a panel a term.

    The line is the posterior mean and the band two standard deviations on either side. The bars
    below show where the training data lies; beyond its range the panel is shaded. All panels share
    the vertical axis, so heights can be compared, unless they are told not to.

    Levels of a categorical column are dots with bars, in the data's order (of many, the most frequent);
    a hollow one is what a level adds that was not in the training data, or too rare there. Where values
    were missing, a diamond beside the others is what such a value adds.

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
    classes : sequence of labels, default=None
        Of a classifier of more than two classes, those to draw, each in a colour; by default all, or
        the eight with the largest effects.
    share_y : bool, default=True
        Whether all panels have one vertical scale, so that heights can be compared; without, small
        effects can be seen beside large ones.

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
    panels = _new_panels(shapes, n_columns, share_y) if own else np.atleast_1d(axes).ravel()
    if len(panels) < len(shapes):
        raise ValueError(f"there are {len(shapes)} terms to draw and {len(panels)} axes")
    panels = panels[: max(len(shapes), 1)]
    series = series_of(explanation, shapes, classes, len(CLASS_COLOURS))
    for ax, shape in zip(panels, shapes, strict=False):
        limits = _vertical_limits(shapes if share_y else [shape], series)
        draw_shape(ax, shape, limits, series)
    if shapes and len(series) > 1:
        _draw_legend(panels[0], series, outside=own)
    if own:
        figure = panels[0].figure
        _write_note(figure, explanation, shapes, series)
        if shapes:
            figure.supylabel(
                f"contribution to the {unit_of(explanation)}", fontsize="medium", **VERBATIM
            )
    if not shapes:
        panels[0].set_axis_off()
        panels[0].text(0.5, 0.5, "no term is active", ha="center", va="center")
    return panels


def _new_panels(shapes: Sequence[Shape], n_columns: int, share_y: bool) -> np.ndarray:
    kept = max(len(shapes), 1)
    n_columns = min(n_columns, kept)
    n_rows = -(-kept // n_columns)
    turned = max((_label_height(shape) for shape in shapes), default=0.0)
    figure, grid = pyplot().subplots(
        n_rows,
        n_columns,
        figsize=(0.6 + 3.1 * n_columns, 0.5 + (2.5 + turned) * n_rows),
        sharey=share_y,
        squeeze=False,
        layout="constrained",
    )
    for ax in grid.flat[kept:]:
        figure.delaxes(ax)
    return np.asarray(grid.flat[:kept])


def _label_height(shape: Shape) -> float:
    """Inches that turned labels need below a panel."""
    if shape.kind != "categorical":
        return 0.0
    labels = [*short(shape.values[shown_levels(shape)]), *slot_names(shape)]
    return 0.065 * max(map(len, labels)) if are_turned(labels) else 0.0


def _draw_legend(ax: Axes, series: Sequence[Series], *, outside: bool) -> None:
    handles = [
        ax.plot([], [], "o-", color=one.curve, label=shorten(one.name, MAX_NAME))[0]
        for one in series
    ]
    if outside:
        legend = ax.figure.legend(
            handles=handles,
            loc="outside upper left",
            ncols=min(len(series), 4),
            frameon=False,
            fontsize="small",
        )
    else:
        legend = ax.legend(handles=handles, fontsize="x-small")
    for text in legend.get_texts():
        text.set_parse_math(False)


def _vertical_limits(shapes: Sequence[Shape], series: Sequence[Series]) -> tuple[float, float]:
    """Room for all curves, for the bands of nearly all data, and for the strip below.

    A band that is wide because a few rows lie far out may leave the panel: it would flatten the
    rest.
    """
    low, high = 0.0, 0.0
    for shape in shapes:
        shown, common = _shown_and_common(shape)
        for one in series:
            mean = one.of(shape.mean)
            reach = np.where(common, 2.0 * one.of(shape.std), 0.0)
            low = min(low, float((mean - reach)[shown].min(initial=0.0)))
            high = max(high, float((mean + reach)[shown].max(initial=0.0)))
            for _, other_mean, other_std, _ in drawn_others(shape):
                centre, spread = one.of(other_mean, 0), 2.0 * one.of(other_std, 0)
                low, high = min(low, float(centre - spread)), max(high, float(centre + spread))
    height = (high - low) or 1.0
    return low - height * (STRIP + 0.06), high + 0.06 * height


def _shown_and_common(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Which values are drawn, and which of all belong to the bulk of the data."""
    if not len(shape.values):
        return shape.inside, shape.inside
    if shape.kind == "categorical":
        shown = np.zeros(len(shape.values), dtype=bool)
        shown[shown_levels(shape)] = True
        return shown, shape.density > TAIL
    left, right = central_range(shape.values, shape.density)
    return shape.inside, (shape.values >= left) & (shape.values <= right)


def _write_note(
    figure: Figure,
    explanation: GlobalExplanation,
    drawn: Sequence[Shape],
    series: Sequence[Series],
) -> None:
    """How to read the drawing, and what is not in it: terms switched off, and active ones left out."""
    off = explanation.switched_off
    others = [term for term in explanation.active if term not in drawn]
    pairs = [term for term in others if isinstance(term, Surface)]
    hidden = len(others) - len(pairs)
    notes = [_key(explanation, drawn)] if drawn else []
    if off:
        notes.append(f"{len(off)} of {len(explanation)} terms are switched off: {named(off)}.")
    if hidden:
        notes.append(f"{hidden} active terms are not shown.")
    if pairs:
        notes.append(f"Pairs are drawn by plot_interaction: {named(pairs)}.")
    write(figure, [*notes, *hidden_classes(explanation, series)])


def _key(explanation: GlobalExplanation, drawn: Sequence[Shape]) -> str:
    """What the marks in the drawing are."""
    levels = [shape.kind == "categorical" for shape in drawn]
    keys = [
        "Bars with dots: two standard deviations. Bars below: the data." if all(levels) else _KEY
    ]
    if any(levels):
        keys.append(_LEVEL_KEY)
    if any(shape.kind == "categorical" and shape.unseen_density for shape in drawn):
        keys.append(_RARE_KEY)
    if any(shape.missing_density is not None for shape in drawn):
        keys.append(_MISSING_KEY)
    if explanation.link == "softmax":
        keys.append(_CLASS_KEY)
    return " ".join(keys)
