"""Made-up rows in any number, whose truth is known: folders of Parquet files, written chunk by chunk.

Columns are normal, uniform or lognormal and all correlated (a normal that they share has the share
``COMMON`` of each one's variance before it is bent). Of ten columns four matter, four matter little, and
two are useless; with more, the ten repeat. ``y`` is a sum of one smooth function a column and normal noise
of half its standard deviation, ``ill`` is 1 with log-odds twice that sum.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from benchmarks.data.sets import Array

COMMON = 0.3
NOISE = 0.5
LOG_ODDS = 2.0
GROUP_ROWS = 250_000  # of a row group
GROUPS = 5  # of a file
FEWEST_GROUPS = 4  # few rows are in chunks too
STEPS, REACH = (
    200,
    4.0,
)  # values of a column where the sketch is to be exact: at most so many, so far out
HELD_OUT = 10**6  # the number of a chunk that no folder has
TARGETS = {"y": "regression", "ill": "classification"}

Function = Callable[[Array], Array]


def _normal(z: Array) -> Array:
    return z


def _lognormal(z: Array) -> Array:
    return np.exp(0.5 * z)


#: How a normal becomes the column, what the column does, and how much that matters.
COLUMNS: tuple[tuple[Function, Function, float], ...] = (
    (_normal, lambda x: np.sin(2 * x), 1.0),
    (ndtr, lambda x: (x - 0.4) ** 2, 1.0),
    (_lognormal, np.log1p, 1.0),
    (_normal, lambda x: np.tanh(2 * x), 1.0),
    (ndtr, lambda x: np.sin(2 * np.pi * x), 0.2),
    (_lognormal, np.sqrt, 0.1),
    (_normal, lambda x: x**2, 0.1),
    (ndtr, lambda x: expit(20 * (x - 0.5)), 0.05),
    (_normal, np.zeros_like, 0.0),
    (_lognormal, np.zeros_like, 0.0),
)


@dataclass(frozen=True)
class Rows:
    """Some rows and the truth of them: ``signal`` is y without its noise."""

    X: Array
    signal: Array
    y: Array
    ill: Array

    def target(self, name: str) -> Array:
        return self.y if name == "y" else self.ill


def names(columns: int) -> list[str]:
    """What the columns are called."""
    return [f"x{column}" for column in range(columns)]


def _draw(rng: np.random.Generator, rows: int, columns: int, stepped: bool) -> Array:
    shared = np.sqrt(COMMON) * rng.standard_normal((rows, 1))
    z = shared + np.sqrt(1 - COMMON) * rng.standard_normal((rows, columns))
    if stepped:
        size = 2 * REACH / STEPS
        z = np.clip(np.round(z / size) * size, -REACH, REACH)
    for column in range(columns):
        z[:, column] = COLUMNS[column % len(COLUMNS)][0](z[:, column])
    return z


@lru_cache
def _units(columns: int) -> tuple[Array, Array]:
    """Centre and factor of each function that make their sum one of unit variance, from rows of its own."""
    X = _draw(np.random.default_rng(1), 20_000, columns, stepped=False)
    centres, factors, signal = np.zeros(columns), np.zeros(columns), np.zeros(len(X))
    for column in range(columns):
        _, function, weight = COLUMNS[column % len(COLUMNS)]
        values = function(X[:, column])
        centres[column] = values.mean()
        factors[column] = weight / values.std() if weight else 0.0
        signal += factors[column] * values
    return centres, factors / signal.std()


def effect(X: Array, column: int) -> Array:
    """What a column adds to ``signal``."""
    centres, factors = _units(X.shape[1])
    function = COLUMNS[column % len(COLUMNS)][1]
    return factors[column] * (function(X[:, column]) - centres[column])


def chunk(number: int, rows: int, columns: int, stepped: bool = False) -> Rows:
    """Rows by their chunk's number: always the same ones."""
    rng = np.random.default_rng([0, number])
    X = _draw(rng, rows, columns, stepped)
    signal = np.zeros(rows)
    for column in range(columns):  # not all effects at once: that is the table again
        signal += effect(X, column)
    y = signal + NOISE * rng.standard_normal(rows)
    ill = (rng.random(rows) < expit(LOG_ODDS * signal)).astype(np.int64)
    return Rows(X, signal, y, ill)


def held_out(rows: int, columns: int, stepped: bool = False) -> Rows:
    """Rows that no folder has."""
    return chunk(HELD_OUT, rows, columns, stepped)


def group_sizes(rows: int) -> list[int]:
    """Rows of each row group."""
    most = max(1, min(GROUP_ROWS, -(-rows // FEWEST_GROUPS)))
    return [min(most, rows - first) for first in range(0, rows, most)]


def chunks(rows: int, columns: int, stepped: bool = False) -> Iterator[Rows]:
    """So many rows, a row group at a time."""
    for number, size in enumerate(group_sizes(rows)):
        yield chunk(number, size, columns, stepped)


def in_memory(rows: int, columns: int, target: str) -> tuple[Array, Array]:
    """The rows of a folder as one array and its target; filled in place, so as to need no more memory."""
    X, y, first = np.empty((rows, columns)), np.empty(rows), 0
    for part in chunks(rows, columns):
        these = slice(first, first := first + len(part.X))
        X[these], y[these] = part.X, part.target(target)
    return X, y.astype(int) if target == "ill" else y


def make_folder(parent: Path, rows: int, columns: int, target: str, stepped: bool = False) -> Path:
    """The folder of so many rows, written if it is not there yet.

    It holds one target: all other columns of a table are what the model is fitted on.
    """
    folder = parent / f"{target}-{rows}x{columns}{'-stepped' if stepped else ''}"
    if folder.exists():
        return folder
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    made = chunks(rows, columns, stepped)
    groups = len(group_sizes(rows))
    in_file = max(1, min(GROUPS, groups // 2))
    for number, first in enumerate(range(0, groups, in_file)):
        own = (next(made) for _ in range(min(in_file, groups - first)))
        _write(unfinished / f"part-{number:03d}.parquet", (_table(p, target) for p in own))
    unfinished.rename(folder)
    return folder


def cut_anew(folder: Path, rows: int) -> Path:
    """The same rows in one file, with row groups of another size."""
    import pyarrow.parquet as pq

    other = folder.with_name(f"{folder.name}-by-{rows}")
    other.mkdir(exist_ok=True)
    pq.write_table(pq.read_table(folder), other / "all.parquet", row_group_size=rows)
    return other


def _table(rows: Rows, target: str) -> Any:
    import pyarrow as pa

    columns = dict(zip(names(rows.X.shape[1]), rows.X.T, strict=True))
    return pa.table({name: pa.array(values) for name, values in columns.items()}).append_column(
        target, pa.array(rows.target(target))
    )


def _write(path: Path, tables: Iterator[Any]) -> None:
    """One row group a table."""
    import pyarrow.parquet as pq

    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as writer:
        for table in (first, *tables):
            writer.write_table(table, row_group_size=max(1, len(table)))
