"""Memory of this process and those it starts, as the operating system counts it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

STATUS = Path("/proc/self/status")


def resident_bytes() -> int:
    """Memory now; where the system does not tell, the peak so far."""
    return _told_bytes(STATUS, "VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """Peak memory since the start, or since ``reset_peak``; 0 on Windows, which does not tell."""
    told = _told_bytes(STATUS, "VmHWM")
    if told or resource is None:
        return told
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> None:
    """Forget the peak reached while the data was made (Linux; elsewhere it stays)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def children_peak_bytes() -> int:
    """Peaks of all processes that this one has started and that are still there, summed."""
    return sum(_told_bytes(Path(f"/proc/{pid}/status"), "VmHWM") for pid in _below())


def family_bytes() -> int:
    """Memory now of this process and of those it has started; pages that they share count once.

    That is what the kernel calls the proportional set size; 0 where it does not tell.
    """
    return sum(
        _told_bytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss") for pid in (os.getpid(), *_below())
    )


class FamilyPeak:
    """The most memory that this process and those it started had at one moment, looked at often."""

    def __init__(self, every: float = 0.1) -> None:
        self.every = every
        self.bytes = 0
        self._over = Event()
        self._watch = Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._over.wait(self.every):
            self.bytes = max(self.bytes, family_bytes())

    def __enter__(self) -> FamilyPeak:
        self.bytes = family_bytes()
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()
        self.bytes = max(self.bytes, family_bytes())


def _below() -> set[int]:
    """All processes that this one has started, and those that these have."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # the name, in parentheses, may hold anything
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    below: set[int] = set()
    youngest = {os.getpid()}
    while youngest := {pid for pid, parent in parents.items() if parent in youngest}:
        below |= youngest
    return below


def _told_bytes(path: Path, field: str) -> int:
    """A line of a file of the kernel in bytes; 0 where it is not there, or its process no longer is."""
    with suppress(OSError):
        for line in path.read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0
