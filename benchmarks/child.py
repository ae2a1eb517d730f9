"""Measurements in a process of their own, so that memory, threads and time are theirs alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.environment import child_environment

Row = dict[str, Any]


def ask(module: str, arguments: Sequence[str], threads: int, limit: float | None = None) -> Row:
    """Run a module that answers with a line of JSON; a failure becomes a row with its message.

    After ``limit`` seconds it is ended with all processes it started, and the row says so (``cut``).
    """
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment(threads),
        start_new_session=True,
    ) as process:
        try:
            told, complaint = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            _end(process)
            return {"cut": limit}
        except BaseException:  # a run that is ended takes its processes along
            _end(process)
            raise
    if process.returncode:
        lines = complaint.strip().splitlines()
        return {"error": lines[-1] if lines else f"ended with status {process.returncode}"}
    answer: Row = json.loads(told.strip().splitlines()[-1])
    return answer


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and, where the system knows groups of them, those it started."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:  # Windows
        process.kill()
    process.communicate()
