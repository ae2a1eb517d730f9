"""plot_calibration and plot_retention: curves of calibration and of selective prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from lanam.metrics import CalibrationCurve, CoverageReport, RetentionCurve
from lanam.plot.common import (
    CLASS_COLOURS,
    LINE_STYLES,
    MARKERS,
    MAX_NAME,
    VERBATIM,
    Style,
    by_name,
    in_percent,
    panel_or_new,
    write_legend,
    write_notes,
)
from lanam.text import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Height of the bars below the curve, as a fraction of the panel above.
_STRIP = 0.16

_AXES = {
    "reliability": ("predicted probability", "observed frequency"),
    "quantiles": ("level of the predicted quantile", "fraction of observations below it"),
}

_ERRORS = {"reliability": "ECE", "quantiles": "quantile calibration error"}

#: Maximum width of the bars of bins.
_MAX_WIDTH = 0.06

#: Retention curves of fewer rows than this are mostly noise.
_FEW_ROWS = 30

_RETENTION_KEY = "From left to right the most uncertain rows are dropped."

_Calibrated: TypeAlias = CalibrationCurve | CoverageReport


def plot_calibration(
    result: _Calibrated | Mapping[str, _Calibrated], ax: Axes | None = None
) -> Axes:
    """Plot a calibration curve: observed against predicted frequencies.

    For a classifier this is the reliability diagram, for predicted distributions the coverage of
    quantiles. The range of a calibrated model is shaded around the diagonal; markers outside it are
    filled. The bars below are fractions of the rows.

    Parameters
    ----------
    result : CalibrationCurve, CoverageReport, or dict of these by name
        From :func:`lanam.metrics.reliability_curve`, :func:`lanam.metrics.quantile_calibration_curve` or
        :func:`lanam.metrics.coverage_report`; several of one kind are compared.
    ax : Axes, default=None
        By default those of a new figure.

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
    ('predicted probability', 'observed frequency')
    """
    given = (
        {name: _curve(one) for name, one in result.items()}
        if isinstance(result, Mapping)
        else _curve(result)
    )
    curves = by_name(given, CalibrationCurve, "use coverage_report or reliability_curve")
    kinds = sorted({curve.kind for curve in curves.values()})
    if len(kinds) > 1:
        raise ValueError(f"curves of one kind can be compared, and these are of {kinds}")
    ax, is_new = panel_or_new("ax", ax, 5.4, 6.2)
    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.45", linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    names = cut(list(curves), MAX_NAME)
    alone = len(curves) == 1
    if alone:
        _draw_calibrated_range(ax, *curves.values())
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
    if is_new:
        write_notes(ax, [_key(list(curves.values()))])
    return ax


def _curve(one: _Calibrated) -> CalibrationCurve:
    """The curve, or that of a report."""
    return cast(CalibrationCurve, getattr(one, "curve", one))


def _error(curve: CalibrationCurve) -> str:
    return f"{_ERRORS[curve.kind]} {curve.error:.2g}"


def _draw_calibrated_range(ax: Axes, curve: CalibrationCurve) -> None:
    """Shade the range of a calibrated model."""
    if len(curve.expected) == 1:  # a band needs two points
        ax.vlines(curve.expected, curve.lower, curve.upper, color="0.85", linewidth=8.0, zorder=0)
    else:
        ax.fill_between(
            curve.expected, curve.lower, curve.upper, color="0.85", linewidth=0, zorder=0
        )


def _draw_curve(ax: Axes, curve: CalibrationCurve, k: int, label: str) -> None:
    """Draw the curve, with hollow markers inside the range of a calibrated model."""
    look: Style = {"color": CLASS_COLOURS[k], "zorder": 3}
    x, y = curve.expected, curve.observed
    ax.plot(x, y, linestyle=LINE_STYLES[k], linewidth=1.5, **look)
    beyond = (y < curve.lower) | (y > curve.upper)
    for some, face in ((~beyond, "white"), (beyond, CLASS_COLOURS[k])):
        style: Style = {"marker": MARKERS[k], "markersize": 5.5, "markerfacecolor": face}
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
    """Draw the fractions of the rows as bars below, side by side for several curves."""
    share, expected = curve.share, curve.expected
    if curve.kind == "quantiles":  # between levels, and beyond the last
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
    """The key to the plot."""
    first = curves[0]
    expected = f"the {in_percent(first.coverage)} range if calibrated"
    where = f"Shaded: {expected}." if len(curves) == 1 else ""
    what = "in each bin" if first.kind == "reliability" else "between levels"
    words = [
        "Dashed: perfect calibration.",
        where,
        f"Filled: outside {expected if len(curves) > 1 else 'it'}; hollow: inside.",
        f"Bars: fraction of the rows {what}.",
    ]
    return " ".join(word for word in words if word)


def plot_retention(
    curves: RetentionCurve | Mapping[str, RetentionCurve], ax: Axes | None = None
) -> Axes:
    """Plot the quality of predictions by the fraction of rows retained, least uncertain first.

    The left end has all rows; to the right the most uncertain ones are dropped. If uncertainty is
    informative, accuracy rises to the right and an error falls.

    Parameters
    ----------
    curves : RetentionCurve, or dict of these by name
        From :mod:`lanam.metrics`; several are compared.
    ax : Axes, default=None
        By default those of a new figure.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import numpy as np
    >>> from lanam.metrics import retention_curve
    >>> from lanam.plot import plot_retention
    >>> rng = np.random.default_rng(0)
    >>> uncertainty = rng.random(500)
    >>> right = rng.random(500) > 0.5 * uncertainty
    >>> ax = plot_retention(retention_curve(right, uncertainty))
    >>> ax.get_ylabel()
    'accuracy of the retained rows'
    """
    from matplotlib.ticker import PercentFormatter

    by_label = by_name(curves, RetentionCurve, "use retention_curve")
    measures = sorted({curve.name for curve in by_label.values()})
    if len(measures) > 1:
        raise ValueError(f"curves of one measure can be compared, and these are of {measures}")
    ax, is_new = panel_or_new("ax", ax, 6.0, 4.4)
    for k, (name, curve) in enumerate(
        zip(cut(list(by_label), MAX_NAME), by_label.values(), strict=True)
    ):
        ax.plot(
            curve.retained,
            curve.value,
            color=CLASS_COLOURS[k],
            linestyle=LINE_STYLES[k],
            linewidth=1.8,
            label=f"{name}: area {curve.area:.3g}",
        )
    ax.set_xlim(1.0, 0.0)
    few = _FEW_ROWS / min(curve.n_rows for curve in by_label.values())
    ax.axvspan(min(few, 1.0), 0.0, color="0.93", zorder=0, linewidth=0)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xlabel("rows retained, least uncertain first")
    ax.set_ylabel(f"{measures[0]} of the retained rows", **VERBATIM)
    ax.spines[["top", "right"]].set_visible(False)
    if isinstance(curves, Mapping):
        write_legend(ax.legend(fontsize="small", frameon=False))
    else:
        ax.set_title(
            f"area under the curve {curves.area:.3g}, {curves.n_rows:,} rows",
            loc="left",
            fontsize="small",
            color="0.35",
        )
    if is_new:
        write_notes(ax, [f"{_RETENTION_KEY} Shaded: fewer than {_FEW_ROWS} rows."])
    return ax
