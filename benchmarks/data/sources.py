"""Where a data set comes from: the directory that the user names, or OpenML.

OpenML's copies of the paper's sets are not all as the paper has them, so every one has a row in
``OPENML`` that says how to get there, and what came is checked before anybody fits it: rows, columns, and
the mean and spread of the target or, with two classes, the number of ones. More is not checked: the
two-class sets are known by their shape and their balance only. The order of rows, and so the folds, may
be another one than in the files of a directory.

Nothing was downloaded when this was written. Numbers and targets of concrete, energy, kin8nm, naval,
protein, wine and yacht agree with public descriptions of these copies, and so do the numbers of
australian and parkinsons and the columns of autompg. The rest (numbers of the others, and names of the
classes) is from general knowledge; a mistake there ends in an error, not in another table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml

from benchmarks.data.frames import RAW_SETS, load_raw
from benchmarks.data.hirid import load_hirid
from benchmarks.data.mimic import load_mimic3
from benchmarks.data.sets import ALL_SETS, Dataset, load_uci, task_of
from benchmarks.environment import say

CLINICAL = {"mimic3": load_mimic3, "hirid": load_hirid}
ELSEWHERE = {  # sets that OpenML does not have, or not under a name that we could find
    "power": "the UCI repository, data set 294 (Combined Cycle Power Plant)",
    "physionet2012": (
        "PhysioNet's Challenge 2012 (https://physionet.org/content/challenge-2012), sets a and b, "
        "as a table of one row a stay"
    ),
    "mimic3": "PhysioNet, with credentials (https://physionet.org/content/mimiciii)",
    "hirid": "PhysioNet, with credentials (https://physionet.org/content/hirid)",
}


@dataclass(frozen=True)
class Facts:
    """What a set must look like: rows, columns of X, mean and standard deviation of y.

    Two classes have the number of ones instead.
    """

    rows: int
    columns: int
    mean: float | None = None
    std: float | None = None
    ones: int | None = None

    def __str__(self) -> str:
        target = (
            f"y of mean {self.mean:.6g} and standard deviation {self.std:.6g}"
            if self.ones is None
            else f"{self.ones:,} ones"
        )
        return f"{self.rows:,} rows, {self.columns} columns, {target}"

    def agrees(self, other: Facts) -> bool:
        """Whether the counts are the same and mean and spread are, but for the way they are stored."""
        same = (self.rows, self.columns, self.ones) == (other.rows, other.columns, other.ones)
        if self.ones is not None or not same:
            return same
        return bool(np.allclose((self.mean, self.std), (other.mean, other.std), rtol=1e-4))


@dataclass(frozen=True)
class Entry:
    """How to get one set from OpenML: its number there, its target, and what to do to the table.

    ``one`` is the class that becomes 1; ``drop`` are columns that are not features; rows with gaps go
    with ``whole_rows``; ``constants`` are put back, by their place among the features.
    """

    number: int
    name: str
    target: str
    facts: Facts
    one: str | None = None
    drop: tuple[str, ...] = ()
    whole_rows: bool = False
    constants: tuple[tuple[int, float], ...] = ()


OPENML = {
    # 398 cars, six of them without horsepower; the car's name is not among the columns of all copies
    "autompg": Entry(
        196,
        "autoMpg",
        "class",
        Facts(392, 7, 23.445918, 7.805007),
        drop=("car name", "name"),
        whole_rows=True,
    ),
    "concrete": Entry(
        44959, "concrete_compressive_strength", "strength", Facts(1030, 8, 35.817961, 16.705742)
    ),
    # not number 1472, whose loads are rounded to classes
    "energy": Entry(
        44960,
        "energy_efficiency",
        "heating_load",
        Facts(768, 8, 22.307201, 10.090196),
        drop=("cooling_load",),
    ),
    "kin8nm": Entry(189, "kin8nm", "y", Facts(8192, 8, 0.7142835, 0.2636068)),
    # OpenML has taken out the two columns that never change: the compressor's inlet
    # temperature and pressure
    "naval": Entry(
        44969,
        "naval_propulsion_plant",
        "gt_compressor_decay_state_coefficient",
        Facts(11934, 16, 0.975, 0.01472022),
        drop=("gt_turbine_decay_state_coefficient",),
        constants=((8, 288.0), (11, 0.998)),
    ),
    "protein": Entry(44963, "physiochemical_protein", "RMSD", Facts(45730, 9, 7.748528, 6.118312)),
    "wine": Entry(44972, "red_wine", "quality", Facts(1599, 11, 5.636023, 0.8075694)),
    "yacht": Entry(
        42370, "yacht_hydrodynamics", "Residuary.resistance", Facts(308, 6, 10.495357, 15.16049)
    ),
    "australian": Entry(40981, "Australian", "A15", Facts(690, 14, ones=307), one="1"),
    # Wisconsin, diagnostic; 2 is malignant
    "breast": Entry(1510, "wdbc", "Class", Facts(569, 30, ones=212), one="2"),
    "heart": Entry(53, "heart-statlog", "class", Facts(270, 13, ones=120), one="present"),
    "ionosphere": Entry(59, "ionosphere", "class", Facts(351, 34, ones=225), one="g"),
    # 2 is a patient
    "parkinsons": Entry(1488, "parkinsons", "Class", Facts(195, 22, ones=147), one="2"),
}


def load(name: str, directory: Path | None, cache: Path) -> Dataset:
    """Load a set from ``directory`` if it is there, else from OpenML, whose downloads ``cache`` keeps.

    The paper's sets are ``directory/uci/name.csv``, the raw ones ``directory/open/name.csv``, and
    the folders ``directory/mimic3`` and ``directory/hirid`` hold PhysioNet's files (see
    ``benchmarks.data.mimic`` and ``benchmarks.data.hirid``).
    """
    known = (*ALL_SETS, *RAW_SETS, *CLINICAL)
    if name not in known:
        raise ValueError(f"no data set is called {name!r}; there are {', '.join(known)}")
    if directory is not None and not directory.is_dir():
        raise FileNotFoundError(f"--data names {directory}, which is not a directory")
    if directory is not None and is_in(directory, name):
        if name in CLINICAL:
            return CLINICAL[name](directory / name)
        return load_uci(directory, name) if name in ALL_SETS else load_raw(directory, name)
    if name not in OPENML:
        place = ELSEWHERE.get(name, "the UCI repository")
        where = "--data DIR" if directory is None else f"--data {directory}"
        raise FileNotFoundError(
            f"{name} is not to be had from OpenML; get it from {place} "
            f"and put it at {where_in(name)} under {where}"
        )
    say(f"{name}: from OpenML, number {OPENML[name].number}")
    return download(name, cache)


def where_in(name: str) -> str:
    """Tell the place of a set in the user's directory."""
    if name in CLINICAL:
        return f"{name}/"
    folder = "uci" if name in ALL_SETS else "open"
    return f"{folder}/{name.removesuffix('_int')}.csv"


def is_in(directory: Path, name: str) -> bool:
    """Whether the user's directory has the set."""
    place = where_in(name)
    return (directory / place).exists() or (directory / f"{place}.gz").exists()


def download(name: str, cache: Path) -> Dataset:
    """Fetch one of the paper's sets and make it the table that the paper has; checked."""
    entry = OPENML[name]
    try:
        frame = fetch_openml(
            data_id=entry.number, target_column=None, as_frame=True, data_home=str(cache)
        ).frame
    except (OSError, ValueError) as error:  # no network; OpenML's own answers are ValueErrors
        raise OSError(
            f"{name} could not be fetched from OpenML (number {entry.number}, {entry.name}): {error}; "
            f"without network, --data DIR with {where_in(name)} is the alternative"
        ) from error
    X, y = as_in_the_paper(frame, entry)
    found = facts_of(X, y, entry)
    if not found.agrees(entry.facts):
        raise ValueError(
            f"OpenML's number {entry.number} ({entry.name}) is not the paper's {name}: expected "
            f"{entry.facts}, came {found}; --data DIR with {where_in(name)} is the alternative"
        )
    return Dataset(name, task_of(name), X, y)


def as_in_the_paper(frame: pd.DataFrame, entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    """The features as numbers, codes included, and the target as numbers or 0 and 1."""
    by_plain_name = {plain(column): column for column in frame.columns}
    if plain(entry.target) not in by_plain_name:
        raise ValueError(
            f"OpenML's number {entry.number} ({entry.name}) has no column {entry.target!r}, but "
            f"{', '.join(map(str, frame.columns))}; --data DIR is the alternative"
        )
    if entry.whole_rows:
        frame = frame.dropna()
    target = frame[by_plain_name[plain(entry.target)]]
    gone = {plain(entry.target), *map(plain, entry.drop)}
    X = np.column_stack(
        [
            numbers(frame[column], entry)
            for name, column in by_plain_name.items()
            if name not in gone
        ]
    )
    if X.shape[1] + len(entry.constants) == entry.facts.columns:
        for place, value in entry.constants:
            X = np.insert(X, place, value, axis=1)
    if entry.one is None:
        return X, numbers(target, entry)
    return X, (target.astype(str).str.strip() == entry.one).to_numpy(int)


def plain(name: object) -> str:
    """A column's name without case and punctuation, which copies of a set differ in."""
    return re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_")


def numbers(column: pd.Series, entry: Entry) -> np.ndarray:
    """A column's numbers; OpenML's codes are categories, and those are strings."""
    values = pd.to_numeric(column.astype(object), errors="coerce").to_numpy(float)
    if np.isnan(values).any():
        strange = column[np.isnan(values)].iloc[0]
        raise ValueError(
            f"OpenML's number {entry.number} ({entry.name}) has {strange!r} in {column.name!r}, where "
            "the paper's set has a number; --data DIR is the alternative"
        )
    return values


def facts_of(X: np.ndarray, y: np.ndarray, entry: Entry) -> Facts:
    """What came, to be held against what must come."""
    if entry.one is not None:
        return Facts(*X.shape, ones=int(y.sum()))
    return Facts(*X.shape, mean=float(y.mean()), std=float(y.std(ddof=1)))
