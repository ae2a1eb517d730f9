"""All terms' networks at once: values at their entries, and gradients by one backward sweep.

The entries of a bundle of terms stand one below the other. A layer is one small matrix product a
term, written into its part of the bundle, and one pass of the activation over all of it: no padding,
however different the terms' sizes are. Bundles are small enough for the cache. No Jacobian is formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lanam.core.arrays import Array, slices
from lanam.core.terms.networks import ACTIVATIONS, Architecture, unflatten

#: A bundle takes terms until it has this many entries. An activation is a dozen passes over its
#: argument, and with several thousand entries at once each number took several times longer.
_BUNDLE_ENTRIES = 256


@dataclass(frozen=True)
class Sweep:
    """Values at the entries, with the tensors and layers they came through."""

    values: Array
    tensors: tuple[list[Array], ...]
    activations: tuple[Array, ...]
    slopes: tuple[Array, ...]


@dataclass(frozen=True)
class _Networks:
    """Networks and their inputs (B_d, n_inputs), one below the other."""

    architectures: tuple[Architecture, ...]
    inputs: tuple[Array, ...]

    @cached_property
    def entries(self) -> tuple[slice, ...]:
        """Each term's entries, one term below the other."""
        return slices(map(len, self.inputs))

    @cached_property
    def parameters(self) -> tuple[slice, ...]:
        """Each term's parameters in the vector of all."""
        return slices(architecture.n_parameters for architecture in self.architectures)


@dataclass(frozen=True)
class Bundle(_Networks):
    """Networks that share hidden layers and activation, swept together."""

    def forward(self, theta: Array) -> Sweep:
        """Values of all networks at parameters ``theta``, with what their derivatives need."""
        hidden_sizes = self.architectures[0].hidden_sizes
        activate = ACTIVATIONS[self.architectures[0].activation]
        tensors = self._tensors(theta)
        n_entries = self.entries[-1].stop
        activations, slopes = list[Array](), list[Array]()
        for layer, size in enumerate(hidden_sizes):
            before = np.empty((n_entries, size), dtype=theta.dtype)
            for k, own in enumerate(self.entries):
                weight, bias = tensors[k][2 * layer : 2 * layer + 2]
                entering = activations[-1][own] if layer else self.inputs[k]
                np.matmul(entering, weight, out=before[own])
                before[own] += bias
            value, slope = activate(before)
            activations.append(value)
            slopes.append(slope)
        values = np.empty(n_entries, dtype=theta.dtype)
        for k, own in enumerate(self.entries):
            np.matmul(activations[-1][own], tensors[k][-1], out=values[own])
        return Sweep(values, tensors, tuple(activations), tuple(slopes))

    def pull_back(self, sweep: Sweep, entry_slopes: Array) -> Array:
        """The gradient in all parameters of ``entry_slopes' values``: a vector-Jacobian product."""
        gradient = np.empty(self.parameters[-1].stop, dtype=entry_slopes.dtype)
        parts = self._tensors(gradient)
        signal = np.empty_like(sweep.slopes[-1])
        for k, own in enumerate(self.entries):
            np.matmul(entry_slopes[own], sweep.activations[-1][own], out=parts[k][-1])
            np.multiply.outer(entry_slopes[own], sweep.tensors[k][-1], out=signal[own])
        for layer in reversed(range(len(sweep.slopes))):
            signal *= sweep.slopes[layer]
            below = np.empty_like(sweep.slopes[layer - 1])
            for k, own in enumerate(self.entries):
                entering = sweep.activations[layer - 1][own] if layer else self.inputs[k]
                np.matmul(entering.T, signal[own], out=parts[k][2 * layer])
                np.sum(signal[own], axis=0, out=parts[k][2 * layer + 1])
                if layer:
                    np.matmul(signal[own], sweep.tensors[k][2 * layer].T, out=below[own])
            signal = below
        return gradient

    def _tensors(self, theta: Array) -> tuple[list[Array], ...]:
        return tuple(
            unflatten(architecture, theta[own])
            for architecture, own in zip(self.architectures, self.parameters, strict=True)
        )


@dataclass(frozen=True)
class Stack(_Networks):
    """All terms' networks in bundles; entries and parameters in the terms' order."""

    @cached_property
    def _bundles(self) -> list[tuple[slice, slice, Bundle]]:
        """Each bundle's entries, its parameters, and itself."""
        bundles, first = [], 0
        for last, own in enumerate(self.entries):
            full = own.stop - self.entries[first].start >= _BUNDLE_ENTRIES
            # A pair's network may have other layers than a column's.
            following = self.architectures[last + 1 : last + 2]
            if full or [_layers(a) for a in following] != [_layers(self.architectures[last])]:
                terms = slice(first, last + 1)
                entries = slice(self.entries[first].start, own.stop)
                parameters = slice(self.parameters[first].start, self.parameters[last].stop)
                bundle = Bundle(self.architectures[terms], self.inputs[terms])
                bundles.append((entries, parameters, bundle))
                first = last + 1
        return bundles

    def forward(self, theta: Array) -> tuple[Array, list[Sweep]]:
        """Values at all entries at parameters ``theta``, with what their derivatives need."""
        sweeps = [bundle.forward(theta[parameters]) for _, parameters, bundle in self._bundles]
        return np.concatenate([sweep.values for sweep in sweeps]), sweeps

    def pull_back(self, sweeps: Sequence[Sweep], entry_slopes: Array) -> Array:
        """The gradient in all parameters of ``entry_slopes' values``: a vector-Jacobian product."""
        return np.concatenate(
            [
                bundle.pull_back(sweep, entry_slopes[entries])
                for (entries, _, bundle), sweep in zip(self._bundles, sweeps, strict=True)
            ]
        )


def _layers(architecture: Architecture) -> tuple[tuple[int, ...], str]:
    """What the networks of a bundle have in common."""
    return architecture.hidden_sizes, architecture.activation
