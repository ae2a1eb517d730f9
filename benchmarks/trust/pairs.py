"""Interactions never hurt: NLL and RMSE with them relative to those without, on all sets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.cells import Cell
from benchmarks.markdown import in_order, markdown, number
from benchmarks.metrics import standard_error
from benchmarks.trust.scores import SETS
from benchmarks.trust.section import Plan, Section, finished
from benchmarks.trust.sets import OURS, set_cells
from benchmarks.trust.sets import SECTION as ALL_SETS
from benchmarks.verdicts import Verdict

MOST = 0.01  # worse, of the figure without interactions


def cells(plan: Plan) -> list[Cell]:
    """Those of the sets: a fit that both sections need is made once."""
    return set_cells(plan, OURS)


def relative(results: pd.DataFrame) -> pd.DataFrame:
    """By set and score: means without and with interactions, and by how much the second is worse.

    NLL of numbers depends on their unit and may be near zero or negative. Where it is below one in size,
    the difference is reported in nats, of which 0.01 are 1% of likelihood a row.
    """
    without, joined = (finished(results, model) for model in OURS)
    both = without.merge(joined, on=["set", "fold"], suffixes=("", "_pairs"))
    rows = []
    for name in in_order(both["set"], SETS):
        own = both[both["set"] == name]
        for score in ("nll", "rmse"):
            if score not in own or own[score].isna().all():
                continue
            first, second = own[score].mean(), own[f"{score}_pairs"].mean()
            unit = max(abs(first), 1.0) if score == "nll" else first
            error = standard_error((own[f"{score}_pairs"] - own[score]).to_numpy()) / unit
            rows.append(
                {
                    "set": name,
                    "score": score,
                    "folds": len(own),
                    "pairs": own["pairs_active_pairs"].mean(),
                    "without": first,
                    "with": second,
                    "worse": (second - first) / unit,
                    "error": error,
                }
            )
    return pd.DataFrame(rows)


def tables(results: pd.DataFrame) -> list[str]:
    lines = []
    for row in relative(results).to_dict("records"):
        spread = "" if np.isnan(row["error"]) else f" ± {row['error']:.2%}"
        lines.append(
            [
                row["set"],
                row["score"],
                str(row["folds"]),
                number(row["pairs"], 1),
                number(row["without"]),
                number(row["with"]),
                f"{row['worse']:+.2%}{spread}",
            ]
        )
    header = ["set", "score", "folds", "interactions", "without", "with", "change"]
    legend = "Negative changes are improvements. Where NLL is below 1 in size, a change of 1% is 0.01 nats."
    return [markdown(header, lines, "With interactions and without"), legend]


def targets(results: pd.DataFrame) -> list[Verdict]:
    known = relative(results)
    judged = []
    for name in SETS:
        requirement = f"{name}: NLL and RMSE with interactions at most 1% worse than without"
        own = known[known["set"] == name] if len(known) else known
        if own.empty:
            judged.append(Verdict(requirement, "not measured", None))
            continue
        shown = ", ".join(f"{row['score']} {row['worse']:+.2%}" for _, row in own.iterrows())
        judged.append(Verdict(requirement, shown, bool((own["worse"] <= MOST).all())))
    return judged


SECTION = Section(
    "pairs",
    "Interactions never hurt",
    cells,
    ALL_SETS.measure,
    tables,
    targets,
    needs_data=True,
    source="sets",
)
