"""Terms: what is added up. Each is a table over its entries, linear in a parameter vector.

- ``SmoothTerm``: a network of one column at knots, or a joint network of several on a grid of them. Missing
  values of a single column have an effect of their own beside the network.
- ``LevelTerm``: an independent effect per level of a column.
- ``MixedTerm``: a joint term in which categories or missing values take part.

A term knows its entries, the tangent features of its network there, and which parameters share a prior
precision. It holds no state: a network's expansion point is passed in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from lanam.core.arrays import Array, slices
from lanam.core.terms import networks
from lanam.core.terms.knots import Axis, Categories, Grid, Knots, Levels

#: Features of a level's curve in a mixed term, for each band of scales; of a surface, their square.
_CURVE_FEATURES = 6


def joint_kind(features: Sequence[int]) -> str:
    """What the user calls a term of several columns."""
    return "pair" if len(features) == 2 else "interaction"


@dataclass(frozen=True)
class SmoothTerm:
    """A network of one column tabulated at knots, or a joint network of several on a grid of them.

    ``prior_groups`` is "layer" (a precision per layer tensor and, in the first layer's units, per
    initial scale) or "network" (one for all, the paper's main choice). Joint networks have one per
    scale at most: there may be many of them, and more were measured to be fitted to noise where rows
    are few. The effect of missing values always has a precision of its own.
    """

    features: tuple[int, ...]
    entries: Knots | Grid
    architecture: networks.Architecture
    prior_groups: str = "layer"

    @property
    def kind(self) -> str:
        """What the user calls such a term."""
        return joint_kind(self.features) if self.joint else "smooth"

    @property
    def joint(self) -> bool:
        """Whether the term is of several columns."""
        return len(self.features) > 1

    @property
    def has_missing(self) -> bool:
        """Whether missing values have an effect, the last parameter."""
        return isinstance(self.entries, Knots) and self.entries.missing

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """The prior group of every parameter."""
        network = self.architecture.group_index
        if self.joint:
            network = self.architecture.band_index
        if self.prior_groups == "network":
            network = np.zeros_like(network)
        return np.append(network, network.max() + 1) if self.has_missing else network

    def initial(self, rng: np.random.Generator) -> Array:
        """A random expansion point; the units of each band bend all over the data."""
        axes = [axis for axis in self.entries.axes if isinstance(axis, Knots)]
        return _initial_network(self.architecture, axes, rng)

    def jacobian(self, expansion: Array) -> Array:
        """Derivatives of the function at the entries (B, P)."""
        inputs = self.entries.network_inputs
        jacobian = networks.jacobian(self.architecture, expansion, inputs)[1]
        return np.asarray(block_diag(jacobian, 1.0)) if self.has_missing else jacobian


@dataclass(frozen=True)
class LevelTerm:
    """An independent effect per level, ``N(0, 1/lambda)`` with one precision (method.md 5).

    Of a column of categories, or of the single values of a numeric column beside its network. One
    column of very many categories may be ``wide``: its levels are integrated out of the regression
    (``evidence.py``) instead of being coordinates in it.
    """

    features: tuple[int, ...]
    entries: Levels | Categories
    wide: bool = False

    joint = False
    architecture = None

    @property
    def kind(self) -> str:
        """What the user calls such a term."""
        return "categorical" if isinstance(self.entries, Categories) else "level"

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """One group for all levels."""
        return np.zeros(len(self.entries), dtype=np.intp)

    def initial(self, rng: np.random.Generator) -> Array:
        """Levels have no expansion point: they are linear as they are."""
        return np.empty(0)

    def jacobian(self, expansion: Array) -> Array:
        """Each level is its own parameter; those of a wide term have no coordinates."""
        return np.empty((len(self.entries), 0)) if self.wide else np.eye(len(self.entries))


@dataclass(frozen=True)
class MixedTerm:
    """A joint term of columns of which one at least has categories or missing values.

    Knots of all columns have a joint network, as numeric columns have. At every level of one column (or
    where it is missing) the knots of the others have a function: the tangent features of a network of
    theirs, with independent coefficients at each level; and so on, until levels of all have an effect per
    cell. Networks of as many columns have precisions of their own, which all levels share: they are
    shrunk together.
    """

    features: tuple[int, ...]
    entries: Grid
    architecture: networks.Architecture
    prior_groups: str = "layer"

    joint = True

    @property
    def kind(self) -> str:
        """What the user calls such a term."""
        return joint_kind(self.features)

    @cached_property
    def _networks(self) -> list[_Network]:
        """The networks of all columns of knots, then of fewer."""
        smooth = [k for k, axis in enumerate(self.entries.axes) if isinstance(axis, Knots)]
        return [
            _Network(replace(self.architecture, n_inputs=size), self.entries.axes, chosen)
            for size in range(len(smooth), 0, -1)
            for chosen in combinations(smooth, size)
        ]

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """A group per band of the networks of as many columns, and one for the cells."""
        parts, start = list[NDArray[np.intp]](), 0
        for size in range(len(self.entries.axes), 0, -1):
            own = [network.group_index for network in self._networks if len(network.chosen) == size]
            if sum(map(len, own)):
                parts.append(np.concatenate(own) + start)
                start = int(parts[-1].max()) + 1
        parts.append(np.full(math.prod(axis.n_single for axis in self.entries.axes), start))
        index = np.concatenate(parts)
        return np.zeros_like(index) if self.prior_groups == "network" else index

    def initial(self, rng: np.random.Generator) -> Array:
        """Random expansion points of all networks, one after the other."""
        parts = [
            _initial_network(network.architecture, network.knots, rng) for network in self._networks
        ]
        return np.concatenate([np.empty(0), *parts])

    def jacobian(self, expansion: Array) -> Array:
        """Tangent features at the entries (B, P), in the order of their groups."""
        own = slices(network.architecture.n_parameters for network in self._networks)
        of_networks = zip(self._networks, own, strict=True)
        blocks = [network.jacobian(expansion[part]) for network, part in of_networks]
        return np.concatenate([*blocks, _at_levels(np.ones(1), self.entries.axes, ())], axis=1)


Term = SmoothTerm | LevelTerm | MixedTerm


def _initial_network(
    architecture: networks.Architecture, axes: Sequence[Knots], rng: np.random.Generator
) -> Array:
    """A random expansion point; the units of each band bend all over the data."""
    band = architecture.band_of_unit
    centres = np.empty((len(band), len(axes)))
    for own in range(band.max() + 1):
        members = np.flatnonzero(band == own)
        for k, knots in enumerate(axes):
            # One centre in each of equal parts of the knots, which are dense where the data is.
            order = np.arange(len(members)) if k == 0 else rng.permutation(len(members))
            place = (order + rng.uniform(size=len(members))) / len(members)
            centres[members, k] = knots.quantile_input(place)
    return networks.initialise(architecture, rng, centres)


@dataclass(frozen=True)
class _Network:
    """A network of some of a grid's axes, all of knots, at every level of the others."""

    architecture: networks.Architecture
    grid: tuple[Axis, ...]
    chosen: tuple[int, ...]

    @property
    def knots(self) -> list[Knots]:
        """What the network sees."""
        axes = [self.grid[k] for k in self.chosen]
        return [axis for axis in axes if isinstance(axis, Knots)]

    @cached_property
    def _widths(self) -> NDArray[np.intp]:
        """How many features each band has at a level; all of its parameters where there are no levels."""
        n_parameters = np.bincount(self.architecture.band_index)
        if len(self.chosen) == len(self.grid):
            return n_parameters
        n_points = math.prod(len(knots.points) for knots in self.knots)
        return np.minimum(n_parameters, min(_CURVE_FEATURES ** len(self.chosen), n_points))

    @property
    def group_index(self) -> NDArray[np.intp]:
        """The band of every feature."""
        if len(self.chosen) == len(self.grid):
            return self.architecture.band_index
        others = [axis.n_single for k, axis in enumerate(self.grid) if k not in self.chosen]
        return np.tile(np.repeat(np.arange(len(self._widths)), self._widths), math.prod(others))

    def jacobian(self, expansion: Array) -> Array:
        """Features at the grid's entries, zero where a column that the network sees is missing."""
        points = Grid(tuple(replace(knots, missing=False) for knots in self.knots))
        features = networks.jacobian(self.architecture, expansion, points.network_inputs)[1]
        if len(self.chosen) < len(self.grid):
            features = self._few(features)
        missing = [(0, int(knots.missing)) for knots in self.knots]
        padded = np.pad(features.reshape(*points.shape, -1), [*missing, (0, 0)])
        return _at_levels(padded, self.grid, self.chosen)

    def _few(self, jacobian: Array) -> Array:
        """Few features of a network.

        With one precision a band only a band's leading singular vectors matter: the same prior of functions
        in few coordinates, of which every level has its own.
        """
        bands = []
        for band, width in enumerate(self._widths):
            own = jacobian[:, self.architecture.band_index == band]
            vectors, sizes, _ = np.linalg.svd(own, full_matrices=False)
            bands.append(vectors[:, :width] * sizes[:width])
        return np.concatenate(bands, axis=1)


def _at_levels(features: Array, grid: Sequence[Axis], chosen: Sequence[int]) -> Array:
    """Features (..., p) of the chosen axes, once for every combination of the others' levels (B, P)."""
    letters = ascii_lowercase[: len(grid)]
    own = "".join(letters[k] for k in chosen)
    others = [k for k in range(len(grid)) if k not in chosen]
    levels = [f"{letters[k]}{letters[k].upper()}" for k in others]
    made = letters + "".join(letters[k].upper() for k in others) + "z"
    single = [_single_entries(grid[k]) for k in others]
    product = np.einsum(f"{','.join([f'{own}z', *levels])}->{made}", features, *single)
    return np.asarray(product.reshape(math.prod(map(len, grid)), -1))


def _single_entries(axis: Axis) -> Array:
    """Which entries have an effect of their own: the identity, below nothing for the knots."""
    return np.eye(len(axis))[:, len(axis) - axis.n_single :]
