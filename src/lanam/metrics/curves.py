"""CalibrationCurve: what was said against what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from lanam.core.arrays import Array
from lanam.data import make_frame
from lanam.explain.values import PlainData


@dataclass(frozen=True, eq=False)
class CalibrationCurve(PlainData):
    """What a model said, against what was seen: of a calibrated one, the diagonal.

    Attributes
    ----------
    kind
        ``"reliability"`` (probabilities in bins) or ``"quantiles"`` (levels of predicted quantiles).
    expected
        Mean predicted probability in each bin, or each nominal level.
    observed
        Share of ones in each bin, or share of the observations below the quantile.
    lower, upper
        Between which ``observed`` lies with probability ``coverage`` if the model is calibrated:
        binomial quantiles around ``expected`` for as many rows.
    share
        Share of the rows in each bin, or between the level before (0 before the first) and this one.
    error
        The curve's calibration error: expected calibration error or quantile calibration error.
    coverage
        Of ``lower`` and ``upper``.
    n_rows
        How many rows there were.

    Examples
    --------
    >>> from lanam.metrics import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 1], [0.1, 0.3, 0.8, 0.8], n_bins=2)
    >>> curve.expected, curve.observed, round(curve.error, 3)
    (array([0.2, 0.8]), array([0., 1.]), 0.2)
    """

    kind: str
    expected: Array
    observed: Array
    lower: Array
    upper: Array
    share: Array
    error: float
    coverage: float
    n_rows: int

    def to_frame(self, backend: str | None = None) -> Any:
        """One row for each bin or level, as a frame of ``backend`` ("pandas", "polars", "pyarrow")."""
        names = ("expected", "observed", "lower", "upper", "share")
        return make_frame({name: getattr(self, name) for name in names}, backend)


def by_chance(probability: ArrayLike, n_rows: ArrayLike, coverage: float) -> tuple[Array, Array]:
    """Between which shares chance keeps so many rows, each of which is so with this probability.

    Examples
    --------
    >>> by_chance(0.5, 100, 0.95)
    (array(0.4), array(0.6))
    """
    n_rows = np.maximum(np.rint(n_rows), 1.0)  # weights need not be whole
    tail = 0.5 - 0.5 * coverage
    share = np.clip(probability, 0.0, 1.0)
    ends = (binom.ppf(tail, n_rows, share) / n_rows, binom.ppf(1.0 - tail, n_rows, share) / n_rows)
    return np.asarray(ends[0]), np.asarray(ends[1])


def probability_of(share: float, probability: float, n_rows: float) -> float:
    """How probable it is, by chance, that a share of so many rows is as far off as this, on either side.

    Examples
    --------
    >>> round(probability_of(0.4, 0.5, 100), 3), probability_of(0.5, 0.5, 100)
    (0.057, 1.0)
    """
    count, expected = max(round(n_rows), 1), min(max(probability, 0.0), 1.0)
    seen = round(share * count)
    tails = binom.cdf(seen, count, expected), binom.sf(seen - 1, count, expected)
    return float(min(2.0 * min(tails), 1.0))
