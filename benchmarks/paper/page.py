"""The page of the paper's experiments: conditions and targets first, then each with its pictures."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from benchmarks.paper.figures import Picture
from benchmarks.paper.tables import tables_of
from benchmarks.paper.tables.conditions import (
    complaint_lines,
    condition_lines,
    missing_lines,
    model_key,
)
from benchmarks.paper.tables.words import paragraphs
from benchmarks.paper.verdicts import verdict_page


def write_page(
    results: pd.DataFrame,
    paper: pd.DataFrame,
    conditions: str,
    pictures: Iterable[Picture],
    where: str,
) -> str:
    """The page; ``where`` is the folder of pictures as seen from it."""
    parts = [
        condition_lines(results, conditions),
        model_key(results["model"]),
        missing_lines(results, conditions),
        verdict_page(results, paper),
    ]
    drawn = list(pictures)
    for section, table in tables_of(results, paper).items():
        parts += [table, *(p.markdown(where) for p in drawn if p.section == section)]
    return paragraphs([*parts, complaint_lines(results)])
