"""Rows beyond memory and beyond one machine: how long, how much memory, and is it the same?

``python -m benchmarks.scale`` makes the rows up, measures what has not been measured yet, each in a process
of its own, and prints the page of all that has been. Answers are kept as JSON lines in ``--out``, so parts
can be run one at a time, and a run that was cut short goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import comma_separated
from benchmarks.environment import thread_environment
from benchmarks.scale.cells import PARTS, ROWS, Results, Sizes, cells


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    listed = "; ".join(f"{number}: {title}" for number, title in PARTS.items())
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    add = parser.add_argument
    add("--only", type=_parts, default=list(PARTS), help=f"comma-separated parts; {listed}")
    add("--rows", type=int, default=ROWS, help="of the largest table")
    add("--quick", action="store_true", help="a hundredth of all rows")
    add(
        "--threads", type=int, default=2, help="for every model alike; Dask's workers have one each"
    )
    add("--limit", type=float, default=300.0, help="seconds after which a peer is given up")
    add("--out", type=Path, default=Path("results") / "scale", help="folder of results.jsonl")
    add("--data", type=Path, help="folder for made-up tables, kept; a temporary one by default")
    add("--again", action="store_true", help="measure anew what has been measured")
    add("--tables-only", action="store_true", help="the page of what there is")
    add("--page", type=Path, help="write the page there too, as the documentation does")
    add("--figures", type=Path, help="folder of pictures; figures in --out by default")
    return parser.parse_args(arguments)


def _parts(text: str) -> list[int]:
    chosen = comma_separated(text)
    if not chosen or any(part not in map(str, PARTS) for part in chosen):
        raise argparse.ArgumentTypeError(f"parts are {', '.join(map(str, PARTS))}, not {text!r}")
    return sorted({int(part) for part in chosen})


def run(options: argparse.Namespace, sizes: Sizes, results: Results) -> None:
    """Measure the parts that were asked for."""
    from benchmarks.scale.run import Runner

    asked = [cell for part in options.only for cell in cells(part, sizes)]
    with tempfile.TemporaryDirectory(prefix="lanam-scale-") as temporary:
        Runner(results, options.data or Path(temporary), options.limit).run(asked, options.again)


def report(options: argparse.Namespace, sizes: Sizes, results: Results) -> str:
    """The page of all that has been measured, and its pictures.

    The documentation includes the page from one folder higher, where pictures are named from.
    """
    from benchmarks.scale.figures import draw_all
    from benchmarks.scale.page import write_page

    figures = options.figures or options.out / "figures"
    page = options.out / "report.md" if options.page is None else options.page
    base = options.out if options.page is None else page.parent.parent
    pictures = draw_all(results, sizes, figures, options.limit)
    where = Path(os.path.relpath(figures, base)).as_posix()
    text = write_page(results, sizes, options.limit, pictures, where)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text)
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, report."""
    options = parse(arguments)
    os.environ.update(thread_environment(options.threads))
    # a run that is told to end takes its processes along
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended; what was measured is kept"))
    sizes = Sizes(options.rows, options.threads, options.quick)
    results = Results(options.out / "results.jsonl")
    try:
        if not options.tables_only:
            run(options, sizes, results)
    except KeyboardInterrupt:
        sys.exit("ended; what was measured is kept")
    print(report(options, sizes, results))


if __name__ == "__main__":
    main()
