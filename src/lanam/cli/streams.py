"""Standard streams that are closed, or whose other end is gone: results matter, remarks do not."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO, cast

from lanam.cli.errors import UsageError


def prepare_streams() -> None:
    """Open stand-ins for closed standard streams (``>&-``), and let remarks to a closed pipe be lost."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # This takes the lowest free number, that of the closed stream. Otherwise the next file would
            # have it, and all that libraries print would be written into that file.
            stand_in = open(os.devnull, mode, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
            setattr(sys, name, stand_in)
    sys.stderr = cast(TextIO, Remarks(sys.stderr))


class Remarks:
    """Standard error: if it can no longer be written, the command goes on without."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, or nothing."""
        try:
            self._stream.write(text)
        except OSError:
            silence(self._stream)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, or nothing."""
        try:
            self._stream.flush()
        except OSError:
            silence(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def silence(stream: TextIO) -> None:
    """Redirect a stream to nowhere, also the interpreter's last flush of it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def require_stdout(option: str) -> None:
    """Refuse an option that writes to standard output if that is closed."""
    if sys.__stdout__ is None:
        raise UsageError(
            f"{option} writes to standard output, which is closed: redirect it, for example with > FILE"
        )
