"""The benchmark of the core: quality, coverage, selection, speed and scale in one run.

``python -m benchmarks.core --data DIR`` reads the sets of ``DIR/uci``, prints Markdown tables to
stdout, progress to stderr, and writes the tidy results and the report to ``--out``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks import command
from benchmarks.environment import describe, say

if TYPE_CHECKING:
    import pandas as pd

ON_SETS = ("quality", "speed", "public")  # parts that need the data sets
# One CSV file each, with the columns a report counts on even where every fit failed.
RESULTS = {
    "quality": ["set", "model", "fold", "nll", "fit_seconds"],
    "coverage": ["correlation", "posterior", "seed", "function", "coverage", "active"],
    "selection": ["problem", "noise_active", "informative_lost", "fit_seconds"],
    "scale": ["sweep", "task", "rows", "columns", "model", "fit_seconds"],
}
PARTS = ("quality", "coverage", "selection", "speed", "scale", "public")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = command.make_parser("core", __doc__, PARTS)
    add = parser.add_argument
    add("--seeds", type=int, default=30, help="of the toy problems")
    add("--sparse-seeds", type=int, default=10, help="of the 5-in-50 problem")
    add("--scale-rows", type=int, default=None, help="leave out larger cells of the scale part")
    add("--public-python", default=os.environ.get("LANAM_PUBLIC_PYTHON"), help=PUBLIC_HELP)
    add("--public-folds", type=int, default=1, help="folds for it; it is slow")
    return command.read_options(parser, arguments, PARTS, ON_SETS)


PUBLIC_HELP = (
    "interpreter in which the paper's implementation (laplace_skorch) is installed; "
    "LANAM_PUBLIC_PYTHON does the same"
)


def run(options: argparse.Namespace) -> list[str]:
    """Run the parts that were asked for; results go to CSV files, what was skipped is returned."""
    # Imported only now: pools of threads are sized when numpy and its like are first loaded.
    from threadpoolctl import threadpool_limits

    from benchmarks import recovery, sizes
    from benchmarks.peers import DEFAULT_MODELS, all_peers

    names = options.models or list(DEFAULT_MODELS)
    parts, out = set(options.parts), options.out
    if "public" in parts and "public" not in names:
        names.append("public")
    present, skipped = command.choose(names, options.public_python)
    if parts & {"coverage", "selection"} and all_peers()["lanam"].missing():
        skipped.append("SKIPPED coverage and selection: lanam is not installed")
        say(skipped[-1])
        parts -= {"coverage", "selection"}
    with threadpool_limits(options.threads):
        if parts & set(ON_SETS):
            command.collect(_quality_rows(options, present), out / "quality.csv")
        if "coverage" in parts:
            command.collect(recovery.coverage_rows(options.seeds), out / "coverage.csv")
        if "selection" in parts:
            rows = recovery.selection_rows(options.seeds, options.sparse_seeds)
            command.collect(rows, out / "selection.csv")
    if "scale" in parts:
        models = [name for name in present if name in ("lanam", "lightgbm")]
        rows = sizes.scale_rows(models, options.threads, options.scale_rows)
        command.collect(rows, out / "scale.csv")
    return skipped


def _quality_rows(options: argparse.Namespace, present: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Rows of all sets x folds x models; the public implementation joins the first folds only.

    Where it is all that was asked for, lanam alone runs beside it.
    """
    if not {"quality", "speed"} & set(options.parts):
        if "public" not in present:
            return []
        options.folds = options.public_folds
        present = {name: peer for name, peer in present.items() if name in ("lanam", "public")}
    folds_by_peer = [
        (peer, options.public_folds if name == "public" else options.folds)
        for name, peer in present.items()
    ]
    return command.quality_rows(options, folds_by_peer)


def report(options: argparse.Namespace, skipped: Sequence[str] = ()) -> str:
    """All tables of the parts that were asked for, from the CSV files."""
    from benchmarks import markdown, verdicts

    def read(name: str) -> pd.DataFrame | None:
        return command.read(options.out / f"{name}.csv", RESULTS[name])

    parts, paper = set(options.parts), verdicts.read_paper()
    blocks = ["## Benchmark of the core\n", describe(options.threads) + "\n"]
    blocks += [f"{line}\n" for line in skipped]
    judged: list[verdicts.Verdict] = []
    results = read("quality") if parts & set(ON_SETS) else None
    if results is not None:
        if "quality" in parts:
            blocks += markdown.quality_tables(results, paper)
            for model in ("lanam", "lanam-smooth", "lanam-paper"):
                if model in set(results["model"]):
                    judged += verdicts.quality_verdicts(results, paper, model)
        blocks.append(markdown.speed_table(results))
        judged += verdicts.speed_verdicts(results)
    for part, table, judge in (
        ("coverage", markdown.coverage_table, verdicts.coverage_verdicts),
        ("selection", markdown.selection_table, verdicts.selection_verdicts),
    ):
        rows = read(part) if part in parts else None
        if rows is not None:
            blocks.append(table(rows))
            judged += judge(rows)
    scale = read("scale") if "scale" in parts else None
    if scale is not None:
        blocks += markdown.scale_tables(scale)
        judged += verdicts.scale_verdicts(scale)
    blocks.append(verdicts.verdict_table(judged))
    return "\n".join(block for block in blocks if block)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, report, write."""
    options = parse(arguments)
    files = ["quality" if part in ON_SETS else part for part in options.parts]
    command.carry_out(options, files, run, report)


if __name__ == "__main__":
    main()
