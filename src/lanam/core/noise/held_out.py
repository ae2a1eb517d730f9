"""Rows have the last word: what most of them say of the noise must describe the others better."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

#: With fewer residuals parts of them could not tell.
LEAST_ROWS = 60
#: Nats that all parts together must gain: by chance, tails of Student's t have brought up to four.
WORTH = 5.0
#: In how many parts rows are taken in turn to be described by the others: by nearly all if they are few,
#: and by half of them if that is plenty.
_PARTS_OF_FEW, _PARTS_OF_MANY = 8, 2
_MANY_ROWS = 2000


def parts(n_rows: int) -> Iterator[NDArray[np.bool_]]:
    """Which rows are described by the others, in turn; their order must have nothing to do with them.

    Examples
    --------
    >>> [int(own.sum()) for own in parts(80)]
    [10, 10, 10, 10, 10, 10, 10, 10]
    """
    n_parts = _PARTS_OF_FEW if n_rows < _MANY_ROWS else _PARTS_OF_MANY
    part = np.arange(n_rows) % n_parts
    for k in range(n_parts):
        yield part == k
