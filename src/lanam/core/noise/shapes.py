"""What shape noise has, learned from residuals: a mixture of Gaussians.

A mixture of all Gaussians of a lattice of means and widths comes near any distribution that is not too
sharp, and its likelihood has one maximum only, which EM finds from anywhere: nothing is chosen but
weights, and most of them go to zero (Kiefer and Wolfowitz's estimator on a lattice). The standard Gaussian
has the say of some rows more, and a shape must describe rows that it was not learned from better than
that.
"""

from __future__ import annotations

import math

import numpy as np

from lanam.core.arrays import Array
from lanam.core.model.mixtures import NoiseShape, standardised
from lanam.core.noise.held_out import LEAST_ROWS, WORTH, parts

#: The lattice, in standard deviations of the noise.
_MEANS = np.arange(-2.0, 2.01, 0.5)
_STDS = 2.0 ** np.arange(-2.0, 3.01)
#: Rows' worth of belief in a Gaussian.
_GAUSSIAN_ROWS = 10.0
_ITERATIONS = 1000
#: Residuals this near to each other are taken to be the same: a fraction of the smallest width.
_WIDTH = 1.0 / 64.0
#: Components that fewer rows than this speak for are none.
_LEAST_ROWS = 1.0


def learn_shape(residuals: Array, weight: Array) -> NoiseShape | None:
    """The shape that residuals ask for; None if it is a Gaussian's.

    Parameters
    ----------
    residuals
        In units of the noise's standard deviation in their row (n,), in an order that has nothing to do
        with them.
    weight
        How often every row counts (n,).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> learn_shape(rng.normal(size=500), np.ones(500)) is None
    True
    >>> shape = learn_shape(rng.exponential(size=500) - 1.0, np.ones(500))
    >>> bool(1.0 < shape.skewness < 3.0)
    True
    """
    if np.count_nonzero(residuals) < LEAST_ROWS or _gain(residuals, weight) <= WORTH:
        return None
    return _mixture(residuals, weight)


def _gain(residuals: Array, weight: Array) -> float:
    """By how much residuals are likelier by the shape of the others than by a Gaussian."""
    total = 0.0
    for own in parts(len(residuals)):
        # Of the same size for both: only the shape is in question.
        size = math.sqrt(np.average(np.square(residuals[~own]), weights=weight[~own]))
        shape = _mixture(residuals[~own], weight[~own])
        z = residuals[own] / size
        gain = np.log(_densities(z, shape.means, shape.stds) @ shape.weights) + 0.5 * z**2
        total += float(weight[own] @ gain)
    return total


def _mixture(residuals: Array, weight: Array) -> NoiseShape:
    """Weights of the lattice's Gaussians by EM, of which those remain that some row speaks for."""
    places, index = np.unique(np.round(residuals / _WIDTH), return_inverse=True)
    count = np.bincount(index, weights=weight)
    means, stds = (grid.ravel() for grid in np.meshgrid(_MEANS, _STDS))
    belief = np.where((means == 0.0) & (stds == 1.0), _GAUSSIAN_ROWS, 0.0)
    weights = np.full(len(means), 1.0 / len(means))
    density = _densities(places * _WIDTH, means, stds)
    for _ in range(_ITERATIONS):
        rows = weights * (density.T @ (count / (density @ weights))) + belief
        weights = rows / rows.sum()
    kept = weights * count.sum() > _LEAST_ROWS
    return standardised(weights[kept], means[kept], stds[kept])


def _densities(values: Array, means: Array, stds: Array) -> Array:
    """Densities of values under Gaussians (n, K), without the constant; none is quite zero."""
    distance = (values[:, None] - means) / stds
    return np.asarray(np.exp(-0.5 * np.square(distance)) / stds + 1e-300)
