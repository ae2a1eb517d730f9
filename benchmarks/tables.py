"""Results of the paper's experiments to Markdown and figures, the paper's figures beside ours.

``python -m benchmarks.tables`` reads the folder that ``benchmarks.run`` keeps, finished or not. The page is
made to be included in one that lies a folder higher, as ``docs/results/paper.md`` is in ``docs/paper.md``;
pictures are named from there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.environment import say


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    add = parser.add_argument
    add("--results", type=Path, default=Path("results") / "paper", help="folder of results")
    add("--page", type=Path, help="file of tables; report.md in the folder of results by default")
    add("--figures", type=Path, help="folder of pictures; figures in that of results by default")
    add(
        "--keep-figures",
        action="store_true",
        help="draw nothing: cells taken from a table have no arrays, and the pictures there are theirs",
    )
    return parser.parse_args(arguments)


def make(
    results: Path, page: Path | None = None, figures: Path | None = None, keep_figures: bool = False
) -> Path:
    """Write the page, its pictures and the tidy table of results beside it."""
    from benchmarks.cells import Store
    from benchmarks.paper.figures import draw_all, kept
    from benchmarks.paper.page import write_page
    from benchmarks.paper.published import read_published
    from benchmarks.paper.scores import complete

    store = Store(results)
    frame = store.collect()
    if frame.empty:
        raise SystemExit(f"{results} has no finished cells: run python -m benchmarks.run first")
    base = results if page is None else page.parent.parent
    page, figures = page or results / "report.md", figures or results / "figures"
    conditions = results / "conditions.txt"
    told = conditions.read_text() if conditions.exists() else ""
    known = complete(frame)
    pictures = kept(figures) if keep_figures else draw_all(store, known, figures)
    for picture in pictures:
        say(f"{picture.name}: {picture.missing or picture.path}")
    where = Path(os.path.relpath(figures, base)).as_posix()
    text = write_page(known, read_published(), told, pictures, where)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text)
    frame.to_csv(page.with_suffix(".csv"), index=False)
    say(f"{len(frame)} cells to {page}")
    return page


def main(arguments: Sequence[str] | None = None) -> None:
    """Make tables and figures."""
    options = parse(arguments)
    make(options.results, options.page, options.figures, options.keep_figures)


if __name__ == "__main__":
    main()
