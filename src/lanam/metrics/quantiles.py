"""Calibration of predicted distributions: where in them the observations lie."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from lanam.core.arrays import Array
from lanam.explain import require_coverage
from lanam.metrics.checks import (
    ROUNDING,
    Weights,
    read_count,
    read_gaussian,
    read_probability,
    read_weights,
)
from lanam.metrics.curves import CalibrationCurve, by_chance

#: Calibrated models that are drawn to compare with.
_N_DRAWS = 4000


def gaussian_pit(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Predicted probability of less than y under N(mean, std^2): uniform if the model is calibrated.

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
    """Sum over levels of the squared distance between nominal and observed level (Kuleshov 2018).

    ``sum_j (p_j - share of rows with pit <= p_j)^2`` over ``p_j = j / (n_levels + 1)``: by default over
    the nine deciles, with a weight of one each, so that the levels 0 and 1, where nothing can differ,
    may be counted or not. A sum, as there and in the paper's tables: figures with
    another number of levels do not compare. Of n rows a calibrated model gets
    ``sum_j p_j (1 - p_j) / n`` on average, 1.65 / n by default.

    Parameters
    ----------
    pit : array-like of shape (n,)
        Predicted probability of at most y: the predicted distribution function at y.
    n_levels : int, default=9
        How many levels.
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


def quantile_error_by_chance(n_rows: float, n_levels: int = 9, share: float = 0.95) -> float:
    """What the quantile calibration error of a calibrated model stays below, with probability ``share``.

    Where observations lie in its predictions is even: between two levels are as many as chance says.
    Counts, whose shares vary less, stay below more often.

    Examples
    --------
    >>> round(quantile_error_by_chance(100), 3), round(quantile_error_by_chance(400), 3)
    (0.044, 0.012)
    """
    count = max(round(n_rows), 1)
    even = np.full(n_levels + 1, 1.0 / (n_levels + 1))
    between = np.random.default_rng(0).multinomial(count, even, size=_N_DRAWS)
    apart = np.cumsum(between / count - even, axis=1)
    return float(np.quantile(np.square(apart[:, :-1]).sum(axis=1), share))


def quantile_calibration_curve(
    pit: ArrayLike,
    n_levels: int = 9,
    *,
    below: ArrayLike | None = None,
    coverage: float = 0.95,
    sample_weight: Weights = None,
) -> CalibrationCurve:
    """Share of observations below the predicted quantiles, against the quantiles' levels.

    Parameters
    ----------
    pit : array-like of shape (n,)
        Predicted probability of at most y: the predicted distribution function at y.
    n_levels : int, default=9
        How many levels: ``1 / (n_levels + 1)`` and its multiples.
    below : array-like of shape (n,), default=None
        For counts, the predicted probability of less than y. A row then lies evenly between both, as in
        the histograms of Czado, Gneiting and Held (2009); without it a calibrated model of counts
        would look as if it were not.
    coverage : float, default=0.95
        Of the limits within which chance keeps the shares of a calibrated model; of counts, whose
        shares vary less, at least.
    sample_weight : array-like of shape (n,), default=None
        How often each row counts.

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
    upto = read_probability(pit, name="pit")
    n_levels = read_count("n_levels", n_levels)
    coverage = require_coverage(coverage)
    weight = read_weights(sample_weight, len(upto))
    levels = np.arange(1, n_levels + 1) / (n_levels + 1)
    if below is None:
        shares = [upto <= level for level in levels]
    else:
        under = read_probability(below, len(upto), name="below")
        if (under > upto + ROUNDING).any():
            row = int(np.argmax(under - upto))
            raise ValueError(f"below must not be more than pit, and is in row {row}")
        # A row without width, or with one of rounding only, is on one side or the other.
        width = np.maximum(upto - under, np.finfo(np.float64).tiny)
        shares = [np.clip((level - under) / width, 0.0, 1.0) for level in levels]
    observed = np.array([np.average(share, weights=weight) for share in shares])
    lower, upper = by_chance(levels, weight.sum(), coverage)
    return CalibrationCurve(
        kind="quantiles",
        expected=levels,
        observed=observed,
        lower=lower,
        upper=upper,
        share=np.diff(observed, prepend=0.0),
        error=float(((observed - levels) ** 2).sum()),
        coverage=coverage,
        n_rows=len(upto),
    )
