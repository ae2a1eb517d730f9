"""plot_shapes: the shape functions of univariate terms, one panel each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lanam.explain import GlobalExplanation, Shape
from lanam.explain.bands import half_width
from lanam.explain.ranges import vertical_range
from lanam.plot.common import (
    CLASS_COLOURS,
    Series,
    add_percent_axis,
    hidden_classes,
    in_percent,
    require,
    require_terms,
    series_of,
    term_count,
    term_list,
    write_left_label,
    write_notes,
)
from lanam.plot.curves import (
    STRIP,
    draw_shape,
    shown_categories,
)
from lanam.plot.panels import draw_legend, panels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KEY = "Line: posterior mean. Band: {}. Bars: training data. Shaded: outside the range of the data."
_LEVELS_ONLY_KEY = "Bars with dots: {}. Bars below: training data."
_OUTER_KEY = "Thin lines: {} simultaneous credible band."
_LEVEL_KEY = "Dots: categories. Hollow: unseen category."
_RARE_KEY = "Other categories: rare or unseen."
_EDITED_KEY = "Dotted: edited by hand; the band there is not inferred from the data."
_MISSING_KEY = "Diamonds: missing values."
_CLASS_KEY = "Centred logits are log-probabilities minus their mean over the classes."

#: Coverage of simultaneous bands, by default.
_DEFAULT_COVERAGE = 0.95


def plot_shapes(
    explanation: GlobalExplanation,
    terms: Sequence[str] | None = None,
    axes: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    n_columns: int | None = None,
    classes: Sequence[object] | None = None,
    share_y: bool = False,
    coverage: float | None = None,
    simultaneous: bool = False,
    max_terms: int | None = None,
) -> NDArray[np.object_]:
    """Plot shape functions: the contribution of each value of a column, one panel per term.

    The line is the posterior mean, the band two standard deviations on either side. The histogram below
    shows the training data; beyond its range the panel is shaded.

    Categories, and the values of a column that has only two, are dots with error bars (the most frequent
    ones, if there are many); a hollow dot is the effect of unseen and rare categories, a diamond that of
    missing values.

    Parameters
    ----------
    explanation : GlobalExplanation
        From a model's ``explain_global()``, or of its noise from ``explain_noise()``.
    terms : sequence of str, default=None
        Names of the terms, in this order; by default all active univariate ones, the most important
        first.
    axes : Axes or array of Axes, default=None
        At least one for each term; by default those of a new figure.
    n_columns : int, default=None
        Columns of a new figure; by default three to five.
    classes : sequence of labels, default=None
        With more than two classes, those to show, distinguished by colour, marker and line style; by
        default all, or the eight with the largest effects.
    share_y : bool, default=False
        Whether all panels have the same vertical scale, so that effects can be compared; by default each
        has its own, so that every shape is visible. Effects of values that hardly occur, and of unseen
        categories, do not set the scale: their error bars may leave the panel.
    coverage : float, default=None
        Posterior probability of the pointwise bands; by default they are two standard deviations on
        either side, which is little more than 95%.
    simultaneous : bool, default=False
        Whether to add simultaneous bands, which contain the whole curve with this probability (0.95
        by default): the ones for statements about more than one value.
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
    >>> from lanam.plot import plot_shapes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
    >>> axes = plot_shapes(model.explain_global())
    >>> [ax.get_xlabel() for ax in axes]
    ['bmi', 'bp']
    """
    require(explanation, GlobalExplanation, "use explain_global(); rows have plot_local")
    require_terms(terms, max_terms)
    shapes = [explanation[name] for name in terms or ()]
    if terms is None:
        shapes = [term for term in explanation.active if isinstance(term, Shape)]
    shapes = shapes[:max_terms]
    if any(not isinstance(shape, Shape) for shape in shapes):
        raise ValueError(
            "plot_shapes shows univariate terms: use plot_interaction for interactions"
        )
    is_new = axes is None
    panels, names = panels_of(shapes, axes, n_columns, share_y=share_y)
    series = series_of(explanation, shapes, classes, len(CLASS_COLOURS))
    sized_shapes = [(shape, _sized(series, shape, coverage, simultaneous)) for shape in shapes]
    for ax, lines, (shape, sized) in zip(panels, names, sized_shapes, strict=False):
        limits = _vertical_limits(sized_shapes if share_y else [(shape, sized)])
        draw_shape(ax, shape, lines, limits, sized)
        if explanation.family.link.relative and len(shape.values):
            add_percent_axis(ax)
    above = 0.0
    if shapes and len(series) > 1:
        above = draw_legend(panels[0], series, outside=is_new)
    if is_new:
        key = _key(explanation, shapes, coverage, simultaneous)
        notes = _notes(explanation, shapes, key)
        below = write_notes(panels[0], [*notes, *hidden_classes(explanation, series)])
        if shapes:
            percent = " (right: in percent)" if explanation.family.link.relative else ""
            label = f"contribution to the {explanation.unit}{percent}"
            write_left_label(panels[0], label, above, below)
    if not shapes:
        panels[0].set_axis_off()
        panels[0].text(0.5, 0.5, "no term is active", ha="center", va="center")
    return panels


def _sized(
    series: Sequence[Series], shape: Shape, coverage: float | None, simultaneous: bool
) -> list[Series]:
    """The series with half-widths for the bands of a term."""
    if coverage is None and not simultaneous:
        return list(series)
    coverage = _DEFAULT_COVERAGE if coverage is None else coverage
    half = half_width(coverage)
    if not simultaneous:
        return [replace(one, half=half) for one in series]
    outer = shape.half_width(coverage, simultaneous=True)
    return [replace(one, half=half, outer=float(one.of(outer, 0))) for one in series]


def _vertical_limits(sized_shapes: Sequence[tuple[Shape, list[Series]]]) -> tuple[float, float]:
    """Limits for all curves, for their bands within the bulk of the data, and for the histogram."""
    low, high = 0.0, 0.0
    for shape, series in sized_shapes:
        classes = [one.class_index for one in series] if shape.mean.ndim > 1 else None
        half = np.array([one.outer or one.half for one in series])
        ends = vertical_range(shape, _shown(shape), half if classes else half[0], classes)
        low, high = min(low, ends[0]), max(high, ends[1])
    height = (high - low) or 1.0
    return low - height * (STRIP + 0.06), high + 0.06 * height


def _shown(shape: Shape) -> NDArray[np.bool_] | None:
    """Which categories are shown."""
    if shape.kind != "categorical":
        return None
    return np.isin(np.arange(len(shape.values)), shown_categories(shape))


def _notes(explanation: GlobalExplanation, drawn: Sequence[Shape], key: str) -> list[str]:
    """The key to the plot, and the terms that are not in it."""
    off = explanation.switched_off
    others = [term for term in explanation.active if term not in drawn]
    joint = [term for term in others if term.joint]
    hidden = len(others) - len(joint)
    lines = [key] if drawn else []
    if off:
        lines.append(f"{term_count(len(off), 'dropped', len(explanation))}: {term_list(off)}.")
    if hidden:
        lines.append(f"{term_count(hidden, 'active but not shown')}.")
    if joint:
        lines.append(f"Interactions (see plot_interaction): {term_list(joint)}.")
    return lines


def _key(
    explanation: GlobalExplanation,
    drawn: Sequence[Shape],
    coverage: float | None,
    simultaneous: bool,
) -> str:
    """The key to the marks of the plot."""
    levels = [shape.kind == "categorical" for shape in drawn]
    percent = in_percent(_DEFAULT_COVERAGE if coverage is None else coverage)
    plain = coverage is None and not simultaneous
    width = "two standard deviations" if plain else f"{percent} pointwise credible interval"
    keys = [(_LEVELS_ONLY_KEY if all(levels) else _KEY).format(width)]
    if simultaneous:
        keys.append(_OUTER_KEY.format(percent))
    if any(levels):
        keys.append(_LEVEL_KEY)
    if any(shape.kind == "categorical" and shape.unseen_density for shape in drawn):
        keys.append(_RARE_KEY)
    several = explanation.family.link.several
    if any(shape.missing_density is not None for shape in drawn) and not several:
        keys.append(_MISSING_KEY)
    if several:
        keys.append(_CLASS_KEY)
    if any(shape.was_edited for shape in drawn):
        keys.append(_EDITED_KEY)
    return " ".join(keys)
