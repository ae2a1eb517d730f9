"""Runs a command: exit codes, errors in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lanam.cli.console import print_document, print_error
from lanam.cli.errors import CLIError, Interrupted, one_line
from lanam.cli.stopping import stoppable
from lanam.cli.streams import silence

#: The exit code by which a shell reports a process whose output pipe was closed.
_BROKEN_PIPE = 128 + 13

_EXPECTED = (CLIError, ValueError, TypeError, OSError, ImportError, MemoryError)
#: Packages of the extra ``cli``, without which no command runs.
_EXTRA = ("pyarrow", "rich", "typer")


def run(argv: Sequence[str]) -> int:
    """Run the command that the arguments name, and return its exit code."""
    arguments = list(argv)
    debug = "--debug" in arguments or os.environ.get("LANAM_DEBUG", "0") not in ("", "0")
    if "--debug" in arguments:  # in any position, since it is for all commands
        arguments.remove("--debug")
    arguments = arguments or ["--help"]
    call = _Invocation("lanam", "--json" in arguments)
    try:
        with stoppable():  # imports of pyarrow and the commands take long enough to be interrupted
            from lanam.cli.app import app

            if any(arguments[0] == command.name for command in app.registered_commands):
                call = replace(call, command=f"lanam {arguments[0]}")
            code = app(args=arguments, prog_name="lanam", standalone_mode=False)
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except Interrupted as stop:
        return call.fail("interrupted; no incomplete files were left", stop.exit_code)
    except (BrokenPipeError, SystemExit):  # the parser turns the one into the other
        _silence_stdout()
        return _BROKEN_PIPE
    except Exception as error:
        if debug:
            raise
        return call.report(error)


@dataclass(frozen=True)
class _Invocation:
    """Which command was called, and whether with ``--json``."""

    command: str
    json: bool

    def report(self, error: Exception) -> int:
        """Print an error and return its exit code."""
        # Classes of the parser's errors depend on the version of typer.
        if hasattr(error, "format_message"):
            text = f"{error.format_message()} (see {self.command} --help)"
            return self.fail(text, int(getattr(error, "exit_code", 2)))
        if type(error).__name__ == "Abort":  # the end of the input instead of an answer
            return self.fail("no target was chosen", 1)
        package = (getattr(error, "name", None) or "").split(".")[0]
        if isinstance(error, ImportError) and package in _EXTRA:
            needs = f"the command line needs {package}"
            return self.fail(f"{needs}: install it with `pip install lanam[cli]`", 1)
        if isinstance(error, _EXPECTED) or type(error).__module__.startswith("pyarrow"):
            return self.fail(one_line(error), getattr(error, "exit_code", 1))
        what = f"{type(error).__name__}: {one_line(error)}"
        return self.fail(f"internal error, {what}; --debug shows the traceback", 1)

    def fail(self, text: str, code: int) -> int:
        """Print an error, with ``--json`` also as a document, and return the exit code."""
        print_error(text, self.command)
        if self.json:
            try:
                print_document({"error": text, "exit_code": code})
                sys.stdout.flush()
            except OSError:  # a closed pipe, a full disk
                _silence_stdout()
        return code


def _silence_stdout() -> None:
    """Redirect the interpreter's last flush of a closed pipe to nowhere."""
    try:
        silence(sys.stdout)
    except (OSError, ValueError):  # not a file at all
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
