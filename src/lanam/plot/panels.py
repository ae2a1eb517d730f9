"""A figure with a panel for each univariate term, and the legend of its classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lanam.explain import Shape
from lanam.plot.common import (
    MAX_NAME,
    Series,
    Style,
    label_height,
    own_figure,
    pyplot,
    read_panels,
    short_labels,
    write_legend,
)
from lanam.plot.curves import MAX_SHAPE_NAME, name_lines, shown_categories, slot_names
from lanam.text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Height in inches of a further line below a panel, and width of a panel's axis.
_LINE_HEIGHT = 0.16
_PANEL_WIDTH = 2.15

#: Above these numbers of panels there are four and five columns.
_MANY_TERMS = (12, 20)


def panels_of(
    shapes: Sequence[Shape],
    axes: Axes | Sequence[Axes] | NDArray[np.object_] | None,
    n_columns: int | None,
    *,
    share_y: bool = False,
) -> tuple[NDArray[np.object_], list[list[str]]]:
    """A panel for each term, of the ``axes`` or of a new figure, and the lines of its name."""
    names = [name_lines(name) for name in cut([shape.name for shape in shapes], MAX_SHAPE_NAME)]
    is_new = axes is None
    panels = _new_panels(shapes, names, n_columns, share_y) if is_new else read_panels(axes)
    if len(panels) < len(shapes):
        raise ValueError(f"{len(shapes)} terms need as many axes, and there are {len(panels)}")
    return panels[: max(len(shapes), 1)], names


def _new_panels(
    shapes: Sequence[Shape],
    names: Sequence[Sequence[str]],
    n_columns: int | None,
    share_y: bool,
) -> NDArray[np.object_]:
    """Panels of a new figure, with space for the lines of the terms' ``names`` below."""
    kept = max(len(shapes), 1)
    if n_columns is None:
        n_columns = 3 + (kept > _MANY_TERMS[0]) + (kept > _MANY_TERMS[1])
    n_columns = min(n_columns, kept)
    n_rows = -(-kept // n_columns)
    heights = [_label_height(shape, len(lines)) for shape, lines in zip(shapes, names, strict=True)]
    rows = [heights[start : start + n_columns] for start in range(0, kept, n_columns)]
    turned = sum(max(row, default=0.0) for row in rows)
    figure, grid = pyplot().subplots(
        n_rows,
        n_columns,
        figsize=(0.6 + 3.1 * n_columns, 0.5 + 2.5 * n_rows + turned),
        sharey=share_y,
        squeeze=False,
        layout="constrained",
    )
    for ax in grid.flat[kept:]:
        figure.delaxes(ax)
    return np.asarray(grid.flat[:kept])


def _label_height(shape: Shape, n_lines: int) -> float:
    """Additional height in inches for long names and rotated labels below a panel."""
    height = _LINE_HEIGHT * (n_lines - 1 + (shape.missing_density is not None))
    if shape.kind != "categorical":
        return height
    shown = shown_categories(shape)
    height += _LINE_HEIGHT * (len(shown) < len(shape.values))
    labels = [*short_labels(shape.values[shown]), *slot_names(shape)]
    return height + label_height(labels, _PANEL_WIDTH / (len(labels) + 0.6))


def draw_legend(ax: Axes, series: Sequence[Series], *, outside: bool) -> float:
    """Draw the legend of the classes; the height in inches that it adds above all panels."""
    names = cut([one.name for one in series], MAX_NAME)
    handles = [
        ax.plot([], [], marker=one.marker, markersize=4, linestyle=one.line, color=one.curve)[0]
        for one in series
    ]
    look: Style = {"handles": handles, "labels": names, "handlelength": 3.0}
    above = 0.0
    if outside:
        width = 0.6 + 0.075 * max(map(len, names))  # of a name with its line, in inches
        figure = own_figure(ax)
        n_columns = max(min(len(series), int(figure.get_figwidth() / width)), 1)
        above = 0.19 * -(-len(series) // n_columns)
        figure.set_figheight(figure.get_figheight() + above)
        look |= {"loc": "outside upper left", "ncols": n_columns, "frameon": False}
        write_legend(figure.legend(fontsize="small", **look))
    else:
        write_legend(ax.legend(fontsize="x-small", **look))
    return above
