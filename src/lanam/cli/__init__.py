"""The command line: ``lanam fit``, ``predict``, ``explain``, ``report``, ``export`` and ``demo``.

It uses the public methods of the estimators, and files that pyarrow reads and writes.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 (data or model), 2 (usage), 130 (Ctrl-C).

    Parameters
    ----------
    argv : sequence of str, default=None
        The arguments; those of the process if None.

    Examples
    --------
    >>> main(["--version"])
    lanam ...
    0
    """
    try:
        from lanam.cli.running import run
    except KeyboardInterrupt:  # only the standard library is imported until signals are handled
        return 130
    return run(sys.argv[1:] if argv is None else argv)


def process() -> NoReturn:
    """Entry point of the ``lanam`` script: run a command and exit with its code.

    After a failure or an interrupt the interpreter's shutdown is skipped: a thread of pyarrow may still be
    waiting for standard input, and shutdown would wait for it, or abort when it returns.
    """
    from lanam.cli.streams import prepare_streams

    prepare_streams()
    code = main()
    if code:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or absent
                stream.flush()
        os._exit(code)
    sys.exit(code)
