"""Scores of predicted numbers and distributions: densities, errors, intervals, calibration of quantiles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from lanam.core.arrays import Array
from lanam.core.model.mixtures import gaussian_log_density
from lanam.errors import numbered
from lanam.explain import require_coverage
from lanam.metrics.checks import (
    ROUNDING,
    Weights,
    read_count,
    read_ends,
    read_gaussian,
    read_probability,
    read_vector,
    read_weights,
    weighted_mean,
)
from lanam.metrics.curves import CalibrationCurve, calibrated_range

#: Simulated data sets of a calibrated model.
_N_DRAWS = 4000


def gaussian_nll(
    y: ArrayLike, mean: ArrayLike, std: ArrayLike, *, sample_weight: Weights = None
) -> float:
    """Mean negative log density of y under N(mean, std^2), in nats.

    Examples
    --------
    >>> round(gaussian_nll([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]), 3)
    1.169
    """
    target, mean, std = read_gaussian(y, mean, std)
    return -weighted_mean(gaussian_log_density(target, mean, std**2), sample_weight)


def rmse(y: ArrayLike, mean: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Root mean squared error.

    Examples
    --------
    >>> rmse([0.0, 3.0], [0.0, -1.0], sample_weight=[3, 1])
    2.0
    """
    target = read_vector("y", y)
    errors = target - read_vector("mean", mean, len(target))
    return math.sqrt(weighted_mean(errors**2, sample_weight))


def crps_gaussian(
    y: ArrayLike, mean: ArrayLike, std: ArrayLike, *, sample_weight: Weights = None
) -> float:
    """Mean continuous ranked probability score of N(mean, std^2), in the unit of y; lower is better.

    The integral of ``(F(t) - 1{y <= t})^2`` over t, in closed form (Gneiting and Raftery 2007). It
    generalises the absolute error, to which it reduces for a point forecast.

    Examples
    --------
    >>> round(crps_gaussian([0.0], [0.0], [1.0]), 4)
    0.2337
    """
    target, mean, std = read_gaussian(y, mean, std)
    z = (target - mean) / std
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    scores = std * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / math.sqrt(math.pi))
    return weighted_mean(scores, sample_weight)


def crps_sample(y: ArrayLike, draws: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Mean continuous ranked probability score of forecasts given as draws (n_draws, n).

    The score of the empirical distribution: ``E|X - y| - E|X - X'| / 2`` with X and X' any of the draws.
    Draws must include the noise; those of :meth:`lanam.LANAMRegressor.sample` are of the mean.

    Examples
    --------
    >>> crps_sample([0.0], [[-1.0], [1.0]])
    0.5
    """
    target = read_vector("y", y)
    table = np.asarray(draws, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(target) or not len(table):
        raise ValueError(
            f"draws must have a column for each of the {len(target)} rows of y, as (n_draws, n), and "
            f"have the shape {table.shape}"
        )
    if not np.isfinite(table).all():
        raise ValueError("draws have values that are not finite numbers")
    table = np.sort(table, axis=0)
    n_draws = len(table)
    # E|X - X'| of sorted draws is a weighted sum: draw k is above k - 1 others and below n - k.
    sign = 2.0 * np.arange(1, n_draws + 1) - n_draws - 1.0
    spread = sign @ table / n_draws**2
    return weighted_mean(np.abs(table - target).mean(axis=0) - spread, sample_weight)


def interval_coverage(
    y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, sample_weight: Weights = None
) -> float:
    """Fraction of y inside [lower, upper], ends included.

    Examples
    --------
    >>> interval_coverage([1.0, 2.0, 3.0, 4.0], 1.0, 3.0)
    0.75
    """
    target = read_vector("y", y)
    lower, upper = read_ends(lower, upper, len(target))
    return weighted_mean((lower <= target) & (target <= upper), sample_weight)


def interval_width(lower: ArrayLike, upper: ArrayLike, *, sample_weight: Weights = None) -> float:
    """Mean width of intervals.

    Examples
    --------
    >>> interval_width([0.0, 0.0], [1.0, 3.0])
    2.0
    """
    lower, upper = read_ends(lower, upper)
    return weighted_mean(upper - lower, sample_weight)


def gaussian_pit(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Probability integral transform of y under N(mean, std^2): uniform if the model is calibrated.

    Examples
    --------
    >>> gaussian_pit([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]).round(3)
    array([0.5  , 0.841])
    """
    target, mean, std = read_gaussian(y, mean, std)
    return np.asarray(ndtr((target - mean) / std))


def quantile_calibration_error(
    pit: ArrayLike,
    n_levels: int = 9,
    *,
    below: ArrayLike | None = None,
    sample_weight: Weights = None,
) -> float:
    """Sum over levels of the squared difference of nominal and observed level (Kuleshov 2018).

    ``sum_j (p_j - fraction of rows with pit <= p_j)^2`` over ``p_j = j / (n_levels + 1)``, by default the
    nine deciles. As in the paper's tables this is a sum, so figures with another number of levels do not
    compare. Under calibration its expectation is ``sum_j p_j (1 - p_j) / n``, by default 1.65 / n.

    Parameters
    ----------
    pit : array-like of shape (n,)
        Predicted distribution function at y.
    n_levels : int, default=9
        Number of levels.
    below : array-like of shape (n,), default=None
        For counts, the predicted probability of less than y; see :func:`quantile_calibration_curve`.
    sample_weight : array-like of shape (n,), default=None

    Examples
    --------
    >>> import numpy as np
    >>> round(quantile_calibration_error((np.arange(100) + 0.5) / 100), 6)
    0.0
    >>> round(
    ...     quantile_calibration_error(np.full(100, 0.5)), 2
    ... )  # 0.1^2 + ... + 0.4^2, twice, + 0.5^2
    0.85
    """
    return quantile_calibration_curve(pit, n_levels, below=below, sample_weight=sample_weight).error


def quantile_error_limit(n_rows: float, n_levels: int = 9, probability: float = 0.95) -> float:
    """Quantile of the quantile calibration error under calibration, by default its 95th percentile.

    The PIT of a calibrated model is uniform, so that the counts between levels are multinomial. Counts'
    randomised PIT varies less, and the limit is conservative for them.

    Examples
    --------
    >>> round(quantile_error_limit(100), 3), round(quantile_error_limit(400), 3)
    (0.044, 0.012)
    """
    count = max(round(n_rows), 1)
    even = np.full(n_levels + 1, 1.0 / (n_levels + 1))
    between = np.random.default_rng(0).multinomial(count, even, size=_N_DRAWS)
    apart = np.cumsum(between / count - even, axis=1)
    return float(np.quantile(np.square(apart[:, :-1]).sum(axis=1), probability))


def quantile_calibration_curve(
    pit: ArrayLike,
    n_levels: int = 9,
    *,
    below: ArrayLike | None = None,
    coverage: float = 0.95,
    sample_weight: Weights = None,
) -> CalibrationCurve:
    """Fraction of observations below the predicted quantiles, by the quantiles' levels.

    Parameters
    ----------
    pit : array-like of shape (n,)
        Predicted distribution function at y.
    n_levels : int, default=9
        Number of levels: the multiples of ``1 / (n_levels + 1)``.
    below : array-like of shape (n,), default=None
        For counts, the predicted probability of less than y: the PIT is then uniform between both, as in
        the non-randomised histograms of Czado, Gneiting and Held (2009). Without it a calibrated model of
        counts would appear miscalibrated.
    coverage : float, default=0.95
        Of the range under calibration; conservative for counts.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights.

    Returns
    -------
    curve : CalibrationCurve
        Its ``error`` is the quantile calibration error at these levels.

    Examples
    --------
    >>> curve = quantile_calibration_curve([0.05, 0.3, 0.6, 0.9], n_levels=3)
    >>> curve.expected, curve.observed
    (array([0.25, 0.5 , 0.75]), array([0.25, 0.5 , 0.75]))
    """
    pit = read_probability("pit", pit)
    n_levels = read_count("n_levels", n_levels)
    coverage = require_coverage(coverage)
    weight = read_weights(sample_weight, len(pit))
    levels = np.arange(1, n_levels + 1) / (n_levels + 1)
    if below is None:
        fractions = [pit <= level for level in levels]
    else:
        below = read_probability("below", below, len(pit))
        if (below > pit + ROUNDING).any():
            row = int(np.argmax(below - pit))
            raise ValueError(f"below must not be more than pit, and is in row {numbered(row)}")
        # A row whose interval has no width, but for rounding, is on one side or the other.
        width = np.maximum(pit - below, np.finfo(np.float64).tiny)
        fractions = [np.clip((level - below) / width, 0.0, 1.0) for level in levels]
    observed = np.array([np.average(fraction, weights=weight) for fraction in fractions])
    lower, upper = calibrated_range(levels, weight.sum(), coverage)
    return CalibrationCurve(
        kind="quantiles",
        expected=levels,
        observed=observed,
        lower=lower,
        upper=upper,
        share=np.diff(observed, prepend=0.0),
        error=float(((observed - levels) ** 2).sum()),
        coverage=coverage,
        n_rows=len(pit),
    )
