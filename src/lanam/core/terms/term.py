"""Terms of the additive model, each a table over its entries and linear in a parameter vector.

A term has entries, the tangent features of its network there, and groups of parameters that share a prior
precision. It holds no state: a network's expansion point is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from string import ascii_lowercase
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from lanam.core.arrays import Array, Rng, slices
from lanam.core.terms import features, networks
from lanam.core.terms.knots import Axis, Categories, Grid, Knots, Levels
from lanam.core.terms.spatial import SpatialTerm

#: Features per band of scales of a level's curve in a mixed term; of a surface, their square.
_CURVE_FEATURES = 6
#: The same of a group's curve, and fewer where groups are many: about this many of all.
_GROUP_FEATURES = 10
_MOST_FEATURES = 3000

#: Of two categories a line is a walk.
_SMALLEST_ORDER = 2


def joint_kind(features: Sequence[int]) -> str:
    """The user's name for a term of several columns."""
    return "pair" if len(features) == 2 else "interaction"


@dataclass(frozen=True)
class SmoothTerm:
    """A network of one column tabulated at knots, or a joint network of several on a grid of them.

    ``prior_groups`` is "layer" (a precision per layer tensor and, in the first layer's units, per initial
    scale) or "network" (one for all, the paper's main choice). Joint networks have one per scale at most:
    with more, many interactions overfit small data. Missing values of a single column have an independent
    effect with its own precision; in a joint network they and categories are indicators among its inputs.
    A joint term that is ``pure`` has no effects of fewer columns.
    """

    features: tuple[int, ...]
    entries: Knots | Grid
    architecture: networks.Architecture
    prior_groups: str = "layer"
    pure: bool = True

    @property
    def kind(self) -> str:
        """The user-facing kind of the term."""
        return joint_kind(self.features) if self.joint else "smooth"

    @property
    def joint(self) -> bool:
        """Whether the term is of several columns."""
        return len(self.features) > 1

    @property
    def has_missing(self) -> bool:
        """Whether the last parameter is the effect of missing values."""
        return isinstance(self.entries, Knots) and self.entries.missing

    @property
    def _axes(self) -> tuple[Knots, ...]:
        """The knots of every column."""
        return tuple(axis for axis in self.entries.axes if isinstance(axis, Knots))

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """The prior group of every parameter, or feature."""
        architecture = self.architecture
        if architecture.hidden_sizes is None:
            counts = features.counts(self._axes, architecture)
            network = np.repeat(np.arange(len(counts)), counts)
        else:
            network = architecture.band_index if self.joint else architecture.group_index
        if self.prior_groups == "network":
            network = np.zeros_like(network)
        return np.append(network, network.max() + 1) if self.has_missing else network

    def initial(self, rng: Rng | None) -> Array:
        """A random expansion point; infinitely wide networks have none."""
        axes = self.entries.axes
        widths = [axis.n_inputs for axis in axes] if self.joint else [1]
        return _initial_network(self.architecture, axes, rng, widths)

    def jacobian(self, expansion: Array) -> Array:
        """Derivatives of the function at the entries (B, P)."""
        if self.architecture.hidden_sizes is None:
            by_group = features.tangent_features(self._axes, self.architecture)
            jacobian = np.concatenate(by_group, axis=1)
        else:
            inputs_of_grid = self.entries.network_inputs
            jacobian = networks.jacobian(self.architecture, expansion, inputs_of_grid)[1]
        return np.asarray(block_diag(jacobian, 1.0)) if self.has_missing else jacobian


@dataclass(frozen=True)
class LevelTerm:
    """An independent effect ``N(0, 1/lambda)`` per category or per value of a numeric column (method.md 5).

    One column of very many categories may have ``high_cardinality``: its levels are integrated out of the
    regression (``evidence.py``) instead of being coordinates in it.
    """

    features: tuple[int, ...]
    entries: Levels | Categories
    high_cardinality: bool = False

    joint = False
    pure = True
    architecture = None

    @property
    def kind(self) -> str:
        """The user-facing kind of the term."""
        return "categorical" if isinstance(self.entries, Categories) else "level"

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """One group for all levels."""
        return np.zeros(len(self.entries), dtype=np.intp)

    def initial(self, rng: Rng | None) -> Array:
        """Levels are linear and have no expansion point."""
        return np.empty(0)

    def jacobian(self, expansion: Array) -> Array:
        """The identity; levels of high cardinality have no coordinates."""
        n_entries = len(self.entries)
        return np.empty((n_entries, 0)) if self.high_cardinality else np.eye(n_entries)


@dataclass(frozen=True)
class OrderedTerm:
    """Effects of ordered categories: a straight line over their ranks, and a random walk along them.

    Each has its precision. Missing and unseen values are like any other category: each has an independent
    effect of the line's and of the walk's mean variance.
    """

    features: tuple[int, ...]
    entries: Categories

    joint = False
    pure = True
    architecture = None
    kind = "categorical"

    @cached_property
    def _parts(self) -> list[Array]:
        """Features of the line and of the walk."""
        ranks = np.arange(self.entries.n_own, dtype=float)
        line = ranks - ranks.mean()
        walk = np.tril(np.ones((len(ranks), len(ranks))))[:, 1:]
        parts = [line[:, None], walk] if len(ranks) > _SMALLEST_ORDER else [line[:, None]]
        return [_with_others(part - part.mean(axis=0)) for part in parts]

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """A group for the line, and one for the walk."""
        return np.repeat(np.arange(len(self._parts)), [part.shape[1] for part in self._parts])

    def initial(self, rng: Rng | None) -> Array:
        """Effects are linear and have no expansion point."""
        return np.empty(0)

    def jacobian(self, expansion: Array) -> Array:
        """Features of the line and of the walk at the categories (B, P)."""
        return np.concatenate(self._parts, axis=1)


def _with_others(part: Array) -> Array:
    """Features of ranks and, each of the same mean variance, of missing and of unseen values."""
    size = float(np.sqrt(np.square(part).sum() / max(len(part), 1)))
    return np.asarray(block_diag(part, size, size))


@dataclass(frozen=True)
class MixedTerm:
    """A joint term of columns of which at least one has categories or missing values.

    Knots of all columns have a joint network, as numeric columns have. At every level of one column (or
    where it is missing) the others have a function of their knots: tangent features of a network, with
    independent coefficients per level; and so on, down to one effect per cell of levels. Networks of the
    same number of columns share precisions over all levels: they are shrunk together. Where these are
    ``grouped``, a known grouping of the rows, their curves have more features.
    """

    features: tuple[int, ...]
    entries: Grid
    architecture: networks.Architecture
    prior_groups: str = "layer"
    pure: bool = True
    grouped: bool = False

    joint = True

    @property
    def kind(self) -> str:
        """The user-facing kind of the term."""
        return joint_kind(self.features)

    @property
    def _n_each(self) -> int:
        """Features per band of a level's curve."""
        if not self.grouped:
            return _CURVE_FEATURES
        n_levels = math.prod(max(axis.n_single, 1) for axis in self.entries.axes)
        most = _MOST_FEATURES // (n_levels * len(self.architecture.scales))
        return int(np.clip(most, 1, _GROUP_FEATURES))

    @cached_property
    def _networks(self) -> list[_Network]:
        """The network of all columns of knots, then those of fewer."""
        smooth = [k for k, axis in enumerate(self.entries.axes) if isinstance(axis, Knots)]
        return [
            _Network(
                replace(self.architecture, n_inputs=size), self.entries.axes, chosen, self._n_each
            )
            for size in range(len(smooth), 0, -1)
            for chosen in combinations(smooth, size)
        ]

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """A group per number of columns and band of scales, and one for the cells."""
        parts, start = list[NDArray[np.intp]](), 0
        for size in range(len(self.entries.axes), 0, -1):
            of_size = [network for network in self._networks if len(network.chosen) == size]
            indices = [network.group_index for network in of_size]
            if sum(map(len, indices)):
                parts.append(np.concatenate(indices) + start)
                start = int(parts[-1].max()) + 1
        parts.append(np.full(math.prod(axis.n_single for axis in self.entries.axes), start))
        index = np.concatenate(parts)
        return np.zeros_like(index) if self.prior_groups == "network" else index

    def initial(self, rng: Rng | None) -> Array:
        """Random expansion points of all networks, concatenated."""
        parts = [
            _initial_network(n.architecture, n.knots, rng, [1] * len(n.knots))
            for n in self._networks
        ]
        return np.concatenate([np.empty(0), *parts])

    def jacobian(self, expansion: Array) -> Array:
        """Tangent features at the entries (B, P), in the order of their groups."""
        slots = slices(network.n_parameters for network in self._networks)
        of_networks = zip(self._networks, slots, strict=True)
        blocks = [network.jacobian(expansion[part]) for network, part in of_networks]
        return np.concatenate([*blocks, _at_levels(np.ones(1), self.entries.axes, ())], axis=1)


Term = SmoothTerm | LevelTerm | OrderedTerm | MixedTerm | SpatialTerm

#: Identifies a term of a model: its kind and its columns.
TermKey: TypeAlias = tuple[str, tuple[int, ...]]


def main_effects(terms: Iterable[Term], columns: Collection[int]) -> set[int]:
    """The positions of the terms that are of one of these columns alone."""
    return {k for k, term in enumerate(terms) if not term.joint and term.features[0] in columns}


def key_of(term: Term) -> TermKey:
    """The term's key."""
    return term.kind, term.features


def _initial_network(
    architecture: networks.Architecture,
    axes: Sequence[Axis | Levels],
    rng: Rng | None,
    widths: Sequence[int],
) -> Array:
    """A random expansion point; the units of each band have their kinks all over the data.

    ``widths`` are the numbers of inputs of the axes, of which knots are the first.
    """
    if architecture.hidden_sizes is None:
        return np.empty(0)
    assert rng is not None, "a finite network starts at random"
    band = architecture.band_of_unit
    centres = np.zeros((len(band), sum(widths)))
    for group in range(band.max() + 1):
        members = np.flatnonzero(band == group)
        for k, (knots, inputs) in enumerate(zip(axes, slices(widths), strict=True)):
            if not isinstance(knots, Knots):
                continue
            # Stratified over the knots, which are dense where the data is.
            order = np.arange(len(members)) if k == 0 else rng.permutation(len(members))
            place = (order + rng.uniform(size=len(members))) / len(members)
            centres[members, inputs.start] = knots.quantile_input(place)
    return networks.initialise(architecture, rng, centres)


@dataclass(frozen=True)
class _Network:
    """A network of some of a grid's axes, all of knots, at every level of the others."""

    architecture: networks.Architecture
    grid: tuple[Axis, ...]
    chosen: tuple[int, ...]
    #: features per band of a level's curve
    n_each: int = _CURVE_FEATURES

    @property
    def knots(self) -> list[Knots]:
        """The network's axes."""
        axes = [self.grid[k] for k in self.chosen]
        return [axis for axis in axes if isinstance(axis, Knots)]

    @property
    def n_parameters(self) -> int:
        """The number of parameters of a finite network."""
        return 0 if self.architecture.hidden_sizes is None else self.architecture.n_parameters

    @cached_property
    def _widths(self) -> NDArray[np.intp]:
        """The number of features per band: all of a network of all axes, few at each level."""
        if self.architecture.hidden_sizes is None:
            counts = features.product_counts(self.knots, self.architecture)
            n_parameters = np.array(counts, np.intp)
        else:
            n_parameters = np.bincount(self.architecture.band_index)
        if len(self.chosen) == len(self.grid):
            return n_parameters
        n_points = math.prod(len(knots.points) for knots in self.knots)
        return np.asarray(np.minimum(n_parameters, min(self.n_each ** len(self.chosen), n_points)))

    @property
    def group_index(self) -> NDArray[np.intp]:
        """The band of every feature."""
        if len(self.chosen) == len(self.grid) and self.architecture.hidden_sizes is not None:
            return self.architecture.band_index
        others = [axis.n_single for k, axis in enumerate(self.grid) if k not in self.chosen]
        return np.tile(np.repeat(np.arange(len(self._widths)), self._widths), math.prod(others))

    def jacobian(self, expansion: Array) -> Array:
        """Features at the grid's entries, zero where one of the network's columns is missing."""
        points = Grid(tuple(replace(knots, missing=False) for knots in self.knots))
        if self.architecture.hidden_sizes is None:
            products = features.product_features(self.knots, self.architecture)
            # The largest come first.
            bands = zip(products, self._widths, strict=True)
            values = np.concatenate([product[:, :width] for product, width in bands], axis=1)
        else:
            values = networks.jacobian(self.architecture, expansion, points.network_inputs)[1]
            if len(self.chosen) < len(self.grid):
                values = self._leading(values)
        missing = [(0, int(knots.missing)) for knots in self.knots]
        padded = np.pad(values.reshape(*points.shape, -1), [*missing, (0, 0)])
        return _at_levels(padded, self.grid, self.chosen)

    def _leading(self, jacobian: Array) -> Array:
        """Each band's leading singular vectors: the same prior over functions in fewer coordinates."""
        bands = []
        for band, width in enumerate(self._widths):
            features = jacobian[:, self.architecture.band_index == band]
            vectors, sizes, _ = np.linalg.svd(features, full_matrices=False)
            bands.append(vectors[:, :width] * sizes[:width])
        return np.concatenate(bands, axis=1)


def _at_levels(features: Array, grid: Sequence[Axis], chosen: Sequence[int]) -> Array:
    """Features (..., p) of the chosen axes, repeated for every combination of the others' levels (B, P)."""
    letters = ascii_lowercase[: len(grid)]
    inputs = "".join(letters[k] for k in chosen)
    others = [k for k in range(len(grid)) if k not in chosen]
    levels = [f"{letters[k]}{letters[k].upper()}" for k in others]
    output = letters + "".join(letters[k].upper() for k in others) + "z"
    single = [_single_entries(grid[k]) for k in others]
    product = np.einsum(f"{','.join([f'{inputs}z', *levels])}->{output}", features, *single)
    return np.asarray(product.reshape(math.prod(map(len, grid)), -1))


def _single_entries(axis: Axis) -> Array:
    """Indicators of the entries with an independent effect: the identity, below zeros for the knots."""
    return np.eye(len(axis))[:, len(axis) - axis.n_single :]
