"""Runs a command: exit codes, errors in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from lanam.cli.app import app
from lanam.cli.console import complain, print_document
from lanam.cli.errors import CLIError, Interrupted, one_line
from lanam.cli.stopping import stoppable

#: What a shell says of a process whose reader went away.
_BROKEN_PIPE = 128 + 13

_EXPECTED = (CLIError, ValueError, TypeError, OSError, ImportError, MemoryError)


def run(argv: Sequence[str]) -> int:
    """Run the command that the arguments name, and return its exit code."""
    arguments = list(argv)
    debug = "--debug" in arguments or os.environ.get("LANAM_DEBUG", "0") not in ("", "0")
    if "--debug" in arguments:  # wherever it stands: it is for all commands
        arguments.remove("--debug")
    if not arguments:
        arguments = ["--help"]
    known = [each.name for each in app.registered_commands]
    command = " ".join(["lanam", *(name for name in arguments[:1] if name in known)])
    call = _Call(command, "--json" in arguments)
    try:
        with stoppable():
            code = app(args=arguments, prog_name="lanam", standalone_mode=False)
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except Interrupted as stop:
        return call.fail("stopped; nothing unfinished was written", stop.exit_code)
    except typer.Abort:  # the end of the input where something was asked
        return call.fail("no answer", 1)
    except (BrokenPipeError, SystemExit):  # the parser turns the one into the other
        _silence_stdout()
        return _BROKEN_PIPE
    except Exception as error:
        if debug:
            raise
        return call.report(error)


@dataclass(frozen=True)
class _Call:
    """Which command was called, and whether with ``--json``."""

    command: str
    json: bool

    def report(self, error: Exception) -> int:
        """Say an error, and give the exit code that it means."""
        if hasattr(
            error, "format_message"
        ):  # the parser's own; its class depends on typer's version
            text = f"{error.format_message()} (see {self.command} --help)"
            return self.fail(text, int(getattr(error, "exit_code", 2)))
        if isinstance(error, _EXPECTED) or type(error).__module__.startswith("pyarrow"):
            return self.fail(one_line(error), getattr(error, "exit_code", 1))
        what = f"{type(error).__name__}: {one_line(error)}"
        return self.fail(f"something unforeseen happened, {what}; --debug shows where", 1)

    def fail(self, text: str, code: int) -> int:
        """Say what went wrong, also for a program that reads a document, and give the exit code back."""
        complain(text, self.command)
        if self.json:
            try:
                print_document({"error": text, "exit_code": code})
                sys.stdout.flush()
            except OSError:  # nobody reads it, or there is no place for it
                _silence_stdout()
        return code


def _silence_stdout() -> None:
    """Let the interpreter's last flush go nowhere: the reader is gone."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a file at all
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
