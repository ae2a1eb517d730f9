"""The documentation's examples run as they are printed, and the pages name what there is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "hooks"))

from blocks import python_blocks, run_page  # noqa: E402

PAGES = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if python_blocks(path)),
]


def test_there_are_pages():
    names = {page.name for page in PAGES}
    assert {"README.md", "tutorial.md", "gallery.md", "uncertainty.md", "calibration.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_page(page, tmp_path)
