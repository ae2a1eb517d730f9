"""Survival data sets, and simulations whose survival functions are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

#: Features that Rotterdam and GBSG share, for external validation.
SHARED = ["age", "meno", "size", "grade", "nodes", "pgr", "er", "hormon"]


@dataclass(frozen=True)
class Cohort:
    """Subjects: features, whether (or by which cause) follow-up ended in an event, and when."""

    X: pd.DataFrame
    event: np.ndarray
    time: np.ndarray

    def part(self, rows: np.ndarray) -> Cohort:
        """Some of the subjects."""
        return Cohort(self.X.iloc[rows].reset_index(drop=True), self.event[rows], self.time[rows])


def load(name: str, folder: Path) -> Cohort:
    """One of the data sets in ``folder/survival``."""
    table = pd.read_csv(folder / "survival" / f"{name}.csv")
    X, event, time = _READERS[name](table)
    time = np.asarray(time, dtype=float)
    # Times of zero were rounded: half of a unit.
    return Cohort(X, np.asarray(event, dtype=int), np.where(time > 0.0, time, 0.5))


Parts = tuple[pd.DataFrame, pd.Series, pd.Series]


def _rotterdam(table: pd.DataFrame) -> Parts:
    event = table[["recur", "death"]].max(axis=1)
    time = table["rtime"].where(table["recur"] == 1, table["dtime"])
    return table.drop(columns=["pid", "year", "rtime", "recur", "dtime", "death"]), event, time


def _gbsg(table: pd.DataFrame) -> Parts:
    size = pd.cut(table["size"], [-1, 20, 50, 1000], labels=["<=20", "20-50", ">50"])
    X = table[SHARED].assign(size=size.astype(str))
    return X, table["status"], table["rfstime"]


def _colon(table: pd.DataFrame) -> Parts:
    death = table[table["etype"] == 2]
    return (
        death.drop(columns=["id", "study", "etype", "status", "time"]),
        death["status"],
        death["time"],
    )


def _mgus2(table: pd.DataFrame) -> Parts:
    event = np.where(table["pstat"] == 1, 1, 2 * table["death"])
    time = table["ptime"].where(table["pstat"] == 1, table["futime"])
    return table[["age", "sex", "hgb", "creat", "mspike"]], event, time


def _lung(table: pd.DataFrame) -> Parts:
    return table.drop(columns=["inst", "time", "status"]), table["status"] == 2, table["time"]


def _veteran(table: pd.DataFrame) -> Parts:
    return table.drop(columns=["time", "status"]), table["status"], table["time"]


def _support2(table: pd.DataFrame) -> Parts:
    return table.drop(columns=["death", "d.time"]), table["death"], table["d.time"]


_READERS: dict[str, Callable[[pd.DataFrame], Parts]] = {
    "rotterdam": _rotterdam,
    "gbsg": _gbsg,
    "support2": _support2,
    "colon": _colon,
    "mgus2": _mgus2,
    "lung": _lung,
    "veteran": _veteran,
}
SETS = tuple(_READERS)


# --- simulations ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Simulation:
    """Hazards of causes that are constant up to ``change`` and again after it, given the features."""

    name: str
    change: float
    early: Callable[[np.ndarray], np.ndarray]
    late: Callable[[np.ndarray], np.ndarray]

    def draw(self, n: int, seed: int) -> Cohort:
        """Subjects, censored at random."""
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, size=(n, 4))
        early, late = self.early(X), self.late(X)
        first = rng.exponential(1.0 / early.sum(axis=1))
        second = self.change + rng.exponential(1.0 / late.sum(axis=1))
        time = np.where(first < self.change, first, second)
        hazard = np.where((time < self.change)[:, None], early, late)
        shares = np.cumsum(hazard / hazard.sum(axis=1, keepdims=True), axis=1)
        cause = 1 + (rng.uniform(size=n)[:, None] > shares[:, :-1]).sum(axis=1)
        censored = rng.uniform(0.3, 3.0, n)
        event = np.where(time <= censored, cause, 0)
        return Cohort(pd.DataFrame(X, columns=list("abcd")), event, np.minimum(time, censored))

    def incidence(self, X: np.ndarray, time: float) -> np.ndarray:
        """Cumulative incidence (n, causes) at a time."""
        result, left = np.zeros_like(self.early(X)), np.ones(len(X))
        spans = (min(time, self.change), max(time - self.change, 0.0))
        for hazard, span in zip((self.early(X), self.late(X)), spans, strict=True):
            whole = hazard.sum(axis=1)
            gone = left * -np.expm1(-whole * span)
            result += (hazard / whole[:, None]) * gone[:, None]
            left = left - gone
        return result


def _smooth(X: np.ndarray) -> np.ndarray:
    return np.asarray(np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2)


SIMULATIONS = (
    Simulation(
        "proportional",
        0.5,
        lambda X: np.exp(_smooth(X) - 0.3)[:, None],
        lambda X: np.exp(_smooth(X) - 0.7)[:, None],
    ),
    Simulation(
        "non-proportional",
        0.5,
        lambda X: np.exp(1.5 * X[:, 0] + X[:, 1] ** 2 - 0.3)[:, None],
        lambda X: np.exp(-0.5 * X[:, 0] + X[:, 1] ** 2 - 0.7)[:, None],
    ),
    Simulation(
        "competing",
        0.5,
        lambda X: np.exp(np.column_stack([_smooth(X) - 0.5, X[:, 1] - 0.8])),
        lambda X: np.exp(np.column_stack([_smooth(X) - 0.9, X[:, 1] - 0.8])),
    ),
)
