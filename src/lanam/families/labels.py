"""Labels of classes, and which of them each row has."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Array, IntArray
from lanam.families.base import ClassFamily, Encoding, Statistics


def number_labels(labels: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    """Which of ``classes`` each label is.

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
        raise ValueError(
            f"y has the label {label!r}, which was not among the training data's: {classes.tolist()}"
        )
    return numbers


class LabelledFamily(ClassFamily):
    """Families whose targets are labels: the one for two classes, or for more."""

    def statistics(self, target: NDArray[Any], weight: Array, exposure: Array) -> Statistics:
        """The labels that occur."""
        if target.dtype.kind == "O" and not all(isinstance(label, str) for label in target):
            raise mixed_labels()
        return Statistics(len(weight), float(weight.sum()), classes=np.unique(target))

    def merged(self, first: Statistics, second: Statistics) -> Statistics:
        """The labels that occur in either."""
        return Statistics(
            first.n_rows + second.n_rows,
            first.weight + second.weight,
            classes=_merge_classes(first.classes, second.classes),
        )

    def encoding(self, statistics: Statistics) -> Encoding:
        """Numbers of the labels in ascending order."""
        from lanam.families import BERNOULLI, SOFTMAX

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


def _merge_classes(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    if not (len(first) and len(second)):  # the dtype of nothing says nothing
        return first if len(first) else second
    if (first.dtype.kind in "OU") != (second.dtype.kind in "OU"):
        raise mixed_labels()
    return np.unique(np.concatenate([first, second]))


def mixed_labels() -> ValueError:
    """The error for labels that have no order."""
    return ValueError(
        "y mixes text and other labels, which have no order: make all of them text, for example with "
        "`y = [str(label) for label in y]`"
    )
