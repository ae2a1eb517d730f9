"""Squared kernel calibration error of Gaussian predictions (Widmann, Lindsten and Zachariah 2022).

A model is calibrated if y, given its prediction P, has the distribution P. The kernel mean embedding of
the difference tests this for all predictions at once, without bins. With a kernel ``k(P, P') l(y, y')``
on predictions and targets, its squared norm is the mean over pairs of independent rows of

    h = k(P, P') (l(y, y') - E l(Z, y') - E l(y, Z') + E l(Z, Z')),   Z ~ P, Z' ~ P'.

Here ``k = exp(-W(P, P') / bandwidth)`` with the 2-Wasserstein distance of Gaussians,
``W^2 = (m - m')^2 + (s - s')^2``, and ``l`` is a Gaussian, whose expectations are Gaussians again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist

from lanam.core.arrays import Array
from lanam.metrics.checks import Weights, read_count, read_gaussian, read_weights

#: Pairs of rows per chunk.
_CHUNK_PAIRS = 1 << 15

#: Subsample for the median distances.
_MOST_ROWS = 1000

#: Simulated data sets of a calibrated model, their rows, and resampled means over blocks.
_N_DRAWS = 200
_DRAWN_ROWS = 100
_N_MEANS = 2000


def skce(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    biased: bool = False,
    prediction_bandwidth: float | None = None,
    target_bandwidth: float | None = None,
    block_size: int | None = None,
    sample_weight: Weights = None,
) -> float:
    """Squared kernel calibration error of predictions N(mean, std^2): zero if they are calibrated.

    The unbiased estimate can be negative. Time is quadratic in the number of rows, memory is bounded:
    10,000 rows take some seconds; for more use blocks.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observations.
    mean, std : array-like of shape (n,)
        Predictions, noise included.
    biased : bool, default=False
        Whether to include the pairs of a row with itself: the V-statistic, which is never negative.
    prediction_bandwidth : float, default=None
        Length scale of the kernel on predictions; by default the median distance between two rows.
    target_bandwidth : float, default=None
        Standard deviation of the Gaussian kernel on y; by default the median distance between two rows.
    block_size : int, default=None
        Only compare pairs within blocks of this many consecutive rows: still unbiased, and linear in n.
        All pairs by default.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights. They do not enter the default bandwidths.

    Returns
    -------
    error : float
        Between about 0 and 1, without a unit; comparable for equal bandwidths only.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=500)
    >>> y = mean + rng.normal(size=500)
    >>> bool(abs(skce(y, mean, 1.0)) < 0.001)
    True
    >>> bool(skce(y, mean, 3.0) > 0.01)
    True
    """
    target, centre, spread = read_gaussian(y, mean, std)
    weight = read_weights(sample_weight, len(target))
    for name, bandwidth in (("prediction", prediction_bandwidth), ("target", target_bandwidth)):
        if bandwidth is not None and not 0.0 < bandwidth < np.inf:
            raise ValueError(f"{name}_bandwidth={bandwidth!r} must be positive")
    near = float(prediction_bandwidth or _median_distance(centre, spread))
    alike = float(target_bandwidth or _median_distance(target))
    rows = np.column_stack([target, centre, spread, weight])[weight > 0.0]
    n_blocks = 1
    if block_size is not None:
        n_blocks = -(-len(rows) // read_count("block_size", block_size, least=2))
    total = pairs = 0.0
    for block in np.array_split(rows, n_blocks):
        size = block[:, 3].sum()
        # A row of weight w stands for w rows: w^2 pairs, w of them of a row with itself.
        total += _pair_sum(block, near, alike)
        pairs += size**2
        if not biased:
            itself = _terms(block.T, block.T, near, alike)
            total -= float(block[:, 3] @ itself)
            pairs -= size
    if pairs <= 0.0:
        raise ValueError(
            "the unbiased estimate needs pairs of rows, and the weights sum to one or less: pass at least "
            "two rows, or biased=True"
        )
    return float(total / pairs)


def skce_limit(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    block_size: int | None = None,
    sample_weight: Weights = None,
    probability: float = 0.95,
) -> float:
    """Quantile of the unbiased estimate under calibration, by default its 95th percentile.

    Targets are simulated from the predictions of 100 rows that are evenly spread over all, and the
    estimates scaled to the number of rows.
    """
    target, centre, spread = read_gaussian(y, mean, std)
    weight = read_weights(sample_weight, len(target))
    near, alike = _median_distance(centre, spread), _median_distance(target)
    total = weight.sum()
    order = np.lexsort((spread, centre))
    count = max(int(min(_DRAWN_ROWS, total)), 2)
    reached = (np.arange(count) + 0.5) / count * total
    drawn = order[np.minimum(np.searchsorted(np.cumsum(weight[order]), reached), len(order) - 1)]
    first, second = np.triu_indices(count, 1)
    rng = np.random.default_rng(0)
    errors = np.empty(_N_DRAWS)
    rows = np.stack([np.empty(count), centre[drawn], spread[drawn]])
    for k in range(_N_DRAWS):
        rows[0] = rows[1] + rows[2] * rng.standard_normal(count)
        errors[k] = _terms(rows[:, first], rows[:, second], near, alike).mean()
    n_blocks = 1 if block_size is None else -(-len(target) // block_size)
    if n_blocks > 1:
        errors = rng.choice(errors, (_N_MEANS, n_blocks)).mean(axis=1)
    size = max(total / n_blocks, 2.0)
    scale = np.sqrt(count * (count - 1.0) / (size * (size - 1.0)))
    return float(scale * np.quantile(errors, probability))


def _pair_sum(block: Array, near: float, alike: float) -> float:
    """Weighted sum of the terms over all pairs of rows, including each row with itself."""
    total = 0.0
    n_rows = max(_CHUNK_PAIRS // len(block), 1)
    for start in range(0, len(block), n_rows):
        some, rest = block[start : start + n_rows], block[start:]
        terms = _terms(some.T[:, :, None], rest.T[:, None, :], near, alike)
        # Terms are symmetric: pairs with later rows count twice.
        twice = np.where(np.arange(len(rest)) < len(some), 1.0, 2.0)
        total += float(some[:, 3] @ terms @ (twice * rest[:, 3]))
    return total


def _terms(first: Array, second: Array, near: float, alike: float) -> Array:
    """The function h of pairs of rows; the first columns are y, mean and standard deviation."""
    y, mean, std = first[:3]
    other_y, other_mean, other_std = second[:3]
    distance = np.hypot(mean - other_mean, std - other_std)
    variance, other_variance = std**2, other_std**2
    surplus = (
        _mean_kernel(y - other_y, 0.0, alike)
        - _mean_kernel(mean - other_y, variance, alike)
        - _mean_kernel(y - other_mean, other_variance, alike)
        + _mean_kernel(mean - other_mean, variance + other_variance, alike)
    )
    return np.asarray(np.exp(-distance / near) * surplus)


def _mean_kernel(distance: Array, variance: Array | float, bandwidth: float) -> Array:
    """Mean of ``exp(-d^2 / (2 b^2))`` over a Gaussian difference d."""
    wider = bandwidth**2 + variance
    return np.asarray(np.exp(-0.5 * distance**2 / wider) * (bandwidth / np.sqrt(wider)))


def _median_distance(*columns: Array) -> float:
    """The median distance between two rows."""
    rows = np.column_stack(columns)
    # An evenly spread subsample that does not depend on the order of the rows.
    rows = rows[np.lexsort(rows.T)]
    count = min(len(rows), _MOST_ROWS)
    rows = rows[np.linspace(0, len(rows) - 1, count).astype(np.intp)]
    distances = pdist(rows)
    if not distances.size:
        return 1.0
    # With many ties the median distance is zero; if all rows are equal any bandwidth will do.
    return float(np.median(distances)) or float(distances.mean()) or 1.0
