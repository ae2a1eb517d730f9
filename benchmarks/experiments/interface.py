"""What an experiment is: sets, models, and what to look at in a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.cells import Arrays, Row
from benchmarks.data.sets import Dataset, Table
from benchmarks.peers import Fitted


@dataclass(frozen=True)
class Source:
    """Where data sets come from: a folder, and one for what was downloaded."""

    directory: Path | None = None
    cache: Path = Path("downloads")


class Load(Protocol):
    """Give a set; only made-up ones depend on the seed."""

    def __call__(self, name: str, seed: int, source: Source) -> Dataset: ...


Observe = Callable[[Fitted, Dataset, Table], tuple[Row, Arrays]]


def nothing(fitted: Fitted, dataset: Dataset, train: Table) -> tuple[Row, Arrays]:
    """Look at no more than the predictions."""
    return {}, {}


@dataclass(frozen=True)
class Experiment:
    """Models on sets.

    A set with a usual split (``n_train``) is fitted with as many seeds as there would be folds.
    ``observe`` looks at a fitted model, the set and its training rows, and gives further scores
    and arrays. The models of ``named_only`` take part when they are asked for by name. An experiment
    that has sets and looks in common with another, ``same_as``, takes the finished cells of models
    that both have from there.
    """

    name: str
    title: str
    sets: tuple[str, ...]
    models: tuple[str, ...]
    load: Load
    observe: Observe = nothing
    named_only: tuple[str, ...] = ()
    optional_sets: tuple[str, ...] = ()
    same_as: str | None = None


def moved_along(X: Table, column: int, grid: np.ndarray) -> Table:
    """The first row, once for each value of the grid in one column; the models here are additive."""
    if isinstance(X, np.ndarray):
        rows = np.repeat(X[:1], len(grid), axis=0)
        rows[:, column] = grid
        return rows
    rows = X.iloc[np.zeros(len(grid), int)].reset_index(drop=True)
    return rows.assign(**{rows.columns[column]: grid})


def function_arrays(
    fitted: Fitted, X: Table, grids: dict[int, np.ndarray], name: Callable[[int], str] = str
) -> Arrays:
    """Mean and standard deviation of what columns add, over a grid of values each."""
    arrays: Arrays = {}
    if fitted.effect is None:
        return arrays
    for column, grid in grids.items():
        mean, std = fitted.effect(moved_along(X, column, grid), column)
        arrays |= {
            f"x_{name(column)}": grid,
            f"mean_{name(column)}": np.asarray(mean, float),
            f"std_{name(column)}": np.asarray(std, float),
        }
    return arrays
