"""The one rule for what a column is.

A column is *categorical* if it holds text or truth values, if its dtype is one of categories, or if
the user says so; else it is *numeric*. Nothing is inferred from how many values there are: integers
are numbers until somebody says otherwise. Encoding reads the rule from here, and so do
explanations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from lanam.data.cells import NOTHING, NUMBERS, TEXT, TRUTH, Array, Cells, Frame, Level
from lanam.errors import InputError

NUMERIC = "numeric"
CATEGORICAL = "categorical"

#: The code of a level that was not in the training data.
UNSEEN = -1.0

#: What a column without levels says of them to the core.
NO_LEVELS = -1

#: Text is free text where there are more rows than this, ...
_FREE_TEXT_ROWS = 50
#: ... where more than this share of them differ, ...
_FREE_TEXT_SHARE = 0.9
#: ... and where a value has more characters than this on average. Codes and names are shorter.
_FREE_TEXT_LENGTH = 30.0


@dataclass(frozen=True)
class Column:
    """One column of the training data.

    Attributes
    ----------
    name
        Its name.
    kind
        ``"numeric"`` or ``"categorical"``.
    lowest, highest
        The range of its values; of its codes, if it is categorical. NaN where there are none.
    levels
        The values of a categorical column, as plain Python values; its codes count along them.
    missing
        Whether values were missing.
    """

    name: str
    kind: str
    lowest: float
    highest: float
    levels: tuple[Level, ...] = ()
    missing: bool = False

    @property
    def holds(self) -> str:
        """What its values are: numbers, text, truth values, or nothing that is known."""
        if self.kind == NUMERIC:
            return NOTHING if np.isnan(self.lowest) else NUMBERS
        if not self.levels:
            return NOTHING
        first = self.levels[0]
        return TEXT if isinstance(first, str) else TRUTH if isinstance(first, bool) else NUMBERS


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
    >>> schema = learn_schema(("age", "bmi"), np.array([[40.0, 22.5], [61.0, np.nan]]))
    >>> schema.names
    ('age', 'bmi')
    >>> schema.columns[1]
    Column(name='bmi', kind='numeric', lowest=22.5, highest=22.5, levels=(), missing=True)
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

    @property
    def n_levels(self) -> tuple[int, ...]:
        """How many levels each column has: -1 for a numeric one."""
        return tuple(
            len(column.levels) if column.kind == CATEGORICAL else NO_LEVELS
            for column in self.columns
        )

    def narrowed(self, columns: Array) -> Schema:
        """The same columns with the ranges of fewer rows; levels stay as they are."""
        found = tuple(map(learn_column, self.columns, columns.T))
        return replace(self, columns=found)


def kind_of(cells: Cells, *, declared: bool = False) -> str:
    """Whether a column is numeric or categorical: the one rule.

    Parameters
    ----------
    cells
        The column as it was given.
    declared
        Whether the user says that it is categorical.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam.data.cells import read_cells
    >>> zones = read_cells(np.array([[1], [2]]), 0, "zone")
    >>> kind_of(zones), kind_of(zones, declared=True)
    ('numeric', 'categorical')
    """
    categorical = declared or cells.categorical or cells.holds in (TEXT, TRUTH)
    return CATEGORICAL if categorical else NUMERIC


def is_free_text(levels: Sequence[Level], n_values: int) -> bool:
    """Whether text is more likely sentences than names: long, and nearly never the same twice.

    Examples
    --------
    >>> is_free_text([f"customer {k}" for k in range(10_000)], 10_000)
    False
    >>> is_free_text([f"The parcel arrived on day {k}, and it was damp." for k in range(99)], 99)
    True
    """
    if n_values <= _FREE_TEXT_ROWS or len(levels) <= _FREE_TEXT_SHARE * n_values:
        return False
    return sum(len(str(level)) for level in levels) > _FREE_TEXT_LENGTH * len(levels)


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
    else:  # these two pass NaN over
        ends = (float(np.fmin.reduce(values)), float(np.fmax.reduce(values)))
    return replace(column, lowest=ends[0], highest=ends[1], missing=missing)


def as_frame(table: Any) -> Frame | None:
    """The table as a narwhals frame, or None if it is not a frame.

    Raises
    ------
    TypeError
        If it is a lazy frame: whether to collect it is for the user to decide.
    """
    if nw.dependencies.is_into_dataframe(table):
        names = [str(name) for name in getattr(table, "columns", ()) if isinstance(name, str)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            remedy = "columns are told apart by their names, so rename one of them or leave it out"
            problem = "{X} has more than one column named {column!r}"
            raise InputError(problem, remedy, column=twice[0])
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


def read_categorical(value: object, names: Sequence[str]) -> frozenset[int]:
    """Which of the columns ``names`` the argument ``categorical_features`` adds, as indices.

    Examples
    --------
    >>> sorted(read_categorical(["zone", 0], ["month", "age", "zone"]))
    [0, 2]
    >>> read_categorical("auto", ["month", "age", "zone"])
    frozenset()
    """
    if not isinstance(value, str) and hasattr(value, "tolist"):
        value = value.tolist()  # numpy's and pandas's own sequences
    if value is None or (isinstance(value, str) and value == "auto"):
        return frozenset()
    if isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes)):
        return frozenset(find_column(column, names, "categorical_features") for column in value)
    example = value if isinstance(value, str) and value in names else "city"
    remedy = "give 'auto', or a list of names or indices of columns, for example [{column!r}]"
    raise InputError(
        "{given} is not known", remedy, argument="categorical_features", value=value, column=example
    )


def find_column(column: object, names: Collection[str], argument: str) -> int:
    """The index of a column that an argument gives by its name or by its index.

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
        close = get_close_matches(column, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f": its columns are {_listed(names)}"
        problem = "{argument} names the column {column!r}, which {X} does not have{hint}"
        raise InputError(problem, argument=argument, column=column, hint=hint)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if 0 <= column < len(names):
            return int(column)
        problem = (
            f"{{argument}} has the column {column}, and {{X}} has columns 0 to {len(names) - 1}"
        )
        raise InputError(problem, argument=argument, value=column)
    problem, remedy = "{argument} has {value!r} for a column", "give its name, or its index from 0"
    raise InputError(problem, remedy, argument=argument, value=column)


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")
