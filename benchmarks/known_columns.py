"""Cycles and groups: does it help to know them, and are bands of groups' curves right?

Sections of ``benchmarks.knowledge``; mgcv is beside where R is installed.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import KFold

from benchmarks.data.frames import load_raw
from benchmarks.environment import say
from benchmarks.trust import mgcv

Options = argparse.Namespace
#: A table of results, in Markdown.
Section = Callable[[Options], str]

_Z = 1.959964
_SCRIPT = Path(__file__).with_name("grouped.R")

#: Groups, rows of each, noise, and standard deviations of the groups' effects and deviations.
_GROUPS, _EACH, _NOISE, _EFFECT, _DEVIATION = 50, 20, 0.5, 0.5, 0.6
#: Length-scale of curves on (-1, 1).
_LENGTH = 0.5


def cycles(options: Options) -> str:
    """Rented bikes by hour and month: deviance of left-out rows, with and without the cycles."""
    from lanam import LANAMRegressor

    data = load_raw(options.data, "bike_hour_int")
    X, y = data.X.reset_index(drop=True), np.asarray(data.y)
    rows = []
    for pairs, n_rows in ((0, len(X)), ("auto", 4000)):
        chosen = np.random.default_rng(1).permutation(len(X))[:n_rows]
        table, counts = X.iloc[chosen].reset_index(drop=True), y[chosen]
        for train, test in KFold(5, shuffle=True, random_state=1).split(table):
            for kind, cyclic in (("free", None), ("cyclic", {"hr": 24, "mnth": 12})):
                began = time.process_time()
                model = LANAMRegressor(likelihood="poisson", interactions=pairs, cyclic=cyclic)
                model.fit(table.iloc[train], counts[train])
                seconds = time.process_time() - began
                held = table.iloc[test]
                deviance = mean_poisson_deviance(counts[test], model.predict(held))
                ends = [model.predict(held.assign(hr=hour)) for hour in (0, 24)]
                jump = float(np.abs(ends[1] / ends[0] - 1.0).max())
                rows.append((pairs, n_rows, kind, deviance, jump, seconds))
        say(f"cycles, interactions {pairs}")
    columns = ["pairs", "rows", "fit", "deviance", "jump", "seconds"]
    lines = [
        "| rows | interactions | deviance free | deviance cyclic | difference (SE) | "
        "largest step at midnight, free | cyclic | CPU time, ratio |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (n_rows, pairs), part in pd.DataFrame(rows, columns=columns).groupby(
        ["rows", "pairs"], sort=False
    ):
        free, bound = (part[part["fit"] == kind] for kind in ("free", "cyclic"))
        change = bound["deviance"].to_numpy() - free["deviance"].to_numpy()
        error = change.std(ddof=1) / np.sqrt(len(change))
        lines.append(
            f"| {n_rows} | {pairs} | {free['deviance'].mean():.3f} | {bound['deviance'].mean():.3f} | "
            f"{change.mean():+.3f} ({error:.3f}) | {free['jump'].max():.0%} | {bound['jump'].max():.0e} | "
            f"{bound['seconds'].sum() / free['seconds'].sum():.2f} |"
        )
    return "\n".join(lines)


class Hospitals:
    """Groups with lines, or curves (draws of a Gaussian process), around a common curve."""

    def __init__(self, kind: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.kind, self.grid = kind, np.linspace(-1.0, 1.0, 101)
        self.effect = _EFFECT * rng.normal(size=_GROUPS)
        along = self.grid * rng.normal(size=(_GROUPS, 1))
        if kind == "curves":
            distance = (self.grid[:, None] - self.grid) / _LENGTH
            kernel = np.exp(-0.5 * np.square(distance)) + 1e-9 * np.eye(len(self.grid))
            along = rng.normal(size=(_GROUPS, len(self.grid))) @ np.linalg.cholesky(kernel).T
        self.deviation = _DEVIATION * along
        group = np.repeat(np.arange(_GROUPS), _EACH)
        self.rows = self.table(group, rng.uniform(-1.0, 1.0, len(group)))
        self.y = self.truth(self.rows) + _NOISE * rng.normal(size=len(group))

    @staticmethod
    def table(group: np.ndarray, x: np.ndarray) -> pd.DataFrame:
        """Rows of groups."""
        return pd.DataFrame({"x": x, "group": [f"g{k}" for k in group]})

    def truth(self, rows: pd.DataFrame) -> np.ndarray:
        """The mean of rows."""
        group, x = rows["group"].str[1:].astype(int).to_numpy(), rows["x"].to_numpy()
        own = [np.interp(at, self.grid, self.deviation[k]) for at, k in zip(x, group, strict=True)]
        return np.asarray(np.sin(2.0 * x) + self.effect[group] + np.array(own))

    def everywhere(self) -> pd.DataFrame:
        """All groups at evenly spaced places within the data."""
        x = np.linspace(-0.9, 0.9, 15)
        return self.table(np.repeat(np.arange(_GROUPS), len(x)), np.tile(x, _GROUPS))

    def variance(self) -> float:
        """The groups' own: of slopes, or of curves without the groups' means."""
        if self.kind == "lines":
            return float((self.deviation[:, -1] - self.deviation[:, 0]).var() / 4.0)
        centred = self.deviation - self.deviation.mean(axis=1, keepdims=True)
        return float(np.square(centred - centred.mean(axis=0)).mean())


def groups(options: Options) -> str:
    """Curves of 50 groups of 20 rows: coverage and error, and the variance of the deviations."""
    lines = [
        "| deviations | fit | coverage of 95% bands | RMSE | mean band | variance, estimate over truth | "
        "CPU s |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    without = mgcv.missing()
    for kind in ("lines", "curves"):
        problems = [Hospitals(kind, seed) for seed in range(options.seeds)]
        fits = {"lanam": [_fit(problem) for problem in problems]}
        if without is None:
            fits["mgcv"] = _fit_mgcv(problems)
        for name, results in fits.items():
            measured = np.array([_measure(*pair) for pair in zip(problems, results, strict=True)])
            coverage, square, width, ratio, seconds = measured.mean(axis=0)
            cells = [f"{coverage:.3f}", f"{np.sqrt(square):.3f}", f"{2 * _Z * width:.3f}"]
            cells += ["-" if np.isnan(ratio) else f"{ratio:.2f}", f"{seconds:.1f}"]
            lines.append(f"| {kind} | {name} | {' | '.join(cells)} |")
        say(f"groups, {kind}")
    if without is not None:
        lines.append(f"\nmgcv was left out: {without}.")
    return "\n".join(lines)


#: Mean and standard deviation everywhere, variance of deviations, CPU seconds.
_Fit = tuple[np.ndarray, np.ndarray, float, float]


def _fit(problem: Hospitals) -> _Fit:
    from lanam import LANAMRegressor

    lines = problem.kind == "lines"
    known: dict[str, Any] = {"random_slopes": [("x", "group")]} if lines else {"by": {"x": "group"}}
    began = time.process_time()
    model = LANAMRegressor(interactions=0, **known).fit(problem.rows, problem.y)
    seconds = time.process_time() - began
    at = problem.everywhere()
    lower, upper = model.predict_interval(at, coverage=0.95, kind="mean").T
    variance = model.group_std_.get("x x group", 0.0) ** 2
    return 0.5 * (lower + upper), 0.5 * (upper - lower) / _Z, variance, seconds


def _fit_mgcv(problems: Sequence[Hospitals]) -> list[_Fit]:
    """``s(x) + s(group, re) + s(group, x, re)``, or ``s(x) + s(x, group, fs)``, by REML."""
    with tempfile.TemporaryDirectory(prefix="lanam-mgcv-") as folder:
        for number, problem in enumerate(problems):
            stem = Path(folder) / f"{number:04d}"
            problem.rows.assign(y=problem.y).to_csv(f"{stem}.csv", index=False)
            problem.everywhere().to_csv(f"{stem}.at", index=False)
        command = ["Rscript", str(_SCRIPT), folder, problems[0].kind]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = []
        for number in range(len(problems)):
            answer = np.fromfile(Path(folder) / f"{number:04d}.bin")
            mean, std = answer[:-2].reshape(2, -1)
            found.append((mean, std, float(answer[-2]), float(answer[-1])))
        return found


def _measure(problem: Hospitals, fit: _Fit) -> tuple[float, ...]:
    mean, std, variance, seconds = fit
    error = mean - problem.truth(problem.everywhere())
    inside = np.mean(np.abs(error) <= _Z * std)
    ratio = variance / problem.variance()
    return float(inside), float(np.mean(error**2)), float(std.mean()), ratio, seconds


SECTIONS: dict[str, tuple[str, Section]] = {
    "cycles": ("Cyclic hours and months", cycles),
    "groups": ("Curves of groups", groups),
}
