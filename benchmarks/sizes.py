"""Time and memory against rows and columns; each fit in a process of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.child import ask
from benchmarks.environment import say

Row = dict[str, Any]
Cell = tuple[str, str, int, int, int]  # sweep, task, rows, columns, repeats
ROWS = (10_000, 100_000, 1_000_000)
COLUMNS = (10, 30, 100)
SWEEP_COLUMNS = 10
SWEEP_ROWS = 10_000
SCORED = (10_000, 100)  # rows and columns of the part that scores pairs
REPEATS = 3  # of the cells that are over soon; the largest is run once


def scale_cells() -> Iterator[Cell]:
    """Sweep, task, rows, columns and repeats of every cell."""
    for task in ("regression", "classification"):
        for rows in ROWS:
            repeats = 1 if rows == max(ROWS) else REPEATS
            yield "rows", task, rows, SWEEP_COLUMNS, repeats
    for columns in COLUMNS:
        yield "columns", "regression", SWEEP_ROWS, columns, REPEATS


def scale_rows(models: list[str], threads: int, max_rows: int | None = None) -> Iterator[Row]:
    """One row a sweep x size x model x repeat."""
    cells = (cell for cell in scale_cells() if max_rows is None or cell[2] <= max_rows)
    return _measured(cells, models, threads, "large")


def scoring_rows(models: list[str], threads: int) -> Iterator[Row]:
    """A hundred columns of which five matter: what it takes to score their 4,950 pairs."""
    return _measured([("pairs", "regression", *SCORED, REPEATS)], models, threads, "sparse")


def _measured(
    cells: Iterable[Cell], models: list[str], threads: int, problem: str
) -> Iterator[Row]:
    for sweep, task, rows, columns, repeats in cells:
        for model in models:
            for repeat in range(repeats):
                row: Row = {
                    "sweep": sweep,
                    "task": task,
                    "rows": rows,
                    "columns": columns,
                    "model": model,
                    "repeat": repeat,
                    "threads": threads,
                    **run_worker(model, task, rows, columns, threads, problem),
                }
                say(_progress(row))
                yield row


def run_worker(
    model: str, task: str, rows: int, columns: int, threads: int, problem: str = "large"
) -> Row:
    """Measure one cell in a child process."""
    arguments = [model, task, str(rows), str(columns), str(threads), problem]
    return ask("benchmarks.sizes_worker", arguments, threads)


def _progress(row: Row) -> str:
    cell = f"scale {row['task']} {row['rows']} x {row['columns']} {row['model']:<13}"
    if "error" in row:
        return f"{cell} FAILED {row['error']}"
    return (
        f"{cell} fit {row['fit_seconds']:.2f} s, {row['extra_over_data']:.1f} times the data, "
        f"predict {row['predict_seconds']:.2f} s"
    )
