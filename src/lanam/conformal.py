"""Split conformal calibration: intervals and sets that keep their promise on rows like the held-out ones.

A score says how far in the tails of its own prediction an observation lies: the narrowest of the
model's own intervals that holds it. Of n rows that the model has not seen, and one new row that could
have been any of them, the new row's score is equally likely to be at any place in the order of all
n + 1. So the ``ceil((n + 1) coverage)``-th smallest of the n scores is exceeded with a probability of at
most ``1 - coverage``, whatever the model (Vovk et al. 2005; Lei et al. 2018).

Scores and intervals of numbers are those of their predictive distributions (``core.model.distributions``);
classes have theirs here. Both must be each other's inverse, also up to rounding: rows like those of the
calibration are to be inside.
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

#: Sets hold classes with scores larger by this: a row scored again may differ by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Calibration:
    """What held-out rows said about a model's intervals or sets.

    Attributes
    ----------
    scores
        Ascending: how far in the tails of their predictions the rows lie. Of numbers, in standard
        deviations; of classes, the summed probability of more probable ones.
    weight
        How often each of them counts.

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

    @property
    def n_rows(self) -> int:
        """How many rows there were."""
        return len(self.scores)

    @property
    def most_coverage(self) -> float:
        """The largest coverage that so many rows allow."""
        total = float(self.weight.sum())
        return total / (total + 1.0)

    def threshold(self, coverage: float) -> float:
        """The score that a new row exceeds with a probability of at most ``1 - coverage``.

        Raises
        ------
        ValueError
            For a coverage that so few rows cannot promise.
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
                "calibrate with more, ask for less{, or pass calibrated=False for the model's own}",
                argument="coverage",
                value=float(coverage),
            )
        return float(self.scores[np.argmax(reached)])

    def by_chance(self, coverage: float, n_rows: float, share: float) -> tuple[float, float]:
        """Between which shares of so many new rows lie inside, with probability ``share``.

        The threshold is itself due to chance: over many calibrations, the probability of a new row to be
        inside has a Beta distribution, and the number of rows inside a Beta-binomial one. Where scores
        are tied, as those of counts and classes are, more rows may lie inside.
        """
        rank = math.ceil(self._needed(coverage))
        above = max(float(self.weight.sum()) + 1.0 - rank, 1.0)
        n_rows = max(round(n_rows), 1)
        tail = 0.5 - 0.5 * share
        ends = betabinom.ppf([tail, 1.0 - tail], n_rows, max(rank, 1), above) / n_rows
        return float(ends[0]), float(ends[1])

    def _needed(self, coverage: float) -> float:
        """How much weight the threshold must have at or below it."""
        needed = (float(self.weight.sum()) + 1.0) * coverage
        return needed * (1.0 - 1e-12)  # 0.7 * 10 may be more than 7

    def to_dict(self) -> dict[str, list[float]]:
        """The calibration as plain data, ready for JSON."""
        return {"scores": self.scores.tolist(), "weight": self.weight.tolist()}


def calibrated_by(scores: Array, weight: Array) -> Calibration:
    """The calibration by rows with these scores and weights; rows of no weight are left out."""
    warn_of_weights(weight)
    kept = np.flatnonzero(weight > 0.0)
    order = kept[np.argsort(scores[kept], kind="stable")]
    return Calibration(scores[order], weight[order])


def warn_of_weights(weight: Array) -> None:
    """Say so if weights hardly count how often rows were seen, as what chance allows depends on that."""
    own = weight[weight > 0.0]
    total, n_rows = float(own.sum()), len(own)
    equal = float(own[0]) != 1.0 and bool((own == own[0]).all())
    if equal or total < 0.5 * n_rows:
        all_are = f"is {own[0]:g} for every row" if equal else "counts how often each row was seen"
        remedy = "leave it out" if equal else "pass counts, or weights with a mean of one"
        warn_user(
            InputWarning(
                f"{{argument}} {all_are}, and its sum of {total:g} makes {n_rows} rows say as much as "
                f"{total:g} would",
                f"{remedy}, unless that is meant",
                argument="sample_weight",
            )
        )


def _rows_for(coverage: float) -> int:
    """The fewest rows that allow this coverage: those with ``n >= (n + 1) coverage``."""
    return math.ceil(coverage / (1.0 - coverage) * (1.0 - 1e-12))


# classes


def class_scores(probability: Array) -> Array:
    """Summed probability (n, C) of the classes that are more probable than each.

    Without the randomisation of Romano, Sesia and Candès (2020), so that a row's set does not depend on
    chance.

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
    # Equally probable classes have the sum of the first of them.
    first = np.ones(falling.shape, dtype=bool)
    first[:, 1:] = falling[:, 1:] < falling[:, :-1]
    above = np.maximum.accumulate(np.where(first, above, 0.0), axis=1)
    result = np.empty_like(above)
    np.put_along_axis(result, order, above, axis=1)
    return result


def own_scores(probability: Array, numbers: IntArray) -> Array:
    """The scores of the rows' own classes."""
    return class_scores(probability)[np.arange(len(numbers)), numbers]


def class_sets(probability: Array, score: float) -> NDArray[np.bool_]:
    """The sets (n, C) of all classes with at most this score; the most probable one is in all."""
    return class_scores(probability) <= score + _ROUNDING


def smallest_sets(probability: Array, coverage: float) -> NDArray[np.bool_]:
    """The sets (n, C) of the fewest most probable classes that have this probability together."""
    return class_scores(probability) < coverage
