"""Threads, versions and progress: the conditions of a run, the same for every model."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
PACKAGES = (
    "lanam",
    "numpy",
    "scipy",
    "scikit-learn",
    "interpret-core",
    "lightgbm",
    "pygam",
    "torch",
)


def say(message: str) -> None:
    """Print one line of progress to stderr."""
    print(message, file=sys.stderr, flush=True)


def thread_environment(threads: int) -> dict[str, str]:
    """The variables that limit every pool of threads of a process, when set before it starts."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads))


def child_environment(threads: int) -> dict[str, str]:
    """An environment in which a child process has these limits and can import ``benchmarks``."""
    root = str(Path(__file__).parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **thread_environment(threads), "PYTHONPATH": os.pathsep.join(paths)}


def _git(*arguments: str) -> str | None:
    """What git says of this folder; None where it says nothing."""
    command = ["git", "-C", str(Path(__file__).parent.parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def code_version() -> str:
    """The commit of this folder, with a plus where library or benchmark have changes that are in none."""
    commit = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--", "src", "benchmarks")
    return "unknown" if commit is None else commit + ("+" if changed else "")


def library_of(commit: str) -> str | None:
    """What identifies the library's source at a commit: commits that left it alone have the same."""
    return _git("rev-parse", f"{commit}:src/lanam")


def describe(threads: int, packages: Sequence[str] = PACKAGES) -> str:
    """One line on the conditions of the run."""
    versions = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} (not installed as a package)")
    used = f"{threads} thread{'' if threads == 1 else 's'} of {os.cpu_count()} cores"
    return f"{used}, {machine()}; {', '.join(versions)}."


def machine() -> str:
    """Processor and system, as far as they are told."""
    cpu = platform.processor() or platform.machine()
    told = Path("/proc/cpuinfo")
    if told.exists():
        names = [line for line in told.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return f"{cpu}, {platform.system()}"
