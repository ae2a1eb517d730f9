"""Memory of this process, as its operating system counts it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

STATUS = Path("/proc/self/status")


def _linux_status(field: str) -> int | None:
    """A memory figure of this process in bytes, where the kernel tells it."""
    if not STATUS.exists():
        return None
    for line in STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return None


def resident_bytes() -> int:
    """Memory now; where the system does not tell, the peak so far."""
    return _linux_status("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """Peak memory since the start, or since ``reset_peak``; 0 on Windows, which does not tell."""
    told = _linux_status("VmHWM")
    if told is not None or resource is None:
        return told or 0
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
    parents = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError, ValueError):
            lines = dict(
                line.split(":", 1) for line in status.read_text().splitlines() if ":" in line
            )
            peak = lines.get("VmHWM", "0 kB").split()[0]
            parents[int(status.parent.name)] = int(lines["PPid"]), 1024 * int(peak)
    below, total = {os.getpid()}, 0
    while found := {pid for pid, (parent, _) in parents.items() if parent in below} - below:
        total += sum(parents[pid][1] for pid in found)
        below |= found
    return total
