"""Tangent features of infinitely wide networks: the default design, without random numbers (method.md 2).

The tangent features of a network with random first-layer weights have the kernel

    K_g(x, x') = E[ j_g(x) j_g(x') ],

the expectation over one unit ``act(a (x - c))`` of the products of its derivatives in the tensor ``g``:

    w: act(a (x - c)),        b: act'(a (x - c)),        W: x act'(a (x - c)).

Finite networks come the nearer to it the wider they are; here it is the prior itself. Slopes ``a`` are
uniform on ``(-scale, scale)`` and kinks ``c`` on the range of a standardised column, both integrated by
quadrature, once for all columns. The kernel's leading eigenfunctions are the features. A table over several
columns has their products, band by band.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.interpolate import CubicSpline

from lanam.core.arrays import Array
from lanam.core.terms.networks import ACTIVATIONS, Architecture

#: Kinks are uniform between these network inputs, where nearly all data is: tails are compressed.
_KINKS = 4.0
#: Eigenfunctions are tabulated up to here, and straight beyond.
_END = 6.0

#: Quadrature nodes of the slopes, and spacing of the kinks and of the table in units of ``1 / scale``: a
#: finer design moves predictions by less than a twentieth of their standard deviation (benchmarks.trust).
_SLOPES = 6
_KINK_STEP = 1.0
_TABLE_STEP = 0.5

#: A multiple of the design's nodes, to measure that it does not matter.
RESOLUTION = 1

#: Eigenfunctions with a smaller eigenvalue, relative to the largest, are left out. Of the output weights'
#: kernel the largest ones are a constant and a straight line.
_SMALLEST = 1e-6
_SMALLEST_OUTPUT = 1e-8

#: The largest number of products of a band's features in a table over several columns.
_MAX_PRODUCTS = 160


@dataclass(frozen=True)
class _Band:
    """Features of one scale: splines of those of the biases and of the output weights."""

    bias: CubicSpline
    output: CubicSpline

    @property
    def n_bias(self) -> int:
        """The number of the biases' features."""
        return int(self.bias.c.shape[-1])

    @property
    def n_output(self) -> int:
        """The number of the output weights' features."""
        return int(self.output.c.shape[-1])


@lru_cache(maxsize=64)
def _band(activation: str, scale: float, resolution: int) -> _Band:
    half = resolution * max(math.ceil(_END * scale / _TABLE_STEP), 32)
    grid = np.linspace(-_END, _END, 2 * half + 1)
    n_kinks = resolution * max(math.ceil(2.0 * _KINKS * scale / _KINK_STEP), 64)
    kinks = _KINKS * ((2.0 * np.arange(n_kinks) + 1.0) / n_kinks - 1.0)
    nodes, weights = np.polynomial.legendre.leggauss(_SLOPES * resolution)
    # Both signs of a slope have the same weight.
    slopes = 0.5 * scale * (nodes + 1.0)
    root = np.sqrt(np.tile(weights, n_kinks))
    of_bias, of_output = np.zeros((len(grid), len(grid))), np.zeros((len(grid), len(grid)))
    reach = ((grid[:, None] - kinks)[:, :, None] * slopes).reshape(len(grid), -1)
    for sign in (1.0, -1.0):
        value, derivative = ACTIVATIONS[activation](sign * reach)
        value, derivative = value * root, derivative * root
        of_output += value @ value.T
        of_bias += derivative @ derivative.T
    return _Band(
        CubicSpline(grid, _leading(of_bias, _SMALLEST)),
        CubicSpline(grid, _leading(of_output, _SMALLEST_OUTPUT)),
    )


def _leading(kernel: Array, smallest: float) -> Array:
    """A factor of a kernel without its negligible directions, the largest first."""
    size, vectors = np.linalg.eigh(kernel)
    kept = np.flatnonzero(size > smallest * size[-1])[::-1]
    return np.asarray(vectors[:, kept] * np.sqrt(size[kept]))


def _evaluate(spline: CubicSpline, inputs: Array) -> Array:
    """The features at network inputs; beyond their table they are straight."""
    inside = np.clip(inputs, -_END, _END)
    values = spline(inside)
    beyond = np.flatnonzero(inside != inputs)
    if len(beyond):
        values[beyond] += (inputs - inside)[beyond, None] * spline(inside[beyond], 1)
    return np.asarray(values)


def counts(n_points: Sequence[int], architecture: Architecture) -> list[int]:
    """The number of features of each group at these numbers of points of every column."""
    if len(n_points) > 1:
        return product_counts(n_points, architecture)
    bands = _bands(architecture)
    of_bias = [min(band.n_bias, n_points[0]) for band in bands]
    return [*of_bias, *of_bias, *(min(band.n_output, n_points[0]) for band in bands)]


def tangent_features(inputs: Sequence[Array], architecture: Architecture) -> list[Array]:
    """The features of each group at the network inputs of one column, or on the grid of several's.

    Of one column a group is a tensor in a band, in the order of a finite network's.
    """
    if len(inputs) > 1:
        return product_features(inputs, architecture)
    (points,) = inputs
    bands = _bands(architecture)
    biases = [_reduced(_evaluate(band.bias, points)) for band in bands]
    outputs = [_reduced(_evaluate(band.output, points)) for band in bands]
    return [*(points[:, None] * bias for bias in biases), *biases, *outputs]


def product_counts(n_points: Sequence[int], architecture: Architecture) -> list[int]:
    """The number of products of each band."""
    return [
        min(math.prod(min(band.n_bias, n) for n in n_points), _MAX_PRODUCTS)
        for band in _bands(architecture)
    ]


def product_features(inputs: Sequence[Array], architecture: Architecture) -> list[Array]:
    """The largest products of the columns' features in each band, on the grid of their inputs.

    These are the biases' features, which bend more freely than those of the output weights: with them the
    evidence is higher. They have no constants, whose products with others would not be pure.
    """
    return [
        _largest_products([_principal(_evaluate(band.bias, points)) for points in inputs])
        for band in _bands(architecture)
    ]


def _bands(architecture: Architecture) -> list[_Band]:
    scales = map(float, architecture.scales)
    return [_band(architecture.activation, scale, RESOLUTION) for scale in scales]


def _largest_products(factors: Sequence[Array]) -> Array:
    """Products of one feature of every column, the largest first."""
    values, sizes = np.ones((1, 1)), np.ones(1)
    for factor in factors:
        values = np.einsum("ip,jq->ijpq", values, factor).reshape(len(values) * len(factor), -1)
        sizes = np.multiply.outer(sizes, np.linalg.norm(factor, axis=0)).ravel()
        kept = np.argsort(-sizes, kind="stable")[:_MAX_PRODUCTS]
        values, sizes = values[:, kept], sizes[kept]
    return values


def _principal(features: Array) -> Array:
    """The principal components of features without their means, the largest first."""
    vectors, sizes, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    return np.asarray(vectors * sizes)


def _reduced(features: Array) -> Array:
    """The same kernel in no more features than points."""
    n_points, n_features = features.shape
    if n_features <= n_points:
        return features
    return np.asarray(np.linalg.qr(features.T, mode="r")).T
