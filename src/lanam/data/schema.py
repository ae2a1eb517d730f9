"""The schema of a table: which columns are numeric and which categorical.

A column is *categorical* if it holds strings or booleans, if its dtype is categorical, or if the user
declares it so; else it is *numeric*. Nothing is inferred from the number of distinct values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from lanam.data.cells import BOOLEAN, EMPTY, NUMBERS, STRING, Array, Cells, Frame, Level
from lanam.errors import InputError
from lanam.text import did_you_mean

NUMERIC = "numeric"
CATEGORICAL = "categorical"

#: The code of an unseen category.
UNSEEN = -1.0

#: The number of levels of a numeric column.
NO_LEVELS = -1


@dataclass(frozen=True)
class Column:
    """One column of the training data: numeric, or categorical with its ``levels`` in order of their codes.

    ``lowest`` and ``highest`` are of the values, or of the codes; NaN where there are none. ``missing``
    is whether any value was.
    """

    name: str
    kind: str
    lowest: float
    highest: float
    levels: tuple[Level, ...] = ()
    missing: bool = False

    @property
    def holds(self) -> str:
        """The type of its values, as in `Cells`."""
        if self.kind == NUMERIC:
            return EMPTY if np.isnan(self.lowest) else NUMBERS
        if not self.levels:
            return EMPTY
        first = self.levels[0]
        return STRING if isinstance(first, str) else BOOLEAN if isinstance(first, bool) else NUMBERS


@dataclass(frozen=True)
class Schema:
    """The columns of the training data, and the library of the frame (None: an array).

    Tables that are returned to the user are frames of the same library.

    Examples
    --------
    >>> import numpy as np
    >>> schema = learn_schema(("age", "bmi"), np.array([[40.0, 22.5], [61.0, np.nan]]))
    >>> schema.names
    ('age', 'bmi')
    >>> schema.columns[1]
    Column(name='bmi', kind='numeric', lowest=22.5, highest=22.5, levels=(), missing=True)
    """

    columns: tuple[Column, ...]
    backend: str | None = None

    @cached_property  # asked for by every pair of columns
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def n_levels(self) -> tuple[int, ...]:
        """The number of levels of each column; -1 for numeric ones."""
        return tuple(
            len(column.levels) if column.kind == CATEGORICAL else NO_LEVELS
            for column in self.columns
        )

    def narrowed(self, columns: Array) -> Schema:
        """The same columns with the ranges of fewer rows; levels are unchanged."""
        return replace(self, columns=tuple(map(learn_column, self.columns, columns.T)))


def kind_of(cells: Cells, *, declared: bool = False) -> str:
    """Whether a column is numeric, or categorical, by itself or as ``declared`` by the user."""
    categorical = declared or cells.categorical or cells.holds in (STRING, BOOLEAN)
    return CATEGORICAL if categorical else NUMERIC


def learn_schema(names: Sequence[str], columns: Array, backend: str | None = None) -> Schema:
    """Schema of a training array (n, D) of numeric columns."""
    blank = (Column(name, NUMERIC, np.nan, np.nan) for name in names)
    return Schema(tuple(map(learn_column, blank, columns.T)), backend)


def learn_column(column: Column, values: Array) -> Column:
    """The column with the range of ``values`` (n,), its encoded training data."""
    missing = bool(np.isnan(values).any())
    if column.kind == CATEGORICAL:
        last = len(column.levels) - 1
        ends = (0.0, float(last)) if last >= 0 else (np.nan, np.nan)
    else:  # fmin and fmax ignore NaN
        ends = (float(np.fmin.reduce(values)), float(np.fmax.reduce(values)))
    return replace(column, lowest=ends[0], highest=ends[1], missing=missing)


def as_frame(table: Any) -> Frame | None:
    """The table as a narwhals frame, None if it is not a frame; lazy frames are rejected."""
    if nw.dependencies.is_into_dataframe(table):
        names = [str(name) for name in getattr(table, "columns", ()) if isinstance(name, str)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            remedy = "names of columns must be unique, so rename one of them or leave it out"
            problem = "{X} has more than one column named {column!r}"
            raise InputError(problem, remedy, column=twice[0])
        frame: Frame = nw.from_native(table, eager_only=True)
        return frame
    # narwhals passes through what it does not know, such as arrays and lists.
    if isinstance(nw.from_native(table, pass_through=True), nw.LazyFrame):
        raise TypeError(
            f"X is a lazy frame ({type(table).__module__.split('.')[0]}); "
            "collect it first, for example with X.collect()"
        )
    return None


def column_names(frame: Frame | None, n_columns: int) -> tuple[str, ...]:
    """Names of the columns: those of the frame, or ``x0``, ``x1``, ... for positions."""
    labels = list(range(n_columns)) if frame is None else list(frame.columns)
    if set(labels) == set(range(n_columns)):
        return tuple(f"x{label}" for label in labels)
    return tuple(str(label) for label in labels)


def read_categorical(value: object, names: Sequence[str]) -> frozenset[int]:
    """Indices of the columns in the argument ``categorical_features``."""
    if not isinstance(value, str) and hasattr(value, "tolist"):
        value = value.tolist()  # sequences of numpy and pandas
    if value is None or (isinstance(value, str) and value == "auto"):
        return frozenset()
    if isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes)):
        return frozenset(find_column(column, names, "categorical_features") for column in value)
    example = value if isinstance(value, str) and value in names else "city"
    remedy = "use 'auto', or a list of names or indices of columns, for example [{column!r}]"
    raise InputError(
        "{given} is not known", remedy, argument="categorical_features", value=value, column=example
    )


def find_column(column: object, names: Collection[str], argument: str) -> int:
    """The index of a column that an argument gives by name or by index.

    Examples
    --------
    >>> find_column("ages", ["age", "sex", "bmi"], "interactions")
    Traceback (most recent call last):
        ...
    lanam.errors.InputError: interactions names the column 'ages', which X does not have; did you ...
    """
    if isinstance(column, str):
        if column in names:
            return list(names).index(column)
        hint = did_you_mean(column, names, "its columns are")
        problem = "{argument} names the column {column!r}, which {X} does not have; {hint}"
        raise InputError(problem, argument=argument, column=column, hint=hint)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if 0 <= column < len(names):
            return int(column)
        problem = (
            f"{{argument}} has the column {column}, and {{X}} has columns 0 to {len(names) - 1}"
        )
        raise InputError(problem, argument=argument, value=column)
    problem, remedy = "{argument} has {value!r} for a column", "use its name, or its index from 0"
    raise InputError(problem, remedy, argument=argument, value=column)
