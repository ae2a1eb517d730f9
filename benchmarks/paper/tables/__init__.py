"""Tables of the paper's experiments in Markdown, the paper's figures beside ours: functions of frames."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.paper.scores import part
from benchmarks.paper.tables.costs import cost_tables
from benchmarks.paper.tables.icu import depth_table, icu_tables, pair_table, redundancy_table
from benchmarks.paper.tables.recovery import recovery_tables
from benchmarks.paper.tables.uci import beside_paper, paired_tables, uci_tables


def tables_of(results: pd.DataFrame, paper: pd.DataFrame) -> Mapping[str, str]:
    """The tables of each experiment that has cells, in the order of the page."""
    toy, inference, uci, icu, depth, sums = (
        part(results, name) for name in ("toy", "inference", "uci", "icu", "depth", "redundancy")
    )
    others = "Toy: other posteriors for the same networks"
    costs, pairs = pd.concat([toy, uci, icu]), pd.concat([icu, uci])
    made = {
        "toy": (toy, lambda: recovery_tables(toy, "Toy: recovered functions")),
        "inference": (inference, lambda: recovery_tables(inference, others)),
        "uci": (uci, lambda: uci_tables(uci)),
        "paper": (uci, lambda: beside_paper(uci, paper)),
        "paired": (uci, lambda: paired_tables(uci)),
        "icu": (icu, lambda: icu_tables(icu, paper)),
        "pairs": (pairs, lambda: pair_table(pairs)),
        "depth": (depth, lambda: depth_table(depth, paper)),
        "redundancy": (sums, lambda: redundancy_table(sums)),
        "costs": (costs, lambda: cost_tables(costs)),
    }
    return {name: make() if len(rows) else "" for name, (rows, make) in made.items()}
