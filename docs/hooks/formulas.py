"""Typesets formulas as MathML when the site is built: no script, and nothing to fetch."""

from __future__ import annotations

import html as entities
import re

from latex2mathml.converter import convert

#: What `pymdownx.arithmatex` writes in its generic mode.
_FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)


def on_page_content(html, page, config, files):
    """Replace the formulas of a page."""
    return _FORMULA.sub(lambda match: formula(entities.unescape(match[2])), html)


def formula(marked: str) -> str:
    r"""MathML of a formula between ``\(`` and ``\)`` or ``\[`` and ``\]``."""
    block = marked.startswith(r"\[")
    mathml = convert(marked[2:-2].strip(), display="block" if block else "inline")
    if "\\" in mathml:
        raise ValueError(f"a command that is not known to latex2mathml in {marked!r}")
    return f'<div class="formula">{mathml}</div>' if block else mathml
