"""Terms: what is added up. Each is a table over its entries, linear in a parameter vector.

A smooth term of one column is tabulated at knots, one of a pair of columns on a grid of them.

A term knows its entries (knots or levels), the tangent features of its network there, and which
parameters share a prior precision. It holds no state: a network's expansion point is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lanam.core import networks
from lanam.core.arrays import Array
from lanam.core.knots import Grid, Knots, Levels


@dataclass(frozen=True)
class SmoothTerm:
    """A network of one column tabulated at knots, or a joint network of two on a grid of them.

    ``prior_groups`` is "layer" (a precision per layer tensor and, in the first layer's units, per
    initial scale) or "network" (one for all, the paper's main choice). Joint networks have one per
    scale at most: there may be many of them, and more were measured to be fitted to noise where rows
    are few.
    """

    features: tuple[int, ...]
    entries: Knots | Grid
    architecture: networks.Architecture
    prior_groups: str = "layer"

    @property
    def kind(self) -> str:
        """What the user calls such a term."""
        return "smooth" if len(self.features) == 1 else "pair"

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """The prior group of every parameter."""
        if self.prior_groups == "network":
            return np.zeros(self.architecture.n_parameters, dtype=np.intp)
        if self.kind == "pair":
            return self.architecture.band_index
        return self.architecture.group_index

    def initial(self, rng: np.random.Generator) -> Array:
        """A random expansion point; the units of each band bend all over the data."""
        band = self.architecture.band_of_unit
        centres = np.empty((len(band), len(self.features)))
        for own in range(band.max() + 1):
            members = np.flatnonzero(band == own)
            for k, knots in enumerate(self.entries.axes):
                # One centre in each of equal parts of the knots, which are dense where the data is.
                order = np.arange(len(members)) if k == 0 else rng.permutation(len(members))
                place = (order + rng.uniform(size=len(members))) / len(members)
                centres[members, k] = knots.quantile_input(place)
        return networks.initialise(self.architecture, rng, centres)

    def jacobian(self, expansion: Array) -> Array:
        """Derivatives of the network at the entries (B, P)."""
        return networks.jacobian(self.architecture, expansion, self.entries.network_inputs)[1]


@dataclass(frozen=True)
class LevelTerm:
    """An independent effect per level, ``N(0, 1/lambda)`` with one precision (method.md 5)."""

    features: tuple[int, ...]
    entries: Levels

    kind = "level"

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """One group for all levels."""
        return np.zeros(len(self.entries), dtype=np.intp)

    def initial(self, rng: np.random.Generator) -> Array:
        """Levels have no expansion point: they are linear as they are."""
        return np.empty(0)

    def jacobian(self, expansion: Array) -> Array:
        """Each level is its own parameter."""
        return np.eye(len(self.entries))


Term = SmoothTerm | LevelTerm
