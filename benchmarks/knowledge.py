"""What is known of columns: does it help where it is true, and what does it cost?

``python -m benchmarks.knowledge --data DIR`` runs all sections, or those of ``--parts``, and writes a table
of each to ``--out``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

from benchmarks import known_columns
from benchmarks.environment import describe, say

Options = argparse.Namespace
#: A table of results, in Markdown.
Section = Callable[[Options], str]

#: Increasing functions on (0, 1), with a range of about 1.5 standard deviations of the noise.
INCREASING: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sigmoid": lambda x: 2.0 / (1.0 + np.exp(-12.0 * (x - 0.5))),
    "step": lambda x: 1.5 * np.clip(4.0 * (x - 0.4), 0.0, 1.0),
    "line": lambda x: 1.5 * x,
    "late": lambda x: 6.0 * np.square(np.clip(x - 0.6, 0.0, 1.0)),
    "root": lambda x: 2.0 * np.sqrt(x),
}
#: Functions that do not increase, for tests of shapes.
OTHERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "bump": lambda x: 1.5 * np.sin(3.0 * x),
    "dip": lambda x: 2.0 * x - 1.2 * np.exp(-np.square((x - 0.7) / 0.12)),
    "wave": lambda x: 1.5 * x + 0.5 * np.sin(12.0 * x),
    "falling": lambda x: -1.5 * x,
    "hook": lambda x: 3.0 * np.square(x - 0.3),
}

#: Tables with a target, directions that a domain expert would name, and the target's scale.
TABLES: dict[str, tuple[str, str, dict[str, int]]] = {
    "adult": ("open/adult.csv.gz", "income", {"education-num": 1, "capital-gain": 1}),
    "australian": ("uci/australian.csv", "class", {"A8": 1, "A10": 1, "A14": 1}),
    "ames": (
        "open/ames.csv",
        "SalePrice",
        {"GrLivArea": 1, "OverallQual": 1, "YearBuilt": 1, "LotArea": 1, "GarageCars": 1},
    ),
}
_ROWS = 3000


def monotone(options: Options) -> str:
    """Increasing functions: error, coverage and violations of free and of monotone fits."""
    from lanam import LANAMRegressor

    names, rows = list(INCREASING), []
    for n_rows in options.rows:
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            X = pd.DataFrame(rng.uniform(size=(n_rows, len(names))), columns=names)
            signal = sum(INCREASING[name](X[name].to_numpy()) for name in names)
            y = signal + rng.normal(size=n_rows)
            for kind, known in (("free", {}), ("monotone", dict.fromkeys(names, 1))):
                began = time.process_time()
                model = LANAMRegressor(interactions=0, monotonic_cst=known).fit(X, y)
                seconds = time.process_time() - began
                explanation = model.explain_global()
                for name in names:
                    measured = _curve(explanation[name], INCREASING[name], X[name].to_numpy())
                    fall = _largest_fall(explanation[name])
                    rows.append((n_rows, name, kind, *measured, fall, seconds))
        say(f"monotone, {n_rows} rows")
    columns = ["rows", "function", "fit", "error", "coverage", "fall", "seconds"]
    return _monotone_table(pd.DataFrame(rows, columns=columns))


def _curve(curve: Any, function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> Any:
    """Mean square error of a curve at the data, and the coverage of its band."""
    truth = function(x) - function(x).mean()
    lower, upper = (np.interp(x, curve.values, end) for end in curve.band(0.95))
    error = np.interp(x, curve.values, curve.mean) - truth
    return float(np.mean(error**2)), float(np.mean((lower <= truth) & (truth <= upper)))


def _largest_fall(curve: Any) -> float:
    """The largest fall between neighbours of any draw of the curve."""
    if not curve.active:
        return 0.0
    draws = curve.mean[:, None] + curve.posterior.draws(256)[0]
    return max(0.0, -float(np.diff(draws, axis=0).min()))


def _monotone_table(results: pd.DataFrame) -> str:
    lines = [
        "| rows | function | RMSE free | RMSE monotone | ratio | coverage free | coverage monotone | "
        "largest fall of a draw | CPU time, ratio |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for n_rows, of_size in results.groupby("rows", sort=False):
        for name, part in [*of_size.groupby("function", sort=False), ("all", of_size)]:
            free, bound = (part[part["fit"] == kind] for kind in ("free", "monotone"))
            before, after = (float(np.sqrt(each["error"].mean())) for each in (free, bound))
            lines.append(
                f"| {n_rows} | {name} | {before:.3f} | {after:.3f} | {after / before:.3f} | "
                f"{free['coverage'].mean():.3f} | {bound['coverage'].mean():.3f} | "
                f"{bound['fall'].max():.0e} | {bound['seconds'].sum() / free['seconds'].sum():.1f} |"
            )
    return "\n".join(lines)


def shape_tests(options: Options) -> str:
    """How often tests of true and false shapes are decided, and how often wrongly."""
    from lanam import LANAMRegressor

    rows = []
    for truth, functions in ((True, INCREASING), (False, OTHERS)):
        for name, function in functions.items():
            for seed in range(options.seeds):
                rng = np.random.default_rng(seed)
                x = rng.uniform(size=200)
                y = function(x) + rng.normal(size=200)
                model = LANAMRegressor(interactions=0).fit(pd.DataFrame({"x": x}), y)
                if model.terms_[0].active:
                    test = model.test_shape("x", "increasing")
                    odds = test.probability / (1.0 - test.probability)
                    rows.append((truth, name, odds, test.bayes_factor))
        say(f"shape tests, {'true' if truth else 'false'}")
    results = pd.DataFrame(rows, columns=["true", "function", "odds", "factor"])
    lines = [
        "| function | increases | tests | odds > 20 | odds < 1/20 | Bayes factor > 20 | < 1/20 |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, part in results.groupby("function", sort=False):
        counts = [(part[key] > 20.0).sum() for key in ("odds", "factor")]
        against = [(part[key] < 0.05).sum() for key in ("odds", "factor")]
        yes = "yes" if part["true"].iloc[0] else "no"
        lines.append(
            f"| {name} | {yes} | {len(part)} | {counts[0]} | {against[0]} | {counts[1]} | {against[1]} |"
        )
    for key, what in (("odds", "posterior odds"), ("factor", "Bayes factors")):
        decided = results[(results[key] > 20.0) | (results[key] < 0.05)]
        wrong = ((decided[key] > 1.0) != decided["true"]).sum()
        share = wrong / max(len(decided), 1)
        lines.append(
            f"\nDecisive {what} (20 to 1): {len(decided)}, of which wrong {wrong} ({share:.1%})."
        )
    return "\n".join(lines)


def tables(options: Options) -> str:
    """Real tables: test NLL and time under constraints that an expert would name, without interactions."""
    lines = [
        "| table | rows | constraints | NLL free | NLL constrained | difference (SE) | CPU time, ratio |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, (path, target, known) in TABLES.items():
        table = pd.read_csv(options.data / path)
        table = table.sample(min(_ROWS, len(table)), random_state=1).reset_index(drop=True)
        X, y = table.drop(columns=target), table[target]
        found = []
        for train, test in KFold(5, shuffle=True, random_state=1).split(X):
            rows = (X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test])
            found.append([_fit_and_score(*rows, cst) for cst in ({}, known)])
        nll, seconds = np.moveaxis(np.array(found), 2, 0)
        gain = nll[:, 1] - nll[:, 0]
        words = ", ".join(f"{column} {'+' if sign > 0 else '-'}" for column, sign in known.items())
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        lines.append(
            f"| {name} | {len(table)} | {words} | {nll[:, 0].mean():.4f} | {nll[:, 1].mean():.4f} | "
            f"{gain.mean():+.4f} ({error:.4f}) | {seconds[:, 1].sum() / seconds[:, 0].sum():.2f} |"
        )
        say(f"tables, {name}")
    return "\n".join(lines)


def _fit_and_score(
    X: pd.DataFrame, y: pd.Series, X_test: pd.DataFrame, y_test: pd.Series, known: dict[str, int]
) -> tuple[float, float]:
    """Test NLL, and CPU seconds of the fit."""
    from lanam import LANAMClassifier, LANAMRegressor
    from lanam.metrics import coverage_report

    began = time.process_time()
    if y.nunique() == 2:
        model = LANAMClassifier(monotonic_cst=known, interactions=0).fit(X, y)
    else:
        model = LANAMRegressor(likelihood="lognormal", monotonic_cst=known, interactions=0).fit(
            X, y
        )
    seconds = time.process_time() - began
    return float(coverage_report(model, X_test, y_test).scores["nll"]), seconds


SECTIONS: dict[str, tuple[str, Section]] = {
    "monotone": ("Increasing functions", monotone),
    "shape_tests": ("Tests of shapes, 200 rows", shape_tests),
    "tables": ("Real tables under constraints", tables),
    **known_columns.SECTIONS,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.knowledge", description=__doc__)
    add = parser.add_argument
    add("--parts", default=",".join(SECTIONS), help="comma-separated")
    add("--data", type=Path, help="folder of the real tables")
    add("--seeds", type=int, default=50)
    add("--rows", type=int, nargs="+", default=[100, 300, 1000])
    add("--out", type=Path, default=Path("results") / "knowledge")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    conditions = f"{options.seeds} seeds. {describe(1, ('numpy', 'scipy'))}"
    for part in options.parts.split(","):
        title, section = SECTIONS[part]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that few rows determine a fit
            text = f"## {title}\n\n{section(options)}\n\n{conditions}\n"
        (options.out / f"{part}.md").write_text(text, encoding="utf-8")
        print(text)


if __name__ == "__main__":
    main()
