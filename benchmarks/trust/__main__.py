"""Can predictions and intervals be trusted? Every section measures something, and has targets.

``python -m benchmarks.trust --data DIR`` measures what has not been measured yet, prints Markdown tables of
all sections to stdout, progress to stderr, and writes the tables and the tidy results to ``--out``.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.command import comma_separated
from benchmarks.environment import describe, say, thread_environment

if TYPE_CHECKING:  # numpy and its like are loaded only after the threads are limited
    from benchmarks.cells import Cell, Store
    from benchmarks.trust.section import Plan, Section

PACKAGES = ("lanam", "numpy", "scipy", "scikit-learn", "interpret-core", "lightgbm", "catboost")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="directory of the folders of data sets")
    add("--only", nargs="+", metavar="SECTION", help="some sections; all by default")
    add("--seeds", type=int, help="seeds of made-up problems; each section has its own default")
    add("--quick", action="store_true", help="few seeds, small sizes, one fold")
    add("--sets", type=comma_separated, help="comma-separated; all of the sections by default")
    add("--models", type=comma_separated, help="comma-separated; all of the sections by default")
    add("--jobs", type=int, default=1, help="processes at a time; 0: in this one")
    add("--threads", type=int, default=1, help="of each process")
    add("--again", action="store_true", help="measure finished cells again")
    add("--tables-only", action="store_true", help="report again from what --out has")
    add("--out", type=Path, default=Path("results") / "trust", help="folder of results")
    add(
        "--compare", type=Path, metavar="CSV", help="sets.csv of an earlier run: paired differences"
    )
    add("--page", type=Path, help="folder for a copy of tables and CSV files: docs/results/trust")
    return parser.parse_args(arguments)


def chosen(options: argparse.Namespace) -> list[Section]:
    """The sections that were asked for."""
    from benchmarks.trust.sections import SECTIONS

    unknown = [name for name in options.only or () if name not in SECTIONS]
    if unknown:
        raise SystemExit(f"unknown sections {unknown}; known: {', '.join(SECTIONS)}")
    return [SECTIONS[name] for name in options.only or SECTIONS]


def planned(section: Section, options: argparse.Namespace, plan: Plan, store: Store) -> list[Cell]:
    """The cells of a section that are to be measured."""
    cells = [
        cell
        for cell in section.cells(plan)
        if (not options.sets or cell.set in options.sets)
        and (not options.models or cell.model in options.models)
    ]
    known = {cell: store.read(cell) for cell in cells}
    if options.again:
        return cells
    return [cell for cell, row in known.items() if row is None or "error" in row]


def report(section: Section, store: Store, out: Sequence[Path]) -> str:
    """Tables and targets of what is finished; also into files, with the tidy results."""
    from benchmarks.paper.tables.words import paragraphs
    from benchmarks.trust.section import failures, target_table

    source = section.source or section.name
    cells = [cell for cell in store.cells() if cell.experiment == source]
    results = store.collect(cells)
    if results.empty:
        return ""
    commits = ", ".join(sorted(results["code"].dropna().unique()))
    text = paragraphs(
        [
            *section.tables(results),
            failures(results),
            "### Targets",
            target_table(section.targets(results)),
            f"Measured at commit {commits}.",
        ]
    )
    for folder in out:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{section.name}.md").write_text(text)
        results.to_csv(folder / f"{section.name}.csv", index=False)
    return f"## {section.title}\n\n{text}"


def compared(options: argparse.Namespace) -> str:
    """The results of the data sets beside those of an earlier run; also into a file."""
    import pandas as pd

    from benchmarks.trust.sets import compare

    text = compare(pd.read_csv(options.out / "sets.csv"), pd.read_csv(options.compare))
    (options.out / "compared.md").write_text(text)
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, report, write."""
    options = parse(arguments)
    os.environ.update(thread_environment(options.threads))
    # a run that is terminated takes its processes along
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended; what was measured is kept"))
    # Imported only now: pools of threads are sized when numpy and its like are first loaded.
    from benchmarks.cells import Store
    from benchmarks.trust import mgcv
    from benchmarks.trust.run import run
    from benchmarks.trust.section import Plan

    store = Store(options.out)
    plan = Plan(options.data, options.seeds, options.quick, options.threads)
    sections = chosen(options)
    print(f"# Can the intervals be trusted?\n\n{describe(options.threads, PACKAGES)}\n", flush=True)
    if mgcv.missing():
        print(f"mgcv is skipped: {mgcv.missing()}.\n", flush=True)
    for section in sections:
        if section.needs_data and options.data is None:
            say(f"SKIPPED {section.name}: it reads the data sets of --data")
        elif not options.tables_only:
            try:
                run(section, planned(section, options, plan, store), plan, store, options.jobs)
            except KeyboardInterrupt:
                sys.exit("ended; what was measured is kept")
        print(report(section, store, [p for p in (options.out, options.page) if p]), flush=True)
        if section.name == "sets" and options.compare is not None:
            print(compared(options), flush=True)


if __name__ == "__main__":
    main()
