"""What a command says, and where: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from lanam.cli.errors import in_flags
from lanam.text import visible

_RED, _YELLOW, _PLAIN = "\033[31m", "\033[33m", "\033[0m"


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour on a terminal whose user has nothing against it."""
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else f"{colour}{text}{_PLAIN}"


def complain(text: str, command: str = "lanam") -> None:
    """Say what went wrong."""
    print(f"{command}: {coloured('error:', _RED, sys.stderr)} {_safe(text)}", file=sys.stderr)


def print_document(content: Mapping[str, object]) -> None:
    """Print one JSON document to standard output."""
    print(json.dumps(_for_json(content), indent=2, ensure_ascii=False, allow_nan=False))


def _safe(text: object) -> str:
    """A text of several lines without anything that a terminal would obey."""
    return visible(str(text), keep="\n\t")


@contextmanager
def caught_warnings() -> Iterator[list[Warning]]:
    """The library's warnings to the user, which are in the list when the block ends."""
    found: list[Warning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        # Of a model that was fitted to an array: its columns are x0, x1, ..., and are found by that.
        warnings.filterwarnings("ignore", message="X has feature names")
        yield found
    found += [each.message for each in caught if isinstance(each.message, UserWarning)]


@dataclass
class Console:
    """How much a command says, and for whom.

    Attributes
    ----------
    quiet
        Whether to say nothing but errors.
    json
        Whether standard output has one JSON document instead of text.
    notes
        What was said on the side, for the document.
    """

    quiet: bool = False
    json: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def silent(self) -> bool:
        """Whether nothing is said in words."""
        return self.quiet or self.json

    def note(self, text: str, mark: str = "") -> None:
        """Say something on the side, behind a mark if there is one."""
        self.notes.append(text)
        if not self.silent:
            print(f"{mark}{_safe(text)}", file=sys.stderr)

    def warn(self, text: str) -> None:
        """Say something on the side that should be read."""
        self.note(text, f"{coloured('warning:', _YELLOW, sys.stderr)} ")

    def tell(self, text: object) -> None:
        """Say a result in words."""
        if not self.silent:
            print(_safe(text))

    def document(self, content: Mapping[str, object]) -> None:
        """Say the result as one JSON document, if that is wanted."""
        if self.json:
            print_document(content)

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Say the library's warnings in the words of the command line."""
        with caught_warnings() as caught:
            yield
        for warning in caught:
            for line in in_flags(warning).splitlines():
                self.warn(line)


def _for_json(value: object) -> object:
    """Plain data; what JSON has no number for is null."""
    if isinstance(value, Mapping):
        return {str(key): _for_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_json(each) for each in value]
    if hasattr(value, "tolist"):
        return _for_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
