"""Wide tables: nothing to learn in many columns, and three real columns among a hundred."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.stats

from benchmarks import metrics
from benchmarks.cells import Cell, Row
from benchmarks.data.sets import Array
from benchmarks.markdown import in_order, markdown, number
from benchmarks.trust.fits import (
    active_columns,
    ard,
    class_share,
    count_share,
    coverage_of,
    estimator,
    gaussian_scores,
)
from benchmarks.trust.problems import RATE, REAL, TASKS, noise_problem, real_problem
from benchmarks.trust.section import Plan, Section, finished, grid, one_by_one, within
from benchmarks.verdicts import Verdict, unmeasured

SIZES = ((60, 30), (100, 50), (100, 100), (150, 200), (300, 200), (1000, 200))
QUICK = SIZES[:3]
REAL_SIZE = (150, 100)
FRESH = 2000
LARGE_COEFFICIENT = 1e-3  # of ARDRegression, which prunes most of its columns exactly


def noise_name(kind: str, rows: int, columns: int) -> str:
    return f"{kind}-{rows}x{columns}"


NOISE = {noise_name(kind, *size): (kind, *size) for kind in TASKS for size in SIZES}
THREE = f"three-real-{REAL_SIZE[0]}x{REAL_SIZE[1]}"


def cells(plan: Plan) -> list[Cell]:
    seeds, sizes = plan.count(20, 3), QUICK if plan.quick else SIZES
    names = [noise_name(kind, *size) for kind in TASKS for size in sizes]
    # ARDRegression has one likelihood, and the best that can be done has a closed form for it.
    return [
        *grid("wide", [THREE, *names], ("lanam",), seeds),
        *grid("wide", [THREE, *(n for n in names if n.startswith("gaussian"))], ("ard",), seeds),
        *grid("wide", [n for n in names if n.startswith("gaussian")], ("mean",), seeds),
    ]


def measure(cell: Cell, plan: Plan) -> Row:
    if cell.set == THREE:
        return measure_real(cell, *REAL_SIZE)
    kind, rows, columns = NOISE[cell.set]
    return measure_noise(cell, kind, rows, columns)


def measure_noise(cell: Cell, kind: str, rows: int, columns: int) -> Row:
    """Coverage of fresh rows, active columns, and the log score beside that of the truth."""
    X, y, X_new, y_new = noise_problem(kind, rows, columns, FRESH, cell.fold)
    if cell.model == "ard":
        return _ard(X, y, X_new, y_new) | {"excess": np.nan}
    if cell.model == "mean":
        return _mean_alone(y, y_new)
    model = estimator(TASKS[kind], interactions=0).fit(X, y)
    row: Row = {"active": len(active_columns(model)), "converged": bool(model.converged_)}
    row["excess"] = -model.log_likelihood(X_new, y_new) - _null_nll(kind, y_new)
    if kind == "gaussian":
        row |= {"coverage": coverage_of(model, X_new, y_new), "noise": float(model.noise_std_)}
    elif kind == "poisson":
        row |= {
            "coverage": count_share(model, X_new, y_new),
            "interval": coverage_of(model, X_new, y_new),
        }
    else:
        probability = model.predict_proba(X_new)[:, 1]
        lower, upper = model.predict_interval(X_new).T
        row |= {
            "coverage": class_share(probability, y_new),
            "interval": float(np.mean((lower <= 0.5) & (upper >= 0.5))),
            "confidence": float(np.mean(np.maximum(probability, 1 - probability))),
        }
    return row


def _null_nll(kind: str, y: Array) -> float:
    """NLL of the distribution that made the response."""
    if kind == "gaussian":
        return metrics.gaussian_nll(y, np.zeros(len(y)), np.ones(len(y)))
    if kind == "bernoulli":
        return float(np.log(2.0))
    return metrics.count_nll(y, np.full(len(y), RATE), 1.0)


def _mean_alone(y: Array, y_new: Array) -> Row:
    """Student's interval from the responses alone, as if it were known that columns say nothing."""
    scale = y.std(ddof=1)
    half = scipy.stats.t.ppf(0.975, len(y) - 1) * scale * np.sqrt(1.0 + 1.0 / len(y))
    inside = np.abs(y_new - y.mean()) <= half
    return {"active": 0, "noise": float(scale), "coverage": float(inside.mean()), "excess": np.nan}


def _ard(X: Array, y: Array, X_new: Array, y_new: Array, n_real: int = 0) -> Row:
    mean, std, model = ard(X, y, X_new)
    active = set(np.flatnonzero(np.abs(model.coef_) > LARGE_COEFFICIENT))
    scores = gaussian_scores(y_new, mean, std)
    return scores | {"noise": float(model.alpha_**-0.5)} | _found(active, n_real)


def _found(active: set[int], n_real: int) -> Row:
    real = set(range(n_real))
    return {"found": len(active & real), "active": len(active - real)}


def measure_real(cell: Cell, rows: int, columns: int) -> Row:
    """Which of the real columns are found, which others, the noise and the coverage of fresh rows."""
    X, y, X_new, y_new = real_problem(rows, columns, FRESH, cell.fold)
    if cell.model == "ard":
        return _ard(X, y, X_new, y_new, len(REAL))
    model = estimator("regression", interactions=0).fit(X, y)
    return {
        **_found(active_columns(model), len(REAL)),
        "noise": float(model.noise_std_),
        "coverage": coverage_of(model, X_new, y_new),
        "rmse": metrics.rmse(y_new, model.predict(X_new)),
        "converged": bool(model.converged_),
    }


def tables(results: pd.DataFrame) -> list[str]:
    rows = finished(results)
    return [
        _noise_table(rows),
        (
            "Coverage of 95% intervals on 2,000 fresh rows. Of counts and classes, whose intervals hold "
            "more than they promise because values are whole, the share of rows in the central 95% of the "
            "randomised probability integral transform: 95% for a model that is right. *interval*: plain "
            "coverage of counts; of classes, the share of rows whose 95% credible interval of the "
            "probability holds the true 1/2 (the intercept's error is the same in all rows, so it varies "
            "from seed to seed). *mean*: Student's interval from the responses alone, without any column: "
            "the noise of few rows is an estimate, so that some seeds cover less whatever the model. "
            "*excess NLL*: that of fresh rows less that of the truth."
        ),
        _real_table(rows),
    ]


def _noise_table(rows: pd.DataFrame) -> str:
    lines = []
    for name in in_order(rows["set"], tuple(NOISE)):
        for model in ("lanam", "ard", "mean") if name != THREE else ():
            own = finished(rows, model, set=name)
            if len(own):
                lines.append(
                    [
                        name,
                        model,
                        str(len(own)),
                        number(own["coverage"].mean()),
                        number(own["coverage"].min()),
                        number(own["active"].mean(), 1),
                        _mean(own, "noise", 2),
                        _mean(own, "excess", 4),
                        _mean(own, "interval", 3),
                    ]
                )
    header = [
        "pure noise",
        "model",
        "seeds",
        "coverage",
        "least",
        "active",
        "noise sd",
        "excess NLL",
    ]
    return markdown([*header, "interval"], lines, "Pure noise")


def _mean(own: pd.DataFrame, column: str, decimals: int) -> str:
    return number(own[column].mean() if column in own else np.nan, decimals)


def _real_table(rows: pd.DataFrame) -> str:
    lines = []
    for model in ("lanam", "ard"):
        own = finished(rows, model, set=THREE)
        if len(own):
            lines.append(
                [
                    model,
                    str(len(own)),
                    f"{int((own['found'] == len(REAL)).sum())} of {len(own)}",
                    number(own["found"].mean(), 2),
                    number(own["active"].mean(), 1),
                    f"{own['noise'].mean():.3f} ({own['noise'].min():.2f} to {own['noise'].max():.2f})",
                    f"{own['coverage'].mean():.3f} ({own['coverage'].min():.3f})",
                    number(own["rmse"].mean()),
                ]
            )
    header = ["model", "seeds", "all three found", "found", "false", "noise sd (true: 1)"]
    title = f"Three real columns of {REAL_SIZE[1]}, {REAL_SIZE[0]} rows"
    return markdown([*header, "coverage (least)", "RMSE (best: 1)"], lines, title)


def targets(results: pd.DataFrame) -> list[Verdict]:
    judged = [_noise_verdict(name, finished(results, "lanam", set=name)) for name in NOISE]
    own = finished(results, "lanam", set=THREE)
    found = float((own["found"] == len(REAL)).mean()) if len(own) else np.nan
    noise, coverage = (own[c].mean() if len(own) else np.nan for c in ("noise", "coverage"))
    return [
        *judged,
        within(f"{THREE}: all three found in 95% of the seeds", found, 0.95),
        within(f"{THREE}: mean noise sd within 10%", noise, 0.9, 1.1),
        within(f"{THREE}: mean coverage at least .92", coverage, 0.92),
    ]


def _noise_verdict(name: str, own: pd.DataFrame) -> Verdict:
    requirement = f"{name}: coverage .93 to .97, every seed at least .90; at most 1 column active"
    if own.empty:
        return unmeasured(requirement)
    mean, least, active = own["coverage"].mean(), own["coverage"].min(), own["active"].mean()
    holds = 0.93 <= mean <= 0.97 and least >= 0.90 and active <= 1.0
    return Verdict(requirement, f"{mean:.3f}, least {least:.3f}, {active:.1f} active", bool(holds))


SECTION = Section("wide", "Wide tables", cells, one_by_one(measure), tables, targets, batch=10)
