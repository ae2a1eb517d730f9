"""Time and memory against rows and columns; each fit in its own process.

``python -m benchmarks.sizes --data DIR`` measures the CPU time of fits against columns, classes and rows,
and on the small tables of ``DIR/uci``. Cells that are in the CSV file of ``--out`` are not run again.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.child import ask
from benchmarks.command import comma_separated
from benchmarks.environment import describe, say

if TYPE_CHECKING:  # loaded only after the threads are limited
    import pandas as pd

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


# --- python -m benchmarks.sizes ---------------------------------------------------------------------

PARTS = ("sets", "columns", "few", "classes", "rows", "noise")
MODELS = ("lanam", "lanam-auto", "lightgbm")
FIELDS = ("part", "model", "size", "cpu_seconds", "nll", "error")
LIMIT = 1800.0
TITLES = {
    "sets": "Small tables, first fold",
    "columns": "Columns that all matter, 10,000 rows",
    "few": "Columns of which five matter, 10,000 rows",
    "classes": "Classes, 5,000 rows of ten columns",
    "rows": "Rows of ten columns that all matter",
    "noise": "Small tables: the fit with constant noise",
}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="directory of the folder uci, for the parts sets and noise")
    add("--parts", type=comma_separated, default=list(PARTS), help=f"of {','.join(PARTS)}")
    add("--models", type=comma_separated, default=list(MODELS), help="see benchmarks/peers")
    for part, sizes in (("columns", "10,30,100"), ("few", "100"), ("classes", "3,5,10")):
        add(f"--{part}", type=comma_separated, default=sizes.split(","), help="sizes of this part")
    add("--rows", type=comma_separated, default=["3000", "10000", "50000"])
    add("--sets", type=comma_separated, default=None, help="of uci; all by default")
    add("--out", type=Path, default=Path("results/sizes"), help="directory of the CSV file")
    add("--page", type=Path, help="also write the tables here, as the documentation does")
    add("--figure", type=Path, help="draw CPU time against columns here")
    return parser.parse_args(arguments)


def cost_cells(options: argparse.Namespace) -> Iterator[tuple[str, str, list[str]]]:
    """Part, size, and the worker's task, rows, columns, threads and problem of every cell."""
    from benchmarks.data.sets import ALL_SETS, task_of

    sets = [] if options.data is None else options.sets or list(ALL_SETS)
    for name in sets:
        of_set = [task_of(name), "0", "0", "1", str(options.data / "uci" / name)]
        yield "sets", name, of_set
        yield "noise", name, of_set
    for size in options.columns:
        yield "columns", size, ["regression", str(SWEEP_ROWS), size, "1", "large"]
    for size in options.few:
        yield "few", size, ["regression", str(SWEEP_ROWS), size, "1", "sparse"]
    for size in options.classes:
        yield "classes", size, ["multiclass", "5000", "10", "1", size]
    for size in options.rows:
        yield "rows", size, ["regression", size, str(SWEEP_COLUMNS), "1", "large"]


def measure_costs(options: argparse.Namespace, path: Path) -> None:
    """Run the cells that the file does not have yet, and append them."""
    known = set()
    if path.exists():
        with path.open() as file:
            known = {(row["part"], row["model"], row["size"]) for row in csv.DictReader(file)}
    for part, size, arguments in cost_cells(options):
        for model in ("lanam-constant",) if part == "noise" else options.models:
            if part not in options.parts or (part, model, size) in known:
                continue
            answer = ask("benchmarks.sizes_worker", [model, *arguments], 1, LIMIT)
            row = {"part": part, "model": model, "size": size, **answer}
            if "cut" in row:
                row["error"] = f"over {LIMIT:.0f} s"
            say(f"{part} {size} {model}: {row.get('cpu_seconds', row.get('error'))}")
            is_new = not path.exists()
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, extrasaction="ignore")
                if is_new:
                    writer.writeheader()
                writer.writerow(row)


def cost_tables(costs: pd.DataFrame) -> list[str]:
    """CPU seconds of each part by size and model, with slopes and ratios where they mean something."""
    import numpy as np

    from benchmarks.markdown import markdown, number
    from benchmarks.metrics import geometric_mean, log_log_slope

    tables = []
    for part in (part for part in PARTS if part in set(costs["part"])):
        own = costs[costs["part"] == part]
        table = own.pivot_table(index="size", columns="model", values="cpu_seconds", sort=False)
        rows = [[str(size), *(number(v) for v in values)] for size, *values in table.itertuples()]
        if part in ("columns", "classes", "rows") and len(table) > 1:
            sizes = table.index.to_numpy(float)
            slopes = [log_log_slope(sizes, table[model].to_numpy()) for model in table]
            rows.append(["slope", *(number(slope, 2) for slope in slopes)])
        if part == "sets" and "lightgbm" in table:
            ratios = [geometric_mean(table[m] / table["lightgbm"]) for m in table]
            rows.append(["times LightGBM's", *(number(float(ratio), 1) for ratio in ratios)])
        if part == "noise" and "sets" in set(costs["part"]):
            whole = costs[(costs["part"] == "sets") & (costs["model"] == "lanam")]
            share = whole.set_index("size")["cpu_seconds"] / table["lanam-constant"]
            rows.append(["with its noise, times", number(float(np.exp(np.log(share).mean())), 2)])
        tables.append(markdown(["", *table.columns], rows, TITLES[part]))
    return tables


def draw_costs(costs: pd.DataFrame, path: Path) -> None:
    """CPU time against columns that all matter."""
    import matplotlib.pyplot as plt

    own = costs[costs["part"] == "columns"].astype({"size": float})
    figure, axes = plt.subplots(figsize=(4.5, 3.0), layout="constrained")
    for model, lines in own.groupby("model"):
        axes.loglog(lines["size"], lines["cpu_seconds"], "o-", label=model)
    axes.set(xlabel="columns that all matter", ylabel="CPU seconds of a fit")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measure what is missing, and print the tables."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "costs.csv"
    measure_costs(options, path)
    import pandas as pd

    costs = pd.read_csv(path, dtype={"size": str})
    about = f"CPU seconds of one fit with one thread. {describe(1)}"
    report = "\n".join([about + "\n", *cost_tables(costs)])
    print(report)
    if options.page:
        options.page.write_text(report)
    if options.figure:
        draw_costs(costs, options.figure)


if __name__ == "__main__":
    main()
