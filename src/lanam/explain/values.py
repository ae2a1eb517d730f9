"""Plain Python values, ready for JSON, and what all explanations share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Intercept
from lanam.core.model.fitted import FittedModel
from lanam.data.cells import is_missing
from lanam.families import Family
from lanam.text import brief

#: Prefixes of the keys of a term's first, second, ... column.
PREFIXES = ("", "second_", "third_", "fourth_", "fifth_", "sixth_")

#: A column's values: numbers, or labels as objects.
Values: TypeAlias = NDArray[Any]

#: A classifier's labels, in order; None for other models.
Labels: TypeAlias = tuple[Any, ...] | None

#: The same in any array type.
GivenLabels: TypeAlias = Sequence[Any] | NDArray[Any] | None


def class_labels(model: FittedModel, classes: GivenLabels) -> Labels:
    """The class labels as plain values; their indices if several classes have none."""
    if classes is None:
        return tuple(range(np.size(model.intercept))) if np.ndim(model.intercept) else None
    return tuple(np.asarray(classes).tolist())


def scalar(value: Intercept) -> Intercept:
    """A float, or a copy of an array with one number per class."""
    return float(value) if np.ndim(value) == 0 else np.array(value)


def object_array(items: Sequence[object]) -> NDArray[np.object_]:
    """A one-dimensional array of objects, whatever they are."""
    result = np.empty(len(items), dtype=object)
    result[:] = items
    return result


def plain(value: object) -> Any:
    """The value as JSON represents it; None for numbers that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> plain((np.float64(1.5), np.array([2.0, np.nan]), np.datetime64("2024-05-01"), None))
    [1.5, [2.0, None], '2024-05-01', None]
    """
    if isinstance(value, PlainData):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        clean = value.dtype.kind in "bi" or (value.dtype.kind == "f" and np.isfinite(value).all())
        return value.tolist() if clean else plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else None
    # Class labels can be of any hashable type, such as dates.
    return value if value is None or isinstance(value, (str, int)) else str(value)


def json_text(facts: Mapping[str, object], indent: int | None = None) -> str:
    """Plain data as standard JSON: Unicode as it is, and no NaN."""
    return json.dumps(facts, indent=indent, ensure_ascii=False, allow_nan=False)


class PlainData:
    """A record, curve or explanation that can be exported as plain data."""

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data, ready for JSON; a family is given by its link."""
        facts = {}
        for name, value in vars(self).items():
            if name == "family":
                facts["link"] = value.link.name
            elif name not in ("backend", "posterior", "source"):
                facts[name] = plain(value)
        return facts

    def __repr__(self) -> str:
        return brief(self)

    def to_json(self, indent: int | None = None) -> str:
        """The same as JSON text."""
        return json_text(self.to_dict(), indent)


class OnLinkScale:
    """An explanation on the link scale of a response family."""

    family: Family
    classes: Labels
    backend: str | None

    @property
    def link(self) -> str:
        """Name of the link: "identity", "log", "logit", "softmax", or "log-variance" for the noise."""
        return self.family.link.name

    @property
    def unit(self) -> str:
        """What contributions add to, as an axis label."""
        return self.family.words.unit_of(self.classes)

    def class_index(self, label: object) -> int:
        """The index of a class; an error names the classes of the model."""
        labels = list(self.classes or ())
        if not labels:
            raise ValueError(f"label={label!r} names a class, and the model has none: leave it out")
        if label not in labels:
            raise ValueError(f"label={label!r} is not among the model's classes: {labels}")
        return labels.index(label)


def cell_words(*cells: object) -> str:
    """A row's values of a term's columns, as a label.

    Examples
    --------
    >>> cell_words(27.12345, "Rome"), cell_words(94110.0), cell_words(None)
    ('27.12, Rome', '94110', 'missing')
    """
    return ", ".join(map(_cell_word, cells))


def _cell_word(cell: object) -> str:
    if is_missing(cell):
        return "missing"
    if not isinstance(cell, float):
        return str(cell)
    whole = abs(cell) < 1e12 and cell == round(cell)
    return f"{cell:.0f}" if whole else f"{cell:.4g}"
