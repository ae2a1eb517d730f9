"""Scores of the paper's experiments by set, model and fold, and the rules by which they are compared.

A fold counts only where both models have it. Every comparison goes by the sign of the metric: whatever is
called better is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.metrics import standard_error

FOLDS = 5

Scores = Mapping[str, pd.Series]  # of one set: by model, the values by fold


@dataclass(frozen=True)
class Metric:
    """A column of the results; ``theirs`` is what the paper's table calls it."""

    name: str
    title: str
    higher: bool = False
    decimals: int = 3
    theirs: str | None = None
    ranked: bool = True  # whether there is a better and a worse
    tie: float = 5e-4  # a difference of means that is none: half of the last digit shown

    @property
    def sign(self) -> int:
        return -1 if self.higher else 1

    @property
    def in_paper(self) -> str:
        return self.theirs or self.name


METRICS = (
    Metric("nll", "Test NLL (lower is better)"),
    Metric("rmse", "RMSE (lower is better)", tie=0.0),
    Metric("auroc", "AUROC (higher is better)", higher=True),
    Metric("auprc", "AUPRC (higher is better)", higher=True),
    Metric("ece", "Expected calibration error (lower is better)"),
    Metric("rbs", "Root Brier score (lower is better)"),
    Metric("qce", "Quantile calibration error (lower is better)"),
    # without bias, so that what is calibrated is below zero as often as above
    Metric(
        "skce_unit",
        "Squared kernel calibration error (an estimate; zero is calibrated)",
        theirs="skce",
        ranked=False,
    ),
    Metric("coverage90", "Coverage of 90% predictive intervals", ranked=False),
)
METRIC = {metric.name: metric for metric in METRICS}


@dataclass(frozen=True)
class Summary:
    """Mean and standard error over the folds there are, and how many failed."""

    mean: float
    se: float
    folds: int
    failed: int = 0


def complete(results: pd.DataFrame) -> pd.DataFrame:
    """The results with every column that is asked for, even where no cell has it."""
    asked = ["threads", "fit_cpu_seconds", "nll", "error", "code", "started"]
    return results.reindex(columns=list(dict.fromkeys([*results.columns, *asked])))


def part(results: pd.DataFrame, experiment: str, name: str | None = None) -> pd.DataFrame:
    """The rows of one experiment, and of one of its sets."""
    rows = results[results["experiment"] == experiment]
    return rows if name is None else rows[rows["set"] == name]


def scores(results: pd.DataFrame, metric: str) -> dict[str, dict[str, pd.Series]]:
    """By set and model, the values by fold; models without any are left out."""
    if metric not in results:
        return {}
    known = results[results[metric].notna()]
    found: dict[str, dict[str, pd.Series]] = {}
    for (name, model), rows in known.groupby(["set", "model"], sort=False):
        found.setdefault(name, {})[model] = rows.set_index("fold")[metric].astype(float)
    return found


def failures(results: pd.DataFrame) -> dict[tuple[str, str], int]:
    """By set and model, how many cells failed."""
    if "error" not in results:
        return {}
    failed = results[results["error"].notna()]
    return failed.groupby(["set", "model"], sort=False).size().to_dict()


def summarise(values: pd.Series | None, failed: int = 0) -> Summary:
    """Mean and standard error of values by fold."""
    if values is None or not len(values):
        return Summary(float("nan"), float("nan"), 0, failed)
    given = values.to_numpy()
    return Summary(float(given.mean()), standard_error(given), len(given), failed)


def on_common_folds(mine: pd.Series, theirs: pd.Series) -> tuple[Summary, Summary]:
    """Both, on the folds that both have."""
    if mine.index.equals(theirs.index):
        return summarise(mine), summarise(theirs)
    folds = mine.index.intersection(theirs.index)
    return summarise(mine.loc[folds]), summarise(theirs.loc[folds])


def difference(mine: pd.Series, theirs: pd.Series, metric: Metric) -> Summary:
    """Mine less theirs, fold by fold; below zero is better, whatever the metric."""
    return summarise(metric.sign * (mine - theirs).dropna())


def _zero(se: float) -> float:
    return 0.0 if np.isnan(se) else se


def on_par(mine: pd.Series, best: pd.Series, metric: Metric) -> bool:
    """Better, or the two means touch when each is given its standard error: the paper's bold."""
    ours, other = on_common_folds(mine, best)
    worse = metric.sign * (ours.mean - other.mean)
    return bool(worse <= max(_zero(ours.se) + _zero(other.se), metric.tie))


def beyond(mine: pd.Series, theirs: pd.Series, metric: Metric) -> int:
    """1 if better by more than the two standard errors, -1 if worse, else 0: the paper's colours."""
    ours, other = on_common_folds(mine, theirs)
    if ours.folds < 2:
        return 0
    worse = metric.sign * (ours.mean - other.mean)
    return 0 if abs(worse) <= max(ours.se + other.se, metric.tie) else -int(np.sign(worse))


def best_of(values: Scores, models: Iterable[str], metric: Metric) -> str | None:
    """The model with the best mean among those of these that have the most folds."""
    present = [model for model in models if model in values]
    if not present:
        return None
    most = max(len(values[model]) for model in present)
    complete = [model for model in present if len(values[model]) == most]
    return min(complete, key=lambda model: metric.sign * values[model].mean())
