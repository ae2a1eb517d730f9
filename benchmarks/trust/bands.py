"""Bands of known functions: do 95% bands hold the truth, point by point and as a whole; mgcv beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from benchmarks.cells import Cell, Row
from benchmarks.data.problems import AdditiveProblem
from benchmarks.markdown import MISSING, in_order, markdown, number
from benchmarks.metrics import standard_error
from benchmarks.trust import mgcv
from benchmarks.trust.curves import against_truth, own_curves
from benchmarks.trust.fits import estimator
from benchmarks.trust.problems import GU_WAHBA, Setting, gu_wahba
from benchmarks.trust.section import Plan, Section, all_within, finished, grid, guarded
from benchmarks.verdicts import Verdict, unmeasured

SETTINGS = {
    "gaussian-100": Setting("gaussian", 100),
    "gaussian-200": Setting("gaussian", 200),
    "gaussian-400": Setting("gaussian", 400),
    "gaussian-400-corr.9": Setting("gaussian", 400, correlation=0.9),
    "gaussian-2000": Setting("gaussian", 2000),
    "bernoulli-400": Setting("bernoulli", 400),
    "bernoulli-2000-corr.5": Setting("bernoulli", 2000, correlation=0.5),
    "poisson-400": Setting("poisson", 400),
    "poisson-400-over": Setting("poisson", 400, overdispersed=True),
    "t3-400": Setting("gaussian", 400, heavy=True),
}
MODELS = ("lanam", "mgcv")
FUNCTIONS = tuple(f"f{d}" for d in range(len(GU_WAHBA)))
LEAST, MOST = 0.93, 0.97
BIASED = (
    "bernoulli-400",
)  # where mgcv's bands miss the truth too: at least its coverage is asked for


def cells(plan: Plan) -> list[Cell]:
    models = MODELS if mgcv.missing() is None else MODELS[:1]
    return grid("bands", list(SETTINGS), models, plan.count(100, 5))


def measure(cells: Sequence[Cell], plan: Plan) -> Iterator[Row]:
    """mgcv fits all problems of a batch in one process."""
    setting = SETTINGS[cells[0].set]
    problems = [gu_wahba(setting, cell.fold) for cell in cells]
    if cells[0].model == "lanam":
        yield from (guarded(lambda own=own: _ours(setting, own)) for own in problems)
        return
    family = "overdispersed" if setting.overdispersed else setting.kind
    for problem, curves in zip(problems, mgcv.fit_all(problems, family), strict=True):
        failed: Row = {"error": "mgcv's fit failed"}
        yield failed if curves is None else against_truth(problem, curves)


def _ours(setting: Setting, problem: AdditiveProblem) -> Row:
    model = estimator(setting.task, interactions=0, level_effects=False)
    model.fit(problem.X, problem.y)
    active = sum(term.active for term in model.terms_)
    return against_truth(problem, own_curves(model, problem.X)) | {"active": active}


def tables(results: pd.DataFrame) -> list[str]:
    rows = finished(results)
    return [
        _table(rows, "coverage", "Pointwise coverage of 95% bands at the data"),
        _table(
            rows, "whole", "Simultaneous 95% bands: share of seeds in which they hold the function"
        ),
        _table(rows, "rmse", "RMSE of the functions at the data"),
        (
            "Gu and Wahba's four functions (example 1 of mgcv's `gamSim`; f3 is zero), centred over the "
            "data as the terms are. mgcv: REML, `select=TRUE`, `unconditional=TRUE`, `k=20`. Counts with "
            "overdispersion: rates times a gamma variable of variance 1/2; mgcv's family is quasi-Poisson. "
            "`corr` is the correlation of the columns' Gaussian copula, `t3` noise of three degrees of "
            "freedom."
        ),
    ]


def _table(rows: pd.DataFrame, figure: str, title: str) -> str:
    lines = []
    for name in in_order(rows["set"], tuple(SETTINGS)):
        for model in in_order(rows["model"], MODELS):
            own = finished(rows, model, set=name)
            if len(own):
                each = [number(own[f"{figure}_{f}"].mean()) for f in FUNCTIONS]
                error = standard_error(own[figure].to_numpy())
                mean = f"{own[figure].mean():.3f}" + ("" if np.isnan(error) else f" ± {error:.3f}")
                lines.append([name, model, str(len(own)), *each, mean])
    return markdown(["setting", "model", "seeds", *FUNCTIONS, "mean"], lines, title)


def targets(results: pd.DataFrame) -> list[Verdict]:
    """Every setting: coverage of each function, and the RMSE beside mgcv's."""
    judged = []
    for name in SETTINGS:
        ours, theirs = (finished(results, model, set=name) for model in MODELS)
        for figure, what in (("coverage", "pointwise"), ("whole", "simultaneous")):
            means = [ours[f"{figure}_{f}"].mean() if len(ours) else np.nan for f in FUNCTIONS]
            if name in BIASED:
                judged.append(_at_least_theirs(name, what, figure, ours, theirs))
                continue
            judged.append(
                all_within(f"{name}, {what}: every function .93 to .97", means, LEAST, MOST)
            )
        judged.append(_error(name, ours, theirs))
    return judged


def _at_least_theirs(
    name: str, what: str, figure: str, ours: pd.DataFrame, theirs: pd.DataFrame
) -> Verdict:
    requirement = f"{name}, {what}: every function at least as often as mgcv's"
    if ours.empty or theirs.empty:
        return unmeasured(requirement)
    pairs = [(ours[f"{figure}_{f}"].mean(), theirs[f"{figure}_{f}"].mean()) for f in FUNCTIONS]
    shown = ", ".join(f"{own:.3f} / {their:.3f}" for own, their in pairs)
    return Verdict(requirement, shown, all(own >= their for own, their in pairs))


def _error(name: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> Verdict:
    requirement = f"{name}: mean RMSE of the functions no worse than mgcv's"
    both = pd.merge(ours, theirs, on="fold", suffixes=("", "_mgcv")) if len(theirs) else ours[:0]
    if both.empty:
        return unmeasured(requirement)
    own, their = both["rmse"], both["rmse_mgcv"]
    error = standard_error((own - their).to_numpy())
    spread = MISSING if np.isnan(error) else f"{error:.4f}"
    shown = f"{own.mean():.4f} / {their.mean():.4f}, difference ± {spread}"
    return Verdict(requirement, shown, bool(own.mean() <= their.mean()))


SECTION = Section("bands", "Bands of known functions", cells, measure, tables, targets, batch=10)
