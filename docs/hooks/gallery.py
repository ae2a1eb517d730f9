"""Runs the gallery's code when the site is built: every picture is what the code beside it draws."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
from blocks import run_page

_folder = Path(tempfile.mkdtemp(prefix="lanam-gallery-"))


def on_files(files, config):
    """Add what the gallery's blocks write to the site's files."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    run_page(Path(config.docs_dir) / "gallery.md", _folder)
    for path in sorted(_folder.iterdir()):
        files.append(File.generated(config, f"gallery/{path.name}", abs_src_path=str(path)))
    return files


def on_post_build(config):
    """Leave nothing behind."""
    shutil.rmtree(_folder, ignore_errors=True)
