"""Beyond the data: curves of one column run out, and their bands grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.cells import Cell, Row
from benchmarks.data.sets import Array
from benchmarks.markdown import in_order, markdown, number
from benchmarks.trust.fits import estimator
from benchmarks.trust.outliers import allowed_range
from benchmarks.trust.section import Plan, Section, finished, grid, one_by_one
from benchmarks.verdicts import Verdict, unmeasured


@dataclass(frozen=True)
class Case:
    """A function on [-1, 1], seen with noise, and whether it is straight."""

    mean: Callable[[Array], Array]
    straight: bool = False
    noise: float = 0.2


CASES = {
    "line": Case(lambda x: 2 * x, straight=True),
    "tanh": Case(lambda x: np.tanh(3 * x)),
    "sine": Case(lambda x: np.sin(4 * x)),
    "square": Case(lambda x: 2 * x**2),
    "exp": Case(lambda x: np.exp(1.5 * x)),
    "outlying": Case(lambda x: np.sin(4 * x)),  # one row far out, as of Ames
}
ROWS = 200
DISTANCES = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # beyond the largest value, in ranges of the data
FAR = 2.0  # from here on a curve that is not straight has to be flat
FLAT = 0.05  # of the range of the responses
BENT = 0.25  # posterior standard deviations by which a straight curve may leave its line


def cells(plan: Plan) -> list[Cell]:
    return grid("beyond", list(CASES), ("lanam",), plan.count(20, 3))


def rows_of(name: str, seed: int) -> tuple[Array, Array]:
    """Rows of a case; ``outlying`` has one more, a range beyond the others, of a response in between."""
    rng, case = np.random.default_rng(seed), CASES[name]
    x = rng.uniform(-1, 1, ROWS)
    y = case.mean(x) + case.noise * rng.standard_normal(ROWS)
    if name == "outlying":
        x, y = np.append(x, 3.0), np.append(y, y.mean())
    return x, y


def measure(cell: Cell, plan: Plan) -> Row:
    x, y = rows_of(cell.set, cell.fold)
    model = estimator("regression", interactions=0).fit(x[:, None], y)
    places = x.max() + (x.max() - x.min()) * np.array(DISTANCES)
    mean = model.predict(places[:, None])
    lower, upper = model.predict_interval(places[:, None], kind="mean").T
    std = (upper - lower) / (2 * 1.959964)
    least, most = allowed_range(y)
    far = np.array(DISTANCES) >= FAR
    row: Row = {f"mean_{d:g}": m for d, m in zip(DISTANCES, mean, strict=True)}
    row |= {f"std_{d:g}": s for d, s in zip(DISTANCES, std, strict=True)}
    return row | {
        "drift": float(np.ptp(mean[far]) / np.ptp(y)),
        "bent": float(bend(np.array(DISTANCES), mean)[~far].max() / std[0]),
        "growth": float(std[-1] / std[0]),
        "grows": bool(np.all(np.diff(std) >= -1e-9 * std[0])),
        "inside": bool(np.all((mean >= least) & (mean <= most))),
    }


def bend(distance: Array, mean: Array) -> Array:
    """Distance of a curve from the chord of its first two places."""
    slope = (mean[1] - mean[0]) / (distance[1] - distance[0])
    return np.abs(mean - mean[0] - slope * (distance - distance[0]))


def tables(results: pd.DataFrame) -> list[str]:
    rows, lines, bands = finished(results), [], []
    for name in in_order(rows["set"], tuple(CASES)):
        own = rows[rows["set"] == name]
        steps = [number((own[f"std_{d:g}"] / own["std_0"]).mean(), 2) for d in DISTANCES]
        bands.append([name, str(len(own)), *steps])
        means = [number(own[f"mean_{d:g}"].mean(), 2) for d in DISTANCES]
        lines.append([name, str(len(own)), *means])
    header = ["case", "seeds", *(f"{d:g}" for d in DISTANCES)]
    legend = (
        f"{ROWS} rows on [-1, 1]; distances are beyond the largest value, in ranges of the data. Bands are "
        "standard deviations of the mean relative to that at the edge. *outlying*: the sine with one row a "
        "range beyond the others."
    )
    return [
        markdown(header, lines, "Means beyond the data"),
        markdown(header, bands, "Bands beyond the data"),
        legend,
    ]


def targets(results: pd.DataFrame) -> list[Verdict]:
    judged = []
    for name, case in CASES.items():
        own = finished(results, "lanam", set=name)
        runs = f"{name}: the curve runs out {'straight or flat' if case.straight else 'flat'}"
        grows = f"{name}: the band grows with the distance"
        inside = f"{name}: no prediction out of the range extended by half"
        if own.empty:
            judged += [unmeasured(runs), unmeasured(grows), unmeasured(inside)]
            continue
        flat = own["drift"] <= FLAT
        holds = flat | (own["bent"] <= BENT) if case.straight else flat
        shown = f"{own['drift'].max():.3f} of the range, largest of {len(own)} seeds"
        judged += [
            Verdict(runs, shown, bool(holds.all())),
            _all(grows, own["grows"] & (own["growth"] > 1), f"{own['growth'].mean():.1f} times"),
            _all(inside, own["inside"]),
        ]
    return judged


def _all(what: str, holds: pd.Series, note: str = "") -> Verdict:
    shown = f"{int(holds.sum())} of {len(holds)} seeds"
    return Verdict(what, f"{note}, {shown}" if note else shown, bool(holds.all()))


SECTION = Section(
    "beyond", "Beyond the data", cells, one_by_one(measure), tables, targets, batch=20
)
