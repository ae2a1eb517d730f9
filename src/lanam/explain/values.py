"""Values as everybody knows them: Python's own numbers and words, ready for JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanam.core.arrays import Intercept
from lanam.core.model.fitted import FittedModel
from lanam.data.cells import is_missing

#: What the names of facts about a term's columns begin with: those about the first, the second, ...
PLACES = ("", "second_", "third_", "fourth_", "fifth_", "sixth_")


#: A column's values: numbers, or levels as objects.
Values: TypeAlias = NDArray[Any]

#: A classifier's labels, in order; None where there are none.
Labels: TypeAlias = tuple[Any, ...] | None


#: The same as an estimator has them.
GivenLabels: TypeAlias = Sequence[Any] | NDArray[Any] | None


def class_labels(model: FittedModel, classes: GivenLabels) -> Labels:
    """The classes' labels as plain values; their numbers where several have none."""
    if classes is None:
        return tuple(range(np.size(model.intercept))) if np.ndim(model.intercept) else None
    return tuple(np.asarray(classes).tolist())


def scalar(value: Intercept) -> Intercept:
    """A float if there is one number, a copy of the array if there is one a class."""
    return float(value) if np.ndim(value) == 0 else np.array(value)


def plain(value: object) -> Any:
    """The value as JSON knows it, which has no word for what is not a finite number.

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
    # A class may be anything that can be told apart: a date, say.
    return value if value is None or isinstance(value, (str, int)) else str(value)


def json_text(facts: Mapping[str, object], indent: int | None = None) -> str:
    """Plain data as JSON that every reader takes: other alphabets as they are, and nothing like NaN."""
    return json.dumps(facts, indent=indent, ensure_ascii=False, allow_nan=False)


class PlainData:
    """What a record, a curve or an explanation can be written as, whatever its fields are."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON; of a family, the link."""
        facts = {}
        for name, value in vars(self).items():
            if name == "family":
                facts["link"] = value.link.name
            elif name != "backend":
                facts[name] = plain(value)
        return facts

    def to_json(self, indent: int | None = None) -> str:
        """All of it as JSON; ``indent`` spreads it over lines."""
        return json_text(self.to_dict(), indent)


def cell_words(*cells: object) -> str:
    """A row's values of a term's columns, for a label.

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
