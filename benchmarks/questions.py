"""Questions to simulated curves: how often are intervals of peaks and crossings, and sure ranges, right?

``python -m benchmarks.questions --seeds 60`` fits one column of a known function with noise, and writes a
table to ``--out``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.environment import describe, say

#: Functions on (0, 10), and where their maximum is.
CURVES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "parabola": (lambda x: -np.square(x - 6.0) / 8.0, 6.0),
    "bump": (lambda x: 2.0 * np.exp(-np.square(x - 3.0) / 2.0), 3.0),
    "root": (np.sqrt, 10.0),
    "sine": (lambda x: np.sin(0.5 * x + 0.3), 2.0 * (0.5 * np.pi - 0.3)),
}
NOISE = 0.5


def measure(name: str, n_rows: int, seed: int) -> dict[str, Any]:
    """One fit, and its answers against the truth."""
    from lanam import LANAMRegressor

    function, maximum = CURVES[name]
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 10.0, n_rows)
    y = function(x) + NOISE * rng.normal(size=n_rows)
    shape = LANAMRegressor().fit(pd.DataFrame({"x": x}), y).explain_global()["x"]
    peak, derivative, crossing = shape.peak(), shape.derivative(), shape.crossing(0.0)
    grid = np.linspace(0.0, 10.0, 20_001)
    above = function(grid) > function(x).mean()
    truth = grid[np.flatnonzero(np.diff(above))]
    rises, falls = (_monotone(function, ranges) for ranges in _sure(derivative))
    same = len(truth) == len(crossing.values)
    within = (crossing.lower <= truth) & (truth <= crossing.upper) if same else np.nan
    return {
        "function": name,
        "rows": n_rows,
        "peak": peak.lower <= min(maximum, x.max()) <= peak.upper,
        "peak_width": peak.upper - peak.lower,
        "interior": peak.probability_interior,
        "sure": (rises >= 0.0).all() and (falls <= 0.0).all(),
        "sure_share": sum(end - start for ranges in _sure(derivative) for start, end in ranges)
        / 10,
        "crossings": np.mean(within),
    }


def _sure(derivative: Any) -> tuple[Any, Any]:
    return derivative.rising(), derivative.falling()


def _monotone(function: Callable[[np.ndarray], np.ndarray], ranges: Any) -> np.ndarray:
    """Differences of a function within ranges."""
    parts = [np.diff(function(np.linspace(*ends, 1001))) for ends in ranges]
    return np.concatenate([np.zeros(0), *parts])


def report(results: pd.DataFrame, conditions: str) -> str:
    """Means over the seeds."""
    lines = [
        conditions,
        "",
        "| function | rows | interval of the maximum covers | its width | sure ranges are right | "
        "their share of the data | intervals of crossings cover |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (name, n_rows), group in results.groupby(["function", "rows"], sort=False):
        mean = group.drop(columns="function").astype(float).mean()
        lines.append(
            f"| {name} | {n_rows} | {mean['peak']:.3f} | {mean['peak_width']:.2f} | {mean['sure']:.3f} | "
            f"{mean['sure_share']:.2f} | {mean['crossings']:.3f} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    add = parser.add_argument
    add("--seeds", type=int, default=60)
    add("--rows", type=int, nargs="+", default=[100, 400])
    add("--out", type=Path, default=Path("results") / "questions.md")
    options = parser.parse_args(arguments)
    rows = []
    for name in CURVES:
        for n_rows in options.rows:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that few rows determine a fit
                rows += [measure(name, n_rows, seed) for seed in range(options.seeds)]
            say(f"{name}, {n_rows} rows")
    text = report(pd.DataFrame(rows), f"{options.seeds} seeds. {describe(1, ('numpy', 'scipy'))}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
