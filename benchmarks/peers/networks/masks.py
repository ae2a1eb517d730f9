"""What dropout leaves out."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


class Masks:
    """Random zeros and ones for dropout, fast.

    One pool of bytes is drawn a fit; a mask is a piece of it from a random place. Drawing anew for
    every mask would take as long as all the rest of an update.
    """

    SIZE = 2**23

    def __init__(self, rate: float, rng: np.random.Generator) -> None:
        self.rate = rate
        self._rng = rng
        self._pool = torch.from_numpy((rng.random(self.SIZE, np.float32) >= rate).view(np.uint8))

    def starts(self, count: int, length: int) -> list[int]:
        """Random places for masks of this length."""
        return self._rng.integers(0, self.SIZE - length, count).tolist()

    def at(self, start: int, shape: tuple[int, ...]) -> Tensor:
        return self._pool[start : start + math.prod(shape)].view(shape)

    def draw(self, shape: tuple[int, ...]) -> Tensor:
        length = math.prod(shape)
        if length >= self.SIZE:
            return torch.cat([self.draw(shape[1:])[None] for _ in range(shape[0])])
        return self.at(self.starts(1, length)[0], shape)
