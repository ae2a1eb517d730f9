"""Made-up results of the paper's experiments, as the run keeps them."""

import numpy as np
import pandas as pd

from benchmarks.paper.scores import complete

SPREAD = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])  # of five folds: its standard error is 0.0707
ERROR = SPREAD.std(ddof=1) / np.sqrt(5)


def cells(model, mean, name="heart", folds=5, metric="nll", experiment="uci", **more):
    """Rows of one model whose folds spread around a mean in the same way."""
    return [
        {
            "experiment": experiment,
            "set": name,
            "task": "classification",
            "model": model,
            "fold": fold,
            "threads": 1,
            "fit_cpu_seconds": 1.0,
            metric: mean + SPREAD[fold],
            "code": "abc1234",
            "started": "2026-01-02T03:04:05+00:00",
            **more,
        }
        for fold in range(folds)
    ]


def failed(model, fold, name="heart", **more):
    """A row of a fit that raised an error."""
    row = cells(model, 0.0, name)[fold] | {"error": "ValueError: no | luck\nat all", **more}
    del row["nll"]
    return [row]


def frame(*rows):
    """All rows as the tables get them."""
    return complete(pd.DataFrame([row for some in rows for row in some]))


def given_up(model, fold, name="heart", experiment="uci"):
    """A row as the run writes it when a cell takes too long: it knows neither task nor threads."""
    place = {"experiment": experiment, "set": name, "model": model, "fold": fold}
    return [place | {"error": "given up after 60 s", "code": "abc1234"}]


def line_of(text, start, nth=0):
    """The cells of the nth row of tables that begins so."""
    rows = [row for row in text.splitlines() if row.strip().startswith(f"| {start} ")]
    return [cell.strip().replace("\u00a0", " ") for cell in rows[nth].strip().strip("|").split("|")]
