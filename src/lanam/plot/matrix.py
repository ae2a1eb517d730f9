"""The scores of all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lanam.interactions import InteractionScores
from lanam.plot.common import new_panel, require, require_axes, write_in_tile
from lanam.plot.words import MAX_NAME, VERBATIM
from lanam.text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Scores of more columns than this are not written into the matrix, and no more than this are drawn.
_MAX_WRITTEN = 12
_MAX_COLUMNS = 40


def plot_interaction_matrix(scores: InteractionScores, axes: Axes | None = None) -> Axes:
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
    require(scores, InteractionScores, "use a model's interaction_scores_")
    if not len(scores):
        raise ValueError("no pairs were scored: fit with interactions='auto', or add_interactions")
    require_axes("axes", axes)
    from matplotlib.colors import PowerNorm

    matrix = scores.matrix()
    best = np.nanmax(matrix, axis=1)
    shown = np.sort(np.argsort(-best, kind="stable")[:_MAX_COLUMNS])
    part = matrix[np.ix_(shown, shown)]
    size = 2.6 + 0.32 * len(shown)
    ax = new_panel(size + 0.8, size) if axes is None else axes
    largest = float(np.nanmax(part)) or 1.0
    # The best pair may be worth a hundred times the next: the root keeps both in sight.
    image = ax.imshow(part, cmap="Blues", norm=PowerNorm(0.5, 0.0, largest))
    ends = [-0.5, len(shown) - 0.5]
    ax.plot(ends, ends, color="0.75", linewidth=0.8)  # a column has no score with itself
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
    active = [row["features"] for row in scores.active if set(row["features"]) <= place.keys()]
    dots = np.array(
        [(place[b], place[a]) for a, b in active] + [(place[a], place[b]) for a, b in active]
    )
    if len(dots):
        high = 0.32 if written else 0.0
        # White around black can be seen on light tiles and on dark ones.
        ax.plot(
            dots[:, 0],
            dots[:, 1] - high,
            "o",
            color="0.1",
            markeredgecolor="white",
            markersize=5,
            label="in the model",
        )
    unit = " (nats)" if scores.score == "evidence" else ""
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label=f"score: {scores.score}{unit}")
    hidden = len(best) - len(shown)
    note = "Dots: pairs in the model." + (
        f" {hidden} columns with lower scores are not shown." if hidden else ""
    )
    ax.set_title(note, fontsize="small", color="0.35", loc="left")
    return ax


def _brief(score: float) -> str:
    return f"{score:.0f}" if score >= 9.95 else f"{score:.1f}"
