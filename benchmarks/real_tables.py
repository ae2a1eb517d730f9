"""The benchmark of real tables: categories, missing cells, counts, classes, many levels.

``python -m benchmarks.real_tables --data DIR`` reads the raw sets of ``DIR/open`` and some of ``DIR/uci``,
prints Markdown tables to stdout, progress to stderr, and writes the tidy results and the report to
``--out``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import command
from benchmarks.environment import describe, say

if TYPE_CHECKING:
    from benchmarks.command import Row
    from benchmarks.data.sets import Dataset
    from benchmarks.peers import Peer

# One CSV file each, with the columns a report counts on even where every fit failed.
RESULTS = {
    "quality": ["set", "model", "fold", "threads", "nll", "fit_seconds"],
    "missing": ["set", "model", "fold", "threads", "gaps", "nll", "fit_seconds"],
    "classes": ["set", "model", "fold", "threads", "nll", "fit_seconds"],
    "levels": [
        *("model", "rows", "levels", "threads", "fit_seconds", "extra_bytes", "rmse"),
        *("correlation", "band_coverage", "unseen", "unseen_band_coverage"),
    ],
}
PARTS = tuple(RESULTS)
KEYS = ("set", "model", "fold", "gaps", "rows", "levels")  # of a cell, where a part has them
GAPS = (0.0, 0.2)  # shares of missing cells


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = command.make_parser("real_tables", __doc__, PARTS)
    add = parser.add_argument
    add("--merge", type=Path, nargs="+", default=[], help="report the CSV files of these --out too")
    return command.read_options(parser, arguments, PARTS, ["quality", "missing"])


def run(options: argparse.Namespace) -> list[str]:
    """Run the parts that were asked for; results go to CSV files, what was skipped is returned."""
    # Imported only now: pools of threads are sized when numpy and its like are first loaded.
    from threadpoolctl import threadpool_limits

    from benchmarks import levels
    from benchmarks.data import frames
    from benchmarks.data.sets import load_uci
    from benchmarks.peers import TABLE_MODELS
    from benchmarks.runner import run_sets, warm_up

    sets = {
        "quality": frames.RAW_SETS,
        "missing": frames.GAP_SETS,
        "classes": frames.CLASS_SETS,
    }
    _refuse_unknown(options.sets, sets.values(), "sets")
    _refuse_unknown(options.models, TABLE_MODELS.values(), "models")
    wanted = {part: _those(TABLE_MODELS[part], options.models) for part in options.parts}
    named = dict.fromkeys(name for models in wanted.values() for name in models)
    present, skipped = command.choose(list(named))
    if set(options.parts) & set(sets):
        warm_up(present.values(), options.threads)
    for part in options.parts:
        peers = [present[name] for name in wanted[part] if name in present]
        folds_by_peer = [(peer, options.folds) for peer in peers]
        names = _those(sets.get(part, ()), options.sets)
        if part == "quality":
            data = (frames.load_raw(options.data, name) for name in names)
            rows = run_sets(data, folds_by_peer, options.threads)
        elif part == "missing":
            data = (load_uci(options.data, name) for name in names)
            rows = gap_rows(data, folds_by_peer, options.threads)
        elif part == "classes":
            data = (frames.load_classes(name) for name in names)
            rows = run_sets(data, folds_by_peer, options.threads)
        else:
            rows = levels.levels_rows([peer.name for peer in peers], options.threads)
        with threadpool_limits(options.threads):
            command.collect(rows, options.out / f"{part}.csv")
    return skipped


def _those(names: Iterable[str], asked: Sequence[str] | None) -> list[str]:
    return [name for name in names if asked is None or name in asked]


def _refuse_unknown(
    asked: Sequence[str] | None, groups: Iterable[Sequence[str]], what: str
) -> None:
    known = list(dict.fromkeys(name for group in groups for name in group))
    unknown = [name for name in asked or () if name not in known]
    if unknown:
        raise SystemExit(f"unknown {what} {unknown}; known: {', '.join(known)}")


def gap_rows(
    datasets: Iterable[Dataset], folds_by_peer: Sequence[tuple[Peer, int]], threads: int
) -> Iterator[Row]:
    """Each set whole, and with a share of its cells missing, in training and test rows alike."""
    from benchmarks.data.frames import with_gaps
    from benchmarks.runner import run_sets

    for dataset in datasets:
        for share in GAPS:
            say(f"{dataset.name} with {share:.0%} of its cells missing")
            for row in run_sets([with_gaps(dataset, share)], folds_by_peer, threads):
                yield row | {"gaps": share}


def report(options: argparse.Namespace, skipped: Sequence[str] = ()) -> str:
    """All tables of the parts that were asked for, from the CSV files."""
    from benchmarks import real_tables_report, verdicts

    blocks = ["## Benchmark of real tables\n", describe(options.threads) + "\n"]
    blocks += [f"{line}\n" for line in skipped]
    judged: list[verdicts.Verdict] = []
    for part in options.parts:
        runs = command.read_runs([options.out, *options.merge], part, RESULTS[part])
        if runs is None:
            continue
        # Scores of a cell that was run twice: the first. Times: all, each run by itself.
        results = runs.drop_duplicates([key for key in KEYS if key in RESULTS[part]])
        tables, judge = real_tables_report.SECTIONS[part]
        blocks += [real_tables_report.code_note(part, results), *tables(results, runs)]
        judged += judge(results, runs)
    blocks.append(verdicts.verdict_table(judged))
    return "\n".join(block for block in blocks if block)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, report, write."""
    options = parse(arguments)
    command.carry_out(options, options.parts, run, report)


if __name__ == "__main__":
    main()
