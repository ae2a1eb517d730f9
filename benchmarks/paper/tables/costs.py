"""What a fit costs: CPU time and memory."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.markdown import MISSING, in_order, markdown, number, time_ratio
from benchmarks.paper.models import in_blocks
from benchmarks.paper.tables.words import paragraphs

#: Runs in an interpreter of its own, of which its cell's process sees nothing.
ELSEWHERE = "public"
COSTS = (
    ("fit_cpu_seconds", "CPU seconds", 1.0, 2),
    ("peak_bytes", "Peak memory, MiB", 2.0**20, 0),
)


def cost_tables(results: pd.DataFrame, reference: str = "lanam") -> str:
    """Median CPU seconds and MiB of a fit by set and model, and the ratio to the reference."""
    results = results[results["model"] != ELSEWHERE]
    threads = ", ".join(f"{t:.0f}" for t in sorted(results["threads"].dropna().unique()))
    note = (
        f"Medians over the folds or seeds that have them; threads: {threads}. Several cells ran at "
        "the same time, so these are CPU times of the fit's own process, not wall-clock times; a dash "
        "where it was not recorded. Wall-clock times on an idle machine are in "
        "[Benchmarks](benchmarks.md). The last row: the geometric mean over sets of the "
        f"ratio to `{reference}`, on the cells that both finished. Memory is the peak during the fit less "
        "the memory in use before it."
    )
    parts = ["### CPU time and memory of a fit", note]
    for column, title, scale, digits in COSTS:
        known = results[results[column].notna()] if column in results else results.iloc[:0]
        if known.empty:
            parts.append(f"{title}: not recorded in these cells.")
            continue
        medians = known.groupby(["set", "model"])[column].median() / scale
        compared = known.assign(fit_seconds=known[column])
        for block, models in in_blocks(results["model"]).items():
            lines = [
                [name, *(number(medians.get((name, m), np.nan), digits) for m in models)]
                for name in in_order(results["set"])
            ]
            ratios = [time_ratio(compared, m, reference) for m in models]
            told = [f"{ratio:.3g} ({n} sets)" if n else MISSING for ratio, n in ratios]
            table = markdown(["set", *models], [*lines, [f"over {reference}", *told]])
            parts.append(f"{title}: {block[0].lower()}{block[1:]}\n\n{table}")
    return paragraphs(parts)
