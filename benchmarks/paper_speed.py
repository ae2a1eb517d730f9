"""CPU time of the paper's system, ours and the public implementation's, on one core.

Both train three learning rates for a thousand epochs each, of the first fold's training rows:

    python -m benchmarks.paper_speed --data DIR --public-python PATH --sets yacht,heart
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.data.sets import Array, Dataset, load_uci
from benchmarks.environment import say
from benchmarks.peers.public import PublicImplementation

SMALL_SETS = (
    "yacht",
    "autompg",
    "energy",
    "concrete",
    "wine",
    "parkinsons",
    "heart",
    "ionosphere",
    "breast",
    "australian",
)

#: Rounds of 100 epochs.
ROUNDS = 10


def training_rows(data: Dataset) -> tuple[Array, Array]:
    """The training rows of the first fold."""
    from sklearn.model_selection import KFold

    index, _ = next(iter(KFold(5, shuffle=True, random_state=0).split(data.X)))
    return np.asarray(data.X)[index], data.y[index]


def ours(data: Dataset, interactions: int = 0) -> tuple[float, float]:
    """CPU seconds of a fit and its log evidence."""
    from lanam import LANAMClassifier, LANAMRegressor

    kind = LANAMClassifier if data.task == "classification" else LANAMRegressor
    # No run ends before its last round.
    model = kind.paper(
        interactions=interactions, max_iter=ROUNDS, patience=ROUNDS, random_state=0, n_jobs=1
    )
    rows = training_rows(data)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*rows)
    return time.process_time() - start, model.log_evidence_


def publics(data: Dataset, python: str) -> float:
    """CPU seconds of the public implementation's three fits."""
    fitted = PublicImplementation(python).fit(*training_rows(data), data.task, seed=0, threads=1)
    return float(fitted.info["fit_cpu_seconds"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print one line per set, and the geometric mean of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--sets", default=",".join(SMALL_SETS))
    parser.add_argument("--public-python", help="an interpreter with laplace_skorch installed")
    parser.add_argument("--interactions", type=int, default=0, help="pairs of ours")
    options = parser.parse_args(arguments)
    ratios = []
    for name in options.sets.split(","):
        data = load_uci(options.data, name)
        seconds, evidence = ours(data, options.interactions)
        line = f"{name}: lanam {seconds:.2f} s (log evidence {evidence:.1f})"
        if options.public_python:
            theirs = publics(data, options.public_python)
            ratios.append(theirs / seconds)
            line += f", public {theirs:.2f} s, {ratios[-1]:.0f} times"
        say(line)
    if ratios:
        say(f"geometric mean: {np.exp(np.mean(np.log(ratios))):.0f} times")


if __name__ == "__main__":
    main()
