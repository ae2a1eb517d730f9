"""What extracts of intensive care have in common: plausible values, means of the first day, a split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.data.sets import Dataset

DAY = pd.Timedelta(hours=24)


@dataclass(frozen=True)
class Variable:
    """A column of the result: the items that measure it, and the range of plausible values.

    A value is plausible above ``low`` and up to ``high``.
    """

    name: str
    items: tuple[int, ...]
    low: float
    high: float


def items_of(variables: Iterable[Variable]) -> list[int]:
    """All items of these variables."""
    return [item for variable in variables for item in variable.items]


def male(sex: pd.Series) -> pd.Series:
    """A column of ones for men."""
    return (sex == "M").astype(float).rename("male")


def plausible(events: pd.DataFrame, variables: Iterable[Variable]) -> pd.DataFrame:
    """Keep the events (``item``, ``value``, ...) of these variables that can be true; name them."""
    table = pd.DataFrame(
        [(item, v.name, v.low, v.high) for v in variables for item in v.items],
        columns=["item", "name", "low", "high"],
    )
    events = events.merge(table, on="item")
    return events[(events["value"] > events["low"]) & (events["value"] <= events["high"])]


def first_day(events: pd.DataFrame, starts: pd.Series) -> pd.DataFrame:
    """Keep the events (``id``, ``time``, ...) from 0 to 24 hours after the start of their stay."""
    since = events["time"] - events["id"].map(starts)
    return events[(since >= pd.Timedelta(0)) & (since <= DAY)]


def once(events: pd.DataFrame) -> pd.DataFrame:
    """An event that is recorded several times counts once."""
    return events.drop_duplicates(["id", "item", "time", "value"])


def joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All rows of several tables; empty ones, whose columns have no types, are left out."""
    return pd.concat([table for table in tables if not table.empty] or tables[:1])


def means(events: pd.DataFrame, ids: Sequence[int], variables: Sequence[Variable]) -> pd.DataFrame:
    """One row an id, one column a variable: the mean of its events, NaN where it has none."""
    table = once(events).groupby(["id", "name"])["value"].mean().unstack()
    return table.reindex(index=ids, columns=[v.name for v in variables])


def hashed_test(ids: Iterable[int], share: float) -> np.ndarray:
    """Choose about this share of the ids for testing: by a hash, so for ever and for everyone alike.

    An id keeps its side whoever else is in the extract.
    """
    digests = (sha256(str(int(number)).encode()).digest() for number in ids)
    return np.array([int.from_bytes(digest[:8], "big") < share * 2**64 for digest in digests])


def split_dataset(name: str, X: pd.DataFrame, y: np.ndarray, test: np.ndarray) -> Dataset:
    """A set with its training rows first, each part in the order of the frame's index."""
    for what, count in (("training", (~test).sum()), ("test", test.sum())):
        if count == 0:
            raise ValueError(f"{name}: none of the {len(X)} stays is a {what} row")
    order = np.lexsort((X.index.to_numpy(), test))
    X = X.iloc[order].reset_index(drop=True)
    return Dataset(name, "classification", X, np.asarray(y)[order].astype(int), int((~test).sum()))


def find_file(directory: Path, candidates: Sequence[str], remedy: str) -> Path:
    """Give the first of the candidates that is there."""
    for candidate in candidates:
        if (directory / candidate).exists():
            return directory / candidate
    raise FileNotFoundError(f"no {' or '.join(candidates)} in {directory}; {remedy}")


def require_columns(found: Iterable[str], needed: Iterable[str], path: Path, remedy: str) -> None:
    """Complain of a file that lacks columns."""
    found = list(found)
    lacking = [name for name in needed if name not in found]
    if lacking:
        raise ValueError(
            f"{path} has no column {', '.join(lacking)}, but {', '.join(found)}; {remedy}"
        )


def require_rows(table: pd.DataFrame, what: str, remedy: str) -> pd.DataFrame:
    """Complain of a table that is empty."""
    if table.empty:
        raise ValueError(f"{what}: no rows; {remedy}")
    return table
