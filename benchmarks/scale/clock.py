"""Passes over rows, counted and clocked from outside: what a fit asks of those who hold the rows."""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from typing import Any

Row = dict[str, Any]
METHODS = ("total", "reduce")  # of tables, and of the source they are encoded from


@dataclass(frozen=True)
class Pass:
    """One pass: who looked at all rows for what, and how long it took; ``again`` does it once more."""

    job: str
    seconds: float
    again: Callable[[], Any]


def holders() -> list[type]:
    """The classes of ``lanam.engines`` that pass over rows."""
    import lanam.engines

    found = []
    for module in pkgutil.walk_packages(lanam.engines.__path__, "lanam.engines."):
        try:
            content = vars(import_module(module.name))
        except ImportError:  # an engine whose library is not there
            continue
        for kind in content.values():
            own = isinstance(kind, type) and kind.__module__ == module.name
            if own and not getattr(kind, "_is_protocol", False):
                found.append(kind)
    return found


@contextmanager
def clocked() -> Iterator[list[Pass]]:
    """The passes made meanwhile; one that makes others is counted once."""
    passes: list[Pass] = []
    busy = False

    def watch(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def watched(self: Any, *arguments: Any, **named: Any) -> Any:
            nonlocal busy
            if busy:
                return method(self, *arguments, **named)
            busy, start = True, time.perf_counter()
            try:
                return method(self, *arguments, **named)
            finally:
                busy = False
                job = next((a for a in (*arguments, *named.values()) if callable(a)), method)
                seconds = time.perf_counter() - start
                passes.append(Pass(_name(job), seconds, partial(method, self, *arguments, **named)))

        return watched

    replaced = [(k, m, vars(k)[m]) for k in holders() for m in METHODS if m in vars(k)]
    for kind, name, method in replaced:
        setattr(kind, name, watch(method))
    try:
        yield passes
    finally:
        for kind, name, method in replaced:
            setattr(kind, name, method)


def _name(job: Any) -> str:
    if isinstance(job, partial):
        inner = next((a for a in (*job.args, *job.keywords.values()) if callable(a)), None)
        outer = getattr(job.func, "__name__", type(job.func).__name__)
        return outer if inner is None else f"{outer}({_name(inner)})"
    return getattr(job, "__name__", type(job).__name__)


def by_job(passes: list[Pass]) -> dict[str, Row]:
    """How many passes were made for each job, and the seconds of all of them."""
    told: dict[str, Row] = {}
    for one in passes:
        row = told.setdefault(one.job, {"passes": 0, "seconds": 0.0})
        row["passes"] += 1
        row["seconds"] += one.seconds
    return told
