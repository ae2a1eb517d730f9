"""Tangent features of infinitely wide networks: the default design, without random numbers (method.md 2).

The tangent features of a network with random first-layer weights have the kernel

    K_g(x, x') = E[ j_g(x) j_g(x') ],

the expectation over one unit ``act(a (x - c))`` of the products of its derivatives in the tensor ``g``:

    w: act(a (x - c)),        b: act'(a (x - c)),        W: x act'(a (x - c)).

Finite networks come the nearer to it the wider they are; here it is the prior itself. Slopes ``a`` are
uniform on ``(-scale, scale)`` and kinks ``c`` on the range of a standardised column, both integrated by
quadrature, once for all columns. The kernel's leading eigenfunctions are the features. A table over several
columns has their products, band by band.

What is known of a column changes its features and nothing else: of a cyclic column they are harmonics, of a
straight line there is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.interpolate import CubicSpline

from lanam.core.arrays import Array
from lanam.core.terms.knots import LINEAR, Knots
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

#: The largest number of harmonics of a circle.
_MAX_HARMONICS = 128

#: A multiple of the design's nodes, to measure that it does not matter.
RESOLUTION = 1

#: Eigenfunctions with a smaller eigenvalue, relative to the largest, are left out. Of the output weights'
#: kernel the largest ones are a constant and a straight line.
_SMALLEST = 1e-6
_SMALLEST_OUTPUT = 1e-8

#: The largest number of products of a band's features in a table over two columns, by the number of knots
#: along the longer axis; and over three, which are smoother.
_MAX_PRODUCTS = ((20, 160), (40, 256), (np.inf, 400))
_MAX_TRIPLE_PRODUCTS = 96


class Features(Protocol):
    """Features of one tensor in one band, as functions of network inputs."""

    @property
    def n_features(self) -> int:
        """Their number."""

    def __call__(self, inputs: Array) -> Array:
        """The features at some inputs."""


@dataclass(frozen=True)
class Band:
    """Features of one scale: those of the biases and of the output weights."""

    bias: Features
    output: Features


@dataclass(frozen=True)
class _Splines:
    """Tabulated features of a line; beyond their table they are straight."""

    spline: CubicSpline

    @property
    def n_features(self) -> int:
        return int(self.spline.c.shape[-1])

    def __call__(self, inputs: Array) -> Array:
        inside = np.clip(inputs, -_END, _END)
        values = self.spline(inside)
        beyond = np.flatnonzero(inside != inputs)
        if len(beyond):
            values[beyond] += (inputs - inside)[beyond, None] * self.spline(inside[beyond], 1)
        return np.asarray(values)


@lru_cache(maxsize=64)
def _band(activation: str, scale: float, resolution: int) -> Band:
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
    return Band(
        _Splines(CubicSpline(grid, _leading(of_bias, _SMALLEST))),
        _Splines(CubicSpline(grid, _leading(of_output, _SMALLEST_OUTPUT))),
    )


@dataclass(frozen=True)
class _Harmonics:
    """Cosines and sines of multiples of an angle, from the first on, with these amplitudes."""

    amplitudes: Array

    @property
    def n_features(self) -> int:
        return 2 * len(self.amplitudes)

    def __call__(self, inputs: Array) -> Array:
        angles = np.multiply.outer(inputs, np.arange(1.0, len(self.amplitudes) + 1.0))
        waves = np.stack([np.cos(angles), np.sin(angles)], axis=-1) * self.amplitudes[:, None]
        return np.asarray(waves.reshape(len(inputs), -1))


@lru_cache(maxsize=64)
def _circle(activation: str, scale: float, resolution: int) -> Band:
    """Features of a circle, whose position is a unit vector ``v`` in place of a number.

    A unit is ``act(a (sqrt(2) v'd - c))`` of a direction ``d``, uniform on the circle; coordinates of
    ``sqrt(2) v`` are standardised as other inputs are. Its kernel depends on the difference of two angles
    only, so its eigenfunctions are the harmonics, and their variances those of a unit's Fourier series.
    """
    radius, n_angles = math.sqrt(2.0), 4 * _MAX_HARMONICS
    angles = np.arange(n_angles) * (2.0 * np.pi / n_angles)
    n_kinks = resolution * max(math.ceil(2.0 * radius * scale / _KINK_STEP), 64)
    kinks = radius * ((2.0 * np.arange(n_kinks) + 1.0) / n_kinks - 1.0)
    nodes, weights = np.polynomial.legendre.leggauss(_SLOPES * resolution)
    slopes, weights = 0.5 * scale * (nodes + 1.0), np.tile(weights, n_kinks)
    reach = ((radius * np.cos(angles)[:, None] - kinks)[:, :, None] * slopes).reshape(n_angles, -1)
    variances = np.zeros((2, _MAX_HARMONICS))
    for sign in (1.0, -1.0):
        for k, unit in enumerate(ACTIVATIONS[activation](sign * reach)):
            series = np.fft.rfft(unit, axis=0).real[1 : _MAX_HARMONICS + 1] / n_angles
            variances[k] += 2.0 * (np.square(series) @ weights)
    of_output, of_bias = variances
    return Band(
        _Harmonics(_amplitudes(of_bias, _SMALLEST)),
        _Harmonics(_amplitudes(of_output, _SMALLEST_OUTPUT)),
    )


def _amplitudes(variances: Array, smallest: float) -> Array:
    """The amplitudes of harmonics up to the last one that is not negligible."""
    kept = np.flatnonzero(variances > smallest * variances.max())
    return np.sqrt(variances[: kept[-1] + 1])


def _leading(kernel: Array, smallest: float) -> Array:
    """A factor of a kernel without its negligible directions, the largest first."""
    size, vectors = np.linalg.eigh(kernel)
    kept = np.flatnonzero(size > smallest * size[-1])[::-1]
    return np.asarray(vectors[:, kept] * np.sqrt(size[kept]))


def counts(axes: Sequence[Knots], architecture: Architecture) -> list[int]:
    """The number of features of each group of one column, or of several's products."""
    if len(axes) > 1:
        return product_counts(axes, architecture)
    (knots,) = axes
    if knots.course == LINEAR:
        return [1]
    of_bias = [_n_features(knots, band.bias) for band in _bands(knots, architecture)]
    of_output = [_n_features(knots, band.output) for band in _bands(knots, architecture)]
    return [*of_bias, *of_output] if knots.cyclic else [*of_bias, *of_bias, *of_output]


def tangent_features(axes: Sequence[Knots], architecture: Architecture) -> list[Array]:
    """The features of each group at the knots of one column, or on the grid of several's.

    Of one column a group is a tensor in a band, in the order of a finite network's. A straight line is one
    feature; on a circle the first layer's weights have no features of their own.
    """
    if len(axes) > 1:
        return product_features(axes, architecture)
    (knots,) = axes
    if knots.course == LINEAR:
        return [knots.inputs[:, None]]
    bands = _bands(knots, architecture)
    biases = [_reduced(_at(knots, band.bias), knots) for band in bands]
    outputs = [_reduced(_at(knots, band.output), knots) for band in bands]
    weights = [] if knots.cyclic else [knots.inputs[:, None] * bias for bias in biases]
    return [*weights, *biases, *outputs]


def product_counts(axes: Sequence[Knots], architecture: Architecture) -> list[int]:
    """The number of products of each band."""
    return [
        min(math.prod(sizes), _max_products([len(knots.points) for knots in axes]))
        for sizes in zip(*(_n_factors(knots, architecture) for knots in axes), strict=True)
    ]


def product_features(axes: Sequence[Knots], architecture: Architecture) -> list[Array]:
    """The largest products of the columns' features in each band, on the grid of their knots.

    These are the biases' features, which bend more freely than those of the output weights: with them the
    evidence is higher. They have no constants, whose products with others would not be pure.
    """
    factors = zip(*(_factors(knots, architecture) for knots in axes), strict=True)
    return [_largest_products(of_band) for of_band in factors]


def _factors(knots: Knots, architecture: Architecture) -> list[Array]:
    """A column's factor of the products of each band."""
    if knots.course == LINEAR:
        return [knots.inputs[:, None]] * len(architecture.scales)
    return [_principal(_at(knots, band.bias), knots) for band in _bands(knots, architecture)]


def _n_factors(knots: Knots, architecture: Architecture) -> list[int]:
    if knots.course == LINEAR:
        return [1] * len(architecture.scales)
    return [_n_features(knots, band.bias) for band in _bands(knots, architecture)]


def _n_features(knots: Knots, features: Features) -> int:
    """No more features than distinct points: both ends of a period are the same."""
    return min(features.n_features, len(knots.points) - knots.cyclic)


def _at(knots: Knots, features: Features) -> Array:
    """Features at a column's knots."""
    return features(knots.inputs)


def _bands(knots: Knots, architecture: Architecture) -> Sequence[Band]:
    make = _circle if knots.cyclic else _band
    return [make(architecture.activation, float(s), RESOLUTION) for s in architecture.scales]


def _max_products(n_points: Sequence[int]) -> int:
    """The largest number of products of a band's features on a grid of these numbers of knots."""
    if len(n_points) > 2:
        return _MAX_TRIPLE_PRODUCTS
    return next(most for limit, most in _MAX_PRODUCTS if max(n_points) <= limit)


def _largest_products(factors: Sequence[Array]) -> Array:
    """Products of one feature of every column, the largest first."""
    values, sizes = np.ones((1, 1)), np.ones(1)
    most = _max_products(list(map(len, factors)))
    for factor in factors:
        values = np.einsum("ip,jq->ijpq", values, factor).reshape(len(values) * len(factor), -1)
        sizes = np.multiply.outer(sizes, np.linalg.norm(factor, axis=0)).ravel()
        kept = np.argsort(-sizes, kind="stable")[:most]
        values, sizes = values[:, kept], sizes[kept]
    return values


def _principal(features: Array, knots: Knots) -> Array:
    """The principal components of features without their means, the largest first."""
    distinct = _distinct(features, knots)
    vectors, sizes, _ = np.linalg.svd(distinct - distinct.mean(axis=0), full_matrices=False)
    return _closed(np.asarray(vectors * sizes), knots)


def _reduced(features: Array, knots: Knots) -> Array:
    """The same kernel in no more features than points."""
    distinct = _distinct(features, knots)
    n_points, n_features = distinct.shape
    if n_features > n_points:
        distinct = np.asarray(np.linalg.qr(distinct.T, mode="r")).T
    return _closed(distinct, knots)


def _distinct(features: Array, knots: Knots) -> Array:
    """Features at distinct points: without the end of a period."""
    return features[:-1] if knots.cyclic else features


def _closed(features: Array, knots: Knots) -> Array:
    """Features at all knots: at the end of a period those of its beginning, to the bit."""
    return np.concatenate([features, features[:1]]) if knots.cyclic else features
