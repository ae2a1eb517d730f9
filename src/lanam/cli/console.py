"""What commands print: results on standard output, everything else on standard error."""

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
from lanam.errors import WaitWarning
from lanam.text import printable

_RED, _YELLOW, _PLAIN = "\033[31m", "\033[33m", "\033[0m"


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour, on a terminal and unless ``NO_COLOR`` is set."""
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else f"{colour}{text}{_PLAIN}"


def print_error(text: str, command: str = "lanam") -> None:
    """Print an error message of a command."""
    print(f"{command}: {coloured('error:', _RED, sys.stderr)} {printable(text)}", file=sys.stderr)


def print_document(content: Mapping[str, object]) -> None:
    """Print one JSON document to standard output."""
    document = json.dumps(_for_json(content), indent=2, ensure_ascii=False, allow_nan=False)
    print(printable(document))


@dataclass
class Console:
    """Output of a command; ``json`` replaces text by one JSON document, which includes the notes."""

    quiet: bool = False
    json: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def silent(self) -> bool:
        """Whether nothing but errors is printed as text."""
        return self.quiet or self.json

    def note(self, text: str, prefix: str = "") -> None:
        """Print a remark to standard error, after a prefix."""
        self.notes.append(text)
        if not self.silent:
            print(f"{prefix}{printable(text)}", file=sys.stderr)

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.note(text, f"{coloured('warning:', _YELLOW, sys.stderr)} ")

    def print(self, text: object) -> None:
        """Print a result."""
        if not self.silent:
            print(printable(text))

    def document(self, content: Mapping[str, object]) -> None:
        """Print the result as a JSON document, with ``--json``."""
        if self.json:
            print_document(content)

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Print the library's warnings, with flags in place of arguments: those of a wait at once."""
        caught: list[Warning | str] = []

        def hear(message: Warning | str, *_: object, **__: object) -> None:
            if isinstance(message, WaitWarning):
                self._show(message)
            else:
                caught.append(message)

        with warnings.catch_warnings():
            warnings.showwarning = hear
            warnings.simplefilter("always", UserWarning)
            # Raised by models that were fitted to an array, whose columns are named x0, x1, ...
            warnings.filterwarnings("ignore", message="X has feature names")
            yield
        for warning in caught:
            self._show(warning)

    @contextmanager
    def plain_warnings(self) -> Iterator[None]:
        """Print any other warning in one line too, without the place in the code."""
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: self._show(message)
            yield

    def _show(self, warning: Warning | str) -> None:
        """Print a warning for users; those about code are not for them."""
        if isinstance(warning, UserWarning):
            for line in in_flags(warning).splitlines():
                self.warn(line)


@contextmanager
def unheard() -> Iterator[None]:
    """Ignore the library's warnings about rows of which it warns elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def _for_json(value: object) -> object:
    """Plain data; NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(key): _for_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_json(each) for each in value]
    if hasattr(value, "tolist"):
        return _for_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
