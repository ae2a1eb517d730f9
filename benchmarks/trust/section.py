"""What a section of the benchmark is: its cells, how one is measured, its tables and its targets."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.cells import Cell, Row
from benchmarks.markdown import markdown
from benchmarks.verdicts import Verdict

WORDS = {True: "met", False: "**missed**", None: "not run"}
LEVEL = 0.95


@dataclass(frozen=True)
class Plan:
    """How much is measured: folder of data sets, number of seeds (None: the section's own), a small run."""

    data: Path | None = None
    seeds: int | None = None
    quick: bool = False
    threads: int = 1

    def count(self, usual: int, quick: int) -> int:
        """The number of seeds."""
        return self.seeds if self.seeds is not None else quick if self.quick else usual


@dataclass(frozen=True)
class Section:
    """A part of the benchmark.

    ``measure`` gives a row for each of some cells of one set and model, in their order; ``batch`` is how
    many of them share a process. ``needs_data`` is whether it reads the data sets. ``source`` is the
    section whose cells it reports, if not its own.
    """

    name: str
    title: str
    cells: Callable[[Plan], list[Cell]]
    measure: Callable[[Sequence[Cell], Plan], Iterator[Row]]
    tables: Callable[[pd.DataFrame], list[str]]
    targets: Callable[[pd.DataFrame], list[Verdict]]
    batch: int = 1
    needs_data: bool = False
    source: str | None = None


def grid(
    section: str, sets: Sequence[str], models: Sequence[str], seeds: int, first: int = 0
) -> list[Cell]:
    """Cells of all sets, models and seeds; the models of a seed follow each other."""
    return [
        Cell(section, name, model, seed)
        for name in sets
        for seed in range(first, seeds)
        for model in models
    ]


def one_by_one(
    measure: Callable[[Cell, Plan], Row],
) -> Callable[[Sequence[Cell], Plan], Iterator[Row]]:
    """Measure cells in turn; a failure becomes a row with its message, so that the others are not lost."""

    def measure_all(cells: Sequence[Cell], plan: Plan) -> Iterator[Row]:
        for cell in cells:
            yield guarded(lambda cell=cell: measure(cell, plan))

    return measure_all


def guarded(work: Callable[[], Row]) -> Row:
    """The row of a measurement with its seconds and warnings, or the error that ended it."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            row = work()
    except Exception as error:  # one failure must not lose the other cells
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}
    named = "; ".join(sorted({item.category.__name__ for item in caught}))
    return {"warnings": named} | row | {"seconds": time.perf_counter() - start}


def finished(results: pd.DataFrame, model: str | None = None, **where: Any) -> pd.DataFrame:
    """The rows with figures, of a model and of given values of other columns."""
    rows = results[results["error"].isna()] if "error" in results else results
    for column, value in ({"model": model} if model else {}).items() | where.items():
        rows = rows[rows[column] == value]
    return rows


def failures(results: pd.DataFrame) -> str:
    """A line on the fits that failed; empty without any."""
    failed = results[results["error"].notna()] if "error" in results else results[:0]
    if failed.empty:
        return ""
    counts = failed.groupby(["set", "model"]).size()
    listed = ", ".join(f"{model} on {name}: {count}" for (name, model), count in counts.items())
    return f"**Failed fits**: {listed}. First: {' '.join(str(failed['error'].iloc[0]).split())}"


def target_table(judged: Sequence[Verdict]) -> str:
    """The targets, missed ones first."""
    order = sorted(judged, key=lambda one: {False: 0, None: 1, True: 2}[one.holds])
    rows = [[one.requirement, one.measured, WORDS[one.holds]] for one in order]
    return markdown(["target", "measured", "verdict"], rows)


def within(
    what: str,
    value: float,
    least: float = -float("inf"),
    most: float = float("inf"),
    digits: int = 3,
) -> Verdict:
    """A figure that has to lie between two limits; not measured if it is not a number."""
    if pd.isna(value):
        return Verdict(what, "not measured", None)
    return Verdict(what, f"{value:.{digits}f}", bool(least <= value <= most))


def all_within(what: str, values: Sequence[float], least: float, most: float) -> Verdict:
    """Figures that all have to lie between two limits; the smallest and the largest are shown."""
    if pd.isna(pd.Series(values)).any():
        return Verdict(what, "not measured", None)
    shown = f"{min(values):.3f} to {max(values):.3f}"
    return Verdict(what, shown, least <= min(values) and max(values) <= most)
