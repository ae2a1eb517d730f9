"""Drawings of explanations, with matplotlib.

They take explanations and nothing else, so whatever can be drawn can also be had as data.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lanam.explain import GlobalExplanation, Shape, Surface
from lanam.interactions import InteractionScores, shorten

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

_PAIR_KEY = (
    "What the two columns add together, beyond what each adds alone. Contours: standard deviations "
    "the mean lies from zero. Veiled: no data."
)

_CURVE, _BAND, _DATA = "#12436d", "#a9c4e0", "#8c8c8c"

#: Columns' names are words: two dollars in one are no formula.
_VERBATIM = {"parse_math": False}

#: Scores of more columns than this are not written into the matrix, and no more than this are drawn.
_MAX_WRITTEN = 12
_MAX_COLUMNS = 40
_MAX_NAME = 24


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
    unit = _unit(explanation)
    if own:
        figure = panels[0].figure
        _write_note(figure, explanation, drawn=shapes)
        if shapes:
            figure.supylabel(f"contribution to the {unit}", fontsize="medium")
    if not shapes:
        panels[0].set_axis_off()
        panels[0].text(0.5, 0.5, "no term is active", ha="center", va="center")
    return panels


def plot_interaction(
    explanation: GlobalExplanation,
    term: str | tuple[str, str] | None = None,
    axes: Any = None,
) -> np.ndarray:
    """Draw what a pair of columns adds to the prediction: its mean and its standard deviation.

    The pair's function is what the columns add together, beyond what each adds alone. Where there is
    no training data the panels are veiled.

    Parameters
    ----------
    explanation : GlobalExplanation
        From a model's ``explain_global()``.
    term : str or pair of str, default=None
        The pair's name (``"a x b"``) or its two columns; by default the most important active one.
    axes : array of two Axes, default=None
        Where to draw; by default a new figure.

    Returns
    -------
    axes : ndarray of Axes
        Of the mean and of the standard deviation.

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
    surface = _find_pair(explanation, term)
    own = axes is None
    if own:
        figure, panels = _pyplot().subplots(1, 2, figsize=(8.4, 3.9), layout="constrained")
        figure.supxlabel(
            textwrap.fill(_PAIR_KEY, 110), fontsize="small", color="0.35", ha="left", x=0.02
        )
    else:
        panels = np.atleast_1d(axes).ravel()
        if len(panels) != 2:
            raise ValueError(f"a pair is drawn on two axes, and there are {len(panels)}")
    unit = _unit(explanation)
    ranges = [_visible_range(surface, axis) for axis in (0, 1)]
    # Colours are for where the data is; elsewhere they may run into their ends.
    seen = surface.density > 0.0
    largest = float(np.abs(surface.mean[seen]).max(initial=0.0)) or 1.0
    mean, std = panels
    _draw_surface(mean, surface, surface.mean, "RdBu_r", (-largest, largest), unit)
    widest = float(surface.std[seen].max(initial=0.0)) or 1.0
    _draw_surface(std, surface, surface.std, "viridis", (0.0, widest), unit)
    for ax, title in ((mean, "mean"), (std, "standard deviation")):
        ax.set_title(title, fontsize="medium")
        ax.set_xlabel(textwrap.fill(surface.feature_names[0], 36), **_VERBATIM)
        ax.set_ylabel(textwrap.fill(surface.feature_names[1], 30), **_VERBATIM)
        ax.set_xlim(ranges[0])
        ax.set_ylim(ranges[1])
    # Last, because labels find their place within the limits.
    _draw_significance(mean, surface)
    return np.asarray(panels)


def plot_interaction_matrix(scores: InteractionScores, axes: Any = None) -> Axes:
    """Draw the scores of all pairs of columns as a matrix; dots mark the pairs in the model.

    Of many columns, those with the highest scores are drawn.

    Parameters
    ----------
    scores : InteractionScores
        A model's ``interaction_scores_``.
    axes : Axes, default=None
        Where to draw; by default a new figure.

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
    if not len(scores):
        raise ValueError("no pairs were scored: fit with interactions='auto', or add_interactions")
    from matplotlib.colors import PowerNorm

    matrix = scores.matrix()
    best = np.nanmax(matrix, axis=1)
    shown = np.sort(np.argsort(-best, kind="stable")[:_MAX_COLUMNS])
    part = matrix[np.ix_(shown, shown)]
    size = 2.6 + 0.32 * len(shown)
    ax = axes
    if ax is None:
        _, ax = _pyplot().subplots(figsize=(size + 0.8, size), layout="constrained")
    largest = float(np.nanmax(part)) or 1.0
    # The best pair may be worth a hundred times the next: the root keeps both in sight.
    image = ax.imshow(part, cmap="Blues", norm=PowerNorm(0.5, 0.0, largest))
    names = [shorten(scores.names[k], _MAX_NAME) for k in shown]
    ax.set_xticks(range(len(shown)), names, rotation=90, **_VERBATIM)
    ax.set_yticks(range(len(shown)), names, **_VERBATIM)
    ax.spines[:].set_visible(False)
    written = len(shown) <= _MAX_WRITTEN
    if written:
        for i, j in zip(*np.nonzero(np.isfinite(part)), strict=True):
            dark = part[i, j] > 0.3 * largest
            ax.text(
                j,
                i,
                _brief(part[i, j]),
                ha="center",
                va="center",
                fontsize="x-small",
                color="white" if dark else "0.25",
            )
    place = {int(column): k for k, column in enumerate(shown)}
    active = [row["features"] for row in scores.active if set(row["features"]) <= place.keys()]
    dots = np.array(
        [(place[b], place[a]) for a, b in active] + [(place[a], place[b]) for a, b in active]
    )
    if len(dots):
        high = 0.32 if written else 0.0
        ax.plot(
            dots[:, 0], dots[:, 1] - high, "o", color="#d4351c", markersize=4, label="in the model"
        )
    unit = " (nats)" if scores.score == "evidence" else ""
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label=f"score: {scores.score}{unit}")
    hidden = len(best) - len(shown)
    note = "Dots: pairs in the model." + (
        f" {hidden} columns with lower scores are not shown." if hidden else ""
    )
    ax.set_title(note, fontsize="small", color="0.35", loc="left")
    return ax


def _unit(explanation: GlobalExplanation) -> str:
    return "log-odds" if explanation.link == "logit" else "prediction"


def _brief(score: float) -> str:
    return f"{score:.0f}" if score >= 9.95 else f"{score:.1f}"


def _find_pair(explanation: GlobalExplanation, term: str | tuple[str, str] | None) -> Surface:
    pairs = [pair for pair in explanation.active if isinstance(pair, Surface)]
    if term is None:
        if not pairs:
            raise ValueError("no pair is active: there is nothing to draw")
        return pairs[0]
    for pair in explanation.pairs:
        if term == pair.name or (
            not isinstance(term, str) and set(term) == set(pair.feature_names)
        ):
            return pair
    names = [pair.name for pair in explanation.pairs]
    raise KeyError(f"no pair {term!r}; there are {names}")


def _visible_range(surface: Surface, axis: int) -> tuple[float, float]:
    """The data's range in one column, unless a few rows lie so far out that they squeeze all others."""
    values = (surface.values, surface.second_values)[axis]
    inside = values[surface.inside.any(axis=1 - axis)]
    return _trimmed(values, surface.density.sum(axis=1 - axis), inside)


def _draw_surface(
    ax: Axes,
    surface: Surface,
    table: np.ndarray,
    colours: str,
    limits: tuple[float, float],
    unit: str,
) -> None:
    image = ax.pcolormesh(
        surface.values,
        surface.second_values,
        table.T,
        cmap=colours,
        vmin=limits[0],
        vmax=limits[1],
        shading="gouraud",
        rasterized=True,
    )
    ax.figure.colorbar(image, ax=ax, label=unit)
    # A cell of the grid without data at any of its corners tells what the prior says, not the data.
    data = surface.density > 0.0
    seen = data[1:, 1:] | data[1:, :-1] | data[:-1, 1:] | data[:-1, :-1]
    veil = np.ma.masked_array(np.ones(seen.T.shape), mask=seen.T)
    ax.pcolormesh(
        surface.values,
        surface.second_values,
        veil,
        cmap="Greys",
        vmin=0.0,
        vmax=2.0,
        alpha=0.55,
        linewidth=0,
        rasterized=True,
    )


def _draw_significance(ax: Axes, surface: Surface) -> None:
    """Contours where the mean is two and four standard deviations from zero."""
    distance = np.where(
        surface.std > 0.0, surface.mean / np.where(surface.std > 0.0, surface.std, 1.0), 0.0
    )
    levels = [level for level in (-4, -2, 2, 4) if distance.min() < level < distance.max()]
    if levels:
        lines = ax.contour(
            surface.values,
            surface.second_values,
            distance.T,
            levels=levels,
            colors="0.2",
            linewidths=0.8,
        )
        ax.clabel(lines, fmt="%d sd", fontsize="x-small")


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
        left, right = _central_range(shape.values, shape.density)
        within = (shape.values >= left) & (shape.values <= right)
        reach = np.where(within, 2.0 * shape.std, 0.0)
        low = min(low, float((shape.mean - reach)[shape.inside].min(initial=0.0)))
        high = max(high, float((shape.mean + reach)[shape.inside].max(initial=0.0)))
    height = (high - low) or 1.0
    return low - height * (_STRIP + 0.06), high + 0.06 * height


def _central_range(values: np.ndarray, density: np.ndarray) -> tuple[float, float]:
    """The range of the middle 99% of the data."""
    below = np.cumsum(density)
    last = len(below) - 1
    ends = np.minimum(np.searchsorted(below, [_TAIL * below[-1], (1.0 - _TAIL) * below[-1]]), last)
    return float(values[ends[0]]), float(values[ends[1]])


def _horizontal_limits(shape: Shape) -> tuple[float, float]:
    """The data's range, unless a few rows lie so far out that they would squeeze all others."""
    return _trimmed(shape.values, shape.density, shape.values[shape.inside])


def _trimmed(values: np.ndarray, density: np.ndarray, inner: np.ndarray) -> tuple[float, float]:
    left, right = _central_range(values, density)
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
    ax.set_xlabel("\n".join(label), **_VERBATIM)
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
    figure.supxlabel(text, fontsize="small", color="0.35", ha="left", x=0.02, **_VERBATIM)
