"""Credible bands from means and standard deviations: pointwise, and for a whole function."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from lanam.core.arrays import Array, Intercept

#: A function is certain where its standard deviation is below this fraction of the largest one.
_CERTAIN = 1e-6

#: Decimals of the largest deviations.
_DECIMALS = 4


def require_coverage(coverage: float) -> float:
    """Refuse a coverage that is not between 0 and 1."""
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage={coverage!r} must lie between 0 and 1, for example 0.95")
    return float(coverage)


def half_width(coverage: float) -> float:
    """Half-width of a normal interval with this coverage, in standard deviations.

    Examples
    --------
    >>> round(half_width(0.95), 2)
    1.96
    """
    return float(ndtri(0.5 + 0.5 * require_coverage(coverage)))


def ascending(largest_deviations: Array) -> Array:
    """Draws of a function's largest deviation, sorted (separately for each class) and rounded."""
    return np.sort(largest_deviations, axis=0).round(_DECIMALS)


def uncertain(std: Array) -> NDArray[np.bool_]:
    """Where a function (B,) or (B, C) has a standard deviation beyond rounding."""
    return np.asarray(std > _CERTAIN * std.max(axis=0))


def around(mean: Any, std: Any, half: Any) -> tuple[Any, Any]:
    """The ends of an interval of ``half`` standard deviations to either side of the mean."""
    return mean - half * std, mean + half * std


def intervals(mean: Array, std: Array, coverage: float) -> Array:
    """Lower and upper ends of pointwise intervals, as an additional last axis."""
    return np.stack(around(mean, std, half_width(coverage)), axis=-1)


class Banded:
    """A tabulated function with its posterior uncertainty."""

    mean: Array
    std: Array
    largest_deviations: Array

    def half_width(self, coverage: float = 0.95, simultaneous: bool = False) -> Intercept:
        """Half-width of a credible band, in standard deviations.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability of the band.
        simultaneous : bool, default=False
            Whether the band covers the whole function, or each value separately.

        Returns
        -------
        half_width : float
            For a simultaneous band with more than two classes, (n_classes,).
        """
        pointwise = half_width(coverage)
        if not simultaneous or not len(self.largest_deviations):
            return pointwise
        # A simultaneous band is never narrower; Monte Carlo error could make it so.
        whole: Intercept = np.quantile(self.largest_deviations, coverage, axis=0)
        return np.maximum(whole, pointwise)

    def band(self, coverage: float = 0.95, simultaneous: bool = False) -> tuple[Array, Array]:
        """Credible band of the function.

        Parameters
        ----------
        coverage : float, default=0.95
            Posterior probability.
        simultaneous : bool, default=False
            False: the band is pointwise. True: it contains the whole function with this probability,
            wherever it is ``inside``, and the effect of missing values if the training data had any. Use
            it for statements about the whole curve, such as "it is increasing". With more than two
            classes each class has its own band.

        Returns
        -------
        lower, upper : ndarray
            In the shape of ``mean``.
        """
        return around(self.mean, self.std, self.half_width(coverage, simultaneous))
