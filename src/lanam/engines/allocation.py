"""Reuse of freed memory: page faults for new memory can cost as much as the work on it.

Uses glibc's ``mallopt``; does nothing on other systems.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: glibc's numbers of the parameters of ``mallopt``.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

#: Return nothing to the system below 2 GB, and take arrays up to 32 MB (glibc's limit) from the heap.
_KEPT, _LARGE = (1 << 31) - 1, 1 << 25

#: Errors of systems without glibc; Windows cannot open a library without a name.
_ELSEWHERE = (OSError, AttributeError, TypeError)


#: One entry per task, in any thread, that keeps freed memory at the moment.
_tasks: list[None] = []
_lock = threading.Lock()


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep freed memory during a task, and return it to the system afterwards.

    For processes that also run other code: joblib's workers, and Dask's, which are configured to return
    freed memory at once: slow during a task, and right after it.
    """
    with _lock:
        _tasks.append(None)
        if len(_tasks) == 1:
            _adjust(_LARGE, _KEPT)
    try:
        yield
    finally:
        with _lock:
            _tasks.pop()
            if not _tasks:
                _return_memory()


def _return_memory() -> None:
    threshold = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    if threshold.isdecimal():  # then glibc's thresholds are fixed
        _adjust(1 << 17, int(threshold))
    else:  # to what they would have grown to
        _adjust(_LARGE, 2 * _LARGE)
    with suppress(*_ELSEWHERE):
        ctypes.CDLL(None).malloc_trim(0)


def _adjust(large: int, kept: int) -> None:
    with suppress(*_ELSEWHERE):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, large)
        mallopt(_TRIM_THRESHOLD, kept)
