"""Labels of classes, and which of them each row has."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray
from lanam.families.base import Encoding, Family, Statistics, mixed_labels


def number_labels(
    labels: NDArray[Any],
    classes: NDArray[Any],
    strange: str = "was not among the training data's:",
) -> IntArray:
    """Which of ``classes`` each label is; ``strange`` is what is said of one that is none of them.

    Raises
    ------
    ValueError
        For a label that is none of them.

    Examples
    --------
    >>> import numpy as np
    >>> number_labels(np.array(["no", "yes", "no"]), np.array(["no", "yes"])).tolist()
    [0, 1, 0]
    """
    numbers = np.full(len(labels), -1)
    for number, label in enumerate(classes):
        numbers[labels == label] = number
    if (numbers < 0).any():
        label = labels[numbers < 0].tolist()[0]
        raise ValueError(f"y has the label {label!r}, which {strange} {classes.tolist()}")
    return numbers


class ClassFamily(Family):
    """A family whose targets are labels of classes: that of two, or of more."""

    needs_statistics = True

    def statistics(self, target: NDArray[Any], weight: Array, exposure: Array) -> Statistics:
        """The labels that occur."""
        if target.dtype.kind == "O" and not all(isinstance(label, str) for label in target):
            raise mixed_labels()
        return Statistics(len(weight), float(weight.sum()), classes=np.unique(target))

    def encoding(self, statistics: Statistics) -> Encoding:
        """Numbers of the labels in ascending order."""
        from lanam.families import BERNOULLI, SOFTMAX  # which are of this class

        classes = statistics.classes
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only ({classes.tolist()[0]!r}) among the rows with a positive weight: "
                "a classifier needs rows of two classes"
            )
        return Encoding(SOFTMAX if len(classes) > 2 else BERNOULLI, classes)

    def respond(
        self, encoding: Encoding, target: NDArray[Any], weight: Array, exposure: Array
    ) -> tuple[Array, Array]:
        """The number of every row's class."""
        return number_labels(target, encoding.classes).astype(np.float64), weight

    @abstractmethod
    def decision(self, mean: Array, variance: Array) -> Array:
        """Log-odds or log-probabilities averaged over the posterior of the link."""

    @abstractmethod
    def probability(self, decision: Array) -> Array:
        """Probability of every class (n, C) by :meth:`decision`."""

    @abstractmethod
    def log_prob(self, decision: Array, numbers: NDArray[Any]) -> Array:
        """Log-probability of the rows' own classes."""

    @abstractmethod
    def draw(self, mean: Array, variance: Array, normal: Array) -> Array:
        """Draws (n, n_samples, C) of the rows' probabilities."""

    @abstractmethod
    def n_normals(self, n_samples: int, n_classes: int) -> tuple[int, ...]:
        """How many standard normal numbers so many draws take."""
