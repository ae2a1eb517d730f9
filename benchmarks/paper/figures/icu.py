"""Figures of intensive care: retention of patients, and one patient explained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cells import Arrays, Store
from benchmarks.paper.figures.common import WITHIN, Look, NothingToDraw
from benchmarks.paper.models import model_of

MOST_BARS = 24
LEAST = 0.1  # log odds below which a model without bands is not shown
#: Whose patients are kept; of the two LightGBMs the paper's, where it was run.
RETAINED = (
    *("linear", "nam", "lanam", "lanam10", "oak", "ebm", "ebm10"),
    *("lightgbm-grid", "lightgbm"),
)


def retention(plt: Any, store: Store, results: pd.DataFrame) -> Any:
    """Accuracy of the patients of whom a model is most certain; median over seeds."""
    from lanam.metrics import retention_curve

    look = Look(store, results, "icu", "physionet2012")
    models = [m for m in RETAINED if m in look.models]
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
            style = {
                "color": model_of(model).colour,
                "linestyle": model_of(model).line,
                "linewidth": 1.8,
            }
            ax.plot(100 * curve.retained, 100 * value, label=model_of(model).label, **style)
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
            color=model_of(model).colour,
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
            f"{model_of(model).label}{more} {len(names)} columns ({left_out} omitted); risk {risk:.0%}",
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
