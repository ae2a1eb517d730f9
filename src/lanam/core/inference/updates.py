"""How parameters step uphill: Adam's rule, and the two rules for hyperparameters on the evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from lanam.core.arrays import Array

#: Adam's learning rate for log hyperparameters (the paper's).
RATE = 0.1


@dataclass(frozen=True)
class Moments:
    """Adam's running means of a gradient and of its square."""

    first: Array
    second: Array
    count: int

    @classmethod
    def zeros(cls, size: int) -> Moments:
        """Before the first step."""
        return cls(np.zeros(size), np.zeros(size), 0)

    def step(self, gradient: Array, rate: float) -> tuple[Array, Moments]:
        """The ascent step, and the moments after it."""
        count = self.count + 1
        first = 0.9 * self.first + 0.1 * gradient
        second = 0.999 * self.second + 0.001 * np.square(gradient)
        scale = np.sqrt(second / (1.0 - 0.999**count)) + 1e-8
        return rate / (1.0 - 0.9**count) * first / scale, Moments(first, second, count)


#: A rule for steps of log hyperparameters. It is given the step to where the gradient would vanish if
#: nothing else changed, the gradient, and the moments of those before; it returns a step and the moments.
Update = Callable[[Array, Array, Moments], tuple[Array, Moments]]


def mackay(fixed_point: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    """To the fixed point at once (MacKay's)."""
    return fixed_point, moments


def ascend(fixed_point: Array, gradient: Array, moments: Moments) -> tuple[Array, Moments]:
    """Along the gradient by Adam's rule (the paper's)."""
    return moments.step(gradient, RATE)


#: By the names that the estimators' argument ``evidence_update`` has for them.
UPDATES: Mapping[str, Update] = {"mackay": mackay, "gradient": ascend}
