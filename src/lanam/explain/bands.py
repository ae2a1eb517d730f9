"""Means and standard deviations to bands: at single points, and for a whole curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from lanam.core.arrays import Array, Intercept

#: A place is as good as certain where its standard deviation is this share of the function's largest.
_CERTAIN = 1e-6

#: Largest deviations are given to so many decimals.
_DECIMALS = 4


def require_coverage(coverage: float) -> float:
    """Refuse a coverage that is not between 0 and 1."""
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage={coverage!r} must lie between 0 and 1, for example 0.95")
    return float(coverage)


def half_width(coverage: float) -> float:
    """How many standard deviations a normal variable stays within with this probability.

    Examples
    --------
    >>> round(half_width(0.95), 2)
    1.96
    """
    return float(ndtri(0.5 + 0.5 * require_coverage(coverage)))


def ascending(largest_deviations: Array) -> Array:
    """Draws of a function's largest deviation as explanations keep them: in order, for each class."""
    return np.sort(largest_deviations, axis=0).round(_DECIMALS)


def simultaneous_half_width(coverage: float, largest_deviations: Array) -> Intercept:
    """How many standard deviations a whole function stays within with this probability.

    Parameters
    ----------
    coverage
        The probability.
    largest_deviations
        Draws of how many standard deviations the function is away from its mean where it is farthest;
        with a last axis of classes, where there are several.

    Returns
    -------
    float or ndarray of shape (n_classes,)
        Never less than for a single point, which is part of the whole; draws alone could say so by
        chance.
    """
    single = half_width(coverage)
    if not len(largest_deviations):  # a function that is zero for sure
        return single
    found: Intercept = np.maximum(np.quantile(largest_deviations, coverage, axis=0), single)
    return found


def uncertain(std: Array) -> NDArray[np.bool_]:
    """Where a function (B,) or (B, C) deviates at all: what rounding leaves elsewhere is no deviation."""
    return np.asarray(std > _CERTAIN * std.max(axis=0))


def around(mean: Any, std: Any, half: Any) -> tuple[Any, Any]:
    """So many standard deviations below the mean, and above it."""
    return mean - half * std, mean + half * std


def intervals(mean: Array, std: Array, coverage: float) -> Array:
    """Lower and upper ends of single numbers, as one more, last axis."""
    return np.stack(around(mean, std, half_width(coverage)), axis=-1)


class Banded:
    """A function with its uncertainty where it is tabulated, as far as bands go."""

    mean: Array
    std: Array
    largest_deviations: Array

    def half_width(self, coverage: float = 0.95, simultaneous: bool = False) -> Intercept:
        """How many standard deviations a band reaches to either side of the mean.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability of the band.
        simultaneous : bool, default=False
            Whether the whole function lies in the band with this probability, or at each place by
            itself.

        Returns
        -------
        half_width : float
            If it is simultaneous and there are more than two classes, (n_classes,).
        """
        if simultaneous:
            return simultaneous_half_width(coverage, self.largest_deviations)
        return half_width(coverage)

    def band(self, coverage: float = 0.95, simultaneous: bool = False) -> tuple[Array, Array]:
        """Where the function lies, with some posterior probability.

        Parameters
        ----------
        coverage : float, default=0.95
            The probability.
        simultaneous : bool, default=False
            False: at each place by itself the function lies in the band with this probability. True: it
            does so everywhere at once, wherever it is ``inside``, and for missing values, if the
            training data had any; for a statement about the whole curve, such as "it rises", this is
            the one to look at. Of more than two classes each has a band for its own function.

        Returns
        -------
        lower, upper : ndarray
            In the shape of ``mean``.
        """
        return around(self.mean, self.std, self.half_width(coverage, simultaneous))
