"""The paper's figures from the arrays of finished cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import Arrays, Cell, Store
from benchmarks.experiments import EXPERIMENTS
from benchmarks.experiments.icu import SHOWN
from benchmarks.experiments.redundancy import GAP, PARTS
from benchmarks.markdown import in_order
from benchmarks.paper_scores import part

DPI = 150
N_SHAPES = 6  # columns of a figure of functions
N_CORRELATED = 25
MOST_BARS = 24
LEAST = 0.1  # log odds below which a model without bands is not shown
WITHIN = 2.0  # standard deviations of a band

#: Told apart by those who do not see all colours (Okabe and Ito); one a family.
COLOURS = {
    "lanam": "#0072b2",
    "nam": "#e69f00",
    "oak": "#009e73",
    "ebm": "#d55e00",
    "lightgbm": "#444444",
    "pygam": "#cc79a7",
    "linear": "#7f7f7f",
    "deep-ensemble": "#b8860b",
    "mean-field": "#cc79a7",
    "mc-dropout": "#d55e00",
}
NAMES = {
    "linear": "linear",
    "pygam": "GAM (splines)",
    "nam": "NAM",
    "nam-relu-deep": "NAM\n(64-64-32, ReLU)",
    "nam-relu": "NAM (64, ReLU)",
    "nam-gelu": "NAM (64, GELU)",
    "lanam": "LA-NAM (ours)",
    "lanam-paper": "LA-NAM\n(paper's settings)",
    "lanam10": "LA-NAM, 10 pairs",
    "lanam10-mi": "LA-NAM, 10 pairs (MI)",
    "oak": "OAK-GP",
    "oak2": "OAK-GP*",
    "ebm": "EBM",
    "ebm10": "EBM, 10 pairs",
    "lightgbm": "LightGBM (one fit)",
    "lightgbm-grid": "LightGBM",
    "deep-ensemble": "deep ensemble",
    "mean-field": "mean-field VI",
    "mc-dropout": "MC dropout",
}


@dataclass(frozen=True)
class Picture:
    """A figure that was drawn, or why it was not."""

    name: str
    section: str
    caption: str
    path: Path | None = None
    missing: str | None = None

    def markdown(self, where: str) -> str:
        if self.path is None:
            return f"*Left out: {self.name} ({self.missing}).*"
        return f"![{self.caption}]({where}/{self.path.name})\n\n*{self.caption}*"


class NothingToDraw(Exception):
    """The cells of a figure are missing."""


def name_of(model: str) -> str:
    """How figures call a model."""
    return NAMES.get(model, model)


def colour_of(model: str) -> str:
    """The colour of a model's family."""
    if model in COLOURS:
        return COLOURS[model]
    family = next((f for f in COLOURS if model.startswith(f)), None)
    return COLOURS[family] if family else "#000000"


def line_of(model: str) -> Any:
    """Variants of a family are told apart by their lines."""
    if model in COLOURS or model == "lightgbm-grid":
        return "-"
    return (0, (1, 1)) if model.endswith("-mi") else (0, (4, 2))


class Look:
    """Finished cells of one experiment and set, by model and fold."""

    def __init__(self, store: Store, results: pd.DataFrame, experiment: str, name: str) -> None:
        self.store, self.experiment, self.name = store, experiment, name
        rows = part(results, experiment, name)
        finished = rows[rows["error"].isna()] if "error" in rows else rows
        known = EXPERIMENTS[experiment].models
        self.models = in_order(finished["model"], known)
        self.folds = finished.groupby("model")["fold"].apply(lambda f: sorted(f)).to_dict()

    def arrays(self, model: str, fold: int | None = None) -> Arrays:
        """The arrays of a model's cell, of its first fold unless said otherwise."""
        fold = self.folds[model][0] if fold is None else fold
        return self.store.arrays(Cell(self.experiment, self.name, model, fold))

    def firsts(self, models: Sequence[str], needed: str) -> dict[str, Arrays]:
        """By model, the arrays of the first fold, where they have the one that is needed."""
        found = {m: self.arrays(m) for m in models if m in self.models}
        return {m: arrays for m, arrays in found.items() if needed in arrays}


# functions


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
                ax.set_title(labels(name) if transposed else name_of(model), fontsize=11)
            if (d == 0) if transposed else (k == 0):
                left = name_of(model) if transposed else labels(name)
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
    colour = look.pop("color", colour_of(model))
    ax.axhline(0.0, color="0.8", linewidth=0.7, zorder=1)
    if np.isfinite(std).all():
        low, high = mean - WITHIN * std, mean + WITHIN * std
        ax.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0, zorder=2, label="band")
    ax.plot(x, mean, color=colour, zorder=4, **({"linewidth": 1.6} | look))
    if f"truth_{name}" in arrays:
        truth = arrays[f"truth_{name}"]
        ax.plot(x, truth, color="black", linestyle=(0, (4, 2)), linewidth=1.1, zorder=5)


def partial_residuals(arrays: Arrays, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A column's values, and y less its mean and what the other functions add."""
    X, residual = arrays["X"], arrays["y_train"] - arrays["y_train"].mean()
    for d in range(X.shape[1]):
        if str(d) != name:
            residual = residual - np.interp(X[:, d], arrays[f"x_{d}"], arrays[f"mean_{d}"])
    return X[:, int(name)], residual


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
                dashed = {"color": "0.15", "linestyle": (0, (4, 2))}
                draw_function(axes[k, d], arrays, name, model, **dashed)
    share_heights(axes.T)
    handles = [
        plt.Line2D([], [], color=COLOURS["lanam"], label="with the sum (coloured)"),
        plt.Line2D([], [], color="0.15", linestyle=(0, (4, 2)), label="without it (black, dashed)"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    return figure


def made_up_sum(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """The set whose truth is in the gap alone."""
    return redundancy(plt, store, results, "gap", ("sodium", "chloride", "bicarbonate", "gap"))


def patients_sum(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """Sodium less bicarbonate of real patients."""
    return redundancy(plt, store, results, "physionet2012", (*PARTS, GAP))


# intensive care


def retention(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """Accuracy of the patients of whom a model is most certain; median over seeds."""
    from lanam.metrics import retention_curve

    look = Look(store, results, "icu", "physionet2012")
    shown = (
        "linear",
        "nam",
        "lanam",
        "lanam10",
        "oak",
        "ebm",
        "ebm10",
        "lightgbm-grid",
        "lightgbm",
    )
    models = [m for m in shown if m in look.models]
    if "lightgbm-grid" in models:
        models = [m for m in models if m != "lightgbm"]
    if not models:
        raise NothingToDraw("no finished cell of icu")
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    lowest, highest = 1.0, 0.0
    for model in models:
        curves = []
        for fold in look.folds[model]:
            arrays = look.arrays(model, fold)
            p = arrays["mean"]
            right = (p >= 0.5) == (arrays["y"] > 0.5)
            curve = retention_curve(right.astype(float), -np.abs(p - 0.5))
            curves.append(curve.value)
        value = np.median(curves, axis=0)
        for ax in axes:
            style = {"color": colour_of(model), "linestyle": line_of(model), "linewidth": 1.8}
            ax.plot(100 * curve.retained, 100 * value, label=name_of(model), **style)
        inside = value[(curve.retained >= 0.4) & (curve.retained <= 0.8)]
        lowest, highest = min(lowest, inside.min()), max(highest, inside.max())
    for ax in axes:
        ax.set_xlabel("patients kept, the most certain first (%)", fontsize=11)
        ax.grid(color="0.92", linewidth=0.7)
    axes[0].set_ylabel("accuracy of those kept (%)", fontsize=11)
    axes[0].set_xlim(2, 100)
    axes[0].legend(frameon=False, fontsize=10, loc="lower left")
    room = 0.05 * (highest - lowest)
    axes[1].set_xlim(40, 80)
    axes[1].set_ylim(100 * (lowest - room), 100 * (highest + room))
    axes[1].set_title("the same, 40% to 80%", fontsize=11)
    return figure


def local(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """What each column adds for one test patient, NAM beside ours."""
    look = Look(store, results, "icu", "physionet2012")
    found = look.firsts(["nam", "lanam"], "patients_mean")
    absent = [m for m in ("nam", "lanam") if m not in found]
    if absent:
        raise NothingToDraw(f"no finished cell of icu: {', '.join(absent)}")
    n_patients = len(found["lanam"]["patients_mean"])
    patient = int(np.argmax(found["lanam"]["mean"][:n_patients]))
    bars = {m: local_bars(arrays, patient, banded=m == "lanam") for m, arrays in found.items()}
    tallest = min(max(len(names) for names, _, _ in bars.values()), MOST_BARS)
    figure, axes = plt.subplots(
        1, 2, figsize=(11, 1.4 + 0.24 * tallest), layout="constrained", sharex=True
    )
    for ax, (model, (names, mean, std)) in zip(axes, bars.items(), strict=True):
        kept = slice(0, MOST_BARS)
        places = np.arange(len(names[kept]))
        error = WITHIN * std[kept] if model == "lanam" else None
        ax.barh(
            places,
            mean[kept],
            xerr=error,
            color=colour_of(model),
            ecolor="0.2",
            height=0.7,
            error_kw={"linewidth": 1.2},
        )
        ax.set_yticks(places, [n.replace("_", " ") for n in names[kept]], fontsize=9.5)
        ax.set_ylim(tallest - 0.4, -0.6)
        ax.axvline(0.0, color="0.3", linewidth=0.8)
        more = f", the largest {MOST_BARS} of" if len(names) > MOST_BARS else ":"
        left_out = len(found[model]["columns"]) - len(names)
        risk = found[model]["mean"][patient]
        ax.set_title(
            f"{name_of(model)}{more} {len(names)} columns ({left_out} omitted); risk {risk:.0%}",
            fontsize=11,
        )
        ax.set_xlabel("added to the log odds", fontsize=11)
        ax.set_axisbelow(True)
        ax.grid(axis="x", color="0.92", linewidth=0.7)
    return figure


def local_bars(
    arrays: Arrays, patient: int, banded: bool
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The columns that stand out for a patient, the largest first, with means and deviations.

    As in the paper: those whose band leaves out zero, or without bands those that add at least 0.1
    to the log odds.
    """
    mean, std = arrays["patients_mean"][patient], arrays["patients_std"][patient]
    shown = np.abs(mean) > WITHIN * std if banded else np.abs(mean) >= LEAST
    order = [k for k in np.argsort(-np.abs(mean)) if shown[k]]
    return [str(arrays["columns"][k]) for k in order], mean[order], std[order]


def correlations(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """Last-layer posterior correlations of the columns that have the largest; dots at the pairs chosen."""
    look = Look(store, results, "icu", "physionet2012")
    found = look.firsts(["lanam10-mi"], "pair_scores")
    if not found:
        raise NothingToDraw("no finished cell of icu lanam10-mi with the scores of pairs")
    arrays = found["lanam10-mi"]
    matrix = correlation_of(arrays["pair_scores"])
    columns = arrays.get("columns", np.arange(len(matrix)).astype(str))
    strongest = np.nan_to_num(matrix).max(axis=1)
    kept = np.sort(np.argsort(-strongest, kind="stable")[:N_CORRELATED])
    figure, ax = plt.subplots(figsize=(8.6, 7.6), layout="constrained")
    image = ax.imshow(matrix[np.ix_(kept, kept)], cmap="cividis", vmin=0.0)
    names = [str(columns[k]).replace("_", " ") for k in kept]
    ax.set_xticks(range(len(kept)), names, rotation=90, fontsize=9)
    ax.set_yticks(range(len(kept)), names, fontsize=9)
    place = {int(k): position for position, k in enumerate(kept)}
    for i, j in arrays["pairs_active"]:
        if i in place and j in place:
            for a, b in ((i, j), (j, i)):
                ax.plot(
                    place[b], place[a], "o", color="white", markeredgecolor="black", markersize=5
                )
    bar = figure.colorbar(image, ax=ax, shrink=0.8)
    bar.set_label("|posterior correlation| of the output weights", fontsize=10)
    return figure


def correlation_of(mutual_information: np.ndarray) -> np.ndarray:
    """Absolute correlation of two Gaussians with this mutual information; not a number on the diagonal."""
    matrix = np.sqrt(-np.expm1(-2.0 * np.asarray(mutual_information, float)))
    np.fill_diagonal(matrix, np.nan)
    return matrix


#: Name, section of the page, caption, and what draws it.
FIGURES: tuple[tuple[str, str, str, Callable[..., Any]], ...] = (
    (
        "toy",
        "toy",
        "Recovered functions of the toy (first seed): mean and band of two standard deviations, the "
        "truth dashed, partial residuals as "
        "dots. f4 is zero.",
        toy,
    ),
    (
        "inference",
        "inference",
        "The same problem with other posteriors (first seed): mean and band of two standard "
        "deviations, the truth dashed.",
        inference,
    ),
    (
        "retention",
        "icu",
        "Retention curves on physionet2012: accuracy of the patients of whom a model is most "
        "certain, median over seeds.",
        retention,
    ),
    (
        "icu-shapes",
        "icu",
        "What some columns add to the log odds of death on physionet2012 (first seed), with bands of "
        "two standard deviations where a model has them.",
        icu_shapes,
    ),
    (
        "local",
        "icu",
        "One test patient of physionet2012. NAM: columns that add less than 0.1 are omitted; ours: "
        "those whose band of two standard "
        "deviations holds zero.",
        local,
    ),
    (
        "correlations",
        "pairs",
        "Last-layer posterior correlations on physionet2012, from the mutual information by which "
        "pairs are chosen; the columns with the largest. "
        "Dots: pairs in the model.",
        correlations,
    ),
    (
        "depth",
        "depth",
        "Depth and activation of the networks, physionet2012 (first seed).",
        depth,
    ),
    (
        "redundancy-gap",
        "redundancy",
        "Made-up patients, whose risk is in the gap alone: functions with the gap among the columns "
        "and without it.",
        made_up_sum,
    ),
    (
        "redundancy-physionet2012",
        "redundancy",
        "physionet2012: functions with sodium less bicarbonate among the columns and without it.",
        patients_sum,
    ),
)


def draw_all(store: Store, results: pd.DataFrame, folder: Path) -> list[Picture]:
    """Draw every figure whose cells are there."""
    from lanam.plot.common import pyplot

    plt = pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    for name, section, caption, draw in FIGURES:
        path = folder / f"{name}.png"
        try:
            figure = draw(plt, store, results)
        except NothingToDraw as reason:
            path.unlink(missing_ok=True)  # an older run's would pass for this one's
            pictures.append(Picture(name, section, caption, missing=str(reason)))
            continue
        figure.savefig(path, dpi=DPI)
        plt.close(figure)
        pictures.append(Picture(name, section, caption, path))
    return pictures
