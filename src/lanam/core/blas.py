"""Limits on the threads of BLAS."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

# Each has its own BLAS, and threadpoolctl finds only loaded libraries.
import numpy.linalg  # noqa: F401
import scipy.linalg  # noqa: F401
from threadpoolctl import ThreadpoolController


def limited_threads(number: int) -> AbstractContextManager[Any]:
    """A context in which BLAS uses at most ``number`` threads, in the whole process."""
    limits: AbstractContextManager[Any] = _libraries().limit(limits=number, user_api="blas")
    return limits


@cache
def _libraries() -> ThreadpoolController:
    # Finding the libraries takes milliseconds, as long as a short task.
    return ThreadpoolController()
