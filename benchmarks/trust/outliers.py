"""Outliers and rare categories: Ames, and gross errors in the responses of five regression sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.cells import Cell, Row
from benchmarks.data.sets import Dataset
from benchmarks.markdown import in_order, markdown, number, plus_minus
from benchmarks.metrics import standard_error
from benchmarks.peers import Fitted, Prediction, all_peers
from benchmarks.trust.scores import load, measure_fold, split, there
from benchmarks.trust.section import Plan, Section, finished, one_by_one, within
from benchmarks.verdicts import Verdict, unmeasured

AMES = ("lanam", "lanam-auto", "ebm", "ebm-pairs", "lightgbm", "catboost")
CONTAMINATED = ("autompg", "concrete", "energy", "wine", "yacht")
MODELS = ("lanam-auto", "lanam", "lightgbm")
SHARES = (0, 1, 5, 10)  # per cent of the training rows
FOLDS = 5
GROSS = (10.0, 20.0)  # standard deviations from the mean, to either side
CATBOOST = 1.05  # the stretch: times CatBoost's RMSE
#: RMSE of Ames when the targets were set; the peers of a run may be other versions.
GIVEN = {"lightgbm": 28_284.0, "catboost": 25_490.0}


def set_name(name: str, share: int) -> str:
    return f"{name}-{share:02d}"


def cells(plan: Plan) -> list[Cell]:
    folds = plan.count(FOLDS, 1)
    present = {name for name in {*AMES, *MODELS} if all_peers()[name].missing() is None}
    made = [("ames", model) for model in AMES if model != "ebm-pairs" or not plan.quick]
    sets = CONTAMINATED[-1:] if plan.quick else CONTAMINATED
    made += [(set_name(s, share), model) for s in sets for share in SHARES for model in MODELS]
    return [
        Cell("outliers", name, model, fold)
        for name, model in made
        if model in present and there(plan.data, name.split("-")[0])
        for fold in range(folds)
    ]


def contaminated(dataset: Dataset, train: np.ndarray, share: float, seed: int) -> Dataset:
    """The set with a share of its training responses replaced: far from the mean, to either side."""
    rng = np.random.default_rng([seed, round(1000 * share)])
    chosen = rng.choice(train, round(share * len(train)), replace=False)
    y = dataset.y.copy()
    distance = rng.uniform(*GROSS, len(chosen)) * rng.choice([-1.0, 1.0], len(chosen))
    y[chosen] = dataset.y[train].mean() + distance * dataset.y[train].std()
    return replace(dataset, y=y)


def measure(cell: Cell, plan: Plan) -> Row:
    assert plan.data is not None
    if cell.set == "ames":
        return measure_range(load(plan.data, "ames"), cell, plan.threads)
    name, share = cell.set.rsplit("-", 1)
    dataset = load(plan.data, name)
    train, _ = split(dataset, cell.fold)
    return measure_fold(
        contaminated(dataset, train, int(share) / 100, cell.fold),
        cell.fold,
        cell.model,
        plan.threads,
    )


def measure_range(dataset: Dataset, cell: Cell, threads: int) -> Row:
    """Scores, and the number of predictions outside the training range extended by half of it."""
    train, _ = split(dataset, cell.fold)

    def outside(fitted: Fitted, prediction: Prediction) -> Row:
        lower, upper = allowed_range(dataset.y[train])
        return {"outside": int(np.sum((prediction.mean < lower) | (prediction.mean > upper)))}

    return measure_fold(dataset, cell.fold, cell.model, threads, outside)


def allowed_range(y: np.ndarray) -> tuple[float, float]:
    """The range of the responses, extended by half of it on both sides."""
    margin = (y.max() - y.min()) / 2
    return float(y.min() - margin), float(y.max() + margin)


def tables(results: pd.DataFrame) -> list[str]:
    rows = finished(results)
    lines = []
    ames = rows[rows["set"] == "ames"]
    for model in in_order(ames["model"], AMES):
        own = finished(ames, model)
        scores = [plus_minus(own["rmse"], 0), plus_minus(own["nll"])]
        counts = [number(own["coverage"].mean()), str(int(own["outside"].sum()))]
        lines.append([model, str(len(own)), *scores, *counts])
    header = ["model", "folds", "RMSE", "NLL", "coverage of 95%", "predictions out of range"]
    legend = (
        "Out of range: beyond the range of the training responses extended by half of it. `lanam` has no "
        "interactions, `lanam-auto` is the default; `ebm` has none, `ebm-pairs` is its default."
    )
    further = (
        "Training responses are replaced by values 10 to 20 standard deviations from the mean, to either "
        "side; test rows are clean. Change of the RMSE relative to that without errors, mean over folds."
    )
    known = rises(rows)
    return [
        markdown(header, lines, "Ames house prices") if lines else "",
        legend if lines else "",
        _rise_table(known) if len(known) else "",
        further if len(known) else "",
    ]


def rises(rows: pd.DataFrame) -> pd.DataFrame:
    """By set, model and share: the relative change of the RMSE, fold by fold."""
    parts = rows[rows["set"] != "ames"].copy()
    if parts.empty:
        return pd.DataFrame()
    parts[["name", "share"]] = parts["set"].str.rsplit("-", n=1, expand=True)
    parts["share"] = parts["share"].astype(int)
    clean = parts[parts["share"] == 0][["name", "model", "fold", "rmse"]]
    both = parts[parts["share"] > 0].merge(
        clean, on=["name", "model", "fold"], suffixes=("", "_clean")
    )
    return both.assign(rise=both["rmse"] / both["rmse_clean"] - 1)


def rise_of(known: pd.DataFrame, name: str, share: int, model: str) -> pd.Series:
    """The rises of a set, share and model, a fold each."""
    if known.empty:
        return pd.Series(dtype=float)
    chosen = (known["name"] == name) & (known["share"] == share) & (known["model"] == model)
    return known.loc[chosen, "rise"]


def _rise_table(known: pd.DataFrame) -> str:
    models, lines = in_order(known["model"], MODELS), []
    for name in in_order(known["name"], CONTAMINATED):
        for share in SHARES[1:]:
            figures = []
            for model in models:
                own = rise_of(known, name, share, model)
                error = standard_error(own.to_numpy())
                spread = "" if np.isnan(error) else f" ± {error:.1%}"
                figures.append(f"{own.mean():+.1%}{spread}" if len(own) else "-")
            lines.append([f"{name}, {share}%", *figures])
    return markdown(["gross errors", *models], lines, "Gross errors in the responses")


def targets(results: pd.DataFrame) -> list[Verdict]:
    return [*_ames_targets(results), *_rise_targets(rises(finished(results)))]


def _ames_targets(results: pd.DataFrame) -> list[Verdict]:
    def mean(model: str, column: str) -> float:
        own = finished(results, model, set="ames")
        return float(own[column].mean()) if len(own) else np.nan

    ours, light, cat = (
        {c: mean(m, c) for c in ("rmse", "nll")} for m in ("lanam-auto", *AMES[-2:])
    )
    light_rmse, cat_rmse = (
        min(one["rmse"], GIVEN[name]) if not np.isnan(one["rmse"]) else np.nan
        for one, name in ((light, "lightgbm"), (cat, "catboost"))
    )
    stretch = f"Ames, stretch: RMSE at most {CATBOOST} times CatBoost's"
    least = float(np.min([light["nll"], cat["nll"]]))
    own = finished(results, "lanam-auto", set="ames")
    outside = float(own["outside"].sum()) if len(own) else np.nan
    return [
        _most("Ames: RMSE at most LightGBM's", ours["rmse"], light_rmse, 0),
        _most(stretch, ours["rmse"], CATBOOST * cat_rmse, 0),
        _most("Ames: NLL below LightGBM's and CatBoost's", ours["nll"], least, 3),
        within("Ames: no prediction out of range", outside, most=0.0, digits=0),
        within("Ames: coverage .93 to .97", mean("lanam-auto", "coverage"), 0.93, 0.97),
    ]


def _most(what: str, value: float, limit: float, digits: int) -> Verdict:
    if np.isnan(value) or np.isnan(limit):
        return unmeasured(what)
    return Verdict(what, f"{value:,.{digits}f} / {limit:,.{digits}f}", bool(value <= limit))


def _rise_targets(known: pd.DataFrame) -> list[Verdict]:
    judged = []
    for name in CONTAMINATED:
        for share in SHARES[1:]:
            what = f"{name}, {share}% gross errors: RMSE rises less than LightGBM's"
            what += " and by less than 10%" if share == 5 else ""
            own, light = (rise_of(known, name, share, m).mean() for m in (MODELS[0], "lightgbm"))
            if np.isnan(own) or np.isnan(light):
                judged.append(unmeasured(what))
                continue
            holds = own < light and (share != 5 or own < 0.10)
            judged.append(Verdict(what, f"{own:+.1%} / {light:+.1%}", bool(holds)))
    return judged


SECTION = Section(
    "outliers",
    "Outliers and rare categories",
    cells,
    one_by_one(measure),
    tables,
    targets,
    needs_data=True,
)
