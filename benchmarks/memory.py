"""Memory of this process, as its operating system counts it."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

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
    """Peak memory since the start, or since ``reset_peak``."""
    unit = 1 if sys.platform == "darwin" else 1024
    return _linux_status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> None:
    """Forget the peak reached while the data was made (Linux; elsewhere it stays)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return
