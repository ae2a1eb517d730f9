"""Tables and verdicts of the benchmark of real tables; pure functions of data frames.

Of each part there are the ``results`` (a cell once) and the ``runs`` (every cell of every run, ``run``
tells which), since times are compared only within a run.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from benchmarks.markdown import (
    complaint_table,
    markdown,
    metric_table,
    number,
    speed_table,
    time_ratio,
)
from benchmarks.verdicts import Verdict, limit, unmeasured

Frame = pd.DataFrame
FIRST_ORDER = ("lanam", "ebm")
WITH_PAIRS = ("lanam-auto", "ebm-pairs")
SLACK = 0.003  # how much worse than EBM may be on adult
SECONDS = 90.0  # for physionet2012 with pairs, on two threads
FASTER = 1 / 3  # of EBM's fit time
HIGHER_IS_BETTER = {"auroc", "auprc"}
NAMES = {"nll": "NLL", "auroc": "AUROC", "auprc": "AUPRC"}


# tables


def _speed_tables(runs: Frame, title: str) -> list[str]:
    """Times by number of threads, which are never compared with each other."""
    return [
        speed_table(
            group, "lanam", f"{title}: fit seconds, median over folds, threads: {threads:.0f}"
        )
        for threads, group in runs.groupby("threads")
    ]


def quality_tables(results: Frame, runs: Frame) -> list[str]:
    """Raw tables."""
    return [
        metric_table(results, "nll", "Test NLL (lower is better)", 4),
        metric_table(results, "auroc", "AUROC (higher is better)", 4),
        metric_table(results, "auprc", "AUPRC (higher is better)", 4),
        metric_table(results, "ece", "Expected calibration error, 10 bins", 4),
        metric_table(results, "deviance", "Mean Poisson deviance (lower is better)", 4),
        metric_table(results, "rmse", "RMSE (lower is better)", decimals=None),
        metric_table(results, "coverage90", "Coverage of 90% predictive intervals"),
        metric_table(results, "width90", "Mean width of 90% predictive intervals", decimals=None),
        metric_table(results, "terms_active", "Active terms", decimals=1),
        metric_table(results, "pairs_active", "Active pairs", decimals=1),
        *_speed_tables(runs, "Raw tables"),
        metric_table(results, "predict_seconds", "Predict seconds (test rows)", 3),
        complaint_table(results),
    ]


def degradation(results: Frame) -> Frame:
    """By set, model and fold: the NLL with gaps less the NLL of the whole table; NaN if a fit failed."""
    keys = ["set", "model", "fold"]
    whole, gapped = results[results["gaps"] == 0], results[results["gaps"] > 0]
    both = gapped.merge(whole[[*keys, "nll"]], on=keys, suffixes=("_gaps", ""))
    return both.assign(degradation=both["nll_gaps"] - both["nll"])[[*keys, "degradation"]]


def missing_tables(results: Frame, runs: Frame) -> list[str]:
    """Likelihoods with and without gaps, and what the gaps cost."""
    whole, gapped = results[results["gaps"] == 0], results[results["gaps"] > 0]
    share = f"{gapped['gaps'].max():.0%}" if len(gapped) else "some"
    title = f"What {share} missing cells cost: NLL with them less NLL without"
    return [
        metric_table(whole, "nll", "Test NLL of the whole tables"),
        metric_table(gapped, "nll", f"Test NLL with {share} of the cells missing"),
        metric_table(degradation(results), "degradation", title, 4),
        *_speed_tables(runs[runs["gaps"] > 0], f"With {share} of the cells missing"),
        complaint_table(results),
    ]


def class_tables(results: Frame, runs: Frame) -> list[str]:
    """Several classes."""
    return [
        metric_table(results, "nll", "Several classes: test NLL (lower is better)", 4),
        metric_table(results, "accuracy", "Several classes: accuracy"),
        metric_table(
            results, "ece", "Several classes: calibration error of the top class, 10 bins"
        ),
        *_speed_tables(runs, "Several classes"),
        complaint_table(results),
    ]


def level_tables(results: Frame, runs: Frame) -> list[str]:
    """A column of many levels: one line a model."""
    rows = [
        [
            row.model,
            f"{row.threads:.0f}",
            number(row.fit_seconds, 2),
            number(row.extra_bytes / 2**20, 0),
            number(row.rmse, 4),
            number(row.correlation, 4),
            number(row.band_coverage),
            number(row.unseen_band_coverage),
        ]
        for row in results.itertuples()
    ]
    header = ["model", "threads", "fit s", "peak memory MiB", "test RMSE", "correlation of effects"]
    header += ["95% bands cover", "of unseen levels"]
    sizes = results.iloc[0]
    title = f"A column of {sizes['levels']:,.0f} levels, {sizes['rows']:,.0f} rows"
    if results["unseen"].notna().any():
        title += f", {results['unseen'].max():.0f} levels not among them"
    return [markdown(header, rows, title), complaint_table(results)]


def code_note(part: str, results: Frame) -> str:
    """Which commits our own rows come from, said aloud where there is more than one."""
    if "code" not in results:
        return ""
    mine = results.loc[results["model"].str.startswith("lanam"), "code"].dropna()
    versions = list(dict.fromkeys(mine))
    if not versions:
        return ""
    mixed = "; MIXED, so its figures are not of one model" if len(versions) > 1 else ""
    return f"{part}: lanam at {', '.join(versions)}{mixed}.\n"


# verdicts


def no_worse(
    results: Frame, name: str, metric: str, models: tuple[str, str], slack: float = 0.0
) -> Verdict:
    """Our mean over folds against theirs, over the folds that both were run on."""
    ours, theirs = models
    better = metric in HIGHER_IS_BETTER
    word = "at least" if better else "at most"
    allowed = f" {'-' if better else '+'} {slack}" if slack else ""
    requirement = f"{name}: {ours}'s {NAMES.get(metric, metric)} {word} {theirs}'s{allowed}"
    if metric not in results:
        return unmeasured(requirement)
    here = results[results["set"] == name]
    mine, other = (here[here["model"] == model] for model in models)
    both = mine.merge(other, on="fold", suffixes=("", "_theirs"))
    if both.empty:
        return unmeasured(requirement)
    # a failed fold must not be averaged away, and is a pass for neither side
    value, their = (both[column].mean(skipna=False) for column in (metric, f"{metric}_theirs"))
    if pd.isna(value) or pd.isna(their):
        who = ours if pd.isna(value) else theirs
        return Verdict(requirement, f"{who} failed", False if who == ours else None)
    difference = value - their
    text = f"{value:.4f} against {their:.4f} ({difference:+.4f}, {len(both)} folds)"
    return Verdict(requirement, text, bool((-difference if better else difference) <= slack))


def time_verdicts(runs: Frame, models: tuple[str, str], note: str = "") -> list[Verdict]:
    """Our fit time over theirs, set by set."""
    ours, theirs = models
    return [
        limit(
            f"{name}{note}: {ours}'s fit time over {theirs}'s <= {FASTER:.3g}",
            time_ratio(group, ours, theirs)[0],
            FASTER,
        )
        for name, group in runs.groupby("set", sort=False)
    ]


def quality_verdicts(results: Frame, runs: Frame) -> list[Verdict]:
    """Raw tables against EBM, first order and with pairs."""
    verdicts = []
    for models in (FIRST_ORDER, WITH_PAIRS):
        verdicts += [no_worse(results, "adult", m, models, SLACK) for m in ("nll", "auroc")]
        verdicts.append(no_worse(results, "bike_hour", "deviance", models))
        metrics = ("nll", "auroc", "auprc")
        verdicts += [no_worse(results, "physionet2012", metric, models) for metric in metrics]
    fits = (runs["set"] == "physionet2012") & (runs["model"] == "lanam-auto")
    seconds = runs.loc[fits & (runs["threads"] == 2), "fit_seconds"].median()
    requirement = "physionet2012: lanam-auto fits in 90 s on 2 threads"
    verdicts.append(limit(requirement, seconds, SECONDS, " s"))
    for models in (FIRST_ORDER, WITH_PAIRS):
        verdicts += time_verdicts(runs, models)
    return verdicts


def missing_verdicts(results: Frame, runs: Frame) -> list[Verdict]:
    """What gaps cost us against what they cost EBM, first order."""
    costs = degradation(results)
    sets = costs["set"].unique()
    verdicts = [no_worse(costs, name, "degradation", FIRST_ORDER) for name in sets]
    groups = costs.groupby(["set", "model"])["degradation"]
    means = groups.agg(lambda folds: folds.mean(skipna=False)).unstack()
    requirement = "missing cells: lanam's mean degradation over sets at most ebm's"
    if not set(FIRST_ORDER) <= set(means):
        verdicts.append(unmeasured(requirement))
    else:
        value, their = (means[model].mean(skipna=False) for model in FIRST_ORDER)
        text = f"{value:.4f} against {their:.4f} ({len(means)} sets)"
        verdicts.append(Verdict(requirement, text, bool(value <= their)))
    return verdicts + time_verdicts(runs[runs["gaps"] > 0], FIRST_ORDER, " with gaps")


def class_verdicts(results: Frame, runs: Frame) -> list[Verdict]:
    """Several classes against EBM."""
    verdicts = [no_worse(results, name, "nll", FIRST_ORDER) for name in results["set"].unique()]
    return verdicts + time_verdicts(runs, FIRST_ORDER)


def level_verdicts(results: Frame, runs: Frame) -> list[Verdict]:
    """A column of many levels: true bands, and EBM's error and time."""
    named = results.assign(set="levels", fold=0)
    verdicts = [no_worse(named, "levels", "rmse", FIRST_ORDER)]
    requirement = "levels: lanam's 95% bands cover 0.90 to 0.98"
    mine = results[results["model"] == "lanam"]
    if mine.empty:
        verdicts.append(unmeasured(requirement))
    else:
        cover = mine["band_coverage"].mean(skipna=False)
        text = "lanam failed" if pd.isna(cover) else f"{cover:.3f}"
        verdicts.append(Verdict(requirement, text, bool(0.90 <= cover <= 0.98)))
    return verdicts + time_verdicts(runs.assign(set="levels", fold=0), FIRST_ORDER)


Section = tuple[
    Callable[[Frame, Frame], list[str]],
    Callable[[Frame, Frame], list[Verdict]],
]
SECTIONS: dict[str, Section] = {
    "quality": (quality_tables, quality_verdicts),
    "missing": (missing_tables, missing_verdicts),
    "classes": (class_tables, class_verdicts),
    "levels": (level_tables, level_verdicts),
}
