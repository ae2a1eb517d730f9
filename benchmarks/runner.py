"""Folds, clocks and progress: every model meets the same rows under the same limits."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from benchmarks import metrics
from benchmarks.data.problems import large_problem
from benchmarks.data.sets import Dataset
from benchmarks.environment import say
from benchmarks.memory import peak_bytes, reset_peak, resident_bytes
from benchmarks.peers import Fitted, Peer, Prediction

Row = dict[str, Any]
INTERVAL_LEVEL = 0.9
N_SPLITS = 5


def folds_of(dataset: Dataset, n_folds: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Give the first ``n_folds`` of the five folds: number, training and test rows.

    A set with a usual split has that one only.
    """
    if dataset.n_train is not None:
        yield 0, np.arange(dataset.n_train), np.arange(dataset.n_train, len(dataset.y))
        return
    splitter = KFold(N_SPLITS, shuffle=True, random_state=0)
    for fold, (train, test) in enumerate(splitter.split(dataset.X)):
        if fold < n_folds:
            yield fold, train, test


def available(peers: Iterable[Peer]) -> tuple[list[Peer], list[str]]:
    """Split models into those that can run here, and a line on each that cannot."""
    present, skipped = [], []
    for peer in peers:
        reason = peer.missing()
        if reason is None:
            present.append(peer)
        else:
            skipped.append(f"SKIPPED {peer.name}: {reason}")
    return present, skipped


def warm_up(peers: Iterable[Peer], threads: int) -> None:
    """Fit each model once on little data, so that no cell pays for pools and lazy imports."""
    for peer in peers:
        for task in ("regression", "classification"):
            tiny = large_problem(60, 2, task)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    peer.fit(tiny.X, tiny.y, task, 0, threads).predict(tiny.X)
            except Exception as error:  # the cells will tell; nothing depends on the warm-up
                say(f"warm-up of {peer.name} on {task} failed: {error}")


def score(dataset: Dataset, y: np.ndarray, prediction: Prediction) -> Row:
    """All metrics of one fold's predictions."""
    mean = np.asarray(prediction.mean, float)
    if dataset.task == "classification":
        return {
            "nll": metrics.bernoulli_nll(y, mean),
            "auroc": metrics.auroc(y, mean),
            "auprc": metrics.auprc(y, mean),
            "ece": metrics.expected_calibration_error(y, mean),
            "ece_by_chance": metrics.ece_by_chance(mean),
            "rbs": metrics.root_brier_score(y, mean),
        }
    if dataset.task == "multiclass":
        return {
            "nll": metrics.categorical_nll(y, mean),
            "accuracy": metrics.accuracy(y, mean),
            "ece": metrics.top_label_calibration_error(y, mean),
        }
    if dataset.task == "counts":
        spread = prediction.dispersion
        lower, upper = prediction.interval or metrics.count_interval(mean, spread, INTERVAL_LEVEL)
        return {
            "nll": metrics.count_nll(y, mean, spread),
            "deviance": metrics.poisson_deviance(y, mean),
            "rmse": metrics.rmse(y, mean),
            "coverage90": metrics.interval_coverage(y, lower, upper),
            "width90": metrics.interval_width(lower, upper),
        }
    assert prediction.std is not None, "a regression needs a standard deviation"
    lower, upper = prediction.interval or metrics.gaussian_interval(
        mean, prediction.std, INTERVAL_LEVEL
    )
    return {
        "nll": metrics.gaussian_nll(y, mean, prediction.std),
        "rmse": metrics.rmse(y, mean),
        "coverage90": metrics.interval_coverage(y, lower, upper),
        "width90": metrics.interval_width(lower, upper),
        **metrics.gaussian_calibration(y, mean, prediction.std),
    }


def run_cell(
    dataset: Dataset,
    fold: int,
    train: np.ndarray,
    test: np.ndarray,
    peer: Peer,
    threads: int,
    seed: int = 0,
    observe: Callable[[Fitted, Prediction], Row] | None = None,
) -> Row:
    """Fit and score one model on one fold; a failure becomes a row with its message.

    ``observe`` may look at the fitted model and its predictions of the test rows, and add to the row.
    """
    row: Row = {
        "set": dataset.name,
        "task": dataset.task,
        "fold": fold,
        "model": peer.name,
        "rows": len(train),
        "columns": dataset.X.shape[1],
        "threads": threads,
    }
    X_train, y_train = dataset.rows(train), dataset.y[train]
    X_test, y_test = dataset.rows(test), dataset.y[test]
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            reset_peak()
            before = resident_bytes()
            start, cpu_start = time.perf_counter(), time.process_time()
            fitted = peer.fit(X_train, y_train, dataset.task, seed, threads)
            middle, cpu_middle = time.perf_counter(), time.process_time()
            prediction = fitted.predict(X_test)
            end = time.perf_counter()
            peak = peak_bytes() - before
            scores = score(dataset, y_test, prediction)
            if fitted.log_density is not None:
                scores["nll"] = -fitted.log_density(X_test, y_test)
            if fitted.cdf is not None:
                own = fitted.cdf(X_test, y_test)
                scores["qce"] = metrics.quantile_calibration_error(own)
            seen = observe(fitted, prediction) if observe is not None else {}
        row |= {"fit_seconds": middle - start, "predict_seconds": end - middle, "peak_bytes": peak}
        # on a busy machine the clock tells of the others; time in processes of its own is not counted
        row["fit_cpu_seconds"] = cpu_middle - cpu_start
        row |= fitted.info | scores | seen
        row["warnings"] = "; ".join(sorted({item.category.__name__ for item in caught}))
    except Exception as error:  # one model's failure must not lose the others' results
        traceback.print_exc()
        row["error"] = f"{type(error).__name__}: {error}"
    return row


def _progress(row: Row) -> str:
    cell = f"{row['set']:<13} fold {row['fold']}  {row['model']:<13}"
    if "error" in row:
        return f"{cell} FAILED {row['error']}"
    text = f"{cell} nll {row['nll']:9.4f}  fit {row['fit_seconds']:8.2f} s"
    return text + (f"  [{row['warnings']}]" if row["warnings"] else "")


def run_sets(
    datasets: Iterable[Dataset], folds_by_peer: Sequence[tuple[Peer, int]], threads: int
) -> Iterator[Row]:
    """All sets x folds x models, one row each; the models of a fold follow each other in time.

    Each model comes with the number of folds it takes part in.
    """
    n_folds = max((folds for _, folds in folds_by_peer), default=0)
    for dataset in datasets:
        for fold, train, test in folds_of(dataset, n_folds):
            for peer, folds in folds_by_peer:
                if fold < folds:
                    row = run_cell(dataset, fold, train, test, peer, threads)
                    say(_progress(row))
                    yield row
