"""Run the Python blocks of a page, as a reader would.

``python blocks.py PAGE`` runs the first block of a page with the interpreter that calls it.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from pathlib import Path

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """The page's Python blocks with the number of the line on which each begins."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(1)) + 1, found[1]) for found in _BLOCK.finditer(text)]


def run_page(page: Path, folder: Path, first: int | None = None) -> None:
    """Run a page's blocks, all or the first few, in one session; the files they write go to ``folder``."""
    names: dict[str, object] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for line, block in python_blocks(page)[:first]:
            try:
                # Blank lines ahead, so that an error names the page's own line.
                exec(compile("\n" * (line - 1) + block, str(page), "exec"), names)
            finally:
                if pyplot := sys.modules.get("matplotlib.pyplot"):
                    pyplot.close("all")  # a reader sees one after the other


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        run_page(Path(sys.argv[1]).resolve(), Path(folder), first=1)
