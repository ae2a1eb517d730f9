"""Memory that is used again: pages that are new to a process cost as much as the work on them.

By glibc's ``mallopt``; on other systems nothing is done.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Numbers by which glibc knows what ``mallopt`` adjusts.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

#: Give nothing back below 2 GB; arrays up to 32 MB, the most that glibc allows, come from what is kept.
_KEPT, _LARGE = (1 << 31) - 1, 1 << 25

#: What happens where there is no glibc: Windows refuses to open a library without a name.
_ELSEWHERE = (OSError, AttributeError, TypeError)


def keep_freed_memory() -> None:
    """Keep freed memory in this process from now on."""
    _adjust(_LARGE, _KEPT)


class _Tasks:
    """How many tasks want memory kept at the moment, in all threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.number = 0


_tasks = _Tasks()


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep freed memory meanwhile, and then give it back: for a process that is somebody else's.

    joblib's workers are the user's as well. Dask tells its own to give back all they can at once: dear
    within a task, and right after it.
    """
    with _tasks.lock:
        _tasks.number += 1
        if _tasks.number == 1:
            keep_freed_memory()
    try:
        yield
    finally:
        with _tasks.lock:
            _tasks.number -= 1
            if not _tasks.number:
                _give_back()


def _give_back() -> None:
    told = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    if told.isdecimal():  # then glibc's thresholds stay where they are
        _adjust(1 << 17, int(told))
    else:  # where they would have grown by themselves
        _adjust(_LARGE, 2 * _LARGE)
    with suppress(*_ELSEWHERE):
        ctypes.CDLL(None).malloc_trim(0)


def _adjust(large: int, kept: int) -> None:
    with suppress(*_ELSEWHERE):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, large)
        mallopt(_TRIM_THRESHOLD, kept)
