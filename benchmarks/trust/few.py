"""Few rows: predictive intervals of models of 10 to 50 rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks import metrics
from benchmarks.cells import Cell, Row
from benchmarks.markdown import in_order, markdown, number
from benchmarks.metrics import standard_error
from benchmarks.trust.fits import ard, coverage_of, estimator, gaussian_scores
from benchmarks.trust.problems import FEW, few_problem
from benchmarks.trust.section import Plan, Section, finished, grid, one_by_one, within
from benchmarks.verdicts import Verdict

ROWS = (10, 15, 20, 30, 50)
MODELS = ("lanam", "ard")
SETS = {f"{name}-{rows}": (name, rows) for name in FEW for rows in ROWS}
FRESH = 1000
LEAST = 0.93


def cells(plan: Plan) -> list[Cell]:
    return grid("few", list(SETS), MODELS, plan.count(100, 10))


def measure(cell: Cell, plan: Plan) -> Row:
    name, rows = SETS[cell.set]
    X, y, X_new, y_new = few_problem(name, rows, FRESH, cell.fold)
    if cell.model == "ard":
        mean, std, _ = ard(X, y, X_new)
        return gaussian_scores(y_new, mean, std)
    model = estimator("regression").fit(X, y)
    return {
        "coverage": coverage_of(model, X_new, y_new),
        "nll": -model.log_likelihood(X_new, y_new),
        "rmse": metrics.rmse(y_new, model.predict(X_new)),
        "noise": float(model.noise_std_) / FEW[name].noise,
        "active": sum(term.active for term in model.terms_),
    }


def tables(results: pd.DataFrame) -> list[str]:
    rows, lines = finished(results), []
    for name in in_order(rows["set"], tuple(SETS)):
        for model in MODELS:
            own = finished(rows, model, set=name)
            if len(own):
                error = standard_error(own["coverage"].to_numpy())
                spread = "" if np.isnan(error) else f" ± {error:.3f}"
                lines.append(
                    [
                        name,
                        model,
                        str(len(own)),
                        f"{own['coverage'].mean():.3f}{spread}",
                        number(own["coverage"].quantile(0.05)),
                        number(own["nll"].median()),
                        number(own["noise"].mean() if "noise" in own else np.nan, 2),
                    ]
                )
    header = [
        "rows",
        "model",
        "seeds",
        "coverage",
        "of the worst 5%",
        "median NLL",
        "noise sd / true",
    ]
    legend = (
        "Coverage of 95% prediction intervals on 1,000 fresh rows; columns are uniform on [-1, 1]. "
        "*line*: x plus noise of sd 0.5; *sine*: sin(3x), noise 0.3; *three*: x0 + x1^2 and a column "
        "without effect, noise 0.3; *null*: two columns without effect, noise 1."
    )
    return [markdown(header, lines, "Prediction intervals with few rows"), legend]


def targets(results: pd.DataFrame) -> list[Verdict]:
    judged = []
    for rows in ROWS:
        means = [finished(results, "lanam", set=f"{name}-{rows}") for name in FEW]
        coverage = [own["coverage"].mean() if len(own) else np.nan for own in means]
        least = np.nan if np.isnan(coverage).any() else min(coverage)
        judged.append(
            within(f"{rows} rows: coverage of every generator at least {LEAST}", least, LEAST)
        )
    return judged


SECTION = Section("few", "Few rows", cells, one_by_one(measure), tables, targets, batch=20)
