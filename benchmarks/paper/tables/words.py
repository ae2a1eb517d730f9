"""Figures, cells and paragraphs: what all tables of the page are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from benchmarks.markdown import MISSING, markdown, number
from benchmarks.paper.models import model_of
from benchmarks.paper.published import Published
from benchmarks.paper.scores import (
    FOLDS,
    Metric,
    Summary,
    best_of,
    beyond,
    failures,
    on_par,
    scores,
    summarise,
)

GLUE = "\u00a0"  # a space at which no line ends
ARROWS = {1: f"{GLUE}▲", -1: f"{GLUE}▼", 0: ""}


def figure(value: float, decimals: int = 3) -> str:
    """A figure; one too small for its decimals as a power of ten."""
    if np.isnan(value):
        return MISSING
    if value != 0 and abs(value) < 5 * 10.0**-decimals:
        digits, power = f"{value:.1e}".split("e")
        return f"{digits}e{int(power)}"
    return f"{value:.{decimals}f}"


def mean_and_error(summary: Summary, decimals: int = 3) -> str:
    """Mean ± standard error."""
    spread = "" if np.isnan(summary.se) else f" ±{GLUE}{figure(summary.se, decimals)}"
    return f"{figure(summary.mean, decimals)}{spread}"


def as_printed(theirs: Published | None) -> str:
    """The paper's figure with the digits it prints; a dash where it has none."""
    return MISSING if theirs is None else theirs.printed.replace("± ", f"±{GLUE}")


def median(rows: pd.DataFrame, column: str, decimals: int = 0) -> str:
    """The median of a column, or a dash where there is none."""
    return number(rows[column].median(), decimals) if column in rows else MISSING


def short(metric: Metric) -> str:
    """A metric at the head of a column, with the way that is better."""
    return f"{metric.name.split('_')[0].upper()} {'↑' if metric.higher else '↓'}"


def cell_text(
    summary: Summary, decimals: int = 3, strong: bool = False, mark: str = "", unit: str = "fold"
) -> str:
    """Mean ± standard error, and aloud what is missing from it."""
    if not summary.folds:
        return f"failed ({summary.failed})" if summary.failed else MISSING
    text = mean_and_error(summary, decimals)
    text = f"**{text}**{mark}" if strong else f"{text}{mark}"
    notes = []
    if summary.folds + summary.failed < FOLDS or (summary.failed and summary.folds < FOLDS):
        notes.append(f"{summary.folds}{GLUE}{unit}{'s' if summary.folds > 1 else ''}")
    if summary.failed:
        notes.append(f"{summary.failed}{GLUE}failed")
    return f"{text} ({', '.join(notes)})" if notes else text


def worded(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of words, to the left."""
    top, rule, *rest = markdown(header, rows).split("\n")
    return "\n".join([top, rule.replace(":", "-"), *rest])


def folded(title: str, text: str) -> str:
    """A part of the page that opens on a click."""
    inside = "\n".join(f"    {line}" if line else "" for line in text.strip("\n").split("\n"))
    return f'??? abstract "{title}"\n\n{inside}\n'


def paragraphs(parts: Iterable[str]) -> str:
    """Parts that are not empty, a blank line between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


# marks as in the paper


def marked_cells(
    results: pd.DataFrame, metric: Metric, first_order: Sequence[str], unit: str = "fold"
) -> dict[tuple[str, str], str]:
    """By set and model: the figure, bold and with an arrow as the paper's rules say."""
    by_set, failed = scores(results, metric.name), failures(results)
    cells = {}
    for name, model in results.groupby(["set", "model"], sort=False).groups:
        values = by_set.get(name, {})
        n_failed = failed.get((name, model), 0)
        strong, mark = False, ""
        if model in values and metric.ranked:
            best = best_of(values, [m for m in first_order if not failed.get((name, m))], metric)
            plain = model_of(model).plain
            strong = best is not None and not n_failed
            strong = strong and on_par(values[model], values[best], metric)
            if plain in values:
                mark = ARROWS[beyond(values[model], values[plain], metric)]
        summary = summarise(values.get(model), n_failed)
        cells[name, model] = cell_text(summary, metric.decimals, strong, mark, unit)
    return cells
