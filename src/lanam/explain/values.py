"""Values as everybody knows them: Python's own numbers and words, ready for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lanam.core.model import FittedModel

#: The scale of the sum, by likelihood.
_LINKS = {"bernoulli": "logit", "poisson": "log", "softmax": "softmax"}


def link_of(model: FittedModel) -> str:
    """The scale of a model's sum."""
    return _LINKS.get(model.likelihood, "identity")


def class_labels(model: FittedModel, classes: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """The classes' labels as plain values; their numbers where several have none."""
    if classes is None:
        return tuple(range(np.size(model.intercept))) if link_of(model) == "softmax" else None
    return tuple(np.asarray(classes).tolist())


def scalar(value: Any) -> Any:
    """A float if there is one number, a copy of the array if there is one a class."""
    if value is None:
        return None
    return float(value) if np.ndim(value) == 0 else np.array(value)


def plain(value: Any) -> Any:
    """The value as JSON knows it, which has no word for what is not a number."""
    if isinstance(value, np.ndarray):
        clean = value.dtype.kind in "bi" or (value.dtype.kind == "f" and not np.isnan(value).any())
        return value.tolist() if clean else plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and np.isnan(value) else value
