"""All terms' networks at once: values at their entries, and gradients by one backward sweep.

The entries of all terms stand one below the other. A layer is one small matrix product a term,
written into its part of the stack, and one pass of the activation over the whole stack: no padding,
and no loop around the expensive part. No Jacobian is formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from lanam.core.arrays import Array
from lanam.core.networks import ACTIVATIONS, Architecture, unflatten


@dataclass(frozen=True)
class Sweep:
    """Values at all entries (E,), with the tensors and layers they came through."""

    values: Array
    tensors: tuple[list[Array], ...]
    activations: tuple[Array, ...]
    slopes: tuple[Array, ...]


@dataclass(frozen=True)
class Stack:
    """Networks that share hidden layers and activation, and their inputs (B_d, n_inputs)."""

    architectures: tuple[Architecture, ...]
    inputs: tuple[Array, ...]

    @cached_property
    def entries(self) -> tuple[slice, ...]:
        """Each term's entries in the stack."""
        return _slices([len(inputs) for inputs in self.inputs])

    @cached_property
    def parameters(self) -> tuple[slice, ...]:
        """Each term's parameters in the vector of all."""
        return _slices([architecture.n_parameters for architecture in self.architectures])

    @property
    def n_entries(self) -> int:
        """Number of entries of all terms."""
        return sum(len(inputs) for inputs in self.inputs)

    def forward(self, theta: Array) -> Sweep:
        """Values of all networks at parameters ``theta``, with what their derivatives need."""
        first = self.architectures[0]
        activate = ACTIVATIONS[first.activation]
        tensors = tuple(
            unflatten(architecture, theta[own])
            for architecture, own in zip(self.architectures, self.parameters, strict=True)
        )
        activations, slopes = list[Array](), list[Array]()
        for layer, size in enumerate(first.hidden_sizes):
            stacked = np.empty((self.n_entries, size), dtype=theta.dtype)
            for k, own in enumerate(self.entries):
                weight, bias = tensors[k][2 * layer : 2 * layer + 2]
                before = activations[-1][own] if layer else self.inputs[k]
                np.matmul(before, weight, out=stacked[own])
                stacked[own] += bias
            value, slope = activate(stacked)
            activations.append(value)
            slopes.append(slope)
        values = np.empty(self.n_entries, dtype=theta.dtype)
        for k, own in enumerate(self.entries):
            np.matmul(activations[-1][own], tensors[k][-1], out=values[own])
        return Sweep(values, tensors, tuple(activations), tuple(slopes))

    def pull_back(self, sweep: Sweep, entry_slopes: Array) -> Array:
        """The gradient in all parameters of ``entry_slopes' values``: a vector-Jacobian product."""
        gradient = np.empty(self.parameters[-1].stop, dtype=entry_slopes.dtype)
        parts = [
            unflatten(architecture, gradient[own])
            for architecture, own in zip(self.architectures, self.parameters, strict=True)
        ]
        signal = np.empty_like(sweep.slopes[-1])
        for k, own in enumerate(self.entries):
            np.matmul(entry_slopes[own], sweep.activations[-1][own], out=parts[k][-1])
            np.multiply.outer(entry_slopes[own], sweep.tensors[k][-1], out=signal[own])
        for layer in reversed(range(len(sweep.slopes))):
            signal *= sweep.slopes[layer]
            below = np.empty_like(sweep.slopes[layer - 1])
            for k, own in enumerate(self.entries):
                before = sweep.activations[layer - 1][own] if layer else self.inputs[k]
                np.matmul(before.T, signal[own], out=parts[k][2 * layer])
                np.sum(signal[own], axis=0, out=parts[k][2 * layer + 1])
                if layer:
                    np.matmul(signal[own], sweep.tensors[k][2 * layer].T, out=below[own])
            signal = below
        return gradient


def _slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(*ends) for ends in pairwise(accumulate(sizes, initial=0)))
