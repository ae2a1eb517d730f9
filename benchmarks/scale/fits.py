"""One fit, from memory or from files, in the process that calls: seconds, memory, passes, truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

from benchmarks.data.sets import Array
from benchmarks.memory import (
    FamilyPeak,
    children_peak_bytes,
    peak_bytes,
    reset_peak,
    resident_bytes,
)
from benchmarks.metrics import bernoulli_nll, gaussian_nll
from benchmarks.peers import Fitted, Prediction, all_peers
from benchmarks.peers.lanam import additive, learned
from benchmarks.runner import warm_up
from benchmarks.scale import data
from benchmarks.scale.cells import OURS, Cell
from benchmarks.scale.clock import by_job, clocked

Row = dict[str, Any]
TEST_ROWS = 50_000
EFFECT_ROWS = 5_000


def estimator(cell: Cell) -> Any:
    """Ours as the cell wants it, not fitted."""
    from lanam import LANAMClassifier, LANAMRegressor

    kind = LANAMRegressor if cell.target == "y" else LANAMClassifier
    model = kind(interactions="auto" if cell.model == "lanam-auto" else 0, random_state=0)
    return model.set_params(n_jobs=cell.threads) if "n_jobs" in model.get_params() else model


def measure_fit(cell: Cell, folder: Path | None) -> Row:
    """Fit; ``peak_bytes`` is all memory of the process and of those that it started, at one moment.

    ``summed_bytes`` is the sum of the peaks of each, which they need not reach together, and in which
    libraries count once a process; ``extra_bytes`` is what its own is beyond before.
    """
    peer = all_peers()[cell.model]
    if reason := peer.missing():
        raise RuntimeError(reason)
    # with pairs a fit of EBM takes long even on the sixty rows that wake its libraries
    warm_up([all_peers()["ebm"] if cell.model == "ebm-pairs" else peer], cell.threads)
    fit: Callable[[], Fitted]
    if cell.source == "memory":
        X, y = data.in_memory(cell.rows, cell.columns, cell.target)
        if cell.model in OURS:
            fit = lambda: ours(estimator(cell).fit(X, y))  # noqa: E731
        else:
            fit = lambda: peer.fit(X, y, data.TARGETS[cell.target], 0, cell.threads)  # noqa: E731
    else:
        import pyarrow.dataset  # noqa: F401  not on the clock

        where = f"{folder}/*.parquet"
        fit = lambda: ours(estimator(cell).fit(where, target=cell.target))  # noqa: E731
    reset_peak()
    before = resident_bytes()
    clock = clocked() if cell.source == "files" else nullcontext([])
    with FamilyPeak() as family, clock as passes:
        start, used = time.perf_counter(), time.process_time()
        fitted = fit()
        seconds = time.perf_counter() - start
    row = {
        "fit_seconds": seconds,
        "cpu_seconds": time.process_time() - used,
        "peak_bytes": family.bytes or peak_bytes(),
        "summed_bytes": peak_bytes() + children_peak_bytes(),
        "extra_bytes": peak_bytes() - before,
        **fitted.info,
        **({"jobs": by_job(passes)} if passes else {}),
        **plan_of(fitted.model),
    }
    return row | truth(fitted, cell)


def ours(model: Any) -> Fitted:
    """A fitted model of ours as peers are; rows are named where those it was fitted on were."""
    import pandas as pd

    names = getattr(model, "feature_names_in_", None)

    def named(X: Array) -> Any:
        return X if names is None else pd.DataFrame(X, columns=names)

    def predict(X: Any) -> Prediction:
        if hasattr(model, "predict_proba"):
            return Prediction(model.predict_proba(named(X))[:, 1])
        return Prediction(*model.predict(named(X), return_std=True))

    effect = additive(model)
    return Fitted(
        predict,
        effect=lambda X, column: effect(named(X), column),
        info=learned(model),
        model=model,
    )


def plan_of(model: Any) -> Row:
    """How often the fit says that it went over the rows, where it says so."""
    passes = getattr(getattr(model, "plan_", None), "passes", None)
    return {} if passes is None else {"passes": int(passes)}


def truth(fitted: Fitted, cell: Cell) -> Row:
    """How close the model comes to the truth on rows that it has not seen.

    ``nll`` is beside that of the truth itself. ``recovered`` is the share of the signal's variance that
    is right (on the scale on which effects add), ``worst_effect`` the root mean squared error of the
    worst column's function, in standard deviations of the signal.
    """
    rows = data.held_out(TEST_ROWS, cell.columns, cell.stepped)
    target = rows.target(cell.target)
    prediction = fitted.predict(rows.X)
    if cell.target == "y":
        factor, signal = 1.0, prediction.mean
        nll = gaussian_nll(target, prediction.mean, prediction.std)
        nll_truth = gaussian_nll(target, rows.signal, data.NOISE)
    else:
        factor = data.LOG_ODDS
        signal = logit(np.clip(prediction.mean, 1e-9, 1 - 1e-9)) / factor
        nll = bernoulli_nll(target, prediction.mean)
        nll_truth = bernoulli_nll(target, expit(factor * rows.signal))
    error = np.mean((signal - rows.signal) ** 2)
    row = {"nll": nll, "nll_truth": nll_truth, "recovered": 1 - error / np.var(rows.signal)}
    if cell.model in OURS and fitted.effect is not None:
        row["worst_effect"] = max(
            _effect_error(fitted.effect, rows.X[:EFFECT_ROWS], column, factor)
            for column in range(cell.columns)
        )
    return {name: float(value) for name, value in row.items()}


def _effect_error(effect: Any, X: Array, column: int, factor: float) -> float:
    """Both centred over these rows: where a function is zero is a convention."""
    difference = effect(X, column)[0] / factor - data.effect(X, column)
    return float(difference.std())
