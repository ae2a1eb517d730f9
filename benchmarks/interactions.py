"""The benchmark of interactions: quality with pairs of columns, planted pairs, scoring at scale.

``python -m benchmarks.interactions --data DIR`` reads the sets of ``DIR/uci``, prints Markdown tables
to stdout, progress to stderr, and writes the tidy results and the report to ``--out``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks import command
from benchmarks.environment import describe

# One CSV file each, with the columns a report counts on even where every fit failed.
RESULTS = {
    "quality": ["set", "model", "fold", "threads", "nll", "fit_seconds"],
    "planted": ["seed", "score", "planted_added", "false_added", "fit_seconds"],
    "scale": ["model", "scoring_seconds", "fit_seconds", "extra_bytes", "extra_over_data"],
}
PARTS = tuple(RESULTS)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = command.make_parser("interactions", __doc__, PARTS)
    add = parser.add_argument
    add("--seeds", type=int, default=20, help="of the planted problem")
    add("--merge", type=Path, nargs="+", default=[], help="report quality.csv of these --out too")
    return command.read_options(parser, arguments, PARTS, ["quality"])


def run(options: argparse.Namespace) -> list[str]:
    """Run the parts that were asked for; results go to CSV files, what was skipped is returned."""
    # Imported only now: pools of threads are sized when numpy and its like are first loaded.
    from threadpoolctl import threadpool_limits

    from benchmarks import recovery, sizes
    from benchmarks.peers import PAIR_MODELS

    present, skipped = command.choose(options.models or PAIR_MODELS)
    with threadpool_limits(options.threads):
        if "quality" in options.parts:
            folds_by_peer = [(peer, options.folds) for peer in present.values()]
            rows = command.quality_rows(options, folds_by_peer)
            command.collect(rows, options.out / "quality.csv")
        if "planted" in options.parts:
            command.collect(recovery.planted_rows(options.seeds), options.out / "planted.csv")
    if "scale" in options.parts:
        models = [name for name in present if name in ("lanam", "lanam10")]
        command.collect(sizes.scoring_rows(models, options.threads), options.out / "scale.csv")
    return skipped


def report(options: argparse.Namespace, skipped: Sequence[str] = ()) -> str:
    """All tables of the parts that were asked for, from the CSV files."""
    from benchmarks import markdown, verdicts

    blocks = ["## Benchmark of interactions\n", describe(options.threads) + "\n"]
    blocks += [f"{line}\n" for line in skipped]
    judged: list[verdicts.Verdict] = []
    runs = None
    if "quality" in options.parts:
        directories = [options.out, *options.merge]
        runs = command.read_runs(directories, "quality", RESULTS["quality"])
    if runs is not None:
        # Likelihoods of a cell that was run twice: the first. Times: all, each run by itself.
        results = runs.drop_duplicates(["set", "model", "fold"])
        blocks += markdown.pair_tables(results, verdicts.read_paper())
        for threads, group in runs.groupby("threads"):
            title = f"Fit seconds, median over folds, threads: {threads:.0f}"
            blocks.append(markdown.speed_table(group, "lanam10", title))
        judged += verdicts.pair_verdicts(results)
        judged.append(verdicts.time_verdict(runs, "lanam10", "ebm10", 1 / 10))
    for part, table, judge in (
        ("planted", markdown.planted_tables, verdicts.planted_verdicts),
        ("scale", markdown.scoring_tables, verdicts.scoring_verdicts),
    ):
        wanted = part in options.parts
        rows = command.read(options.out / f"{part}.csv", RESULTS[part]) if wanted else None
        if rows is not None:
            blocks += table(rows)
            judged += judge(rows)
    blocks.append(verdicts.verdict_table(judged))
    return "\n".join(block for block in blocks if block)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, report, write."""
    options = parse(arguments)
    command.carry_out(options, options.parts, run, report)


if __name__ == "__main__":
    main()
