"""The one rule for what a column is.

For now a column holds numbers: integers, floats, decimals, and booleans as 0 and 1. Text,
categories, dates and whatever else a frame can hold is refused by name; this is the place where
categorical columns and missing values will come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Frame: TypeAlias = "nw.DataFrame[Any]"
Series: TypeAlias = Any  # narwhals names the columns of its stable frames by another type

#: What a frame's column may hold besides numbers, in the words of an error.
_KINDS = (
    (nw.String, "text"),
    (nw.Categorical, "categories"),
    (nw.Enum, "categories"),
    (nw.Date, "dates"),
    (nw.Datetime, "dates"),
    (nw.Duration, "durations"),
    (nw.Time, "times of day"),
)


@dataclass(frozen=True)
class Column:
    """One column of the training data: its name, and the range of its values."""

    name: str
    lowest: float
    highest: float


@dataclass(frozen=True)
class Schema:
    """What the training data looked like.

    Attributes
    ----------
    columns
        In the order of the array that the model was fitted to.
    backend
        The library the frame came from (``"pandas"``, ``"polars"``, ``"pyarrow"``), or None for an
        array: answers that are tables come in the same kind.

    Examples
    --------
    >>> import numpy as np
    >>> schema = learn_schema(("age", "bmi"), np.array([[40.0, 22.5], [61.0, 30.1]]))
    >>> schema.names
    ('age', 'bmi')
    >>> schema.columns[0].highest
    61.0
    """

    columns: tuple[Column, ...]
    backend: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    def narrowed(self, columns: Array) -> Schema:
        """The same columns with the ranges of fewer rows."""
        return learn_schema(self.names, columns, self.backend)


def learn_schema(names: Sequence[str], columns: Array, backend: str | None = None) -> Schema:
    """Schema of the training array ``columns`` (n, D), all finite."""
    lowest, highest = columns.min(axis=0), columns.max(axis=0)
    return Schema(
        tuple(
            Column(name, float(low), float(high))
            for name, low, high in zip(names, lowest, highest, strict=True)
        ),
        backend,
    )


def as_frame(table: Any) -> Frame | None:
    """The table as a narwhals frame, or None if it is not a frame.

    Raises
    ------
    TypeError
        If it is a lazy frame: whether to collect it is for the user to decide.
    """
    if nw.dependencies.is_into_dataframe(table):
        frame: Frame = nw.from_native(table, eager_only=True)
        return frame
    # Whatever narwhals does not know is passed through, so arrays and lists come back as they are.
    if isinstance(nw.from_native(table, pass_through=True), nw.LazyFrame):
        raise TypeError(
            f"X is a lazy frame ({type(table).__module__.split('.')[0]}); "
            "collect it first, for example with X.collect()"
        )
    return None


def column_names(frame: Frame | None, n_columns: int) -> tuple[str, ...]:
    """Names to show: the frame's own, or ``x0``, ``x1``, ... where they say nothing."""
    labels = list(range(n_columns)) if frame is None else list(frame.columns)
    if labels == list(range(n_columns)):
        return tuple(f"x{label}" for label in labels)
    return tuple(str(label) for label in labels)


def not_numeric(name: str, kind: str, example: object) -> ValueError:
    """The error for a column that holds something else than numbers."""
    remedy = {
        "text": "convert it to floats if these are numbers written as text, or encode it",
        "categories": "encode it",
        "dates": "turn it into numbers that matter, such as the days since an event, or encode it",
    }.get(kind, "convert it to floats, or encode it")
    return ValueError(
        f"column {name!r} holds {kind} (for example {str(example)!r}), and lanam takes numbers "
        f"only for now: {remedy} (for example with sklearn.preprocessing.OneHotEncoder), or leave "
        "it out"
    )


def require_numeric(series: Series, name: str) -> None:
    """Refuse a frame's column that is not numeric, saying what it is and what to do."""
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return
    if dtype == nw.Object:
        values = series.to_list()
        odd = [value for value in values if not (is_missing(value) or _is_number(value))]
        if not odd:
            return
        raise not_numeric(name, "text" if isinstance(odd[0], str) else "objects", odd[0])
    if series.null_count() == len(series):
        return  # a column of nothing but nulls has no type of its own: it is refused as missing
    kind = next((words for known, words in _KINDS if dtype == known), f"values of type {dtype}")
    raise not_numeric(name, kind, series.drop_nulls().head(1).to_list()[0])


def _is_number(value: object) -> bool:
    # Complex numbers are not among them: as floats they would lose their imaginary part.
    return isinstance(value, (bool, int, float, Decimal, np.bool_, np.integer, np.floating))


def is_missing(value: object) -> bool:
    """Whether an object in a column stands for a missing value (pandas has its own, ``pd.NA``)."""
    return value is None or type(value).__name__ == "NAType"
