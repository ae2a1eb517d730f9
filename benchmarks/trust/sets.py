"""The data sets: NLL, error and coverage without and with interactions, peers beside; before and after."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.cells import Cell, Row
from benchmarks.environment import say
from benchmarks.markdown import in_order, markdown, number, plus_minus
from benchmarks.metrics import standard_error
from benchmarks.peers import all_peers
from benchmarks.trust.scores import SETS, SMALL_SETS, folds_for, load, measure_fold, there
from benchmarks.trust.section import Plan, Section, finished, one_by_one
from benchmarks.verdicts import Verdict

OURS = ("lanam", "lanam-auto")
MODELS = (*OURS, "ebm", "lightgbm", "catboost")
FOLDS = 5
COMPARED = ("nll", "rmse")


def set_cells(plan: Plan, models: tuple[str, ...]) -> list[Cell]:
    """All sets that are there, all folds; with ``quick`` one fold of the smallest."""
    present = [name for name in models if all_peers()[name].missing() is None]
    names = SMALL_SETS if plan.quick else SETS
    for name in (n for n in names if not there(plan.data, n)):
        say(f"SKIPPED {name}: --data has no such file")
    folds = plan.count(FOLDS, 1)
    return [
        Cell("sets", name, model, fold)
        for name in names
        if there(plan.data, name)
        for fold in range(folds_for(name, folds))
        for model in present
    ]


def cells(plan: Plan) -> list[Cell]:
    return set_cells(plan, MODELS)


def measure(cell: Cell, plan: Plan) -> Row:
    assert plan.data is not None
    return measure_fold(load(plan.data, cell.set), cell.fold, cell.model, plan.threads)


def tables(results: pd.DataFrame) -> list[str]:
    titles = {
        "nll": "NLL of test rows",
        "rmse": "RMSE of test rows",
        "coverage": "Coverage of 95% prediction intervals",
    }
    return [
        *(_table(finished(results), column, title) for column, title in titles.items()),
        "`lanam`: no interactions; `lanam-auto`: as many as the data support, the default.",
    ]


def _table(rows: pd.DataFrame, column: str, title: str) -> str:
    if column not in rows or rows[column].isna().all():
        return ""
    models, lines = in_order(rows["model"], MODELS), []
    for name in in_order(rows[rows[column].notna()]["set"], SETS):
        own = [finished(rows, model, set=name)[column] for model in models]
        lines.append([name, *(plus_minus(values) for values in own)])
    return markdown(["set", *models], lines, title)


def targets(results: pd.DataFrame) -> list[Verdict]:
    """None of its own: what is asked for is a comparison with an earlier run (``--compare``)."""
    return []


def compare(results: pd.DataFrame, earlier: pd.DataFrame) -> str:
    """Paired differences from an earlier run, and whether one is worse by half a standard error."""
    keys = ["set", "model", "fold"]
    both = finished(results).merge(finished(earlier), on=keys, suffixes=("", "_before"))
    lines = []
    for name in in_order(both["set"], SETS):
        for model in in_order(both["model"], OURS):
            own = both[(both["set"] == name) & (both["model"] == model)]
            lines += [_paired(name, model, own, column) for column in COMPARED if len(own)]
    header = ["set", "model", "score", "folds", "before", "now", "difference", "allowed", "verdict"]
    legend = (
        "Differences are paired by fold, ± their standard error; negative is better. Allowed is half the "
        "standard error of the earlier figure: over folds, or over test rows where there is one split."
    )
    shown = [line for line in lines if line]
    return f"{markdown(header, shown, 'Against the earlier run')}\n{legend}\n" if shown else ""


def _paired(name: str, model: str, own: pd.DataFrame, column: str) -> list[str]:
    if column not in own or own[column].isna().all():
        return []
    now, before = own[column], own[f"{column}_before"]
    difference = (now - before).to_numpy()
    allowed = standard_error(before.to_numpy()) / 2
    if np.isnan(allowed) and column == "nll" and "nll_se_before" in own:
        allowed = float(own["nll_se_before"].iloc[0]) / 2
    worse = difference.mean() > allowed
    error = standard_error(difference)
    spread = "" if np.isnan(error) else f" ± {error:.4f}"
    verdict = "-" if np.isnan(allowed) else "**worse**" if worse else "met"
    figures = [number(before.mean(), 4), number(now.mean(), 4)]
    shown = f"{difference.mean():+.4f}{spread}"
    return [name, model, column, str(len(own)), *figures, shown, number(allowed, 4), verdict]


SECTION = Section(
    "sets", "The data sets", cells, one_by_one(measure), tables, targets, needs_data=True
)
