"""What the commands share: their options, their files of rows, and the way of a report."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.environment import code_version, say, thread_environment

if TYPE_CHECKING:  # numpy and its like are loaded only after the threads are limited
    import pandas as pd

    from benchmarks.peers import Peer

Row = dict[str, Any]
SLOW = {"public", "lanam-paper", "lanam10-paper"}  # no warm-up


def make_parser(
    name: str, description: str | None, parts: Sequence[str]
) -> argparse.ArgumentParser:
    """The options that every command has."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    add = parser.add_argument
    add("--data", type=Path, help="directory of the folders of data sets")
    add("--folds", type=int, default=5, help="how many of the five folds to run")
    add("--sets", type=comma_separated, default=None, help="comma-separated; all by default")
    add(
        "--models", type=comma_separated, default=None, help="comma-separated; see benchmarks/peers"
    )
    add("--parts", type=comma_separated, default=list(parts), help=f"of {','.join(parts)}")
    add("--out", type=Path, default=Path("results") / name, help="directory for CSV and report")
    add("--threads", type=int, default=2, help="for every model alike")
    add("--page", type=Path, help="also write the report to this file, as the documentation does")
    add("--tables-only", action="store_true", help="report again from the CSV files in --out")
    return parser


def read_options(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    parts: Sequence[str],
    on_sets: Sequence[str],
) -> argparse.Namespace:
    """Read the command line; ``on_sets`` are the parts that need the data sets."""
    options = parser.parse_args(arguments)
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"unknown parts {sorted(unknown)}; known: {', '.join(parts)}")
    needs_data = set(on_sets) & set(options.parts)
    if needs_data and options.data is None and not options.tables_only:
        parser.error(f"--data is needed for {', '.join(sorted(needs_data))}")
    return options


def comma_separated(text: str) -> list[str]:
    """The parts of a comma-separated option."""
    return [name.strip() for name in text.split(",") if name.strip()]


def choose(
    names: Sequence[str], public_python: str | None = None
) -> tuple[dict[str, Peer], list[str]]:
    """The models of these names that can run here, and a line on each that cannot."""
    from benchmarks.peers import all_peers
    from benchmarks.runner import available

    peers = all_peers(public_python)
    unknown = [name for name in names if name not in peers]
    if unknown:
        raise SystemExit(f"unknown models {unknown}; known: {', '.join(peers)}")
    present, skipped = available(peers[name] for name in names)
    for line in skipped:
        say(line)
    return {peer.name: peer for peer in present}, skipped


def quality_rows(
    options: argparse.Namespace, folds_by_peer: Sequence[tuple[Peer, int]]
) -> Iterable[Row]:
    """Rows of all sets x folds x models; each model comes with its number of folds."""
    from benchmarks.data.sets import ALL_SETS, load_uci
    from benchmarks.runner import run_sets, warm_up

    datasets = [load_uci(options.data, name) for name in options.sets or ALL_SETS]
    warm_up([peer for peer, _ in folds_by_peer if peer.name not in SLOW], options.threads)
    return run_sets(datasets, folds_by_peer, options.threads)


def collect(rows: Iterable[Row], path: Path) -> None:
    """Write rows to a CSV file as they come, so that a run that is cut short keeps its results.

    Each tells the commit it was measured at: chunks of a report may have been run at different ones.
    """
    import pandas as pd

    kept: list[Row] = []
    code = code_version()
    for row in rows:
        kept.append(row | {"code": code})
        pd.DataFrame(kept).to_csv(path, index=False)


def read(path: Path, columns: Sequence[str]) -> pd.DataFrame | None:
    """Rows of a CSV file, with ``columns`` even where every fit failed; None if there is no file."""
    import pandas as pd

    if not path.exists():
        return None
    frame = pd.read_csv(path)
    return frame.reindex(columns=list(dict.fromkeys([*frame.columns, *columns])))


def read_runs(
    directories: Sequence[Path], name: str, columns: Sequence[str]
) -> pd.DataFrame | None:
    """Rows of ``name.csv`` in all of the directories; ``run`` tells from which."""
    import pandas as pd

    frames = {str(path): read(path / f"{name}.csv", columns) for path in directories}
    given = [frame.assign(run=path) for path, frame in frames.items() if frame is not None]
    return pd.concat(given, ignore_index=True) if given else None


def carry_out(
    options: argparse.Namespace,
    files: Iterable[str],
    run: Callable[[argparse.Namespace], list[str]],
    report: Callable[[argparse.Namespace, Sequence[str]], str],
) -> None:
    """Run what was asked for, report, write; ``files`` are those the run writes anew."""
    skipped: list[str] = []
    os.environ.update(thread_environment(options.threads))
    if not options.tables_only:
        options.out.mkdir(parents=True, exist_ok=True)
        # A part that gives nothing must not report an older run's figures; files of parts
        # that were not asked for stay.
        for name in files:
            (options.out / f"{name}.csv").unlink(missing_ok=True)
        skipped = run(options)
    text = report(options, skipped)
    for path in filter(None, [options.out / "report.md", options.page]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(text)
