"""plot_interaction and plot_interaction_matrix: interactions and their scores."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lanam.explain import GlobalExplanation, Surface
from lanam.explain.slices import N_SLICES
from lanam.interactions import InteractionScores
from lanam.plot.by_category import MAX_CURVES, curve_series, draw_curve_legend, draw_curves
from lanam.plot.common import (
    MAX_NAME,
    VERBATIM,
    Direction,
    Series,
    add_slots,
    hidden_classes,
    panel_or_new,
    pyplot,
    read_panels,
    require,
    series_of,
    short_labels,
    write_in_tile,
    write_labels,
    write_notes,
)
from lanam.plot.tiles import (
    Side,
    View,
    draw_blocks,
    draw_edited,
    draw_levels,
    draw_significance,
    draw_signs,
    lay_out,
    write_numbers,
)
from lanam.text import cut, not_shown, one_line, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Maximum number of classes shown, those with the largest effects.
_MAX_PAIR_CLASSES = 4

#: Maximum number of columns with numbers in the tiles of the matrix, and of columns shown.
_MAX_WRITTEN = 12
_MAX_COLUMNS = 40

_KEY = {
    2: "Joint effect of the two columns, in addition to the terms of each.",
    3: "Joint effect of the three columns, in addition to the terms of one or two of them.",
}
_WHOLE_KEY = {
    2: "Joint effect of the two columns, including their main effects.",
    3: "Joint effect of the three columns, including the terms of one or two of them.",
}
_CURVE_KEY = "Bands: two standard deviations. Curves end where their category has no data."
_CONTOUR_KEY = "Contours: mean in units of its standard deviation."
_STD_KEY = "Contours: standard deviation."
_LINE_KEY = "Lines: the mean is at least two standard deviations from zero."
_BOLD_KEY = "Bold: the mean is at least two standard deviations from zero."
_SIGN_KEY = "Hatched: negative."
_VEIL_KEY = "Greyed out: no data."
_EDITED_KEY = "Dotted: edited by hand; the standard deviation there is not inferred from the data."


def plot_interaction(
    explanation: GlobalExplanation,
    term: str | tuple[str, ...] | None = None,
    axes: Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    classes: Sequence[object] | None = None,
    kind: str = "auto",
    main_effects: bool = False,
    by: str | None = None,
    n_slices: int = N_SLICES,
) -> NDArray[np.object_]:
    """Plot an interaction: curves of categories, or a map of posterior mean and standard deviation.

    The interaction is the joint effect of its columns, in addition to the terms of fewer of them: beyond
    their main effects, unless the model was fitted with ``pure=False``. One of three columns is plotted as
    slices, which are interactions of two columns at some values of the third.

    A surface of coordinates (``spatial``) is a map with contours of its standard deviation, and has no main
    effects beside it.

    Of a numeric and a categorical column, the most frequent categories have one curve each, with a band of
    two standard deviations, over the range of their data. Other interactions are maps: regions without
    training data are greyed out, and categories and missing values have a row or column of tiles.

    Parameters
    ----------
    explanation : GlobalExplanation
        From a model's ``explain_global()``.
    term : str or tuple of str, default=None
        The interaction's name (``"a x b"``) or its columns; by default the most important active one.
    axes : array of Axes, default=None
        Two for each slice and class shown, or one for curves; by default those of a new figure.
    classes : sequence of labels, default=None
        With more than two classes, those to show, one row each; by default all, or the four with the
        largest effects.
    kind : {"auto", "curves", "map"}, default="auto"
        Curves are for a numeric and a categorical column, and the default for these.
    main_effects : bool, default=False
        Whether to include the terms of fewer of its columns, for their whole joint effect.
    by : str, default=None
        Of an interaction of three columns, the one at whose values the slices are; by default one of
        categories, or else the last one.
    n_slices : int, default=3
        The largest number of slices: at the most frequent categories, or at values in the middles of so
        many equal parts of the data.

    Returns
    -------
    axes : ndarray of Axes
        Of mean and standard deviation, or one of curves; with more than two classes or several slices one
        row for each, those of a slice together.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMRegressor
    >>> from lanam.plot import plot_interaction
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = X[:, 0] * X[:, 2] + 0.1 * rng.normal(size=300)
    >>> model = LANAMRegressor(random_state=0).fit(X, y)
    >>> axes = plot_interaction(model.explain_global(), ("x0", "x2"))
    >>> [ax.get_title() for ax in axes]
    ['mean', 'standard deviation']
    """
    require(explanation, GlobalExplanation, "use explain_global()")
    surface = _find_pair(explanation, term)
    several = explanation.family.link.several
    series = series_of(explanation, [surface], classes, _MAX_PAIR_CLASSES)
    if main_effects:
        surface = explanation.with_main_effects(surface.name)
    views = [lay_out(one) for one in surface.slices(by, n_slices)]
    curved = _is_curved(views[0], kind)
    width, n_rows = 1 if curved else 2, len(views) * len(series)
    panels = _pair_panels(views[0], n_rows, width) if axes is None else read_panels(axes)
    if panels.size != width * n_rows:
        each = f" for each of {len(series)} classes" if several else ""
        each += f" at each of {len(views)} slices" if len(views) > 1 else ""
        needed = "one axes" if curved else "two axes"
        raise ValueError(f"an interaction needs {needed}{each}, and there are {panels.size}")
    panels = panels.reshape(n_rows, width)
    unit = "centred logit" if several else explanation.unit
    scale = _colour_scale([view.surface for view in views], series)
    for view, rows in zip(views, np.split(panels, len(views)), strict=True):
        if curved:
            _draw_rows_of_curves(rows[:, 0], view, series, unit)
            continue
        for row, one in zip(rows, series, strict=True):
            _draw_pair(row, view, one, scale, unit)
    if len(views) > 1:
        _name_slices(panels[:: len(series), 0], surface, views)
    if axes is None:
        keys = (_curve_keys if curved else _map_keys)(views[0])
        first = (_WHOLE_KEY if main_effects or surface.spatial else _KEY)[len(surface.axes)]
        notes = [first, *keys, *hidden_classes(explanation, series)]
        write_notes(panels[0, 0], [" ".join(notes)])
    return panels if several or len(views) > 1 else panels[0]


def _name_slices(panels: NDArray[np.object_], surface: Surface, views: Sequence[View]) -> None:
    """Write the value of each slice above its panels."""
    for ax, view in zip(panels, views, strict=True):
        where = view.surface.name.removeprefix(f"{surface.name} at ")
        title = ax.get_title()
        ax.set_title(
            f"{one_line(where)}: {title}" if title else one_line(where),
            fontsize="medium",
            **VERBATIM,
        )


def _is_curved(view: View, kind: str) -> bool:
    """Whether an interaction is plotted as curves."""
    if kind not in ("auto", "curves", "map"):
        raise ValueError(f"kind={kind!r} is not known: choose from 'auto', 'curves' and 'map'")
    if kind == "curves" and not view.mixed:
        raise ValueError(
            f"{view.surface.name!r} cannot be plotted as kind='curves', which are for a numeric and a "
            "categorical column: use kind='map'"
        )
    return view.mixed and kind != "map"


def _draw_rows_of_curves(
    panels: NDArray[np.object_], view: View, series: Sequence[Series], unit: str
) -> None:
    """Draw curves for each class, or once, and one legend."""
    curves = curve_series(view)
    for ax, one in zip(panels, series, strict=True):
        draw_curves(ax, view, one, curves)
        ax.set_ylabel(f"contribution to the\n{unit}", **VERBATIM)
        ax.set_xlabel(_side_name(view.across, 60), **VERBATIM)
        if one.name:
            name = shorten(one_line(one.name), MAX_NAME)
            ax.set_title(name, fontsize="medium", **VERBATIM)
    draw_curve_legend(panels[0], view)


def _find_pair(explanation: GlobalExplanation, term: str | tuple[str, ...] | None) -> Surface:
    if term is None:
        active = [one for one in explanation.interactions if one.active]
        if not active:
            raise ValueError("no interaction is active: there is nothing to plot")
        return max(active, key=lambda one: one.importance)
    wanted = set() if isinstance(term, str) else set(term)
    for surface in explanation.interactions:
        if term == surface.name or wanted == set(surface.feature_names):
            return surface
    names = [surface.name for surface in explanation.interactions]
    raise KeyError(f"no interaction {term!r}; the model has {names}")


def _pair_panels(view: View, n_rows: int, n_columns: int) -> NDArray[np.object_]:
    n_up = sum(len(part.middles) for part in view.up.parts) if not view.up.smooth else 0
    height = 3.9 if n_columns == 1 else max(3.9, 1.6 + 0.19 * n_up)
    if view.surface.spatial and not view.across.others:
        # Of a wide map: its own height and that of titles, or colour bars would be higher than the map.
        width, depth = (np.ptp(values) for values in view.values)
        height = float(np.clip(0.9 + 2.7 * depth / width, 2.0, height))
    _, panels = pyplot().subplots(
        n_rows, n_columns, figsize=(8.4, height * n_rows), layout="constrained", squeeze=False
    )
    return np.asarray(panels)


def _colour_scale(surfaces: Sequence[Surface], series: Sequence[Series]) -> tuple[float, float]:
    """The largest mean and standard deviation within the data; colours saturate elsewhere."""
    largest = [0.0, 0.0]
    for surface, one in product(surfaces, series):
        seen = surface.density > 0.0
        for k, table in enumerate((surface.mean, surface.std)):
            found = np.abs(one.of(table, 2)[seen]).max(initial=0.0)
            largest[k] = max(largest[k], float(found))
    return largest[0] or 1.0, largest[1] or 1.0


def _draw_pair(
    panels: NDArray[np.object_], view: View, one: Series, scale: tuple[float, float], unit: str
) -> None:
    """Draw mean and standard deviation, for one class if there are several."""
    mean, std = one.of(view.surface.mean, 2), one.of(view.surface.std, 2)
    largest, widest = scale
    bar = draw_blocks(panels[0], view, mean, "RdBu_r", (-largest, largest), unit)
    draw_blocks(panels[1], view, std, "viridis", (0.0, widest), unit)
    of_class = f" ({shorten(one_line(one.name), MAX_NAME)})" if one.name else ""
    for ax, title in zip(panels, ("mean", "standard deviation"), strict=True):
        ax.set_title(title + of_class, fontsize="medium", **VERBATIM)
        _label_side(ax, "x", view.across, 36)
        _label_side(ax, "y", view.up, 30)
    if not view.written:
        draw_signs(panels[0], view, mean, bar)
    for ax in panels:
        draw_edited(ax, view)
    # Last: contour labels are placed within the final limits.
    if view.surface.spatial:
        draw_levels(panels[0], view, std)
        for ax in panels:
            ax.set_aspect("equal", adjustable="datalim" if view.across.others else "box")
        return
    distance = np.divide(mean, std, out=np.zeros_like(mean), where=std > 0.0)
    draw_significance(panels[0], view, distance)
    if view.written:
        write_numbers(panels[0], view, mean, largest, distance, signed=True)
        write_numbers(panels[1], view, std, widest)


def _label_side(ax: Axes, axis: Direction, side: Side, width: int) -> None:
    """Limits, ticks and name of an axis, and the line between values and slots."""
    low, high = side.main
    end = float(side.parts[-1].edges[-1])
    set_limits = ax.set_xlim if axis == "x" else ax.set_ylim
    set_limits(low, high)
    if side.smooth and side.others:
        add_slots(ax, axis, (low, high), (end - high) / len(side.others), side.others)
    elif not side.smooth:
        places = np.concatenate([part.middles for part in side.parts]).tolist()
        set_limits(low, end)
        write_labels(ax, axis, places, [*short_labels(side.values), *side.others], len(side.values))
    if side.others:
        (ax.axvline if axis == "x" else ax.axhline)(high, color="white", linewidth=2.0)
    (ax.set_xlabel if axis == "x" else ax.set_ylabel)(_side_name(side, width), **VERBATIM)


def _side_name(side: Side, width: int) -> str:
    return textwrap.fill(shorten(one_line(side.name), 2 * width), width)


def _curve_keys(view: View) -> list[str]:
    """The key to curves."""
    keys = [_CURVE_KEY]
    hidden = int((view.oriented(view.surface.density).sum(axis=0) > 0.0).sum()) - MAX_CURVES
    if hidden > 0:
        keys.append(f"{not_shown(hidden)} (kind='map' has all).")
    if view.across.others:
        keys.append("Right: missing values.")
    if view.surface.was_edited:
        keys.append(_EDITED_KEY)
    return keys


def _map_keys(view: View) -> list[str]:
    """The key to a map."""
    smooth = (view.across.smooth, view.up.smooth)
    keys = []
    if all(smooth):
        keys.append(_STD_KEY if view.surface.spatial else _CONTOUR_KEY)
    if any(smooth) and (not all(smooth) or view.across.others or view.up.others):
        keys.append(_LINE_KEY)
    keys.append(_BOLD_KEY if view.written else _SIGN_KEY)
    keys.append(_VEIL_KEY)
    if view.surface.was_edited:
        keys.append(_EDITED_KEY)
    return keys


def plot_interaction_matrix(scores: InteractionScores, axes: Axes | None = None) -> Axes:
    """Plot the scores of all pairwise interactions as a matrix, with dots for those in the model.

    Of many columns, those with the highest scores are shown.

    Parameters
    ----------
    scores : InteractionScores
        A model's ``interaction_scores_``.
    axes : Axes, default=None
        By default those of a new figure.

    Returns
    -------
    axes : Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMRegressor
    >>> from lanam.plot import plot_interaction_matrix
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = X[:, 0] * X[:, 2] + 0.1 * rng.normal(size=300)
    >>> model = LANAMRegressor(random_state=0).fit(X, y)
    >>> ax = plot_interaction_matrix(model.interaction_scores_)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['x0', 'x1', 'x2']
    """
    require(scores, InteractionScores, "use a model's interaction_scores_")
    if not len(scores):
        raise ValueError(
            "no interactions were scored: fit with interactions='auto', or add_interactions"
        )
    from matplotlib.colors import PowerNorm

    matrix = scores.matrix()
    best = np.nanmax(matrix, axis=1)
    shown = np.sort(np.argsort(-best, kind="stable")[:_MAX_COLUMNS])
    part = matrix[np.ix_(shown, shown)]
    size = 2.6 + 0.32 * len(shown)
    ax, _ = panel_or_new("axes", axes, size + 0.8, size)
    largest = float(np.nanmax(part)) or 1.0
    # Scores differ by orders of magnitude: a square-root scale shows the small ones too.
    image = ax.imshow(part, cmap="Blues", norm=PowerNorm(0.5, 0.0, largest))
    ends = [-0.5, len(shown) - 0.5]
    ax.plot(ends, ends, color="0.75", linewidth=0.8)  # no score on the diagonal
    names = cut([scores.names[k] for k in shown], MAX_NAME)
    ax.set_xticks(range(len(shown)), names, rotation=90, **VERBATIM)
    ax.set_yticks(range(len(shown)), names, **VERBATIM)
    ax.spines[:].set_visible(False)
    written = len(shown) <= _MAX_WRITTEN
    if written:
        for i, j in zip(*np.nonzero(np.isfinite(part)), strict=True):
            dark = part[i, j] > 0.3 * largest
            write_in_tile(ax, (j, i), _brief(part[i, j]), "white" if dark else "0.25")
    place = {int(column): k for k, column in enumerate(shown)}
    active = [
        row["features"]
        for row in scores.active
        if row["order"] == 2 and set(row["features"]) <= place.keys()
    ]
    if active:
        dots = np.array([(place[b], place[a]) for a, b in active])
        # A white edge around black is visible on light and on dark tiles.
        ax.plot(
            np.concatenate([dots[:, 0], dots[:, 1]]),
            np.concatenate([dots[:, 1], dots[:, 0]]) - (0.32 if written else 0.0),
            "o",
            color="0.1",
            markeredgecolor="white",
            markersize=5,
            label="in the model",
        )
    score = "log evidence gain (nats)" if scores.score == "evidence" else scores.score
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label=f"score: {score}")
    hidden = len(best) - len(shown)
    note = "Dots: interactions in the model." + (
        f" {hidden} columns with lower scores are not shown." if hidden else ""
    )
    ax.set_title(note, fontsize="small", color="0.35", loc="left")
    return ax


def _brief(score: float) -> str:
    return f"{score:.0f}" if score >= 9.95 else f"{score:.1f}"
