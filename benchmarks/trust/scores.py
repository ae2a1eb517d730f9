"""One model on one fold of a data set: the scores of ``benchmarks.runner``, and those of 95% intervals."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import metrics
from benchmarks.cells import Row
from benchmarks.data.frames import OPEN_SETS, load_classes, load_open
from benchmarks.data.sets import ALL_SETS, Dataset, load_uci
from benchmarks.peers import Fitted, Prediction, all_peers
from benchmarks.runner import folds_of, run_cell
from benchmarks.trust.section import LEVEL

SETS = (*ALL_SETS, *OPEN_SETS)
ONE_SPLIT = ("adult", "physionet2012")
SMALL_SETS = ("autompg", "yacht", "heart", "parkinsons")
KEPT = (
    *("rows", "columns", "task", "nll", "rmse", "auroc", "deviance", "accuracy", "fit_seconds"),
    *("coverage", "nll_se", "outside", "log_evidence", "terms_active", "pairs_active"),
    *("warnings", "error"),
)


@lru_cache(maxsize=1)
def load(directory: Path, name: str) -> Dataset:
    """A data set by name: the paper's, an open one, or one that scikit-learn has."""
    if name in ALL_SETS:
        return load_uci(directory, name)
    return load_open(directory, name) if name in OPEN_SETS else load_classes(name)


def there(directory: Path | None, name: str) -> bool:
    """Whether the directory has the file of a set."""
    folder = "uci" if name in ALL_SETS else "open"
    ends = (".csv", ".csv.gz")
    return directory is not None and any((directory / folder / f"{name}{e}").exists() for e in ends)


def folds_for(name: str, folds: int) -> int:
    """How many folds a set has: a set with a usual split has one."""
    return 1 if name in ONE_SPLIT else folds


def split(dataset: Dataset, fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of a fold."""
    *_, (_, train, test) = folds_of(dataset, fold + 1)
    return train, test


def measure_fold(
    dataset: Dataset,
    fold: int,
    model: str,
    threads: int,
    observe: Callable[[Fitted, Prediction], Row] | None = None,
) -> Row:
    """Scores of a model on a fold, with the coverage of 95% intervals."""
    train, test = split(dataset, fold)

    def look(fitted: Fitted, prediction: Prediction) -> Row:
        further = {} if observe is None else observe(fitted, prediction)
        return intervals(dataset, test, fitted, prediction) | further

    peer = all_peers()[model]
    reason = peer.missing()
    if reason is not None:
        raise RuntimeError(reason)
    row = run_cell(dataset, fold, train, test, peer, threads, observe=look)
    return {key: value for key, value in row.items() if key in KEPT}


def intervals(dataset: Dataset, test: np.ndarray, fitted: Fitted, prediction: Prediction) -> Row:
    """Coverage of 95% intervals of numbers and counts; of classes the standard error of the NLL."""
    X, y, mean = dataset.rows(test), dataset.y[test], np.asarray(prediction.mean, float)
    if dataset.task in ("classification", "multiclass"):
        own = mean[np.arange(len(y)), y] if mean.ndim == 2 else np.where(y == 1, mean, 1 - mean)
        return {"nll_se": metrics.standard_error(-np.log(np.clip(own, 1e-15, 1.0)))}
    ends: Any
    if hasattr(fitted.model, "predict_interval"):
        ends = fitted.model.predict_interval(X, coverage=LEVEL).T
    elif dataset.task == "counts":
        ends = metrics.count_interval(mean, prediction.dispersion, LEVEL)
    else:
        assert prediction.std is not None
        ends = metrics.gaussian_interval(mean, prediction.std, LEVEL)
    return {"coverage": metrics.interval_coverage(y, *ends)}
