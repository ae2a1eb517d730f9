"""What a model said, against what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from lanam.metrics import CalibrationCurve, CoverageReport
from lanam.plot.common import CLASS_COLOURS, LINE_STYLES, MARKERS, by_name, new_panel, require_axes
from lanam.plot.words import MAX_NAME, Look, in_percent, write, write_legend
from lanam.text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The room for the bars below the curve, as a share of what is above.
_STRIP = 0.16

_AXES = {
    "reliability": ("predicted probability", "observed share"),
    "quantiles": ("level of the predicted quantile", "share of the observations below it"),
}

_ERRORS = {"reliability": "ECE", "quantiles": "quantile calibration error"}

#: Bars of bins are no wider than this.
_MAX_WIDTH = 0.06

_Calibrated: TypeAlias = CalibrationCurve | CoverageReport


def plot_calibration(
    result: _Calibrated | Mapping[str, _Calibrated], ax: Axes | None = None
) -> Axes:
    """Draw how well a model is calibrated: what it said against what was seen.

    For a classifier this is the reliability diagram, for predicted distributions the levels of
    quantiles. A calibrated model stays on the diagonal but for chance, whose range is shaded; marks
    beyond it are filled. The bars below are the shares of the rows.

    Parameters
    ----------
    result : CalibrationCurve, CoverageReport, or dict of these by name
        From :func:`lanam.metrics.reliability_curve`, :func:`lanam.metrics.quantile_calibration_curve` or
        :func:`lanam.metrics.coverage_report`; several, of one kind, to compare them.
    ax : Axes, default=None
        Where to draw; by default a new figure.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lanam.metrics import reliability_curve
    >>> from lanam.plot import plot_calibration
    >>> rng = np.random.default_rng(0)
    >>> probability = rng.random(1000)
    >>> curve = reliability_curve(rng.random(1000) < probability, probability)
    >>> ax = plot_calibration(curve)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted probability', 'observed share')
    """
    curves = by_name(_curves(result), CalibrationCurve, "use coverage_report or reliability_curve")
    kinds = sorted({curve.kind for curve in curves.values()})
    if len(kinds) > 1:
        raise ValueError(f"curves of one kind can be compared, and these are of {kinds}")
    require_axes("ax", ax)
    own = ax is None
    if ax is None:
        ax = new_panel(5.4, 6.2)
    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.45", linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    names = cut(list(curves), MAX_NAME)
    alone = len(curves) == 1
    if alone:
        _draw_chance(ax, *curves.values())
    for k, (name, curve) in enumerate(zip(names, curves.values(), strict=True)):
        _draw_curve(ax, curve, k, f"{name}: {_error(curve)}")
        _draw_shares(ax, curve, k, len(curves))
    _draw_frame(ax, kinds[0])
    if alone and not isinstance(result, Mapping):
        (curve,) = curves.values()
        text = f"{_error(curve)}\n{curve.n_rows:,} rows"
        ax.text(0.03, 0.98, text, transform=ax.transAxes, va="top", fontsize="small")
    else:
        write_legend(ax.legend(loc="upper left", fontsize="small", frameon=False))
    if own:
        write(ax, [_key(list(curves.values()))])
    return ax


def _curves(
    result: _Calibrated | Mapping[str, _Calibrated],
) -> CalibrationCurve | dict[str, CalibrationCurve]:
    """Reports have their curve within."""
    if isinstance(result, Mapping):
        return {name: _curve(one) for name, one in result.items()}
    return _curve(result)


def _curve(one: _Calibrated) -> CalibrationCurve:
    return cast(CalibrationCurve, getattr(one, "curve", one))


def _error(curve: CalibrationCurve) -> str:
    return f"{_ERRORS[curve.kind]} {curve.error:.2g}"


def _draw_chance(ax: Axes, curve: CalibrationCurve) -> None:
    """Where a calibrated model would be."""
    if len(curve.expected) == 1:  # a band needs two ends
        ax.vlines(curve.expected, curve.lower, curve.upper, color="0.85", linewidth=8.0, zorder=0)
    else:
        ax.fill_between(
            curve.expected, curve.lower, curve.upper, color="0.85", linewidth=0, zorder=0
        )


def _draw_curve(ax: Axes, curve: CalibrationCurve, k: int, label: str) -> None:
    """The curve, with hollow marks where chance alone may explain it."""
    look: Look = {"color": CLASS_COLOURS[k], "zorder": 3}
    x, y = curve.expected, curve.observed
    ax.plot(x, y, linestyle=LINE_STYLES[k], linewidth=1.5, **look)
    beyond = (y < curve.lower) | (y > curve.upper)
    for some, face in ((~beyond, "white"), (beyond, CLASS_COLOURS[k])):
        style: Look = {"marker": MARKERS[k], "markersize": 5.5, "markerfacecolor": face}
        ax.plot(x[some], y[some], linestyle="none", **style, **look)
    ax.plot(
        [],
        [],
        linestyle=LINE_STYLES[k],
        marker=MARKERS[k],
        color=CLASS_COLOURS[k],
        markerfacecolor="white",
        label=label,
    )


def _draw_shares(ax: Axes, curve: CalibrationCurve, k: int, n_curves: int) -> None:
    """How many rows there are, as bars below; of several curves side by side."""
    share, expected = curve.share, curve.expected
    if curve.kind == "quantiles":  # between levels; after the last come all others
        share = np.append(share, 1.0 - share.sum())
        edges = np.concatenate([[0.0], expected, [1.0]])
        left, width = edges[:-1], np.diff(edges)
    else:
        gap = 0.9 * np.diff(np.sort(expected)).min(initial=_MAX_WIDTH / 0.9)
        left, width = expected - 0.5 * gap, np.full(len(expected), gap)
    heights = share / max(float(share.max()), 1e-12) * (_STRIP - 0.03)
    ax.bar(
        left + width * k / n_curves,
        heights,
        width=width / n_curves,
        bottom=-_STRIP,
        align="edge",
        facecolor=("#8c8c8c", "white")[k % 2],
        edgecolor="#5b5b5b",
        hatch=("", "", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo")[k],
        linewidth=0.5,
        zorder=2,
    )


def _draw_frame(ax: Axes, kind: str) -> None:
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-_STRIP, 1.03)
    ticks = np.linspace(0.0, 1.0, 6)
    ax.set_xticks(ticks)
    ax.set_yticks(ticks)
    ax.axhline(-0.02, color="0.75", linewidth=0.8)
    across, up = _AXES[kind]
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    ax.spines[["top", "right"]].set_visible(False)


def _key(curves: list[CalibrationCurve]) -> str:
    """How to read the drawing."""
    first = curves[0]
    chance = f"the {in_percent(first.coverage)} range of chance"
    where = f"Shaded: {chance}, for a calibrated model." if len(curves) == 1 else ""
    what = "in each bin" if first.kind == "reliability" else "between levels"
    words = [
        "Dashed: a calibrated model.",
        where,
        f"Filled: beyond {chance if len(curves) > 1 else 'it'}; hollow: within.",
        f"Bars: share of the rows {what}.",
    ]
    return " ".join(word for word in words if word)
