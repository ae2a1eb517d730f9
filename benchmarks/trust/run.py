"""Measure what is not finished, several cells a process, and keep each cell when it is over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cells import Cell, Store
from benchmarks.environment import code_version
from benchmarks.progress import Progress
from benchmarks.run import carry_out
from benchmarks.trust.section import Plan, Section


@dataclass(frozen=True)
class Batch:
    """Cells of one set and model, which one process measures in turn."""

    section: str
    cells: tuple[Cell, ...]
    plan: Plan
    store: Store
    code: str

    @property
    def cell(self) -> Cell:
        """The cell that stands for the others where a process is named."""
        return self.cells[0]


def batches(section: Section, cells: Sequence[Cell], *shared: Any) -> Iterator[Batch]:
    """Cells in groups of one set and model; the models of a set take turns."""
    order = {name: place for place, name in enumerate(dict.fromkeys(cell.set for cell in cells))}
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.set, cell.model), []).append(cell)
    parts = [
        (order[name], start, tuple(own[start : start + section.batch]))
        for (name, _), own in groups.items()
        for start in range(0, len(own), section.batch)
    ]
    for _, _, part in sorted(parts, key=lambda one: one[:2]):
        yield Batch(section.name, part, *shared)


def measure_batch(batch: Batch) -> None:
    """Measure the cells of a batch; each is kept when it is over."""
    from threadpoolctl import threadpool_limits

    from benchmarks.trust.sections import SECTIONS

    with threadpool_limits(batch.plan.threads):
        rows = SECTIONS[batch.section].measure(batch.cells, batch.plan)
        for cell, row in zip(batch.cells, rows, strict=True):
            batch.store.write(cell, row | {"code": batch.code}, {})


def run(section: Section, cells: Sequence[Cell], plan: Plan, store: Store, jobs: int) -> None:
    """Measure cells, ``jobs`` processes at a time; with none, in this one."""
    code = code_version()
    todo = list(batches(section, cells, plan, store, code))
    with Progress(len(todo)) as advance:
        if jobs == 0:
            for batch in todo:
                measure_batch(batch)
                advance(describe(batch))
            return
        by_cell = {batch.cell: batch for batch in todo}
        for cell, died in carry_out(todo, jobs, None, measure_batch):
            advance(died or describe(by_cell[cell]))


def describe(batch: Batch) -> str:
    """What a batch came to, in a few words."""
    rows = [batch.store.read(cell) or {"error": "not measured"} for cell in batch.cells]
    failed = [row["error"] for row in rows if "error" in row]
    first, last = batch.cells[0].fold, batch.cells[-1].fold
    seconds = sum(row.get("seconds", 0.0) for row in rows)
    cell = batch.cell
    text = f"{cell.experiment} {cell.set} {cell.model} {first}-{last}: {seconds:.1f} s"
    return f"{text}; {len(failed)} FAILED: {failed[0]}" if failed else text
