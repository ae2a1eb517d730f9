"""Adam's rule for one step, for networks and hyperparameters alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanam.core.arrays import Array


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
