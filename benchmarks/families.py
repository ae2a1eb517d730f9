"""Simulated data of each response family: are functions, parameters and the choice of the family right?

``python -m benchmarks.families --seeds 50`` fits data of known functions with their own family and with
``likelihood="auto"``, and writes tidy results and a table to ``--out``. A run that was stopped, or one of
more seeds, goes on from the results that are there.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.environment import describe, say

#: The parameters of the simulated families, by the names of ``family_parameters_``.
KNOWN: dict[str, dict[str, float]] = {
    "gaussian": {},
    "lognormal": {},
    "student": {"scale": 0.4, "degrees_of_freedom": 4.0},
    "gamma": {"shape": 2.5},
    "tweedie": {"dispersion": 1.5, "power": 1.6},
    "poisson": {},
    "negative_binomial": {"dispersion": 0.7},
    "binomial": {},
}
TRIALS = 10


def functions(X: np.ndarray) -> np.ndarray:
    """The contributions of four columns, the last of which has none."""
    a, b, c, _ = X.T
    parts = [0.6 * np.sin(2.0 * a), 0.15 * b**2, 0.3 * c, np.zeros(len(X))]
    return np.column_stack(parts)


def simulate(name: str, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns, and a response of the family."""
    rng = np.random.default_rng([seed, n_rows])
    X = rng.uniform(-2.0, 2.0, (n_rows, 4))
    f = 0.5 + functions(X).sum(axis=1)
    mean, known = np.exp(f), KNOWN[name]
    if name == "gaussian":
        return X, f + 0.4 * rng.normal(size=n_rows)
    if name == "lognormal":
        return X, np.exp(f + 0.5 * rng.normal(size=n_rows))
    if name == "student":
        return X, f + known["scale"] * rng.standard_t(known["degrees_of_freedom"], n_rows)
    if name == "gamma":
        return X, mean * rng.gamma(known["shape"], size=n_rows) / known["shape"]
    if name == "tweedie":
        phi, p = known["dispersion"], known["power"]
        number = rng.poisson(mean ** (2.0 - p) / (phi * (2.0 - p)))
        scale, shape = phi * (p - 1.0) * mean ** (p - 1.0), (2.0 - p) / (p - 1.0)
        return X, np.where(number > 0, rng.gamma(np.maximum(number, 1) * shape) * scale, 0.0)
    if name == "poisson":
        return X, rng.poisson(mean).astype(float)
    if name == "negative_binomial":
        k = known["dispersion"]
        return X, rng.poisson(mean * rng.gamma(1.0 / k, size=n_rows) * k).astype(float)
    return X, rng.binomial(TRIALS, 1.0 / (1.0 + np.exp(-f))).astype(float)


def covered(model: Any, X: np.ndarray) -> float:
    """The share of rows at which the three functions lie in their 95% bands."""
    mean, std = model.predict_terms(X, return_std=True)
    truth, shares = functions(X), []
    for column in range(3):
        terms = [k for k, term in enumerate(model.terms_) if term.features == (column,)]
        if not any(model.terms_[k].active for k in terms):
            shares.append(0.0)
            continue
        known = truth[:, column] - truth[:, column].mean()
        found, error = mean[:, terms].sum(axis=1), np.sqrt(np.square(std[:, terms]).sum(axis=1))
        shares.append(float((np.abs(found - known) <= 1.96 * error).mean()))
    return float(np.mean(shares))


def measure(name: str, n_rows: int, seed: int) -> dict[str, Any]:
    """One fit with the family, and one that chooses it."""
    from lanam import LANAMRegressor

    X, y = simulate(name, n_rows, seed)
    options = {"interactions": 0, "random_state": 0, "n_jobs": 1}
    given = {"trials": TRIALS} if name == "binomial" else {}
    began = time.perf_counter()
    model = LANAMRegressor(likelihood=name, **options).fit(X, y, **given)
    row: dict[str, Any] = {"family": name, "rows": n_rows, "seed": seed}
    row["seconds"] = time.perf_counter() - began
    row["coverage"] = covered(model, X)
    for parameter, value in KNOWN[name].items():
        row[parameter] = model.family_parameters_[parameter] / value
    chosen = LANAMRegressor(likelihood="auto", **options).fit(X, y, **given)
    row["auto"] = chosen.family_.name == name
    return row


def report(results: pd.DataFrame, conditions: str) -> str:
    """Means over the seeds, and the parameters' ratio to their true values."""
    lines = [conditions, ""]
    lines.append(
        "| family | rows | 95% bands cover | parameters over the truth: median (10% to 90%) | named |"
    )
    lines.append("| --- | ---: | ---: | --- | ---: |")
    for (family, n_rows), group in results.groupby(["family", "rows"], sort=False):
        parts = []
        for parameter in KNOWN[str(family)]:
            low, middle, high = group[parameter].quantile([0.1, 0.5, 0.9])
            parts.append(f"{parameter.replace('_', ' ')} {middle:.2f} ({low:.2f} to {high:.2f})")
        lines.append(
            f"| {family} | {n_rows} | {group['coverage'].mean():.3f} | {', '.join(parts)} | "
            f"{group['auto'].sum()} of {len(group)} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.families", description=__doc__)
    add = parser.add_argument
    add("--seeds", type=int, default=50)
    add("--rows", type=int, nargs="+", default=[300, 2000])
    add("--out", type=Path, default=Path("results") / "families", help="for CSV and report")
    add("--page", type=Path, help="also write the table to this file, as the documentation does")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "families.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    known = {(row["family"], row["rows"], row["seed"]) for row in rows}
    # Seed by seed, so that what is there when it is stopped is balanced.
    for seed, n_rows, name in product(range(options.seeds), options.rows, KNOWN):
        if (name, n_rows, seed) not in known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that few rows determine a fit
                rows.append(measure(name, n_rows, seed))
            say(f"seed {seed}: {name}, {n_rows} rows")
            pd.DataFrame(rows).to_csv(path, index=False)
    results = pd.DataFrame(rows)
    results["family"] = pd.Categorical(results["family"], list(KNOWN))
    results = results.sort_values(["family", "rows", "seed"]).astype({"family": str})
    text = report(results, describe(1, ("numpy", "scipy")))
    for place in (options.out / "families.md", options.page):
        if place is not None:
            place.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
