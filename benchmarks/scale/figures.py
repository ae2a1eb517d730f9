"""Pictures of growth: time against rows and columns, memory against rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.scale.cells import COLUMNS, OURS, Results, Sizes
from benchmarks.scale.growth import Series, Sweep, all_series
from benchmarks.scale.targets import PEAK

COLOURS = {
    "lanam": "#12436d",
    "lanam-auto": "#28a197",
    "ebm": "#d4351c",
    "ebm-pairs": "#f46a25",
    "lightgbm": "#5b5b5b",
}


def draw_all(results: Results, sizes: Sizes, folder: Path, limit: float) -> dict[str, Path]:
    """All pictures that there is something to draw in, by name."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for name, draw in (("scale-time", draw_time), ("scale-memory", draw_memory)):
        figure = draw(results, sizes, limit)
        if figure is not None:
            drawn[name] = folder / f"{name}.png"
            figure.savefig(drawn[name], dpi=150, bbox_inches="tight")
    return drawn


def draw_time(results: Results, sizes: Sizes, limit: float) -> Any | None:
    """Seconds of a fit, both sweeps beside each other; crosses are fits that were given up."""
    sweeps: tuple[Sweep, Sweep] = ("rows", "columns")
    found = [all_series(results, sizes, sweep) for sweep in sweeps]
    if not any(found):
        return None
    figure, axes = _panels(2)
    titles = (f"{COLUMNS} columns", f"{sizes.sweep_columns_rows:,} rows")
    for panel, sweep, series, title in zip(axes, sweeps, found, titles, strict=True):
        for one in series:
            panel.plot(one.sizes, one.values, **_style(one))
            if one.cut:  # drawn once: it was not tried on more
                panel.plot(one.cut[0], limit, "x", color=COLOURS[one.model], ms=7, mew=1.8)
        if any(one.cut for one in series):
            panel.axhline(limit, color="0.8", lw=0.8, zorder=0)
        _linear(panel, series)
        panel.set(xscale="log", yscale="log", xlabel=sweep, title=title)
        if sweep == "columns":
            _plain_ticks(panel, series)
    axes[0].set_ylabel("seconds of a fit")
    _legend(figure, found, bool(any(one.cut for series in found for one in series)))
    return figure


def draw_memory(results: Results, sizes: Sizes, limit: float) -> Any | None:
    """Peak memory of our fits by rows, with that of the table itself."""
    series = [
        one
        for one in all_series(results, sizes, "rows", "peak_bytes")
        if one.model in OURS  # EBM fits in processes of its own
    ]
    if not series:
        return None
    figure, (panel,) = _panels(1, width=7.6)
    for one in series:
        panel.plot(one.sizes, [value / 1e9 for value in one.values], **_style(one))
    rows = sorted({size for one in series for size in one.sizes})
    panel.plot(rows, [table_bytes(size) / 1e9 for size in rows], color="0.6", lw=1, ls=":")
    middle = rows[-1] / 10**0.5
    _note(
        panel,
        "the table itself",
        (middle, table_bytes(middle) / 1e9),
        (5, -3),
        va="top",
        color="0.4",
    )
    panel.axhline(PEAK / 1e9, color="#c28f2c", lw=0.9, ls=(0, (5, 2)), zorder=0)
    _note(panel, f"target: {PEAK / 1e9:g} GB", (rows[0], PEAK / 1e9), (0, 3), color="#8a6414")
    panel.set(xscale="log", yscale="log", xlabel="rows", ylabel="peak memory, GB")
    panel.set_ylim(bottom=0.1)  # Python and its libraries need more
    top = panel.get_ylim()[1]
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if tick <= top]
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.set_yticks([], minor=True)
    _legend(figure, [series], False)
    return figure


def table_bytes(rows: float) -> float:
    """All columns and the target as doubles."""
    return rows * (COLUMNS + 1) * 8


def _panels(number: int, width: float = 8.8) -> tuple[Any, Any]:
    from lanam.plot.common import pyplot

    plt = pyplot()
    figure, axes = plt.subplots(
        1, number, figsize=(width, 3.8), layout="constrained", squeeze=False, sharey=True
    )
    for panel in axes[0]:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(True, which="major", color="0.93", lw=0.8)
        panel.set_axisbelow(True)
    return figure, axes[0]


def _style(series: Series) -> dict[str, Any]:
    """Colour by model; rows in files are dashed with open marks, classes have triangles."""
    colour, files = COLOURS[series.model], series.source == "files"
    return {
        "color": colour,
        "linestyle": (0, (4, 1.5)) if files else "-",
        "marker": "^" if series.target == "ill" else "o",
        "markersize": 4.5,
        "markerfacecolor": "white" if files else colour,
        "linewidth": 1.8 if series.model in OURS else 1.3,
        "label": series.title,
    }


def _linear(panel: Any, series: list[Series]) -> None:
    """A line of slope one below all others, to compare with."""
    sizes = sorted({size for one in series for size in one.sizes})
    if len(sizes) < 2:
        return
    lowest = min(
        value / size for one in series for size, value in zip(one.sizes, one.values, strict=True)
    )
    ends = (max(sizes[0], sizes[-1] / 100), sizes[-1])  # further down it says no more
    panel.plot(ends, [0.6 * lowest * size for size in ends], color="0.7", lw=0.9, ls=":")
    middle = (ends[0] * ends[1]) ** 0.5
    _note(panel, "slope 1", (middle, 0.6 * lowest * middle), (5, -3), va="top", color="0.5")


def _note(
    panel: Any, text: str, point: tuple[float, float], offset: tuple[float, float], **style: Any
) -> None:
    panel.annotate(text, point, xytext=offset, textcoords="offset points", fontsize=8, **style)


def _plain_ticks(panel: Any, series: list[Series]) -> None:
    sizes = sorted({size for one in series for size in (*one.sizes, *one.cut)})
    panel.set_xticks(sizes, [str(size) for size in sizes])
    panel.set_xticks([], minor=True)


def _legend(figure: Any, found: list[list[Series]], cut: bool) -> None:
    """All series of all panels once, to the right."""
    from matplotlib.lines import Line2D

    once = {one.title: one for series in found for one in series}
    handles = [Line2D([], [], **_style(one)) for one in once.values()]
    if cut:
        cross = {"marker": "x", "color": "0.3", "ls": "none", "mew": 1.8}
        handles.append(Line2D([], [], label="given up at the limit", **cross))
    figure.legend(
        handles=handles, loc="outside right center", handlelength=3, frameon=False, fontsize=8
    )
