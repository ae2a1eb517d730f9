"""Figures of functions: mean, band, and the truth where it is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import Arrays, Store
from benchmarks.experiments import EXPERIMENTS
from benchmarks.experiments.icu import SHOWN
from benchmarks.experiments.redundancy import GAP, PARTS
from benchmarks.paper.figures.common import WITHIN, Look, NothingToDraw
from benchmarks.paper.models import BLUE, DASHED, model_of

N_SHAPES = 6  # columns of a figure of functions


def toy(plt: Any, store: Store, results: pd.DataFrame, experiment: str = "toy") -> Any:
    """Functions of the toy: truth dashed, partial residuals behind."""
    look = Look(store, results, experiment, "toy")
    order = EXPERIMENTS[experiment].models
    columns = look.firsts([m for m in order if m in look.models], "mean_0")
    if not columns:
        raise NothingToDraw(f"no finished cell of {experiment}")
    rows = [str(d) for d in range(4)]
    figure = function_grid(
        plt, rows, columns, lambda d: f"$f_{int(d) + 1}$", background=True, least=2.0
    )
    for k, ax in enumerate(figure.axes):  # row by row
        ax.label_outer()
        if k >= len(figure.axes) - len(columns):
            ax.set_xlabel("$x$", fontsize=11)
    return figure


def inference(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """The same problem with other posteriors."""
    return toy(plt, store, results, "inference")


def depth(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """Functions of some columns for each architecture."""
    return shapes(plt, store, results, "depth", EXPERIMENTS["depth"].models)


def icu_shapes(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """Functions of some columns for each model."""
    return shapes(
        plt, store, results, "icu", ("nam", "lanam", "lanam-paper", "oak", "ebm", "linear")
    )


def shapes(
    plt: Any, store: Store, results: pd.DataFrame, experiment: str, models: Sequence[str]
) -> Any:
    """Models down, columns across."""
    look = Look(store, results, experiment, "physionet2012")
    found = look.firsts([m for m in models if m in look.models], "columns")
    names = [n for n in SHOWN if all(f"x_{n}" in arrays for arrays in found.values())]
    if not found or not names:
        raise NothingToDraw(f"no finished cell of {experiment} with functions")
    return function_grid(
        plt,
        names[:N_SHAPES],
        found,
        lambda n: n.replace("_", " "),
        transposed=True,
        unit="log odds",
        least=1.0,
    )


def redundancy(
    plt: Any, store: Store, results: pd.DataFrame, base: str, names: Sequence[str]
) -> Any:
    """Functions of a sum and its parts, with the sum and without it."""
    full, without = (Look(store, results, "redundancy", n) for n in (base, f"{base}-without"))
    models = [m for m in full.models if m in without.models]
    found = full.firsts(models, f"x_{names[0]}")
    if not found:
        raise NothingToDraw(f"no model has finished {base} both with the sum and without it")
    figure = function_grid(plt, names, found, str, transposed=True, unit="log odds")
    axes = np.array(figure.axes).reshape(len(found), len(names))
    for k, model in enumerate(found):
        arrays = without.arrays(model)
        for d, name in enumerate(names):
            if f"x_{name}" in arrays:
                dashed = {"color": "0.15", "linestyle": DASHED}
                draw_function(axes[k, d], arrays, name, model, **dashed)
    share_heights(axes.T)
    handles = [
        plt.Line2D([], [], color=BLUE, label="with the sum (coloured)"),
        plt.Line2D([], [], color="0.15", linestyle=DASHED, label="without it (black, dashed)"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    return figure


def made_up_sum(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """The set whose truth is in the gap alone."""
    return redundancy(plt, store, results, "gap", ("sodium", "chloride", "bicarbonate", "gap"))


def patients_sum(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """Sodium less bicarbonate of real patients."""
    return redundancy(plt, store, results, "physionet2012", (*PARTS, GAP))


def function_grid(
    plt: Any,
    rows: Sequence[str],
    columns: Mapping[str, Arrays],
    labels: Callable[[str], str],
    background: bool = False,
    transposed: bool = False,
    unit: str = "",
    least: float = 0.0,
) -> Any:
    """Functions by name (down) and model (across): mean, band, and the truth where it is known.

    ``transposed`` puts models down and functions across; scales span ``least`` or more.
    """
    n_down, n_across = len(rows), len(columns)
    if transposed:
        n_down, n_across = n_across, n_down
    figure, axes = plt.subplots(
        n_down,
        n_across,
        figsize=(0.6 + 1.95 * n_across, 0.5 + 1.7 * n_down),
        squeeze=False,
        sharex="col" if transposed else "row",
        sharey=False,
        layout="constrained",
    )
    for k, (model, arrays) in enumerate(columns.items()):
        for d, name in enumerate(rows):
            ax = axes[k, d] if transposed else axes[d, k]
            if background:
                ax.scatter(
                    *partial_residuals(arrays, name), s=2, color="0.82", linewidths=0, zorder=0
                )
            draw_function(ax, arrays, name, model)
            if (k == 0) if transposed else (d == 0):
                ax.set_title(labels(name) if transposed else model_of(model).label, fontsize=11)
            if (d == 0) if transposed else (k == 0):
                left = model_of(model).label if transposed else labels(name)
                ax.set_ylabel(f"{left}\n{unit}" if unit else left, fontsize=11)
            ax.tick_params(labelsize=8.5)
    share_heights(axes.T if transposed else axes, least)
    return figure


def share_heights(axes: Any, least: float = 0.0) -> None:
    """One scale for each row of axes, wide enough for every line; dots may leave it."""
    for row in axes:
        spans = []
        for ax in row:
            for line in ax.get_lines():
                if len(line.get_ydata()) > 2:  # a function; two points are the line at zero
                    spans += [np.nanmin(line.get_ydata()), np.nanmax(line.get_ydata())]
            for band in ax.collections:
                if band.get_label() == "band" and len(band.get_paths()):
                    y = band.get_paths()[0].vertices[:, 1]
                    spans += [np.quantile(y, 0.02), np.quantile(y, 0.98)]
        if spans:
            low, high = min(spans), max(spans)
            room = max(0.12 * ((high - low) or 1.0), (least - (high - low)) / 2)
            for ax in row:
                ax.set_ylim(low - room, high + room)


def draw_function(ax: Any, arrays: Arrays, name: str, model: str, **look: Any) -> None:
    """The mean of a function, its band of two standard deviations, and the truth."""
    x, mean = arrays[f"x_{name}"], arrays[f"mean_{name}"]
    std = arrays.get(f"std_{name}", np.full(len(x), np.nan))
    colour = look.pop("color", model_of(model).colour)
    ax.axhline(0.0, color="0.8", linewidth=0.7, zorder=1)
    if np.isfinite(std).all():
        low, high = mean - WITHIN * std, mean + WITHIN * std
        ax.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0, zorder=2, label="band")
    ax.plot(x, mean, color=colour, zorder=4, **({"linewidth": 1.6} | look))
    if f"truth_{name}" in arrays:
        truth = arrays[f"truth_{name}"]
        ax.plot(x, truth, color="black", linestyle=DASHED, linewidth=1.1, zorder=5)


def partial_residuals(arrays: Arrays, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A column's values, and y less its mean and what the other functions add."""
    X, residual = arrays["X"], arrays["y_train"] - arrays["y_train"].mean()
    for d in range(X.shape[1]):
        if str(d) != name:
            residual = residual - np.interp(X[:, d], arrays[f"x_{d}"], arrays[f"mean_{d}"])
    return X[:, int(name)], residual
