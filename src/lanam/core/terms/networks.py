"""Small feed-forward networks with one output: initialisation, values and analytic Jacobians.

A network ``f(x; theta)`` of hidden sizes ``(h_1, ..., h_L)`` is

    a_0 = x,   h_l = a_(l-1) W_l + b_l,   a_l = act(h_l),   f = a_L w,

without an output bias: terms are centred over the data and the model has one intercept (paper, section
3.2.2). ``theta`` is one flat vector of the tensors ``W_1, b_1, ..., w``, each a prior group or several.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lanam.core.arrays import Array, slices

GELU_SCALE = math.sqrt(2.0 / math.pi)
GELU_CUBIC = 0.044715


def _gelu(h: Array) -> tuple[Array, Array]:
    # The tanh approximation: three times faster than the normal distribution function, equal to 5e-4.
    square = h * h
    tanh = np.tanh(GELU_SCALE * h * (1.0 + GELU_CUBIC * square))
    half = 0.5 * (1.0 + tanh)
    inner_slope = GELU_SCALE * (1.0 + 3.0 * GELU_CUBIC * square)
    return h * half, half + 0.5 * h * (1.0 - tanh * tanh) * inner_slope


def _relu(h: Array) -> tuple[Array, Array]:
    return np.maximum(h, 0.0), (h > 0.0).astype(h.dtype)


def _tanh(h: Array) -> tuple[Array, Array]:
    value = np.tanh(h)
    return value, 1.0 - value * value


def _silu(h: Array) -> tuple[Array, Array]:
    sigmoid = expit(h)
    return h * sigmoid, sigmoid * (1.0 + h * (1.0 - sigmoid))


#: name -> function returning the activation and its derivative
ACTIVATIONS: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    "gelu": _gelu,
    "relu": _relu,
    "tanh": _tanh,
    "silu": _silu,
}


@dataclass(frozen=True)
class Architecture:
    """Sizes, activation and initial scales of a network.

    Without ``hidden_sizes`` it has one hidden layer of infinite width, whose tangent features are in
    ``features.py``; only finite networks have parameters.
    """

    n_inputs: int
    hidden_sizes: tuple[int, ...] | None
    activation: str
    #: Scales of the first layer's initial weights, one per band of units; larger ones allow higher
    #: frequencies.
    scales: tuple[float, ...] = (1.0,)

    @property
    def finite(self) -> tuple[int, ...]:
        """The hidden sizes of a finite network."""
        assert self.hidden_sizes is not None, "an infinitely wide network has no parameters"
        return self.hidden_sizes

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the tensors ``W_1, b_1, ..., W_L, b_L, w``."""
        shapes: list[tuple[int, ...]] = []
        fan_in = self.n_inputs
        for size in self.finite:
            shapes += [(fan_in, size), (size,)]
            fan_in = size
        return (*shapes, (fan_in,))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of parameters of each tensor."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return sum(self.sizes)

    @cached_property
    def band_of_unit(self) -> NDArray[np.intp]:
        """The band of scales of each unit of the first layer."""
        n_units = self.finite[0]
        return np.arange(n_units) * min(len(self.scales), n_units) // n_units

    @cached_property
    def group_index(self) -> NDArray[np.intp]:
        """A group per tensor, and per band of scales for the tensors of the first layer's units."""
        groups: list[NDArray[np.intp]] = []
        start = 0
        for index in self._bands:
            groups.append(np.maximum(index, 0) + start)
            start = int(groups[-1].max()) + 1
        return np.concatenate(groups)

    @cached_property
    def band_index(self) -> NDArray[np.intp]:
        """A group per band of scales, and one for the tensors of later layers."""
        index = np.concatenate(self._bands)
        return np.where(index < 0, index.max() + 1, index)

    @cached_property
    def _bands(self) -> list[NDArray[np.intp]]:
        """The band of every parameter, one vector per tensor; -1 beyond the first layer's units."""
        bands = []
        for position, shape in enumerate(self.shapes):
            first = position < 2 or (len(self.finite) == 1 and position == 2)
            index = np.zeros(shape, dtype=np.intp) + (self.band_of_unit if first else -1)
            bands.append(index.ravel())
        return bands


def initialise(
    architecture: Architecture, rng: np.random.Generator, centres: Array | None = None
) -> Array:
    """Random parameters: uniform on ``+-1/sqrt(fan_in)`` as in torch's linear layers.

    The first layer's weights are scaled band by band, and its units are centred at ``centres``
    (n_units, n_inputs) if these are given.
    """
    unit_scale = np.asarray(architecture.scales)[architecture.band_of_unit]
    tensors: list[Array] = []
    fan_in = architecture.n_inputs
    for shape in architecture.shapes:
        # A bias follows its weight matrix and shares its bound.
        is_bias = len(shape) == 1 and len(tensors) < len(architecture.shapes) - 1
        fan_in = fan_in if is_bias else shape[0]
        tensor = rng.uniform(-1.0, 1.0, shape) / math.sqrt(fan_in)
        tensors.append(tensor * unit_scale if len(tensors) < 2 else tensor)
    if centres is not None:
        tensors[1] = -np.einsum("ij,ji->j", tensors[0], centres)
    return np.concatenate([tensor.ravel() for tensor in tensors])


def unflatten(architecture: Architecture, theta: Array) -> list[Array]:
    """Views of the flat parameter vector, one per tensor."""
    parts = (theta[part] for part in slices(architecture.sizes))
    return [part.reshape(shape) for part, shape in zip(parts, architecture.shapes, strict=True)]


@dataclass(frozen=True)
class Trace:
    """Values and the factors of their derivatives.

    ``activations[l]`` enters layer ``l`` (B, fan_in); ``signals[l]`` is the derivative of the output in its
    pre-activation (B, fan_out), 1 in the last layer.
    """

    values: Array
    activations: tuple[Array, ...]
    signals: tuple[Array, ...]


def trace(architecture: Architecture, theta: Array, inputs: Array) -> Trace:
    """Forward and backward sweep: a derivative in a tensor is an outer product of the result."""
    activate = ACTIVATIONS[architecture.activation]
    *hidden, output = unflatten(architecture, theta)
    weights = hidden[::2]
    activations, derivatives = [inputs], []
    for weight, bias in zip(weights, hidden[1::2], strict=True):
        value, derivative = activate(activations[-1] @ weight + bias)
        activations.append(value)
        derivatives.append(derivative)
    signals = [derivatives[-1] * output] if derivatives else []
    for weight, derivative in zip(weights[:0:-1], derivatives[-2::-1], strict=True):
        signals.append((signals[-1] @ weight.T) * derivative)
    signals.reverse()
    return Trace(activations[-1] @ output, tuple(activations), tuple(signals))


def forward(architecture: Architecture, theta: Array, inputs: Array) -> Array:
    """Values of the network at ``inputs`` of shape (B, n_inputs)."""
    return trace(architecture, theta, inputs).values


def jacobian(architecture: Architecture, theta: Array, inputs: Array) -> tuple[Array, Array]:
    """Values (B,) and Jacobian (B, P) of the network at ``inputs``."""
    sweep = trace(architecture, theta, inputs)
    n_points = len(inputs)
    result = np.empty((n_points, architecture.n_parameters))
    start = 0
    for before, signal in zip(sweep.activations, sweep.signals, strict=False):
        size = before.shape[1] * signal.shape[1]
        block = result[:, start : start + size].reshape(n_points, before.shape[1], -1)
        np.multiply(before[:, :, None], signal[:, None, :], out=block)
        result[:, start + size : start + size + signal.shape[1]] = signal
        start += size + signal.shape[1]
    result[:, start:] = sweep.activations[-1]
    return sweep.values, result
