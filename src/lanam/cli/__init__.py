"""The command line: ``lanam fit``, ``predict``, ``explain``, ``report``, ``export`` and ``demo``.

It uses what everybody can use: the estimators' public methods, and files that pyarrow reads and writes.
"""

from __future__ import annotations

import contextlib
import json
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
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        from lanam.cli.running import run
    except ImportError as error:
        name = (error.name or str(error)).split(".")[0]
        text = f"the command line needs {name}: install what it takes with `pip install lanam[cli]`"
        print(f"lanam: error: {text}", file=sys.stderr)
        if "--json" in arguments:
            print(json.dumps({"error": text, "exit_code": 1}))
        return 1
    except KeyboardInterrupt:
        return 130
    return run(arguments)


def process() -> NoReturn:
    """Be the process of a command: run it, and exit with its code.

    A command that failed or was stopped leaves without the interpreter's farewell. A thread of pyarrow may
    still be waiting for more of standard input then: the farewell would wait with it, and the thread would
    abort the process if it came back in the midst of it.
    """
    code = main()
    if code:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
                stream.flush()
        os._exit(code)
    sys.exit(code)
