"""Tables of the UCI sets: every metric as the paper marks it, ours beside the paper's, and paired."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.markdown import MISSING, in_order, markdown
from benchmarks.paper.models import FIRST, in_blocks, model_of
from benchmarks.paper.published import Published, published
from benchmarks.paper.scores import (
    FOLDS,
    METRIC,
    METRICS,
    Metric,
    Summary,
    difference,
    failures,
    scores,
    summarise,
)
from benchmarks.paper.tables.words import (
    ARROWS,
    GLUE,
    as_printed,
    cell_text,
    figure,
    folded,
    marked_cells,
    paragraphs,
    worded,
)

RULES = (
    "Mean ± standard error of the mean over folds. **Bold**, as in the paper: of the first-order models "
    "the best and those whose mean ± standard error meets the best one's; of the others those on a par "
    "with that or better. ▲ and ▼: better or worse than the same model without pairs by more than both "
    "standard errors. Models are compared on the folds that both have; a model with failed folds is "
    "never bold. The expected calibration error is that of the probability of the class 1, in ten bins "
    "of equal width. The squared kernel calibration error is an estimate without bias, which may fall "
    "below zero; nothing is bold there."
)
MOST_PEERS = 7  # a table of more is too wide to read


def uci_tables(results: pd.DataFrame) -> str:
    """Every metric, in blocks as in the paper; all but the first open on a click."""
    blocks = in_blocks(results["model"])
    first_order = blocks.get(FIRST, [])
    pages = []
    for metric in METRICS:
        # by its sets: a cell that was given up knows no task
        sets = in_order(scores(results, metric.name))
        if not sets:
            continue
        rows = results[results["set"].isin(sets)]
        cells = marked_cells(rows, metric, first_order)
        tables = []
        for title, models in blocks.items():
            there = [m for m in models if any((name, m) in cells for name in sets)]
            lines = [[name, *(cells.get((name, m), MISSING) for m in there)] for name in sets]
            if there:
                tables.append(f"{title}\n\n{markdown(['set', *there], lines)}")
        text = paragraphs(tables)
        first = metric.name == "nll"
        pages.append(f"### UCI: {metric.title}\n\n{text}" if first else folded(metric.title, text))
    return paragraphs([*pages[:1], RULES, *pages[1:]])


def beside_paper(results: pd.DataFrame, paper: pd.DataFrame) -> str:
    """Ours over the paper's, for every model that both have."""
    parts = []
    for metric in METRICS:
        by_set, failed = scores(results, metric.name), failures(results)
        tables = []
        for models in in_blocks(results["model"]).values():
            cells = {
                (name, model): _ours_and_theirs(
                    summarise(by_set[name].get(model), failed.get((name, model), 0)),
                    published(paper, name, model_of(model).theirs or "", metric.in_paper),
                    metric,
                )
                for name in in_order(by_set)
                for model in models
            }
            told = {place for place, cell in cells.items() if cell != MISSING}
            shared = [m for m in models if any(model == m for _, model in told)]
            sets = [n for n in in_order(by_set) if any(name == n for name, _ in told)]
            if shared:
                lines = [[name, *(cells[name, m] for m in shared)] for name in sets]
                tables.append(markdown(["set", *shared], lines))
        if tables:
            text = paragraphs(tables)
            parts.append(text if metric.name == "nll" else folded(metric.title, text))
    if not parts:
        return ""
    note = (
        "In each cell our figure above and the paper's below, in italics. ▲ and ▼: ours is better or "
        "worse by more than both standard errors. The paper's folds are not ours, and it prints fewer "
        "digits. Its kernel calibration errors have bandwidths that it does not give: ours have one in "
        "the unit of the target, and only their size can be compared."
    )
    return paragraphs(["### UCI: ours beside the paper's (NLL, then the others)", note, *parts])


def _ours_and_theirs(ours: Summary, theirs: Published | None, metric: Metric) -> str:
    if theirs is None or not (ours.folds or ours.failed):
        return MISSING
    mark = ""
    if ours.folds > 1 and metric.ranked:
        worse = metric.sign * (ours.mean - theirs.mean)
        # half a unit of the paper's last digit is no difference
        allowed = ours.se + theirs.se + (0.005 if metric.name == "nll" else 0.0)
        mark = "" if abs(worse) <= allowed else ARROWS[-int(np.sign(worse))]
    return f"{cell_text(ours, metric.decimals, mark=mark)}<br>*{as_printed(theirs)}*"


def paired_tables(
    results: pd.DataFrame, ours: Sequence[str] = ("lanam", "lanam10", "lanam-auto")
) -> str:
    """Differences of NLL fold by fold: on how many sets we win, tie and lose against each peer."""
    metric, by_set = METRIC["nll"], scores(results, "nll")
    models = [m for block in in_blocks(results["model"]).values() for m in block]
    rows, pages = [], []
    for mine in ours:
        compared: dict[str, dict[str, Summary]] = {}
        for peer in models:
            found = {
                name: difference(values[mine], values[peer], metric)
                for name, values in by_set.items()
                if peer != mine and mine in values and peer in values
            }
            found = {name: d for name, d in found.items() if d.folds > 1}
            if found:
                compared[peer] = found
                rows.append([mine, peer, *_won_and_lost(found, metric)])
        if compared:
            text = _set_by_set(compared)
            pages.append(folded(f"NLL of {mine} less each peer's, set by set", text))
    if not rows:
        return ""
    header = ["ours", "peer", "sets", "better", "equal", "worse", "worse on"]
    note = (
        "The difference of NLL fold by fold, and its mean compared with its own standard error (of the "
        "differences): folds differ far more than models do, so this comparison has more power than one "
        "of the means. A set counts with two common folds or more."
    )
    return paragraphs(["### UCI: paired comparison", note, worded(header, rows), *pages])


def _won_and_lost(found: dict[str, Summary], metric: Metric) -> list[str]:
    wins = [n for n, d in found.items() if d.mean < -max(d.se, metric.tie)]
    losses = [n for n, d in found.items() if d.mean > max(d.se, metric.tie)]
    ties = len(found) - len(wins) - len(losses)
    counts = (len(found), len(wins), ties, len(losses))
    return [*map(str, counts), ", ".join(losses) or MISSING]


def _set_by_set(compared: dict[str, dict[str, Summary]]) -> str:
    sets, peers = in_order(name for found in compared.values() for name in found), list(compared)
    tables = []
    for some in (peers[k : k + MOST_PEERS] for k in range(0, len(peers), MOST_PEERS)):
        cells = [[name, *(_signed(compared[peer].get(name)) for peer in some)] for name in sets]
        tables.append(markdown(["set", *some], cells))
    return paragraphs(tables)


def _signed(summary: Summary | None) -> str:
    if summary is None:
        return MISSING
    text = f"{summary.mean:+.3f} ±{GLUE}{figure(summary.se)}"
    note = "" if summary.folds >= FOLDS else f" ({summary.folds}{GLUE}folds)"
    return text + note
