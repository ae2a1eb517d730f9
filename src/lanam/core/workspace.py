"""Arrays that are used again: memory that is new to a process costs more than what is computed in it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Workspace:
    """Arrays by name, each as large as it has ever been asked for. One thread's.

    Examples
    --------
    >>> space = Workspace()
    >>> first = space.get("square", (2, 3))
    >>> second = space.get("square", (3, 2))
    >>> np.shares_memory(first, second), second.shape
    (True, (3, 2))
    """

    def __init__(self) -> None:
        self._arrays: dict[Hashable, NDArray[Any]] = {}

    def get(self, name: Hashable, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """An array of this shape with whatever is in it; the last one of this name is no longer valid."""
        size = int(np.prod(shape))
        known = self._arrays.get(name)
        if known is None or len(known) < size or known.dtype != dtype:
            known = self._arrays[name] = np.empty(size, dtype)
        return known[:size].reshape(shape)
