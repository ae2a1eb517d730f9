"""Class labels and their integer encoding."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from lanam.core.arrays import Array, IntArray
from lanam.families.base import Encoding, Family, Statistics, mixed_labels


def number_labels(
    labels: NDArray[Any],
    classes: NDArray[Any],
    strange: str = "was not among the training data's:",
) -> IntArray:
    """The index of each label in ``classes``; ``strange`` words the error for any other label.

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
    """A family whose targets are class labels: two, or more."""

    needs_statistics = True

    def statistics(self, target: NDArray[Any], weight: Array, exposure: Array) -> Statistics:
        if target.dtype.kind == "O" and not all(isinstance(label, str) for label in target):
            raise mixed_labels()
        classes = np.unique(target)
        check_classification_targets(target)  # of all rows: it warns if most classes have one row
        return Statistics(len(weight), float(weight.sum()), classes=classes)

    def encoding(self, statistics: Statistics) -> Encoding:
        """Labels are encoded in ascending order."""
        from lanam.families import BERNOULLI, SOFTMAX  # subclasses of this one

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
        return number_labels(target, encoding.classes).astype(np.float64), weight

    def explained(self, classes: NDArray[Any]) -> NDArray[Any]:
        """The labels by which explanations name what contributions are to."""
        return classes

    def at_link(self, link: Array) -> Array:
        """Probabilities at points of the link scale: of the second of two classes, or of all."""
        return self.link.inverse(link)

    @abstractmethod
    def decision(self, mean: Array, variance: Array) -> Array:
        """Log-odds or log-probabilities, averaged over the posterior of the link."""

    @abstractmethod
    def probability(self, decision: Array) -> Array:
        """Class probabilities (n, C) from :meth:`decision`."""

    @abstractmethod
    def log_prob(self, decision: Array, numbers: NDArray[Any]) -> Array:
        """Log-probability of each row's class."""

    @abstractmethod
    def draw(self, mean: Array, variance: Array, normal: Array) -> Array:
        """Posterior draws (n, n_samples, C) of the class probabilities."""

    @abstractmethod
    def n_normals(self, n_samples: int, n_classes: int) -> tuple[int, ...]:
        """Shape of the standard normal draws that :meth:`draw` needs per row."""
