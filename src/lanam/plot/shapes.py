"""Drawings of explanations, with matplotlib.

They take explanations and nothing else, so whatever can be drawn can also be had as data.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lanam.explain import MISSING, OTHER_LEVELS, GlobalExplanation, Shape, Surface
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

#: Of more levels of a categorical column the most frequent are drawn.
_MAX_LABELS = 20

#: Labels on an axis are cut to this many characters; with more in a row than a panel is wide, or more
#: labels than this, they are turned.
_MAX_LABEL = 16
_MAX_CHARACTERS = 30
_MANY_LABELS = 9

#: The room for missing values beside a curve or a surface, as a share of the panel's width.
_SLOT = 0.17

#: Cells along a numeric axis of a pair that is drawn in tiles.
_N_TILES = 80

#: Numbers are written into so many tiles.
_MAX_TILES_WRITTEN = 42

_KEY = "Line: mean. Band: two standard deviations. Bars: the data. Shaded: beyond the data."
_LEVEL_KEY = "Dots: levels. Hollow: a level that is not in the training data."
_MISSING_KEY = "Diamonds: missing values."
_CLASS_KEY = "Scores are log-probabilities, measured from their mean over all classes."

_PAIR_KEY = "What the two columns add together, beyond what each adds alone."
_CONTOUR_KEY = "Contours: standard deviations the mean lies from zero."
_LINE_KEY = "Lines: the mean lies two standard deviations or more from zero."
_BOLD_KEY = "Bold: the mean lies two standard deviations or more from zero."
_VEIL_KEY = "Veiled: no data."

_CURVE, _BAND, _DATA = "#12436d", "#a9c4e0", "#8c8c8c"

#: One a class; more are not told apart.
_CLASS_COLOURS = (
    "#12436d",
    "#d4351c",
    "#28a197",
    "#f46a25",
    "#801650",
    "#6f9bd1",
    "#8a8d0f",
    "#5b5b5b",
)

#: Of more classes those that a pair says most about are drawn.
_MAX_PAIR_CLASSES = 4

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
    classes: Sequence[Any] | None = None,
    share_y: bool = True,
) -> np.ndarray:
    """Draw what each value of a column adds to the prediction, a panel a term.

    The line is the posterior mean and the band two standard deviations on either side. The bars
    below show where the training data lies; beyond its range the panel is shaded. All panels share
    the vertical axis, so heights can be compared, unless they are told not to.

    Levels of a categorical column are dots with bars, in the data's order (of many, the most frequent);
    a hollow one is what a level adds that was not in the training data. Where values were missing, a
    diamond beside the others is what such a value adds.

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
    series = _series(explanation, shapes, classes, len(_CLASS_COLOURS))
    for ax, shape in zip(panels, shapes, strict=False):
        limits = _vertical_limits(shapes if share_y else [shape], series)
        _draw_shape(ax, shape, limits, series)
    if shapes and len(series) > 1:
        _draw_legend(panels[0], series, outside=own)
    if own:
        figure = panels[0].figure
        _write_note(figure, explanation, shapes, series)
        if shapes:
            figure.supylabel(
                f"contribution to the {_unit(explanation)}", fontsize="medium", **_VERBATIM
            )
    if not shapes:
        panels[0].set_axis_off()
        panels[0].text(0.5, 0.5, "no term is active", ha="center", va="center")
    return panels


def plot_interaction(
    explanation: GlobalExplanation,
    term: str | tuple[str, str] | None = None,
    axes: Any = None,
    *,
    classes: Sequence[Any] | None = None,
) -> np.ndarray:
    """Draw what a pair of columns adds to the prediction: its mean and its standard deviation.

    The pair's function is what the columns add together, beyond what each adds alone. Where there is
    no training data the panels are veiled. Levels of a categorical column have a row or a column of
    tiles each, and so have missing values; a numeric column beside a categorical one runs along.

    Parameters
    ----------
    explanation : GlobalExplanation
        From a model's ``explain_global()``.
    term : str or pair of str, default=None
        The pair's name (``"a x b"``) or its two columns; by default the most important active one.
    axes : array of Axes, default=None
        Where to draw, two for each class that is drawn; by default a new figure.
    classes : sequence of labels, default=None
        Of a classifier of more than two classes, those to draw, a row each; by default all, or the
        four with the largest effects.

    Returns
    -------
    axes : ndarray of Axes
        Of the mean and of the standard deviation; (n_classes, 2) of more than two classes.

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
    several = explanation.link == "softmax"
    series = _series(explanation, [surface], classes, _MAX_PAIR_CLASSES)
    view = _lay_out(surface)
    panels = _pair_panels(view, len(series)) if axes is None else np.atleast_1d(axes).ravel()
    if panels.size != 2 * len(series):
        each = f" for each of {len(series)} classes" if several else ""
        raise ValueError(f"a pair is drawn on two axes{each}, and there are {panels.size}")
    panels = panels.reshape(len(series), 2)
    unit = "score of the class" if several else _unit(explanation)
    scale = _colour_scale(surface, series)
    for row, one in zip(panels, series, strict=True):
        _draw_pair(row, view, one, scale, unit)
    if axes is None:
        hidden = len(explanation.classes or ()) - len(series) if several else 0
        _write_pair_note(panels[0, 0].figure, view, hidden)
    return panels if several else panels[0]


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
    classes = explanation.classes
    if explanation.link == "logit":
        return f"log-odds of {shorten(str(classes[1]), _MAX_NAME)}" if classes else "log-odds"
    if explanation.link == "softmax":
        return "score of each class"
    return "log rate" if explanation.link == "log" else "prediction"


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


@dataclass(frozen=True)
class _Part:
    """A stretch of an axis: the edges of its tiles, and how each reads the entries (tiles, entries)."""

    edges: np.ndarray
    weights: np.ndarray
    smooth: bool = False

    @property
    def middles(self) -> np.ndarray:
        return np.asarray(0.5 * (self.edges[1:] + self.edges[:-1]))


@dataclass(frozen=True)
class _Side:
    """One of a pair's columns as an axis: its values, and then what else has entries."""

    name: str
    values: np.ndarray
    parts: tuple[_Part, ...]
    others: tuple[str, ...]

    @property
    def smooth(self) -> bool:
        return self.parts[0].smooth

    @property
    def main(self) -> tuple[float, float]:
        """The ends of the values' part."""
        edges = self.parts[0].edges
        return float(edges[0]), float(edges[-1])


@dataclass(frozen=True)
class _View:
    """How a pair is laid out; beside a numeric column a categorical one runs upwards."""

    surface: Surface
    across: _Side
    up: _Side
    swapped: bool

    def oriented(self, table: np.ndarray) -> np.ndarray:
        """A table of the pair as (across, up)."""
        return table.T if self.swapped else table

    @property
    def written(self) -> bool:
        """Whether there are only tiles, and few enough to write numbers into them."""
        if self.across.smooth or self.up.smooth:
            return False
        sizes = [sum(len(part.middles) for part in side.parts) for side in (self.across, self.up)]
        return sizes[0] * sizes[1] <= _MAX_TILES_WRITTEN


def _lay_out(surface: Surface) -> _View:
    first = _side(surface, 0, surface.values, surface.others)
    second = _side(surface, 1, surface.second_values, surface.second_others)
    swapped = second.smooth and not first.smooth
    return _View(surface, *((second, first) if swapped else (first, second)), swapped)


def _side(surface: Surface, axis: int, values: np.ndarray, others: Sequence[str]) -> _Side:
    density = surface.density.sum(axis=1 - axis)
    n_values, eye = len(values), np.eye(len(density))
    if surface.feature_kinds[axis] == "categorical":
        main = _Part(np.arange(n_values + 1) - 0.5, eye[:n_values])
        step = 1.0
    else:
        inside = surface.inside.any(axis=1 - axis)[:n_values]
        low, high = _trimmed(values, density[:n_values], values[inside])
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, _N_TILES + 1)
        middles = 0.5 * (edges[1:] + edges[:-1])
        weights = [np.interp(middles, values, row) for row in eye[:n_values, :n_values]]
        blank = np.zeros((_N_TILES, len(others)))
        main = _Part(edges, np.hstack([np.transpose(weights), blank]), smooth=True)
        step = 0.6 * _SLOT * (high - low)
    found = [k for k in range(len(others)) if density[n_values + k] > 0.0]
    parts = [main]
    if found:
        edges = main.edges[-1] + step * np.arange(len(found) + 1)
        parts.append(_Part(edges, eye[[n_values + k for k in found]]))
    words = {MISSING: "missing", OTHER_LEVELS: "other levels"}
    names = tuple(words[others[k]] for k in found)
    return _Side(surface.feature_names[axis], values, tuple(parts), names)


def _pair_panels(view: _View, n_rows: int) -> np.ndarray:
    n_up = sum(len(part.middles) for part in view.up.parts) if not view.up.smooth else 0
    height = max(3.9, 1.6 + 0.19 * n_up)
    _, panels = _pyplot().subplots(
        n_rows, 2, figsize=(8.4, height * n_rows), layout="constrained", squeeze=False
    )
    return np.asarray(panels)


def _colour_scale(surface: Surface, series: Sequence[_Series]) -> tuple[float, float]:
    """The largest mean and standard deviation where the data is; elsewhere colours may run out."""
    seen = surface.density > 0.0
    means = [np.abs(one.of(surface.mean, 2)[seen]).max(initial=0.0) for one in series]
    stds = [one.of(surface.std, 2)[seen].max(initial=0.0) for one in series]
    return float(max(means)) or 1.0, float(max(stds)) or 1.0


def _draw_pair(
    panels: np.ndarray, view: _View, one: _Series, scale: tuple[float, float], unit: str
) -> None:
    """Mean and standard deviation of a pair, for one class if there are several."""
    mean, std = one.of(view.surface.mean, 2), one.of(view.surface.std, 2)
    largest, widest = scale
    _draw_blocks(panels[0], view, mean, "RdBu_r", (-largest, largest), unit)
    _draw_blocks(panels[1], view, std, "viridis", (0.0, widest), unit)
    of_class = f" ({shorten(one.name, _MAX_NAME)})" if one.name else ""
    for ax, title in zip(panels, ("mean", "standard deviation"), strict=True):
        ax.set_title(title + of_class, fontsize="medium", **_VERBATIM)
        _label_side(ax, "x", view.across, 36)
        _label_side(ax, "y", view.up, 30)
    # Last, because labels find their place within the limits.
    distance = np.divide(mean, std, out=np.zeros_like(mean), where=std > 0.0)
    _draw_significance(panels[0], view, distance)
    if view.written:
        _write_numbers(panels[0], view, mean, largest, distance, signed=True)
        _write_numbers(panels[1], view, std, widest)


def _draw_blocks(
    ax: Axes,
    view: _View,
    table: np.ndarray,
    colours: str,
    limits: tuple[float, float],
    unit: str,
) -> None:
    image = None
    for across in view.across.parts:
        for up in view.up.parts:
            draw = _draw_surface if across.smooth and up.smooth else _draw_tiles
            drawn = draw(ax, view, across, up, table, colours, limits)
            image = drawn if image is None else image
    ax.figure.colorbar(image, ax=ax, label=unit)


def _draw_surface(
    ax: Axes,
    view: _View,
    across: _Part,
    up: _Part,
    table: np.ndarray,
    colours: str,
    limits: tuple[float, float],
) -> Any:
    """The part of a pair where both columns are numbers."""
    values = view.across.values, view.up.values
    n_across, n_up = map(len, values)
    look = {"vmin": limits[0], "vmax": limits[1], "cmap": colours, "rasterized": True}
    inner = view.oriented(table)[:n_across, :n_up]
    image = ax.pcolormesh(*values, inner.T, shading="gouraud", **look)
    # A cell of the grid without data at any of its corners tells what the prior says, not the data.
    data = view.oriented(view.surface.density)[:n_across, :n_up] > 0.0
    seen = data[1:, 1:] | data[1:, :-1] | data[:-1, 1:] | data[:-1, :-1]
    veil = _draw_veil(ax, *values, seen)
    if view.across.others or view.up.others:
        _clip(ax, across, up, [image, veil])
    return image


def _draw_tiles(
    ax: Axes,
    view: _View,
    across: _Part,
    up: _Part,
    table: np.ndarray,
    colours: str,
    limits: tuple[float, float],
) -> Any:
    """A part of a pair with levels or missing values on one side or both."""
    block = across.weights @ view.oriented(table) @ up.weights.T
    look = {"vmin": limits[0], "vmax": limits[1], "cmap": colours, "rasterized": True}
    image = ax.pcolormesh(across.edges, up.edges, block.T, **look)
    density = view.oriented(view.surface.density)
    _draw_veil(ax, across.edges, up.edges, across.weights @ density @ up.weights.T > 0.0)
    return image


def _draw_veil(ax: Axes, across: np.ndarray, up: np.ndarray, seen: np.ndarray) -> Any:
    veil = np.ma.masked_array(np.ones(seen.T.shape), mask=seen.T)
    return ax.pcolormesh(
        across,
        up,
        veil,
        cmap="Greys",
        vmin=0.0,
        vmax=2.0,
        alpha=0.55,
        linewidth=0,
        rasterized=True,
    )


def _clip(ax: Axes, across: _Part, up: _Part, artists: Sequence[Any]) -> None:
    """Keep what is drawn over all values within the part for which there is room."""
    from matplotlib.patches import Rectangle

    low, high = across.edges[[0, -1]], up.edges[[0, -1]]
    frame = Rectangle((low[0], high[0]), low[1] - low[0], high[1] - high[0])
    frame.set_transform(ax.transData)
    for artist in artists:
        artist.set_clip_path(frame)


def _label_side(ax: Axes, axis: str, side: _Side, width: int) -> None:
    """Limits, ticks and name of an axis, and lines between values and all else."""
    low, high = side.main
    end = float(side.parts[-1].edges[-1])
    set_limits = ax.set_xlim if axis == "x" else ax.set_ylim
    set_limits(low, high)
    if side.smooth and side.others:
        _add_slots(ax, axis, (low, high), (end - high) / len(side.others), side.others)
    elif not side.smooth:
        places = np.concatenate([part.middles for part in side.parts]).tolist()
        _write_labels(ax, axis, places, [*_short(side.values), *side.others], len(side.values))
        set_limits(low, end)
    if side.others:
        (ax.axvline if axis == "x" else ax.axhline)(high, color="white", linewidth=2.0)
    name = textwrap.fill(side.name, width)
    (ax.set_xlabel if axis == "x" else ax.set_ylabel)(name, **_VERBATIM)


def _draw_significance(ax: Axes, view: _View, distance: np.ndarray) -> None:
    """Where the mean lies two standard deviations and more from zero."""
    table = view.oriented(distance)
    for across in view.across.parts:
        for up in view.up.parts:
            block = np.abs(across.weights @ table @ up.weights.T) >= 2.0
            if across.smooth and up.smooth:
                _draw_contours(ax, view, across, up, table)
            elif across.smooth:
                for place, sure in zip(up.middles, block.T, strict=True):
                    line = np.where(sure, place, np.nan)
                    ax.plot(across.middles, line, color="0.15", linewidth=1.1)
            elif up.smooth:
                for place, sure in zip(across.middles, block, strict=True):
                    ax.plot(np.where(sure, place, np.nan), up.middles, color="0.15", linewidth=1.1)


def _draw_contours(ax: Axes, view: _View, across: _Part, up: _Part, table: np.ndarray) -> None:
    """Contours at two and four standard deviations."""
    inner = table[: len(view.across.values), : len(view.up.values)]
    levels = [level for level in (-4, -2, 2, 4) if inner.min() < level < inner.max()]
    if levels:
        lines = ax.contour(
            view.across.values,
            view.up.values,
            inner.T,
            levels=levels,
            colors="0.2",
            linewidths=0.8,
        )
        if view.across.others or view.up.others:
            _clip(ax, across, up, [lines])
        ax.clabel(lines, fmt="%d sd", fontsize="x-small")


def _write_numbers(
    ax: Axes,
    view: _View,
    table: np.ndarray,
    largest: float,
    distance: np.ndarray | None = None,
    *,
    signed: bool = False,
) -> None:
    """The tables' numbers in their tiles, bold where they are sure."""
    form = ("+" if signed else "") + _two_digits(largest)
    for across in view.across.parts:
        for up in view.up.parts:
            block = across.weights @ view.oriented(table) @ up.weights.T
            sure = np.zeros(block.shape, dtype=bool)
            if distance is not None:
                sure = np.abs(across.weights @ view.oriented(distance) @ up.weights.T) >= 2.0
            for i, j in np.ndindex(*block.shape):
                dark = abs(block[i, j]) > 0.6 * largest if signed else block[i, j] < 0.6 * largest
                ax.text(
                    across.middles[i],
                    up.middles[j],
                    format(block[i, j], form),
                    ha="center",
                    va="center",
                    fontsize="x-small",
                    fontweight="bold" if sure[i, j] else "normal",
                    color="white" if dark else "0.15",
                )


def _two_digits(largest: float) -> str:
    """One format for numbers up to ``largest``: two digits of that."""
    if not 1e-3 < largest < 1e5:
        return ".1e"
    return f".{max(1 - int(np.floor(np.log10(largest))), 0)}f"


def _write_pair_note(figure: Figure, view: _View, n_hidden: int) -> None:
    """How to read the drawing of a pair."""
    smooth = (view.across.smooth, view.up.smooth)
    keys = [_PAIR_KEY]
    if all(smooth):
        keys.append(_CONTOUR_KEY)
    if any(smooth) and not (all(smooth) and not (view.across.others or view.up.others)):
        keys.append(_LINE_KEY)
    if view.written:
        keys.append(_BOLD_KEY)
    keys.append(_VEIL_KEY)
    if n_hidden:
        keys.append(f"{n_hidden} classes are not shown.")
    _write(figure, [" ".join(keys)])


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib: install it with `pip install lanam[plot]`"
        ) from error
    return plt


def _new_panels(shapes: Sequence[Shape], n_columns: int, share_y: bool) -> np.ndarray:
    kept = max(len(shapes), 1)
    n_columns = min(n_columns, kept)
    n_rows = -(-kept // n_columns)
    turned = max((_label_height(shape) for shape in shapes), default=0.0)
    figure, grid = _pyplot().subplots(
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
    labels = [*_short(shape.values[_shown_levels(shape)]), *_slot_names(shape)]
    return 0.065 * max(map(len, labels)) if _turned(labels) else 0.0


@dataclass(frozen=True)
class _Series:
    """One of the functions that a term has: its place in the arrays' last axis, its name, its colours."""

    place: int
    name: str
    curve: str = _CURVE
    band: str = _BAND
    band_alpha: float = 1.0
    shift: float = 0.0

    def of(self, table: Any, n_axes: int = 1) -> np.ndarray:
        """The series' part of an array whose first axes are not those of classes."""
        array = np.asarray(table, dtype=float)
        return array if array.ndim == n_axes else np.asarray(array[..., self.place])


def _series(
    explanation: GlobalExplanation,
    terms: Sequence[Shape | Surface],
    classes: Sequence[Any] | None,
    most: int,
) -> list[_Series]:
    """What there is to draw: one function, or one for each class."""
    if explanation.link != "softmax":
        if classes is not None:
            raise ValueError("classes are told apart where there are more than two: leave it out")
        return [_Series(0, "")]
    known = list(explanation.classes or ())
    if classes is None:
        places = _largest(terms, len(known), most)
    else:
        unknown = [name for name in classes if name not in known]
        if unknown or not len(classes):
            raise ValueError(f"classes={list(classes)!r} are not among the model's: {known}")
        places = [known.index(name) for name in classes]
    shifts = (np.arange(len(places)) - 0.5 * (len(places) - 1)) * 0.7 / len(places)
    colours = [_CLASS_COLOURS[k % len(_CLASS_COLOURS)] for k in range(len(places))]
    return [
        _Series(place, str(known[place]), colour, colour, 0.3, float(shift))
        for place, colour, shift in zip(places, colours, shifts, strict=True)
    ]


def _largest(terms: Sequence[Shape | Surface], n_classes: int, most: int) -> list[int]:
    """The classes with the largest effects, in their order."""
    size = np.zeros(n_classes)
    for term in terms:
        density = term.density.ravel()
        size += density @ np.abs(term.mean[: len(term.density)]).reshape(len(density), n_classes)
    return sorted(np.argsort(-size, kind="stable")[:most].tolist())


def _draw_legend(ax: Axes, series: Sequence[_Series], *, outside: bool) -> None:
    handles = [
        ax.plot([], [], "o-", color=one.curve, label=shorten(one.name, _MAX_NAME))[0]
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


def _vertical_limits(shapes: Sequence[Shape], series: Sequence[_Series]) -> tuple[float, float]:
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
            for _, other_mean, other_std, _ in _drawn_others(shape):
                centre, spread = one.of(other_mean, 0), 2.0 * one.of(other_std, 0)
                low, high = min(low, float(centre - spread)), max(high, float(centre + spread))
    height = (high - low) or 1.0
    return low - height * (_STRIP + 0.06), high + 0.06 * height


def _shown_and_common(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Which values are drawn, and which of all belong to the bulk of the data."""
    if not len(shape.values):
        return shape.inside, shape.inside
    if shape.kind == "categorical":
        shown = np.zeros(len(shape.values), dtype=bool)
        shown[_shown_levels(shape)] = True
        return shown, shape.density > _TAIL
    left, right = _central_range(shape.values, shape.density)
    return shape.inside, (shape.values >= left) & (shape.values <= right)


def _shown_levels(shape: Shape) -> np.ndarray:
    """The most frequent levels, in the data's order."""
    return np.sort(np.argsort(-shape.density, kind="stable")[:_MAX_LABELS])


def _drawn_others(shape: Shape) -> list[tuple[str, Any, Any, float]]:
    """What has a mark beside the values: missing ones, and new levels of a categorical column."""
    return [other for other in shape.others if other[0] in (MISSING, OTHER_LEVELS)]


def _slot_names(shape: Shape) -> list[str]:
    return ["missing" if name == MISSING else "new level" for name, *_ in _drawn_others(shape)]


def _central_range(values: np.ndarray, density: np.ndarray) -> tuple[float, float]:
    """The range of the middle 99% of the data."""
    below = np.cumsum(density)
    last = len(below) - 1
    ends = np.minimum(np.searchsorted(below, [_TAIL * below[-1], (1.0 - _TAIL) * below[-1]]), last)
    return float(values[ends[0]]), float(values[ends[1]])


def _trimmed(values: np.ndarray, density: np.ndarray, inner: np.ndarray) -> tuple[float, float]:
    """The data's range, unless a few rows lie so far out that they would squeeze all others."""
    left, right = _central_range(values, density)
    width = right - left
    lowest = inner[0] if left - inner[0] <= width else left
    highest = inner[-1] if inner[-1] - right <= width else right
    return float(lowest), float(highest)


def _draw_shape(
    ax: Axes, shape: Shape, limits: tuple[float, float], series: Sequence[_Series]
) -> None:
    ax.set_ylim(limits)
    ax.axhline(0.0, color="0.55", linewidth=0.8, zorder=1)
    if not len(shape.values):
        notes = [shape.status]
        ax.set_xticks([])
    elif shape.kind == "categorical":
        notes = _draw_categories(ax, shape, series)
    else:
        notes = _draw_numbers(ax, shape, series)
    if shape.missing_density is not None:
        notes.append(f"({_percent(shape.missing_density)} missing)")
    ax.set_xlabel("\n".join([*textwrap.wrap(shape.name, 36), *notes]), **_VERBATIM)
    ax.set_title(
        f"importance {shape.importance:.3g}", loc="left", fontsize="small", color="0.35", pad=3
    )
    ax.spines[["top", "right"]].set_visible(False)


def _draw_numbers(ax: Axes, shape: Shape, series: Sequence[_Series]) -> list[str]:
    """The curves of a numeric column or of its single values, and what is to be said of them."""
    inner = shape.values[shape.inside]
    lowest, highest = _trimmed(shape.values, shape.density, inner)
    margin = _BEYOND * (highest - lowest) or 0.5
    left, right = lowest - margin, highest + margin
    ax.set_xlim(left, right)
    for start, end in ((left, float(inner[0])), (float(inner[-1]), right)):
        if start < end:
            ax.axvspan(start, end, color="0.93", zorder=0, linewidth=0)
    for one in series:
        (_draw_levels if shape.kind == "level" else _draw_curve)(ax, shape, one, right)
    tallest = _draw_density(ax, shape, lowest, highest)
    if shape.missing_density is not None:
        slot = _SLOT * (right - left)
        _add_slots(ax, "x", (left, right), slot, ["missing"])
        _draw_others(ax, shape, [right + 0.5 * slot], slot, series, tallest)
    if lowest > inner[0] or highest < inner[-1]:
        beyond = shape.density[(shape.values < lowest) | (shape.values > highest)].sum()
        return [f"({_percent(beyond)} of the data lie beyond)"]
    return []


def _percent(share: float) -> str:
    return f"{max(share, 0.001):.1%}" if share < 0.0995 else f"{share:.0%}"


def _add_slots(
    ax: Axes, axis: str, limits: tuple[float, float], slot: float, names: Sequence[str]
) -> None:
    """Room beyond the end of a numeric axis for what is not a number, with its names below."""
    from matplotlib.ticker import MaxNLocator

    low, high = limits
    end = high + slot * len(names)
    places = [high + (k + 0.5) * slot for k in range(len(names))]
    own = ax.xaxis if axis == "x" else ax.yaxis
    set_limits = ax.set_xlim if axis == "x" else ax.set_ylim
    ticks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    own.set_ticks([tick for tick in ticks if low <= tick <= high - 0.4 * slot])
    own.set_ticks(places, names, minor=True, fontsize="small", color="0.35", style="italic")
    ax.tick_params(axis=axis, which="minor", length=0)
    set_limits(low, end)
    draw_line = ax.axvline if axis == "x" else ax.axhline
    draw_line(high, color="0.75", linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)


def _draw_curve(ax: Axes, shape: Shape, one: _Series, right: float) -> None:
    values, mean, std = _up_to(shape, one, right)
    ax.fill_between(
        values,
        mean - 2.0 * std,
        mean + 2.0 * std,
        color=one.band,
        alpha=one.band_alpha,
        linewidth=0,
        zorder=2,
    )
    ax.plot(values, mean, color=one.curve, linewidth=1.8, zorder=3)
    if shape.inside.sum() <= _FEW_VALUES:  # between them the curve is only a connection
        inside = shape.inside
        marks = one.of(shape.mean)[inside]
        ax.plot(shape.values[inside], marks, "o", color=one.curve, markersize=4, zorder=3)


def _up_to(shape: Shape, one: _Series, right: float) -> tuple[np.ndarray, ...]:
    """Values, mean and standard deviation; no further than the panel's end if missing values follow."""
    values, mean, std = shape.values, one.of(shape.mean), one.of(shape.std)
    if shape.missing_density is None or values[-1] <= right:
        return values, mean, std
    kept = values < right
    return tuple(
        np.append(table[kept], np.interp(right, values, table)) for table in (values, mean, std)
    )


def _draw_levels(ax: Axes, shape: Shape, one: _Series, right: float) -> None:
    few = len(shape.values) <= _MANY_LEVELS
    kept = slice(None) if shape.missing_density is None else shape.values <= right
    mean, std = one.of(shape.mean)[kept], one.of(shape.std)[kept]
    _draw_marks(ax, shape.values[kept], mean, std, one, few=few)


def _draw_marks(
    ax: Axes,
    places: Any,
    mean: np.ndarray,
    std: np.ndarray,
    one: _Series,
    *,
    few: bool = True,
    **style: Any,
) -> None:
    """Dots with bars of two standard deviations."""
    ax.vlines(
        places,
        mean - 2.0 * std,
        mean + 2.0 * std,
        color=one.band,
        alpha=one.band_alpha,
        linewidth=3.0 if few else 1.0,
        zorder=2,
    )
    look = {"marker": "o", "markersize": 4.0 if few else 1.5} | style
    ax.plot(places, mean, linestyle="none", color=one.curve, zorder=3, **look)


def _draw_categories(ax: Axes, shape: Shape, series: Sequence[_Series]) -> list[str]:
    """The levels of a categorical column, and what is to be said of them."""
    shown = _shown_levels(shape)
    names = _slot_names(shape)
    places = np.arange(len(shown), dtype=float)
    slots = [len(shown) + 0.4 + k for k in range(len(names))]
    ax.set_xlim(-0.6, len(shown) + 0.4 + len(names) - 0.4)
    for one in series:
        mean, std = one.of(shape.mean)[shown], one.of(shape.std)[shown]
        _draw_marks(ax, places + one.shift, mean, std, one)
    tallest = float(shape.density.max())
    _draw_strip(ax, places - 0.4, shape.density[shown], 0.8, tallest)
    _draw_others(ax, shape, slots, 1.0, series, tallest)
    if names:
        ax.axvline(len(shown) - 0.3, color="0.75", linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    _write_labels(ax, "x", [*places, *slots], [*_short(shape.values[shown]), *names], len(shown))
    hidden = len(shape.values) - len(shown)
    if not hidden:
        return []
    share = _percent(float(shape.density[shown].sum()))
    return [f"({len(shown)} of {len(shape.values)} levels, {share} of the data)"]


def _short(labels: np.ndarray) -> list[str]:
    """Labels for an axis: in one line, not too long, and to be seen even if there is nothing in them."""
    lines = [" ".join(str(name).split()) or repr(str(name)) for name in labels.tolist()]
    return [shorten(line, _MAX_LABEL) for line in lines]


def _turned(labels: Sequence[str]) -> bool:
    return len(labels) > _MANY_LABELS or sum(map(len, labels)) > _MAX_CHARACTERS


def _write_labels(
    ax: Axes, axis: str, places: Sequence[float], labels: Sequence[str], n_levels: int
) -> None:
    """Names along an axis; those after the levels' are ours and not the data's, and look so."""
    turned = axis == "x" and _turned(labels)
    (ax.set_xticks if axis == "x" else ax.set_yticks)(
        places,
        labels,
        rotation=90 if turned else 0,
        fontsize="x-small" if len(labels) > _MANY_LABELS else "small",
        **_VERBATIM,
    )
    ax.tick_params(axis=axis, length=2)
    for text in (ax.get_xticklabels() if axis == "x" else ax.get_yticklabels())[n_levels:]:
        text.set(color="0.35", style="italic")


def _draw_others(
    ax: Axes,
    shape: Shape,
    places: Sequence[float],
    width: float,
    series: Sequence[_Series],
    tallest: float,
) -> None:
    """Marks of missing values and of new levels beside those of the values."""
    for place, (name, mean, std, density) in zip(places, _drawn_others(shape), strict=True):
        style = {"marker": "D"} if name == MISSING else {"markerfacecolor": "white"}
        for one in series:
            at = [place + one.shift * width]
            _draw_marks(ax, at, one.of([mean]), one.of([std]), one, **style)
        if density > 0.0:
            _draw_strip(
                ax, np.array([place - 0.4 * width]), np.array([density]), 0.8 * width, tallest
            )


def _draw_density(ax: Axes, shape: Shape, lowest: float, highest: float) -> float:
    """Bars along the bottom: how the training data is spread over the column's values."""
    if highest <= lowest:
        return float(shape.density.sum())
    share, edges = np.histogram(
        shape.values, bins=_BINS, range=(lowest, highest), weights=shape.density
    )
    _draw_strip(ax, edges[:-1], share, np.diff(edges), float(share.max()))
    return float(share.max())


def _draw_strip(ax: Axes, left: np.ndarray, share: np.ndarray, width: Any, tallest: float) -> None:
    ax.bar(
        left,
        np.minimum(share / (tallest or 1.0), 1.0) * (_STRIP - 0.02),
        width=width,
        align="edge",
        color=_DATA,
        linewidth=0,
        transform=ax.get_xaxis_transform(),
        zorder=1,
    )


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _write_note(
    figure: Figure,
    explanation: GlobalExplanation,
    drawn: Sequence[Shape],
    series: Sequence[_Series],
) -> None:
    """How to read the drawing, and what is not in it: terms switched off, and active ones left out."""
    off = [shape.name for shape in explanation.switched_off]
    others = [term for term in explanation.active if term not in drawn]
    pairs = [term.name for term in others if isinstance(term, Surface)]
    hidden = len(others) - len(pairs)
    notes = [_key(explanation, drawn)] if drawn else []
    if off:
        notes.append(f"{len(off)} of {len(explanation)} terms are switched off: {_named(off)}.")
    if hidden:
        notes.append(f"{hidden} active terms are not shown.")
    if pairs:
        notes.append(f"Pairs are drawn by plot_interaction: {_named(pairs)}.")
    if explanation.link == "softmax" and len(series) < len(explanation.classes or ()):
        notes.append(f"{len(explanation.classes or ()) - len(series)} classes are not shown.")
    _write(figure, notes)


def _key(explanation: GlobalExplanation, drawn: Sequence[Shape]) -> str:
    """What the marks in the drawing are."""
    levels = [shape.kind == "categorical" for shape in drawn]
    keys = [
        "Bars with dots: two standard deviations. Bars below: the data." if all(levels) else _KEY
    ]
    if any(levels):
        keys.append(_LEVEL_KEY)
    if any(shape.missing_density is not None for shape in drawn):
        keys.append(_MISSING_KEY)
    if explanation.link == "softmax":
        keys.append(_CLASS_KEY)
    return " ".join(keys)


def _write(figure: Figure, notes: Sequence[str]) -> None:
    width = int(figure.get_figwidth() * 14)
    text = "\n".join(textwrap.fill(note, width) for note in notes)
    figure.supxlabel(text, fontsize="small", color="0.35", ha="left", x=0.02, **_VERBATIM)
