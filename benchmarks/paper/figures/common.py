"""What all figures share: pictures, and the arrays of finished cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.cells import Arrays, Cell, Store
from benchmarks.experiments import EXPERIMENTS
from benchmarks.markdown import in_order
from benchmarks.paper.scores import part

WITHIN = 2.0  # standard deviations of a band


@dataclass(frozen=True)
class Picture:
    """A figure that was drawn, or why it was not."""

    name: str
    section: str
    caption: str
    path: Path | None = None
    missing: str | None = None

    def markdown(self, where: str) -> str:
        if self.path is None:
            return f"*Left out: {self.name} ({self.missing}).*"
        return f"![{self.caption}]({where}/{self.path.name})\n\n*{self.caption}*"


class NothingToDraw(Exception):
    """The cells of a figure are missing."""


class Look:
    """Finished cells of one experiment and set that have arrays to draw, by model and fold."""

    def __init__(self, store: Store, results: pd.DataFrame, experiment: str, name: str) -> None:
        self.store, self.experiment, self.name = store, experiment, name
        rows = part(results, experiment, name)
        finished = rows[rows["error"].isna()]
        drawn = [
            store.has_arrays(Cell(experiment, name, row.model, row.fold))
            for row in finished.itertuples()
        ]
        finished = finished[np.array(drawn, dtype=bool)]
        known = EXPERIMENTS[experiment].models
        self.models = in_order(finished["model"], known)
        self.folds = finished.groupby("model")["fold"].apply(lambda f: sorted(f)).to_dict()

    def arrays(self, model: str, fold: int | None = None) -> Arrays:
        """The arrays of a model's cell, of its first fold unless said otherwise."""
        fold = self.folds[model][0] if fold is None else fold
        return self.store.arrays(Cell(self.experiment, self.name, model, fold))

    def firsts(self, models: Sequence[str], needed: str) -> dict[str, Arrays]:
        """By model, the arrays of the first fold, where they have the one that is needed."""
        found = {m: self.arrays(m) for m in models if m in self.models}
        return {m: arrays for m, arrays in found.items() if needed in arrays}
