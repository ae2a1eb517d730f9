"""The figures of the paper's tables, copied as they are printed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

FILE = Path(__file__).parent / "published.csv"


@dataclass(frozen=True)
class Published:
    """Mean and standard error, and both as the paper prints them."""

    mean: float
    se: float
    printed: str


def read_published() -> pd.DataFrame:
    """One row a figure: set, model, metric, value, se, the table it is from, and how it is printed."""
    text = pd.read_csv(FILE, dtype=str)
    numbers = {column: text[column].astype(float) for column in ("value", "se")}
    return text.assign(**numbers, printed=text["value"] + " ± " + text["se"])


def published(paper: pd.DataFrame, name: str, model: str, metric: str) -> Published | None:
    """What the paper has for a set, one of its models and a metric."""
    rows = paper[(paper["set"] == name) & (paper["model"] == model) & (paper["metric"] == metric)]
    if rows.empty:
        return None
    first = rows.iloc[0]
    return Published(float(first["value"]), float(first["se"]), first["printed"])


def printed(paper: pd.DataFrame, model: str) -> dict[str, str]:
    """A model's figures of one metric as they are printed, by set."""
    rows = paper[paper["model"] == model]
    return dict(zip(rows["set"], rows["printed"], strict=True))
