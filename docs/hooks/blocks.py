"""The Python blocks of a page: to run them as a reader would."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """The page's Python blocks with the number of the line on which each begins."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(1)) + 1, found[1]) for found in _BLOCK.finditer(text)]


def run_page(page: Path, folder: Path) -> None:
    """Run a page's blocks one after the other in one session, with files going to ``folder``."""
    names: dict[str, object] = {"__name__": "__main__"}
    try:
        with contextlib.chdir(folder):
            for line, block in python_blocks(page):
                # Blank lines ahead, so that an error names the page's own line.
                exec(compile("\n" * (line - 1) + block, str(page), "exec"), names)
    finally:
        if pyplot := sys.modules.get("matplotlib.pyplot"):
            pyplot.close("all")  # a reader's next page starts with none, too
