"""The benchmark of the core: quality, coverage, selection, speed and scale in one run.

``python -m benchmarks.core --data DIR`` reads the sets of ``DIR/uci``, prints Markdown tables to
stdout, progress to stderr, and writes the tidy results and the report to ``--out``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.environment import describe, say, thread_environment

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
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="directory that holds the folder 'uci'")
    add("--folds", type=int, default=5, help="how many of the five folds to run")
    add("--sets", type=_names, default=None, help="comma-separated; all fourteen by default")
    add("--models", type=_names, default=None, help="comma-separated; also lanam-paper, pygam")
    add("--parts", type=_names, default=list(PARTS), help=f"of {','.join(PARTS)}")
    add("--out", type=Path, default=Path("results/core"), help="directory for CSV and report")
    add("--threads", type=int, default=2, help="for every model alike")
    add("--seeds", type=int, default=30, help="of the toy problems")
    add("--sparse-seeds", type=int, default=10, help="of the 5-in-50 problem")
    add("--scale-rows", type=int, default=None, help="leave out larger cells of the scale part")
    add("--public-python", default=os.environ.get("LANAM_PUBLIC_PYTHON"), help=PUBLIC_HELP)
    add("--public-folds", type=int, default=1, help="folds for it; it is slow")
    add("--page", type=Path, help="also write the report to this file, as the documentation does")
    add("--tables-only", action="store_true", help="report again from the CSV files in --out")
    options = parser.parse_args(arguments)
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown parts {sorted(unknown)}; known: {', '.join(PARTS)}")
    needs_data = set(ON_SETS) & set(options.parts)
    if needs_data and options.data is None and not options.tables_only:
        parser.error(f"--data is needed for {', '.join(sorted(needs_data))}")
    return options


PUBLIC_HELP = (
    "interpreter in which the paper's implementation (laplace_skorch) is installed; "
    "LANAM_PUBLIC_PYTHON does the same"
)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _collect(rows: Iterable[dict[str, Any]], path: Path) -> None:
    """Write rows to a CSV file as they come, so that a run that is cut short keeps its results."""
    import pandas as pd

    kept: list[dict[str, Any]] = []
    for row in rows:
        kept.append(row)
        pd.DataFrame(kept).to_csv(path, index=False)


def run(options: argparse.Namespace) -> list[str]:
    """Run the parts that were asked for; results go to CSV files, what was skipped is returned."""
    # Imported only now: pools of threads are sized when numpy and its like are first loaded.
    from threadpoolctl import threadpool_limits

    from benchmarks import recovery, scale
    from benchmarks.peers import DEFAULT_MODELS, all_peers
    from benchmarks.runner import available

    peers = all_peers(options.public_python)
    names = options.models or list(DEFAULT_MODELS)
    unknown = [name for name in names if name not in peers]
    if unknown:
        raise SystemExit(f"unknown models {unknown}; known: {', '.join(peers)}")
    parts, out = set(options.parts), options.out
    if "public" in parts and "public" not in names:
        names.append("public")
    runnable, skipped = available(peers[name] for name in names)
    present = {peer.name: peer for peer in runnable}
    if parts & {"coverage", "selection"} and peers["lanam"].missing():
        skipped.append("SKIPPED coverage and selection: lanam is not installed")
        parts -= {"coverage", "selection"}
    for line in skipped:
        say(line)
    with threadpool_limits(options.threads):
        if parts & set(ON_SETS):
            _collect(_quality_rows(options, present), out / "quality.csv")
        if "coverage" in parts:
            _collect(recovery.coverage_rows(options.seeds), out / "coverage.csv")
        if "selection" in parts:
            rows = recovery.selection_rows(options.seeds, options.sparse_seeds)
            _collect(rows, out / "selection.csv")
    if "scale" in parts:
        models = [name for name in present if name in ("lanam", "lightgbm")]
        rows = scale.scale_rows(models, options.threads, options.scale_rows)
        _collect(rows, out / "scale.csv")
    return skipped


def _quality_rows(options: argparse.Namespace, present: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Rows of all sets x folds x models; the public implementation joins the first folds only.

    Where it is all that was asked for, lanam alone runs beside it.
    """
    from benchmarks.datasets import ALL_SETS, load_uci
    from benchmarks.runner import run_sets, warm_up

    datasets = [load_uci(options.data, name) for name in options.sets or ALL_SETS]
    if not {"quality", "speed"} & set(options.parts):
        if "public" not in present:
            return []
        options.folds = options.public_folds
        present = {name: peer for name, peer in present.items() if name in ("lanam", "public")}
    slow = {"public", "lanam-paper"}
    warm_up([peer for name, peer in present.items() if name not in slow], options.threads)
    folds_by_peer = [
        (peer, options.public_folds if name == "public" else options.folds)
        for name, peer in present.items()
    ]
    return run_sets(datasets, folds_by_peer, options.threads)


def report(options: argparse.Namespace, skipped: Sequence[str] = ()) -> str:
    """All tables of the parts that were asked for, from the CSV files."""
    import pandas as pd

    from benchmarks import tables, verdicts

    def read(name: str) -> pd.DataFrame | None:
        path = options.out / f"{name}.csv"
        if not path.exists():
            return None
        frame = pd.read_csv(path)
        return frame.reindex(columns=list(dict.fromkeys([*frame.columns, *RESULTS[name]])))

    parts, paper = set(options.parts), verdicts.read_paper()
    blocks = ["## Benchmark of the core\n", describe(options.threads) + "\n"]
    blocks += [f"{line}\n" for line in skipped]
    judged: list[verdicts.Verdict] = []
    results = read("quality") if parts & set(ON_SETS) else None
    if results is not None:
        if "quality" in parts:
            blocks += tables.quality_tables(results, paper)
            for model in ("lanam", "lanam-smooth", "lanam-paper"):
                if model in set(results["model"]):
                    judged += verdicts.quality_verdicts(results, paper, model)
        blocks.append(tables.speed_table(results))
        judged += verdicts.speed_verdicts(results)
    for part, table, judge in (
        ("coverage", tables.coverage_table, verdicts.coverage_verdicts),
        ("selection", tables.selection_table, verdicts.selection_verdicts),
    ):
        rows = read(part) if part in parts else None
        if rows is not None:
            blocks.append(table(rows))
            judged += judge(rows)
    scale = read("scale") if "scale" in parts else None
    if scale is not None:
        blocks += tables.scale_tables(scale)
        judged += verdicts.scale_verdicts(scale)
    blocks.append(verdicts.verdict_table(judged))
    return "\n".join(block for block in blocks if block)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, report, write."""
    options, skipped = parse(arguments), []
    os.environ.update(thread_environment(options.threads))
    if not options.tables_only:
        options.out.mkdir(parents=True, exist_ok=True)
        # A part that gives nothing must not report an older run's figures; files of parts
        # that were not asked for stay.
        for part in options.parts:
            name = "quality" if part in ON_SETS else part
            (options.out / f"{name}.csv").unlink(missing_ok=True)
        skipped = run(options)
    text = report(options, skipped)
    for path in filter(None, [options.out / "report.md", options.page]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
