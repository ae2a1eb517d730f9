"""Insurance claims: frequency, severity and pure premium, with peers beside.

``python -m benchmarks.claims --data DIR`` reads ``DIR/claims/ausprivauto0405.csv.gz`` (67,856 policies),
fits every model to the training rows of each fold, and writes tidy results and a table of their means to
``--out``. Deviances are per unit of exposure (severity: per claim), of the problem's own distribution.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

from benchmarks.environment import describe, say

FEATURES = ("VehValue", "VehAge", "VehBody", "Gender", "DrivAge")
CATEGORIES = FEATURES[1:]


@dataclass(frozen=True)
class Problem:
    """What is predicted: rates ``y`` with weights, and the power of their deviance."""

    name: str
    power: float
    X: pd.DataFrame
    y: np.ndarray
    weight: np.ndarray
    #: likelihoods of lanam, which is given the totals over their exposure where there is one
    likelihoods: tuple[str, ...]
    exposed: bool

    def rows(self, index: np.ndarray) -> Problem:
        """Some of the rows."""
        parts = self.X.iloc[index], self.y[index], self.weight[index]
        return Problem(self.name, self.power, *parts, self.likelihoods, self.exposed)


def problems(table: pd.DataFrame) -> list[Problem]:
    """The three problems of a table of policies."""
    X = table[list(FEATURES)].astype(dict.fromkeys(CATEGORIES, "category"))
    exposure, number = table["Exposure"].to_numpy(), table["ClaimNb"].to_numpy()
    amount = table["ClaimAmount"].to_numpy()
    some = np.flatnonzero(number > 0)
    each = amount[some] / number[some]
    counts = ("poisson", "negative_binomial")
    weight = number[some].astype(float)
    return [
        Problem("frequency", 1.0, X, number / exposure, exposure, counts, True),
        Problem("severity", 2.0, X.iloc[some], each, weight, ("gamma", "lognormal"), False),
        Problem("pure premium", 1.5, X, amount / exposure, exposure, ("tweedie",), True),
    ]


def deviance(y: np.ndarray, mean: np.ndarray, weight: np.ndarray, power: float) -> float:
    """The mean Tweedie deviance of a power: 1 is Poisson's, 2 Gamma's."""
    if power == 1.0:
        logs = np.log(np.where(y > 0.0, y / mean, 1.0))
        each = 2.0 * (y * logs - y + mean)
    elif power == 2.0:
        each = 2.0 * (y / mean - 1.0 - np.log(y / mean))
    else:
        p = power
        each = 2.0 * (
            y ** (2.0 - p) / ((1.0 - p) * (2.0 - p))
            - y * mean ** (1.0 - p) / (1.0 - p)
            + mean ** (2.0 - p) / (2.0 - p)
        )
    return float(np.average(each, weights=weight))


#: From rows to predicted rates.
Predict = Callable[[Problem], np.ndarray]


def fit_lanam(train: Problem, likelihood: str) -> tuple[Any, Predict]:
    """Our model, and its predictions."""
    from lanam import LANAMRegressor

    model = LANAMRegressor(likelihood=likelihood, random_state=0, n_jobs=1)
    if train.exposed:
        model.fit(train.X, np.round(train.y * train.weight, 6), exposure=train.weight)
    else:
        model.fit(train.X, train.y, sample_weight=train.weight)
    return model, lambda rows: model.predict(rows.X)


def covered(model: Any, test: Problem) -> float:
    """The share of rows whose probability, at random within an atom, lies between .05 and .95."""
    given = {"exposure": test.weight} if test.exposed else {}
    y = np.round(test.y * test.weight, 6) if test.exposed else test.y
    upto = model.predict_cdf(test.X, y, **given)
    below = np.where(y == 0.0, 0.0, upto)
    if model.family_.discrete:
        below = model.predict_cdf(test.X, y - 1.0, **given)
    chance = below + np.random.default_rng(0).uniform(size=len(y)) * (upto - below)
    return float(((chance >= 0.05) & (chance <= 0.95)).mean())


def fit_glum(train: Problem) -> Predict:
    """A GLM with straight lines and an effect per category, lightly penalised."""
    from glum import GeneralizedLinearRegressor, TweedieDistribution

    family = {1.0: "poisson", 2.0: "gamma"}.get(train.power, TweedieDistribution(train.power))
    model = GeneralizedLinearRegressor(family=family, alpha=1e-4, l1_ratio=0.0, link="log")
    model.fit(train.X, train.y, sample_weight=train.weight)
    return lambda rows: np.asarray(model.predict(rows.X))


def fit_lightgbm(train: Problem) -> Predict:
    """Trees with early stopping on an eighth of the rows."""
    import lightgbm

    objective = {1.0: "poisson", 2.0: "gamma"}.get(train.power, "tweedie")
    held = np.random.default_rng(0).uniform(size=len(train.y)) < 0.125
    model = lightgbm.LGBMRegressor(
        objective=objective,
        n_estimators=2000,
        learning_rate=0.02,
        num_leaves=8,
        tweedie_variance_power=train.power if objective == "tweedie" else 1.5,
        n_jobs=1,
        verbose=-1,
        random_state=0,
    )
    own, stop = train.rows(np.flatnonzero(~held)), train.rows(np.flatnonzero(held))
    model.fit(
        own.X,
        own.y,
        sample_weight=own.weight,
        eval_set=[(stop.X, stop.y)],
        eval_sample_weight=[stop.weight],
        callbacks=[lightgbm.early_stopping(50, verbose=False)],
    )
    return lambda rows: np.asarray(model.predict(rows.X))


def fit_ebm(train: Problem) -> Predict:
    """EBM with the problem's deviance."""
    from interpret.glassbox import ExplainableBoostingRegressor

    objective = {1.0: "poisson_deviance", 2.0: "gamma_deviance"}.get(
        train.power, f"tweedie_deviance:variance_power={train.power}"
    )
    model = ExplainableBoostingRegressor(objective=objective, random_state=0, n_jobs=1)
    model.fit(train.X, train.y, sample_weight=train.weight)
    return lambda rows: np.asarray(model.predict(rows.X))


PEERS = {"ebm": fit_ebm, "lightgbm": fit_lightgbm, "glum": fit_glum}


def measure(
    problem: Problem, fold: int, train: Problem, test: Problem, model: str
) -> dict[str, Any]:
    """One row of the results."""
    began = time.perf_counter()
    own = None
    if model in PEERS:
        predict = PEERS[model](train)
    else:
        own, predict = fit_lanam(train, model.removeprefix("lanam "))
    seconds = time.perf_counter() - began
    mean = predict(test)
    row = {"problem": problem.name, "model": model, "fold": fold, "seconds": seconds}
    row["deviance"] = deviance(test.y, mean, test.weight, problem.power)
    row["coverage"] = np.nan if own is None else covered(own, test)
    for name, rows in (("train", train), ("test", test)):
        row[f"{name} total"] = float(predict(rows) @ rows.weight / (rows.y @ rows.weight))
    return row


def run(options: argparse.Namespace) -> pd.DataFrame:
    """Every model on every fold; the rows are kept after each."""
    table = pd.read_csv(options.data / "claims" / "ausprivauto0405.csv.gz")
    table = table.iloc[: options.rows]
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "claims.csv"
    rows = pd.read_csv(kept).to_dict("records") if kept.exists() else []
    rows = [row for row in rows if row["problem"] not in options.problems]
    for problem in (each for each in problems(table) if each.name in options.problems):
        models = [f"lanam {name}" for name in problem.likelihoods] + list(PEERS)
        folds = KFold(5, shuffle=True, random_state=0).split(problem.X)
        for fold, (train, test) in list(enumerate(folds))[: options.folds]:
            for model in models:
                rows.append(measure(problem, fold, problem.rows(train), problem.rows(test), model))
                say(f"{problem.name} fold {fold} {model}: {rows[-1]['deviance']:.4f}")
                pd.DataFrame(rows).to_csv(kept, index=False)
    return pd.DataFrame(rows)


def report(results: pd.DataFrame, conditions: str) -> str:
    """The table of means over the folds, with the standard error of the difference to our first model."""
    lines = [conditions, ""]
    lines.append(
        "| problem | model | deviance | difference to lanam (s.e.) | 90% coverage | total, training | "
        "total, test | seconds |"
    )
    lines.append("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for problem, group in results.groupby("problem", sort=False):
        first = group[group["model"] == group["model"].iloc[0]].set_index("fold")["deviance"]
        for model, rows in group.groupby("model", sort=False):
            means = rows.mean(numeric_only=True)
            differences = rows.set_index("fold")["deviance"] - first
            error = differences.std(ddof=1) / np.sqrt(len(differences))
            against = "" if not differences.any() else f"{differences.mean():+.4f} ({error:.4f})"
            coverage = "" if np.isnan(means["coverage"]) else f"{means['coverage']:.3f}"
            lines.append(
                f"| {problem} | {model} | {means['deviance']:.4f} | {against} | {coverage} | "
                f"{means['train total']:.3f} | {means['test total']:.3f} | {means['seconds']:.1f} |"
            )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claims", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="directory of the folders of data sets")
    add("--folds", type=int, default=5, help="how many of the five folds to run")
    add("--rows", type=int, default=None, help="only the first rows; all by default")
    add("--problems", nargs="+", default=["frequency", "severity", "pure premium"])
    add("--out", type=Path, default=Path("results") / "claims", help="directory for CSV and report")
    add("--page", type=Path, help="also write the table to this file, as the documentation does")
    options = parser.parse_args(arguments)
    results = run(options)
    text = report(results, describe(1, ("numpy", "glum", "interpret-core", "lightgbm")))
    for place in (options.out / "claims.md", options.page):
        if place is not None:
            place.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
