"""Tables as they come: strings, gaps, codes, counts, several classes. Data sets and made-up problems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.datasets import load_iris, load_wine

from benchmarks.data.problems import SPARSE_FUNCTIONS
from benchmarks.data.sets import Array, Dataset, Table, read_csv

RAW_SETS = ("adult", "bike_hour", "bike_hour_int", "physionet2012")
OPEN_SETS = ("adult", "ames", "bike_hour", "california", "hpc", "physionet2012")
GAP_SETS = ("autompg", "concrete", "energy", "power", "wine")  # of the paper's
CLASS_SETS = ("iris", "cultivars", "softmax5")

ADULT_TRAIN = 32_561  # the usual split
PHYSIONET_TRAIN = 4_000  # set a for training, set b for testing
BIKE_CODES = ["season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit"]
# The count itself in two parts, a row number and a date, which some copies of the set have
BIKE_LEAKS = ["instant", "dteday", "casual", "registered"]


def load_raw(directory: str | Path, name: str) -> Dataset:
    """Read one of ``RAW_SETS`` from ``directory/open``: raw frames, the last column is the target.

    ``bike_hour`` says of its eight codes that they are categories, ``bike_hour_int`` leaves them the
    integers that they are in the file.
    """
    frame = read_csv(Path(directory) / "open", name.removesuffix("_int"))
    if name.startswith("bike_hour"):
        X = frame.iloc[:, :-1].drop(columns=BIKE_LEAKS, errors="ignore")
        if name == "bike_hour":
            X = X.astype(dict.fromkeys(BIKE_CODES, "category"))
        return Dataset(name, "counts", X, frame.iloc[:, -1].to_numpy(int))
    n_train = {"adult": ADULT_TRAIN, "physionet2012": PHYSIONET_TRAIN}[name]
    y = frame.iloc[:, -1]
    positive = ">50K" if name == "adult" else 1
    ones = (y == positive).to_numpy(int)
    return Dataset(name, "classification", frame.iloc[:, :-1], ones, n_train)


def load_open(directory: str | Path, name: str) -> Dataset:
    """Read one of ``OPEN_SETS`` from ``directory/open``: a raw frame, the last column is the target.

    An ordered or unordered class becomes the number of its name in the alphabet.
    """
    if name in RAW_SETS:
        return load_raw(directory, name)
    frame = read_csv(Path(directory) / "open", name)
    X, y = frame.iloc[:, :-1].drop(columns="Id", errors="ignore"), frame.iloc[:, -1]
    if name == "hpc":
        return Dataset(name, "multiclass", X, np.unique(y, return_inverse=True)[1])
    return Dataset(name, "regression", X, y.to_numpy(float))


def with_gaps(dataset: Dataset, share: float, seed: int = 0) -> Dataset:
    """The same set with a ``share`` of its cells missing, whatever they hold."""
    if share == 0:
        return dataset
    missing = np.random.default_rng(seed).random(dataset.X.shape) < share
    X: Table = dataset.X.mask(missing) if isinstance(dataset.X, pd.DataFrame) else dataset.X.copy()
    if isinstance(X, np.ndarray):
        X[missing] = np.nan
    return replace(dataset, X=X)


def load_classes(name: str) -> Dataset:
    """One of ``CLASS_SETS``: two small ones that come with scikit-learn, and a made-up one."""
    if name == "softmax5":
        return softmax_problem(20_000, n_train=10_000)
    X, y = {"iris": load_iris, "cultivars": load_wine}[name](return_X_y=True)
    return Dataset(name, "multiclass", X, y)


def softmax_problem(n_rows: int, n_train: int, n_classes: int = 5, seed: int = 0) -> Dataset:
    """Classes whose scores are additive in six standard normal columns, the last one useless.

    Every class has each of the sparse problem's five functions with a standard normal weight.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, len(SPARSE_FUNCTIONS) + 1))
    effects = np.column_stack([function(X[:, d]) for d, function in enumerate(SPARSE_FUNCTIONS)])
    effects = (effects - effects.mean(axis=0)) / effects.std(axis=0)
    scores = effects @ rng.standard_normal((len(SPARSE_FUNCTIONS), n_classes))
    cumulated = softmax(scores, axis=1).cumsum(axis=1)
    y = (rng.random((n_rows, 1)) > cumulated[:, :-1]).sum(axis=1)
    return Dataset(f"softmax{n_classes}", "multiclass", X, y, n_train)


@dataclass(frozen=True)
class LevelsProblem:
    """A frame with a column of many levels; ``effects[k]`` is what level ``names[k]`` adds to y."""

    data: Dataset
    names: Array
    effects: Array


def levels_problem(n_rows: int, n_train: int, n_levels: int, seed: int = 0) -> LevelsProblem:
    """Standard normal effects of the levels, a sine of a number, noise of standard deviation one.

    Some levels are common and some rare (their rates are gamma of shape 2), so that a few are not among
    the training rows at all.
    """
    rng = np.random.default_rng(seed)
    rates = rng.gamma(2.0, size=n_levels)
    level = rng.choice(n_levels, size=n_rows, p=rates / rates.sum())
    names = np.array([f"id{number:06d}" for number in rng.permutation(n_levels)])
    effects = rng.standard_normal(n_levels)
    x = rng.standard_normal(n_rows)
    y = effects[level] + np.sin(3 * x) + rng.standard_normal(n_rows)
    X = pd.DataFrame({"level": names[level], "x": x})
    return LevelsProblem(Dataset("levels", "regression", X, y, n_train), names, effects)
