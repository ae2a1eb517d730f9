"""Warnings that matter: fits that cannot be trusted raise a warning, others none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.cells import Cell, Row
from benchmarks.data.sets import Array, Task
from benchmarks.markdown import in_order, markdown
from benchmarks.trust.fits import estimator
from benchmarks.trust.section import Plan, Section, finished, grid, one_by_one
from benchmarks.verdicts import Verdict, unmeasured

Rows = tuple[Array, Array]
NEAR = 0.4  # edf over rows from which on a warning is due


@dataclass(frozen=True)
class Case:
    """Rows by seed, their task, whether a warning is due, and what the case is."""

    rows: Callable[[np.random.Generator], Rows]
    task: Task
    due: bool
    words: str


def separated(rng: np.random.Generator) -> Rows:
    """Two classes that a threshold of one column tells apart."""
    X = rng.standard_normal((80, 2))
    return X, (X[:, 0] > 0).astype(int)


def mixed(rng: np.random.Generator) -> Rows:
    """Two classes that overlap."""
    X = rng.standard_normal((300, 2))
    return X, (rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)


def saturated(rng: np.random.Generator) -> Rows:
    """An effect for every two rows, and hardly any noise."""
    places = np.arange(60) % 30
    labels = np.array([f"place {k}" for k in places], dtype=object)[:, None]
    return labels, rng.standard_normal(30)[places] + 0.05 * rng.standard_normal(60)


def levered(rng: np.random.Generator) -> Rows:
    """A line, and one row far out that contradicts it."""
    x = rng.uniform(-1, 1, 60)
    y = x + 0.2 * rng.standard_normal(60)
    return np.append(x, 12.0)[:, None], np.append(y, -12.0)


def plain(rng: np.random.Generator) -> Rows:
    """Enough rows for two smooth effects."""
    X = rng.uniform(-1, 1, (400, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(400)


CASES = {
    "separated": Case(separated, "classification", True, "classes that one column separates"),
    "saturated": Case(saturated, "regression", True, "active parameters near the number of rows"),
    "levered": Case(levered, "regression", True, "a model that one row would change"),
    "mixed": Case(mixed, "classification", False, "classes that overlap"),
    "plain": Case(plain, "regression", False, "enough rows"),
}


def cells(plan: Plan) -> list[Cell]:
    return grid("warned", list(CASES), ("lanam",), plan.count(10, 2))


def measure(cell: Cell, plan: Plan) -> Row:
    """Fit the default; what it warned of, and how many parameters it has for its rows."""
    case = CASES[cell.set]
    X, y = case.rows(np.random.default_rng(cell.fold))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator(case.task).fit(X, y)
    messages = [" ".join(str(item.message).split()) for item in caught]
    edf = sum(term.effective_parameters for term in model.terms_ if term.active)
    return {
        "warnings": len(messages),
        "message": messages[0] if messages else "",
        "edf": edf / len(y),
    }


def tables(results: pd.DataFrame) -> list[str]:
    rows, lines = finished(results), []
    for name in in_order(rows["set"], tuple(CASES)):
        own = rows[rows["set"] == name]
        share = f"{int((own['warnings'] > 0).sum())} of {len(own)}"
        said = own["message"].fillna("") if "message" in own else pd.Series([""])
        first = next((text for text in said if text), "-").replace("|", "/")
        due = "yes" if CASES[name].due else "no"
        lines.append([CASES[name].words, due, share, f"{own['edf'].mean():.2f}", first])
    header = ["case", "warning due", "warned", "edf / rows", "first message"]
    legend = f"Of parameters near the number of rows, only seeds with an edf of {NEAR} rows or more count."
    return [markdown(header, lines, "Warnings of default fits"), legend]


def targets(results: pd.DataFrame) -> list[Verdict]:
    judged = []
    for name, case in CASES.items():
        what = f"{case.words}: {'a warning in every seed' if case.due else 'no warning'}"
        own = finished(results, "lanam", set=name)
        own = own[own["edf"] >= NEAR] if name == "saturated" and len(own) else own
        if own.empty:
            judged.append(unmeasured(what))
            continue
        warned = own["warnings"] > 0
        shown = f"{int(warned.sum())} of {len(warned)} seeds warned"
        judged.append(Verdict(what, shown, bool((warned == case.due).all())))
    return judged


SECTION = Section(
    "warned", "Warnings that matter", cells, one_by_one(measure), tables, targets, batch=10
)
