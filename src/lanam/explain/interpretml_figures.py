"""InterpretML's plots of data in its format, with missing values and classes added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

#: Maximum number of bars, as in InterpretML.
_MOST = 15

#: Distance of the mark of missing values from the curve, as a fraction of its width.
_BESIDE = 0.06

_BAND = "with two standard deviations"


def draw_importances(facts: dict[str, Any]) -> Any:
    """Bars of the largest importances."""
    facts = _verbatim(facts)
    order = np.argsort(np.abs(facts["scores"]), kind="stable")[-_MOST:]
    shown = {name: [facts[name][k] for k in order] for name in ("names", "scores", "errors")}
    figure = _plots().plot_horizontal_bar(
        shown,
        title=f"Global Term/Feature Importances, {_BAND}",
        start_zero=True,
        xtitle="Mean Absolute Score (Weighted)",
    )
    figure.update_traces(error_x={"type": "data", "array": shown["errors"], "color": "#444"})
    ends = np.add(shown["scores"], shown["errors"])
    figure.update_xaxes(range=[0.0, 1.02 * max([*ends, 1e-9])])
    return figure


def draw_curve(facts: dict[str, Any], name: str) -> Any:
    """A curve, or one per class, with its band, above a histogram of the data."""
    facts, name = _verbatim(facts), _verbatim(name)
    parts = _by_class(facts)
    title = f"Term: {name} (continuous), {_BAND}"
    low, high = facts["density"]["names"][0], facts["density"]["names"][-1]
    beside = _BESIDE * (high - low)
    figure, *further = (
        _plots().plot_line(part, title=title, xtitle=name, name=label, color=colour)
        for part, label, colour in parts
    )
    for other in further:
        figure.add_traces([trace for trace in other.data if trace.type == "scatter"])
    for part, _, colour in parts:
        if "missing" in part:
            figure.add_scatter(**_mark(part["missing"], high + beside, colour))
    for trace in figure.data:  # only curves, not bands, in the legend
        trace.showlegend = trace.name in [label for _, label, _ in parts]
    if "missing" in facts:
        figure.add_annotation(
            x=high + beside, y=1.0, yref="y domain", text=facts["missing"]["name"], showarrow=False
        )
    figure.update_xaxes(title={"text": name, "standoff": 0})
    figure.update_layout(
        showlegend=len(parts) > 1,
        legend={"traceorder": "normal"},
        yaxis={"range": facts["scores_range"]},
        xaxis={"range": [low, high + (2.0 * beside if "missing" in facts else 0.0)]},
    )
    return figure


def draw_levels(facts: dict[str, Any], name: str) -> Any:
    """Bars of categories above their frequencies."""
    facts, name = _verbatim(facts), _verbatim(name)
    figure = _plots().plot_bar(facts, title=f"Term: {name} (categorical), {_BAND}")
    figure.update_xaxes(type="category")  # a category "10" is a label
    figure.update_traces(selector={"name": "Distribution"}, showlegend=False)
    return figure


def draw_pair(facts: dict[str, Any], name: str, columns: Sequence[str]) -> Any:
    """A heat map; with several classes the one selected in a menu."""
    facts, name, columns = _verbatim(facts), _verbatim(name), _verbatim(list(columns))
    parts = _by_class(facts)
    figure, *further = (_heat_map(part, name, columns) for part, _, _ in parts)
    for other in further:
        figure.add_traces(other.data)
    for trace, (_, label, _) in zip(figure.data, parts, strict=True):
        trace.update(name=label, visible=trace is figure.data[0])
    if len(parts) > 1:
        buttons = [
            {
                "label": label,
                "method": "restyle",
                "args": [{"visible": [other == k for other in range(len(parts))]}],
            }
            for k, (_, label, _) in enumerate(parts)
        ]
        figure.update_layout(updatemenus=[{"buttons": buttons, "x": 1.0, "y": 1.12}])
    return figure


def _heat_map(facts: dict[str, Any], name: str, columns: Sequence[str]) -> Any:
    title = f"Term: {name} (interaction)"
    figure = _plots().plot_pairwise_heatmap(
        facts, title=title, xtitle=columns[0], ytitle=columns[1]
    )
    figure.update_traces(
        customdata=np.transpose(facts["upper_bounds"] - facts["scores"]),
        hovertemplate="%{x}, %{y}: %{z:.3g} ± %{customdata:.3g}<extra></extra>",
    )
    return figure


def draw_row(facts: dict[str, Any]) -> Any:
    """Bars of a row's contributions and of the intercept."""
    facts = _verbatim(facts)
    labels = facts.get("meta", {}).get("label_names")
    scores = np.array(facts["scores"])
    several = scores.ndim == 2
    size = np.abs(scores[:, facts["perf"]["predicted"]] if several else scores)
    order = np.argsort(size, kind="stable")[-_MOST:]
    shown = facts | {
        name: [facts[name][k] for k in order] for name in ("names", "scores", "values", "errors")
    }
    figure = _plots().plot_horizontal_bar(shown, multiclass=several)
    labels_and_values = zip(shown["names"], shown["values"], strict=True)
    names = [f"{name} ({value})" for name, value in labels_and_values]
    errors = np.array([*shown["errors"], *facts["extra"]["errors"]])
    for index, trace in enumerate(figure.data):
        trace.y = [*names, *facts["extra"]["names"]]
        trace.error_x = {
            "type": "data",
            "array": errors[:, index] if several else errors,
            "color": "#444",
        }
    target = f"the log-odds of {labels[1]}" if labels and not several else "Prediction"
    figure.update_layout(
        title=f"Local Explanation ({figure.layout.title.text})",
        xaxis={"title": f"Contribution to {target}, {_BAND}", "range": None},
    )
    if several:
        figure.update_layout(barmode="group")  # error bars of stacked bars would overlap
    return figure


def _by_class(facts: dict[str, Any]) -> list[tuple[dict[str, Any], str, str]]:
    """Data, name and colour of each function: one, or one per class."""
    colour = _plots().COLORS[0]
    if "meta" not in facts:
        return [(facts, "Main", colour)]
    from plotly.colors import qualitative

    functions = []
    for index, label in enumerate(facts["meta"]["label_names"]):
        part = _of_class(facts, index)
        if "missing" in facts:
            part["missing"] = _of_class(facts["missing"], index)
        if index:  # the data's histogram is drawn once
            part.pop("density", None)
        functions.append((part, label, qualitative.Plotly[index % len(qualitative.Plotly)]))
    return functions


def _of_class(facts: dict[str, Any], index: int) -> dict[str, Any]:
    names = ("scores", "upper_bounds", "lower_bounds")
    return facts | {name: facts[name][..., index] for name in names}


def _mark(missing: dict[str, Any], place: float, colour: str) -> dict[str, Any]:
    """A marker with an error bar beside the curve, for missing values."""
    score = float(missing["scores"])
    return {
        "x": [place],
        "y": [score],
        "error_y": {"type": "data", "array": [float(missing["upper_bounds"]) - score]},
        "name": missing["name"],
        "mode": "markers",
        "marker": {"symbol": "diamond", "size": 9, "color": colour},
    }


def _verbatim(facts: Any) -> Any:
    """The same with text escaped, as plotly interprets some HTML tags."""
    if isinstance(facts, str):
        return facts.replace("<", "&lt;")
    if isinstance(facts, dict):
        return {name: _verbatim(part) for name, part in facts.items()}
    return [_verbatim(part) for part in facts] if isinstance(facts, list) else facts


def _plots() -> Any:
    """InterpretML's plots, or an error that says how to install them."""
    try:
        from interpret.visual import plot
    except ImportError as error:
        raise ImportError(
            "InterpretML's figures need interpret-core, plotly and matplotlib: install them with "
            "`pip install interpret-core[plotly] matplotlib`"
        ) from error
    return plot
