"""Tables of intensive care: scores and columns used, depth, a column that is a sum, pairs found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.experiments import EXPERIMENTS
from benchmarks.markdown import MISSING, in_order, markdown
from benchmarks.paper.models import FIRST, MODELS, PAPER_NAMES, in_blocks, model_of
from benchmarks.paper.published import published
from benchmarks.paper.scores import METRIC
from benchmarks.paper.tables.words import (
    as_printed,
    folded,
    marked_cells,
    median,
    paragraphs,
    short,
    worded,
)

ICU_METRICS = tuple(
    replace(METRIC[name], decimals=4, tie=5e-5) for name in ("auroc", "auprc", "nll", "ece", "rbs")
)
DEPTH_METRICS, DEPTH_PUBLISHED = ICU_METRICS[:4], ICU_METRICS[:3]
DEPTH_TABLE = "tab:depthactiv"
MOST_PAIRS = 12  # told by name


def icu_tables(results: pd.DataFrame, paper: pd.DataFrame) -> str:
    """Mortality: models down, metrics across; then what the paper has of other patients."""
    parts = []
    for name in in_order(results["set"]):
        rows = results[results["set"] == name]
        blocks = in_blocks(rows["model"])
        first_order = blocks.get(FIRST, [])
        cells = {m: marked_cells(rows, m, first_order, unit="seed") for m in ICU_METRICS}
        lines = []
        for model in (m for models in blocks.values() for m in models):
            own = rows[rows["model"] == model]
            used = [median(own, "columns_used"), median(own, "columns_explained", 1)]
            lines.append([model, *(cells[m][name, model] for m in ICU_METRICS), *used])
        header = ["model", *(short(m) for m in ICU_METRICS), "columns used", "shown for a patient"]
        parts += [f"### Intensive care: {name}", markdown(header, lines)]
    parts.append(
        "Mean ± standard error over seeds of one split; marks as in the tables above. So ± is the "
        "variation due to the seed of the fit, which for some models is zero; it is not the sampling error "
        "of patients, which is larger. ECE is that of the "
        "probability of death, in ten bins of equal width. *Columns used*: those that contribute to the "
        "prediction of any of 50 test patients. *Shown for a patient*: columns whose band of two standard "
        "deviations excludes zero or, for models without bands, whose contribution to the log-odds is 0.1 "
        "or more; mean over these patients."
    )
    theirs = [_paper_icu(paper, name) for name in ("mimic3", "hirid")]
    if any(theirs):
        parts.append(
            "The paper's figures are of other patients (MIMIC-III and HiRID need credentials): they show "
            "the ranking of the models there, not a level to compare with."
        )
    return paragraphs([*parts, *theirs])


def _paper_icu(paper: pd.DataFrame, name: str) -> str:
    rows = paper[paper["source"] != DEPTH_TABLE]
    lines = []
    for model, title in PAPER_NAMES.items():
        found = [published(rows, name, model, metric.in_paper) for metric in ICU_METRICS]
        if any(found):
            lines.append([title, *(as_printed(figure) for figure in found)])
    title = {"mimic3": "MIMIC-III", "hirid": "HiRID"}[name]
    return markdown([f"{title} (paper)", *(short(m) for m in ICU_METRICS)], lines) if lines else ""


def depth_table(results: pd.DataFrame, paper: pd.DataFrame) -> str:
    """Depth and activation of the feature networks, and the paper's on MIMIC-III beside it."""
    rows_of_paper = paper[paper["source"] == DEPTH_TABLE]
    parts = []
    for name in in_order(results["set"]):
        rows = results[results["set"] == name]
        models = in_order(rows["model"], EXPERIMENTS["depth"].models)
        cells = {m: marked_cells(rows, m, models, unit="seed") for m in DEPTH_METRICS}
        lines = []
        for model in models:
            theirs = model_of(model).theirs or ""
            beside = [published(rows_of_paper, "mimic3", theirs, m.name) for m in DEPTH_PUBLISHED]
            ours = [cells[m][name, model] for m in DEPTH_METRICS]
            lines.append([model, *ours, *(as_printed(figure) for figure in beside)])
        header = ["model", *(short(m) for m in DEPTH_METRICS)]
        header += [f"paper, MIMIC-III: {short(m)}" for m in DEPTH_PUBLISHED]
        parts.append(f"### Depth and activation: {name}\n\n{markdown(header, lines)}")
    return paragraphs(parts)


def redundancy_table(results: pd.DataFrame) -> str:
    """How far each column's function spreads, with the column that is a sum and without it."""
    columns = [c for c in results if c.startswith("spread_")]
    models = in_order(results["model"], EXPERIMENTS["redundancy"].models)
    rows = []
    for base in in_order(n.removesuffix("-without") for n in results["set"]):
        for column in [*columns, "nll"]:
            line = [_spread(results, base, model, column) for model in models]
            if any(cell != MISSING for cell in line):
                what = "test NLL" if column == "nll" else column.removeprefix("spread_")
                rows.append([base, what, *line])
    if not rows:
        return ""
    note = (
        "Standard deviation of a column's contribution to the log-odds over the training rows: with the "
        "column that is a sum of others → without it; mean over seeds. In the simulated set (`gap`) the "
        "risk depends on the gap alone."
    )
    return paragraphs(
        ["### A column that is a sum of others", note, markdown(["set", "column", *models], rows)]
    )


def _spread(results: pd.DataFrame, base: str, model: str, column: str) -> str:
    own = results[results["model"] == model]
    means = [own.loc[own["set"] == n, column].mean() for n in (base, f"{base}-without")]
    if np.isnan(means).all():
        return MISSING
    return " → ".join("none" if np.isnan(m) else f"{m:.3f}" for m in means)


def pair_table(results: pd.DataFrame) -> str:
    """The pairs that each score chose, with the number of folds that chose them; patients' first."""
    known = results[results["pairs"].notna()] if "pairs" in results else results.iloc[:0]
    if known.empty:
        return ""
    note = "In brackets the folds or seeds whose model has the pair."
    patients = known["experiment"] == "icu"
    parts = [_pairs_of(known[patients])]
    if not patients.all():
        parts.append(folded("Pairs found on the UCI sets", _pairs_of(known[~patients])))
    return paragraphs(["### Pairs found", note, *parts])


def _pairs_of(known: pd.DataFrame) -> str:
    rows = []
    for name in in_order(known["set"]):
        for model in in_order(known.loc[known["set"] == name, "model"], list(MODELS)):
            told = known.loc[(known["set"] == name) & (known["model"] == model), "pairs"]
            counts = Counter(
                pair.strip() for text in told for pair in str(text).split(";") if pair.strip()
            )
            shown = [f"{pair} ({count})" for pair, count in counts.most_common(MOST_PAIRS)]
            rest = len(counts) - len(shown)
            more = f" and {rest} more" if rest else ""
            rows.append([name, model, str(len(told)), (", ".join(shown) or "none") + more])
    return worded(["set", "model", "folds", "pairs"], rows) if rows else ""
