"""The paper's figures from the arrays of finished cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.cells import Store
from benchmarks.paper.figures.common import NothingToDraw, Picture
from benchmarks.paper.figures.functions import (
    depth,
    icu_shapes,
    inference,
    made_up_sum,
    patients_sum,
    toy,
)
from benchmarks.paper.figures.icu import local, retention
from benchmarks.paper.figures.pairs import correlations, examples

DPI = 150
#: Name, section of the page, caption, and what draws it.
FIGURES: tuple[tuple[str, str, str, Callable[..., Any]], ...] = (
    (
        "toy",
        "toy",
        "Recovered functions of the toy (first seed): mean and band of two standard deviations, the "
        "truth dashed, partial residuals as dots. f4 is zero.",
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
        "Contributions of some columns to the log-odds of death on physionet2012 (first seed), with bands "
        "of two standard deviations where a model has them.",
        icu_shapes,
    ),
    (
        "local",
        "icu",
        "One test patient of physionet2012. NAM: columns that contribute less than 0.1 are omitted; ours: "
        "those whose band of two standard deviations includes zero.",
        local,
    ),
    (
        "correlations",
        "pairs",
        "Last-layer posterior correlations on physionet2012, from the mutual information by which "
        "pairs are chosen; the columns with the largest. Dots: pairs in the model.",
        correlations,
    ),
    (
        "pairs",
        "pairs",
        "The two strongest pairs of `lanam10` (first fold): the interaction without the main effects, "
        "in the unit of the target, and its standard deviation. Dots: training rows.",
        examples,
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
        "Simulated patients, whose risk depends on the gap alone: functions with the gap among the columns "
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


def kept(folder: Path) -> list[Picture]:
    """The pictures that an earlier run drew, and which it did not."""
    pictures = []
    for name, section, caption, _ in FIGURES:
        path = folder / f"{name}.png"
        if path.exists():
            pictures.append(Picture(name, section, f"{caption} Drawn by an earlier run.", path))
        else:
            missing = f"no picture in {folder.name}"
            pictures.append(Picture(name, section, caption, missing=missing))
    return pictures
