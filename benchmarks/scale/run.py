"""Measure what has not been measured yet, each in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.child import ask
from benchmarks.environment import PACKAGES, code_version, describe
from benchmarks.progress import Progress
from benchmarks.scale.cells import PEERS, Cell, Results
from benchmarks.scale.data import make_folder

Row = dict[str, Any]
WORKER = "benchmarks.scale.worker"
#: The versions that matter here; networks do not take part.
USED = (*(p for p in PACKAGES if p not in ("pygam", "torch")), "pyarrow", "dask", "distributed")
GRACE = (
    60.0  # seconds that a cell may take beyond its fit: to make its rows, and to look at the result
)


@dataclass(frozen=True)
class Runner:
    """Where rows are written and answers kept, and how long a peer's fit may take."""

    results: Results
    data: Path
    limit: float

    def run(self, cells: Iterable[Cell], again: bool = False) -> None:
        """Measure; what is there stays, but for failures, and for all of it with ``again``."""
        asked = list(dict.fromkeys(cells))
        todo = [cell for cell in asked if again or self._open(cell)]
        code = code_version()
        with Progress(len(todo)) as advance:
            for cell in todo:
                started = datetime.now(UTC).isoformat(timespec="seconds")
                row = self.measure(cell)
                conditions = describe(cell.threads, USED)
                row |= {"code": code, "started": started, "conditions": conditions}
                self.results.add(cell, row)
                advance(f"{cell}: {outcome(row)}")

    def _open(self, cell: Cell) -> bool:
        known = self.results.get(cell)
        return known is None or "error" in known or known.get("cut", self.limit) < self.limit

    def measure(self, cell: Cell) -> Row:
        """The answer of a cell; a fit from files has a reference pass before and after it."""
        if cell.model in PEERS:
            if self.hopeless(cell):
                return {"cut": self.limit}
            row = self.ask(cell, limit=self.limit + GRACE)
            too_long = row.get("fit_seconds", 0.0) > self.limit
            return {"cut": self.limit} if "cut" in row or too_long else row
        if cell.source == "memory":
            return self.ask(cell)
        folder = make_folder(self.data, cell.rows, cell.columns, cell.target, cell.stepped)
        if cell.work != "fit":
            return self.ask(cell, folder)
        reference = replace(cell, work="reference")
        before = self.ask(reference, folder)
        row = self.ask(cell, folder)
        after = self.ask(reference, folder)
        if "error" in row or "error" in before or "error" in after:
            return {"error": row.get("error", before.get("error", after.get("error")))}
        passes = [before, after]
        return row | {
            "references": [one["seconds"] for one in passes],
            "reference_seconds": sum(one["seconds"] for one in passes) / 2,
            "whole_reference_seconds": sum(one["whole_seconds"] for one in passes) / 2,
        }

    def hopeless(self, cell: Cell) -> bool:
        """Whether the model took longer than it may now on no more rows of no more columns."""
        return any(
            row.get("cut", 0.0) >= self.limit and _within(Cell(**row["cell"]), cell)
            for row in self.results.rows.values()
        )

    def ask(self, cell: Cell, folder: Path | None = None, limit: float | None = None) -> Row:
        asked = json.dumps(asdict(cell))
        return ask(WORKER, [asked, str(folder or "")], cell.threads, limit)


def _within(small: Cell, large: Cell) -> bool:
    same = replace(small, rows=large.rows, columns=large.columns) == large
    smaller = small.rows <= large.rows and small.columns <= large.columns
    return same and smaller and small != large


def outcome(row: Row) -> str:
    """What a cell came to, in a few words."""
    if "error" in row:
        return f"FAILED {row['error']}"
    if "cut" in row:
        return f"cut, more than {row['cut']:.0f} s"
    shown = {
        "seconds": "{:.2f} s",
        "fit_seconds": "{:.2f} s",
        "pass_seconds": "{:.3f} s a pass",
        "passes": "{} passes",
        "recovered": "{:.5f} of the signal recovered",
    }
    told = [text.format(row[name]) for name, text in shown.items() if name in row]
    for place, answer in row.get("places", {}).items():
        told.append(f"{place}: {answer.get('error') or format(answer['mean'], '.1e')}")
    return ", ".join(told)
