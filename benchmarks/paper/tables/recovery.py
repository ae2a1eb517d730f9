"""Tables of functions with a known truth."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from benchmarks.experiments import EXPERIMENTS
from benchmarks.markdown import in_order, markdown
from benchmarks.paper.scores import summarise
from benchmarks.paper.tables.words import cell_text, median, paragraphs


def recovery_tables(results: pd.DataFrame, title: str) -> str:
    """Error of each function, coverage of its 95% band, NLL and CPU seconds."""
    models = in_order(results["model"], EXPERIMENTS["toy"].models)
    functions = [f"f{d}" for d in range(1, 5)]
    failed = results["error"].notna() if "error" in results else pd.Series(False, results.index)

    def line(model: str, columns: Sequence[str], decimals: int) -> list[str]:
        own = results[results["model"] == model]
        n_failed = int(failed[own.index].sum())
        found = [own[c].dropna() if c in own else pd.Series(dtype=float) for c in columns]
        return [cell_text(summarise(v, n_failed), decimals, unit="seed") for v in found]

    errors = [*(f"rmse_{f}" for f in functions), "range_f4", "nll"]
    cover = [f"coverage_{f}" for f in functions]
    first = [[m, *line(m, errors, 3)] for m in models]
    second = [
        [m, *line(m, cover, 2), median(results[results["model"] == m], "fit_cpu_seconds", 2)]
        for m in models
    ]
    return paragraphs(
        [
            f"### {title}",
            "Root mean squared error of each function at the training rows, the range of the "
            "estimate of `f4`, which is zero, and test NLL; mean ± standard error over seeds:",
            markdown(["model", *functions, "range of f4", "NLL"], first),
            "Coverage: fraction of training rows at which the band of two standard deviations (95%) "
            "contains the true function, and median CPU seconds of a fit. A zero function that was "
            "dropped is covered everywhere:",
            markdown(["model", *functions, "fit, CPU s"], second),
        ]
    )
