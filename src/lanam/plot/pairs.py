"""A pair of columns: what they add together, and how sure that is."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lanam.explain import GlobalExplanation, Surface
from lanam.plot.common import (
    Direction,
    Series,
    add_slots,
    hidden_classes,
    pyplot,
    read_panels,
    require,
    series_of,
    write_labels,
)
from lanam.plot.layout import Side, View, lay_out
from lanam.plot.tiles import (
    draw_blocks,
    draw_edited,
    draw_significance,
    draw_signs,
    write_numbers,
)
from lanam.plot.words import MAX_NAME, VERBATIM, short, write
from lanam.text import one_line, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Of more classes those that a pair says most about are drawn.
_MAX_PAIR_CLASSES = 4

_PAIR_KEY = "What the two columns add together, beyond what each adds alone."

_CONTOUR_KEY = "Contours: standard deviations the mean lies from zero."

_LINE_KEY = "Lines: the mean lies two standard deviations or more from zero."

_BOLD_KEY = "Bold: the mean lies two standard deviations or more from zero."

_SIGN_KEY = "Hatched: below zero."

_VEIL_KEY = "Veiled: no data."

_EDITED_KEY = "Dotted: edited by hand, so the standard deviation there is not what the data says."


def plot_interaction(
    explanation: GlobalExplanation,
    term: str | tuple[str, str] | None = None,
    axes: Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    classes: Sequence[object] | None = None,
) -> NDArray[np.object_]:
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
    require(explanation, GlobalExplanation, "use explain_global()")
    surface = _find_pair(explanation, term)
    several = explanation.family.link.several
    series = series_of(explanation, [surface], classes, _MAX_PAIR_CLASSES)
    view = lay_out(surface)
    panels = _pair_panels(view, len(series)) if axes is None else read_panels(axes)
    if panels.size != 2 * len(series):
        each = f" for each of {len(series)} classes" if several else ""
        raise ValueError(f"a pair is drawn on two axes{each}, and there are {panels.size}")
    panels = panels.reshape(len(series), 2)
    unit = "score of the class" if several else explanation.unit
    scale = _colour_scale(surface, series)
    for row, one in zip(panels, series, strict=True):
        _draw_pair(row, view, one, scale, unit)
    if axes is None:
        _write_pair_note(panels[0, 0], view, hidden_classes(explanation, series))
    return panels if several else panels[0]


def _find_pair(explanation: GlobalExplanation, term: str | tuple[str, str] | None) -> Surface:
    if term is None:
        pairs = [pair for pair in explanation.pairs if pair.active]
        if not pairs:
            raise ValueError("no pair is active: there is nothing to draw")
        return max(pairs, key=lambda pair: pair.importance)
    for found in explanation.terms:
        own = set() if isinstance(term, str) else set(term)
        if isinstance(found, Surface) and (term == found.name or own == set(found.feature_names)):
            if len(found.axes) > 2:
                raise ValueError(
                    f"{found.name!r} has {len(found.axes)} columns, and only pairs are drawn: its tables "
                    f"are explanation[{found.name!r}].mean and .std"
                )
            return found
    names = [pair.name for pair in explanation.pairs]
    raise KeyError(f"no pair {term!r}; there are {names}")


def _pair_panels(view: View, n_rows: int) -> NDArray[np.object_]:
    n_up = sum(len(part.middles) for part in view.up.parts) if not view.up.smooth else 0
    height = max(3.9, 1.6 + 0.19 * n_up)
    _, panels = pyplot().subplots(
        n_rows, 2, figsize=(8.4, height * n_rows), layout="constrained", squeeze=False
    )
    return np.asarray(panels)


def _colour_scale(surface: Surface, series: Sequence[Series]) -> tuple[float, float]:
    """The largest mean and standard deviation where the data is; elsewhere colours may run out."""
    seen = surface.density > 0.0
    means = [np.abs(one.of(surface.mean, 2)[seen]).max(initial=0.0) for one in series]
    stds = [one.of(surface.std, 2)[seen].max(initial=0.0) for one in series]
    return float(max(means)) or 1.0, float(max(stds)) or 1.0


def _draw_pair(
    panels: NDArray[np.object_], view: View, one: Series, scale: tuple[float, float], unit: str
) -> None:
    """Mean and standard deviation of a pair, for one class if there are several."""
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
    # Last, because labels find their place within the limits.
    distance = np.divide(mean, std, out=np.zeros_like(mean), where=std > 0.0)
    draw_significance(panels[0], view, distance)
    if view.written:
        write_numbers(panels[0], view, mean, largest, distance, signed=True)
        write_numbers(panels[1], view, std, widest)


def _label_side(ax: Axes, axis: Direction, side: Side, width: int) -> None:
    """Limits, ticks and name of an axis, and lines between values and all else."""
    low, high = side.main
    end = float(side.parts[-1].edges[-1])
    set_limits = ax.set_xlim if axis == "x" else ax.set_ylim
    set_limits(low, high)
    if side.smooth and side.others:
        add_slots(ax, axis, (low, high), (end - high) / len(side.others), side.others)
    elif not side.smooth:
        places = np.concatenate([part.middles for part in side.parts]).tolist()
        write_labels(ax, axis, places, [*short(side.values), *side.others], len(side.values))
        set_limits(low, end)
    if side.others:
        (ax.axvline if axis == "x" else ax.axhline)(high, color="white", linewidth=2.0)
    name = textwrap.fill(shorten(one_line(side.name), 2 * width), width)
    (ax.set_xlabel if axis == "x" else ax.set_ylabel)(name, **VERBATIM)


def _write_pair_note(ax: Axes, view: View, notes: Sequence[str]) -> None:
    """How to read the drawing of a pair."""
    smooth = (view.across.smooth, view.up.smooth)
    keys = [_PAIR_KEY]
    if all(smooth):
        keys.append(_CONTOUR_KEY)
    if any(smooth) and not (all(smooth) and not (view.across.others or view.up.others)):
        keys.append(_LINE_KEY)
    keys.append(_BOLD_KEY if view.written else _SIGN_KEY)
    keys.append(_VEIL_KEY)
    if view.surface.was_edited:
        keys.append(_EDITED_KEY)
    write(ax, [" ".join([*keys, *notes])])
