"""Terms: what is added up. Each is a table over its entries, linear in a parameter vector.

- ``SmoothTerm``: a network of one column at knots, or a joint network of two on a grid of them. Missing
  values of a single column have an effect of their own beside the network.
- ``LevelTerm``: an independent effect per level of a column.
- ``MixedTerm``: a pair in which categories or missing values take part.

A term knows its entries, the tangent features of its network there, and which parameters share a prior
precision. It holds no state: a network's expansion point is passed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from lanam.core.arrays import Array
from lanam.core.terms import networks
from lanam.core.terms.knots import Axis, Categories, Grid, Knots, Levels

#: Features of a level's curve in a mixed pair, for each band of scales.
_CURVE_FEATURES = 6


@dataclass(frozen=True)
class SmoothTerm:
    """A network of one column tabulated at knots, or a joint network of two on a grid of them.

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
        return "smooth" if len(self.features) == 1 else "pair"

    @property
    def has_missing(self) -> bool:
        """Whether missing values have an effect, the last parameter."""
        return isinstance(self.entries, Knots) and self.entries.missing

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """The prior group of every parameter."""
        network = self.architecture.group_index
        if self.kind == "pair":
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
    """A pair of columns of which one at least has categories or missing values.

    Knots of both columns have a joint network, as a pair of numeric columns has. At every level of one
    column (or where it is missing) the knots of the other have a curve: a network's tangent features, with
    independent coefficients at each level. Levels of both have an effect per cell. Joint network, curves
    and cells have precisions of their own, which all levels share: they are shrunk together.
    """

    features: tuple[int, ...]
    entries: Grid
    architecture: networks.Architecture
    curve: networks.Architecture
    prior_groups: str = "layer"

    kind = "pair"

    @property
    def _knots(self) -> list[Knots]:
        return [axis for axis in self.entries.axes if isinstance(axis, Knots)]

    @cached_property
    def _architectures(self) -> list[tuple[networks.Architecture, list[Knots]]]:
        """The networks, and what each sees: both columns of knots, then each alone."""
        joint = [(self.architecture, self._knots)] if len(self._knots) == 2 else []
        return joint + [(self.curve, [knots]) for knots in self._knots]

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """A group per band of the joint network and of the curves, and one for the cells."""
        first, second = self.entries.axes
        parts, start = list[NDArray[np.intp]](), 0
        if len(self._knots) == 2:
            parts.append(self.architecture.band_index)
            start = int(parts[0].max()) + 1
        curves = [np.empty(0, dtype=np.intp)]
        for knots, other in ((first, second), (second, first)):
            if isinstance(knots, Knots):
                curves.append(np.tile(_curve_bands(self.curve, knots), other.n_single))
        if any(len(curve) for curve in curves):
            parts.append(np.concatenate(curves) + start)
            start = int(parts[-1].max()) + 1
        parts.append(np.full(first.n_single * second.n_single, start))
        index = np.concatenate(parts)
        return np.zeros_like(index) if self.prior_groups == "network" else index

    def initial(self, rng: np.random.Generator) -> Array:
        """Random expansion points of all networks, one after the other."""
        parts = [_initial_network(*network, rng) for network in self._architectures]
        return np.concatenate([np.empty(0), *parts])

    def jacobian(self, expansion: Array) -> Array:
        """Tangent features at the entries (B, P), in the order of their groups."""
        ends = np.cumsum([architecture.n_parameters for architecture, _ in self._architectures])
        expansions = np.split(expansion, ends[:-1])
        first, second = self.entries.axes
        blocks = []
        if len(self._knots) == 2:
            left, right = (replace(knots, missing=False) for knots in self._knots)
            inputs = Grid(left, right).network_inputs
            joint = networks.jacobian(self.architecture, expansions.pop(0), inputs)[1]
            block = np.zeros((*self.entries.shape, joint.shape[1]))
            block[: len(left), : len(right)] = joint.reshape(len(left), len(right), -1)
            blocks.append(block)
        alone = [_single_entries(axis) for axis in (first, second)]
        if isinstance(first, Knots):
            curve = _curve(self.curve, expansions.pop(0), first)
            blocks.append(np.einsum("ip,js->ijsp", curve, alone[1]))
        if isinstance(second, Knots):
            curve = _curve(self.curve, expansions.pop(0), second)
            blocks.append(np.einsum("is,jp->ijsp", alone[0], curve))
        blocks.append(np.einsum("is,jt->ijst", *alone))
        flat = [block.reshape(len(self.entries), -1) for block in blocks]
        return np.concatenate(flat, axis=1)


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


def _single_entries(axis: Axis) -> Array:
    """Which entries have an effect of their own: the identity, below nothing for the knots."""
    return np.eye(len(axis))[:, len(axis) - axis.n_single :]


def _curve_bands(architecture: networks.Architecture, knots: Knots) -> NDArray[np.intp]:
    """The band of every feature of a curve."""
    n_bands = int(architecture.band_index.max()) + 1
    return np.repeat(np.arange(n_bands), min(_CURVE_FEATURES, len(knots.points)))


def _curve(architecture: networks.Architecture, expansion: Array, knots: Knots) -> Array:
    """Few features of a curve at a column's entries, zero where it is missing.

    With one precision a band only a band's leading singular vectors matter: the same prior of functions in
    few coordinates, of which every level has its own.
    """
    jacobian = networks.jacobian(architecture, expansion, knots.network_inputs)[1]
    most = min(_CURVE_FEATURES, len(knots.points))
    bands = []
    for band in range(int(architecture.band_index.max()) + 1):
        vectors, sizes, _ = np.linalg.svd(
            jacobian[:, architecture.band_index == band], full_matrices=False
        )
        bands.append(vectors[:, :most] * sizes[:most])
    features = np.zeros((len(knots), sum(band.shape[1] for band in bands)))
    features[: len(knots.points)] = np.concatenate(bands, axis=1)
    return features
