"""Memory of this process, as its operating system counts it."""

from __future__ import annotations

import sys
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
