"""Gaps filled and words turned into numbers, for models that need complete numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from benchmarks.data.sets import Array, Table, Task
from benchmarks.peers.interface import Fitted, Peer

RARE = 0.005  # an indicator with a smaller share of ones, or of zeros, says nothing worth a column


@dataclass(frozen=True)
class Column:
    """One column of the table as it came: the value for its gaps, and its levels if it has words."""

    fill: object
    levels: tuple[object, ...] = ()

    @property
    def codes(self) -> tuple[object, ...]:
        """The levels that get a column of zeros and ones: of two levels only the second."""
        return self.levels[1:] if len(self.levels) == 2 else self.levels


@dataclass(frozen=True)
class Completion:
    """What the training rows say of gaps: call it with rows to have them as complete numbers.

    ``names`` are the columns of the result: the values (a column of words has a 0/1 for each level, for
    the second only where there are two), then one indicator for each pattern of gaps. ``groups`` holds,
    for each indicator, the numbers of the columns whose training rows have that pattern.
    """

    columns: tuple[Column, ...]
    groups: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]

    def __call__(self, X: Table) -> Array:
        """Fill the gaps; an array that needs nothing is given back as it is."""
        if isinstance(X, np.ndarray):
            if X.shape[1] == len(self.names) and not np.isnan(X).any():
                return X
            X = pd.DataFrame(X)
        values = [
            part
            for number, column in enumerate(self.columns)
            for part in numbers_of(X.iloc[:, number], column)
        ]
        # Patterns alike among the training rows may differ in others: missing is what is so altogether
        gaps = [X.iloc[:, list(group)].isna().all(axis=1).to_numpy(float) for group in self.groups]
        return np.column_stack(values + gaps)

    def parts(self, column: int) -> tuple[tuple[int, float], ...]:
        """Tell which columns of the result belong to a column as it came, each with its share.

        Its values are all its own. Columns that are missing together have one indicator among them, and
        nothing in the data says whose it is: each gets an equal share, so that
        the effects of all columns still add up to the model.
        """
        widths = [len(other.codes) or 1 for other in self.columns]
        start = sum(widths[:column])
        own = [(start + offset, 1.0) for offset in range(widths[column])]
        shared = [
            (sum(widths) + number, 1 / len(group))
            for number, group in enumerate(self.groups)
            if column in group
        ]
        return (*own, *shared)


def complete(X_train: Table) -> Completion:
    """Learn from the training rows what gaps get: the median, or of words the commonest.

    Which cells are missing may itself tell something, so every distinct pattern of gaps has an indicator.
    Columns with the same pattern share one; one that is the same in more than 99.5% of the rows has
    none. A column without any value is zero throughout.
    """
    frame = pd.DataFrame(X_train)
    columns = tuple(describe(frame.iloc[:, number]) for number in range(frame.shape[1]))
    missing = frame.isna().to_numpy()
    patterns: dict[bytes, list[int]] = {}
    for number in range(frame.shape[1]):
        if RARE <= missing[:, number].mean() <= 1 - RARE:
            patterns.setdefault(missing[:, number].tobytes(), []).append(number)
    groups = tuple(tuple(group) for group in patterns.values())
    words = [str(name) for name in frame.columns]
    names = [
        name if not column.levels else f"{name}={level}"
        for name, column in zip(words, columns, strict=True)
        for level in column.codes or ("",)
    ]
    names += [f"{words[group[0]]} missing" for group in groups]
    return Completion(columns, groups, tuple(names))


def describe(values: pd.Series) -> Column:
    """Tell what one training column's gaps get, and its levels if it is not numeric."""
    present = values.dropna()
    if pd.api.types.is_numeric_dtype(values.dtype):
        return Column(float(present.median()) if len(present) else 0.0)
    counts = present.astype(object).value_counts()
    if counts.empty:
        return Column(0.0)
    levels = tuple(sorted(counts.index, key=str))
    return Column(max(levels, key=lambda level: counts[level]), levels)


def numbers_of(values: pd.Series, column: Column) -> list[Array]:
    """The complete columns of numbers that one column becomes."""
    if not column.levels:
        numbers = pd.to_numeric(values).to_numpy(float, na_value=np.nan)
        return [np.where(np.isnan(numbers), column.fill, numbers)]
    words = values.astype(object)
    # A level that the training rows do not have is a gap
    words = words.where(words.isin(column.levels), column.fill)
    return [(words == level).to_numpy(float) for level in column.codes]


@dataclass(frozen=True)
class Completed:
    """A model that needs complete numbers, given completed tables; its name stays.

    The effect of a column is its value's term (all levels' terms, for words) plus its share of the
    indicator's, so it refers to the table as it came: see ``Completion.parts``. Standard deviations add
    up as those of independent terms, which is all that one model's terms one by one can tell.
    """

    peer: Peer
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.peer.name)

    def missing(self) -> str | None:
        return self.peer.missing()

    def fit(self, X: Table, y: Array, task: Task, seed: int, threads: int) -> Fitted:
        completion = complete(X)
        fitted = self.peer.fit(completion(X), y, task, seed, threads)
        info = dict(fitted.info)
        if len(completion.names) != X.shape[1]:
            info["completed_columns"] = len(completion.names)
        mean, effect = fitted.predict_mean, fitted.effect
        density, cdf = fitted.log_density, fitted.cdf
        return replace(
            fitted,
            predict=lambda rows: fitted.predict(completion(rows)),
            predict_mean=mean and (lambda rows: mean(completion(rows))),
            log_density=density and (lambda rows, y: density(completion(rows), y)),
            cdf=cdf and (lambda rows, y: cdf(completion(rows), y)),
            effect=effect and summed(effect, completion),
            info=info,
        )


Effect = Callable[[Table, int], tuple[Array, Array]]


def summed(effect: Effect, completion: Completion) -> Effect:
    """Effects of the columns as they came, from those of the completed ones."""

    def of_column(rows: Table, column: int) -> tuple[Array, Array]:
        complete_rows = completion(rows)
        mean, variance = np.zeros(len(rows)), np.zeros(len(rows))
        for part, share in completion.parts(column):
            part_mean, part_std = effect(complete_rows, part)
            mean = mean + share * np.asarray(part_mean)
            variance = variance + (share * np.asarray(part_std)) ** 2
        return mean, np.sqrt(variance)

    return of_column
