"""How many threads the libraries of linear algebra may use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

# Both bring a BLAS of their own, and only those that are loaded are found.
import numpy.linalg  # noqa: F401
import scipy.linalg  # noqa: F401
from threadpoolctl import ThreadpoolController


def limited_threads(number: int) -> AbstractContextManager[Any]:
    """At most so many threads inside BLAS, in the whole process, while the context lasts."""
    limits: AbstractContextManager[Any] = _libraries().limit(limits=number, user_api="blas")
    return limits


@cache
def _libraries() -> ThreadpoolController:
    # Looking for the libraries takes milliseconds, as long as many a task.
    return ThreadpoolController()
