"""A design of features twice as fine: what the limit of the default fit must not depend on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def available() -> bool:
    """Whether this version's features come from a design that can be refined."""
    return False


@contextmanager
def finer() -> Iterator[None]:
    """Fits within the context have a design of twice the resolution."""
    raise NotImplementedError("this version has no design of features to refine")
    yield
