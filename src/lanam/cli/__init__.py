"""The command line: ``lanam fit``, ``predict``, ``explain``, ``report``, ``export`` and ``demo``.

It uses what everybody can use: the estimators' public methods, and files that pyarrow reads and writes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


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
    except ImportError as error:
        name = (error.name or str(error)).split(".")[0]
        print(
            f"lanam: error: the command line needs {name}: install what it takes with "
            "`pip install lanam[cli]`",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        return 130
    return run(sys.argv[1:] if argv is None else list(argv))
