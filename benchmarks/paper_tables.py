"""Tables of the paper's experiments in Markdown, the paper's figures beside ours; pure functions of "
"frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd

from benchmarks.experiments import EXPERIMENTS, PAPER
from benchmarks.markdown import MISSING, in_order, markdown, number, time_ratio
from benchmarks.paper_scores import (
    CONTROL,
    FOLDS,
    METRIC,
    METRICS,
    THEIRS,
    WITHOUT_PAIRS,
    Metric,
    Summary,
    best_of,
    beyond,
    difference,
    failures,
    models_of,
    on_par,
    part,
    published,
    scores,
    summarise,
)

Frame = pd.DataFrame
GLUE = "\u00a0"  # a space at which no line ends
ARROWS = {1: f"{GLUE}▲", -1: f"{GLUE}▼", 0: ""}
ICU_METRICS = tuple(
    replace(METRIC[name], decimals=4, tie=5e-5) for name in ("auroc", "auprc", "nll", "ece", "rbs")
)
MODEL_KEY = {
    "linear": ("Linear", "ridge or logistic regression, penalty by cross-validation"),
    "pygam": ("GAM", "smoothing splines (pygam)"),
    "nam": ("NAM", "ensemble of ExU networks with dropout"),
    "nam-relu-deep": ("NAM (64-64-32, ReLU)", "the same with other networks"),
    "nam-relu": ("NAM (64, ReLU)", "the same with other networks"),
    "nam-gelu": ("NAM (64, GELU)", "the same with other networks"),
    "lanam": ("LA-NAM", "ours as it comes, without pairs"),
    "lanam-paper": ("LA-NAM", "ours with the paper's posterior, curvature and solver"),
    "lanam-smooth": ("", "ours without effects of single values"),
    "lanam-auto": ("", "ours as it comes: as many pairs as the evidence pays for"),
    "lanam10": ("", "ours with up to ten pairs by our own score"),
    "lanam10-mi": ("LA-NAM10", "ours with up to ten pairs by mutual information"),
    "lanam10-gain": ("LA-NAM10†", "ours with up to ten pairs by the gain of the evidence"),
    "lanam10-paper": ("LA-NAM10", "`lanam-paper` with ten pairs"),
    "oak": ("OAK-GP", "Gaussian process with the orthogonal additive kernel"),
    "oak2": ("OAK-GP*", "the same with all pairs"),
    "ebm": ("EBM", "boosted trees of one column each"),
    "ebm10": ("EBM10", "the same with ten pairs"),
    "lightgbm": ("", "boosted trees, one fit with early stopping"),
    "lightgbm-grid": ("LightGBM", "boosted trees, the paper's grid"),
    "deep-ensemble": ("DE", "ensemble of our networks"),
    "mean-field": ("MFVI", "Bayes by Backprop"),
    "mc-dropout": ("MC-Dropout", "dropout at prediction"),
    "public": ("LA-NAM", "the paper's own implementation"),
    CONTROL: ("", "predicts the mean: a control"),
}


# words


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


def as_printed(summary: Summary) -> str:
    """The paper's mean ± standard error with the digits it prints; a dash where it has none."""
    if not summary.folds:
        return MISSING
    mean, se = (-Decimal(str(v)).as_tuple().exponent for v in (summary.mean, summary.se))
    mean = max(mean, se) if se <= 4 else mean
    return f"{_digits(summary.mean, mean)} ±{GLUE}{_digits(summary.se, max(mean, se))}"


def _digits(value: float, decimals: int) -> str:
    """A figure with so many decimals; more than four as a power of ten."""
    if decimals <= 4:
        return f"{value:.{decimals}f}"
    digits, _, power = f"{value:.1e}".partition("e")
    return f"{digits.removesuffix('.0')}e{int(power)}"


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
    results: Frame, metric: Metric, first_order: Sequence[str], unit: str = "fold"
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
            plain = WITHOUT_PAIRS.get(model)
            strong = best is not None and not n_failed
            strong = strong and on_par(values[model], values[best], metric)
            if plain in values:
                mark = ARROWS[beyond(values[model], values[plain], metric)]
        summary = summarise(values.get(model), n_failed)
        cells[name, model] = cell_text(summary, metric.decimals, strong, mark, unit)
    return cells


def uci_tables(results: Frame) -> str:
    """Every metric, in blocks as in the paper; all but the first open on a click."""
    blocks = models_of(results)
    first_order = blocks.get("First order", [])
    pages = []
    for metric in METRICS:
        if metric.name not in results or results[metric.name].isna().all():
            continue
        task = results.loc[results[metric.name].notna(), "task"].unique()
        rows = results[results["task"].isin(task)] if "task" in results else results
        cells = marked_cells(rows, metric, first_order)
        tables = []
        for title, models in blocks.items():
            there = [m for m in models if any((s, m) in cells for s in rows["set"].unique())]
            lines = [
                [name, *(cells.get((name, m), MISSING) for m in there)]
                for name in in_order(rows["set"])
            ]
            if there:
                tables.append(f"{title}\n\n{markdown(['set', *there], lines)}")
        text = paragraphs(tables)
        pages.append(
            f"### UCI: {metric.title}\n\n{text}"
            if metric.name == "nll"
            else folded(metric.title, text)
        )
    return paragraphs([*pages[:1], RULES, *pages[1:]])


RULES = (
    "Mean ± standard error of the mean over folds. **Bold**, as in the paper: of the first-order "
    "models the best and "
    "those whose mean ± standard error meets the best one's; of the others those on a par with that "
    "or better. "
    "▲ and ▼: better or worse than the same model without pairs by more than both standard errors. "
    "Models are compared on "
    "the folds that both have; a model with failed folds is never bold."
)


def beside_paper(results: Frame, paper: Frame) -> str:
    """Ours over the paper's, for every model that both have."""
    parts = []
    for metric in METRICS:
        by_set = scores(results, metric.name)
        failed = failures(results)
        tables = []
        for models in models_of(results).values():
            shared = [
                m
                for m in models
                if m in THEIRS
                and any(published(paper, s, THEIRS[m], metric).folds for s in by_set)
                and any(m in values for values in by_set.values())
            ]
            lines = []
            for name in in_order(by_set):
                line = [name]
                for model in shared:
                    theirs = published(paper, name, THEIRS[model], metric)
                    ours = summarise(by_set[name].get(model), failed.get((name, model), 0))
                    line.append(_ours_and_theirs(ours, theirs, metric))
                if any(cell != MISSING for cell in line[1:]):
                    lines.append(line)
            if shared and lines:
                tables.append(markdown(["set", *shared], lines))
        if tables:
            text = paragraphs(tables)
            parts.append(text if metric.name == "nll" else folded(metric.title, text))
    if not parts:
        return ""
    note = (
        "In each cell our figure above and the paper's below, in italics. ▲ and ▼: ours is better or "
        "worse by more than "
        "both standard errors. The paper's folds are not ours, and it prints fewer digits."
    )
    return paragraphs(["### UCI: ours beside the paper's (NLL, then the others)", note, *parts])


def _ours_and_theirs(ours: Summary, theirs: Summary, metric: Metric) -> str:
    if not theirs.folds or not (ours.folds or ours.failed):
        return MISSING
    mark = ""
    if ours.folds > 1:
        worse = metric.sign * (ours.mean - theirs.mean)
        # half a unit of the paper's last digit is no difference
        allowed = ours.se + theirs.se + (0.005 if metric.name == "nll" else 0.0)
        mark = "" if abs(worse) <= allowed else ARROWS[-int(np.sign(worse))]
    return f"{cell_text(ours, metric.decimals, mark=mark)}<br>*{as_printed(theirs)}*"


def paired_tables(results: Frame, ours: Sequence[str] = ("lanam", "lanam10", "lanam-auto")) -> str:
    """Differences of NLL fold by fold: on how many sets we win, tie and lose against each peer."""
    metric, by_set = METRIC["nll"], scores(results, "nll")
    peers = [m for models in models_of(results).values() for m in models]
    rows, pages = [], []
    for mine in ours:
        others = [m for m in peers if m != mine]
        lines = []
        for peer in others:
            found = {
                name: difference(values[mine], values[peer], metric)
                for name, values in by_set.items()
                if mine in values and peer in values
            }
            found = {name: d for name, d in found.items() if d.folds > 1}
            if not found:
                continue
            wins = [n for n, d in found.items() if d.mean < -max(d.se, metric.tie)]
            losses = [n for n, d in found.items() if d.mean > max(d.se, metric.tie)]
            ties = len(found) - len(wins) - len(losses)
            counts = [str(len(found)), str(len(wins)), str(ties), str(len(losses))]
            rows.append([mine, peer, *counts, ", ".join(losses) or MISSING])
            lines.append((peer, found))
        if lines:
            sets = in_order(name for _, found in lines for name in found)
            # few peers a table, or it is too wide to read
            tables = []
            for some in (lines[k : k + 7] for k in range(0, len(lines), 7)):
                cells = [
                    [n, *(_signed(found[n]) if n in found else MISSING for _, found in some)]
                    for n in sets
                ]
                tables.append(markdown(["set", *(peer for peer, _ in some)], cells))
            pages.append(folded(f"NLL of {mine} less each peer's, set by set", paragraphs(tables)))
    if not rows:
        return ""
    header = ["ours", "peer", "sets", "better", "equal", "worse", "worse on"]
    note = (
        "The difference of NLL fold by fold, its mean held against its own standard error (of the "
        "differences): folds differ far "
        "more than models do, so this tells more than the errors of each mean. A set counts with two "
        "common folds or more."
    )
    return paragraphs(["### UCI: paired comparison", note, worded(header, rows), *pages])


def _signed(summary: Summary) -> str:
    text = f"{summary.mean:+.3f} ±{GLUE}{figure(summary.se)}"
    note = "" if summary.folds >= FOLDS else f" ({summary.folds}{GLUE}folds)"
    return text + note


# intensive care


def icu_tables(results: Frame, paper: Frame) -> str:
    """Mortality: models down, metrics across; then what the paper has of other patients."""
    parts = []
    for name in in_order(results["set"]):
        rows = results[results["set"] == name]
        blocks = models_of(rows)
        first_order = blocks.get("First order", [])
        lines = []
        cells = {m: marked_cells(rows, m, first_order, unit="seed") for m in ICU_METRICS}
        for models in blocks.values():
            for model in models:
                own = rows[rows["model"] == model]
                used = [
                    _median(own, c, d) for c, d in (("columns_used", 0), ("columns_explained", 1))
                ]
                lines.append([model, *(cells[m][name, model] for m in ICU_METRICS), *used])
        header = ["model", *(_short(m) for m in ICU_METRICS), "columns used", "shown for a patient"]
        parts += [f"### Intensive care: {name}", markdown(header, lines)]
    parts.append(
        "Mean ± standard error over seeds of one split; marks as in the tables above. *Columns "
        "used*: those that add anything for one of 50 "
        "test patients. *Shown for a patient*: columns whose band of two standard deviations leaves "
        "out zero, or, for "
        "models without bands, that add 0.1 or more to the log odds; mean over these patients."
    )
    theirs = [_paper_icu(paper, name) for name in ("mimic3", "hirid")]
    if any(theirs):
        parts.append(
            "The paper's figures are of other patients (MIMIC-III and HiRID need credentials): they "
            "tell the order of the "
            "models there, not a level to compare with."
        )
    return paragraphs([*parts, *theirs])


def _median(rows: Frame, column: str, decimals: int = 0) -> str:
    return number(rows[column].median(), decimals) if column in rows else MISSING


def _short(metric: Metric) -> str:
    return f"{metric.name.split('_')[0].upper()} {'↑' if metric.higher else '↓'}"


def _paper_icu(paper: Frame, name: str) -> str:
    rows = paper[(paper["set"] == name) & (paper["source"] != "tab:depthactiv")]
    lines = []
    for model in dict.fromkeys(THEIRS.values()):
        found = [published(rows, name, model, metric) for metric in ICU_METRICS]
        if any(summary.folds for summary in found):
            lines.append([model, *(as_printed(s) for s in found)])
    title = {"mimic3": "MIMIC-III", "hirid": "HiRID"}[name]
    return markdown([f"{title} (paper)", *(_short(m) for m in ICU_METRICS)], lines) if lines else ""


def depth_table(results: Frame, paper: Frame) -> str:
    """Depth and activation of the feature networks, and the paper's on MIMIC-III beside it."""
    theirs = paper[paper["source"] == "tab:depthactiv"]
    parts = []
    for name in in_order(results["set"]):
        rows = results[results["set"] == name]
        models = in_order(rows["model"], EXPERIMENTS["depth"].models)
        cells = {m: marked_cells(rows, m, models, unit="seed") for m in ICU_METRICS[:4]}
        lines = [
            [
                model,
                *(cells[m][name, model] for m in ICU_METRICS[:4]),
                *(
                    as_printed(s)
                    for s in (published(theirs, "mimic3", model, m) for m in ICU_METRICS[:3])
                ),
            ]
            for model in models
        ]
        header = ["model", *(_short(m) for m in ICU_METRICS[:4])]
        header += [f"paper, MIMIC-III: {_short(m)}" for m in ICU_METRICS[:3]]
        parts.append(f"### Depth and activation: {name}\n\n{markdown(header, lines)}")
    return paragraphs(parts)


# functions with a known truth


def recovery_tables(results: Frame, title: str) -> str:
    """Error of each function, coverage of its 95% band, NLL and seconds."""
    models = in_order(results["model"], EXPERIMENTS["toy"].models)
    functions = [f"f{d}" for d in range(1, 5)]
    failed = results["error"].notna() if "error" in results else pd.Series(False, results.index)

    def line(model: str, columns: Sequence[str], decimals: int) -> list[str]:
        own = results[results["model"] == model]
        n_failed = int(failed[own.index].sum())
        found = [own[c].dropna() if c in own else pd.Series(dtype=float) for c in columns]
        return [cell_text(summarise(v, n_failed), decimals, unit="seed") for v in found]

    errors = [*(f"rmse_{f}" for f in functions), "range_f4", "nll"]
    cover = [f"coverage_{f}" for f in functions]
    first = [[m, *line(m, errors, 3)] for m in models]
    second = [
        [m, *line(m, cover, 2), _median(results[results["model"] == m], "fit_seconds", 2)]
        for m in models
    ]
    return paragraphs(
        [
            f"### {title}",
            "Root mean squared error of each function at the training rows, the range of what `f4`, "
            "which is zero, is made to be, and test NLL; mean ± standard error over seeds:",
            markdown(["model", *functions, "range of f4", "NLL"], first),
            "Share of training rows at which the band of two standard deviations (95%) holds the "
            "true function, and median seconds of a fit. A function that is switched off "
            "where it is zero is covered everywhere:",
            markdown(["model", *functions, "fit s"], second),
        ]
    )


def redundancy_table(results: Frame) -> str:
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
        "Standard deviation of what a column adds to the log odds over the training rows: with the "
        "column that is a sum of others → without it; mean over seeds. "
        "In the made-up set (`gap`) the truth is in the gap alone."
    )
    return paragraphs(
        ["### A column that is a sum of others", note, markdown(["set", "column", *models], rows)]
    )


def _spread(results: Frame, base: str, model: str, column: str) -> str:
    own = results[results["model"] == model]
    means = [own.loc[own["set"] == n, column].mean() for n in (base, f"{base}-without")]
    if np.isnan(means).all():
        return MISSING
    return " → ".join("none" if np.isnan(m) else f"{m:.3f}" for m in means)


# costs


def cost_tables(results: Frame, reference: str = "lanam") -> str:
    """Median seconds and MiB of a fit by set and model, and the ratio to the reference."""
    parts = ["### Time and memory of a fit"]
    threads = ", ".join(f"{t:.0f}" for t in sorted(results["threads"].dropna().unique()))
    parts.append(
        f"Medians over folds or seeds; threads: {threads}. The last row: the geometric mean over sets "
        "of the ratio to "
        f"`{reference}`, on the cells that both finished. Memory is what a fit takes beyond what was "
        "there before it."
    )
    for column, title, scale, digits in (
        ("fit_seconds", "Seconds", 1.0, 2),
        ("peak_bytes", "Peak memory, MiB", 2.0**20, 0),
    ):
        if column not in results:
            continue
        known = results[results[column].notna()]
        medians = known.groupby(["set", "model"])[column].median() / scale
        for block, models in models_of(known).items():
            lines = [
                [name, *(number(medians.get((name, m), np.nan), digits) for m in models)]
                for name in in_order(known["set"])
            ]
            ratios = [
                time_ratio(known.assign(fit_seconds=known[column]), m, reference) for m in models
            ]
            lines.append(
                [f"over {reference}", *(f"{r:.3g} ({n} sets)" if n else MISSING for r, n in ratios)]
            )
            parts.append(
                f"{title}: {block[0].lower()}{block[1:]}\n\n{markdown(['set', *models], lines)}"
            )
    return paragraphs(parts)


# pairs


def pair_table(results: Frame) -> str:
    """The pairs that each score chose, with the number of folds that chose them."""
    if "pairs" not in results:
        return ""
    rows = []
    for (name, model), own in results.groupby(["set", "model"], sort=False):
        told = own["pairs"].dropna()
        if not len(told):
            continue
        counts = Counter(
            pair.strip() for text in told for pair in str(text).split(";") if pair.strip()
        )
        shown = [f"{pair} ({count})" for pair, count in counts.most_common(12)]
        more = f" and {len(counts) - 12} more" if len(counts) > 12 else ""
        rows.append([name, model, str(len(told)), (", ".join(shown) or "none") + more])
    if not rows:
        return ""
    note = "In brackets the folds or seeds whose model has the pair."
    header = ["set", "model", "folds", "pairs"]
    return paragraphs(["### Pairs found", note, worded(header, rows)])


# conditions


def condition_lines(results: Frame, conditions: str) -> str:
    """Machine, versions, dates and commits; several commits of our own cells are said aloud."""
    parts = [" ".join(line for line in conditions.splitlines() if not line.startswith("SKIPPED"))]
    if not conditions:
        parts = ["The run has left no line on its machine and versions (it is not over)."]
    if "started" in results and results["started"].notna().any():
        days = sorted({str(text)[:10] for text in results["started"].dropna()})
        parts.append(
            f"Run {'on' if len(days) == 1 else 'from'} {' to '.join(dict.fromkeys((days[0], days[-1])))}."
        )
    mine = results[results["model"].astype(str).str.startswith("lanam")]
    commits = Counter(mine["code"].dropna()) if "code" in mine else Counter()
    if len(commits) > 1:
        told = ", ".join(f"`{code}` ({count})" for code, count in commits.most_common())
        parts.append(f"**MIXED: our cells are of several commits: {told}.**")
    elif commits:
        parts.append(f"Our cells are all of commit `{next(iter(commits))}`.")
    return paragraphs(["### Conditions", " ".join(parts)])


def missing_lines(results: Frame, conditions: str) -> str:
    """What was not run, what could not be run, and what failed."""
    lines = [f"- **{line}**" for line in conditions.splitlines() if line.startswith("SKIPPED")]
    for name in PAPER:
        experiment, rows = EXPERIMENTS[name], part(results, name)
        if rows.empty:
            lines.append(f"- **{name}: not run.**")
            continue
        absent = [m for m in experiment.models if m not in set(rows["model"])]
        if absent:
            lines.append(f"- **{name}: not run: {', '.join(absent)}.**")
        unrun = [s for s in experiment.sets if s not in set(rows["set"])]
        if unrun:
            lines.append(f"- **{name}: sets not run: {', '.join(unrun)}.**")
    failed = results[results["error"].notna()] if "error" in results else results.iloc[:0]
    n_failed = len(failed)
    lines.append(f"- {len(results)} cells, {n_failed} of them failed.")
    rows = []
    for (experiment, model), own in failed.groupby(["experiment", "model"], sort=False):
        places = Counter(own["set"])
        where = ", ".join(f"{name} ({count})" for name, count in places.items())
        why = "; ".join(dict.fromkeys(_first_words(text) for text in own["error"]))
        rows.append([str(experiment), str(model), str(len(own)), where, why])
    table = worded(["experiment", "model", "failed", "sets", "why"], rows) if rows else ""
    return paragraphs(["### Not run, and failed", "\n".join(lines), table])


def _first_words(text: str, most: int = 120) -> str:
    """The beginning of a message; bars and line breaks would end the cell."""
    plain = " ".join(str(text).split()).replace("|", "/")
    return plain if len(plain) <= most else plain[:most] + "…"


def complaint_lines(results: Frame) -> str:
    """Fits that warned or did not converge, by model."""
    rows = []
    for (experiment, model), own in results.groupby(["experiment", "model"], sort=False):
        told: Counter[str] = Counter()
        if "warnings" in own:
            told.update(_first_words(text) for text in own["warnings"].dropna() if text)
        if "converged" in own:
            told["not converged"] += int((own["converged"].astype(str) == "False").sum())
        rows += [[experiment, model, f"{n} of {len(own)}", what] for what, n in told.items() if n]
    if not rows:
        return ""
    table = worded(["experiment", "model", "cells", "what"], rows)
    return folded("Fits that warned or did not converge", table)


def model_key(models: Iterable[str]) -> str:
    """What the names of models mean."""
    rows = []
    for model in in_order(models, list(MODEL_KEY)):
        theirs, what = MODEL_KEY.get(model, ("", ""))
        rows.append([f"`{model}`", theirs or MISSING, what or MISSING])
    return folded("Names of the models", worded(["here", "in the paper", "what"], rows))


def tables_of(results: Frame, paper: Frame) -> Mapping[str, str]:
    """The tables of each experiment that has cells."""
    toy, inference, uci, icu, depth, sums = (
        part(results, name) for name in ("toy", "inference", "uci", "icu", "depth", "redundancy")
    )
    costs = pd.concat([toy, uci, icu])
    made = {
        "toy": (toy, lambda: recovery_tables(toy, "Toy: recovered functions")),
        "inference": (
            inference,
            lambda: recovery_tables(inference, "Toy: other posteriors for the same networks"),
        ),
        "uci": (uci, lambda: uci_tables(uci)),
        "paper": (uci, lambda: beside_paper(uci, paper)),
        "paired": (uci, lambda: paired_tables(uci)),
        "icu": (icu, lambda: icu_tables(icu, paper)),
        "pairs": (icu, lambda: pair_table(pd.concat([icu, uci]))),
        "depth": (depth, lambda: depth_table(depth, paper)),
        "redundancy": (sums, lambda: redundancy_table(sums)),
        "costs": (costs, lambda: cost_tables(costs)),
    }
    return {name: make() if len(rows) else "" for name, (rows, make) in made.items()}
