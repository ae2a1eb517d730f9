"""Puts each command's own help text into the page on the command line when the site is built."""

from __future__ import annotations

import contextlib
import io
import re

_MARK = re.compile(r"^<!-- help: (\w+) -->$", re.MULTILINE)


def on_page_markdown(markdown, page, config, files):
    """Replace the marks of a page by help texts."""
    return _MARK.sub(lambda mark: help_text(mark[1]), markdown)


def help_text(command: str) -> str:
    """What ``lanam COMMAND --help`` prints, folded away."""
    from lanam.cli import main

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        main([command, "--help"])
    lines = "\n".join(f"    {line}".rstrip() for line in text.getvalue().splitlines())
    return f'??? note "All options: `lanam {command} --help`"\n\n    ```text\n{lines}\n    ```\n'
