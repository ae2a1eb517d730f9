"""Tidy results to Markdown; pure functions of data frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from benchmarks.data.sets import ALL_SETS
from benchmarks.metrics import geometric_mean, log_log_slope, standard_error
from benchmarks.paper.published import printed

MISSING = "-"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> str:
    """A Markdown table with aligned columns; the first column to the left, the rest right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    rule = ["-" * widths[0], *("-" * (max(width, 2) - 1) + ":" for width in widths[1:])]

    def draw(cells: Sequence[str]) -> str:
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "| " + " | ".join(padded) + " |"

    table = "\n".join([draw(lines[0]), draw(rule), *(draw(line) for line in lines[1:])])
    return f"### {title}\n\n{table}\n" if title else table + "\n"


def number(value: float, decimals: int = 3) -> str:
    """A figure, or a dash where there is none."""
    return MISSING if pd.isna(value) else f"{value:.{decimals}f}"


def plus_minus(values: Iterable[float], decimals: int = 3, failed: int = 0) -> str:
    """Mean and standard error of the values there are; failed folds are counted aloud."""
    given = np.asarray(list(values), float)
    given = given[~np.isnan(given)]
    note = f" ({failed} failed)" if failed else ""
    if not len(given):
        return "failed" if failed else MISSING
    error = standard_error(given)
    spread = "" if np.isnan(error) else f" ± {error:.{decimals}f}"
    return f"{given.mean():.{decimals}f}{spread}{note}"


def in_order(values: Iterable[str], order: Sequence[str] = ALL_SETS) -> list[str]:
    """Unique values: the known ones in their usual order, then the rest as they came."""
    present = list(dict.fromkeys(values))
    return [v for v in order if v in present] + [v for v in present if v not in order]


def metric_table(
    results: pd.DataFrame,
    metric: str,
    title: str,
    decimals: int | None = 3,
    beside: dict[str, dict[str, str]] | None = None,
) -> str:
    """Sets down, models across, mean ± standard error; ``beside`` adds finished columns.

    Without ``decimals`` each set gets as many as its smallest mean needs for three digits.
    """
    if metric not in results or results[metric].isna().all():
        return ""
    failed = _failed(results)
    valued = results[results[metric].notna() | ((metric == "nll") & failed)]
    models = in_order(valued["model"], order=())
    rows = []
    for name in in_order(valued["set"]):
        cells = []
        digits = _decimals(valued[valued["set"] == name], metric) if decimals is None else decimals
        for model in models:
            cell = (results["set"] == name) & (results["model"] == model)
            n_failed = int(failed[cell].sum())
            cells.append(plus_minus(results.loc[cell, metric], digits, n_failed))
        finished = [column.get(name, MISSING) for column in (beside or {}).values()]
        rows.append([name, *cells, *finished])
    return markdown(["set", *models, *(beside or {})], rows, title)


def _decimals(results: pd.DataFrame, metric: str) -> int:
    """Decimals that show three digits of the smallest mean."""
    smallest = results.groupby("model")[metric].mean().abs().min()
    return int(np.clip(2 - np.floor(np.log10(smallest)), 0, 9)) if smallest > 0 else 3


def _failed(results: pd.DataFrame) -> pd.Series:
    """Which rows are failures rather than results."""
    if "error" not in results:
        return pd.Series(False, index=results.index)
    return results["error"].notna()


def quality_tables(results: pd.DataFrame, paper: pd.DataFrame) -> list[str]:
    """Every quality table, the paper's LA-NAM beside the likelihoods."""
    return [
        metric_table(
            results,
            "nll",
            "Test NLL (lower is better)",
            beside={"paper LA-NAM": printed(paper, "la-nam")},
        ),
        metric_table(results, "rmse", "RMSE (lower is better)", decimals=None),
        metric_table(results, "auroc", "AUROC (higher is better)"),
        metric_table(results, "coverage90", "Coverage of 90% predictive intervals"),
        metric_table(results, "width90", "Mean width of 90% predictive intervals", decimals=None),
        metric_table(results, "ece", "Expected calibration error, 10 bins"),
        metric_table(results, "log_evidence", "Log evidence (training rows)", decimals=1),
        metric_table(results, "n_iter", "Iterations", decimals=0),
        metric_table(results, "terms_active", "Active terms", decimals=1),
        metric_table(
            results, "predict_seconds", "Predict seconds (test rows; std where there is one)", 4
        ),
        complaint_table(results),
    ]


PAPER_PAIR_MODELS = {
    "paper LA-NAM10": "la-nam-10",
    "paper OAK-GP*": "oak-gp-star",
    "paper EBM10": "ebm-10",
    "paper LightGBM": "lightgbm",
}


def pair_tables(results: pd.DataFrame, paper: pd.DataFrame) -> list[str]:
    """Models with pairs of columns, the paper's beside the likelihoods."""
    beside = {title: printed(paper, model) for title, model in PAPER_PAIR_MODELS.items()}
    return [
        metric_table(results, "nll", "Test NLL (lower is better)", beside=beside),
        metric_table(results, "pairs_active", "Active pairs", decimals=1),
        metric_table(results, "coverage90", "Coverage of 90% predictive intervals"),
        metric_table(results, "log_evidence", "Log evidence (training rows)", decimals=1),
        complaint_table(results),
    ]


def complaint_table(results: pd.DataFrame) -> str:
    """How many cells of each model failed, warned or did not converge; empty if none did."""
    rows = []
    for model, group in results.groupby("model", sort=False):
        complaints: list[str] = []
        for column in ("error", "warnings"):
            if column in group:
                complaints += [f"{column}: {text}" for text in group[column].dropna() if text]
        if "converged" in group:
            complaints += ["not converged"] * int((group["converged"].astype(str) == "False").sum())
        for complaint in dict.fromkeys(complaints):
            count = f"{complaints.count(complaint)} of {len(group)}"
            # a message may hold line breaks and bars, which would end the cell
            text = " ".join(complaint.split()).replace("|", "/")
            rows.append([str(model), count, text])
    return markdown(["model", "cells", "what"], rows, "Complaints") if rows else ""


def fit_medians(results: pd.DataFrame) -> pd.DataFrame:
    """Median fit seconds over folds: sets down, models across."""
    return results.pivot_table(
        index="set", columns="model", values="fit_seconds", aggfunc="median", sort=False
    )


def time_ratio(results: pd.DataFrame, ours: str, theirs: str) -> tuple[float, int]:
    """Geometric mean over sets of median fit time, ours over theirs, and how many sets.

    Only cells (set x fold) that both finished count, where results of several runs were put
    together (``run``) only in the same one, and only with as many threads.
    """
    if not {ours, theirs} <= set(results["model"]):
        return float("nan"), 0
    pair = results[results["model"].isin([ours, theirs])]
    same = [key for key in ("set", "fold", "threads", "run") if key in pair]
    cells = pair.pivot_table(index=same, columns="model", values="fit_seconds")
    cells = cells.reindex(columns=[ours, theirs]).dropna()
    if cells.empty:
        return float("nan"), 0
    medians = cells.groupby("set").median()
    return geometric_mean(medians[ours] / medians[theirs]), len(medians)


def speed_table(
    results: pd.DataFrame, ours: str = "lanam", title: str = "Fit seconds, median over folds"
) -> str:
    """Median fit seconds by set and their geometric mean, then our time over each peer's."""
    medians = fit_medians(results)
    models = in_order(results["model"], order=())
    models = [model for model in models if model in medians]
    sets = in_order(medians.index)
    rows = [[name, *(number(medians.loc[name, m]) for m in models)] for name in sets]
    complete = medians.dropna(how="any", subset=[m for m in models if m != "public"])
    if len(complete):
        means = [number(geometric_mean(complete[m].dropna())) for m in models]
        rows.append([f"geometric mean ({len(complete)} sets)", *means])
    if ours in models:
        ratios = [time_ratio(results, ours, model)[0] for model in models]
        shown = [MISSING if np.isnan(ratio) else f"{ratio:.3g}" for ratio in ratios]
        rows.append([f"{ours}'s time over it", *shown])
    return markdown(["set", *models], rows, title)


def coverage_table(coverage: pd.DataFrame) -> str:
    """Coverage of the toy functions' 95% bands, mean over seeds, by correlation and posterior."""
    functions = sorted(coverage["function"].dropna().unique())
    rows = []
    for (correlation, posterior), group in coverage.groupby(
        ["correlation", "posterior"], sort=False
    ):
        cells = [number(group.loc[group["function"] == f, "coverage"].mean()) for f in functions]
        f4 = group[group["function"] == "f4"]
        off = f"{int((f4['active'].astype(str) == 'False').sum())} of {len(f4)}"
        rows.append([f"{correlation}", posterior, *cells, off])
    header = ["correlation", "posterior", *functions, "f4 switched off"]
    n_seeds = coverage["seed"].nunique()
    return markdown(header, rows, f"Coverage of 95% bands, toy functions, {n_seeds} seeds")


def selection_table(selection: pd.DataFrame) -> str:
    """What was switched off, by problem."""
    rows = []
    for problem, group in selection.groupby("problem", sort=False):
        rows.append(
            [
                str(problem),
                str(len(group)),
                number(group["noise_active"].mean(), 2),
                str(int((group["noise_active"] == 0).sum())),
                number(group["informative_lost"].sum(), 0),
                number(group["fit_seconds"].median(), 2),
            ]
        )
    header = ["problem", "seeds", "noise features active, mean", "seeds with none"]
    header += ["informative lost, total", "fit s, median"]
    return markdown(header, rows, "Selection, lanam of first order")


def planted_tables(planted: pd.DataFrame) -> list[str]:
    """How each score ranks the pairs that do interact, and which pairs a fit added."""
    ranks = [column for column in planted if column.startswith("rank_")]
    rows, added = [], []
    for score, group in planted.groupby("score", sort=False):
        seen = [f"{group[r].median():.0f} (worst {group[r].max():.0f})" for r in ranks]
        rows.append([str(score), f"{in_top(group)} of {len(group)}", *seen])
        if "planted_added" in group and group["planted_added"].notna().any():
            counts = [number(group[c].mean(), 2) for c in ("planted_added", "false_added")]
            clean = f"{int((group['false_added'] == 0).sum())} of {len(group)}"
            added.append([str(score), *counts, clean, number(group["fit_seconds"].median(), 2)])
    header = ["score", "all three in the top 3", *(f"rank of {r[5:]}, median" for r in ranks)]
    title = f"Three planted pairs among 45, {planted['seed'].nunique()} seeds"
    fit_header = ["score", "planted pairs added, mean of 3", "false pairs added, mean"]
    fit_header += ["seeds without a false pair", "fit s, median"]
    return [
        markdown(header, rows, title),
        markdown(fit_header, added, 'What interactions="auto" added') if added else "",
    ]


def in_top(planted: pd.DataFrame) -> int:
    """In how many rows the planted pairs have the first ranks; a failed fit has none."""
    ranks = planted.filter(like="rank_")
    return int((ranks.max(axis=1, skipna=False) <= ranks.shape[1]).sum())


def scoring_tables(scale: pd.DataFrame) -> list[str]:
    """Time to score all pairs of many columns, and memory."""
    keys = ["rows", "columns", "threads", "model"]
    values = ["scoring_seconds", "fit_seconds", "extra_bytes", "extra_over_data"]
    # a cell that failed stays as a row of dashes
    medians = scale.groupby(keys, sort=False)[values].median()
    medians["extra_bytes"] /= 2**20
    rows = [
        [*(str(key) for key in index), *(number(value, 1) for value in line)]
        for index, line in zip(medians.index, medians.to_numpy(), strict=True)
    ]
    header = [*keys, "scoring s", "fit s", "peak memory MiB", "peak memory / data"]
    return [markdown(header, rows, "Scoring every pair of many columns, medians over repeats")]


def scale_tables(scale: pd.DataFrame) -> list[str]:
    """Time and memory by size, and how the fit time grows."""
    keys = ["sweep", "task", "rows", "columns", "model"]
    values = ["fit_seconds", "extra_over_data", "predict_mean_seconds", "predict_seconds", "nll"]
    present = [value for value in values if value in scale]
    if not present:
        return []
    # a cell that failed stays as a row of dashes
    medians = scale.groupby(keys, sort=False)[present].median().reindex(columns=values)
    rows = [
        [*(str(key) for key in index), *(number(value) for value in line)]
        for index, line in zip(medians.index, medians.to_numpy(), strict=True)
    ]
    header = ["sweep", "task", "rows", "columns", "model", "fit s", "peak memory / data"]
    header += ["predict mean s", "predict s (std too)", "test NLL"]
    growth = []
    for (sweep, task, model), group in medians.reset_index().groupby(
        ["sweep", "task", "model"], sort=False
    ):
        group = group.dropna(subset=["fit_seconds"])
        if len(group) > 1:
            slope = log_log_slope(group[sweep].to_numpy(float), group["fit_seconds"].to_numpy())
            line = np.polyfit(group[sweep].to_numpy(float), group["fit_seconds"].to_numpy(), 1)
            unit = 1e6 if sweep == "rows" else 1
            growth.append([sweep, task, model, number(slope, 2), number(line[0] * unit)])
    growth_header = ["in", "task", "model", "log-log slope", "seconds per column or million rows"]
    return [
        markdown(header, rows, "Scale, medians over repeats"),
        markdown(growth_header, growth, "Growth of fit time (slope 1: linear)") if growth else "",
    ]
