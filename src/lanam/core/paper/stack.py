"""All networks of all runs as one batched computation, forward and backward.

A *copy* is one run's function of one output; copies share the networks' inputs. Parameters are an array
(S, P) of copies, values an array (S, E) of the entries of all terms. Networks of the same layers and of
similar size are padded to one length and computed together, by batched matrix products over copies and
networks, in arrays that are made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray, slices
from lanam.core.paper import trained
from lanam.core.terms import networks
from lanam.core.terms.term import Term

#: Floats of the networks: single precision, but in tests.
Floats = NDArray[Any]

#: Networks are computed together up to this many numbers per layer: more are no longer in the cache.
_CACHED = 1 << 16

#: Networks of fewer entries than this fraction of the longest are not padded to its length.
_FILLED = 0.7


@dataclass(frozen=True)
class Layout:
    """Where the terms are in the arrays: their parameters, and their entries that have data.

    First those of networks, ``order`` being that of their terms, then the effects without one. The last
    parameter is the intercept, the last entry its value.
    """

    terms: tuple[Term, ...]
    seen: tuple[IntArray, ...]

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The terms with networks: those of the same layers together, the longest first."""

        def kind(k: int) -> tuple[object, ...]:
            network = self.terms[k].architecture
            assert network is not None
            return network.n_inputs, network.finite, network.activation, -len(self.inputs[k]), k

        return tuple(sorted((k for k, rows in enumerate(self.inputs) if len(rows)), key=kind))

    @cached_property
    def inputs(self) -> tuple[Array, ...]:
        """Each network's inputs at its entries with data, and a last one of ones."""
        inputs = []
        for term, seen in zip(self.terms, self.seen, strict=True):
            rows = trained.network_inputs(term)
            rows = rows[seen[seen < len(rows)]]
            inputs.append(np.hstack([rows, np.ones((len(rows), 1))]))
        return tuple(inputs)

    @cached_property
    def network_parameters(self) -> dict[int, slice]:
        """The networks' parameters, by term."""
        sizes = [trained.n_parameters(self.terms[k]) - self._n_effects[k] for k in self.order]
        return dict(zip(self.order, slices(sizes), strict=True))

    @cached_property
    def n_network_parameters(self) -> int:
        """The number of parameters of all networks."""
        return max((part.stop for part in self.network_parameters.values()), default=0)

    @cached_property
    def parameters(self) -> tuple[IntArray, ...]:
        """The indices of each term's parameters."""
        effects = slices(self._n_effects)
        parts = []
        for k, own in enumerate(effects):
            network = self.network_parameters.get(k, slice(0, 0))
            start = self.n_network_parameters
            parts.append(np.r_[network, start + own.start : start + own.stop])
        return tuple(parts)

    @property
    def n_parameters(self) -> int:
        """The number of parameters, with the intercept."""
        return self.n_network_parameters + sum(self._n_effects) + 1

    def stacked(self, terms: Sequence[Array], intercept: Array) -> Array:
        """The parameters (K, P) of all terms, from those of each, and the intercepts."""
        result = np.empty((len(intercept), self.n_parameters))
        for places, own in zip(self.parameters, terms, strict=True):
            result[:, places] = own
        result[:, -1] = intercept
        return result

    @cached_property
    def _n_effects(self) -> tuple[int, ...]:
        return tuple(map(trained.n_effects, self.terms))


class _Block:
    """Networks computed together: views of the arrays of all, and arrays of its layers."""

    def __init__(self, inputs: Sequence[Array], architecture: networks.Architecture, copies: int):
        self.architecture = architecture
        self.shape = (copies, len(inputs), max(map(len, inputs)))
        self._inputs: Floats = np.zeros((len(inputs), self.shape[2], inputs[0].shape[1]))
        for padded, rows in zip(self._inputs, inputs, strict=True):
            padded[: len(rows)] = rows
        # Of a gelu twice its value and its derivative are computed, which saves going over them again.
        self._gain = 0.5 if architecture.activation == "gelu" else 1.0

    def bind(self, parameters: Floats, gradient: Floats, values: Floats, pull: Floats) -> None:
        """Use these parts of the arrays of all networks."""
        dtype = parameters.dtype
        self._inputs = self._inputs.astype(dtype)
        self._first, *self._deeper, self._output = self._tensors(parameters)
        self._to_first, *self._to_deeper, self._to_output = self._tensors(gradient)
        self._values, self._pull = (part.reshape(self.shape) for part in (values, pull))
        hidden = [(*self.shape, size) for size in self.architecture.finite]
        self._activations = [np.empty(shape, dtype) for shape in hidden]
        self._derivatives = [np.empty(shape, dtype) for shape in hidden]

    def _tensors(self, flat: Floats) -> list[Any]:
        """Views of the first layer's weights with its biases, of each further layer's, of the output's."""
        copies, n_networks, _ = self.shape
        flat = flat.reshape(copies, n_networks, -1)
        parts = slices(self.architecture.sizes)
        shapes = self.architecture.shapes

        def view(start: int, stop: int, *shape: int) -> Floats:
            return flat[:, :, start:stop].reshape(copies, n_networks, *shape)

        tensors: list[Any] = [view(0, parts[1].stop, self._inputs.shape[2], shapes[1][0])]
        for layer in range(1, len(self.architecture.finite)):
            weight, bias = parts[2 * layer : 2 * layer + 2]
            matrix = view(weight.start, weight.stop, *shapes[2 * layer])
            tensors.append((matrix, view(bias.start, bias.stop, 1, bias.stop - bias.start)))
        return [*tensors, view(parts[-1].start, parts[-1].stop, shapes[-1][0], 1)]

    def forward(self, space: Scratch) -> None:
        """Write the values."""
        entering = self._inputs
        for layer, (value, derivative) in enumerate(
            zip(self._activations, self._derivatives, strict=True)
        ):
            if layer == 0:
                np.matmul(entering, self._first, out=value)
            else:
                weight, bias = self._deeper[layer - 1]
                np.matmul(entering, self._gain * weight, out=value)
                value += bias
            _activate(self.architecture.activation, value, derivative, space)
            entering = value
        np.matmul(entering, self._gain * self._output, out=self._values[..., None])

    def backward(self, space: Scratch) -> None:
        """Write the gradient in the parameters of ``pull' values``."""
        pull = self._pull[..., None]
        np.matmul(self._activations[-1].swapaxes(-1, -2), pull, out=self._to_output)
        self._to_output *= self._gain
        output = self._gain * self._output.swapaxes(-1, -2)
        signal = self._derivatives[-1]
        if not self._deeper:
            # The output's weights are common to the entries: multiplied last, they are few.
            entering = (self._inputs * pull).swapaxes(-1, -2)
            np.matmul(entering, signal, out=self._to_first)
            self._to_first *= output
            return
        signal *= output
        signal *= pull
        for layer in reversed(range(1, len(self._activations))):
            weight, _ = self._deeper[layer - 1]
            to_weight, to_bias = self._to_deeper[layer - 1]
            np.matmul(self._activations[layer - 1].swapaxes(-1, -2), signal, out=to_weight)
            to_weight *= self._gain
            np.sum(signal, axis=-2, keepdims=True, out=to_bias)
            below = space.get(self._derivatives[layer - 1].shape, signal.dtype)
            np.matmul(signal, (self._gain * weight).swapaxes(-1, -2), out=below)
            signal = self._derivatives[layer - 1]
            signal *= below
        np.matmul(self._inputs.swapaxes(-1, -2), signal, out=self._to_first)


class Stack:
    """All terms of all copies at the same time.

    ``parameters`` (S, P) are read and ``values`` (S, E) written by ``forward``; ``pull`` (S, E) is read and
    ``gradient`` (S, P) written by ``backward``. ``columns[k]`` are the columns of a term's entries.
    """

    def __init__(self, layout: Layout, parameters: Floats) -> None:
        self.layout, self.parameters = layout, parameters
        copies, dtype = len(parameters), parameters.dtype
        self.gradient = np.zeros_like(parameters)
        self._space = Scratch()
        groups = _grouped(layout, copies)
        lengths = [len(group) * max(len(layout.inputs[k]) for k in group) for group in groups]
        *parts, effects = slices([*lengths, parameters.shape[1] - layout.n_network_parameters])
        self.values, self.pull = (np.zeros((copies, effects.stop), dtype) for _ in range(2))
        self._effects = effects
        self._blocks = list[_Block]()
        starts = dict[int, int]()
        for group, entries in zip(groups, parts, strict=True):
            network = layout.terms[group[0]].architecture
            assert network is not None
            block = _Block([layout.inputs[k] for k in group], network, copies)
            of_first, of_last = (layout.network_parameters[k] for k in (group[0], group[-1]))
            own = slice(of_first.start, of_last.stop)
            arrays = parameters[:, own], self.gradient[:, own]
            block.bind(*arrays, self.values[:, entries], self.pull[:, entries])
            self._blocks.append(block)
            starts |= {k: entries.start + j * block.shape[2] for j, k in enumerate(group)}
        self.columns = tuple(self._columns(k, starts.get(k, 0)) for k in range(len(layout.terms)))

    def _columns(self, k: int, start: int) -> IntArray:
        """The column of each entry of a term; of those without data, any."""
        term, seen = self.layout.terms[k], self.layout.seen[k]
        columns = np.zeros(len(term.entries), dtype=np.int32)
        n_own = trained.n_effects(term)
        of_network = seen[seen < len(columns) - n_own]
        columns[of_network] = start + np.arange(len(of_network))
        own = self.layout.parameters[k][len(self.layout.parameters[k]) - n_own :]
        columns[len(columns) - n_own :] = (
            self._effects.start + own - self.layout.n_network_parameters
        )
        return columns

    def forward(self) -> None:
        """The values at all entries."""
        for block in self._blocks:
            block.forward(self._space)
        self.values[:, self._effects] = self.parameters[:, self.layout.n_network_parameters :]

    def backward(self) -> None:
        """The gradient in all parameters of ``pull' values``: a vector-Jacobian product."""
        for block in self._blocks:
            block.backward(self._space)
        self.gradient[:, self.layout.n_network_parameters :] = self.pull[:, self._effects]


def _grouped(layout: Layout, copies: int) -> list[list[int]]:
    """The terms of each block, in their order."""

    def network(k: int) -> networks.Architecture:
        found = layout.terms[k].architecture
        assert found is not None
        return found

    groups = list[list[int]]()
    for architecture, alike in groupby(layout.order, network):
        longest = most = 0
        for number, k in enumerate(alike):
            length = len(layout.inputs[k])
            if number == 0 or length < _FILLED * longest or len(groups[-1]) == most:
                groups.append([])
                longest = length
                most = max(_CACHED // (copies * length * max(architecture.finite)), 1)
            groups[-1].append(k)
    return groups


@dataclass
class Scratch:
    """Arrays for intermediate results, valid until the next of the same name."""

    arrays: dict[tuple[object, ...], Floats] = field(default_factory=dict)

    def get(self, shape: tuple[int, ...], dtype: Any, name: str = "") -> Floats:
        """An uninitialised array."""
        key = name, shape
        if key not in self.arrays:
            self.arrays[key] = np.empty(shape, dtype)
        return self.arrays[key]


def _activate(name: str, before: Floats, derivative: Floats, space: Scratch) -> None:
    """The activation, in place, and its derivative; of gelu twice both.

    In place for the one that matters: memory is what takes the time. With ``u = c h + c' h^3`` and
    ``t = 1 + tanh(u)``, ``2 gelu = h t`` and ``2 gelu' = t + h u' t (2 - t)``.
    """
    if name != "gelu":
        before[:], derivative[:] = networks.ACTIVATIONS[name](before)
        return
    once, thrice = networks.GELU_SCALE, networks.GELU_SCALE * networks.GELU_CUBIC
    slope = np.square(before, out=space.get(before.shape, before.dtype, "slope"))
    other = space.get(before.shape, before.dtype, "other")
    t = np.multiply(slope, thrice, out=derivative)
    t += once
    t *= before
    np.tanh(t, out=t)
    t += 1.0
    slope *= 3.0 * thrice
    slope += once
    slope *= before
    before *= t
    np.subtract(2.0, t, out=other)
    slope *= t
    slope *= other
    t += slope
