"""What is to be measured, cell by cell, and the file that keeps what has been."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

Row = dict[str, Any]
PARTS = {
    1: "one reference pass",
    2: "rows beyond memory",
    3: "time against rows and columns",
    4: "two workers against one",
    5: "the same model wherever rows live",
}
ROWS = 10_000_000
QUICK = 100  # by how much everything is smaller with --quick
COLUMNS = 10
SWEEP_COLUMNS = (10, 30, 100, 300)
SWEEP_COLUMNS_ROWS = 100_000
IN_MEMORY = 1_000_000  # rows up to which ours are fitted in memory too
AGREEMENT_ROWS = 100_000
OURS = ("lanam", "lanam-auto")  # without pairs, and with as many as pay
PEERS = ("ebm", "ebm-pairs", "lightgbm")


@dataclass(frozen=True)
class Cell:
    """One measurement: what work, by which model, on rows that live where."""

    work: str  # "reference", "fit", "workers" or "agreement"
    model: str = "lanam"
    source: str = "files"  # "files", "memory" or "dask"
    target: str = "y"
    rows: int = ROWS
    columns: int = COLUMNS
    threads: int = 1
    workers: int = 0
    stepped: bool = False  # columns of few values, of which sketches are exact

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    def __str__(self) -> str:
        where = f"{self.workers} worker{'s' if self.workers > 1 else ''}" if self.workers else ""
        few = "few values" if self.stepped else ""
        words = (self.work, self.model, where or self.source, self.target, few)
        return f"{' '.join(filter(None, words))} {self.rows:,} x {self.columns}"


@dataclass(frozen=True)
class Sizes:
    """How much is measured; the sweep over rows goes up to ``rows`` by tens."""

    rows: int = ROWS
    threads: int = 2
    quick: bool = False

    @property
    def most(self) -> int:
        return self._few(self.rows)

    @property
    def sweep(self) -> list[int]:
        return [self._few(self.rows // 10**k) for k in (3, 2, 1, 0)]

    @property
    def sweep_columns_rows(self) -> int:
        return self._few(SWEEP_COLUMNS_ROWS)

    @property
    def in_memory(self) -> int:
        return self._few(IN_MEMORY)

    @property
    def agreement(self) -> int:
        return self._few(AGREEMENT_ROWS)

    def _few(self, rows: int) -> int:
        return max(100, rows // QUICK) if self.quick else rows


def cells(part: int, sizes: Sizes) -> list[Cell]:
    """All measurements of a part, the small ones first."""
    makers = {1: _reference, 2: _large, 3: _growth, 4: _workers, 5: _agreement}
    return list(dict.fromkeys(makers[part](sizes)))


def _reference(sizes: Sizes) -> Iterator[Cell]:
    yield Cell("reference", rows=sizes.most, threads=sizes.threads)


def _large(sizes: Sizes) -> Iterator[Cell]:
    for model in OURS:
        for target in ("y", "ill"):
            yield Cell("fit", model, "files", target, sizes.most, threads=sizes.threads)


def _growth(sizes: Sizes) -> Iterator[Cell]:
    for rows in sizes.sweep:
        base = Cell("fit", rows=rows, threads=sizes.threads)
        yield from (replace(base, model=model) for model in OURS)
        yield replace(base, target="ill")
        if rows <= sizes.in_memory:
            yield from (replace(base, model=model, source="memory") for model in OURS)
        yield from (replace(base, model=peer, source="memory") for peer in PEERS)
    for columns in SWEEP_COLUMNS:
        base = Cell("fit", rows=sizes.sweep_columns_rows, columns=columns, threads=sizes.threads)
        yield from (replace(base, model=m, source="memory") for m in (*OURS, *PEERS))
        yield from (replace(base, model=model) for model in OURS)


def _workers(sizes: Sizes) -> Iterator[Cell]:
    for target in ("y", "ill"):
        for workers in (1, 2):
            yield Cell("workers", "lanam", "dask", target, sizes.most, workers=workers)


def _agreement(sizes: Sizes) -> Iterator[Cell]:
    for model, target in (("lanam", "y"), ("lanam", "ill"), ("lanam-auto", "y")):
        for stepped in (True, False):
            yield Cell(
                "agreement", model, "all", target, sizes.agreement, workers=2, stepped=stepped
            )


class Results:
    """Answers as JSON lines: one a measurement, added when it is over; of two the later counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, Row] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                if line.strip():
                    row = json.loads(line)
                    self.rows[Cell(**row["cell"]).key] = row

    def get(self, cell: Cell) -> Row | None:
        """What was measured, with its conditions; None if nothing was."""
        return self.rows.get(cell.key)

    def add(self, cell: Cell, row: Row) -> None:
        whole = {"cell": asdict(cell), **row}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(whole) + "\n")
        self.rows[cell.key] = whole
