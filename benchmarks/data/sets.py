"""Data sets by name: what one is, and the paper's as files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

Task = Literal["regression", "classification", "counts", "multiclass"]
Array = np.ndarray
Table = np.ndarray | pd.DataFrame

REGRESSION_SETS = (
    "autompg",
    "concrete",
    "energy",
    "kin8nm",
    "naval",
    "power",
    "protein",
    "wine",
    "yacht",
)
CLASSIFICATION_SETS = ("australian", "breast", "heart", "ionosphere", "parkinsons")
ALL_SETS = REGRESSION_SETS + CLASSIFICATION_SETS


@dataclass(frozen=True)
class Dataset:
    """A table of features ``X`` (an array, or a frame as it came) and the target ``y``.

    Classes are 0 .. C-1. Where a set has a usual split, its first ``n_train`` rows are for training.
    ``columns`` are the names of an array's columns, where they are known.
    """

    name: str
    task: Task
    X: Table
    y: Array
    n_train: int | None = None
    columns: tuple[str, ...] = ()

    def rows(self, index: Array | slice) -> Table:
        """These rows of ``X``."""
        return self.X.iloc[index] if isinstance(self.X, pd.DataFrame) else self.X[index]


def task_of(name: str) -> Task:
    """Tell the task of one of the paper's sets."""
    return "classification" if name in CLASSIFICATION_SETS else "regression"


def read_csv(folder: Path, name: str) -> pd.DataFrame:
    """Read ``folder/name.csv`` or ``.csv.gz``; a blank cell is missing, the word NA is a word."""
    candidates = [folder / f"{name}.csv", folder / f"{name}.csv.gz"]
    path = next((candidate for candidate in candidates if candidate.exists()), None)
    if path is None:
        raise FileNotFoundError(
            f"no {name}.csv or {name}.csv.gz in {folder}; "
            f"--data must name the directory that holds the folder '{folder.name}'"
        )
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def load_uci(directory: str | Path, name: str) -> Dataset:
    """Read ``directory/uci/name.csv`` (or ``.csv.gz``); the last column is the target.

    All columns are numbers, codes included, as in the paper.
    """
    frame = read_csv(Path(directory) / "uci", name)
    if frame.isna().to_numpy().any():
        raise ValueError(f"{name}.csv has missing cells; the paper's sets have none")
    task = task_of(name)
    X = frame.iloc[:, :-1].to_numpy(float)
    y = frame.iloc[:, -1].to_numpy(int if task == "classification" else float)
    return Dataset(name, task, X, y, columns=tuple(frame.columns[:-1]))
