"""A design of features twice as fine: what the default fit must not depend on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

MODULE = "lanam.core.terms.features"
NAME = "RESOLUTION"  # a multiple of the design's nodes
FINER = 2


def _features() -> Any:
    """The module of the default features; None in a version whose features are random."""
    return import_module(MODULE) if find_spec(MODULE) is not None else None


def available() -> bool:
    """Whether this version's features come from a design that can be refined."""
    return hasattr(_features(), NAME)


@contextmanager
def finer() -> Iterator[None]:
    """Fits within the context have a design of twice the resolution."""
    if not available():
        raise RuntimeError("this version has no design of features to refine")
    features, usual = _features(), getattr(_features(), NAME)
    setattr(features, NAME, FINER * usual)
    try:
        yield
    finally:
        setattr(features, NAME, usual)
