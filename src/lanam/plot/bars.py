"""Horizontal bars with intervals, a term each, and their numbers beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lanam.plot.common import new_panel
from lanam.plot.words import VERBATIM, Look
from lanam.text import number_format

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Inches of height that a bar takes, and that all else does.
_PITCH = 0.32
_FRAME = 1.7

_WIDTH = 9.0

#: How bars are told apart without colours.
_LOOKS: dict[str, Look] = {
    "solid": {"facecolor": "#8fb0d3"},
    "hatched": {"facecolor": "white", "hatch": "////"},
    "hollow": {"facecolor": "white", "linestyle": (0, (1, 1))},
}


@dataclass(frozen=True)
class Bar:
    """A bar from zero, with its interval; ``look`` is ``"solid"``, ``"hatched"`` or ``"hollow"``."""

    name: str
    size: float
    low: float
    high: float
    look: str = "solid"


def bar_panel(n_bars: int) -> Axes:
    """A new figure that is high enough for so many bars."""
    return new_panel(_WIDTH, _FRAME + _PITCH * max(n_bars, 1))


def draw_bars(ax: Axes, bars: Sequence[Bar], *, signed: bool = False) -> None:
    """Bars from the top down, their names on the left, their numbers on the right."""
    from matplotlib.ticker import MaxNLocator

    form = ("+" if signed else "") + bar_format(bars)
    for place, bar in enumerate(bars):
        ax.barh(
            place, bar.size, height=0.62, edgecolor="#12436d", linewidth=0.8, **_LOOKS[bar.look]
        )
    sizes, lows, highs = (
        np.array([getattr(bar, name) for bar in bars]) for name in ("size", "low", "high")
    )
    ax.errorbar(
        sizes,
        np.arange(len(bars)),
        xerr=[sizes - lows, highs - sizes],
        fmt="none",
        ecolor="0.1",
        elinewidth=1.3,
        capsize=2.5,
        zorder=3,
    )
    ax.axvline(0.0, color="0.35", linewidth=0.8, zorder=2)
    ax.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize="small", **VERBATIM)
    ax.set_ylim(max(len(bars), 1) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    for place, bar in enumerate(bars):
        ax.text(
            1.02,
            place,
            f"{bar.size:{form}} [{bar.low:{form}}, {bar.high:{form}}]",
            transform=ax.get_yaxis_transform(),
            va="center",
            fontsize="small",
            color="0.25",
        )
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)


def bar_format(bars: Sequence[Bar]) -> str:
    """One format for all numbers beside the bars."""
    return number_format(max((abs(bar.size) for bar in bars), default=1.0) or 1.0, 3)
