"""Split conformal calibration: intervals and sets with guaranteed marginal coverage.

The conformity score of an observation is how far it lies in the tails of its predictive distribution: the
narrowest model interval that contains it. The scores of n held-out rows and of one exchangeable new row
have a uniformly distributed order. So the new score exceeds the ``ceil((n + 1) coverage)``-th smallest of
the n scores with probability at most ``1 - coverage``, for any model (Vovk et al. 2005; Lei et al. 2018).

Scores and intervals of numeric responses are in ``core.model.distributions``, those of classes here. Scores
and intervals must be inverse to each other up to rounding, so that calibration rows are covered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom

from lanam.core.arrays import Array, IntArray
from lanam.data import warn_user
from lanam.errors import InputError, InputWarning
from lanam.text import brief

#: Slack of class sets: scores computed twice may differ by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Conformity scores of held-out rows.

    Attributes
    ----------
    scores
        Ascending. For numeric responses in standard deviations of the prediction; for classes the total
        probability of more probable classes.
    weight
        The rows' sample weights.

    Examples
    --------
    >>> import numpy as np
    >>> calibration = calibrated_by(np.array([0.3, 2.5, 0.1, 1.2]), np.ones(4))
    >>> calibration.threshold(0.6), calibration.most_coverage
    (1.2, 0.8)
    >>> calibration.threshold(0.95)
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: coverage=0.95 needs 19 held-out rows, and calibrate had 4, ...
    """

    scores: Array
    weight: Array

    def __repr__(self) -> str:
        return brief(self)

    @property
    def n_rows(self) -> int:
        """The number of held-out rows."""
        return len(self.scores)

    @property
    def most_coverage(self) -> float:
        """The largest coverage that this number of rows can guarantee."""
        total = float(self.weight.sum())
        return total / (total + 1.0)

    def threshold(self, coverage: float) -> float:
        """The score that a new row exceeds with probability at most ``1 - coverage``.

        An error if there are too few rows for this coverage.
        """
        needed = self._needed(coverage)
        reached = np.cumsum(self.weight) >= needed
        if not reached.any():
            had = f"{self.n_rows}"
            if (self.weight != 1.0).any():
                had += f" whose weights sum to {self.weight.sum():g}"
            raise InputError(
                f"{{given}} needs {_rows_for(coverage)} held-out rows, and calibrate had {had}, which "
                f"allow up to {math.floor(1000 * self.most_coverage) / 1000:g}",
                "calibrate with more rows or lower the coverage{, or pass calibrated=False for the model's "
                "own}",
                argument="coverage",
                value=float(coverage),
            )
        return float(self.scores[np.argmax(reached)])

    def by_chance(self, coverage: float, n_rows: float, share: float) -> tuple[float, float]:
        """Range of the empirical coverage of ``n_rows`` new rows, with probability ``share``.

        The threshold is random: over calibration samples the coverage probability has a Beta distribution,
        so the number of covered rows has a Beta-binomial one. With tied scores, as of counts and classes,
        more rows may be covered.
        """
        rank = math.ceil(self._needed(coverage))
        above = max(float(self.weight.sum()) + 1.0 - rank, 1.0)
        n_rows = max(round(n_rows), 1)
        tail = 0.5 - 0.5 * share
        ends = betabinom.ppf([tail, 1.0 - tail], n_rows, max(rank, 1), above) / n_rows
        return float(ends[0]), float(ends[1])

    def _needed(self, coverage: float) -> float:
        """The total weight that must lie at or below the threshold."""
        needed = (float(self.weight.sum()) + 1.0) * coverage
        return needed * (1.0 - 1e-12)  # 0.7 * 10 may be more than 7

    def to_dict(self) -> dict[str, list[float]]:
        """The calibration as plain data, ready for JSON."""
        return {"scores": self.scores.tolist(), "weight": self.weight.tolist()}


def calibrated_by(scores: Array, weight: Array, group: Array | None = None) -> Calibration:
    """The calibration by rows with these scores and weights, without rows of zero weight.

    Rows of a ``group`` share a weight of one: groups are exchangeable, and a row of a new one is covered
    with at least the coverage (Lee, Barber and Willett 2023).
    """
    warn_of_weights(weight)
    if group is not None:
        _, number = np.unique(group, return_inverse=True)
        total = np.bincount(number, weights=weight)[number]
        weight = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0.0)
    kept = np.flatnonzero(weight > 0.0)
    order = kept[np.argsort(scores[kept], kind="stable")]
    return Calibration(scores[order], weight[order])


def warn_of_weights(weight: Array) -> None:
    """Warn of weights that are unlikely to be frequencies, on which the effective sample size depends."""
    positive = weight[weight > 0.0]
    total, n_rows = float(positive.sum()), len(positive)
    equal = float(positive[0]) != 1.0 and bool((positive == positive[0]).all())
    if equal or total < 0.5 * n_rows:
        use = f"is {positive[0]:g} for every row" if equal else "counts how often each row was seen"
        remedy = "leave it out" if equal else "pass counts, or weights with a mean of one"
        warn_user(
            InputWarning(
                f"{{argument}} {use}, and its sum of {total:g} makes {n_rows} rows count as {total:g}",
                f"{remedy}, unless that is intended",
                argument="sample_weight",
            )
        )


def _rows_for(coverage: float) -> int:
    """The fewest rows that allow this coverage: those with ``n >= (n + 1) coverage``."""
    return math.ceil(coverage / (1.0 - coverage) * (1.0 - 1e-12))


# classes


def class_scores(probability: Array) -> Array:
    """Total probability (n, C) of the classes that are more probable than each.

    Without the randomisation of Romano, Sesia and Candès (2020), so that sets are deterministic.

    Examples
    --------
    >>> import numpy as np
    >>> class_scores(np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]])).round(2)
    array([[0.8, 0. , 0.5],
           [0. , 0. , 0.8]])
    """
    order = np.argsort(-probability, axis=1, kind="stable")
    falling = np.take_along_axis(probability, order, axis=1)
    above = np.cumsum(falling, axis=1) - falling
    # Ties have the score of the first of them.
    first = np.ones(falling.shape, dtype=bool)
    first[:, 1:] = falling[:, 1:] < falling[:, :-1]
    above = np.maximum.accumulate(np.where(first, above, 0.0), axis=1)
    result = np.empty_like(above)
    np.put_along_axis(result, order, above, axis=1)
    return result


def own_scores(probability: Array, numbers: IntArray) -> Array:
    """The scores of the rows' observed classes."""
    return class_scores(probability)[np.arange(len(numbers)), numbers]


def class_sets(probability: Array, score: float) -> NDArray[np.bool_]:
    """The sets (n, C) of all classes with at most this score; they include the most probable class."""
    return class_scores(probability) <= score + _ROUNDING


def smallest_sets(probability: Array, coverage: float) -> NDArray[np.bool_]:
    """The smallest sets (n, C) of most probable classes whose total probability reaches the coverage."""
    return class_scores(probability) < coverage
