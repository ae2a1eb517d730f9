"""What y may be: checks that several families share, and the numbers that it has."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array
from lanam.errors import InputError, Setting


def refuse(
    y: Array, bad: NDArray[np.bool_], likelihood: str, meant: str, what: str, remedy: str
) -> None:
    """Refuse targets that a likelihood, which is ``meant`` for others, has no density for."""
    if bad.any():
        row = int(np.argmax(bad))
        values = f"{what}: {bad.sum()} of {len(y)}, the first, {y[row]:g}, in row {{row}}"
        problem = f"{{family}} is for {meant}, and y has {values}"
        chosen = Setting("likelihood", likelihood)
        raise InputError(problem, remedy, argument="y", row=row, family=chosen)


def require_counts(y: Array, likelihood: str) -> Array:
    """Integers of at least 0."""
    refuse(
        y,
        y < 0.0,
        likelihood,
        "counts",
        "negative values",
        "A count is 0 or more; use {likelihood='gaussian'} for a target that can be negative.",
    )
    refuse(
        y,
        y != np.floor(y),
        likelihood,
        "counts",
        "values that are not whole numbers",
        "If these are rates, pass the counts as y and what they were counted over as {exposure}, for "
        "example {fit(X, events, exposure=hours)}; for other targets use {likelihood='gaussian'}.",
    )
    return y


def require_some_events(total: float) -> None:
    """Refuse zeros only."""
    if total == 0.0:
        # The log rate is minus infinity: where a fit would stop, and its bands, would be arbitrary.
        raise ValueError(
            "y is zero in every row with a positive weight: from no events a rate cannot be learned, "
            "only that it is small. Gather rows until there is an event."
        )


def require_positive(y: Array, likelihood: str) -> Array:
    """Numbers above 0."""
    refuse(
        y,
        y <= 0.0,
        likelihood,
        "positive numbers",
        "values that are zero or negative",
        "Leave these rows out and model separately whether y is positive, use {likelihood='tweedie'} for "
        "amounts that can be zero, or {likelihood='gaussian'} for a target that can be negative.",
    )
    return y


@dataclass(frozen=True)
class Support:
    """What numbers y has."""

    lowest: float = math.inf
    highest: float = -math.inf
    whole: bool = True
    zeros: int = 0

    @classmethod
    def of(cls, y: Array) -> Support:
        """The support of some targets."""
        whole = bool((y == np.floor(y)).all())
        ends = float(y.min(initial=math.inf)), float(y.max(initial=-math.inf))
        return cls(*ends, whole, int((y == 0.0).sum()))

    def merged(self, other: Support) -> Support:
        """That of these targets and others."""
        ends = min(self.lowest, other.lowest), max(self.highest, other.highest)
        return Support(*ends, self.whole and other.whole, self.zeros + other.zeros)
